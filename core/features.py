"""What a memory is found by: weighted keys. A prompt is turned into keys of the same kind by `question.py`.

Keys: stems, compound identifiers, pairs and characters of Chinese, symbols; `~N` for concept N of the bilingual table,
`a*c` for a three-character Chinese word with its middle left open, `=a b` for a glossary term as a whole.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from typing import NamedTuple

from lorehooks.core import bilingual
from lorehooks.core.model import Node
from lorehooks.core.postings import FULL
from lorehooks.core.salience import weight_of
from lorehooks.core.text import joined, keys, spoken, tokens

MAX_CONTENT_CHARS = 20_000
"""Characters of a content that are indexed; a memory is one concept, not a file."""
MAX_FORM = 6
"""Items of the longest glossary term that is looked up as a whole."""

_DISCLOSURE = 10
_ONCE, _OFTEN = 6, 9
_PATH_LAST, _PATH_ABOVE, _PATH_FIRST = 12, 8, 4


class Document(NamedTuple):
    """A memory as the index keeps it: strengths by key (`term << 4 | text`), and its words for spelling."""

    strengths: dict[str, int]
    words: tuple[str, ...]


def document(uri: str, content: str, disclosure: str, glossary: Iterable[str]) -> Document:
    """The keys of a memory with their strengths."""
    as_term: dict[str, int] = {}
    words: dict[str, None] = {}
    for term in glossary:
        found, spelt = _glossary_term(term)
        _raise_all(as_term, found)
        words |= spelt
    _path(uri.partition("://")[2], as_term, words)
    as_text = _content(content[:MAX_CONTENT_CHARS])
    as_text |= _disclosure(disclosure)
    strengths = {key: strength << 4 for key, strength in as_term.items()}
    as_both = {key: strengths[key] | as_text[key] for key in strengths.keys() & as_text.keys()}
    return Document(strengths | as_text | as_both, tuple(words))


def document_of(node: Node) -> Document:
    return document(node.uri, node.content, node.disclosure, node.glossary)


def form_key(items: Sequence[str]) -> str:
    """The key of a glossary term as a whole, from its sequence."""
    return "=" + " ".join(items)


def open_middle(first: str, last: str) -> str:
    """The key of a three-character Chinese word with any middle."""
    return f"{first}*{last}"


def is_wording(key: str) -> bool:
    """Whether a key stands for words as they were written: no concept, form, open middle, single character or symbol."""
    return len(key) > 1 and key[0] not in "~=" and "*" not in key


def concepts_in(order: Sequence[str]) -> Iterator[tuple[int, int, int]]:
    """(start, end, concept) of each word or phrase of the bilingual table in a spoken sequence."""
    single, longer = _concept_heads()
    last = len(order) - 1
    for start, key in enumerate(order):
        if key in single:
            for number in single[key]:
                yield start, start + 1, number
        if key in longer and start < last:
            for rest, number in longer[key].get(order[start + 1], ()):
                end = start + 2 + len(rest)
                if not rest or tuple(order[start + 2 : end]) == rest:
                    yield start, end, number


Rest = tuple[tuple[str, ...], int]


@cache
def _concept_heads() -> tuple[dict[str, tuple[int, ...]], dict[str, dict[str, list[Rest]]]]:
    """Concepts of single items, and by their first and second item those of phrases, with what must follow."""
    single: dict[str, tuple[int, ...]] = {}
    longer: dict[str, dict[str, list[Rest]]] = {}
    for phrase, numbers in bilingual.concepts().items():
        if len(phrase) == 1:
            single[phrase[0]] = numbers
        else:
            rests = longer.setdefault(phrase[0], {}).setdefault(phrase[1], [])
            rests.extend((phrase[2:], number) for number in numbers)
    return single, longer


Keyed = tuple[dict[str, int], dict[str, None]]
"""Keys with their strengths, and words for spelling. Kept for several memories: never changed."""


@lru_cache(maxsize=4096)
def _glossary_term(term: str) -> Keyed:
    as_term: dict[str, int] = {}
    words: dict[str, None] = {}
    found = tokens(term)
    items = spoken(found)
    if items or found:
        form = [item.key for item in items or found]
        if len(form) <= MAX_FORM:
            as_term[form_key(form)] = FULL
    telling = sum(weight_of(token) > 0 for token in found if token.kind in ("word", "pair"))
    share = FULL if telling <= 1 else max(4, round(FULL / math.sqrt(telling)))
    lone = len(items) <= 1
    for token in found:
        strength = FULL if lone or token.kind == "whole" else 1 if token.kind in ("char", "symbol") else share
        _raise(as_term, token.key, strength)
        if token.kind == "word":
            words[token.surface.lower()] = None
        if token.kind == "whole":
            words[token.key] = None
            for key in joined(token.key):
                _raise(as_term, key, FULL)
    for first, middle, last in zip(items, items[1:], items[2:], strict=False):
        if first.kind == middle.kind == last.kind == "char":
            _raise(as_term, open_middle(first.key, last.key), FULL)
    for start, end, number in concepts_in([item.key for item in items]):
        _raise(as_term, f"~{number}", FULL if end - start == len(items) else share)
    return as_term, words


def _path(path: str, as_term: dict[str, int], words: dict[str, None]) -> None:
    segments = [part for part in path.split("/") if part]
    for place, segment in enumerate(segments):
        strength = _PATH_LAST if place == len(segments) - 1 else _PATH_FIRST if place == 0 else _PATH_ABOVE
        found, spelt = _segment(segment, strength)
        _raise_all(as_term, found)
        words |= spelt


@lru_cache(maxsize=4096)
def _segment(segment: str, strength: int) -> Keyed:
    as_term: dict[str, int] = {}
    words: dict[str, None] = {}
    found = tokens(segment)
    items = spoken(found)
    share = max(3, round(strength / math.sqrt(max(1, len(items)))))
    for token in found:
        _raise(as_term, token.key, strength if token.kind == "whole" else share)
        if token.kind == "word":
            words[token.surface.lower()] = None
    for start, end, number in concepts_in([item.key for item in items]):
        _raise(as_term, f"~{number}", strength if end - start == len(items) else share)
    return as_term, words


def _content(content: str) -> dict[str, int]:
    found, order = keys(content)
    as_text = {key: _ONCE if times == 1 else _OFTEN for key, times in Counter(found).items()}
    for number in _concepts_of(order):
        as_text[f"~{number}"] = _ONCE
    return as_text


def _disclosure(disclosure: str) -> dict[str, int]:
    found, order = keys(disclosure)
    as_text = dict.fromkeys(found, _DISCLOSURE)
    for number in _concepts_of(order):
        as_text[f"~{number}"] = _DISCLOSURE
    return as_text


def _concepts_of(order: Sequence[str]) -> set[int]:
    """The concepts of a spoken sequence, wherever they stand: for long texts, of which few words begin one."""
    single, longer = _concept_heads()
    said = set(order)
    numbers = {number for key in single.keys() & said for number in single[key]}
    heads = longer.keys() & said
    if heads:
        last = len(order) - 1
        for start, key in enumerate(order):
            if key in heads and start < last:
                for rest, number in longer[key].get(order[start + 1], ()):
                    if not rest or tuple(order[start + 2 : start + 2 + len(rest)]) == rest:
                        numbers.add(number)
    return numbers


def _raise(strengths: dict[str, int], key: str, strength: int) -> None:
    if strengths.get(key, 0) < strength:
        strengths[key] = strength


def _raise_all(strengths: dict[str, int], found: Mapping[str, int]) -> None:
    for key, strength in found.items():
        if strengths.get(key, 0) < strength:
            strengths[key] = strength
