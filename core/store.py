"""The embedded memory as an object: reading, and the transaction that every write verb runs in."""

from __future__ import annotations

import contextlib
import sqlite3
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from lorehooks.core import uri as uris
from lorehooks.core.clock import Clock, system_clock, to_iso
from lorehooks.core.database import Database
from lorehooks.core.errors import NotFoundError, StorageError
from lorehooks.core.events import Event, EventType, State, append, event_of, node_of, state_of
from lorehooks.core.model import BOOT_URIS, Change, Node, Origin, View
from lorehooks.core.projections import refined_in, settings_in
from lorehooks.core.schema import MIGRATIONS
from lorehooks.core.settings import Settings
from lorehooks.core.wellformed import well_formed

_BOOT_SOURCE = "system"
_IN_LIST = 500
"""Values in one `IN (…)`, well below the 999 that old builds of SQLite allow."""


def boot_uuid(uri: str) -> str:
    """The identity of a fixed boot node: the same in every store, for export and import."""
    return str(uuid.uuid5(uuid.NAMESPACE_URL, uri))


def empty_state(uri: str) -> State:
    """A fixed boot node before anyone wrote to it."""
    return {"uri": uri, "content": "", "priority": 0, "disclosure": "", "glossary": []}


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
        rows = self.connection.execute(
            "SELECT * FROM nodes WHERE uri = ? OR (uri > ? AND uri < ?) ORDER BY uri", (str(uri), *below(uri))
        )
        return [node_of(row) for row in rows]


def below(uri: uris.Uri) -> tuple[str, str]:
    """Bounds of the addresses below one: between `a/` and `a0`, the sign after the slash. No wildcard, so `_` is itself."""
    return (str(uri), f"{uri}\U0010ffff") if not uri.path else (f"{uri}/", f"{uri}0")


def not_found(uri: uris.Uri) -> NotFoundError:
    return NotFoundError(f"Path not found: {uri}", hint=f"look around: lore node ls {uri.domain}://")


class Store:
    """Reads of the memory, and `transaction()` for the verbs in `writes`, `history` and `proposals`."""

    def __init__(self, path: Path, clock: Clock = system_clock) -> None:
        """Open or create the memory. The fixed boot nodes exist from then on. Raises StorageError."""
        self.database = Database(path, MIGRATIONS)
        self.clock = clock
        self._settings: Settings | None = None
        self._settings_state = 0
        try:
            if not self.database.read_only and len(self._boot_nodes()) < len(BOOT_URIS):
                self._create_boot_nodes()
        except BaseException:
            self.database.close()
            raise

    def _boot_nodes(self) -> list[sqlite3.Row]:
        marks = ",".join("?" * len(BOOT_URIS))
        return self.database.query(f"SELECT uri FROM nodes WHERE uri IN ({marks})", BOOT_URIS)  # noqa: S608  only ?

    def _create_boot_nodes(self) -> None:
        with self.transaction(Origin(_BOOT_SOURCE)) as transaction:
            for text in BOOT_URIS:
                if transaction.node(uris.parse(text)) is None:
                    transaction.append("create", {"after": empty_state(text)}, node_uuid=boot_uuid(text), uri=text)

    @contextlib.contextmanager
    def transaction(self, origin: Origin) -> Iterator[Transaction]:
        """Everything inside happens, or nothing. Raises StorageError when the database refuses."""
        try:
            with self.database.write() as connection:
                yield Transaction(connection, to_iso(self.clock()), origin, self.settings)
        except sqlite3.IntegrityError as error:  # each verb checks first, so the tables themselves must be wrong
            raise StorageError(
                f"{self.database.path} contradicts its own log: {error}", hint="lore verify, then lore rebuild"
            ) from error
        self.reload_settings()

    def reload_settings(self) -> None:
        """Read the settings anew the next time. For code that writes to the database itself."""
        self._settings_state += 1
        self._settings = None

    @property
    def settings(self) -> Settings:
        """The memory's settings in force. A stored value that this release does not allow counts as not set."""
        found = self._settings
        if found is None:
            state = self._settings_state
            found = settings_in(self.database.query("SELECT key, value FROM settings"))
            if state == self._settings_state:  # else another thread has written in the meantime
                self._settings = found
        return found

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
        return map(node_of, self.database.query("SELECT * FROM nodes ORDER BY uri"))

    def children(self, uri: uris.Uri) -> list[Node]:
        """The nodes directly below an address, the most important first."""
        rows = self.database.query("SELECT * FROM nodes WHERE parent = ? ORDER BY priority, uri", (str(uri),))
        return [node_of(row) for row in rows]

    def child_counts(self, parents: list[str]) -> Mapping[str, int]:
        """How many nodes lie directly below each of these addresses; those without any are left out."""
        found: dict[str, int] = {}
        for start in range(0, len(parents), _IN_LIST):
            part = parents[start : start + _IN_LIST]
            marks = ",".join("?" * len(part))
            rows = self.database.query(
                f"SELECT parent, count(*) AS n FROM nodes WHERE parent IN ({marks}) GROUP BY parent",  # noqa: S608  only ?
                part,
            )
            found |= {row["parent"]: row["n"] for row in rows}
        return found

    def recent(self, limit: int = 5) -> list[Node]:
        """The most recently written memories that are no boot nodes (seed "The fixed boot nodes")."""
        marks = ",".join("?" * len(BOOT_URIS))
        rows = self.database.query(
            f"SELECT * FROM nodes WHERE uri NOT IN ({marks}) ORDER BY seq DESC LIMIT ?",  # noqa: S608  only ?
            (*BOOT_URIS, limit),
        )
        return [node_of(row) for row in rows]

    def domains(self) -> list[tuple[str, int]]:
        """Each domain with the number of its first-level paths, by name."""
        rows = self.database.query(
            "SELECT parent, count(*) AS n FROM nodes WHERE parent LIKE '%://' GROUP BY parent ORDER BY parent"
        )
        return [(row["parent"].removesuffix("://"), row["n"]) for row in rows]

    def refined_views(self) -> dict[str, list[tuple[View, str]]]:
        """Views that a model wrote: node uuid to `(view, signature of the node it was written for)`."""
        return refined_in(self.database.query("SELECT * FROM views"))

    def refined_views_of(self, node_uuid: str) -> list[tuple[View, str]]:
        """The same of one node."""
        rows = self.database.query("SELECT * FROM views WHERE node_uuid = ?", (node_uuid,))
        return refined_in(rows).get(node_uuid, [])

    def counts(self) -> dict[str, int]:
        """How many nodes and events there are, and the number of the last event."""
        ((nodes, events, last),) = self.database.query(
            "SELECT (SELECT count(*) FROM nodes), (SELECT count(*) FROM events),"
            " (SELECT coalesce(max(seq), 0) FROM events)"
        )
        return {"nodes": nodes, "events": events, "last_event": last}

    def last_event(self) -> int:
        """The number of the last event, 0 before the first. Quick however long the log is."""
        ((last,),) = self.database.query("SELECT coalesce(max(seq), 0) FROM events")
        return int(last)

    def events(self, where: str, arguments: Sequence[object] = ()) -> list[Event]:
        """Events; `where` is the rest of the statement, such as `WHERE node_uuid = ? ORDER BY seq DESC LIMIT 50`."""
        return [event_of(row) for row in self.database.query(f"SELECT * FROM events {where}", arguments)]  # noqa: S608  our own text

    def close(self) -> None:
        self.database.close()

    def _one(self, statement: str, argument: str) -> Node | None:
        rows = self.database.query(statement, (well_formed(argument),))
        return node_of(rows[0]) if rows else None
