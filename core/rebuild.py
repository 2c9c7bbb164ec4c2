"""Dropping the projections and building them again from the log, and the proof that this changes nothing."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from dataclasses import dataclass

from lorehooks.core.errors import LoreError, StorageError
from lorehooks.core.events import event_of, project
from lorehooks.core.projections import empty_copy
from lorehooks.core.schema import PROJECTIONS
from lorehooks.core.store import Store


@dataclass(frozen=True, slots=True)
class Verification:
    """Outcome of `verify`: what SQLite finds wrong, and which projections differ from the log, in one line each."""

    events: int
    nodes: int
    problems: tuple[str, ...]


def rebuild(store: Store, progress: Callable[[int], None] = lambda _: None) -> int:
    """Drop every projection and replay the log, in one transaction. Answers the number of events.

    Tables that are missing or changed come back as well. Raises StorageError, and then nothing has changed.
    """
    with store.database.write() as connection:
        count = rebuild_projections(connection, progress)
    store.reload_settings()
    return count


def rebuild_projections(connection: sqlite3.Connection, progress: Callable[[int], None] = lambda _: None) -> int:
    """The same inside a transaction that is open already."""
    for table, statements in _definitions().items():
        connection.execute(f"DROP TABLE IF EXISTS {table}")
        for statement in statements:
            connection.execute(statement)
    return _replay(connection, connection, progress)


def verify(store: Store) -> Verification:
    """Compare the projections with a replay of the log beside them, all as of one moment; nothing is changed."""
    problems = [f"the database file: {text}" for text in store.database.check()]
    events = nodes = 0
    replayed = empty_copy()
    try:
        with store.database.snapshot() as stored:
            (nodes,) = stored.execute("SELECT count(*) FROM nodes").fetchone()
            events = _replay(stored, replayed)
            for table in PROJECTIONS:
                problems += _differences(table, stored, replayed)
    except (sqlite3.Error, LoreError) as error:
        problems.append(str(error))
    finally:
        replayed.close()
    return Verification(events, nodes, tuple(problems))


def _replay(
    log: sqlite3.Connection, target: sqlite3.Connection, progress: Callable[[int], None] = lambda _: None
) -> int:
    count = 0
    for count, row in enumerate(log.execute("SELECT * FROM events ORDER BY seq"), start=1):
        try:
            project(target, event_of(row))
        except (sqlite3.Error, LoreError, AttributeError, LookupError, TypeError, ValueError) as error:
            raise StorageError(
                f"event {row['seq']} ({row['type']}) cannot be replayed: {error!r}",
                hint="lore restore",
                code="log_damaged",
            ) from error
        progress(count)
    return count


def _definitions() -> dict[str, list[str]]:
    """Each projection with the statements that create it and its indexes in the newest schema."""
    empty = empty_copy()
    try:
        return {
            table: [
                row["sql"]
                for row in empty.execute(
                    "SELECT sql FROM sqlite_master WHERE tbl_name = ? AND sql IS NOT NULL ORDER BY type DESC", (table,)
                )
            ]
            for table in PROJECTIONS
        }
    finally:
        empty.close()


def _differences(table: str, stored: sqlite3.Connection, replayed: sqlite3.Connection) -> list[str]:
    def rows(connection: sqlite3.Connection) -> set[tuple[object, ...]]:
        return {tuple(row) for row in connection.execute(f"SELECT * FROM {table}")}  # noqa: S608  our own names

    have, want = rows(stored), rows(replayed)
    found = []
    if have - want:
        found.append(f"{table}: {len(have - want)} rows that the log does not say (lore rebuild)")
    if want - have:
        found.append(f"{table}: {len(want - have)} rows missing that the log says (lore rebuild)")
    return found
