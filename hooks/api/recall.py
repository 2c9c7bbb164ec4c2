"""Recall, the marks of what was used, and what stands behind a score (`lore-contract.md` 1.9)."""

from __future__ import annotations

import asyncio
import time
from typing import Literal

from pydantic import Field

from lorehooks.clients.backend import Recalled
from lorehooks.core.blocks import seconds_of
from lorehooks.core.clock import to_iso
from lorehooks.core.model import BOOT_URIS, VIEW_TYPES, Candidate, Origin, RecallQuery, RecallResult, ViewType
from lorehooks.core.repository import project_key
from lorehooks.core.runs import Run, candidate_record
from lorehooks.hooks.api.browse import STRATEGY
from lorehooks.hooks.api.fields import Count, display_score
from lorehooks.hooks.api.operation import Answer, Body, Call, Operation, operation

operations: list[Operation] = []

_LIMIT, _MAX_LIMIT = 12, 300
_MAX_PRECISION = 6
_TRUNCATED = {
    "en": "User content is too long; recall only used the first {limit} characters."
    " Use lore_search for detailed related memories.",
    "zh": "内容过长，召回只读取了前 {limit} 个字符。需要更多相关记忆请用 lore_search。",
}
_TIMEOUT = {
    "en": "Recall took longer than {seconds} seconds and was skipped. Use lore_search for detailed related memories.",
    "zh": "召回超过 {seconds} 秒，已跳过。需要相关记忆请用 lore_search。",
}


class RecallBody(Body):
    """A question to recall. What is left out or null takes the memory's settings."""

    query: str = ""
    session_id: str | None = None
    domain: str | None = None
    project: str | None = None
    """Name of the session's repository: a term that several projects share resolves to its own. Ours."""
    limit: Count | None = None
    max_display_items: Count | None = None
    min_display_score: float | None = Field(default=None, allow_inf_nan=False)
    min_score: float = Field(default=0.0, allow_inf_nan=False)
    score_precision: Count | None = None
    exclude_boot_from_results: bool = True


class UsageBody(Body):
    """Which of the memories that a recall showed were used; no addresses means all of them."""

    query_id: str | None = None
    session_id: str | None = None
    node_uris: list[str] | None = Field(default=None, max_length=1000)
    assistant_text: str | None = None
    source: str | None = None
    success: bool = True


class Breakdown(Answer):
    """The parts of a score, each with its weight; they add up to it. `semantic` is the dense signal."""

    exact: float
    glossary_semantic: float
    semantic: float
    lexical: float
    lexical_damp: float
    view: float
    priority: float
    multi_view: float
    recency: float


class Item(Answer):
    """A memory that was considered. The `_score` fields are the signals before their weights."""

    uri: str
    score: float
    exact_score: float
    glossary_semantic_score: float
    dense_score: float
    lexical_score: float
    score_breakdown: Breakdown
    cues: list[str]
    matched_on: list[str]
    views: list[ViewType]
    priority: int
    memory_age_days: float | None
    recency_bonus: float
    score_display: float
    boot: bool
    withheld: str
    """Why it is not among the items: boot, score, limit; empty when it is. Ours."""


class Notice(Answer):
    """A line for the model that is no memory: recall read only a part, or took too long."""

    uri: Literal["notice://recall/query_truncated", "notice://recall/timeout"]
    score_display: None = None
    score: None = None
    cues: list[str]
    matched_on: tuple[Literal["notice"]] = ("notice",)


class Ready(Answer):
    ready: bool


class Suppressed(Answer):
    boot: int
    score: int


class RetrievalMeta(Answer):
    exact_candidates: int
    glossary_semantic_candidates: int
    dense_candidates: int
    lexical_candidates: int
    model: str | None
    strategy: str = STRATEGY
    query_tokens: int
    query_chars: int
    original_query_chars: int
    query_truncated: bool
    query_char_limit: int
    recency_enabled: bool
    view_types: tuple[ViewType, ...] = VIEW_TYPES
    recall_timed_out: bool = False
    timeout_ms: int


class EventLog(Answer):
    query_id: str | None
    enabled: bool


class RecallAnswer(Answer):
    query: str
    index: Ready
    candidates: list[Item]
    items: list[Notice | Item]
    suppressed: Suppressed
    boot_uris: list[str]
    retrieval_meta: RetrievalMeta
    event_log: EventLog


class Usage(Answer):
    updated_count: int
    query_id: str | None
    node_uris: list[str]


@operation(operations, "POST", "/browse/recall", "Memories for a prompt")
async def recall(call: Call, body: RecallBody) -> RecallAnswer:
    began = time.perf_counter()
    settings = call.parts.backend.store.settings
    query = RecallQuery(
        text=body.query,
        project=project_key(body.project) or None if body.project else None,
        domain=(body.domain or "").strip().lower() or None,
        limit=min(body.limit or _LIMIT, _MAX_LIMIT),
        max_display_items=None if body.max_display_items is None else min(body.max_display_items, _MAX_LIMIT),
        min_display_score=body.min_display_score,
        min_score=body.min_score,
        exclude_boot=body.exclude_boot_from_results,
    )
    origin = call.origin(body.session_id)
    timeout_ms = int(settings["recall.safety.timeout_ms"])
    try:
        async with asyncio.timeout(timeout_ms / 1000):
            recalled = await call.parts.backend.recall(query, origin)
    except TimeoutError:
        recalled = Recalled("", RecallResult("", timed_out_ms=timeout_ms))
    answer = _Rendering(call, body, recalled, timeout_ms).answer()
    if body.query.strip() and recalled.query_id:
        _record(call, origin, body.query, recalled, (time.perf_counter() - began) * 1000)
    return answer


