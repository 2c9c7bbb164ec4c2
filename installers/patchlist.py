"""dsh's list of patches, `cordis.patch.yml`: a YAML list over the whole file, in which we keep marked rows of our own.

A strict look at where lines begin says whether the file is the one list that a row can follow; what the rows say is parsed
before and after, and must differ by ours alone (`docs/decisions/0012-dsh-patch-list.md`). Rows of ours stand under the key
`lorehooks` of the data, all other text under `rest`, where it counts byte for byte.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from lorehooks.core.errors import InvalidError
from lorehooks.installers import jsondata
from lorehooks.installers.edits import Append, Edit, Remove
from lorehooks.installers.edits import Path as Way
from lorehooks.installers.jsonedit import Edited
from lorehooks.installers.jsontext import Plain
from lorehooks.installers.problem import RefusedError

ROWS: Way = ("lorehooks",)
BEGIN = "# >>> lorehooks: put here by `lore install dsh`, taken out by `lore uninstall dsh`"
END = "# <<< lorehooks"
EMPTY = "[]"
"""What dsh itself writes for a list without rows. A file with no list at all is one that it refuses to start with."""
_ROW = re.compile(r"-(?:[ \t].*)?")
_START = re.compile(r"---(?:[ \t]+#.*)?")
_EMPTY = re.compile(r"\[\][ \t]*(?:#.*)?")


def plugin_row(plugin: Path, row_id: str) -> str:
    """The row that mounts a plugin file. Raises InvalidError for a path that YAML cannot hold on one line."""
    if not str(plugin).isprintable():
        raise InvalidError(f"{str(plugin)!a} cannot be named in dsh's settings", hint="set DSH_HOME to another folder")
    return f"- insert:\n    - id: {row_id}\n      name: {json.dumps(str(plugin), ensure_ascii=False)}\n"


class PatchListFormat:
    """See the module."""

    def read(self, content: bytes, name: Path) -> Plain:
        document = _parse(content, name)
        plain: dict[str, Plain] = {"lorehooks": [*document.rows]} if document.own else {}
        text = "".join(document.rest)
        return plain | ({"rest": text} if text.strip() else {})

    def apply(self, content: bytes, edits: Sequence[Edit], name: Path) -> Edited:
        """Append or remove rows of ours. Raises RefusedError for a file that is not plainly one list."""
        undo: tuple[Edit, ...] = ()
        document = _parse(content, name)
        others = document.others
        for edit in edits:
            if edit.path != ROWS or not isinstance(edit, Append | Remove):
                raise AssertionError(edit)
            if isinstance(edit, Remove):
                document = _without(document, edit.value)
            elif document.rows.count(edit.value) != 1:
                document = _with(_without(document, edit.value), edit.value)
                undo = (Remove(ROWS, edit.value), *undo)
        if document.others != others:
            raise RefusedError(name, "a row behind the others would change them", hint=f"echo >> {name}")
        return Edited("".join(document.lines).encode(), undo)

    def snippet(self, edits: Sequence[Edit]) -> str:
        return "".join(edit.value for edit in edits if isinstance(edit, Append))

    def contains(self, plain: Plain, edit: Edit) -> bool:
        return jsondata.contains(plain, edit)

    def same(self, one: Plain, other: Plain) -> bool:
        """Whether two files mean the same to dsh: equal text but for a list said to be empty, and equal rows of ours."""
        return _meaning(one) == _meaning(other)


def _meaning(plain: Plain) -> object:
    if not isinstance(plain, dict):
        return plain
    lines = str(plain.get("rest", "")).replace("\r\n", "\n").split("\n")
    rest = "\n".join(line for line in lines if not _EMPTY.fullmatch(line))
    return plain.get("lorehooks", []), rest.rstrip()


def inserted(content: bytes, name: Path, row_id: str) -> int:
    """How many rows a list puts in under an id, ours included. Raises RefusedError."""

    def count(node: Node, *, within: bool) -> int:
        if isinstance(node, SequenceNode):
            return sum(count(each, within=within) for each in node.value)
        if not isinstance(node, MappingNode):
            return 0
        members = {key.value: value for key, value in node.value if isinstance(key, ScalarNode)}
        named = members.get("id")
        own = within and isinstance(named, ScalarNode) and named.value == row_id
        return own + sum(count(value, within=within or key == "insert") for key, value in members.items())

    return sum(count(row, within=False) for row in _parse(content, name).data)


# --- the file as lines and as data


@dataclass(frozen=True, slots=True)
class _Document:
    """Lines with their ends. `own` are the places of our blocks, marks included, as half-open ranges of lines."""

    name: Path
    lines: tuple[str, ...]
    own: tuple[tuple[int, int], ...]
    empty: int | None
    """The line that says that the list has no rows."""
    has_rows: bool
    data: tuple[Node, ...]
    """What YAML makes of each row, without making values of it: dsh knows tags of its own."""

    @property
    def rows(self) -> list[str]:
        return ["".join(self.lines[start + 1 : end - 1]).replace("\r\n", "\n") for start, end in self.own]

    @property
    def rest(self) -> list[str]:
        inside = {number for start, end in self.own for number in range(start, end)}
        return [line for number, line in enumerate(self.lines) if number not in inside]

    @property
    def others(self) -> list[str]:
        """The data of all rows but ours, in a form that can be compared."""
        own = Counter(yaml.serialize(each) for row in self.rows for each in _data(row, self.name))
        found = []
        for each in map(yaml.serialize, self.data):
            if own[each]:
                own[each] -= 1
            else:
                found.append(each)
        return found

    @property
    def line_end(self) -> str:
        return "\r\n" if self.lines and self.lines[0].endswith("\r\n") else "\n"


def _parse(content: bytes, name: Path) -> _Document:
    try:
        text = content.decode()
    except UnicodeDecodeError as error:
        raise RefusedError(name, "it is not UTF-8") from error
    if re.search(r"\r(?!\n)", text):
        raise RefusedError(name, "it has line ends of an unusual kind")
    lines = tuple(re.findall(r"[^\n]*\n|[^\n]+", text))
    own = tuple(_own(lines, name))
    inside = {number for start, end in own for number in range(start, end)}
    empty, has_rows, has_start = None, False, False
    in_row = False  # whether an indented line belongs to a row that is not ours
    for number, line in enumerate(lines):
        bare = line.rstrip("\r\n").removeprefix("\ufeff" if number == 0 else "")
        if number in inside and empty is None:
            has_rows, in_row = True, False
        elif not bare.strip() or bare.startswith("#"):
            continue
        elif _START.fullmatch(bare) and not has_start and not has_rows and empty is None:
            has_start = True
        elif _EMPTY.fullmatch(bare) and empty is None and not has_rows:
            empty = number
        elif _ROW.fullmatch(bare) and empty is None:
            has_rows = in_row = True
        elif not (bare.startswith(" ") and in_row):
            reason = "it is not plainly a list with its rows at the start of lines"
            raise RefusedError(name, reason, line=number + 1, column=1)
    return _Document(name, lines, own, empty, has_rows, _data(text, name))


def _data(text: str, name: Path) -> tuple[Node, ...]:
    try:
        root = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        line, column = (mark.line + 1, mark.column + 1) if mark else (0, 0)
        raise RefusedError(name, f"it is not valid YAML ({error.problem})", line=line, column=column) from error
    except (yaml.YAMLError, RecursionError) as error:
        raise RefusedError(name, f"it is not valid YAML ({' '.join(str(error).split())})") from error
    return tuple(root.value) if isinstance(root, SequenceNode) else ()


def _own(lines: Sequence[str], name: Path) -> Iterator[tuple[int, int]]:
    start = None
    for number, line in enumerate(lines):
        mark = line.rstrip()
        if (mark == BEGIN and start is not None) or (mark == END and start is None):
            raise RefusedError(name, "the marks around lorehooks' rows do not match", line=number + 1, column=1)
        if mark == BEGIN:
            start = number
        elif mark == END and start is not None:
            yield start, number + 1
            start = None
    if start is not None:
        raise RefusedError(name, f"the line {END!r} is missing after this one", line=start + 1, column=1)


# --- changes


def _with(document: _Document, row: str) -> _Document:
    lines = [line for number, line in enumerate(document.lines) if number != document.empty]
    if lines and not lines[-1].endswith("\n"):
        lines[-1] += document.line_end
    block = f"{BEGIN}\n{row}{END}\n".replace("\n", document.line_end)
    return _parse("".join([*lines, block]).encode(), document.name)


def _without(document: _Document, row: str) -> _Document:
    places = [place for place, found in zip(document.own, document.rows, strict=True) if found == row]
    gone = {number for place in places for number in range(*place)}
    if not gone:
        return document
    text = "".join(line for number, line in enumerate(document.lines) if number not in gone)
    left = _parse(text.encode(), document.name)
    if left.has_rows or left.empty is not None or not text.strip():
        return left
    return _parse((text + EMPTY + document.line_end).encode(), document.name)
