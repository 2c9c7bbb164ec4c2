"""Keeping the memory sound: proposals that wait for a person, verify, rebuild, forget. All ours but the index rebuild."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any, Literal

from pydantic import Field
from starlette.responses import Response, StreamingResponse

from lorehooks.clients.console import Console, ForgetOutlook
from lorehooks.core import uri as uris
from lorehooks.core.errors import InvalidError, LoreError, NotFoundError
from lorehooks.core.model import BOOT_URIS, VIEW_TYPES, ViewType
from lorehooks.hooks import traces
from lorehooks.hooks.api.fields import Flag, Snapshot, snapshot
from lorehooks.hooks.api.operation import Answer, Body, Call, Operation, Query, operation
from lorehooks.hooks.api.person import require_person

operations: list[Operation] = []


class ProposalAnswer(Answer):
    """An agent's write to a boot node: what the node is, and what it would be."""

    number: int
    uri: str
    before: Snapshot
    after: Snapshot
    at: str
    client_type: str | None
    source: str


class PendingAnswer(Answer):
    proposals: list[ProposalAnswer]


class DecideBody(Body):
    accept: bool


class Decided(Answer):
    success: Literal[True] = True
    accepted: bool
    uri: str
    node_uuid: str


class VerifyAnswer(Answer):
    ok: bool
    problems: list[str]
    counts: dict[str, int]


class RebuildQuery(Query):
    """With `progress`, the answer is a stream of JSON lines `{phase, done, total}`; the last one is the answer."""

    progress: Flag = False


class RebuildAnswer(Answer):
    success: Literal[True] = True
    counts: dict[str, int]


class IndexBody(Body):
    """One memory, or all when the path is left out."""

    domain: str | None = None
    path: str | None = None


class IndexCounts(Answer):
    """How many texts there are, and how many were made again."""

    source_count: int
    updated_count: int
    deleted_count: int = 0
    llm_refined_docs: int = 0


class IndexAnswer(Answer):
    """Views are made by rule or kept as a model wrote them. Of one memory they are written anew a moment later."""

    success: Literal[True] = True
    source_count: int
    updated_count: int
    deleted_count: int = 0
    view_types: tuple[ViewType, ...] = VIEW_TYPES
    llm_model: str | None = None
    llm_refined_docs: int = 0
    glossary_embedding_source_count: int
    glossary_embedding_updated_count: int
    glossary_embedding_deleted_count: int = 0
    memory_views: IndexCounts
    glossary_embeddings: IndexCounts


class ForgetBody(Body):
    """Memories by address (with everything below), by a text they hold, or both. Without `confirm`, only the plan."""

    uris: list[str] = Field(default_factory=list, max_length=1000)
    matching: str = ""
    confirm: bool = False


class PlanAnswer(Answer):
    """Addresses: memories that go, deleted ones whose history goes, those that lose earlier states; and settings.

    Then how many records mention them, and which backups and other files below the home hold them.
    """

    memories: list[str]
    deleted: list[str]
    earlier: list[str]
    settings: list[str]
    records: int
    backups: list[str]
    files: list[str]


class ForgetAnswer(Answer):
    """`left` says why old bytes may still be in a file; empty when none are."""

    success: bool
    """Whether something was forgotten; false for a plan."""
    plan: PlanAnswer
    removed_events: int = 0
    changed_events: int = 0
    removed_records: int = 0
    changed_backups: list[str] = Field(default_factory=list)
    cleaned_files: list[str] = Field(default_factory=list)
    left: str = ""


@operation(operations, "GET", "/pending", "Writes to boot nodes that wait for a person, oldest first")
async def pending(call: Call) -> PendingAnswer:
    return PendingAnswer(
        proposals=[
            ProposalAnswer(
                number=one.number,
                uri=one.uri,
                before=snapshot(one.before),
                after=snapshot(one.after),
                at=one.at,
                client_type=one.client_type,
                source=one.source,
            )
            for one in Console(call.parts.backend).pending()
        ]
    )


@operation(operations, "POST", "/pending/{number}", "Accept or reject one of them")
async def decide(call: Call, body: DecideBody) -> Decided:
    require_person(call)
    text = call.request.path_params["number"]
    if not text.isdecimal() or len(text) > 15:  # noqa: PLR2004  beyond any number that an event can have
        raise NotFoundError(f"There is no proposal {text[:40]}", hint="lore pending list")
    result = await call.parts.backend.decide(int(text), accepted=body.accept, origin=call.origin())
    return Decided(accepted=body.accept, uri=result.uri, node_uuid=result.uuid)


@operation(operations, "POST", "/maintenance/verify", "Compare the memory with its log; nothing is changed")
async def verify(call: Call) -> VerifyAnswer:
    found = await Console(call.parts.backend).verify()
    return VerifyAnswer(
        ok=not found.problems, problems=list(found.problems), counts={"events": found.events, "nodes": found.nodes}
    )


