"""The embedded memory as an object: reading, and the transaction that every write verb runs in."""

from __future__ import annotations

import contextlib
import json
import sqlite3
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from lorehooks.core import uri as uris
from lorehooks.core.clock import Clock, system_clock, to_iso
from lorehooks.core.database import Database
from lorehooks.core.errors import NotFoundError
from lorehooks.core.events import Event, EventType, State, append, node_of, state_of
from lorehooks.core.model import BOOT_URIS, Change, Node, Origin, View
from lorehooks.core.schema import MIGRATIONS
from lorehooks.core.settings import Settings

_BOOT_SOURCE = "system"


@dataclass(slots=True)
class Transaction:
    """One write in progress: the connection, the moment, who writes, and what has changed so far."""

    connection: sqlite3.Connection
    at: str
    origin: Origin
    settings: Settings
    changes: list[Change] = field(default_factory=list)

    def append(
        self, event_type: EventType, data: dict[str, object], *, node_uuid: str | None, uri: str | None
    ) -> Event:
        return append(self.connection, event_type, data, at=self.at, origin=self.origin, node_uuid=node_uuid, uri=uri)

    def change(self, event_type: EventType, before: Node | None, after: State | None, **details: object) -> Node | None:
        """Append one event of a node and note the change; answers the node as it is now."""
        node_uuid = before.uuid if before else str(uuid.uuid4())
        data: dict[str, object] = dict(details)
        if before:
            data["before"] = state_of(before)
        if after:
            data["after"] = after
        uri = after["uri"] if after else before.uri if before else None
        self.append(event_type, data, node_uuid=node_uuid, uri=uri)
        row = self.connection.execute("SELECT * FROM nodes WHERE uuid = ?", (node_uuid,)).fetchone()
        now = node_of(row) if row else None
        self.changes.append(Change(before, now))
        return now

    def node(self, uri: uris.Uri) -> Node | None:
        row = self.connection.execute("SELECT * FROM nodes WHERE uri = ?", (str(uri),)).fetchone()
        return node_of(row) if row else None

    def require(self, uri: uris.Uri) -> Node:
        """The node at an address. Raises NotFoundError."""
        node = self.node(uri)
        if node is None:
            raise not_found(uri)
        return node

    def subtree(self, uri: uris.Uri) -> list[Node]:
        """The node at an address and everything below it, parents first."""
        below = f"{uri}/"
        rows = self.connection.execute(
            "SELECT * FROM nodes WHERE uri = ? OR substr(uri, 1, ?) = ? ORDER BY uri", (str(uri), len(below), below)
        )
        return [node_of(row) for row in rows]


def not_found(uri: uris.Uri) -> NotFoundError:
    return NotFoundError(f"Path not found: {uri}", hint=f"look around: lore node ls {uri.domain}://")


