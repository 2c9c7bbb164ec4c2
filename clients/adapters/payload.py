"""From the bytes a host wrote to one value, whatever the host or its user put in them.

Half documents, two documents, deep nesting, numbers of a million digits: each is a way in which a public hook has died
(bug cases B1 to B4). Here each ends in None, and the host's prompt goes on without memory.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from lorehooks.core.wellformed import well_formed_json


def decode(raw: bytes) -> object | None:
    """The one JSON value in `raw`, or None when there is none, more than one, or one that Python cannot hold.

    A byte order mark is accepted; bytes that are not UTF-8 become U+FFFD, since the rest of a prompt is still worth a recall.
    """
    text = raw.decode("utf-8-sig", errors="replace")
    try:
        value: object = well_formed_json(json.loads(text))
    except (ValueError, RecursionError):  # ValueError also covers the limit on digits of an integer
        return None
    return value


def valid_utf8(text: str) -> str:
    """The text with lone surrogates, which JSON can carry and UTF-8 cannot, replaced by U+FFFD."""
    if text.isascii():
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def text_of(value: object) -> str:
    """The words of a prompt: a string, or the text parts of a list of parts (bug case B6); else empty."""
    parts = value if isinstance(value, list) else [value]
    return "\n".join(text for part in parts if (text := _text_of_part(part)))


def string(payload: Mapping[str, object], *names: str) -> str | None:
    """The first of the named fields that is a string with something in it, without outer white space."""
    for name in names:
        value = payload.get(name)
        if isinstance(value, str) and value.strip():
            return valid_utf8(value).strip()
    return None


def _text_of_part(part: object) -> str:
    if isinstance(part, Mapping) and part.get("type", "text") in ("text", "input_text"):
        part = part.get("text")
    return valid_utf8(part) if isinstance(part, str) else ""
