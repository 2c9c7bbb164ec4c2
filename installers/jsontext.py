"""Reads JSON, JSONC and JSON5 with the exact place of every value, so that an edit can leave all other bytes alone.

Numbers keep their spelling: a host may hold integers beyond 2**53, `1e400` or `1.10`, and none of them is ours to rewrite.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any, Literal, NoReturn

from lorehooks.installers.problem import RefusedError

Dialect = Literal["json", "jsonc", "json5"]
"""`json` is strict, `jsonc` adds comments and trailing commas, `json5` also bare keys, single quotes and its numbers."""

Kind = Literal["object", "array", "string", "number", "literal"]
DEEPEST = 200
BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class Number:
    """A number as it is spelled."""

    raw: str


Plain = dict[str, "Plain"] | list["Plain"] | str | Number | bool | None


@dataclass(frozen=True, slots=True)
class Value:
    """A value at `text[start:end]`. `items` are the members of an object or the elements of an array."""

    kind: Kind
    start: int
    end: int
    scalar: str | Number | bool | None = None
    items: tuple[Item, ...] = ()

    @property
    def plain(self) -> Plain:
        """As Python data; of a repeated key the last one counts, as hosts read it."""
        if self.kind == "object":
            return {item.key or "": item.value.plain for item in self.items}
        if self.kind == "array":
            return [item.value.plain for item in self.items]
        return self.scalar


@dataclass(frozen=True, slots=True)
class Item:
    """A member (`key` is a string) or an element (`key` is None); `start` is that of the key or of the element."""

    key: str | None
    start: int
    value: Value
    comma: int
    """Place of the comma behind it, or -1."""

    @property
    def end(self) -> int:
        """Behind its comma when it has one."""
        return self.comma + 1 if self.comma >= 0 else self.value.end


@dataclass(frozen=True, slots=True)
class Document:
    """A parsed file. `root` is None when the file holds nothing but white space and comments."""

    name: Path
    text: str
    bom: bool
    dialect: Dialect
    root: Value | None
    comments: tuple[tuple[int, int], ...]

    @property
    def plain(self) -> Plain:
        """As Python data; an empty file reads as an empty object."""
        return {} if self.root is None else self.root.plain

    @property
    def comment_texts(self) -> tuple[str, ...]:
        return tuple(self.text[start:end] for start, end in self.comments)

    def refuse(self, at: int, reason: str) -> NoReturn:
        """Raise RefusedError with the line and column of a place in the text."""
        raise RefusedError(self.name, reason, **_place(self.text, at))


def _place(text: str, at: int) -> dict[str, Any]:
    before = text[:at]
    return {"line": before.count("\n") + 1, "column": at - (before.rfind("\n") + 1) + 1}


def parse(content: bytes, *, name: Path | str, dialect: Dialect = "json") -> Document:
    """Read a whole file. Raises RefusedError with line and column for anything but UTF-8 text in that dialect."""
    bom = content.startswith(BOM)
    body = content[len(BOM) :] if bom else content
    if content[:2] in (b"\xff\xfe", b"\xfe\xff"):
        raise RefusedError(name, "it is UTF-16, and only UTF-8 is edited", line=1, column=1)
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError as error:
        before = body[: error.start]
        line, column = before.count(b"\n") + 1, error.start - (before.rfind(b"\n") + 1) + 1
        raise RefusedError(name, "it is not UTF-8", line=line, column=column, passing=True) from error
    reader = _Reader(Path(name), text, dialect)
    root = reader.document()
    return Document(Path(name), text, bom, dialect, root, tuple(reader.comments))


def same(one: Plain, other: Plain) -> bool:
    """Whether two values mean the same: key order and the spelling of numbers do not matter."""
    if isinstance(one, Number) and isinstance(other, Number):
        return one.raw == other.raw or _decimal(one.raw) == _decimal(other.raw) is not None
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    return type(one) is type(other) and one == other


def _decimal(raw: str) -> Decimal | None:
    try:
        return Decimal(raw)
    except InvalidOperation:
        return None


_SPACE = re.compile(r"[ \t\r\n]*")
_SPACE5 = re.compile(r"[\s\ufeff]*")
_COMMENT = re.compile(r"//[^\r\n]*|/\*.*?\*/", re.DOTALL)
_STRING = re.compile(r'"[^"\\\x00-\x1f]*(?:\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})[^"\\\x00-\x1f]*)*"')
_STRING5 = re.compile(r"""'[^'\\\r\n]*(?:\\.[^'\\\r\n]*)*'|"[^"\\\r\n]*(?:\\.[^"\\\r\n]*)*\"""", re.DOTALL)
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?(?![\w.])")
_NUMBER5 = re.compile(
    r"[+-]?(?:0[xX][0-9a-fA-F]+|Infinity|NaN|(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)(?![\w.])"
)
_WORD = re.compile(r"[^\W\d][\w$]*|\$[\w$]*")
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2})|(\r\n|.))", re.DOTALL)
_SHORT = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v", "0": "\0", "\n": "", "\r\n": "", "\r": ""}
_LITERALS = {"true": True, "false": False, "null": None}