@operation(operations, "POST", "/maintenance/rebuild", "Build projections and index again from the log")
async def rebuild(call: Call, query: RebuildQuery) -> RebuildAnswer | Response:
    console = Console(call.parts.backend)
    if query.progress:
        return StreamingResponse(_told(console), media_type="application/x-ndjson")
    return RebuildAnswer(counts=dict(await console.rebuild(lambda *_: None)))


@operation(operations, "POST", "/browse/recall/rebuild", "Make views and vectors again")
async def rebuild_index(call: Call, body: IndexBody) -> IndexAnswer:
    backend = call.parts.backend
    if body.path and body.path.strip("/ "):
        node = backend.store.require(uris.parse(f"{body.domain or uris.DEFAULT_DOMAIN}://{body.path}"))
        backend.live.refresh(node)
        backend.models.refiner.ask_for(node.uuid, anew=True)
        return _index_answer(1, len(node.glossary))
    count = await backend.live.rebuild()
    return _index_answer(count, len(await Console(backend).glossary()))


@operation(operations, "POST", "/maintenance/forget", "Purge memories from the log, views, records and caches")
async def forget(call: Call, body: ForgetBody) -> ForgetAnswer:
    require_person(call)
    if not body.uris and not body.matching.strip():
        raise InvalidError("Name what to forget: uris, matching, or both")
    parts = call.parts
    console = Console(parts.backend)
    addresses = [uris.parse(text) for text in body.uris]
    outlook = await console.plan_forget(addresses, body.matching)
    text = body.matching.strip()
    files = await asyncio.to_thread(traces.holding, parts.home, [text])
    plan = _plan(outlook, files)
    if not body.confirm:
        return ForgetAnswer(success=False, plan=plan)
    left: list[str] = []

    async def purged() -> None:
        parts.ledger.drop_cached()
        try:
            await parts.ready.write_now()
        except (OSError, LoreError) as error:
            left.append(f"the ready files could not be written: {error}")

    done = await console.forget(addresses, body.matching, call.origin(), purged=purged)
    parts.ledger.drop_cached()
    vanished = [uri for uri in done.gone if uri not in BOOT_URIS and parts.backend.store.node(uris.parse(uri)) is None]
    found = await asyncio.to_thread(traces.clean, parts.home, [text, *vanished], watched=[text])
    left += [f"{name} holds the text, and is yours to change" for name in found.left]
    return ForgetAnswer(
        success=True,
        plan=plan,
        removed_events=done.memory.removed,
        changed_events=done.memory.changed,
        removed_records=done.records,
        changed_backups=list(done.backups),
        cleaned_files=list(found.cleaned),
        left="; ".join(filter(None, (done.left, *left))),
    )


async def _told(console: Console) -> AsyncIterator[bytes]:
    """Progress of a rebuild as JSON lines, at most one for each percent, then the outcome or the error."""
    lines: asyncio.Queue[dict[str, Any] | None] = asyncio.Queue()
    loop = asyncio.get_running_loop()
    last = ("", -1)

    def put(line: dict[str, Any] | None) -> None:
        loop.call_soon_threadsafe(lines.put_nowait, line)  # from any thread, and in the order of the calls

    def tell(phase: str, done: int, total: int) -> None:
        nonlocal last
        now = (phase, 100 * done // max(total, 1))
        if now != last:
            last = now
            put({"phase": phase, "done": done, "total": total})

    async def work() -> None:
        try:
            put({"success": True, "counts": dict(await console.rebuild(tell))})
        except LoreError as error:
            put({"success": False, "detail": error.message, "code": error.code})
        finally:
            put(None)

    task = asyncio.create_task(work())
    try:
        while (line := await lines.get()) is not None:
            yield json.dumps(line).encode() + b"\n"
    finally:
        await task


def _index_answer(memories: int, keywords: int) -> IndexAnswer:
    views = memories * len(VIEW_TYPES)
    return IndexAnswer(
        source_count=views,
        updated_count=views,
        glossary_embedding_source_count=keywords,
        glossary_embedding_updated_count=keywords,
        memory_views=IndexCounts(source_count=views, updated_count=views),
        glossary_embeddings=IndexCounts(source_count=keywords, updated_count=keywords),
    )


def _plan(outlook: ForgetOutlook, files: list[str]) -> PlanAnswer:
    plan = outlook.memory
    return PlanAnswer(
        memories=list(plan.memories),
        deleted=list(plan.deleted),
        earlier=list(plan.earlier),
        settings=list(plan.settings),
        records=outlook.records,
        backups=list(outlook.backups),
        files=files,
    )
