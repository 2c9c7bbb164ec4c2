"""A prompt taken apart: which pieces it asks for, what each weighs, and which keys of the index could answer it."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache

from lorehooks.core import bilingual
from lorehooks.core.features import MAX_FORM, concepts_in, form_key, open_middle
from lorehooks.core.index import RecallIndex
from lorehooks.core.salience import asides, asks_leave, weight_of
from lorehooks.core.stopwords import CJK_COMMON_WORDS, CJK_FUNCTION_CHARS
from lorehooks.core.text import Token, sequence, spoken, stem, tokens

_COMPOUND, _COMPOUND_PART, _PATH_PART, _KNOWN_PART = 1.3, 0.7, 0.4, 0.25
"""A known identifier as it stands says more than a word, and its parts then little. Else the parts of a compound say
less than words of their own, and those of a long path still less."""
_SHORT_COMPOUND = 3
_LONE_CHAR = 0.3
_CONCEPT, _MISSPELT, _BEGINNING, _ABBREVIATION, _OPEN_MIDDLE, _JOINED = 0.6, 0.9, 0.6, 0.9, 0.7, 0.9
_OWN_NAME = 0.1
_IN_TERM = 0.7
"""Least that a word weighs inside a glossary term of several that the prompt names: `drop` says little, `drop table` much."""
_MAX_UNITS = 120
_MAX_CJK_WORD = 6


@dataclass(slots=True)
class Ask:
    """One piece of the prompt. `keys` are its own spellings, `near` what it may stand for; both with a factor 0..1."""

    surface: str
    mass: float
    keys: dict[str, float] = field(default_factory=dict)
    near: dict[str, float] = field(default_factory=dict)

    def add_near(self, key: str, factor: float) -> None:
        if key not in self.keys and self.near.get(key, 0.0) < factor:
            self.near[key] = factor


@dataclass(frozen=True, slots=True)
class Question:
    """The prompt for retrieval. `idle` means that nothing in it carries meaning ("ok, go on")."""

    text: str
    asks: tuple[Ask, ...]
    form: str
    """Key of the prompt as if it were one glossary term."""
    said: frozenset[str]
    """All words and characters of the prompt."""
    named: tuple[str, ...]
    """Keys of the glossary terms that stand in the prompt as a whole."""
    groups: frozenset[int]
    """Projects that the prompt names."""
    idle: bool
    aside: float
    """Weight of pieces that turn the prompt away from the work, over and above what they weigh as words."""
    asks_leave: bool
    """Whether something is about to be done (see `salience.asks_leave`)."""


def analyse(text: str, index: RecallIndex, project: str | None = None) -> Question:
    """Take a prompt apart with what the index knows (spellings, glossary terms).

    The name of the session's own project says next to nothing in that session.
    """
    found = tokens(text, _MAX_UNITS)
    items = spoken(found)
    asks, at_item = _asks(found, items, index)
    _add_concepts(at_item, items)
    _add_joined(at_item, items, index)
    aside = _aside(at_item, items)
    own_name = frozenset(sequence(project or ""))
    for ask in asks:
        if own_name & ask.keys.keys():
            ask.mass *= _OWN_NAME
    order = [item.key for item in items or found]
    forms, groups = _names(order, index)
    for start, end in forms.values():
        if items and items[start].unit != items[end - 1].unit:
            for ask in (ask for asks_here in at_item[start:end] for ask in asks_here):
                ask.mass = max(ask.mass, _IN_TERM)
    idle = not any(ask.mass > 0 for ask in asks)
    if idle:
        asks = [Ask(token.surface, 0.0, {token.key: 1.0}) for token in _distinct(found)]
    return Question(
        text, tuple(asks), form_key(order), frozenset(order), tuple(forms), groups, idle, aside, asks_leave(items)
    )


def _aside(at_item: Sequence[Sequence[Ask]], items: Sequence[Token]) -> float:
    """Words that are pieces of the prompt grow heavier, so that a memory about just that still covers them."""
    weight_left = 0.0
    for start, end, weight in asides(items):
        inside = {id(ask): ask for at in range(start, end) for ask in at_item[at] if ask.mass > 0}
        for ask in inside.values():
            ask.mass += weight / len(inside)
        if not inside:
            weight_left += weight
    return weight_left


def _distinct(found: Sequence[Token]) -> list[Token]:
    return list({token.key: token for token in found}.values())


def _asks(found: Sequence[Token], items: Sequence[Token], index: RecallIndex) -> tuple[list[Ask], list[list[Ask]]]:
    """The pieces of the prompt, and for each spoken item the pieces it belongs to. A repeated word asks once."""
    by_key: dict[str, Ask] = {}
    compounds = {token.unit: 0 for token in found if token.kind == "whole"}
    known = {token.unit for token in found if token.kind == "whole" and index.postings.count(token.key)}
    for token in found:
        if token.kind == "word" and token.unit in compounds:
            compounds[token.unit] += 1
    runs: dict[int, int] = {}
    for item in items:
        runs[item.unit] = runs.get(item.unit, 0) + 1
    pair_mass = segment_masses(items, index)
    for token in found:
        mass = weight_of(token)
        if token.kind == "char":
            if runs.get(token.unit) != 1 or token.key in CJK_FUNCTION_CHARS:
                continue
            mass = _LONE_CHAR
        elif token.kind == "whole":
            if not index.postings.count(token.key):
                continue
            mass = _COMPOUND
        elif token.kind == "symbol":
            continue
        elif token.kind == "pair":
            mass = pair_mass.get(token.key, mass)
        elif token.kind == "word" and token.unit in compounds:
            mass *= _part_share(token.unit, compounds, known)
        if mass <= 0:
            continue
        ask = by_key.get(token.key)
        if ask is None:
            ask = by_key[token.key] = Ask(token.surface, mass, {token.key: 1.0})
            if token.kind == "word":
                _add_spellings(ask, token, index)
        ask.mass = max(ask.mass, mass)
    _add_open_middles(by_key, items, index)
    return list(by_key.values()), _asks_of_items(by_key, items)


def _part_share(unit: int, compounds: Mapping[int, int], known: Container[int]) -> float:
    if unit in known:
        return _KNOWN_PART
    return _COMPOUND_PART if compounds[unit] <= _SHORT_COMPOUND else _PATH_PART


def segment_masses(items: Sequence[Token], index: RecallIndex) -> dict[str, float]:
    """What each pair of Chinese characters weighs, once the known words of the prompt are marked.

    A pair inside a known word carries its share of that word; one that straddles the edge of two known words is an
    accident and carries nothing. Known are glossary terms, the bilingual table and everyday words.
    """
    masses: dict[str, float] = {}
    at = 0
    while at < len(items):
        end = at + 1
        while end < len(items) and items[end].unit == items[at].unit:
            end += 1
        if items[at].kind == "char" and end - at > 1:
            run = [item.key for item in items[at:end]]
            for pair, mass in _pair_masses(run, _words_in(run, index)):
                masses[pair] = max(mass, masses.get(pair, 0.0))
        at = end
    return masses


def _words_in(run: Sequence[str], index: RecallIndex) -> list[tuple[int, int, bool]]:
    """(start, end, is_telling) of known words, longest first at each place from the left."""
    known = bilingual.english()
    found: list[tuple[int, int, bool]] = []
    at = 0
    while at < len(run):
        for length in range(min(_MAX_CJK_WORD, len(run) - at), 1, -1):
            word = "".join(run[at : at + length])
            telling = word in known or index.postings.count(form_key(run[at : at + length])) > 0
            if telling or word in CJK_COMMON_WORDS:
                found.append((at, at + length, telling))
                at += length
                break
        else:
            at += 1
    return found


def _pair_masses(run: Sequence[str], words: Sequence[tuple[int, int, bool]]) -> Iterator[tuple[str, float]]:
    owner: list[int] = [-1] * len(run)
    for number, (start, end, _) in enumerate(words):
        owner[start:end] = [number] * (end - start)
    for at in range(len(run) - 1):
        pair = run[at] + run[at + 1]
        left, right = owner[at], owner[at + 1]
        if left == right >= 0:
            start, end, telling = words[left]
            yield pair, (1 + 0.2 * (end - start - 2)) / (end - start - 1) if telling else 0.0
        elif left >= 0 and right >= 0:
            yield pair, 0.0
        else:
            free = weight_of(Token(pair, pair, "pair", 0))
            yield pair, free if left == right else free / 4


def _asks_of_items(by_key: dict[str, Ask], items: Sequence[Token]) -> list[list[Ask]]:
    """A word is its own piece; a Chinese character belongs to the pairs on both sides of it."""
    of_items: list[list[Ask]] = []
    for at, item in enumerate(items):
        if item.kind == "word":
            of_items.append([by_key[item.key]] if item.key in by_key else [])
            continue
        near: list[Ask] = []
        if item.key in by_key:
            near.append(by_key[item.key])
        for left in (at - 1, at):
            if left >= 0 and left + 1 < len(items) and items[left].unit == items[left + 1].unit:
                pair = items[left].key + items[left + 1].key
                if pair in by_key:
                    near.append(by_key[pair])
        of_items.append(near)
    return of_items


def _add_spellings(ask: Ask, token: Token, index: RecallIndex) -> None:
    word = token.surface.lower()
    long_form = bilingual.ABBREVIATIONS.get(word)
    if long_form:
        for key in sequence(long_form):
            ask.add_near(key, _ABBREVIATION)
        for _, _, number in concepts_in(sequence(long_form)):
            ask.add_near(f"~{number}", _CONCEPT * _ABBREVIATION)
    if index.postings.count(token.key) or long_form or token.key in _plain_words():
        return
    for near in index.spellings.misspelt(word):
        ask.add_near(stem(near), _MISSPELT)
        for _, _, number in concepts_in([stem(near)]):
            ask.add_near(f"~{number}", _CONCEPT * _MISSPELT)
    for near in index.spellings.beginning(word):
        ask.add_near(stem(near), _BEGINNING)


@cache
def _plain_words() -> frozenset[str]:
    """Words that are spelt as they should be, whatever the memory holds."""
    return frozenset(key[0] for key in bilingual.concepts() if len(key) == 1)


def _add_concepts(at_item: Sequence[Sequence[Ask]], items: Sequence[Token]) -> None:
    for start, end, number in concepts_in([item.key for item in items]):
        inside: dict[int, tuple[Ask, int]] = {}
        for at in range(start, end):
            for ask in at_item[at]:
                inside[id(ask)] = (ask, inside.get(id(ask), (ask, 0))[1] + 1)
        for ask, times in inside.values():
            # A pair that only touches the word from outside is not part of it.
            if items[start].kind == "word" or times == 2 or end - start == 1:  # noqa: PLR2004
                ask.add_near(f"~{number}", _CONCEPT)


def _add_joined(at_item: Sequence[Sequence[Ask]], items: Sequence[Token], index: RecallIndex) -> None:
    """`hard fault` may be written `hardfault`, and `half up` `half-up`."""
    for at in range(len(items) - 1):
        left, right = items[at], items[at + 1]
        if left.kind == right.kind == "word":
            joined = left.surface.lower() + right.surface.lower()
            for key in (joined, stem(joined)):
                if index.postings.count(key):
                    for ask in (*at_item[at], *at_item[at + 1]):
                        ask.add_near(key, _JOINED)


def _add_open_middles(by_key: dict[str, Ask], items: Sequence[Token], index: RecallIndex) -> None:
    """A Chinese word with one wrong character in the middle."""
    for first, middle, last in zip(items, items[1:], items[2:], strict=False):
        if not (first.kind == middle.kind == last.kind == "char" and first.unit == last.unit):
            continue
        left, right = first.key + middle.key, middle.key + last.key
        key = open_middle(first.key, last.key)
        if index.postings.count(left) or index.postings.count(right) or not index.postings.count(key):
            continue
        for pair in (left, right):
            if pair in by_key:
                by_key[pair].add_near(key, _OPEN_MIDDLE)


def _names(order: Sequence[str], index: RecallIndex) -> tuple[dict[str, tuple[int, int]], frozenset[int]]:
    """Glossary terms found whole, the longest at each place and none inside another, and projects found by name.

    The terms as their keys, each with where it stands in the prompt.
    """
    forms: dict[str, tuple[int, int]] = {}
    groups: set[int] = set()
    covered = 0
    for start in range(len(order)):
        for end in range(min(len(order), start + MAX_FORM), start, -1):
            phrase = " ".join(order[start:end])
            if phrase in index.group_names:
                groups.add(index.group_names[phrase])
            if end > covered and index.postings.count(f"={phrase}"):
                forms.setdefault(f"={phrase}", (start, end))
                covered = end
    return forms, frozenset(groups)
