"""Changes that might show a memory for a prompt: words from it for the glossary, a disclosure, then settings.

The memory comes first and the settings last, since a setting changes every prompt (docs/writing-memories.md).
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import combinations, pairwise
from typing import Any

from lorehooks.core.embeddings import Embedder
from lorehooks.core.features import concepts_in
from lorehooks.core.index import RecallIndex
from lorehooks.core.model import Node
from lorehooks.core.policy import MAX_DISCLOSURE, MAX_KEYWORDS, PRIORITY_CAPS
from lorehooks.core.salience import PAIR, weight_of
from lorehooks.core.settings import SETTINGS
from lorehooks.core.text import Token, spoken, tokens
from lorehooks.core.views import language
from lorehooks.core.why import Edit, Place

_MOST_TERMS, _MOST_PHRASES, _COMBINED = 8, 4, 4
_TELLING = 0.5
"""Weight from which a word is worth putting into a glossary."""
_LONGEST_RUN = 6
"""Characters of a Chinese passage that may be one term."""
_GIST = 400
"""Characters of the content that stand for what it means."""
_SETTING = 10
_DISCLOSURE = 4
_SENTENCE = re.compile(r"[?？!！。.\s]+$")
_TICKET = re.compile(r"[A-Z]+-[0-9]+|#?[0-9]+")
"""Names of single tasks, which nobody types a second time."""
_MOST_QUERY = 160
_THRESHOLD, _ITEMS, _CHARS = (
    "recall.display.min_display_score",
    "recall.display.max_display_items",
    "recall.safety.max_query_chars",
)


def proposed_edits(
    prompt: str, read: str, node: Node, place: Place, index: RecallIndex, settings: Mapping[str, Any]
) -> list[Edit]:
    """Edits to try. `read` is the part of the prompt that recall reads; a fixed boot node, never in recall, has none."""
    terms = _nearest_first(terms_of(read, node, index), node, index)
    edits = [_glossary(node, (term,)) for term in terms]
    edits += [_glossary(node, pair) for pair in combinations(terms[:_COMBINED], 2)]
    edits += [_glossary(node, tuple(terms[:3]))] if len(terms) > 2 else []  # noqa: PLR2004  (two were tried)
    disclosure = occasion_of(read)
    if disclosure and disclosure != node.disclosure:
        edits.append(_disclosed(node, disclosure, ()))
        edits += [_disclosed(node, disclosure, (term,)) for term in terms[:2]]
    edits += [
        _raised(node, priority) for priority in sorted(PRIORITY_CAPS, reverse=True) if 0 < priority < node.priority
    ]
    edits += _by_settings(prompt, read, place, settings)
    room = MAX_KEYWORDS - len(node.glossary)
    return [edit for edit in edits if edit.node is None or len(edit.node.glossary) - len(node.glossary) <= room]


def terms_of(read: str, node: Node, index: RecallIndex) -> list[str]:
    """Words and short phrases of a prompt that say something, and that the memory's glossary lacks; the rarest first."""
    known = {word.casefold() for word in node.glossary}
    found = tokens(read)
    words: dict[str, tuple[float, int]] = {}
    for text, keys in _phrases(read, found):
        if text.casefold() not in known and any(map(str.isalnum, text)) and not _TICKET.fullmatch(text):
            rarity = max(math.log(1 + len(index)) - math.log(1 + index.postings.count(key)) for key in keys)
            words.setdefault(text, (rarity, len(keys)))
    single = [text for text, (_, count) in words.items() if count == 1]
    several = [text for text, (_, count) in words.items() if count > 1]

    def order(text: str) -> tuple[float, str]:
        return -words[text][0], text

    return [*sorted(single, key=order)[:_MOST_TERMS], *sorted(several, key=order)[:_MOST_PHRASES]]


def occasion_of(read: str) -> str:
    """A prompt as the situation in which a memory matters: `When …`, or `当…时`."""
    text = _SENTENCE.sub("", " ".join(read.split()))[:_MOST_QUERY].strip()
    if not text:
        return ""
    occasion = f"当{text}时" if language(text) == "zh" else f"When asked: {text}"
    return occasion[:MAX_DISCLOSURE]


def _nearest_first(terms: list[str], node: Node, index: RecallIndex) -> list[str]:
    """Words that mean something close to the memory before those that only happen to stand in this prompt."""
    embedder = index.vectors.embedder
    if not isinstance(embedder, Embedder) or not terms:
        return terms
    vectors = embedder.embed([f"{node.content[:_GIST]} {' '.join(node.glossary)} {node.disclosure}", *terms])
    closeness = dict(zip(terms, (float(row @ vectors[0]) for row in vectors[1:]), strict=True))
    return sorted(terms, key=lambda term: (len(term.split()), -round(closeness[term], 4)))


