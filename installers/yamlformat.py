"""YAML files: single entries changed by their exact place, every other byte left as it is.

Read with PyYAML, as Hermes reads its own (`docs/decisions/0013-yaml.md`). The result of each edit is parsed again and held
against the intended change before anyone may write it.
"""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path as FilePath
from typing import Any, NoReturn

import yaml
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from lorehooks.installers import jsondata
from lorehooks.installers.edits import Append, Delete, Edit, Path, Prune, Put, Remove, Restore, describe
from lorehooks.installers.jsondata import look_up
from lorehooks.installers.jsonedit import Edited
from lorehooks.installers.jsontext import BOM, Plain, same
from lorehooks.installers.problem import RefusedError

_PLAIN_WORD = re.compile(r"[A-Za-z_][\w/-]*", re.ASCII)
_BOOLEANS = {"y", "n", "yes", "no", "on", "off", "true", "false", "null"}
_NULL = "tag:yaml.org,2002:null"


class YamlFormat:
    """See the module."""

    def read(self, content: bytes, name: FilePath) -> Plain:
        plain: Plain = _parse(content, name).plain
        return plain

    def apply(self, content: bytes, edits: Sequence[Edit], name: FilePath) -> Edited:
        """Make the edits in order; what is so already changes nothing and has nothing to undo."""
        undo: tuple[Edit, ...] = ()
        stays: list[str] = []
        try:
            document = _parse(content, name)
            for edit in edits:
                if self.contains(document.plain, edit):
                    stays += _left(document.plain, edit)
                    continue
                text, back = _Editor(document).make(edit)
                undo = (*back, *undo)
                document = _verified(document, text, edit)
        except RefusedError as error:
            error.snippet = self.snippet(edits)
            raise
        return Edited((BOM if document.bom else b"") + document.text.encode(), undo, tuple(stays))

    def snippet(self, edits: Sequence[Edit]) -> str:
        wanted = [(edit.path, _wanted(edit)) for edit in edits if isinstance(edit, Put | Append)]
        return "".join(_rendered(str(path[0]), _nested(path[1:], value), "", "\n") for path, value in wanted)

    def contains(self, plain: Plain, edit: Edit) -> bool:
        return jsondata.contains(plain, edit)

    def same(self, one: Plain, other: Plain) -> bool:
        """Equal in value and kind; Python holds `true`, `1` and `1.0` for equal, YAML does not."""
        return _typed(one) == _typed(other)


@dataclass(frozen=True, slots=True)
class _Document:
    name: FilePath
    text: str
    bom: bool
    root: Node | None
    plain: Any

    def refuse(self, node: Node, reason: str) -> NoReturn:
        place = node.start_mark
        raise RefusedError(self.name, reason, line=place.line + 1, column=place.column + 1)


def _parse(content: bytes, name: FilePath) -> _Document:
    """Raises RefusedError, with line and column, for what is not one YAML document of plain data."""
    try:
        text = content.removeprefix(BOM).decode()
        root = yaml.compose(text, Loader=yaml.SafeLoader)
        plain = yaml.safe_load(text)
    except UnicodeDecodeError as error:
        raise RefusedError(name, "it is not UTF-8") from error
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        line, column = (mark.line + 1, mark.column + 1) if mark else (0, 0)
        raise RefusedError(name, f"it is not valid YAML ({error.problem})", line=line, column=column) from error
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise RefusedError(name, f"it is not valid YAML ({' '.join(str(error).split())})") from error
    empty = root is None or (isinstance(root, ScalarNode) and root.tag == _NULL)
    return _Document(name, text, content.startswith(BOM), None if empty else root, {} if empty else plain)


def _verified(before: _Document, text: str, edit: Edit) -> _Document:
    """The new text, parsed and held against the intended change."""
    try:
        after = _parse((BOM if before.bom else b"") + text.encode(), before.name)
        done = _typed(after.plain) == _typed(_intended(before.plain, edit))
    except RefusedError:
        done = False
    if not done:
        raise RefusedError(before.name, f"the change of {describe(edit.path)} cannot be made without side effects")
    return after


def _intended(plain: Any, edit: Edit) -> Any:
    """The data after an edit that is not so yet."""
    root = here = copy.deepcopy(plain)
    for step in edit.path[:-1]:
        if here.get(step) is None:
            here[step] = {}
        here = here[step]
    last = edit.path[-1]
    match edit:
        case Put():
            here[last] = edit.value
        case Append():
            here[last] = [*(here.get(last) or []), edit.value]
        case Remove():
            here[last] = [each for each in here[last] if each != edit.value]
        case Restore():
            here[last] = yaml.safe_load(edit.raw)
        case Delete() | Prune():
            del here[last]
    return root