def _unescape(quoted: str) -> str:
    def one(match: re.Match[str]) -> str:
        number = match[1] or match[2]
        return chr(int(number, 16)) if number else _SHORT.get(match[3], match[3])

    plain = _ESCAPE.sub(one, quoted[1:-1])
    # Two escaped halves are one character; a lone half stays what it is.
    return plain.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass") if "\\u" in quoted else plain


class _Reader:
    """One pass over the text."""

    def __init__(self, name: Path, text: str, dialect: Dialect) -> None:
        self.name = name
        self.text = text
        self.dialect = dialect
        self.at = 0
        self.comments: list[tuple[int, int]] = []
        self.space = _SPACE5 if dialect == "json5" else _SPACE

    def fail(self, reason: str, at: int | None = None) -> NoReturn:
        raise RefusedError(self.name, reason, **_place(self.text, self.at if at is None else at), passing=True)

    def skip(self) -> None:
        """Past white space and comments."""
        while True:
            self.at = self._match(self.space).end()
            if self.text[self.at : self.at + 1] != "/":
                return
            comment = _COMMENT.match(self.text, self.at)
            if comment is None:
                self.fail("a comment does not end")
            if self.dialect == "json":
                self.fail("a comment, which its program does not read")
            self.comments.append(comment.span())
            self.at = comment.end()

    def _match(self, pattern: re.Pattern[str]) -> re.Match[str]:
        found = pattern.match(self.text, self.at)
        if found is None:  # the patterns for space match the empty string
            raise AssertionError(pattern)
        return found

    def document(self) -> Value | None:
        self.skip()
        if self.at == len(self.text):
            return None
        root = self.value(0)
        self.skip()
        if self.at < len(self.text):
            self.fail("more text after the end of the document")
        return root

    def value(self, depth: int) -> Value:
        if depth > DEEPEST:
            self.fail(f"nested deeper than {DEEPEST} levels")
        start = self.at
        sign = self.text[start : start + 1]
        if not sign:
            self.fail("it ends in the middle, as if half written")
        if sign in "{[":
            return self.container(depth)
        if sign == '"' or (sign == "'" and self.dialect == "json5"):
            text = self.string()
            return Value("string", start, self.at, text)
        number = (_NUMBER5 if self.dialect == "json5" else _NUMBER).match(self.text, start)
        if number:
            self.at = number.end()
            return Value("number", start, self.at, Number(number[0]))
        word = _WORD.match(self.text, start)
        if word is None or word[0] not in _LITERALS:
            self.fail("a value was expected here")
        self.at = word.end()
        return Value("literal", start, self.at, _LITERALS[word[0]])

    def string(self) -> str:
        found = (_STRING5 if self.dialect == "json5" else _STRING).match(self.text, self.at)
        if found is None:
            torn = self.text[self.at] not in self.text[self.at + 1 :]
            self.fail("it ends inside a string, as if half written" if torn else "a string with a mistake in it")
        self.at = found.end()
        return _unescape(found[0])

    def container(self, depth: int) -> Value:
        start = self.at
        kind: Kind = "object" if self.text[start] == "{" else "array"
        close = "}" if kind == "object" else "]"
        self.at += 1
        items: list[Item] = []
        self.skip()
        while self.text[self.at : self.at + 1] != close:
            if items and items[-1].comma < 0:
                self.fail(
                    f"',' or '{close}' was expected here" if self.at < len(self.text) else "it ends as if half written"
                )
            items.append(self.item(kind, depth))
        if items and items[-1].comma >= 0 and self.dialect == "json":
            self.fail("a trailing comma, which its program does not read", items[-1].comma)
        self.at += 1
        return Value(kind, start, self.at, items=tuple(items))

    def item(self, kind: Kind, depth: int) -> Item:
        start = self.at
        key = None
        if kind == "object":
            key = self.key()
            self.skip()
            if self.text[self.at : self.at + 1] != ":":
                self.fail("':' was expected here" if self.at < len(self.text) else "it ends as if half written")
            self.at += 1
            self.skip()
        value = self.value(depth + 1)
        self.skip()
        comma = -1
        if self.text[self.at : self.at + 1] == ",":
            comma = self.at
            self.at += 1
            self.skip()
        return Item(key, start, value, comma)

    def key(self) -> str:
        sign = self.text[self.at : self.at + 1]
        if sign == '"' or (sign == "'" and self.dialect == "json5"):
            return self.string()
        word = _WORD.match(self.text, self.at) if self.dialect == "json5" else None
        if word is None:
            self.fail("a key was expected here" if sign else "it ends as if half written")
        self.at = word.end()
        return word[0]
