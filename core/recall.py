"""Recall: from a prompt to a few scored memories (recall seed "How recall works").

Score = the four signals times their weights + bonuses; what reaches the display threshold is shown, at most
`max_display_items`, best first. Signals are rounded to 4 decimals before they are added, so that a recorded run can be
repeated to the same bytes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from lorehooks.core.cues import explain
from lorehooks.core.evidence import Evidence, gather
from lorehooks.core.index import RecallIndex, age_days
from lorehooks.core.model import Candidate, RecallQuery, RecallResult, Signals, ViewType
from lorehooks.core.question import Question, analyse
from lorehooks.core.text import cut, strip_metadata

Withheld = Literal["", "boot", "score", "limit"]

_VIEW_HIT = 0.25
"""Calibrated closeness from which a view counts as hit."""


@dataclass(frozen=True, slots=True)
class Scored:
    """All slots with their parts: `raw` 0..1, `weighted` with weights, `total` the score."""

    question: Question
    evidence: Evidence
    raw: dict[str, NDArray[np.float64]]
    weighted: dict[str, NDArray[np.float64]]
    total: NDArray[np.float64]


def recall(index: RecallIndex, query: RecallQuery, settings: Mapping[str, Any], now: datetime) -> RecallResult:
    """Candidates for a prompt, best first; those with `withheld == ""` are to be shown. Pure, never raises for a text."""
    text, cut_off = cut(strip_metadata(query.text).strip(), int(settings["recall.safety.max_query_chars"]))
    truncated_at = int(settings["recall.safety.max_query_chars"]) if cut_off else None
    if not text or not len(index):
        return RecallResult(text, truncated_at=truncated_at)
    scored = score(index, analyse(text, index, query.project), settings, now, project=query.project)
    most = query.max_display_items
    most = int(settings["recall.display.max_display_items"]) if most is None else most
    chosen = ranked(index, scored, max(query.limit, most, 1), domain=query.domain, min_score=query.min_score)
    threshold = query.min_display_score
    threshold = float(settings["recall.display.min_display_score"]) if threshold is None else threshold
    candidates: list[Candidate] = []
    shown = 0
    for slot in chosen:
        withheld: Withheld = ""
        if query.exclude_boot and index.columns.boot[slot]:
            withheld = "boot"
        elif scored.total[slot] < threshold:
            withheld = "score"
        elif shown >= most:
            withheld = "limit"
        else:
            shown += 1
        candidates.append(replace(candidate(index, scored, slot, now), withheld=withheld))
    return RecallResult(
        text,
        tuple(candidates),
        truncated_at=truncated_at,
        query_words=words_of(scored.question),
        lexical_damp=round(damping(scored.question), 6),
    )


def score(
    index: RecallIndex, question: Question, settings: Mapping[str, Any], now: datetime, *, project: str | None
) -> Scored:
    """The score of every memory."""
    found = gather(question, index, project, settings)
    size = index.size
    columns = index.columns
    hit_gist, hit_question = found.gist >= _VIEW_HIT, found.question >= _VIEW_HIT
    view = np.maximum(
        hit_gist * float(settings["views.prior.gist"]), hit_question * float(settings["views.prior.question"])
    )
    steps = (hit_gist & hit_question) * float(settings["recall.bonus.multi_view_step"])
    priority = columns.priority[:size]
    base, step = float(settings["recall.bonus.priority_base"]), float(settings["recall.bonus.priority_step"])
    bonuses = {
        "view": view,
        "priority": np.clip(base - np.maximum(priority, 0) * step, 0, None),
        "multi_view": np.minimum(steps, float(settings["recall.bonus.multi_view_cap"])),
        "recency": _recency(columns.updated[:size], priority, settings, now),
    }
    weights = {
        "exact": float(settings["recall.weights.w_exact"]),
        "glossary_semantic": float(settings["recall.weights.w_glossary_semantic"]),
        "dense": float(settings["recall.weights.w_dense"]),
        "lexical": float(settings["recall.weights.w_lexical"]) * damping(question),
    }
    raw = {name: np.round(getattr(found, name), 4) for name in weights}
    weighted = {name: np.round(raw[name] * weight, 4) for name, weight in weights.items()}
    bonuses = {name: np.round(value, 4) for name, value in bonuses.items()}
    total = np.zeros(size)
    for part in (*weighted.values(), *bonuses.values()):
        total = total + part
    return Scored(question, found, {**raw, **bonuses}, {**weighted, **bonuses}, np.round(total, 6))


def damping(question: Question) -> float:
    """How much of the lexical weight is left: the longer the prompt, the less a shared word says (4.3)."""
    return 1 / math.log2(2 + max(1, words_of(question)))


def words_of(question: Question) -> int:
    """How many pieces of the prompt carry meaning."""
    return sum(ask.mass > 0 for ask in question.asks)


def ranked(
    index: RecallIndex, scored: Scored, limit: int, *, domain: str | None = None, min_score: float = 0.0
) -> list[int]:
    """Slots with any evidence, by score, then priority, then URI; at most `limit`."""
    evidence = scored.raw["exact"] + scored.raw["glossary_semantic"] + scored.raw["dense"] + scored.raw["lexical"]
    wanted = index.columns.used[: index.size] & (evidence > 0) & (scored.total >= min_score)
    if domain is not None:
        for slot in np.flatnonzero(wanted):
            wanted[slot] = index.entry(int(slot)).uri.startswith(f"{domain}://")
    slots = np.flatnonzero(wanted)
    if len(slots) > limit:
        totals = scored.total[slots]
        edge = np.partition(totals, len(totals) - limit)[len(totals) - limit]
        slots = slots[totals >= edge]
    return sorted((int(slot) for slot in slots), key=lambda slot: _order(index, scored, slot))[:limit]


def _order(index: RecallIndex, scored: Scored, slot: int) -> tuple[float, int, str]:
    entry = index.entry(slot)
    return -float(scored.total[slot]), entry.priority, entry.uri


def candidate(index: RecallIndex, scored: Scored, slot: int, now: datetime) -> Candidate:
    """One memory with its breakdown, cues and views that matched."""
    entry = index.entry(slot)
    cues, matched_on = explain(index, scored.question, scored.evidence, slot)
    views: list[ViewType] = []
    if scored.evidence.gist[slot] >= _VIEW_HIT:
        views.append("gist")
    if scored.evidence.question[slot] >= _VIEW_HIT:
        views.append("question")
    return Candidate(
        uri=entry.uri,
        uuid=entry.uuid,
        priority=entry.priority,
        score=float(scored.total[slot]),
        raw=_signals(scored.raw, slot),
        weighted=_signals(scored.weighted, slot),
        cues=tuple(cues),
        matched_on=tuple(matched_on),
        views=tuple(views),
        age_days=round(age_days(float(index.columns.updated[slot]), now), 4),
    )


def _signals(parts: Mapping[str, NDArray[np.float64]], slot: int) -> Signals:
    return Signals(**{name: float(values[slot]) for name, values in parts.items()})


def _recency(
    updated: NDArray[np.float64], priority: NDArray[np.int32], settings: Mapping[str, Any], now: datetime
) -> NDArray[np.float64]:
    """Halves with each half-life since the last update; priorities up to `priority_exempt` keep all of it."""
    most = float(settings["recall.recency.max_bonus"])
    if not settings["recall.recency.enabled"]:
        return np.zeros(len(updated))
    days = np.maximum(0.0, (now.timestamp() - updated) / 86400)
    fading = most * 0.5 ** (days / float(settings["recall.recency.half_life_days"]))
    return np.where(priority <= int(settings["recall.recency.priority_exempt"]), most, fading)
