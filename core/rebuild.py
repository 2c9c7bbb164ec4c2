"""Dropping the projections and building them again from the log, and the proof that this changes nothing."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from dataclasses import dataclass

from lorehooks.core.events import project, read_events
from lorehooks.core.schema import MIGRATIONS, PROJECTIONS
from lorehooks.core.store import Store


@dataclass(frozen=True, slots=True)
class Verification:
    """Outcome of `verify`: what SQLite finds wrong, and which projections differ from the log, in one line each."""

    events: int
    nodes: int
    problems: tuple[str, ...]


def rebuild(store: Store, progress: Callable[[int], None] = lambda _: None) -> int:
    """Drop every projection and replay the log, in one transaction. Answers the number of events."""
    count = 0
    with store.database.write() as connection:
        for table in PROJECTIONS:
            connection.execute(f"DELETE FROM {table}")  # noqa: S608  our own names
        for count, event in enumerate(read_events(connection), start=1):
            project(connection, event)
            progress(count)
    return count


def verify(store: Store) -> Verification:
    """Compare the projections with a replay of the log beside them; nothing is changed."""
    problems = [f"the database file: {text}" for text in store.database.check()]
    replayed = _empty_copy()
    try:
        for event in read_events(store.database.read):
            project(replayed, event)
        for table in PROJECTIONS:
            problems += _differences(table, store.database.read, replayed)
    except (sqlite3.Error, KeyError, ValueError) as error:
        problems.append(f"the event log cannot be replayed: {error}")
    finally:
        replayed.close()
    counts = store.counts()
    return Verification(counts["events"], counts["nodes"], tuple(problems))


def _empty_copy() -> sqlite3.Connection:
    connection = sqlite3.connect(":memory:", isolation_level=None)
    connection.row_factory = sqlite3.Row
    for step in MIGRATIONS:
        connection.executescript(step.script)
    return connection


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
