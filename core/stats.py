"""What recall showed in the last days and what of it was opened, reckoned from the records (`lore-contract.md` 1.9).

Records are pruned, so a window reaches back as far as they do.
"""

from __future__ import annotations

import json
import math
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

MIN_USED, MIN_SHOWN = 3, 5
"""Fewer scores than these say nothing about a threshold."""


@dataclass(frozen=True, slots=True)
class Asked:
    """One recall: how many memories it weighed, which it showed with which score, and which of those were opened."""

    query_id: str
    at: str
    client_type: str | None
    session_id: str | None
    text: str
    ms: float
    weighed: int
    shown: Mapping[str, float]
    used: frozenset[str]
    views: Mapping[str, Sequence[str]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Threshold:
    """Whether shown memories that were opened score higher than those that were not. None where there is nothing."""

    ready: bool
    shown: int
    used: int
    avg_shown: float | None
    avg_used: float | None
    avg_unused: float | None
    used_p25: float | None
    used_p50: float | None
    unused_p75: float | None

    @property
    def gap(self) -> float | None:
        """How far the lower quarter of the opened lies above the upper quarter of the others."""
        if self.used_p25 is None or self.unused_p75 is None:
            return None
        return round(self.used_p25 - self.unused_p75, 3)


@dataclass(frozen=True, slots=True)
class PathLine:
    """One memory over the window."""

    uri: str
    shown: int
    used: int
    avg_score: float


def read_asked(
    records: sqlite3.Connection, since: str, *, client_type: str | None, query_id: str | None, text: str | None
) -> list[Asked]:
    """Recorded recalls from a moment on, newest first. `client_type` `""` takes those without one."""
    clauses, arguments = ["recall IS NOT NULL", "query_id IS NOT NULL", "at >= ?"], [since]
    if client_type is not None:
        clauses.append("client_type = ?")
        arguments.append(client_type or NO_CLIENT)
    if query_id:
        clauses.append("query_id = ?")
        arguments.append(query_id)
    rows = records.execute(f"SELECT * FROM runs WHERE {' AND '.join(clauses)} ORDER BY id DESC", arguments)  # noqa: S608  our own names
    used = _used(records, since)
    found = [_asked(row, used) for row in rows]
    return [one for one in found if not text or text.casefold() in one.text.casefold()]


NO_CLIENT = "api"
"""What stands in a record for a caller of the Lore API that named no client."""


def threshold(asked: Iterable[Asked]) -> Threshold:
    """The analysis of what was shown."""
    shown: list[float] = []
    used: list[float] = []
    unused: list[float] = []
    for one in asked:
        for uri, score in one.shown.items():
            shown.append(score)
            (used if uri in one.used else unused).append(score)
    return Threshold(
        ready=len(used) >= MIN_USED and len(shown) >= MIN_SHOWN,
        shown=len(shown),
        used=len(used),
        avg_shown=_average(shown),
        avg_used=_average(used),
        avg_unused=_average(unused),
        used_p25=_percentile(used, 0.25),
        used_p50=_percentile(used, 0.5),
        unused_p75=_percentile(unused, 0.75),
    )


def by_path(asked: Iterable[Asked]) -> list[PathLine]:
    """Each memory that was shown, the most shown first."""
    scores: dict[str, list[float]] = {}
    used: dict[str, int] = {}
    for one in asked:
        for uri, score in one.shown.items():
            scores.setdefault(uri, []).append(score)
            used[uri] = used.get(uri, 0) + (uri in one.used)
    lines = [PathLine(uri, len(all_), used[uri], round(sum(all_) / len(all_), 3)) for uri, all_ in scores.items()]
    return sorted(lines, key=lambda line: (-line.shown, line.uri))


def noisy(asked: Iterable[Asked], least: int = MIN_SHOWN) -> list[PathLine]:
    """Memories that were shown often and never opened."""
    return [line for line in by_path(asked) if line.shown >= least and not line.used]


def by_view(asked: Iterable[Asked]) -> dict[str, tuple[int, int]]:
    """For each kind of view how many memories were shown that it matched, and how many of them were opened."""
    found: dict[str, tuple[int, int]] = {}
    for one in asked:
        for uri in one.shown:
            for view in one.views.get(uri, ()):
                shown, used = found.get(view, (0, 0))
                found[view] = (shown + 1, used + (uri in one.used))
    return found


def _used(records: sqlite3.Connection, since: str) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    rows = records.execute(
        "SELECT query_id, uri FROM opened WHERE query_id IS NOT NULL AND how <> 'none' AND at >= ?", (since,)
    )
    for row in rows:
        found.setdefault(row["query_id"], set()).add(row["uri"])
    return found


def _asked(row: sqlite3.Row, used: Mapping[str, set[str]]) -> Asked:
    recall: dict[str, Any] = json.loads(row["recall"])
    shown = [candidate for candidate in recall["candidates"] if not candidate["withheld"]]
    return Asked(
        query_id=row["query_id"],
        at=row["at"],
        client_type=None if row["client_type"] == NO_CLIENT else row["client_type"],
        session_id=row["session_id"],
        text=json.loads(row["input"]).get("prompt", recall["query"]),
        ms=row["ms"],
        weighed=len(recall["candidates"]),
        shown={candidate["uri"]: candidate["score"] for candidate in shown},
        used=frozenset(used.get(row["query_id"], ())) & {candidate["uri"] for candidate in shown},
        views={candidate["uri"]: candidate.get("views", ()) for candidate in shown},
    )


def _average(values: Sequence[float]) -> float | None:
    return round(sum(values) / len(values), 3) if values else None


def _percentile(values: Sequence[float], share: float) -> float | None:
    """Between the two nearest values, like the database function of the public server."""
    if not values:
        return None
    ordered = sorted(values)
    place = share * (len(ordered) - 1)
    low = math.floor(place)
    high = min(low + 1, len(ordered) - 1)
    return round(ordered[low] + (ordered[high] - ordered[low]) * (place - low), 3)
