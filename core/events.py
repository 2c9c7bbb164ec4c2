"""The event log and its projections: an event is appended and projected in one transaction, or not at all.

Event types and their `data`:

=================  =====================================================================================
create             `{after}`, and `{created_at}` where the memory is older than this event (see `forget`)
update             `{before, after}`; a rollback adds `{rollback_from: seq}`
move               `{before, after}`, one event for each node of the subtree, with `{root}` the moved address
delete             `{before}`, one event for each node of the subtree, with `{root}`
glossary_add       `{before, after, keywords}`; likewise `glossary_remove`
view               `{type, text, model, signature}` or `{type, text: null}`: a refined view set or dropped
setting            `{key, value}`; a null value resets
use                `{query_id, how}`: a recalled node was opened; `how` is `passed`, `filled` or `none`
proposal           `{before, after}`: a write to a boot node that waits for a person
proposal_accepted  `{proposal: seq}`; likewise `proposal_rejected`
purge              `{nodes, removed, changed}`: how many memories and events `lore forget` removed from the log itself
=================  =====================================================================================

`before` and `after` are the full state of a node: `{uri, content, priority, disclosure, glossary}`.
"""

from __future__ import annotations

import json
import sqlite3
from dataclasses import dataclass, field
from typing import Any, Literal

from lorehooks.core import uri as uris
from lorehooks.core.model import Node, Origin
from lorehooks.core.wellformed import well_formed, well_formed_json

EventType = Literal[
    "create", "update", "move", "delete", "glossary_add", "glossary_remove",
    "view", "setting", "use", "proposal", "proposal_accepted", "proposal_rejected", "purge",
]  # fmt: skip
State = dict[str, Any]
"""`{uri, content, priority, disclosure, glossary}`"""


@dataclass(frozen=True, slots=True)
class Event:
    """One line of the log. `seq` is its number and its place in time."""

    seq: int
    type: EventType
    at: str
    source: str
    client_type: str | None = None
    session_id: str | None = None
    node_uuid: str | None = None
    uri: str | None = None
    data: dict[str, Any] = field(default_factory=dict)


def state_of(node: Node) -> State:
    """The part of a node that a person or agent wrote, as events carry it."""
    return {
        "uri": node.uri,
        "content": node.content,
        "priority": node.priority,
        "disclosure": node.disclosure,
        "glossary": list(node.glossary),
    }


def append(
    connection: sqlite3.Connection,
    event_type: EventType,
    data: dict[str, Any],
    *,
    at: str,
    origin: Origin,
    node_uuid: str | None = None,
    uri: str | None = None,
    seq: int | None = None,
) -> Event:
    """Write one event and project it. Call inside `Database.write()`. What SQLite cannot store becomes U+FFFD.

    `seq` is a number above all others, for an event that had it in another memory; without it, the next one is taken.
    """
    data = well_formed_json(data)
    origin = Origin(
        well_formed(origin.source),
        None if origin.client_type is None else well_formed(origin.client_type),
        None if origin.session_id is None else well_formed(origin.session_id),
    )
    cursor = connection.execute(
        "INSERT INTO events (seq, type, at, source, client_type, session_id, node_uuid, uri, data)"
        " VALUES (?,?,?,?,?,?,?,?,?)",
        (seq, event_type, at, origin.source, origin.client_type, origin.session_id, node_uuid, uri, _dump(data)),
    )
    event = Event(
        cursor.lastrowid or 0,
        event_type,
        at,
        origin.source,
        origin.client_type,
        origin.session_id,
        node_uuid,
        uri,
        data,
    )
    project(connection, event)
    return event


def event_of(row: sqlite3.Row) -> Event:
    """The event in a row of `events`."""
    return Event(
        row["seq"],
        row["type"],
        row["at"],
        row["source"],
        row["client_type"],
        row["session_id"],
        row["node_uuid"],
        row["uri"],
        json.loads(row["data"]),
    )


