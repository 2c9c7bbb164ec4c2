"""Reading a database without changing a byte of it, its own log and index files included."""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

from lorehooks.core.errors import NotFoundError, StorageError
from lorehooks.core.sqlite_errors import primary_code

_PATIENCE_SECONDS = 2.0


@contextlib.contextmanager
def looking_into(path: Path, *, missing: str, hint: str) -> Iterator[sqlite3.Connection]:
    """A connection that cannot write. Works beside a running service and without one, also in a folder that is read-only.

    Raises NotFoundError with the words of `missing` and `hint` when there is no file, StorageError when it cannot be read.
    """
    if not path.exists():
        raise NotFoundError(missing, hint=hint)
    try:
        with contextlib.closing(open_read_only(path, seconds=_PATIENCE_SECONDS)) as connection:
            yield connection
    except sqlite3.Error as error:
        raise StorageError(f"{path} cannot be read: {error}", hint="lore doctor") from error


def open_read_only(path: Path, *, seconds: float, check_same_thread: bool = True) -> sqlite3.Connection:
    """Open beside the WAL where SQLite can do that, else (a folder closed to us, and no WAL) as a file that nobody changes.

    `seconds` is how long a statement waits for a lock. Raises sqlite3.Error.
    """
    try:
        return _opened(path, "mode=ro", seconds, check_same_thread)
    except sqlite3.Error as error:
        cannot_share = primary_code(error) in {sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN}
        if not cannot_share or _has_wal(path):
            raise  # a file without its WAL would show a state that never was
    return _opened(path, "immutable=1", seconds, check_same_thread)


def address_of(path: Path, mode: str = "") -> str:
    """The file as SQLite's `uri=True` takes it, whatever signs are in its name."""
    return f"file:{quote(os.fsencode(path.absolute()))}" + (f"?{mode}" if mode else "")


def _opened(path: Path, mode: str, seconds: float, check_same_thread: bool) -> sqlite3.Connection:
    connection = sqlite3.connect(
        address_of(path, mode), uri=True, isolation_level=None, timeout=seconds, check_same_thread=check_same_thread
    )
    connection.row_factory = sqlite3.Row
    try:
        connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    except BaseException:
        connection.close()
        raise
    return connection


def _has_wal(path: Path) -> bool:
    wal = path.with_name(f"{path.name}-wal")
    return wal.exists() and wal.stat().st_size > 0
