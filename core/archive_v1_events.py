"""History from the public server's event table, as far as its events say what a memory was.

Its snapshots are partial: no address, keywords only sometimes, one event for a whole subtree that moved. So each memory
that still exists is followed from its first event on, and what an event does not say stays as it was; the import ends with
the state that the tables have, whatever the events came to. Memories that were deleted leave no history behind.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lorehooks.core.archive import ArchivedNode, read_event
from lorehooks.core.errors import LoreError
from lorehooks.core.events import Event, State
from lorehooks.core.model import DEFAULT_PRIORITY

Row = Mapping[str, Any]
_KINDS = ("create", "update", "move", "glossary_add", "glossary_remove")
_FIELDS = {"content": "content", "priority": "priority", "disclosure": "disclosure", "glossary_keywords": "glossary"}


def history_of(rows: Sequence[Row], nodes: Mapping[str, ArchivedNode]) -> list[Event]:
    """Events of these memories (by the uuid they have there) in order. A memory whose events make no sense is left without history."""
    by_uuid: dict[str, list[tuple[int, Row]]] = {}
    for row in rows:
        number = row.get("id")
        text = str(number)
        if row.get("event_type") in _KINDS and text.isascii() and text.isdigit() and len(text) < 19:  # noqa: PLR2004  (64 bits)
            by_uuid.setdefault(str(row.get("node_uuid")), []).append((int(text), row))
    found: list[Event] = []
    for uuid, node in nodes.items():
        history = sorted(by_uuid.get(uuid, []), key=lambda pair: pair[0])
        try:
            found += list(_followed(history, node))
        except (LoreError, TypeError, ValueError):
            continue
    seqs = [event.seq for event in found]
    return found if len(set(seqs)) == len(seqs) else []


def _followed(history: Sequence[tuple[int, Row]], node: ArchivedNode) -> list[Event]:
    events: list[Event] = []
    state: State | None = None
    for seq, row in history:
        before, details = state, _dict(row.get("details"))
        state = _next(state, row, node.uri)
        kind = str(row.get("event_type"))
        if before is None:
            kind = "create"
        elif kind == "move":
            continue
        elif kind == "create":
            kind = "update"
        data: dict[str, Any] = {"after": state} if before is None else {"before": before, "after": state}
        if kind.startswith("glossary_"):
            data["keywords"] = _words(row, details)
        raw = {
            "seq": seq,
            "type": kind,
            "at": row.get("created_at"),
            "source": row.get("source"),
            "client_type": details.get("client_type"),
            "session_id": row.get("session_id"),
            "node_uuid": node.uuid,
            "data": data,
        }
        event = read_event(raw, f"event {seq}")
        state = event.data["after"]
        events.append(event)
    return events


def _next(state: State | None, row: Row, uri: str) -> State:
    """What a memory was after an event. Its address is the one of today: events of a moved subtree do not say theirs."""
    kind, after, details = row.get("event_type"), _dict(row.get("after_snapshot")), _dict(row.get("details"))
    now: State = (
        dict(state) if state else {"content": "", "priority": DEFAULT_PRIORITY, "disclosure": "", "glossary": []}
    )
    now["uri"] = uri
    if kind == "glossary_add":
        now["glossary"] = [*now["glossary"], *_words(row, details)]
    elif kind == "glossary_remove":
        gone = {word.casefold() for word in _words(row, details)}
        now["glossary"] = [word for word in now["glossary"] if word.casefold() not in gone]
    else:
        now |= {ours: after[theirs] for theirs, ours in _FIELDS.items() if theirs in after}
        now["disclosure"] = now["disclosure"] or ""
        now["content"] = now["content"] or ""
        now["glossary"] = list(now["glossary"] or [])
        if isinstance(now["priority"], int) and now["priority"] < 0:
            now["priority"] = DEFAULT_PRIORITY
    return now


def _words(row: Row, details: Row) -> list[str]:
    """The keywords of an event that is about keywords, wherever it says them."""
    for place in (_dict(row.get("after_snapshot")), _dict(row.get("before_snapshot")), details):
        for name in ("keyword", "keywords"):
            value = place.get(name)
            if isinstance(value, str):
                return [value]
            if isinstance(value, list):
                return [str(word) for word in value]
    return []


def _dict(value: object) -> Row:
    return value if isinstance(value, dict) else {}