def project(connection: sqlite3.Connection, event: Event) -> None:
    """Bring the projections up to date with one event. The only code that writes to them."""
    match event.type:
        case "create":
            _insert_node(connection, event, event.data["after"])
        case "update" | "move" | "glossary_add" | "glossary_remove":
            _change_node(connection, event, event.data["after"])
        case "delete":
            connection.execute("DELETE FROM nodes WHERE uuid = ?", (event.node_uuid,))
            connection.execute("DELETE FROM views WHERE node_uuid = ?", (event.node_uuid,))
        case "view":
            _set_view(connection, event)
        case "setting":
            _set_setting(connection, event.data["key"], event.data["value"])
        case "use":
            connection.execute(
                "INSERT INTO uses (query_id, node_uuid, session_id, client_type, how, at) VALUES (?,?,?,?,?,?)"
                " ON CONFLICT DO NOTHING",
                (
                    event.data["query_id"],
                    event.node_uuid,
                    event.session_id,
                    event.client_type,
                    event.data["how"],
                    event.at,
                ),
            )
        case "proposal":
            connection.execute(
                "INSERT INTO proposals (seq, uri, node_uuid, after, at, source, client_type, session_id, status)"
                " VALUES (?,?,?,?,?,?,?,?,'pending')",
                (
                    event.seq,
                    event.uri,
                    event.node_uuid,
                    _dump(event.data["after"]),
                    event.at,
                    event.source,
                    event.client_type,
                    event.session_id,
                ),
            )
        case "proposal_accepted" | "proposal_rejected":
            connection.execute(
                "UPDATE proposals SET status = ?, decided_at = ? WHERE seq = ?",
                (event.type.removeprefix("proposal_"), event.at, event.data["proposal"]),
            )
        case "purge":
            pass  # a tombstone projects to nothing


def node_of(row: sqlite3.Row) -> Node:
    """The node in a row of `nodes`."""
    return Node(
        uuid=row["uuid"],
        uri=row["uri"],
        content=row["content"],
        priority=row["priority"],
        disclosure=row["disclosure"],
        glossary=tuple(json.loads(row["glossary"])),
        created_at=row["created_at"],
        updated_at=row["updated_at"],
        content_at=row["content_at"],
        client_type=row["client_type"],
        source=row["source"],
    )


def _insert_node(connection: sqlite3.Connection, event: Event, after: State) -> None:
    connection.execute(
        "INSERT INTO nodes (uuid, uri, parent, content, priority, disclosure, glossary,"
        " created_at, updated_at, content_at, client_type, source, seq) VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?)",
        (
            event.node_uuid,
            *_columns(after),
            event.data.get("created_at", event.at),
            event.at,
            event.at,
            event.client_type,
            event.source,
            event.seq,
        ),
    )


def _change_node(connection: sqlite3.Connection, event: Event, after: State) -> None:
    connection.execute(
        "UPDATE nodes SET content_at = CASE WHEN content = ?4 THEN content_at ELSE ?7 END, uri = ?2, parent = ?3,"
        " content = ?4, priority = ?5, disclosure = ?6, glossary = ?8, updated_at = ?7, client_type = ?9, source = ?10,"
        " seq = ?11 WHERE uuid = ?1",
        (
            event.node_uuid,
            after["uri"],
            _parent(after["uri"]),
            after["content"],
            after["priority"],
            after["disclosure"],
            event.at,
            _dump(after["glossary"]),
            event.client_type,
            event.source,
            event.seq,
        ),
    )


def _columns(state: State) -> tuple[object, ...]:
    return (
        state["uri"],
        _parent(state["uri"]),
        state["content"],
        state["priority"],
        state["disclosure"],
        _dump(state["glossary"]),
    )


def _parent(uri: str) -> str:
    """The address the node is listed under: its parent, or the root of its domain."""
    parsed = uris.parse(uri)
    return str(parsed.parent or uris.Uri(parsed.domain, ""))


def _set_view(connection: sqlite3.Connection, event: Event) -> None:
    data = event.data
    if data["text"] is None:
        connection.execute("DELETE FROM views WHERE node_uuid = ? AND type = ?", (event.node_uuid, data["type"]))
        return
    connection.execute(
        "INSERT INTO views (node_uuid, type, text, model, signature, at) VALUES (?,?,?,?,?,?)"
        " ON CONFLICT (node_uuid, type) DO UPDATE SET text = excluded.text, model = excluded.model,"
        " signature = excluded.signature, at = excluded.at",
        (event.node_uuid, data["type"], data["text"], data["model"], data["signature"], event.at),
    )


def _set_setting(connection: sqlite3.Connection, key: str, value: object) -> None:
    if value is None:
        connection.execute("DELETE FROM settings WHERE key = ?", (key,))
    else:
        connection.execute("INSERT OR REPLACE INTO settings (key, value) VALUES (?, ?)", (key, _dump(value)))


def _dump(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
