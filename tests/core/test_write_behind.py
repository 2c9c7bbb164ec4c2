from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from lorehooks.core.database import Database, Migration
from lorehooks.core.write_behind import WriteBehind

TABLE = (Migration("one table", "CREATE TABLE lines (n INTEGER PRIMARY KEY, text TEXT NOT NULL)"),)
INSERT = "INSERT INTO lines (n, text) VALUES (?, ?)"


@pytest.fixture
def database(tmp_path: Path):
    database = Database(tmp_path / "log.db", TABLE, durability="NORMAL", busy_timeout_ms=50)
    yield database
    database.close()


@pytest.fixture
def queue(database: Database):
    queue = WriteBehind(database, "test")
    yield queue
    queue.close(0.1)


def numbers(database: Database) -> list[int]:
    return [row[0] for row in database.query("SELECT n FROM lines ORDER BY n")]


def test_everything_queued_is_written_in_order(queue: WriteBehind, database: Database) -> None:
    for n in range(1200):
        queue.put(INSERT, (n, "x"))
    assert queue.flush(30)
    assert numbers(database) == list(range(1200))


def test_a_statement_that_never_fits_costs_itself_and_nothing_else(queue: WriteBehind, database: Database) -> None:
    queue.put(INSERT, (1, "a"))
    queue.put("INSERT INTO no_such_table VALUES (1)", ())
    queue.put(INSERT, (1, "the same key again"))
    queue.put(INSERT, (2**70, "a number that SQLite cannot hold"))
    queue.put(INSERT, (2, "b"))
    assert queue.flush(30)
    assert (numbers(database), queue.dropped) == ([1, 2], 3)


def test_a_locked_database_delays_the_queue_and_loses_nothing(queue: WriteBehind, database: Database) -> None:
    other = sqlite3.connect(database.path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    queue.put(INSERT, (1, "a"))
    assert not queue.flush(0.5)
    assert "locked" in queue.last_error
    other.execute("COMMIT")
    other.close()
    assert queue.flush(30)
    assert (numbers(database), queue.dropped, queue.last_error) == ([1], 0, "")


def test_text_that_sqlite_cannot_bind_is_made_to_fit(queue: WriteBehind, database: Database) -> None:
    queue.put(INSERT, (1, "half \ud83d"))
    assert queue.flush(30)
    assert database.query("SELECT text FROM lines")[0][0] == "half \ufffd"


def test_closing_writes_what_is_queued(database: Database) -> None:
    queue = WriteBehind(database, "test")
    queue.put(INSERT, (1, "a"))
    queue.close(30)
    assert numbers(database) == [1]


def test_what_is_made_later_is_written_and_what_cannot_be_made_costs_itself(
    queue: WriteBehind, database: Database
) -> None:
    queue.put_later(lambda: [(INSERT, (1, "a")), (INSERT, (2, "b"))])
    queue.put_later(lambda: [(INSERT, (1 // 0, "never"))])
    queue.put(INSERT, (3, "c"))
    assert queue.flush(30)
    assert (numbers(database), queue.dropped) == ([1, 2, 3], 1)
