"""Text from memory is data: here it loses what could close its block, pose as a tag, or hide from a reader.

Three strengths, by where the text goes. `inline` for one field on one line of a block: every `<`, `>` and `&` becomes an
entity. `tags` for a text of several lines in a block: only what looks like a tag is broken, so that code and prose stay
readable. `reserved_tags` for a memory opened by a tool, which an agent may edit and write back: only tags that hosts and
our own blocks use are broken, and `restore_tags` undoes it on the way in. Each can be undone exactly, since an entity
that was in the text already is escaped itself.
"""

from __future__ import annotations

import re

_ANSI = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]"  # colours, cursor, clear screen
    r"|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)?"  # window title, links
    r"|\x1b[PX^_][^\x1b]*(?:\x1b\\)?"
    r"|\x1b[ -/]*[0-~]"
    r"|\x9b[0-?]*[ -/]*[@-~]"
)
INVISIBLE = "\u00ad\u061c\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u2064\u2066-\u206f\ufeff\ufff9-\ufffb\U000e0000-\U000e007f"
"""For a character class: what has no look of its own, which is zero-width marks, bidi controls and tag characters.

The joiners U+200C and U+200D stay, since Persian, Hindi and emoji are written with them.
"""
_UNSEEN = re.compile(rf"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff{INVISIBLE}]")
_LINE_END = re.compile("\r\n|[\r\u0085\u2028\u2029]")

_CHARACTERS = {"amp": "&", "lt": "<", "gt": ">", "quot": '"', "middot": "·", "verbar": "|"}
_ENTITY = re.compile(rf"&({'|'.join(_CHARACTERS)});")
_POSING_ENTITY = re.compile(rf"&(?=(?:{'|'.join(_CHARACTERS)});)")
_POSING_TAG = re.compile(r"<(?=\s*/|[!?]|[^\W\d])")

_RESERVED = (
    r"\s*/?\s*(?:recall|memory|memories|lore|system|developer|user|human|assistant|tool|function|invoke|antml|instruction"
    r"|important|task|command|policy|rule|admin|reminder|context|private|thinking)s?(?![A-Za-z0-9])"
)
_RESERVED_TAG = re.compile(rf"<(?={_RESERVED})", re.IGNORECASE)
_RESERVED_ENTITY = re.compile(rf"&(?=(?:amp;)*lt;{_RESERVED})", re.IGNORECASE)
_BROKEN_TAG = re.compile(rf"&lt;(?={_RESERVED})", re.IGNORECASE)
_BROKEN_ENTITY = re.compile(rf"&amp;(?=(?:amp;)*lt;{_RESERVED})", re.IGNORECASE)


def visible(text: str) -> str:
    """The text without terminal escapes, control and invisible characters; line ends become a newline, tabs stay.

    Lone surrogates become U+FFFD, so that the result is always valid UTF-8.
    """
    text = _LINE_END.sub("\n", _ANSI.sub("", text))
    return _UNSEEN.sub(lambda found: "\ufffd" if "\ud800" <= found[0] <= "\udfff" else "", text)


def inline(text: str, *, separator: str = "") -> str:
    """One field of a line: white space collapsed, `<`, `>` and `&` as entities, and `·` or `|` too where it separates fields."""
    text = " ".join(visible(text).split())
    text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return {"·": text.replace("·", "&middot;"), "|": text.replace("|", "&verbar;")}.get(separator, text)


def attribute(text: str) -> str:
    """A value between double quotes in a tag."""
    return inline(text).replace('"', "&quot;")


def unescape(text: str) -> str:
    """What stood there before `inline`, `attribute` or `tags`, as far as it was visible."""
    return _ENTITY.sub(lambda found: _CHARACTERS[found[1]], text)


def tags(text: str) -> str:
    """A text of several lines in which nothing reads as a tag; `a < b`, `a && b` and `> quote` stay as they are."""
    return _POSING_TAG.sub("&lt;", _POSING_ENTITY.sub("&amp;", visible(text)))


def reserved_tags(text: str) -> str:
    """A memory's content as a tool shows it: as stored, but for tags that hosts and our own blocks use."""
    return _RESERVED_TAG.sub("&lt;", _RESERVED_ENTITY.sub("&amp;", visible(text)))


def restore_tags(text: str) -> str:
    """Undo `reserved_tags` in a content that an agent read, changed and writes back."""
    return _BROKEN_ENTITY.sub("&", _BROKEN_TAG.sub("<", text))
