"""TOML files, as far as we touch them: read and compared, while every entry in them is written by its host."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lorehooks.installers.edits import Edit
from lorehooks.installers.jsonedit import Edited
from lorehooks.installers.jsontext import BOM, Plain
from lorehooks.installers.problem import RefusedError

_PLACE = re.compile(r" \(at (?:line (\d+), column (\d+)|end of document)\)\Z")


def read(content: bytes, name: Path) -> dict[str, Any]:
    """The data of a TOML file. Raises RefusedError with line and column for one that cannot be read."""
    try:
        return tomllib.loads(content.removeprefix(BOM).decode())
    except UnicodeDecodeError as error:
        raise RefusedError(name, "it is not UTF-8") from error
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        found = _PLACE.search(str(error))
        line, column = (int(found[1]), int(found[2])) if found and found[1] else (0, 0)
        raise RefusedError(
            name, f"it is not valid TOML ({_PLACE.sub('', str(error))})", line=line, column=column
        ) from error


class TomlFormat:
    """See the module."""

    def read(self, content: bytes, name: Path) -> Plain:
        return read(content, name)

    def apply(self, content: bytes, edits: Sequence[Edit], name: Path) -> Edited:
        """The content as it is. Raises RefusedError for any edit: TOML is left to its host."""
        if edits:
            raise RefusedError(name, "TOML is written by its host only")
        read(content, name)
        return Edited(content)

    def snippet(self, edits: Sequence[Edit]) -> str:  # noqa: ARG002
        return ""

    def contains(self, plain: Plain, edit: Edit) -> bool:  # noqa: ARG002
        return False

    def same(self, one: Plain, other: Plain) -> bool:
        """Equal in value and kind; Python holds `true`, `1` and `1.0` for equal, TOML does not."""
        return _typed(one) == _typed(other)


def _typed(value: object) -> object:
    if isinstance(value, dict):
        return {key: _typed(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_typed(each) for each in value]
    return type(value), repr(value)
