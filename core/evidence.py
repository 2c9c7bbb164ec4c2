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
_FULL = 1.25
"""Stretch that lets strong evidence reach 1."""
_ELSEWHERE = 0.3
"""What a piece counts in another project's memory when the session's own project, or a general memory, holds it too."""
_GENERAL, _OTHER = 0.85, 0.45
"""What all evidence counts for a general memory and for one of another project, beside the session's own."""
_COS_LOW, _COS_HIGH = 0.15, 0.72
"""Cosines of the static model: below is chance, above as close as texts get."""
_BOTH_VIEWS = 0.3
"""Share of the weaker of the two views in the dense signal: two views that agree are no accident."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """One value for each slot. `verbatim` and `near` explain: strength of each ask (rows) in each slot (columns)."""

    exact: Floats
    glossary_semantic: Floats
    dense: Floats
    lexical: Floats
    gist: Floats
    question: Floats
    verbatim: Floats
    near: Floats


def gather(question: Question, index: RecallIndex, project: str | None, factors: Mapping[str, float]) -> Evidence:
    """All signals. `factors` are the settings `views.weight.gist` and `views.weight.question`."""
    foreign = _foreign(index, question, project)
    place = _places(index, foreign, project)
    verbatim, verbatim_text = _held(question, index, foreign, near=False)
    near, near_text = _held(question, index, foreign, near=True)
    mass = np.array([ask.mass for ask in question.asks], dtype=np.float64)[:, None]
    said = np.maximum(verbatim, _TEXT_SHARE * verbatim_text)
    meant = np.maximum(np.maximum(said, near), _TEXT_SHARE * near_text)
    explained = (mass * meant).sum(axis=0)
    unexplained = np.maximum(0.0, float(mass.sum()) + question.aside - explained)
    doubt = _DOUBT + _UNEXPLAINED * _UNEXPLAINED_MOST * (1 - np.exp(-unexplained / _UNEXPLAINED_MOST))
    doubt *= _LEAVE if question.asks_leave else 1.0
    exact = _signal((mass * said).sum(axis=0) * place, doubt)
    terms = np.maximum(np.maximum(verbatim, near), _SAID_SHARE * meant)
    glossary = _signal((mass * terms).sum(axis=0) * place, doubt)
    glossary = np.minimum(1.0, glossary + _TERM_WHOLE * _named(question, index) * place)
    alone = _alone(question, index)
    gist, asked = _closeness(question, index, factors)
    dense = (1 - _BOTH_VIEWS) * np.maximum(gist, asked) + _BOTH_VIEWS * np.minimum(gist, asked)
    return Evidence(
        exact=np.maximum(exact, alone),
        glossary_semantic=np.maximum(glossary, alone),
        dense=dense * np.sqrt(place),
        lexical=1 - np.exp(-(mass * np.maximum(verbatim_text, verbatim)).sum(axis=0)),
        gist=gist,
        question=asked,
        verbatim=said,
        near=np.maximum(near, _TEXT_SHARE * near_text),
    )


def _signal(evidence: Floats, doubt: Floats) -> Floats:
    """Evidence against doubt, as a share of both."""
    return np.minimum(1.0, _FULL * evidence / (evidence + doubt))


def specificity(holders: float, memories: int) -> float:
    """1 for a key of one memory, falling with the logarithm of the number of holders, near 0 when all hold it."""
    scale = max(memories, _SMALL_MEMORY) + 1
    return min(1.0, max(0.0, math.log(scale / (holders + 0.5)) / math.log(scale / 1.5)))


def _held(
    question: Question, index: RecallIndex, foreign: NDArray[np.bool_] | None, *, near: bool
) -> tuple[Floats, Floats]:
    """How strongly each slot holds each ask as a term and as text, times how telling that is; shape (asks, slots)."""
    as_term = np.zeros((len(question.asks), index.size))
    as_text = np.zeros((len(question.asks), index.size))
    for row, ask in enumerate(question.asks):
        for key, factor in (ask.near if near else ask.keys).items():
            packed = index.postings.get(key)
            if not len(packed):
                continue
            slots = packed >> 8
            term = (packed >> 4 & 15) / FULL
            text = (packed & 15) / FULL
            holders = 0.75 * float((term >= 0.5).sum()) + 0.25 * len(packed)  # noqa: PLR2004 (a term of its own)
            term *= factor * specificity(holders, len(index))
            text *= factor * specificity(len(packed), len(index))
            if foreign is not None:
                for held in (term, text):
                    outside = foreign[slots]
                    inside = float(held[~outside].max(initial=0.0))
                    held[outside & (held < 3 * inside)] *= _ELSEWHERE
            as_term[row, slots] = np.maximum(as_term[row, slots], term)
            as_text[row, slots] = np.maximum(as_text[row, slots], text)
    return as_term, as_text


def _foreign(index: RecallIndex, question: Question, project: str | None) -> NDArray[np.bool_] | None:
    """Which slots belong to other projects than the session's, less those the prompt names. None without a project."""
    own = index.group_of(project)
    if own is None:
        return None
    groups = index.columns.group[: index.size]
    foreign: NDArray[np.bool_] = (groups != own) & (groups != 0)
    for name, number in index.groups.items():
        if number not in (0, own) and _says(question.sequence, name):
            foreign &= groups != number
    return foreign


def _says(sequence: tuple[str, ...], name: str) -> bool:
    words = tuple(name.split("_"))
    return any(sequence[at : at + len(words)] == words for at in range(len(sequence) - len(words) + 1))


def _places(index: RecallIndex, foreign: NDArray[np.bool_] | None, project: str | None) -> Floats:
    """What evidence counts by where a memory lives. All the same when the session has no project, or an unknown one."""
    if foreign is None:
        return np.ones(index.size)
    own = index.columns.group[: index.size] == index.group_of(project)
    return np.where(own, 1.0, np.where(foreign, _OTHER, _GENERAL))


def _named(question: Question, index: RecallIndex) -> Floats:
    """How telling the most telling glossary term is that stands in the prompt as a whole."""
    found = np.zeros(index.size)
    for named in question.named:
        slots = index.forms[named.form]
        found[slots] = np.maximum(found[slots], specificity(len(slots), len(index)))
    return found


def _alone(question: Question, index: RecallIndex) -> Floats:
    """1 where the prompt is nothing but a glossary term."""
    found = np.zeros(index.size)
    found[index.forms.get(question.sequence, [])] = 1.0
    return found


def _closeness(question: Question, index: RecallIndex, factors: Mapping[str, float]) -> tuple[Floats, Floats]:
    """Closeness of the prompt to gist and question views, calibrated and times the factor of the view."""
    embedder = index.vectors.embedder
    nothing = np.zeros(index.size)
    if embedder is None or question.idle or not index.size:
        return nothing, nothing
    near = index.vectors.near(embedder.embed([question.text])[0]).astype(np.float64)
    near = np.concatenate([near, [0.0]])  # row -1 means no view
    rows = index.columns.rows[: index.size]
    gist = _calibrate(near[rows[:, 0]]) * float(factors["views.weight.gist"])
    asked = _calibrate(near[rows[:, 1]]) * float(factors["views.weight.question"])
    return np.clip(gist, 0, 1), np.clip(asked, 0, 1)


def _calibrate(cosine: Floats) -> Floats:
    return np.clip((cosine - _COS_LOW) / (_COS_HIGH - _COS_LOW), 0.0, 1.0)
