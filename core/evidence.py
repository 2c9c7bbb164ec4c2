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
_TEXT_SHARE = 0.5
"""What a word of content or disclosure counts beside one of glossary or path."""
_OTHER_PROJECT = 0.4
"""What a piece counts in another project's memory when the session's own project, or a general memory, holds it too."""
_ENOUGH = 0.9
"""Evidence (in fully telling pieces) at which a signal has reached 63%."""
_COS_LOW, _COS_HIGH = 0.15, 0.6
"""Cosines of the static model: below is chance, above as close as texts get."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """One value for each slot. `pieces` are for explanation: strength of each ask (rows) in each slot, before weights."""

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
    size = index.size
    foreign = _foreign(index, question, project)
    verbatim, verbatim_text = _held(question, index, foreign, near=False)
    near, near_text = _held(question, index, foreign, near=True)
    mass = np.array([ask.mass for ask in question.asks], dtype=np.float64)[:, None]
    total = max(float(mass.sum()), 1e-9)
    as_term = np.maximum(verbatim, near)
    own = np.maximum(verbatim, _TEXT_SHARE * verbatim_text)
    best = np.maximum(np.maximum(as_term, own), _TEXT_SHARE * near_text)
    covered = (mass * best).sum(axis=0) / total
    exact = _saturate((mass * own).sum(axis=0), covered)
    glossary = _saturate((mass * np.maximum(as_term, 0.3 * best)).sum(axis=0), covered)
    lexical = _saturate((mass * np.maximum(verbatim_text, verbatim)).sum(axis=0), np.ones(size))
    whole = _whole(question, index)
    gist, asked = _cosines(question, index, factors)
    return Evidence(
        exact=np.maximum(exact, whole),
        glossary_semantic=np.maximum(glossary, whole),
        dense=np.maximum(gist, asked),
        lexical=lexical,
        gist=gist,
        question=asked,
        verbatim=own,
        near=near,
    )


def _saturate(evidence: Floats, covered: Floats) -> Floats:
    return (1 - np.exp(-evidence / _ENOUGH)) * (0.4 + 0.6 * np.sqrt(np.clip(covered, 0, 1)))


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
                    held[outside & (held < 3 * inside)] *= _OTHER_PROJECT
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


def _whole(question: Question, index: RecallIndex) -> Floats:
    """1 where the prompt is nothing but a glossary term."""
    found = np.zeros(index.size)
    for slot in index.forms.get(question.sequence, ()):
        found[slot] = 1.0
    return found


def _cosines(question: Question, index: RecallIndex, factors: Mapping[str, float]) -> tuple[Floats, Floats]:
    """Closeness of the prompt to gist and question views, calibrated."""
    embedder = index.vectors.embedder
    nothing = np.zeros(index.size)
    if embedder is None or question.idle or not index.size:
        return nothing, nothing
    vector = embedder.embed([question.text])[0]
    near = index.vectors.near(vector).astype(np.float64)
    rows = index.columns.rows[: index.size]
    near = np.concatenate([near, [0.0]])  # row -1 means no view
    gist = _calibrate(near[rows[:, 0]]) * factors["views.weight.gist"]
    asked = _calibrate(near[rows[:, 1]]) * factors["views.weight.question"]
    return np.clip(gist, 0, 1), np.clip(asked, 0, 1)


def _calibrate(cosine: Floats) -> Floats:
    return np.clip((cosine - _COS_LOW) / (_COS_HIGH - _COS_LOW), 0.0, 1.0)
