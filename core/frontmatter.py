"""The head of a memory in a Markdown file: a small strict part of YAML (docs/decisions/0014-export-forms.md).

    ---
    uri: "project://checkout_api/webhooks"
    priority: 1
    glossary: ["refund webhook", "idempotency key"]
    ---

    The content, to the end of the file.

What is written is one line for each field, its value as JSON, which YAML readers understand too. What is read is that, and
what people write by hand: bare words, single quotes, comments, lists with commas in brackets or with a dash on each line.
Everything else of YAML is refused with its line, so that nothing is ever read as something that was not meant.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from lorehooks.core.errors import InvalidError
from lorehooks.core.wellformed import json_line, well_formed

FENCE = "---"
Value = str | list[str]
_KEY = re.compile(r"([A-Za-z_][A-Za-z0-9_-]{0,63})[ \t]*:(?:[ \t]+(.*))?")
_ITEM = re.compile(r"[ \t]*-(?:[ \t]+(.*))?")
_BARE = re.compile(r"[^\s\[\]{}\"'&*!|>%@`#,?:-](?:[^:#,\[\]{}]|:(?!\s|$)|(?<!\s)#)*|-?[0-9][0-9.]*")
_BARE_LINE = re.compile(r"(?:[^\s\[\]{}\"'&*!|>%@`#,?:-]|-(?!\s))(?:[^:#]|:(?!\s|$)|(?<!\s)#)*")
_QUOTED = re.compile(r'"(?:[^"\\]|\\.)*"')
_SINGLE = re.compile(r"'(?:[^']|'')*'")
_AFTER = re.compile(r"[ \t]*(?:#.*)?")
_EMPTY = frozenset({"null", "Null", "NULL", "~"})


@dataclass(frozen=True, slots=True)
class Head:
    """The fields of a file, each a text or a list of texts, and what follows them."""

    fields: Mapping[str, Value]
    body: str


def has_head(text: str) -> bool:
    """Whether a text begins with a front matter."""
    return text.removeprefix("\ufeff").startswith((f"{FENCE}\n", f"{FENCE}\r\n"))


def write(fields: Mapping[str, str | int | Sequence[str]], body: str) -> str:
    """A text that `read` reads back to exactly these fields and this body."""
    head = "".join(f"{key}: {_dump(value)}\n" for key, value in fields.items())
    return f"{FENCE}\n{head}{FENCE}\n" + (f"\n{body}\n" if body else "")


def read(text: str) -> Head:
    """The head and body of a text. One blank line after the head, and the newline that ends a file, belong to the file.

    Raises InvalidError with the line that cannot be read. Where an editor ended the head's lines with CRLF, it did so with
    all, and they are read as LF.
    """
    text = well_formed(text.removeprefix("\ufeff"))
    if not has_head(text):
        raise InvalidError(f"line 1: there is no front matter; it begins with {FENCE}")
    if text.startswith(f"{FENCE}\r\n"):
        text = text.replace("\r\n", "\n")
    lines = text.split("\n")
    try:
        end = next(number for number, line in enumerate(lines) if number and line.rstrip() == FENCE)
    except StopIteration:
        raise InvalidError(f"line 1: the front matter does not end; a line with {FENCE} ends it") from None
    body = "\n".join(lines[end + 1 :])
    return Head(dict(_fields(lines[1:end])), body.removeprefix("\n").removesuffix("\n"))


def _fields(lines: Sequence[str]) -> Iterator[tuple[str, Value]]:
    seen: set[str] = set()
    number = 0
    while number < len(lines):
        line = lines[number].rstrip()
        number += 1
        if not line or line.lstrip().startswith("#"):
            continue
        found = _KEY.fullmatch(line)
        if found is None:
            raise _wrong(number + 1, "a field is written key: value")
        key, rest = found[1], found[2] or ""
        if key in seen:
            raise _wrong(number + 1, f"{key} stands there twice")
        seen.add(key)
        if _AFTER.fullmatch(rest):
            items, number = _dashes(lines, number)
            yield key, items or ""
        else:
            yield key, _value(rest, number + 1)


def _dashes(lines: Sequence[str], number: int) -> tuple[list[str], int]:
    """The items of a list with a dash on each line, and where it ends."""
    items: list[str] = []
    while number < len(lines):
        line = lines[number].rstrip()
        found = _ITEM.fullmatch(line)
        if found is not None:
            value = _value(found[1] or "", number + 2)
            if isinstance(value, list):
                raise _wrong(number + 2, "a list holds words, no further lists")
            items.append(value)
        elif line and not line.lstrip().startswith("#"):
            break
        number += 1
    return items, number


def _value(text: str, line: int) -> Value:
    """One value; `line` is where it stands in the file."""
    text = text.strip(" \t")
    if text.startswith("["):
        return _list(text, line)
    scalar, rest = _scalar(text, _BARE_LINE, line)
    if not _AFTER.fullmatch(rest):
        raise _wrong(line, f"{rest[:40]!r} stands behind the value; put the whole text in double quotes")
    return scalar


def _list(text: str, line: int) -> list[str]:
    items: list[str] = []
    rest = text[1:].lstrip()
    while not rest.startswith("]"):
        item, rest = _scalar(rest, _BARE, line)
        items.append(item)
        rest = rest.lstrip()
        if rest.startswith(","):
            rest = rest[1:].lstrip()
        elif not rest.startswith("]"):
            raise _wrong(line, "a list is written [one, two] on one line")
    if not _AFTER.fullmatch(rest[1:]):
        raise _wrong(line, f"{rest[1:41]!r} stands behind the list")
    return items


def _scalar(text: str, bare: re.Pattern[str], line: int) -> tuple[str, str]:
    """The first scalar of a text, and what follows it."""
    if found := _QUOTED.match(text):
        try:
            return well_formed(json.loads(found[0])), text[found.end() :]
        except ValueError as error:
            raise _wrong(line, f"{found[0][:40]} is no JSON text: {error}") from None
    if found := _SINGLE.match(text):
        return found[0][1:-1].replace("''", "'"), text[found.end() :]
    if found := bare.match(text):
        word = found[0].rstrip()
        return ("" if word in _EMPTY else word), text[found.end() :]
    if not text:
        return "", ""
    raise _wrong(line, f"{text[:40]!r} cannot be read; put the text in double quotes, on one line")


def _dump(value: str | int | Sequence[str]) -> str:
    return json_line(value if isinstance(value, str | int) else list(value))


def _wrong(line: int, what: str) -> InvalidError:
    return InvalidError(f"line {line}: {what}")
