"""The part of `lore forget` that concerns records: runs, sent bytes, sessions and opened nodes that mention what goes."""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Iterator, Sequence
from typing import Any

from lorehooks.core.errors import StorageError
from lorehooks.core.runs import Recorder

_TABLES = {
    "runs": ("id", ("session_id", "input", "recall")),
    "outputs": ("sha", ("bytes",)),
    "opened": ("rowid", ("session_id", "uri")),
    "sessions": ("rowid", ("session_id", "boot", "project", "shown", "in_epoch")),
}
"""Key and text columns of each table."""


def count_records(recorder: Recorder, texts: Sequence[str]) -> int:
    """How many records hold one of the texts. Raises StorageError."""
    _write_queue(recorder)
    pattern = _pattern(texts)
    with recorder.database.snapshot() as connection:
        return sum(len(_found_in(connection, table, pattern)) for table in _TABLES)


def forget_records(recorder: Recorder, texts: Sequence[str], *, boot: bool) -> int:
    """Remove every record that holds one of the texts, in any case, and write the file anew. Answers how many went.

    With `boot`, what was sent at session starts goes too: it carries whole boot nodes. Raises StorageError when the
    records cannot be written, and then none has gone.
    """
    pattern = _pattern(texts)
    _write_queue(recorder)
    with recorder.database.write() as connection:
        gone = sum(_forget_in(connection, table, pattern) for table in _TABLES)
        if boot:
            gone += connection.execute("DELETE FROM runs WHERE event IN ('session.start', 'subagent.start')").rowcount
            gone += connection.execute("DELETE FROM sessions WHERE boot IS NOT NULL").rowcount
            connection.execute(
                "DELETE FROM outputs WHERE sha NOT IN (SELECT output FROM runs WHERE output IS NOT NULL)"
            )
        gone += connection.execute(
            "DELETE FROM runs WHERE output IS NOT NULL AND output NOT IN (SELECT sha FROM outputs)"
        ).rowcount
    recorder.database.compact()
    return gone


def _pattern(texts: Sequence[str]) -> re.Pattern[str]:
    return re.compile("|".join(re.escape(text) for text in texts if text.strip()) or r"(?!)", re.IGNORECASE)


def _write_queue(recorder: Recorder) -> None:
    if not recorder.flush():
        raise StorageError(f"{recorder.database.path} could not be written: {recorder.last_error}", hint="lore doctor")


def _forget_in(connection: sqlite3.Connection, table: str, pattern: re.Pattern[str]) -> int:
    found = _found_in(connection, table, pattern)
    where = " AND ".join(f"{name} = ?" for name in _keys(table))
    connection.executemany(f"DELETE FROM {table} WHERE {where}", found)  # noqa: S608  our own names
    return len(found)


def _found_in(connection: sqlite3.Connection, table: str, pattern: re.Pattern[str]) -> list[tuple[object, ...]]:
    """Keys of the rows that hold what is looked for."""
    keys, columns = _keys(table), _TABLES[table][1]
    return [
        tuple(row[name] for name in keys)
        for row in connection.execute(f"SELECT {', '.join((*keys, *columns))} FROM {table}")  # noqa: S608  our own names
        if any(pattern.search(text) for name in columns for text in _texts(row[name]))
    ]


def _keys(table: str) -> tuple[str, ...]:
    return ("client_type", "session_id") if table == "sessions" else (_TABLES[table][0],)


def _texts(value: str | bytes | None) -> Iterator[str]:
    """What a column says: the strings inside when it is JSON, where they stand unescaped, and the text itself."""
    if value is None:
        return
    text = value.decode("utf-8", "replace") if isinstance(value, bytes) else value
    yield text
    if text[:1] in ("{", "["):
        try:
            yield from _strings(json.loads(text))
        except (ValueError, RecursionError):
            return


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for name, item in value.items():
            yield name
            yield from _strings(item)
    elif isinstance(value, list):
        for item in value:
            yield from _strings(item)
