"""The four raw signals of every memory for one question, each 0..1 (recall seed "Signals and default weights").

How a raw value comes about is explained in docs/recall.md. In short: each piece of the prompt is worth more the fewer
memories hold it, and counts fully only where it is held most strongly; evidence adds up with falling returns and is
held against how much of the prompt it explains.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lorehooks.core.index import RecallIndex
from lorehooks.core.postings import FULL
from lorehooks.core.question import Question

Floats = NDArray[np.float64]
Packed = NDArray[np.uint32]

_SMALL_MEMORY = 40
"""Below this many memories a count of holders says little, so specificity is measured as if there were this many."""
_TEXT_SHARE = 0.8
"""What a word of content or disclosure counts beside one of glossary or path."""
_SAID_SHARE = 0.6
"""What a piece that is not a term counts for the terms' meaning: it still says that the subject is the same."""
_TERM_WHOLE = 0.1
"""What a glossary term that stands in the prompt as a whole adds, besides its words."""
_DOUBT = 0.5
"""Evidence, in fully telling pieces, that is as good as chance: half of the signal is lost to it at that strength."""
_UNEXPLAINED = 0.18
"""What each piece of the prompt that the memory does not explain adds to the doubt."""
_UNEXPLAINED_MOST = 6.0
"""Pieces at which that stops growing: a long prompt has much that is beside its point."""
_LEAVE = 0.5
"""Share of the doubt that is left when the prompt asks what may be done, which is when a memory matters most."""
_FULL, _FULL_WITHOUT_MODEL = 1.33, 1.7
"""Stretch that lets strong evidence reach 1; more of it where words are all there is, since the dense part is missing."""
_KNEE = 0.9
"""Where a signal begins to flatten."""
_ELSEWHERE = 0.3
"""What a piece counts in another project's memory when the session's own project, or a general memory, holds it too."""
_GENERAL, _OTHER = 0.85, 0.45
"""What all evidence counts for a general memory and for one of another project, beside the session's own."""
_BOTH_VIEWS = 0.3
"""Share of the weaker of the two views in the dense signal: two views that agree are no accident."""


