"""Recall: from a prompt to a few scored memories (recall seed "How recall works").

Score = the four signals times their weights + bonuses; what reaches the display threshold is shown, at most
`max_display_items`, best first. Signals are rounded to 4 decimals before they are added, so that a recorded run can be
repeated to the same bytes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lorehooks.core.cues import explain
from lorehooks.core.evidence import Evidence, Floats, gather
from lorehooks.core.index import Entry, RecallIndex, age_days
from lorehooks.core.model import Candidate, RecallQuery, RecallResult, Signals, ViewType, Withheld
from lorehooks.core.question import Question, analyse
from lorehooks.core.scoring import SIGNALS, Traits, bonuses, damping, fates, weigh
from lorehooks.core.text import cut, strip_metadata

_ADDRESS = re.compile(r"[a-z0-9_]+://[a-z0-9_/]+", re.IGNORECASE)
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
    text, truncated_at = retrieval_text(query.text, settings)
    if not text or not len(index):
        return RecallResult(text, truncated_at=truncated_at)
    scored = score(index, analyse(text, index, query.project), settings, now, project=query.project)
    most = query.max_display_items
    most = int(settings["recall.display.max_display_items"]) if most is None else most
    threshold = query.min_display_score
    threshold = float(settings["recall.display.min_display_score"]) if threshold is None else threshold
    places = ranked(index, scored, max(query.limit, most, 1), domain=query.domain, min_score=query.min_score)
    boot = index.columns.boot[scored.evidence.slots]
    withheld = fates(
        ((float(scored.total[place]), query.exclude_boot and bool(boot[place])) for place in places),
        threshold=threshold,
        most=most,
    )
    return RecallResult(
        text,
        tuple(candidate(index, scored, place, now, withheld=why) for place, why in zip(places, withheld, strict=True)),
        truncated_at=truncated_at,
        query_words=words_of(scored.question),
        lexical_damp=round(damping(words_of(scored.question)), 6),
    )


def retrieval_text(prompt: str, settings: Mapping[str, Any]) -> tuple[str, int | None]:
    """What of a prompt recall reads, and the limit in characters when the prompt was longer."""
    limit = int(settings["recall.safety.max_query_chars"])
    text, cut_off = cut(strip_metadata(prompt).strip(), limit)
    return text, limit if cut_off else None


def score(
    index: RecallIndex, question: Question, settings: Mapping[str, Any], now: datetime, *, project: str | None
) -> Scored:
    """The score of every memory that could matter."""
    found = gather(question, index, project, settings)
    raw = {name: np.round(getattr(found, name), 4) for name in SIGNALS}
    raw["exact"] = np.maximum(raw["exact"], _addressed(question.text, index, found.slots))
    traits = Traits(
        priority=index.columns.priority[found.slots],
        age_days=(now.timestamp() - index.columns.updated[found.slots]) / 86400,
        hit_gist=found.gist >= _VIEW_HIT,
        hit_question=found.question >= _VIEW_HIT,
    )
    weighted = {name: np.round(value, 4) for name, value in weigh(raw, words_of(question), settings).items()}
    extra = {name: np.round(value, 4) for name, value in bonuses(traits, settings).items()}
    total = np.zeros(len(found.slots))
    for part in (*weighted.values(), *extra.values()):
        total = total + part
    return Scored(question, found, {**raw, **extra}, {**weighted, **extra}, np.round(total, 6))


def _addressed(text: str, index: RecallIndex, slots: NDArray[np.int64]) -> Floats:
    """1 for each memory whose whole address stands in the prompt: nothing matches more exactly than that."""
    named = {found[0].lower().rstrip("/") for found in _ADDRESS.finditer(text)}
    if not named:
        return np.zeros(len(slots))
    return np.array([float(index.entry(int(slot)).uri in named) for slot in slots])


def words_of(question: Question) -> int:
    """How many pieces of the prompt carry meaning, which lexical damping reckons with."""
    return sum(ask.mass > 0 for ask in question.asks)


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


def candidate(index: RecallIndex, scored: Scored, place: int, now: datetime, *, withheld: Withheld = "") -> Candidate:
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
        withheld=withheld,
    )


def _signals(parts: Mapping[str, Floats], place: int) -> Signals:
    return Signals(**{name: float(values[place]) for name, values in parts.items()})
