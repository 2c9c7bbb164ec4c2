"""When each hook of a runtime ran last and how long the service took, from the records."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass

from lorehooks.core.errors import LoreError
from lorehooks.core.home import Home
from lorehooks.core.readonly import looking_into

_COUNTED = 200
"""Latest runs of an event from which its latency is told."""


@dataclass(frozen=True, slots=True)
class Used:
    """One event of one runtime: how often it is on record, when it ran last, and percentiles in milliseconds.

    `fine_at` is when memory last came through, sent or with nothing to send; empty for never. Moments are ISO 8601.
    """

    count: int
    last_at: str
    fine_at: str
    p50: float
    p95: float


def usage(home: Home) -> Mapping[tuple[str, str], Used]:
    """By client type and event; empty where there are no records, or none that can be read."""
    try:
        with looking_into(home.records, missing="", hint="") as records:
            rows = records.execute(
                "SELECT client_type, event, count(*) AS count, max(at) AS at,"
                " coalesce(max(CASE WHEN reason IN ('', 'no_match', 'unchanged') THEN at END), '') AS fine_at"
                " FROM runs GROUP BY client_type, event"
            ).fetchall()
            times = {
                (row["client_type"], row["event"]): [
                    ms
                    for (ms,) in records.execute(
                        "SELECT ms FROM runs WHERE client_type = ? AND event = ? ORDER BY id DESC LIMIT ?",
                        (row["client_type"], row["event"], _COUNTED),
                    )
                ]
                for row in rows
            }
    except (LoreError, sqlite3.Error):
        return {}
    return {
        (row["client_type"], row["event"]): Used(
            row["count"],
            row["at"],
            row["fine_at"],
            _percentile(times[row["client_type"], row["event"]], 0.50),
            _percentile(times[row["client_type"], row["event"]], 0.95),
        )
        for row in rows
    }


def _percentile(values: list[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(int(share * len(ordered)), len(ordered) - 1)] if ordered else 0.0