_STRONG = 8
"""Strength from which a key counts as a term of a memory."""
_IDLE_WORD = 0.3
"""What a word that means nothing counts for full text, when the prompt has no other."""
_EVERYONE = 512
"""Up to this many memories all are measured; of more, those that look best."""
_BEST_WORDS, _BEST_VECTORS = 128, 64
"""How many of a larger memory are measured for their words, and for being near in meaning."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """One value for each of some `slots`. `verbatim` and `near` explain: strength of each ask (rows) in each slot."""

    slots: NDArray[np.int64]
    exact: Floats
    glossary_semantic: Floats
    dense: Floats
    lexical: Floats
    gist: Floats
    question: Floats
    verbatim: Floats
    near: Floats


def gather(question: Question, index: RecallIndex, project: str | None, factors: Mapping[str, float]) -> Evidence:
    """The signals of all memories that could matter. `factors` are the settings `views.weight.gist` and `.question`."""
    holders = _holders(question, index)
    vector = _vector(question, index)
    slots = _slots(question, index, holders, vector)
    column = np.full(index.size, -1, dtype=np.int64)  # where a slot stands among the chosen
    column[slots] = np.arange(len(slots))
    foreign = _foreign(index, question, project, slots)
    place = _places(question, index, foreign, project, slots)
    verbatim, verbatim_text, near, near_text = _held(question, holders, index, column, foreign)
    mass = np.array([ask.mass for ask in question.asks], dtype=np.float64)[:, None]
    said = np.maximum(verbatim, _TEXT_SHARE * verbatim_text)
    meant = np.maximum(np.maximum(said, near), _TEXT_SHARE * near_text)
    explained = (mass * meant).sum(axis=0)
    unexplained = np.maximum(0.0, float(mass.sum()) + question.aside - explained)
    doubt = _DOUBT + _UNEXPLAINED * _UNEXPLAINED_MOST * (1 - np.exp(-unexplained / _UNEXPLAINED_MOST))
    doubt *= _LEAVE if question.asks_leave else 1.0
    full = _FULL if vector is not None or (question.idle and index.vectors.embedder) else _FULL_WITHOUT_MODEL
    exact = _signal((mass * said).sum(axis=0) * place, doubt, full)
    terms = np.maximum(np.maximum(verbatim, near), _SAID_SHARE * meant)
    glossary = _signal((mass * terms).sum(axis=0) * place, doubt, full)
    glossary = np.minimum(1.0, glossary + _TERM_WHOLE * _named(question, holders, index, column, len(slots)) * place)
    alone = np.zeros(len(slots))
    alone[_places_of(holders.get(question.form), column)] = 1.0
    gist, asked = _closeness(index, slots, vector, factors)
    dense = (1 - _BOTH_VIEWS) * np.maximum(gist, asked) + _BOTH_VIEWS * np.minimum(gist, asked)
    lexical_mass = np.full_like(mass, _IDLE_WORD) if question.idle else mass
    return Evidence(
        slots=slots,
        exact=np.maximum(exact, alone),
        glossary_semantic=np.maximum(glossary, alone),
        dense=dense * np.sqrt(place),
        lexical=1 - np.exp(-(lexical_mass * np.maximum(verbatim_text, verbatim)).sum(axis=0)),
        gist=gist,
        question=asked,
        verbatim=said,
        near=np.maximum(near, _TEXT_SHARE * near_text),
    )


def specificity(holders: float, memories: int) -> float:
    """1 for a key of one memory, falling with the logarithm of the number of holders, near 0 when all hold it."""
    scale = max(memories, _SMALL_MEMORY) + 1
    return min(1.0, max(0.0, math.log(scale / (holders + 0.5)) / math.log(scale / 1.5)))


def _signal(evidence: Floats, doubt: Floats, full: float) -> Floats:
    """Evidence against doubt, as a share of both; towards 1 it flattens, so that the stronger of two stays ahead."""
    share = full * evidence / (evidence + doubt)
    over = 1 - _KNEE
    return np.where(share <= _KNEE, share, _KNEE + over * (1 - np.exp(-(share - _KNEE) / over)))


def _holders(question: Question, index: RecallIndex) -> dict[str, Packed]:
    """Packed postings of every key of the question that some memory holds."""
    keys = {key for ask in question.asks for key in (*ask.keys, *ask.near)}
    keys.update(question.named, (question.form,))
    found = {key: index.postings.get(key) for key in sorted(keys)}
    return {key: packed for key, packed in found.items() if len(packed)}


def _slots(
    question: Question, index: RecallIndex, holders: Mapping[str, Packed], vector: NDArray[np.float32] | None
) -> NDArray[np.int64]:
    """The memories worth measuring: those with the strongest words and those with the nearest views."""
    used = index.columns.used[: index.size]
    if len(index) <= _EVERYONE:
        return np.flatnonzero(used)
    lists: list[Packed] = []
    worth: list[float] = []
    for ask in question.asks:
        mass = max(ask.mass, _IDLE_WORD)
        for keys in (ask.keys, ask.near):
            for key, factor in keys.items():
                packed = holders.get(key)
                if packed is not None:
                    lists.append(packed)
                    worth.append(specificity(len(packed), len(index)) * mass * factor)
    words: Floats = np.zeros(index.size)
    if lists:
        held = np.concatenate(lists)
        telling = np.repeat(worth, list(map(len, lists))) * np.maximum(held >> 4 & 15, held & 15)
        words = np.bincount(held >> 8, telling, index.size).astype(np.float64, copy=False)
    for form in (*question.named, question.form):
        if form in holders:
            words[holders[form] >> 8] += FULL
    chosen = _best(words, _BEST_WORDS)
    if vector is not None:
        rows = index.columns.rows[: index.size]
        near = np.append(index.vectors.coarse(vector), np.float32(0))  # row -1 means no view
        rough: Floats = np.maximum(near[rows[:, 0]], near[rows[:, 1]]).astype(np.float64)
        chosen |= _best(np.round(rough, 4), _BEST_VECTORS)
    return np.flatnonzero(chosen & used)


def _best(values: Floats, most: int) -> NDArray[np.bool_]:
    """Which values are among the highest, with all that equal the last of them; never one that is not positive."""
    positive = values[values > 0]
    edge = np.partition(positive, len(positive) - most)[len(positive) - most] if len(positive) > most else 0.0
    return np.asarray((values > 0) & (values >= edge))


def _held(
    question: Question,
    holders: Mapping[str, Packed],
    index: RecallIndex,
    column: NDArray[np.int64],
    foreign: NDArray[np.bool_] | None,
) -> tuple[Floats, Floats, Floats, Floats]:
    """How strongly each slot holds each ask, times how telling that is; each of shape (asks, slots).

    Word for word as a term and as text, then the same for what the ask may stand for.
    """
    asks = len(question.asks)
    as_term = np.zeros((2 * asks, int(column.max(initial=-1)) + 1))
    as_text = np.zeros_like(as_term)
    measured: dict[str, tuple[NDArray[np.int64], Packed, Packed, float, float]] = {}
    for row, keys in enumerate((*(ask.keys for ask in question.asks), *(ask.near for ask in question.asks))):
        for key, factor in keys.items():
            if key not in holders:
                continue
            if key not in measured:
                measured[key] = _measured(holders[key], index, column)
            at, terms, texts, telling_term, telling_text = measured[key]
            if not len(at):
                continue
            term: Floats = np.multiply(terms, factor / FULL * telling_term, dtype=np.float64)
            text: Floats = np.multiply(texts, factor / FULL * telling_text, dtype=np.float64)
            if foreign is not None:
                outside = foreign[at]
                _yield_to_own(term, outside)
                _yield_to_own(text, outside)
            if len(keys) > 1:
                term, text = np.maximum(as_term[row, at], term), np.maximum(as_text[row, at], text)
            as_term[row, at] = term
            as_text[row, at] = text
    return as_term[:asks], as_text[:asks], as_term[asks:], as_text[asks:]


def _measured(
    packed: Packed, index: RecallIndex, column: NDArray[np.int64]
) -> tuple[NDArray[np.int64], Packed, Packed, float, float]:
    """Of one key: places among the chosen, strengths there as term and as text, and how telling it is as either."""
    strong = int(np.count_nonzero((packed & 0xF0) >= _STRONG << 4))
    at = column[packed >> 8]
    kept = at >= 0
    here = packed[kept]
    as_term = specificity(0.75 * strong + 0.25 * len(packed), len(index))
    return at[kept], here >> 4 & 15, here & 15, as_term, specificity(len(packed), len(index))


def _yield_to_own(held: Floats, outside: NDArray[np.bool_]) -> None:
    """A word that the session's own project uses as well belongs to it first."""
    inside = float(held[~outside].max(initial=0.0))
    held[outside & (held < 3 * inside)] *= _ELSEWHERE


