"""How well recall does: what was shown, what of it was opened (`lore-contract.md` 1.9)."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any, Literal

from lorehooks.clients.console import Console
from lorehooks.core import stats
from lorehooks.core.clock import to_iso
from lorehooks.core.model import known_client
from lorehooks.core.stats import Asked, PathLine, Threshold
from lorehooks.hooks.api.fields import Count
from lorehooks.hooks.api.operation import Answer, Call, Operation, Query, operation
from lorehooks.hooks.api.runtimeview import RuntimeView, runtime_view

operations: list[Operation] = []

_DAYS, _MAX_DAYS = 7, 90
_LIMIT, _MAX_LIMIT = 12, 50
_QUERIES, _MAX_QUERIES = 20, 100
_WITHOUT_CLIENT = "__legacy__"
"""The contract's word for recalls that named no client."""


class StatsQuery(Query):
    days: Count = _DAYS
    limit: Count = _LIMIT
    recent_queries_limit: Count = _QUERIES
    recent_queries_offset: Count = 0
    query_id: str | None = None
    query_text: str | None = None
    client_type: str | None = None


class Summary(Answer):
    merged_count: int
    shown_count: int
    used_count: int
    query_count: int
    last_event_at: str | None


class Analysis(Answer):
    """Whether opened memories score higher than those that were only shown; `ready` needs 3 opened and 5 shown."""

    status: Literal["ready", "insufficient_data"]
    basis: Literal["used_vs_unused", "insufficient_data"]
    shown_candidate_count: int
    used_candidate_count: int
    unused_shown_candidate_count: int
    avg_shown_score: float | None
    avg_used_score: float | None
    avg_unused_shown_score: float | None
    used_p25_score: float | None
    used_p50_score: float | None
    unused_shown_p75_score: float | None
    separation_gap: float | None
    current_min_display_score: float


class ClientAnalysis(Answer):
    client_type: str | None
    current_min_display_score: float
    memory_created_count: int
    memory_updated_count: int
    memory_deleted_count: int
    analysis: Analysis


class PathStats(Answer):
    node_uri: str
    shown_count: int
    used_count: int
    avg_score: float


class ViewStats(Answer):
    view_type: str
    shown_count: int
    used_count: int


class RecentQuery(Answer):
    query_id: str
    query_text: str
    merged_count: int
    shown_count: int
    used_count: int
    duration_ms: int
    client_type: str | None
    created_at: str


class RecentQueries(Answer):
    items: list[RecentQuery]
    total: int
    limit: int
    offset: int
    has_more: bool


class ShownMemory(Answer):
    node_uri: str
    score: float
    used: bool


class QueryDetail(RecentQuery):
    session_id: str | None
    shown: list[ShownMemory]


class StatsAnswer(Answer):
    window_days: int
    aggregation_unit: Literal["path_event"] = "path_event"
    filters: dict[str, str] | None
    summary: Summary
    display_threshold_analysis: Analysis
    client_type_threshold_analysis: list[ClientAnalysis]
    by_path: list[PathStats]
    by_view_type: list[ViewStats]
    noisy_nodes: list[PathStats]
    recent_queries: RecentQueries
    recent_events: list[dict[str, Any]]
    """Rows of the public server's log of single signals, which are not kept here."""
    query_detail: QueryDetail | None
    runtime: RuntimeView