def _phrases(read: str, found: Sequence[Token]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Each telling word, each pair of neighbours that both are, and each short Chinese passage, with its keys."""
    telling = [token for token in found if token.kind in ("word", "whole") and weight_of(token) >= _TELLING]
    for token in telling:
        yield token.surface.lower() if token.kind == "word" else token.surface, (token.key,)
    words = [token for token in telling if token.kind == "word"]
    lowered = read.lower()
    for first, second in pairwise(words):
        phrase = f"{first.surface.lower()} {second.surface.lower()}"
        if first.unit != second.unit and phrase in lowered:
            yield phrase, (first.key, second.key)
    yield from _chinese(found)


def _chinese(found: Sequence[Token]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Words that the bilingual table knows; without any, short passages as a whole; without those, any two characters."""
    items = spoken(list(found))
    order = [item.key for item in items]
    passages = [
        items[start:end]
        for start, end, _ in concepts_in(order)
        if end - start > 1 and all(item.kind == "char" for item in items[start:end])
    ]
    if not passages:
        runs: dict[int, list[Token]] = {}
        for item in items:
            if item.kind == "char":
                runs.setdefault(item.unit, []).append(item)
        passages = [run for run in runs.values() if 1 < len(run) <= _LONGEST_RUN]
    for passage in passages:
        text = "".join(item.surface for item in passage)
        yield text, tuple(first + second for first, second in pairwise(text))
    if not passages:
        for token in found:
            if token.kind == "pair" and weight_of(token) >= PAIR:
                yield token.surface, (token.key,)


def _glossary(node: Node, terms: tuple[str, ...]) -> Edit:
    what = f"add {' and '.join(repr(term) for term in terms)} to the glossary"
    command = ("lore", "node", "update", node.uri, *(part for term in terms for part in ("--add", term)))
    words = sum(max(1, len(term.split())) for term in terms)
    return Edit(
        what,
        (command,),
        replace(node, glossary=(*node.glossary, *terms)),
        adds=frozenset(terms),
        size=words + len(terms) - 1,
    )


def _disclosed(node: Node, disclosure: str, terms: tuple[str, ...]) -> Edit:
    also = f" and add {terms[0]!r} to the glossary" if terms else ""
    verb = "change the disclosure to" if node.disclosure else "give it the disclosure"
    command = (
        "lore",
        "node",
        "update",
        node.uri,
        "--disclosure",
        disclosure,
        *(p for t in terms for p in ("--add", t)),
    )
    changed = replace(node, disclosure=disclosure, glossary=(*node.glossary, *terms))
    return Edit(
        f"{verb} {disclosure!r}{also}",
        (command,),
        changed,
        kind="disclosure",
        adds=frozenset(terms),
        size=_DISCLOSURE + 2 * len(terms),
    )


def _raised(node: Node, priority: int) -> Edit:
    command = ("lore", "node", "update", node.uri, "--priority", str(priority))
    what = f"raise its priority from {node.priority} to {priority} (of which there may be {PRIORITY_CAPS[priority]})"
    return Edit(what, (command,), replace(node, priority=priority), kind="priority", size=_DISCLOSURE + 1)


def _by_settings(prompt: str, read: str, place: Place, settings: Mapping[str, Any]) -> Iterator[Edit]:
    """Settings that might do it, each alone and the first two together."""
    lower = math.floor(place.score * 100) / 100
    threshold = {_THRESHOLD: lower} if place.score and lower < settings[_THRESHOLD] else {}
    wanted = min(place.rank or 0, int(SETTINGS[_ITEMS].maximum or 0))
    items = {_ITEMS: wanted} if wanted > settings[_ITEMS] else {}
    longest = min(len(prompt), int(SETTINGS[_CHARS].maximum or 0))
    chars = {_CHARS: longest} if len(prompt) > len(read) and longest > settings[_CHARS] else {}
    for values in (threshold, items, {**threshold, **items} if threshold and items else {}, chars):
        yield from _set(values)


def _set(values: Mapping[str, int | float]) -> Iterator[Edit]:
    if values:
        commands = tuple(("lore", "config", "set", key, f"{value:g}") for key, value in values.items())
        what = "set " + " and ".join(f"{key} to {value:g}" for key, value in values.items()) + ", for every prompt"
        yield Edit(what, commands, settings=tuple(values.items()), kind="setting", size=_SETTING * len(values))
