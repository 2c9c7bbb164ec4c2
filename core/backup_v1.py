"""The whole memory as one JSON document in the public server's form `lore-backup-v1` (`lore-contract.md` 6.4).

Its tables are what that server knows: nodes, the current contents, edges, paths, keywords, settings and history. Our own
event log lies beside them under `lorehooks`, so that nothing is lost on the way back into a memory of ours.
"""

from __future__ import annotations

import json
import sqlite3
from typing import Any

from lorehooks.core import uri as uris
from lorehooks.core.events import Event, State, event_of, node_of
from lorehooks.core.history import NODE_EVENTS
from lorehooks.core.model import Node
from lorehooks.core.settings import SETTINGS
from lorehooks.core.store import Store

FORMAT = "lore-backup-v1"
ROOT_UUID = "00000000-0000-0000-0000-000000000000"
_EXACT = 1
"""Number of the form of what lies under `lorehooks`."""


def export(store: Store, *, created_at: str, release: str) -> bytes:
    """The document, as of one moment. Secret settings are left out. Raises StorageError."""
    with store.database.snapshot() as connection:
        nodes = [node_of(row) for row in connection.execute("SELECT * FROM nodes ORDER BY uri")]
        events = [event_of(row) for row in connection.execute("SELECT * FROM events ORDER BY seq")]
        tables = _tables(nodes, events) | {"app_settings": _settings(connection)}
    document = {
        "format": FORMAT,
        "created_at": created_at,
        "tables": tables,
        "stats": {name: len(rows) for name, rows in tables.items()},
        "lorehooks": {
            "form": _EXACT,
            "release": release,
            "events": [_exact(event) for event in events if not _is_secret(event)],
        },
    }
    return json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode()


def _tables(nodes: list[Node], events: list[Event]) -> dict[str, list[dict[str, Any]]]:
    uuid_of = {node.uri: node.uuid for node in nodes}
    number_of = {node.uuid: number for number, node in enumerate(nodes, start=1)}
    return {
        "nodes": [{"uuid": node.uuid, "created_at": node.created_at} for node in nodes],
        "memories": [
            {
                "id": number_of[node.uuid],
                "node_uuid": node.uuid,
                "content": node.content,
                "deprecated": False,
                "migrated_to": None,
                "created_at": node.content_at,
            }
            for node in nodes
        ],
        "edges": [
            {
                "id": number_of[node.uuid],
                "parent_uuid": uuid_of.get(str(uris.parse(node.uri).parent), ROOT_UUID),
                "child_uuid": node.uuid,
                "priority": node.priority,
                "disclosure": node.disclosure or None,
                "created_at": node.created_at,
            }
            for node in nodes
        ],
        "paths": [
            {"domain": node.domain, "path": node.path, "edge_id": number_of[node.uuid], "created_at": node.created_at}
            for node in nodes
        ],
        "glossary_keywords": [
            {"keyword": keyword, "node_uuid": node.uuid, "created_at": node.updated_at}
            for node in nodes
            for keyword in node.glossary
        ],
        "memory_events": [_public_event(event) for event in events if event.type in NODE_EVENTS],
    }


def _settings(connection: sqlite3.Connection) -> list[dict[str, Any]]:
    rows = connection.execute("SELECT key, value FROM settings ORDER BY key")
    return [
        {"key": row["key"], "value": {"value": json.loads(row["value"])}}
        for row in rows
        if row["key"] in SETTINGS and not SETTINGS[row["key"]].secret
    ]


def _public_event(event: Event) -> dict[str, Any]:
    details = {name: value for name, value in event.data.items() if name not in ("before", "after")}
    address = uris.parse(event.uri or "")
    return {
        "id": event.seq,
        "event_type": event.type,
        "node_uri": event.uri,
        "node_uuid": event.node_uuid,
        "domain": address.domain,
        "path": address.path,
        "source": event.source,
        "session_id": event.session_id,
        "before_snapshot": _snapshot(event.data.get("before")),
        "after_snapshot": _snapshot(event.data.get("after")),
        "details": details | ({"client_type": event.client_type} if event.client_type else {}),
        "created_at": event.at,
    }


def _snapshot(state: State | None) -> dict[str, Any] | None:
    if state is None:
        return None
    return {
        "uri": state["uri"],
        "content": state["content"],
        "priority": state["priority"],
        "disclosure": state["disclosure"] or None,
        "glossary_keywords": state["glossary"],
    }


def _exact(event: Event) -> dict[str, Any]:
    return {
        "seq": event.seq,
        "type": event.type,
        "at": event.at,
        "source": event.source,
        "client_type": event.client_type,
        "session_id": event.session_id,
        "node_uuid": event.node_uuid,
        "uri": event.uri,
        "data": event.data,
    }


def _is_secret(event: Event) -> bool:
    setting = SETTINGS.get(event.data.get("key", "")) if event.type == "setting" else None
    return setting is not None and setting.secret
