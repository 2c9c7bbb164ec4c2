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


def forget_records(recorder: Recorder, texts: Sequence[str], *, boot: bool) -> int:
    """Remove every record that holds one of the texts, in any case, and write the file anew. Answers how many went.

    With `boot`, what was sent at session starts goes too: it carries whole boot nodes. Raises StorageError when the
    records cannot be written, and then none has gone.
    """
    pattern = re.compile("|".join(re.escape(text) for text in texts if text.strip()) or r"(?!)", re.IGNORECASE)
    if not recorder.flush():
        raise StorageError(f"{recorder.database.path} could not be written: {recorder.last_error}", hint="lore doctor")
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


def _forget_in(connection: sqlite3.Connection, table: str, pattern: re.Pattern[str]) -> int:
    key, columns = _TABLES[table]
    keys = ("client_type", "session_id") if table == "sessions" else (key,)
    found = [
        tuple(row[name] for name in keys)
        for row in connection.execute(f"SELECT {', '.join((*keys, *columns))} FROM {table}")  # noqa: S608  our own names
        if any(pattern.search(text) for name in columns for text in _texts(row[name]))
    ]
    where = " AND ".join(f"{name} = ?" for name in keys)
    connection.executemany(f"DELETE FROM {table} WHERE {where}", found)  # noqa: S608  our own names
    return len(found)


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