class Store:
    """Reads of the memory, and `transaction()` for the verbs in `writes`, `history` and `proposals`."""

    def __init__(self, path: Path, clock: Clock = system_clock) -> None:
        """Open or create the memory. The fixed boot nodes exist from then on. Raises StorageError."""
        self.database = Database(path, MIGRATIONS)
        self.clock = clock
        self._settings: Settings | None = None
        if not self.database.read_only and self.node(uris.parse(BOOT_URIS[-1])) is None:
            self._create_boot_nodes()

    def _create_boot_nodes(self) -> None:
        with self.transaction(Origin(_BOOT_SOURCE)) as transaction:
            for text in BOOT_URIS:
                if transaction.node(uris.parse(text)) is None:
                    state = {"uri": text, "content": "", "priority": 0, "disclosure": "", "glossary": []}
                    identity = str(
                        uuid.uuid5(uuid.NAMESPACE_URL, text)
                    )  # the same in every store, for export and import
                    transaction.append("create", {"after": state}, node_uuid=identity, uri=text)

    @contextlib.contextmanager
    def transaction(self, origin: Origin) -> Iterator[Transaction]:
        """Everything inside happens, or nothing. Raises StorageError when the database refuses."""
        with self.database.write() as connection:
            yield Transaction(connection, to_iso(self.clock()), origin, self.settings)
        self._settings = None

    @property
    def settings(self) -> Settings:
        """The memory's settings in force."""
        if self._settings is None:
            rows = self.database.read.execute("SELECT key, value FROM settings").fetchall()
            self._settings = Settings({row["key"]: json.loads(row["value"]) for row in rows})
        return self._settings

    def node(self, uri: uris.Uri) -> Node | None:
        return self._one("SELECT * FROM nodes WHERE uri = ?", str(uri))

    def node_by_uuid(self, node_uuid: str) -> Node | None:
        return self._one("SELECT * FROM nodes WHERE uuid = ?", node_uuid)

    def require(self, uri: uris.Uri) -> Node:
        """The node at an address. Raises NotFoundError."""
        node = self.node(uri)
        if node is None:
            raise not_found(uri)
        return node

    def nodes(self) -> Iterator[Node]:
        """Every node, by address."""
        for row in self.database.read.execute("SELECT * FROM nodes ORDER BY uri"):
            yield node_of(row)

    def children(self, uri: uris.Uri) -> list[Node]:
        """The nodes directly below an address, the most important first."""
        rows = self.database.read.execute("SELECT * FROM nodes WHERE parent = ? ORDER BY priority, uri", (str(uri),))
        return [node_of(row) for row in rows]

    def child_counts(self, parents: list[str]) -> Mapping[str, int]:
        """How many nodes lie directly below each of these addresses; those without any are left out."""
        marks = ",".join("?" * len(parents))
        rows = self.database.read.execute(
            f"SELECT parent, count(*) AS n FROM nodes WHERE parent IN ({marks}) GROUP BY parent",  # noqa: S608  only ?
            parents,
        )
        return {row["parent"]: row["n"] for row in rows}

    def recent(self, limit: int = 5) -> list[Node]:
        """The most recently written memories that are no boot nodes (seed "The fixed boot nodes")."""
        marks = ",".join("?" * len(BOOT_URIS))
        rows = self.database.read.execute(
            f"SELECT * FROM nodes WHERE uri NOT IN ({marks}) ORDER BY updated_at DESC, seq DESC LIMIT ?",  # noqa: S608  only ?
            (*BOOT_URIS, limit),
        )
        return [node_of(row) for row in rows]

    def domains(self) -> list[tuple[str, int]]:
        """Each domain with the number of its first-level paths, by name."""
        rows = self.database.read.execute(
            "SELECT parent, count(*) AS n FROM nodes WHERE parent LIKE '%://' GROUP BY parent ORDER BY parent"
        )
        return [(row["parent"].removesuffix("://"), row["n"]) for row in rows]

    def refined_views(self) -> dict[str, list[tuple[View, str]]]:
        """Views that a model wrote: node uuid to `(view, signature of the node it was written for)`."""
        found: dict[str, list[tuple[View, str]]] = {}
        for row in self.database.read.execute("SELECT * FROM views"):
            view = View(row["type"], row["text"], "llm", row["model"])
            found.setdefault(row["node_uuid"], []).append((view, row["signature"]))
        return found

    def refined_views_of(self, node_uuid: str) -> list[tuple[View, str]]:
        """The same of one node."""
        rows = self.database.read.execute("SELECT * FROM views WHERE node_uuid = ?", (node_uuid,))
        return [(View(row["type"], row["text"], "llm", row["model"]), row["signature"]) for row in rows]

    def counts(self) -> dict[str, int]:
        """How many nodes and events there are, and the number of the last event."""
        read = self.database.read
        (nodes,) = read.execute("SELECT count(*) FROM nodes").fetchone()
        events, last = read.execute("SELECT count(*), coalesce(max(seq), 0) FROM events").fetchone()
        return {"nodes": nodes, "events": events, "last_event": last}

    def close(self) -> None:
        self.database.close()

    def _one(self, statement: str, argument: str) -> Node | None:
        row = self.database.read.execute(statement, (argument,)).fetchone()
        return node_of(row) if row else None
