"""Who changed what and when, summed up from the log: for node pages, event lists and timelines of the Lore API."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from lorehooks.core.events import Event
from lorehooks.core.history import NODE_EVENTS
from lorehooks.core.store import Store

_TYPES = ",".join(f"'{name}'" for name in NODE_EVENTS)
_IN_LIST = 500
_HOT_NODES = 20


@dataclass(frozen=True, slots=True)
class Updater:
    """Everything that one runtime wrote to a memory by one route. `client_type` is None for a person or an import."""

    client_type: str | None
    source: str | None
    updated_at: str
    event_count: int


@dataclass(frozen=True, slots=True)
class HotNode:
    """A memory with many events in a window."""

    uri: str
    total: int
    creates: int
    updates: int
    deletes: int
    last_event_at: str


@dataclass(frozen=True, slots=True)
class Overview:
    """What happened in a window of days. The two lists of counts are ordered by count, then name."""

    total: int = 0
    nodes: int = 0
    last_event_at: str | None = None
    by_type: list[tuple[str, int]] = field(default_factory=list)
    by_source: list[tuple[str, int]] = field(default_factory=list)
    hot: list[HotNode] = field(default_factory=list)
    recent: list[Event] = field(default_factory=list)


def updaters(store: Store, uuids: Sequence[str]) -> dict[str, list[Updater]]:
    """Who wrote to each of these memories, the latest first."""
    found: dict[str, list[Updater]] = {uuid: [] for uuid in uuids}
    for start in range(0, len(uuids), _IN_LIST):
        part = uuids[start : start + _IN_LIST]
        marks = ",".join("?" * len(part))
        rows = store.database.query(
            "SELECT node_uuid, client_type, source, max(at) AS at, count(*) AS n, max(seq) AS last FROM events"  # noqa: S608  only ?
            f" WHERE node_uuid IN ({marks}) AND type IN ({_TYPES}) GROUP BY node_uuid, client_type, source"
            " ORDER BY last DESC",
            part,
        )
        for row in rows:
            found[row["node_uuid"]].append(Updater(row["client_type"], row["source"], row["at"], row["n"]))
    return found


def overview(
    store: Store, since: str, *, event_type: str | None, uri: str | None, source: str | None, limit: int
) -> Overview:
    """Events from a moment on, filtered, with the latest `limit` of them. Memories that are gone count too."""
    clauses, arguments = [f"type IN ({_TYPES})", "at >= ?"], [since]
    for column, value in (("type", event_type), ("uri", uri), ("source", source)):
        if value is not None:
            clauses.append(f"{column} = ?")
            arguments.append(value)
    where = "WHERE " + " AND ".join(clauses)

    def counts(column: str) -> list[tuple[str, int]]:
        rows = store.database.query(
            f"SELECT {column} AS name, count(*) AS n FROM events {where} GROUP BY 1 ORDER BY n DESC, name",  # noqa: S608  our own names
            arguments,
        )
        return [(row["name"], row["n"]) for row in rows]

    ((total, nodes, last),) = store.database.query(
        f"SELECT count(*), count(DISTINCT node_uuid), max(at) FROM events {where}",  # noqa: S608  our own names
        arguments,
    )
    return Overview(
        total=total,
        nodes=nodes,
        last_event_at=last,
        by_type=counts("type"),
        by_source=counts("source"),
        hot=_hot(store, where, arguments),
        recent=store.events(f"{where} ORDER BY seq DESC LIMIT ?", (*arguments, limit)),
    )


def writes_by_client(store: Store, since: str) -> dict[str | None, tuple[int, int, int]]:
    """How many memories each client created, updated and deleted from a moment on; our own first writes left out."""
    rows = store.database.query(
        "SELECT client_type, sum(type = 'create') AS created, sum(type = 'update') AS updated,"
        " sum(type = 'delete') AS deleted FROM events WHERE at >= ? AND source <> 'system'"
        " AND type IN ('create', 'update', 'delete') GROUP BY client_type",
        (since,),
    )
    return {row["client_type"]: (row["created"], row["updated"], row["deleted"]) for row in rows}


def timeline(store: Store, *, uuid: str | None, uri: str | None, limit: int) -> list[Event]:
    """The latest events of a memory, by identity or address, oldest first."""
    column, value = ("node_uuid", uuid) if uuid else ("uri", uri)
    where = f"WHERE {column} = ? AND type IN ({_TYPES}) ORDER BY seq DESC LIMIT ?"
    return list(reversed(store.events(where, (value, limit))))


def _hot(store: Store, where: str, arguments: Sequence[str]) -> list[HotNode]:
    rows = store.database.query(
        "SELECT uri, count(*) AS n, sum(type = 'create') AS creates, sum(type = 'update') AS updates,"  # noqa: S608  our own names
        f" sum(type = 'delete') AS deletes, max(at) AS last FROM events {where}"
        " GROUP BY uri ORDER BY n DESC, last DESC, uri LIMIT ?",
        (*arguments, _HOT_NODES),
    )
    return [HotNode(row["uri"], row["n"], row["creates"], row["updates"], row["deletes"], row["last"]) for row in rows]