@operation(operations, "POST", "/browse/recall/usage", "Note that recalled memories were used")
async def usage(call: Call, body: UsageBody) -> Usage:
    query_id = (body.query_id or "").strip()
    uris = list(body.node_uris or [])
    count = 0
    if query_id and body.success:
        count = await call.parts.backend.mark_many(query_id, uris, call.origin(body.session_id))
    return Usage(updated_count=count, query_id=query_id or None, node_uris=uris)


class _Rendering:
    """One recall in the contract's form."""

    def __init__(self, call: Call, body: RecallBody, recalled: Recalled, timeout_ms: int) -> None:
        self.call = call
        self.body = body
        self.recalled = recalled
        self.result = recalled.result
        self.timeout_ms = timeout_ms
        self.precision = min(body.score_precision or 2, _MAX_PRECISION)
        self.settings = call.parts.backend.store.settings

    def answer(self) -> RecallAnswer:
        result = self.result
        items = [self._item(one) for one in result.candidates]
        return RecallAnswer(
            query=self.body.query if result.timed_out_ms is None else "",
            index=Ready(ready=self.call.parts.backend.ready.is_set()),
            candidates=items,
            items=[*self._notices(), *(item for item in items if not item.withheld)],
            suppressed=Suppressed(
                boot=sum(one.withheld == "boot" for one in result.candidates),
                score=sum(one.withheld == "score" for one in result.candidates),
            ),
            boot_uris=sorted(BOOT_URIS) if self.body.exclude_boot_from_results else [],
            retrieval_meta=self._meta(),
            event_log=EventLog(query_id=self.recalled.query_id or None, enabled=bool(self.recalled.query_id)),
        )

    def _notices(self) -> list[Notice]:
        language = self.call.parts.language
        found = []
        if self.result.truncated_at is not None:
            text = _TRUNCATED[language].format(limit=self.result.truncated_at)
            found.append(Notice(uri="notice://recall/query_truncated", cues=[text]))
        if self.result.timed_out_ms is not None:
            text = _TIMEOUT[language].format(seconds=seconds_of(self.result.timed_out_ms))
            found.append(Notice(uri="notice://recall/timeout", cues=[text]))
        return found

    def _item(self, one: Candidate) -> Item:
        return Item(
            uri=one.uri,
            score=one.score,
            exact_score=one.raw.exact,
            glossary_semantic_score=one.raw.glossary_semantic,
            dense_score=one.raw.dense,
            lexical_score=one.raw.lexical,
            score_breakdown=Breakdown(
                exact=one.weighted.exact,
                glossary_semantic=one.weighted.glossary_semantic,
                semantic=one.weighted.dense,
                lexical=one.weighted.lexical,
                lexical_damp=self.result.lexical_damp,
                view=one.weighted.view,
                priority=one.weighted.priority,
                multi_view=one.weighted.multi_view,
                recency=one.weighted.recency,
            ),
            cues=list(one.cues),
            matched_on=sorted(one.matched_on),
            views=list(one.views),
            priority=one.priority,
            memory_age_days=one.age_days,
            recency_bonus=one.weighted.recency,
            score_display=display_score(one.score, self.precision),
            boot=one.uri in BOOT_URIS,
            withheld=one.withheld,
        )

    def _meta(self) -> RetrievalMeta:
        found = self.result.candidates
        embedder = self.call.parts.backend.live.embedder
        return RetrievalMeta(
            exact_candidates=sum(one.raw.exact > 0 for one in found),
            glossary_semantic_candidates=sum(one.raw.glossary_semantic > 0 for one in found),
            dense_candidates=sum(one.raw.dense > 0 for one in found),
            lexical_candidates=sum(one.raw.lexical > 0 for one in found),
            model=embedder.profile if embedder else None,
            query_tokens=self.result.query_words,
            query_chars=len(self.result.query),
            original_query_chars=len(self.body.query),
            query_truncated=self.result.truncated_at is not None,
            query_char_limit=int(self.settings["recall.safety.max_query_chars"]),
            recency_enabled=bool(self.settings["recall.recency.enabled"]),
            recall_timed_out=self.result.timed_out_ms is not None,
            timeout_ms=self.timeout_ms,
        )


def _record(call: Call, origin: Origin, text: str, recalled: Recalled, ms: float) -> None:
    """Keep the recall like that of a hook, so that `usage` knows it after a restart and statistics count it."""
    recorder = call.parts.recorder
    recorder.add(
        Run(
            at=to_iso(recorder.clock()),
            client_type=origin.client_type or "api",
            event="recall",
            session_id=origin.session_id,
            epoch=None,
            query_id=recalled.query_id,
            reason="" if recalled.result.shown else "no_match",
            ms=round(ms, 3),
            input={"prompt": text},
            recall={
                "backend": call.parts.backend.name,
                "query": recalled.result.query,
                "truncated_at": recalled.result.truncated_at,
                "at": recalled.at,
                "memory_seq": recalled.memory_seq,
                "settings": dict(recalled.settings),
                "candidates": [candidate_record(candidate) for candidate in recalled.result.candidates],
                "meta": recalled.result.meta,
            },
        )
    )
