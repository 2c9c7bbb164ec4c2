"""What happened to memories, and the way back (`lore-contract.md` 1.10)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from pydantic import Field

from lorehooks.clients.console import Console
from lorehooks.core import uri as uris
from lorehooks.core.events import Event, State, state_of
from lorehooks.core.model import Node
from lorehooks.hooks.api.fields import MAX_INTEGER, Count, EventAnswer, event_answer, warnings_of
from lorehooks.hooks.api.operation import Answer, Body, Call, MayWait, Operation, Query, operation

operations: list[Operation] = []

_LIMIT, _MAX_LIMIT = 50, 200
_DAYS, _MAX_DAYS = 7, 3650
_EVENTS, _MAX_EVENTS = 20, 100


class HistoryQuery(Query):
    domain: str = uris.DEFAULT_DOMAIN
    path: str = ""
    limit: Count = _LIMIT


class AddressQuery(Query):
    domain: str = uris.DEFAULT_DOMAIN
    path: str = ""


class RollbackBody(Body):
    event_id: int = Field(ge=-MAX_INTEGER, le=MAX_INTEGER)
    session_id: str | None = None


class EventsQuery(Query):
    """A window of days, and what to leave out of it."""

    days: Count = _DAYS
    limit: Count = _EVENTS
    event_type: str | None = None
    node_uri: str | None = None
    source: str | None = None


class TimelineQuery(Query):
    node_uri: str | None = None
    node_uuid: str | None = None
    limit: Count = _LIMIT


class HistoryAnswer(Answer):
    """A memory as it is, or as it was last, and its events, newest first."""

    uri: str
    domain: str
    path: str
    node_uuid: str
    content: str
    disclosure: str | None
    priority: int
    glossary_keywords: list[str]
    deleted: bool
    events: list[EventAnswer]


class RolledBack(MayWait):
    success: Literal[True] = True
    operation: Literal["update"] = "update"
    uri: str
    path: str
    node_uuid: str
    warnings: list[str]


class EventsSummary(Answer):
    total_events: int
    distinct_nodes: int
    last_event_at: str | None


class TypeCount(Answer):
    event_type: str
    total: int


class SourceCount(Answer):
    source: str
    total: int


class HotNodeAnswer(Answer):
    node_uri: str
    total: int
    creates: int
    updates: int
    deletes: int
    last_event_at: str


class EventsAnswer(Answer):
    """Events of a window. Those of memories that are gone are among them."""

    window_days: int
    filters: dict[str, str] | None
    summary: EventsSummary
    by_event_type: list[TypeCount]
    by_source: list[SourceCount]
    hot_nodes: list[HotNodeAnswer]
    recent_events: list[EventAnswer]


class TimelineAnswer(Answer):
    node_uri: str | None
    node_uuid: str | None
    events: list[EventAnswer]


@operation(operations, "GET", "/browse/history", "What happened to a memory, newest first")
async def history(call: Call, query: HistoryQuery) -> HistoryAnswer:
    uri = uris.parse(f"{query.domain}://{query.path}")
    past = Console(call.parts.backend).history(uri, min(query.limit or _LIMIT, _MAX_LIMIT))
    last = _state(past.node, past.events)
    return HistoryAnswer(
        uri=str(uri),
        domain=uri.domain,
        path=uri.path,
        node_uuid=past.node.uuid if past.node else past.events[0].node_uuid or "",
        content=last["content"],
        disclosure=last["disclosure"] or None,
        priority=last["priority"],
        glossary_keywords=list(last["glossary"]),
        deleted=past.node is None,
        events=[event_answer(event) for event in past.events],
    )


@operation(operations, "POST", "/browse/history", "Restore a memory as it was after an event")
async def rollback(call: Call, query: AddressQuery, body: RollbackBody) -> RolledBack:
    uri = uris.parse(f"{query.domain}://{query.path}")
    result = await call.parts.backend.rollback(str(uri), body.event_id, call.origin(body.session_id))
    return RolledBack(
        uri=result.uri,
        path=uri.path,
        node_uuid=result.uuid,
        warnings=warnings_of(result),
        proposal=result.proposal,
    )


@operation(operations, "GET", "/browse/events", "What happened in the last days, summed up")
async def events(call: Call, query: EventsQuery) -> EventsAnswer:
    days = min(query.days or _DAYS, _MAX_DAYS)
    filters = {
        name: value for name in ("event_type", "node_uri", "source") if (value := (getattr(query, name) or "").strip())
    }
    found = await Console(call.parts.backend).overview(
        days=days,
        event_type=filters.get("event_type"),
        uri=filters.get("node_uri"),
        source=filters.get("source"),
        limit=min(query.limit or _EVENTS, _MAX_EVENTS),
    )
    return EventsAnswer(
        window_days=days,
        filters=filters or None,
        summary=EventsSummary(total_events=found.total, distinct_nodes=found.nodes, last_event_at=found.last_event_at),
        by_event_type=[TypeCount(event_type=name, total=count) for name, count in found.by_type],
        by_source=[SourceCount(source=name, total=count) for name, count in found.by_source],
        hot_nodes=[
            HotNodeAnswer(
                node_uri=node.uri,
                total=node.total,
                creates=node.creates,
                updates=node.updates,
                deletes=node.deletes,
                last_event_at=node.last_event_at,
            )
            for node in found.hot
        ],
        recent_events=[event_answer(event) for event in found.recent],
    )


@operation(operations, "GET", "/browse/events/timeline", "The events of a memory, oldest first")
async def timeline(call: Call, query: TimelineQuery) -> TimelineAnswer:
    uri = str(uris.parse(query.node_uri)) if query.node_uri else None
    uuid = query.node_uuid or None
    found: list[Event] = []
    if uri or uuid:
        limit = min(query.limit or _LIMIT, _MAX_LIMIT)
        found = Console(call.parts.backend).timeline(uuid=uuid, uri=uri, limit=limit)
    return TimelineAnswer(node_uri=uri, node_uuid=uuid, events=[event_answer(event) for event in found])


def _state(node: Node | None, past: Sequence[Event]) -> State:
    """The memory as it is, or the last state that its history knows."""
    if node is not None:
        return state_of(node)
    for event in past:
        state: State | None = event.data.get("after") or event.data.get("before")
        if state:
            return state
    raise AssertionError  # each event of a memory has a state
