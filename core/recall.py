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
from lorehooks.core.evidence import Evidence, Floats, gather
from lorehooks.core.index import Entry, RecallIndex, age_days
from lorehooks.core.model import Candidate, RecallQuery, RecallResult, Signals, ViewType
from lorehooks.core.question import Question, analyse
from lorehooks.core.text import cut, strip_metadata

Withheld = Literal["", "boot", "score", "limit"]

SIGNALS = ("exact", "glossary_semantic", "dense", "lexical")
_VIEW_HIT = 0.25
"""Calibrated closeness from which a view counts as hit."""


@dataclass(frozen=True, slots=True)
class Scored:
    """The measured memories with their parts, one value for each of `evidence.slots`.

    `raw` holds signals as 0..1, `weighted` as they count, both with the bonuses; `total` is the score.
    """

    question: Question
    evidence: Evidence
    raw: dict[str, Floats]
    weighted: dict[str, Floats]
    total: Floats


def recall(index: RecallIndex, query: RecallQuery, settings: Mapping[str, Any], now: datetime) -> RecallResult:
    """Candidates for a prompt, best first; those with `withheld == ""` are to be shown. Pure, never raises for a text."""
    limit = int(settings["recall.safety.max_query_chars"])
    text, cut_off = cut(strip_metadata(query.text).strip(), limit)
    truncated_at = limit if cut_off else None
    if not text or not len(index):
        return RecallResult(text, truncated_at=truncated_at)
    scored = score(index, analyse(text, index, query.project), settings, now, project=query.project)
    most = query.max_display_items
    most = int(settings["recall.display.max_display_items"]) if most is None else most
    threshold = query.min_display_score
    threshold = float(settings["recall.display.min_display_score"]) if threshold is None else threshold
    candidates: list[Candidate] = []
    shown = 0
    for place in ranked(index, scored, max(query.limit, most, 1), domain=query.domain, min_score=query.min_score):
        withheld: Withheld = ""
        if query.exclude_boot and index.columns.boot[scored.evidence.slots[place]]:
            withheld = "boot"
        elif scored.total[place] < threshold:
            withheld = "score"
        elif shown >= most:
            withheld = "limit"
        else:
            shown += 1
        candidates.append(replace(candidate(index, scored, place, now), withheld=withheld))
    return RecallResult(text, tuple(candidates), truncated_at=truncated_at)


def score(
    index: RecallIndex, question: Question, settings: Mapping[str, Any], now: datetime, *, project: str | None
) -> Scored:
    """The score of every memory that could matter."""
    found = gather(question, index, project, settings)
    hit_gist, hit_question = found.gist >= _VIEW_HIT, found.question >= _VIEW_HIT
    priority = index.columns.priority[found.slots]
    base, step = float(settings["recall.bonus.priority_base"]), float(settings["recall.bonus.priority_step"])
    several = (hit_gist & hit_question) * float(settings["recall.bonus.multi_view_step"])
    bonuses = {
        "view": np.maximum(
            hit_gist * float(settings["views.prior.gist"]), hit_question * float(settings["views.prior.question"])
        ),
        "priority": np.clip(base - np.maximum(priority, 0) * step, 0, None),
        "multi_view": np.minimum(several, float(settings["recall.bonus.multi_view_cap"])),
        "recency": _recency(index.columns.updated[found.slots], priority, settings, now),
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
    total = np.zeros(len(found.slots))
    for part in (*weighted.values(), *bonuses.values()):
        total = total + part
    return Scored(question, found, {**raw, **bonuses}, {**weighted, **bonuses}, np.round(total, 6))


def damping(question: Question) -> float:
    """How much of the lexical weight is left: the longer the prompt, the less a shared word says (4.3)."""
    return 1 / math.log2(2 + max(1, sum(ask.mass > 0 for ask in question.asks)))


def ranked(
    index: RecallIndex, scored: Scored, limit: int, *, domain: str | None = None, min_score: float = 0.0
) -> list[int]:
    """Places in `scored` with any evidence, by score, then priority, then URI; at most `limit`."""
    evidence = sum((scored.raw[name] for name in SIGNALS), start=np.zeros(len(scored.total)))
    wanted = (evidence > 0) & (scored.total >= min_score)
    places = [int(place) for place in np.flatnonzero(wanted)]
    if domain is not None:
        places = [place for place in places if _entry(index, scored, place).uri.startswith(f"{domain}://")]
    if len(places) > limit:
        totals = scored.total[places]
        edge = np.partition(totals, len(totals) - limit)[len(totals) - limit]
        places = [place for place in places if scored.total[place] >= edge]
    return sorted(places, key=lambda place: _order(index, scored, place))[:limit]


def _order(index: RecallIndex, scored: Scored, place: int) -> tuple[float, int, str]:
    entry = _entry(index, scored, place)
    return -float(scored.total[place]), entry.priority, entry.uri


def _entry(index: RecallIndex, scored: Scored, place: int) -> Entry:
    return index.entry(int(scored.evidence.slots[place]))


def candidate(index: RecallIndex, scored: Scored, place: int, now: datetime) -> Candidate:
    """One memory with its breakdown, cues and views that matched."""
    entry = _entry(index, scored, place)
    cues, matched_on = explain(entry, scored.question, scored.evidence, place)
    views: list[ViewType] = []
    if scored.evidence.gist[place] >= _VIEW_HIT:
        views.append("gist")
    if scored.evidence.question[place] >= _VIEW_HIT:
        views.append("question")
    updated = float(index.columns.updated[scored.evidence.slots[place]])
    return Candidate(
        uri=entry.uri,
        uuid=entry.uuid,
        priority=entry.priority,
        score=float(scored.total[place]),
        raw=_signals(scored.raw, place),
        weighted=_signals(scored.weighted, place),
        cues=tuple(cues),
        matched_on=tuple(matched_on),
        views=tuple(views),
        age_days=round(age_days(updated, now), 4),
    )


def _signals(parts: Mapping[str, Floats], place: int) -> Signals:
    return Signals(**{name: float(values[place]) for name, values in parts.items()})


def _recency(updated: Floats, priority: NDArray[np.int32], settings: Mapping[str, Any], now: datetime) -> Floats:
    """Halves with each half-life since the last update; priorities up to `priority_exempt` keep all of it."""
    most = float(settings["recall.recency.max_bonus"])
    if not settings["recall.recency.enabled"]:
        return np.zeros(len(updated))
    days = np.maximum(0.0, (now.timestamp() - updated) / 86400)
    fading = most * 0.5 ** (days / float(settings["recall.recency.half_life_days"]))
    return np.where(priority <= int(settings["recall.recency.priority_exempt"]), most, fading)
