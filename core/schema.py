"""Tables of the embedded memory. `events` is the truth; every other table can be dropped and rebuilt from it.

The exceptions are marked: `vectors` is a cache that is computed again, `migrations` is the schema's own log.
"""

from __future__ import annotations

from lorehooks.core.database import Migration

PROJECTIONS = ("nodes", "settings", "views", "uses", "proposals")
"""Tables that hold nothing but what the events say."""

MIGRATIONS = (
    Migration(
        "events and projections",
        """
        CREATE TABLE events (
            seq INTEGER PRIMARY KEY AUTOINCREMENT,
            type TEXT NOT NULL,
            at TEXT NOT NULL,
            source TEXT NOT NULL,
            client_type TEXT,
            session_id TEXT,
            node_uuid TEXT,
            uri TEXT,
            data TEXT NOT NULL
        );
        CREATE INDEX events_by_node ON events (node_uuid, seq);
        CREATE INDEX events_by_uri ON events (uri, seq);
        CREATE TABLE nodes (
            uuid TEXT PRIMARY KEY,
            uri TEXT NOT NULL UNIQUE,
            parent TEXT,
            content TEXT NOT NULL,
            priority INTEGER NOT NULL,
            disclosure TEXT NOT NULL,
            glossary TEXT NOT NULL,
            created_at TEXT NOT NULL,
            updated_at TEXT NOT NULL,
            content_at TEXT NOT NULL,
            client_type TEXT,
            source TEXT,
            seq INTEGER NOT NULL
        ) WITHOUT ROWID;
        CREATE INDEX nodes_by_parent ON nodes (parent);
        CREATE INDEX nodes_by_change ON nodes (seq);
        CREATE TABLE settings (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
        CREATE TABLE views (
            node_uuid TEXT NOT NULL,
            type TEXT NOT NULL,
            text TEXT NOT NULL,
            model TEXT,
            signature TEXT NOT NULL,
            at TEXT NOT NULL,
            PRIMARY KEY (node_uuid, type)
        ) WITHOUT ROWID;
        CREATE TABLE uses (
            query_id TEXT NOT NULL,
            node_uuid TEXT NOT NULL,
            session_id TEXT,
            client_type TEXT,
            how TEXT NOT NULL,
            at TEXT NOT NULL,
            PRIMARY KEY (query_id, node_uuid)
        ) WITHOUT ROWID;
        CREATE TABLE proposals (
            seq INTEGER PRIMARY KEY,
            uri TEXT NOT NULL,
            node_uuid TEXT NOT NULL,
            after TEXT NOT NULL,
            at TEXT NOT NULL,
            source TEXT NOT NULL,
            client_type TEXT,
            session_id TEXT,
            status TEXT NOT NULL,
            decided_at TEXT
        );
        CREATE TABLE vectors (
            profile TEXT NOT NULL,
            key BLOB NOT NULL,
            vector BLOB NOT NULL,
            PRIMARY KEY (profile, key)
        ) WITHOUT ROWID
        """,
    ),
)