def _foreign(
    index: RecallIndex, question: Question, project: str | None, slots: NDArray[np.int64]
) -> NDArray[np.bool_] | None:
    """Which slots belong to other projects than the session's, less those the prompt names. None without a project."""
    own = index.group_of(project)
    if own is None:
        return None
    groups = index.columns.group[slots]
    foreign: NDArray[np.bool_] = groups != 0
    for number in (own, *question.groups):
        foreign &= groups != number
    return foreign


def _places(
    question: Question,
    index: RecallIndex,
    foreign: NDArray[np.bool_] | None,
    project: str | None,
    slots: NDArray[np.int64],
) -> Floats:
    """What evidence counts by where a memory lives. All the same when the session has no project, or an unknown one."""
    if foreign is None:
        return np.ones(len(slots))
    groups = index.columns.group[slots]
    named = np.zeros(len(slots), dtype=np.bool_)
    for number in question.groups:
        named |= groups == number
    # A prompt that names another project is about that one, and the session's own steps back.
    own = (groups == index.group_of(project)) & (not question.groups or named)
    return np.where(own | named, 1.0, np.where(foreign, _OTHER, _GENERAL))


def _named(
    question: Question, holders: Mapping[str, Packed], index: RecallIndex, column: NDArray[np.int64], chosen: int
) -> Floats:
    """How telling the most telling glossary term is that stands in the prompt as a whole."""
    found = np.zeros(chosen)
    for form in question.named:
        at = _places_of(holders.get(form), column)
        if len(at):
            found[at] = np.maximum(found[at], specificity(len(holders[form]), len(index)))
    return found


def _places_of(packed: Packed | None, column: NDArray[np.int64]) -> NDArray[np.int64]:
    """Where the chosen ones among some postings stand."""
    if packed is None:
        return np.zeros(0, dtype=np.int64)
    at: NDArray[np.int64] = column[packed >> 8]
    return np.asarray(at[at >= 0])


def _vector(question: Question, index: RecallIndex) -> NDArray[np.float32] | None:
    embedder = index.vectors.embedder
    return None if embedder is None or question.idle else embedder.query(question.text)


def _closeness(
    index: RecallIndex, slots: NDArray[np.int64], vector: NDArray[np.float32] | None, factors: Mapping[str, float]
) -> tuple[Floats, Floats]:
    """Closeness of the prompt to gist and question views, calibrated and times the factor of the view."""
    if vector is None:
        return np.zeros(len(slots)), np.zeros(len(slots))
    closeness = index.vectors.calibration.closeness
    cosines = index.vectors.cosines(index.columns.rows[slots].T.ravel(), vector)
    gist = closeness(cosines[: len(slots)]) * float(factors["views.weight.gist"])
    asked = closeness(cosines[len(slots) :]) * float(factors["views.weight.question"])
    return np.clip(gist, 0, 1), np.clip(asked, 0, 1)
