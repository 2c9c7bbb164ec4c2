"""What a memory is found by, and what a prompt asks for: both as weighted keys of the same kind.

Keys: stems, compound identifiers, pairs and characters of Chinese, `~N` for concept N of the bilingual table, `a*c` for
a three-character Chinese word with its middle left open, and symbols.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from lorehooks.core import bilingual
from lorehooks.core.model import Node
from lorehooks.core.postings import FULL
from lorehooks.core.salience import weight_of
from lorehooks.core.text import Token, is_cjk, spoken, tokens

MAX_CONTENT_CHARS = 20_000
"""Characters of a content that are indexed; a memory is one concept, not a file."""
MAX_FORM = 8
"""Items of the longest glossary term that is looked up as a whole."""

_DISCLOSURE = 10
_ONCE, _OFTEN = 6, 9
_PATH_LAST, _PATH_ABOVE, _PATH_FIRST = 12, 8, 4


@dataclass(frozen=True, slots=True)
class Document:
    """A memory as the index keeps it: strengths by key, its glossary as sequences, its words for spelling."""

    strengths: dict[str, tuple[int, int]]
    forms: tuple[tuple[str, ...], ...]
    words: tuple[str, ...]


def is_wording(key: str) -> bool:
    """Whether a key stands for words as they were written: no concept, open middle, single character or symbol."""
    return len(key) > 1 and not key.startswith("~") and "*" not in key


def concepts_in(items: Sequence[Token]) -> Iterator[tuple[int, int, int]]:
    """(start, end, concept) of each word or phrase of the bilingual table in a sequence of spoken tokens."""
    table = bilingual.concepts()
    keys = [item.key for item in items]
    for start in range(len(keys)):
        for length in range(1, min(4, len(keys) - start) + 1):
            for number in table.get(tuple(keys[start : start + length]), ()):
                yield start, start + length, number


def document(node: Node) -> Document:
    """The keys of a memory with their strengths."""
    as_term: dict[str, int] = {}
    as_text: dict[str, int] = {}
    forms: list[tuple[str, ...]] = []
    words: list[str] = []
    for term in node.glossary:
        _glossary_term(term, as_term, forms, words)
    _path(node.path, as_term, words)
    _text(tokens(node.disclosure), as_text, _DISCLOSURE, _DISCLOSURE)
    _text(tokens(node.content[:MAX_CONTENT_CHARS]), as_text, _ONCE, _OFTEN)
    for text, strength in ((node.disclosure, _DISCLOSURE), (node.content[:MAX_CONTENT_CHARS], _ONCE)):
        for _, _, number in concepts_in(spoken(text)):
            _raise(as_text, f"~{number}", strength)
    keys = as_term.keys() | as_text.keys()
    return Document(
        {key: (as_term.get(key, 0), as_text.get(key, 0)) for key in sorted(keys)},
        tuple(dict.fromkeys(forms)),
        tuple(dict.fromkeys(words)),
    )


def _glossary_term(term: str, as_term: dict[str, int], forms: list[tuple[str, ...]], words: list[str]) -> None:
    items = spoken(term)
    if not items:
        for token in tokens(term):  # a term of symbols only
            _raise(as_term, token.key, FULL)
        return
    if len(items) <= MAX_FORM:
        forms.append(tuple(item.key for item in items))
    found = tokens(term)
    telling = [token for token in found if token.kind in ("word", "pair") and weight_of(token) > 0]
    share = FULL if len(telling) <= 1 else max(4, round(FULL / math.sqrt(len(telling))))
    lone = len(items) == 1
    for token in found:
        strength = FULL if lone or token.kind == "whole" else share
        if token.kind == "char" and not lone:
            strength = 1
        if token.kind == "symbol":
            strength = 1
        _raise(as_term, token.key, strength)
        if token.kind == "word":
            words.append(token.surface.lower())
        if token.kind == "whole":
            for key in _joined(token.key):
                _raise(as_term, key, FULL)
    for key in _open_middles(item.key for item in items):
        _raise(as_term, key, FULL)
    for start, end, number in concepts_in(items):
        whole = end - start == len(items)
        _raise(as_term, f"~{number}", FULL if whole else share)


def _path(path: str, as_term: dict[str, int], words: list[str]) -> None:
    segments = [part for part in path.split("/") if part]
    for place, segment in enumerate(segments):
        last = place == len(segments) - 1
        strength = _PATH_LAST if last else _PATH_FIRST if place == 0 else _PATH_ABOVE
        items = spoken(segment)
        share = max(3, round(strength / math.sqrt(max(1, len(items)))))
        for token in tokens(segment):
            _raise(as_term, token.key, strength if token.kind == "whole" else share)
            if token.kind == "word":
                words.append(token.surface.lower())
        for start, end, number in concepts_in(items):
            _raise(as_term, f"~{number}", strength if end - start == len(items) else share)


def _text(found: Iterable[Token], as_text: dict[str, int], once: int, often: int) -> None:
    seen: set[str] = set()
    for token in found:
        _raise(as_text, token.key, often if token.key in seen else once)
        seen.add(token.key)
        if token.kind == "whole":
            for key in _joined(token.key):
                _raise(as_text, key, once)


def _joined(whole: str) -> Iterator[str]:
    """`half-up` is also written `halfup`."""
    joined = whole.replace("-", "").replace("_", "")
    if joined != whole and joined.isalnum():
        yield joined


def _open_middles(items: Iterable[str]) -> Iterator[str]:
    chars = [item if len(item) == 1 and is_cjk(item) else "" for item in items]
    for first, middle, last in zip(chars, chars[1:], chars[2:], strict=False):
        if first and middle and last:
            yield f"{first}*{last}"


def open_middle(first: str, last: str) -> str:
    """The key of a three-character Chinese word with any middle."""
    return f"{first}*{last}"


def _raise(strengths: dict[str, int], key: str, strength: int) -> None:
    if strengths.get(key, 0) < strength:
        strengths[key] = strength
