"""Recall with everything that stands behind it, by signal (`lore-contract.md` 1.9)."""

from __future__ import annotations

from typing import Any

from lorehooks.core import uri as uris
from lorehooks.hooks.api.operation import Answer, Call, Operation, Query, operation
from lorehooks.hooks.api.recall import LIMIT, RecallBody, recall_as_asked
from lorehooks.hooks.api.recallform import EventLog, Item, Notice, Ready, RetrievalMeta, Suppressed
from lorehooks.hooks.api.runtimeview import RuntimeView, runtime_view

operations: list[Operation] = []

_HITS = 30
_WEIGHED = 60
"""Memories that are weighed when nobody says how many, so that the lists have something to show below the items."""


class DebugBody(RecallBody):
    """A recall; `log_events` keeps it for marks and statistics."""

    log_events: bool = False


class DebugQuery(Query, RecallBody):
    """The same in an address; always kept."""


class SignalHit(Answer):
    """A memory by one signal. `points` is what the signal gave to the score; ours."""

    uri: str
    points: float
    cue_terms: list[str]
    disclosure: str | None


class ExactHit(SignalHit):
    exact_score: float


class GlossaryHit(SignalHit):
    glossary_semantic_score: float


class DenseHit(SignalHit):
    semantic_score: float


class LexicalHit(SignalHit):
    lexical_score: float


class DebugAnswer(Answer):
    query: str
    index: Ready
    runtime: RuntimeView
    retrieval_meta: RetrievalMeta
    exact_hits: list[ExactHit]
    glossary_semantic_hits: list[GlossaryHit]
    dense_hits: list[DenseHit]
    lexical_hits: list[LexicalHit]
    merged_candidates: list[Item]
    candidates: list[Item]
    items: list[Notice | Item]
    suppressed: Suppressed
    boot_uris: list[str]
    event_log: EventLog | None


@operation(operations, "GET", "/browse/recall/debug", "A recall with the hits of each signal")
async def debug_get(call: Call, query: DebugQuery) -> DebugAnswer:
    return await _debug(call, query, log=True)


@operation(operations, "POST", "/browse/recall/debug", "A recall with the hits of each signal")
async def debug_post(call: Call, body: DebugBody) -> DebugAnswer:
    return await _debug(call, body, log=body.log_events)


async def _debug(call: Call, asked: RecallBody, *, log: bool) -> DebugAnswer:
    wide = asked.model_copy(update={"limit": max(asked.limit or 0, _WEIGHED)})
    found = await recall_as_asked(call, wide, log=log)
    items = found.candidates
    return DebugAnswer(
        query=found.query,
        index=found.index,
        runtime=runtime_view(call.parts.backend),
        retrieval_meta=found.retrieval_meta,
        exact_hits=[
            ExactHit(**_hit(call, item, item.score_breakdown.exact), exact_score=item.exact_score)
            for item in _best(items, "exact_score")
        ],
        glossary_semantic_hits=[
            GlossaryHit(
                **_hit(call, item, item.score_breakdown.glossary_semantic),
                glossary_semantic_score=item.glossary_semantic_score,
            )
            for item in _best(items, "glossary_semantic_score")
        ],
        dense_hits=[
            DenseHit(**_hit(call, item, item.score_breakdown.semantic), semantic_score=item.dense_score)
            for item in _best(items, "dense_score")
        ],
        lexical_hits=[
            LexicalHit(**_hit(call, item, item.score_breakdown.lexical), lexical_score=item.lexical_score)
            for item in _best(items, "lexical_score")
        ],
        merged_candidates=items[:_HITS],
        candidates=items[: asked.limit or LIMIT],
        items=found.items,
        suppressed=found.suppressed,
        boot_uris=found.boot_uris,
        event_log=found.event_log if log else None,
    )


def _best(items: list[Item], signal: str) -> list[Item]:
    """The items that a signal found, its strongest first."""
    hits = [item for item in items if getattr(item, signal) > 0]
    return sorted(hits, key=lambda item: (-getattr(item, signal), item.uri))[:_HITS]


def _hit(call: Call, item: Item, points: float) -> dict[str, Any]:
    node = call.parts.backend.store.node(uris.parse(item.uri))
    disclosure = node.disclosure if node else ""
    return {"uri": item.uri, "points": points, "cue_terms": item.cues, "disclosure": disclosure or None}
