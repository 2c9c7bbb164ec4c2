"""SQLite through one opening function: WAL, a busy timeout below every hook limit, recorded migrations.

One writer at a time (a lock in this process, `BEGIN IMMEDIATE` against others); readers never wait for a writer.
"""

from __future__ import annotations

import contextlib
import sqlite3
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from lorehooks.core.errors import StorageError

BUSY_TIMEOUT_MS = 1_500
"""A write waits this long for another process. Below the prompt limit, so that a locked file never costs more than it."""


@dataclass(frozen=True, slots=True)
class Migration:
    """One step of a schema. Never edited once released: a further step is added instead."""

    name: str
    script: str


class Database:
    """One SQLite file. Safe to use from several threads."""

    def __init__(
        self,
        path: Path,
        migrations: Sequence[Migration],
        *,
        durability: Literal["FULL", "NORMAL"] = "FULL",
        busy_timeout_ms: int = BUSY_TIMEOUT_MS,
    ) -> None:
        """Open or create the file and bring it to the newest schema.

        A database newer than the code opens read-only (`read_only` is then true). Raises StorageError when the file is
        no database, cannot be opened, or cannot be created.
        """
        self.path = path
        self.read_only = False
        self._durability = durability
        self._busy_timeout_ms = busy_timeout_ms
        self._local = threading.local()
        self._write_lock = threading.Lock()
        self._opened: list[sqlite3.Connection] = []
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._writer = self._connect()
            self._migrate(migrations)
        except (OSError, sqlite3.Error) as error:
            raise _storage_error(path, error) from error

    def _connect(self) -> sqlite3.Connection:
        if not self.path.exists():
            self.path.touch(mode=0o600)
        connection = sqlite3.connect(
            self.path, isolation_level=None, check_same_thread=False, timeout=self._busy_timeout_ms / 1000
        )
        connection.row_factory = sqlite3.Row
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute(f"PRAGMA synchronous = {self._durability}")
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute("PRAGMA secure_delete = ON")  # what `lore forget` removes leaves no bytes in free pages
        self._opened.append(connection)
        return connection

    def _migrate(self, migrations: Sequence[Migration]) -> None:
        version = self._writer.execute("PRAGMA user_version").fetchone()[0]
        if version > len(migrations):
            self.read_only = True
            return
        if version == len(migrations):
            return
        with self.write() as connection:
            version = connection.execute("PRAGMA user_version").fetchone()[0]  # another process may have been quicker
            if version == 0:
                connection.execute(
                    "CREATE TABLE migrations (version INTEGER PRIMARY KEY, name TEXT NOT NULL, at TEXT NOT NULL"
                    " DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ', 'now')))"
                )
            for number, step in enumerate(migrations[version:], start=version + 1):
                for statement in step.script.split(";"):
                    if statement.strip():
                        connection.execute(statement)
                connection.execute("INSERT INTO migrations (version, name) VALUES (?, ?)", (number, step.name))
            connection.execute(f"PRAGMA user_version = {len(migrations)}")

    @property
    def read(self) -> sqlite3.Connection:
        """This thread's connection for reading. Sees each committed write."""
        connection: sqlite3.Connection | None = getattr(self._local, "connection", None)
        if connection is None:
            connection = self._local.connection = self._connect()
        return connection

    @contextlib.contextmanager
    def write(self) -> Iterator[sqlite3.Connection]:
        """One transaction: committed at the end of the block, rolled back on any exception.

        Raises StorageError when the database is read-only, locked by another process, or the disk refuses.
        """
        if self.read_only:
            raise StorageError(
                f"{self.path} was written by a newer release of lorehooks and is open for reading only",
                hint="pip install --upgrade lorehooks",
                code="database_newer",
            )
        with self._write_lock:
            try:
                self._writer.execute("BEGIN IMMEDIATE")
                try:
                    yield self._writer
                    self._writer.execute("COMMIT")
                except BaseException:
                    if self._writer.in_transaction:
                        self._writer.execute("ROLLBACK")
                    raise
            except sqlite3.IntegrityError:
                raise
            except sqlite3.Error as error:
                raise _storage_error(self.path, error) from error

    def check(self) -> list[str]:
        """What SQLite finds wrong with the file; empty when it is sound."""
        try:
            rows = self.read.execute("PRAGMA integrity_check").fetchall()
        except sqlite3.Error as error:
            return [str(error)]
        return [row[0] for row in rows if row[0] != "ok"]

    def close(self) -> None:
        for connection in self._opened:
            with contextlib.suppress(sqlite3.Error):
                connection.close()
        self._opened.clear()
        self._local = threading.local()


def _storage_error(path: Path, error: Exception) -> StorageError:
    text = str(error)
    if "locked" in text or "busy" in text:
        return StorageError(
            f"{path} is locked by another process",
            hint="end the program that holds it, then try again",
            code="database_locked",
        )
    if "full" in text or "disk I/O" in text:
        return StorageError(f"{path} could not be written: {text}", hint="free disk space, then: lore doctor")
    if "not a database" in text or "malformed" in text:
        return StorageError(f"{path} is damaged: {text}", hint="lore verify, then lore restore")
    return StorageError(f"{path} could not be opened: {text}", hint="lore doctor")