class _Editor:
    """One edit on one parsed document that does not contain it yet."""

    def __init__(self, document: _Document) -> None:
        self.document = document
        self.text = document.text
        self.newline = "\r\n" if "\r\n" in document.text else "\n"

    def make(self, edit: Edit) -> tuple[str, tuple[Edit, ...]]:
        """(new text, edits that lead back)."""
        if isinstance(edit, Put | Append):
            return self._add(edit)
        way = list(self._way(edit.path))
        if isinstance(edit, Restore):
            start, end = _span(way[-1][1])
            if not edit.raw:
                start -= len(self.text[:start]) - len(self.text[:start].rstrip(" "))
            return self.text[:start] + edit.raw + self.text[end:], ()
        if isinstance(edit, Remove):
            return self._without_items(way[-1], edit.value), ()
        return self._without_member(way), ()

    def _way(self, path: Path) -> Iterator[tuple[Node, Node]]:
        """(key, value) of each step, as far as they are there."""
        here = self.document.root
        for depth, step in enumerate(path):
            if not isinstance(here, MappingNode):
                if here is not None and not _is_null(here):
                    self.document.refuse(here, f"{describe(path[:depth])} is not a mapping")
                return
            found = [entry for entry in here.value if entry[0].value == step]
            if len(found) > 1:
                self.document.refuse(found[1][0], f"the key {step!r} is there twice")
            if not found:
                return
            key, here = found[0]
            if here.start_mark.index < key.end_mark.index:
                self.document.refuse(key, f"{describe(path[: depth + 1])} is an alias of another place")
            yield key, here

    # --- adding

    def _add(self, edit: Put | Append) -> tuple[str, tuple[Edit, ...]]:
        way = list(self._way(edit.path))
        depth, rest = len(way), edit.path[len(way) :]
        here = way[-1][1] if way else self.document.root
        value = _nested(rest[1:] if rest else (), _wanted(edit))
        if here is not None and _is_null(here):  # a key without a value
            value = _nested(rest, _wanted(edit))
            return self._replaced(way[-1][1], value), (self._restore(edit.path[:depth], value, here),)
        if rest and (here is None or isinstance(here, MappingNode)):
            back: Edit = Remove(edit.path, edit.value) if isinstance(edit, Append) else Delete(edit.path, edit.value)
            return self._with_member(here, str(rest[0]), value), (back, *_prunes(edit, depth))
        if isinstance(edit, Append):
            if not isinstance(here, SequenceNode):
                self.document.refuse(way[-1][1], f"{describe(edit.path)} is not a list")
            return self._with_item(here, edit.value), (Remove(edit.path, edit.value),)
        node = way[-1][1]
        if not isinstance(node, ScalarNode) or node.style in ("|", ">"):
            self.document.refuse(node, f"{describe(edit.path)} is more than one word")
        return self._replaced(node, value), (self._restore(edit.path, value, node),)

    def _restore(self, path: Path, value: Any, node: Node) -> Restore:
        start, end = _span(node)
        return Restore(path, value, self.text[start:end])

    def _replaced(self, node: Node, value: Any) -> str:
        start, end = _span(node)
        gap = " " if start == end and self.text[start - 1 : start] != " " else ""
        return self.text[:start] + gap + _inline(value) + self.text[end:]

    def _with_member(self, container: MappingNode | None, key: str, value: Any) -> str:
        if container is None or (container is self.document.root and not container.flow_style):
            indent = " " * (container.start_mark.column if container else 0)
            gap = self.newline if self.text and not self.text.endswith(("\n", "\r")) else ""
            return self.text + gap + _rendered(key, value, indent, self.newline)
        if container.flow_style:
            at = container.start_mark.index + 1
            more = ", " if container.value else ""
            return f"{self.text[:at]}{_scalar(key)}: {_inline(value)}{more}{self.text[at:]}"
        at = self._line_start(container.value[0][0])
        indent = self.text[at : container.value[0][0].start_mark.index]
        return self.text[:at] + _rendered(key, value, indent, self.newline) + self.text[at:]

    def _with_item(self, container: SequenceNode, value: Any) -> str:
        if container.flow_style:
            at = container.end_mark.index - 1
            inside = self.text[container.start_mark.index + 1 : at].rstrip()
            more = ", " if container.value and not inside.endswith(",") else ""
            return self.text[:at] + more + _inline(value) + self.text[at:]
        last = container.value[-1]
        lead = self.text[self._line_start(last) : last.start_mark.index]
        end = self._line_end(_end(last))
        return self.text[:end] + self.newline + lead + _inline(value) + self.text[end:]

    # --- taking away

    def _without_member(self, way: Sequence[tuple[Node, Node]]) -> str:
        key, value = way[-1]
        container = way[-2][1] if len(way) > 1 else self.document.root
        items = container.value if isinstance(container, MappingNode) else []
        if isinstance(container, MappingNode) and container.flow_style:
            return self._without_flow(container, items, (key, value))
        text = self._without_lines(key.start_mark.index, _end(value))
        return self._emptied(text, way[-2], "{}") if len(items) == 1 and len(way) > 1 else text

    def _without_items(self, entry: tuple[Node, Node], unwanted: Any) -> str:
        container = entry[1]
        items = container.value if isinstance(container, SequenceNode) else []
        gone = [node for node in items if isinstance(node, ScalarNode) and _value(node) == unwanted]
        if len(gone) != 1:
            self.document.refuse(container, f"{unwanted!r} is not there exactly once")
        if isinstance(container, SequenceNode) and container.flow_style:
            return self._without_flow(container, [(node, node) for node in items], (gone[0], gone[0]))
        lead = self.text[self._line_start(gone[0]) : gone[0].start_mark.index]
        text = self._without_lines(gone[0].start_mark.index - len(lead.lstrip(" ")), _end(gone[0]))
        return self._emptied(text, entry, "[]") if len(items) == 1 else text

    def _without_flow(self, container: Node, items: Sequence[tuple[Node, Node]], gone: tuple[Node, Node]) -> str:
        """The text without one item and one of the commas beside it."""
        start, end = gone[0].start_mark.index, _end(gone[1])
        at = items.index(gone)
        if at + 1 < len(items):
            end = items[at + 1][0].start_mark.index
        elif at:
            start = _end(items[at - 1][1])
        else:
            start, end = container.start_mark.index + 1, container.end_mark.index - 1
        return self.text[:start] + self.text[end:]

    def _without_lines(self, start: int, end: int) -> str:
        """The text without a piece that begins its line, and without its line unless a comment ends that."""
        first = self.text.rfind("\n", 0, start) + 1
        last = self._line_end(end)
        if self.text[first:start].strip() or self.text[end:last].strip():
            return self.text[:start] + self.text[end:].lstrip(" ")
        after = re.compile(r"\r?\n").match(self.text, last)
        return self.text[:first] + self.text[after.end() if after else last :]

    def _emptied(self, text: str, entry: tuple[Node, Node], sign: str) -> str:
        """The text with a sign of emptiness behind a key that has lost what was below it."""
        at = text.index(":", entry[0].end_mark.index) + 1
        return f"{text[:at]} {sign}{text[at:]}"

    # --- places

    def _line_start(self, node: Node) -> int:
        """Where the line of an item begins, which has nothing but its indentation and dash before it."""
        at = self.text.rfind("\n", 0, node.start_mark.index) + 1
        if not re.fullmatch(r" *(?:- +)?", self.text[at : node.start_mark.index]):
            self.document.refuse(node, "there is something else on its line")
        return at

    def _line_end(self, at: int) -> int:
        found = re.compile(r"\r?\n|\Z").search(self.text, at)
        return found.start() if found else len(self.text)


