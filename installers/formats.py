"""How settings files of one kind are read and edited. A runtime with another kind of file adds a format here."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from lorehooks.installers import jsondata, jsonedit, jsontext
from lorehooks.installers.edits import Delete, Edit, Put
from lorehooks.installers.edits import Path as Way
from lorehooks.installers.jsonedit import Edited
from lorehooks.installers.jsontext import Dialect, Number, Plain
from lorehooks.installers.patchlist import PatchListFormat
from lorehooks.installers.tomlformat import TomlFormat
from lorehooks.installers.yamlformat import YamlFormat


class Format(Protocol):
    """One kind of settings file. All methods raise RefusedError for content that is not of this kind."""

    def read(self, content: bytes, name: Path) -> Plain:
        """The data in a file; an empty file reads as an empty object."""
        ...

    def apply(self, content: bytes, edits: Sequence[Edit], name: Path) -> Edited:
        """Make edits, leaving every other byte as it is."""
        ...

    def snippet(self, edits: Sequence[Edit]) -> str:
        """What the edits add, as text for a person to paste."""
        ...

    def contains(self, plain: Plain, edit: Edit) -> bool:
        """Whether an edit has nothing left to do."""
        ...

    def same(self, one: Plain, other: Plain) -> bool:
        """Whether two files mean the same to their host, which may have written one of them anew from the other."""
        ...


@dataclass(frozen=True, slots=True)
class JsonFormat:
    """JSON in one of its dialects, as hosts written in JavaScript read and rewrite it."""

    dialect: Dialect

    def read(self, content: bytes, name: Path) -> Plain:
        return jsontext.parse(content, name=name, dialect=self.dialect).plain

    def apply(self, content: bytes, edits: Sequence[Edit], name: Path) -> Edited:
        return jsonedit.apply(content, edits, name=name, dialect=self.dialect)

    def snippet(self, edits: Sequence[Edit]) -> str:
        return jsonedit.snippet(edits)

    def contains(self, plain: Plain, edit: Edit) -> bool:
        return jsondata.contains(plain, edit)

    def same(self, one: Plain, other: Plain) -> bool:
        return _as_javascript(one) == _as_javascript(other)


def _as_javascript(plain: Plain) -> object:
    """What is left of a value after JavaScript has read and written it: doubles, and null for the infinite."""
    if isinstance(plain, dict):
        return {key: _as_javascript(value) for key, value in plain.items()}
    if isinstance(plain, list):
        return [_as_javascript(value) for value in plain]
    if isinstance(plain, Number):
        try:
            number = float(plain.raw)
        except ValueError:  # hexadecimal of JSON5
            return plain
        return ("number", number) if math.isfinite(number) else None
    return ("bool", plain) if isinstance(plain, bool) else plain


FORMATS: Mapping[str, Format] = {
    "json": JsonFormat("json"),
    "jsonc": JsonFormat("jsonc"),
    "json5": JsonFormat("json5"),
    "toml": TomlFormat(),
    "yaml": YamlFormat(),
    "dsh": PatchListFormat(),
}


def carried(kind: Format, ways: Sequence[Way], source: Plain, target: bytes, path: Path) -> bytes:
    """A file's content with the members at these places as they are in `source`."""
    edits: list[Edit] = []
    for way in ways:
        found, value = jsondata.look_up(source, way)
        had, old = jsondata.look_up(kind.read(target, path), way)
        if found:
            edits.append(Put(way, value))
        elif had:
            edits.append(Delete(way, old))
    return kind.apply(target, edits, path).content
