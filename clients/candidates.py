"""A server's recall answer as our candidates, so that budget, rendering, records and replay do not ask who recalled."""

from __future__ import annotations

from typing import Any, cast, get_args

from lorehooks.clients.answers import Item, RecallPage
from lorehooks.core.model import VIEW_TYPES, Candidate, RecallResult, Signals, Withheld

NOTICE = "notice://"
"""Scheme of the pseudo-items by which the public server says that a prompt was cut or recall was too slow."""
_MAX_CUES = 3


def to_result(page: RecallPage) -> RecallResult:
    """Candidates in the server's order, what it shows first among equals; notices become the fields that say the same."""
    shown = [item.uri for item in page.items if not item.uri.startswith(NOTICE)]
    order = {uri: rank for rank, uri in enumerate(shown)}
    known = {item.uri: item for item in (*page.candidates, *page.items) if not item.uri.startswith(NOTICE)}
    lowest = min((known[uri].score or 0 for uri in shown), default=None)
    found = [_candidate(item, is_shown=item.uri in order, lowest=lowest) for item in known.values()]
    found.sort(key=lambda candidate: (candidate.uri not in order, order.get(candidate.uri, 0)))
    meta = page.retrieval_meta
    notices = {item.uri for item in page.items if item.uri.startswith(NOTICE)}
    return RecallResult(
        query=page.query,
        candidates=tuple(found),
        truncated_at=_count(meta, "query_char_limit") if meta.get("query_truncated") is True else None,
        timed_out_ms=_count(meta, "timeout_ms") if "notice://recall/timeout" in notices else None,
        query_words=_count(meta, "query_tokens") or 0,
        lexical_damp=next((item.score_breakdown.get("lexical_damp", 1.0) for item in page.candidates), 1.0),
        meta=dict(meta),
    )


def _candidate(item: Item, *, is_shown: bool, lowest: float | None) -> Candidate:
    score = item.score or 0.0
    parts = item.score_breakdown
    bonuses = {name: parts.get(name, 0.0) for name in ("view", "priority", "multi_view", "recency")}
    raw = Signals(
        exact=item.exact_score,
        glossary_semantic=item.glossary_semantic_score,
        dense=item.dense_score,
        lexical=item.lexical_score,
        **bonuses,
    )
    weighted = Signals(
        exact=parts.get("exact", 0.0),
        glossary_semantic=parts.get("glossary_semantic", 0.0),
        dense=parts.get("semantic", parts.get("dense", 0.0)),
        lexical=parts.get("lexical", 0.0),
        **bonuses,
    )
    return Candidate(
        uri=item.uri,
        uuid=item.node_uuid,
        priority=item.priority,
        score=score,
        raw=raw,
        weighted=weighted,
        cues=item.cues[:_MAX_CUES],
        matched_on=item.matched_on,
        views=tuple(view for view in VIEW_TYPES if view in item.views),
        age_days=item.memory_age_days,
        withheld="" if is_shown else _why(item, score, lowest),
    )


def _why(item: Item, score: float, lowest: float | None) -> Withheld:
    """Why a candidate was not shown: what the server says, else what its place says."""
    if item.withheld and item.withheld in get_args(Withheld):
        return cast("Withheld", item.withheld)
    if item.boot:
        return "boot"
    return "limit" if lowest is not None and score >= lowest else "score"


def _count(meta: dict[str, Any], name: str) -> int | None:
    value = meta.get(name)
    return round(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
