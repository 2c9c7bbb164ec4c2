"""Recall for a prompt, and the marks of what was used of it (`lore-contract.md` 1.9)."""

from __future__ import annotations

import asyncio
import time

from pydantic import Field

from lorehooks.clients.backend import Recalled
from lorehooks.core.clock import to_iso
from lorehooks.core.model import REHEARSALS, Origin, RecallQuery, RecallResult
from lorehooks.core.repository import project_key
from lorehooks.core.runs import Run
from lorehooks.core.secrets import masked_prompt
from lorehooks.hooks.api.fields import Count
from lorehooks.hooks.api.operation import Answer, Body, Call, Operation, operation
from lorehooks.hooks.api.recallform import RecallAnswer, Wanted, recall_answer
from lorehooks.hooks.promptblock import Asked
from lorehooks.hooks.runrecord import recall_record
from lorehooks.hooks.serviceinfo import installed_version

operations: list[Operation] = []

LIMIT, _MAX_LIMIT = 12, 300
"""Candidates that are listed when nobody says how many, and the most."""
_PRECISION, _MAX_PRECISION = 2, 6


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


class Usage(Answer):
    updated_count: int
    query_id: str | None
    node_uris: list[str]


@operation(operations, "POST", "/browse/recall", "Memories for a prompt")
async def recall(call: Call, body: RecallBody) -> RecallAnswer:
    return await recall_as_asked(call, body, log=True)


async def recall_as_asked(call: Call, body: RecallBody, *, log: bool) -> RecallAnswer:
    """Recall and its whole answer; `log` keeps a record for marks and statistics."""
    began = time.perf_counter()
    origin = call.origin(body.session_id)
    query = RecallQuery(
        text=masked_prompt(body.query),
        project=project_key(body.project) or None if body.project else None,
        domain=(body.domain or "").strip().lower() or None,
        limit=min(body.limit or LIMIT, _MAX_LIMIT),
        max_display_items=None if body.max_display_items is None else min(body.max_display_items, _MAX_LIMIT),
        min_display_score=body.min_display_score,
        min_score=body.min_score,
        exclude_boot=body.exclude_boot_from_results,
    )
    recalled = await _recall_in_time(call, query, origin)
    if log and query.text.strip() and recalled.query_id and origin.session_id not in REHEARSALS:
        _record(call, origin, query, recalled, (time.perf_counter() - began) * 1000)
    precision = min(body.score_precision or _PRECISION, _MAX_PRECISION)
    return recall_answer(call, recalled, Wanted(body.query, precision, hides_boot=query.exclude_boot))


async def _recall_in_time(call: Call, query: RecallQuery, origin: Origin) -> Recalled:
    """What memory has for a query, or a result that says it took too long."""
    timeout_ms = int(call.parts.backend.store.settings["recall.safety.timeout_ms"])
    try:
        async with asyncio.timeout(timeout_ms / 1000):
            return await call.parts.backend.recall(query, origin)
    except TimeoutError:
        return Recalled("", RecallResult("", timed_out_ms=timeout_ms))


@operation(operations, "POST", "/browse/recall/usage", "Note that recalled memories were used")
async def usage(call: Call, body: UsageBody) -> Usage:
    query_id = (body.query_id or "").strip()
    uris = list(body.node_uris or [])
    count = 0
    if query_id and body.success:
        count = await call.parts.backend.mark_many(query_id, uris, call.origin(body.session_id))
    return Usage(updated_count=count, query_id=query_id or None, node_uris=uris)


def _record(call: Call, origin: Origin, query: RecallQuery, recalled: Recalled, ms: float) -> None:
    """Keep the recall like that of a hook, so that `usage` knows it after a restart and statistics count it."""
    recorder, backend, language = call.parts.recorder, call.parts.backend.name, call.parts.language
    at = to_iso(recorder.clock())

    def runs() -> list[Run]:
        asked = Asked(query.project, language=language)
        run = Run(
            at=at,
            client_type=origin.client_type or "api",
            event="recall",
            session_id=origin.session_id,
            epoch=None,
            query_id=recalled.query_id,
            reason="" if recalled.result.shown else "no_match",
            ms=round(ms, 3),
            input={"prompt": query.text},
            recall=recall_record(backend, installed_version(), recalled, asked, recalled.result.candidates),
        )
        return [run]

    recorder.add(runs)