@operation(operations, "GET", "/browse/recall/stats", "What recall showed, and what of it was opened")
async def recall_stats(call: Call, query: StatsQuery) -> StatsAnswer:
    days = min(query.days or _DAYS, _MAX_DAYS)
    recorder = call.parts.recorder
    since = to_iso(recorder.clock() - timedelta(days=days))
    wanted = (query.client_type or "").strip().lower()
    client_type = "" if wanted == _WITHOUT_CLIENT else known_client(wanted)
    if client_type == "admin":  # a console asks for everyone's statistics, not for its own
        client_type = None

    def read() -> list[Asked]:
        recorder.flush(1.0)
        with recorder.database.snapshot() as records:
            return stats.read_asked(
                records, since, client_type=client_type, query_id=query.query_id, text=query.query_text
            )

    asked = await asyncio.to_thread(read)
    written = await Console(call.parts.backend).writes_by_client(since)
    floor = float(call.parts.backend.store.settings["recall.display.min_display_score"])
    limit = min(query.limit or _LIMIT, _MAX_LIMIT)
    filters = {"query_id": query.query_id, "query_text": query.query_text, "client_type": wanted}
    return StatsAnswer(
        window_days=days,
        filters={name: value for name, value in filters.items() if value} or None,
        summary=Summary(
            merged_count=sum(one.weighed for one in asked),
            shown_count=sum(len(one.shown) for one in asked),
            used_count=sum(len(one.used) for one in asked),
            query_count=len(asked),
            last_event_at=asked[0].at if asked else None,
        ),
        display_threshold_analysis=_analysis(stats.threshold(asked), floor),
        client_type_threshold_analysis=_by_client(asked, written, floor),
        by_path=[_path(line) for line in stats.by_path(asked)[:limit]],
        by_view_type=[
            ViewStats(view_type=view, shown_count=shown, used_count=used)
            for view, (shown, used) in sorted(stats.by_view(asked).items())
        ],
        noisy_nodes=[_path(line) for line in stats.noisy(asked)[:limit]],
        recent_queries=_recent(asked, query),
        recent_events=[],
        query_detail=_detail(asked[0]) if query.query_id and asked else None,
        runtime=runtime_view(call.parts.backend),
    )


def _analysis(found: Threshold, floor: float) -> Analysis:
    return Analysis(
        status="ready" if found.ready else "insufficient_data",
        basis="used_vs_unused" if found.ready else "insufficient_data",
        shown_candidate_count=found.shown,
        used_candidate_count=found.used,
        unused_shown_candidate_count=found.shown - found.used,
        avg_shown_score=found.avg_shown,
        avg_used_score=found.avg_used,
        avg_unused_shown_score=found.avg_unused,
        used_p25_score=found.used_p25,
        used_p50_score=found.used_p50,
        unused_shown_p75_score=found.unused_p75,
        separation_gap=found.gap,
        current_min_display_score=floor,
    )


def _by_client(
    asked: Sequence[Asked], written: Mapping[str | None, tuple[int, int, int]], floor: float
) -> list[ClientAnalysis]:
    clients = dict.fromkeys([*(one.client_type for one in asked), *written])
    found = []
    for client in sorted(clients, key=lambda name: (name is None, name or "")):
        created, updated, deleted = written.get(client, (0, 0, 0))
        mine = [one for one in asked if one.client_type == client]
        found.append(
            ClientAnalysis(
                client_type=client,
                current_min_display_score=floor,
                memory_created_count=created,
                memory_updated_count=updated,
                memory_deleted_count=deleted,
                analysis=_analysis(stats.threshold(mine), floor),
            )
        )
    return found


def _path(line: PathLine) -> PathStats:
    return PathStats(node_uri=line.uri, shown_count=line.shown, used_count=line.used, avg_score=line.avg_score)


def _recent(asked: Sequence[Asked], query: StatsQuery) -> RecentQueries:
    limit = min(query.recent_queries_limit or _QUERIES, _MAX_QUERIES)
    start = query.recent_queries_offset
    return RecentQueries(
        items=[RecentQuery(**_query(one)) for one in asked[start : start + limit]],
        total=len(asked),
        limit=limit,
        offset=start,
        has_more=start + limit < len(asked),
    )


def _detail(one: Asked) -> QueryDetail:
    shown = [ShownMemory(node_uri=uri, score=score, used=uri in one.used) for uri, score in one.shown.items()]
    return QueryDetail(**_query(one), session_id=one.session_id, shown=shown)


def _query(one: Asked) -> dict[str, Any]:
    return {
        "query_id": one.query_id,
        "query_text": one.text,
        "merged_count": one.weighed,
        "shown_count": len(one.shown),
        "used_count": len(one.used),
        "duration_ms": round(one.ms),
        "client_type": one.client_type,
        "created_at": one.at,
    }
