"""Looking into a database that another process owns, without changing a byte of it."""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

from lorehooks.core.errors import NotFoundError, StorageError


@contextlib.contextmanager
def looking_into(path: Path, *, missing: str, hint: str) -> Iterator[sqlite3.Connection]:
    """A connection that cannot write. Works beside a running service and without one, also in a folder that is read-only.

    Raises NotFoundError with the words of `missing` and `hint` when there is no file, StorageError when it is damaged.
    """
    if not path.exists():
        raise NotFoundError(missing, hint=hint)
    try:
        connection = _open(path)
        try:
            yield connection
        finally:
            connection.close()
    except sqlite3.Error as error:
        raise StorageError(f"{path} cannot be read: {error}", hint="lore doctor") from error


def _open(path: Path) -> sqlite3.Connection:
    """Beside its WAL where SQLite can do that, else (a read-only folder without one) as a file that nobody changes."""
    for mode in ("mode=ro", "immutable=1"):
        address = f"file:{quote(os.fsencode(path.absolute()))}?{mode}"
        connection = sqlite3.connect(address, uri=True, isolation_level=None, timeout=2)
        connection.row_factory = sqlite3.Row
        try:
            connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
        except sqlite3.Error:
            connection.close()
            if mode == "immutable=1":
                raise
            continue
        return connection
    raise AssertionError  # the loop returns or raises
