"""Changes single entries of a JSON file by their exact place and leaves every other byte as it is.

The result is parsed again and compared with the intended change before anyone may write it: same data, same comments.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path as FilePath
from typing import Any

from lorehooks.installers.edits import Append, Delete, Edit, Path, Prune, Put, Remove, Restore, describe
from lorehooks.installers.jsondata import contains, intended, look_up, normal
from lorehooks.installers.jsontext import BOM, Dialect, Document, Item, Plain, Value, parse, same
from lorehooks.installers.problem import RefusedError

Span = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Edited:
    """Outcome of `apply`. `undo` leads back, in its order. `stays` names what an undo found changed and left alone."""

    content: bytes
    undo: tuple[Edit, ...] = ()
    stays: tuple[str, ...] = ()


def apply(content: bytes, edits: Sequence[Edit], *, name: FilePath | str, dialect: Dialect = "json") -> Edited:
    """Make the edits in order; what is so already changes nothing and has nothing to undo.

    Raises RefusedError, with line, column and the snippet to paste, when the file cannot be read, when something of another
    kind stands where an object or list is needed, or when a key on the way is there twice.
    """
    undo: tuple[Edit, ...] = ()
    stays: list[str] = []
    try:
        document = parse(content, name=name, dialect=dialect)
        for edit in edits:
            if contains(document.plain, edit):
                _check_way(document, edit.path)
                stays += _left(document.plain, edit)
                continue
            editor = _Editor(document)
            text, back = editor.make(edit)
            undo = (*back, *undo)
            document = _verified(document, text, edit, editor.gone)
    except RefusedError as error:
        error.snippet = snippet(edits)
        raise
    return Edited((BOM if document.bom else b"") + document.text.encode("utf-8"), undo, tuple(stays))


def snippet(edits: Sequence[Edit]) -> str:
    """What the edits would add, as a JSON document a person can merge by hand; empty if they only take away."""
    document = parse(b"", name="snippet")
    for edit in edits:
        if isinstance(edit, Put | Append) and not any(isinstance(step, int) for step in edit.path):
            document = parse(_Editor(document).make(edit)[0].encode(), name="snippet")
    return document.text


def _left(plain: Plain, edit: Edit) -> tuple[str, ...]:
    """Words for a member that was ours and has another value now."""
    found, value = look_up(plain, edit.path)
    if not found or not isinstance(edit, Delete | Restore):
        return ()
    if isinstance(edit, Restore) and same(value, parse(edit.raw.encode(), name="value", dialect="json5").plain):
        return ()
    return (f"{describe(edit.path)} was changed since and stays",)


def _member(document: Document, value: Value, key: str, way: Path) -> Item | None:
    if value.kind != "object":
        document.refuse(value.start, f"{describe(way)} is not an object")
    found = [item for item in value.items if item.key == key]
    if len(found) > 1:
        document.refuse(found[1].start, f"the key {key!r} is there twice")
    return found[0] if found else None


def _check_way(document: Document, path: Path) -> None:
    """Refuse a doubtful way even when nothing is left to do: which of two keys a host reads is its secret."""
    here = document.root
    for depth, step in enumerate(path):
        if here is None:
            return
        if isinstance(step, int):
            here = here.items[step].value if step < len(here.items) else None
        else:
            item = _member(document, here, step, path[:depth])
            here = item.value if item else None


def _verified(before: Document, text: str, edit: Edit, gone: Sequence[Span]) -> Document:
    """The new text, parsed and held against the intended change: the data, and every comment outside of what had to go."""
    after = parse((BOM if before.bom else b"") + text.encode("utf-8"), name=before.name, dialect=before.dialect)
    comments = Counter(after.comment_texts)
    if isinstance(edit, Restore):
        comments -= Counter(parse(edit.raw.encode(), name=before.name, dialect=before.dialect).comment_texts)
    kept = Counter(
        before.text[start:end]
        for start, end in before.comments
        if not any(first <= start and end <= last for first, last in gone)
    )
    if after.plain != intended(before.plain, edit) or comments != kept:
        raise RefusedError(before.name, f"the change of {describe(edit.path)} cannot be made without side effects")
    return after


class _Editor:
    """One edit on one parsed document that does not contain it yet."""

    def __init__(self, document: Document) -> None:
        self.document = document
        self.text = document.text
        self.root = document.root
        self.newline = "\r\n" if "\r\n" in self.text else "\n"
        self.unit = self._indent_unit()
        roomy = self.root is None or not self.root.items or '": ' in self.text
        self.gone: list[Span] = []
        """Places of the old text that an edit gave up."""
        self.separators = (", ", ": ") if roomy else (",", ":")

    def make(self, edit: Edit) -> tuple[str, tuple[Edit, ...]]:
        """(new text, edits that lead back)."""
        match edit:
            case Put() | Append():
                return self._add(edit)
            case Restore():
                value = self._find(edit.path)
                self.gone = [(value.start, value.end)]
                return self.text[: value.start] + edit.raw + self.text[value.end :], ()
            case Remove():
                container = self._find(edit.path)
                unwanted = normal(edit.value)
                gone = [n for n, item in enumerate(container.items) if same(item.value.plain, unwanted)]
            case Delete() | Prune():
                container = self._find(edit.path[:-1])
                gone = [n for n, item in enumerate(container.items) if item.key == edit.path[-1]]
        return self._take(container, gone), ()

    def _find(self, path: Path) -> Value:
        """The value at a path, which is there."""
        _check_way(self.document, path)
        here = self.root
        for step in path:
            if here is not None:
                here = next(item.value for n, item in enumerate(here.items) if step in (n, item.key))
        if here is None:
            raise AssertionError(path)
        return here

    # --- adding

    def _add(self, edit: Put | Append) -> tuple[str, tuple[Edit, ...]]:
        wanted = [edit.value] if isinstance(edit, Append) else edit.value
        back: Edit = Remove(edit.path, edit.value) if isinstance(edit, Append) else Delete(edit.path, edit.value)
        here = self.root
        if here is None:
            gap = self.newline if self.text.strip() and not self.text.endswith("\n") else ""
            text = self.text + gap + self._render(_nested(edit.path, wanted), "") + self.newline
            return text, (back, *_prunes(edit, 0))
        for depth, step in enumerate(edit.path):
            if isinstance(step, int):
                if here.kind != "array" or step >= len(here.items):
                    self.document.refuse(here.start, f"{describe(edit.path[: depth + 1])} is not there")
                here = here.items[step].value
                continue
            item = _member(self.document, here, step, edit.path[:depth])
            if item is None:
                text = self._insert(here, _nested(edit.path[depth + 1 :], wanted), key=step)
                return text, (back, *_prunes(edit, depth))
            here = item.value
        if isinstance(edit, Append):
            if here.kind != "array":
                self.document.refuse(here.start, f"{describe(edit.path)} is not a list")
            return self._insert(here, edit.value), (back,)
        self.gone = [(here.start, here.end)]
        old = self.text[here.start : here.end]
        new = self._render(edit.value, self._line_indent(here.start), spread=self._is_spread(here))
        return self.text[: here.start] + new + self.text[here.end :], (Restore(edit.path, edit.value, old),)

    def _insert(self, container: Value, value: Any, *, key: str | None = None) -> str:
        """The text with one more item at the end of a container."""
        text, items, close = self.text, container.items, container.end - 1
        tail = self._inner_end(container)
        spread = self._is_spread(container)
        indent = self._item_indent(container)
        entry = self._render(value, indent, spread=spread)
        if key is not None:
            entry = json.dumps(key, ensure_ascii=False) + (": " if spread else self.separators[1]) + entry
        lead = self.newline + indent if spread else self.separators[0].removeprefix(",") if items else ""
        if not items:
            end = text[tail:close]
            if spread and "\n" not in end:
                end = self.newline + self._line_indent(container.start)
            return text[:tail] + lead + entry + end + text[close:]
        last = items[-1]
        if last.comma >= 0:  # a trailing comma is this file's habit
            return text[:tail] + lead + entry + "," + text[tail:]
        return text[: last.value.end] + "," + text[last.value.end : tail] + lead + entry + text[tail:]

    def _inner_end(self, container: Value) -> int:
        """Where the last item or comment inside a container ends."""
        inside = [end for start, end in self.document.comments if container.start < start < container.end]
        return max([container.start + 1, *inside, *(item.end for item in container.items[-1:])])

    # --- taking away

    def _take(self, container: Value, gone: Sequence[int]) -> str:
        """The text without some items of a container."""
        items = container.items
        kept = [n for n in range(len(items)) if n not in gone]
        cuts = [self._span(items[n]) for n in gone]
        if kept and items[-1].comma < 0 and len(items) - 1 in gone:
            comma = items[kept[-1]].comma  # it would become a trailing one
            cuts.append((comma, comma + 1))
        if not kept and not any(container.start < start < container.end for start, _ in self.document.comments):
            cuts = [(container.start + 1, container.end - 1)]
        text, self.gone = self.text, cuts
        for start, end in sorted(cuts, reverse=True):
            text = text[:start] + text[end:]
        return text

    def _span(self, item: Item) -> tuple[int, int]:
        """An item with its comma and the white space before it."""
        start = item.start
        while self.text[start - 1] in " \t\r\n":
            start -= 1
        after_note = any(end == start and self.text.startswith("//", at) for at, end in self.document.comments)
        if after_note and not self.text[item.end :].lstrip(" \t").startswith(("\n", "\r\n")):
            start = item.start  # or what follows would become part of the comment
        return start, item.end

    # --- form

    def _indent_unit(self) -> str:
        if self.root is not None and self.root.items:
            start = self.root.items[0].start
            if self._starts_line(start) and self._line_indent(start):
                return self._line_indent(start)
        return "  "

    def _line_indent(self, at: int) -> str:
        line = self.text[self.text.rfind("\n", 0, at) + 1 : at]
        return line[: len(line) - len(line.lstrip(" \t"))]

    def _starts_line(self, at: int) -> bool:
        return "\n" in self.text[:at] and not self.text[self.text.rfind("\n", 0, at) + 1 : at].strip()

    def _is_spread(self, container: Value) -> bool:
        """Whether a container has, or should have, its items on lines of their own."""
        close = container.end - 1
        if container.items:
            return self._starts_line(container.items[0].start) or "\n" in self.text[container.items[-1].end : close]
        if "\n" in self.text[container.start : close] or container is self.root or self.root is None:
            return True
        return container.kind in ("object", "array") and self._is_spread(self.root)

    def _item_indent(self, container: Value) -> str:
        if container.items and self._starts_line(container.items[-1].start):
            return self._line_indent(container.items[-1].start)
        return self._line_indent(container.start) + self.unit

    def _render(self, value: Any, indent: str, *, spread: bool = True) -> str:
        if not spread:
            return json.dumps(value, ensure_ascii=False, separators=self.separators)
        return json.dumps(value, ensure_ascii=False, indent=self.unit).replace("\n", self.newline + indent)


def _nested(path: Path, value: Any) -> Any:
    for step in reversed(path):
        value = {step: value}
    return value


def _prunes(edit: Put | Append, existing: int) -> tuple[Prune, ...]:
    """The way back from the containers that had to be created, deepest first, when `existing` steps were there."""
    deepest = len(edit.path) if isinstance(edit, Append) else len(edit.path) - 1
    return tuple(Prune(edit.path[:length]) for length in range(deepest, existing, -1))