def _span(node: Node) -> tuple[int, int]:
    return node.start_mark.index, node.end_mark.index


def _end(node: Node) -> int:
    """Where a node's last word ends: the end mark of a block lies at whatever comes next."""
    if isinstance(node, MappingNode | SequenceNode) and not node.flow_style and node.value:
        last = node.value[-1]
        return max(_end(last[0]), _end(last[1])) if isinstance(last, tuple) else _end(last)
    return int(node.end_mark.index)


def _is_null(node: Node) -> bool:
    return isinstance(node, ScalarNode) and node.tag == _NULL


def _value(node: Node) -> object:
    return yaml.SafeLoader("").construct_object(node, deep=True)


def _wanted(edit: Put | Append) -> Any:
    return [edit.value] if isinstance(edit, Append) else edit.value


def _nested(path: Path, value: Any) -> Any:
    for step in reversed(path):
        value = {step: value}
    return value


def _prunes(edit: Put | Append, existing: int) -> tuple[Prune, ...]:
    """The way back from what had to be created, deepest first, when `existing` steps were there."""
    deepest = len(edit.path) if isinstance(edit, Append) else len(edit.path) - 1
    return tuple(Prune(edit.path[:length]) for length in range(deepest, existing, -1))


def _left(plain: Plain, edit: Edit) -> tuple[str, ...]:
    """Words for a member that was ours and has another value now."""
    found, value = look_up(plain, edit.path)
    if not found or not isinstance(edit, Delete | Restore):
        return ()
    if isinstance(edit, Restore) and same(value, yaml.safe_load(edit.raw)):
        return ()
    return (f"{describe(edit.path)} was changed since and stays",)


def _rendered(key: str, value: Any, indent: str, newline: str) -> str:
    """Lines of a member in block form."""
    if isinstance(value, dict) and value:
        inside = "".join(_rendered(name, each, f"{indent}  ", newline) for name, each in value.items())
        return f"{indent}{_scalar(key)}:{newline}{inside}"
    if isinstance(value, list) and value:
        inside = "".join(f"{indent}  - {_inline(each)}{newline}" for each in value)
        return f"{indent}{_scalar(key)}:{newline}{inside}"
    return f"{indent}{_scalar(key)}: {_inline(value)}{newline}"


def _inline(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_scalar(key)}: {_inline(each)}" for key, each in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_inline, value)) + "]"
    return _scalar(value)


def _scalar(value: object) -> str:
    is_word = isinstance(value, str) and _PLAIN_WORD.fullmatch(value) and value.lower() not in _BOOLEANS
    return str(value) if is_word else json.dumps(value)


def _typed(value: object) -> object:
    if isinstance(value, dict):
        return {_typed(key): _typed(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_typed(each) for each in value]
    return type(value), repr(value)
