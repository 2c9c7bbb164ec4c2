"""SQLite through one opening function: WAL, a busy timeout below every hook limit, recorded migrations.

One writer at a time (a lock in this process, `BEGIN IMMEDIATE` against others); readers never wait for a writer.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import sqlite3
import threading
import time
import weakref
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from lorehooks.core.errors import StorageError
from lorehooks.core.readonly import address_of, open_read_only
from lorehooks.core.sqlite_errors import is_busy, storage_error

BUSY_TIMEOUT_MS = 1_500
"""A write waits this long for another process. Below the prompt limit, so that a locked file never costs more than it."""

_CLOSE_PATIENCE_S = 2.0
"""How long closing waits for another thread's read to notice that it was broken off."""

_OPEN_PATIENCE_S = 5.0
"""Several programs that create one database at once get in each other's way for a moment, whatever the busy timeout."""


@dataclass(frozen=True, slots=True)
class Migration:
    """One step of a schema. Never edited once released: a further step is added instead."""

    name: str
    script: str

    def statements(self) -> Iterator[str]:
        """The script's statements one by one, since `executescript` would commit in between."""
        statement = ""
        for piece in self.script.split(";"):
            statement += f"{piece};"
            if sqlite3.complete_statement(statement):
                if statement.strip(" \t\r\n;"):
                    yield statement
                statement = ""


class _Reader:
    """One thread's connection for reading; closed when the thread ends, so that short-lived threads leave nothing open.

    `lock` is held while it is used: SQLite's library crashes when a connection is closed under a running statement.
    """

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.connection = connection
        self.lock = threading.RLock()

    def __del__(self) -> None:
        with contextlib.suppress(sqlite3.Error):
            self.connection.close()


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

        A database newer than the code, and one that this user may not write, opens read-only (`read_only` is then true).
        Raises StorageError when the file is no database, cannot be opened, or cannot be created.
        """
        self.path = path
        self._durability = durability
        self._busy_timeout_ms = busy_timeout_ms
        self._local = threading.local()
        self._write_lock = threading.Lock()
        self._writing_thread: int | None = None
        self._readers: weakref.WeakSet[_Reader] = weakref.WeakSet()
        self._closed = False
        self._refusal: StorageError | None = None
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            if path.exists() and not _writable(path):
                folder = shlex.quote(str(path.parent))
                self._refusal = StorageError(
                    f"{path} is open for reading only: this user may not write it",
                    hint=f'give it back: chown -R "$USER" {folder} && chmod -R u+rwX {folder}',
                    code="database_read_only",
                )
            self._writer = self._connect_patiently()
            try:
                self._migrate(migrations)
            except BaseException:
                self._writer.close()
                raise
        except (OSError, sqlite3.Error) as error:
            raise storage_error(path, error) from error

    @property
    def read_only(self) -> bool:
        """Whether writes are refused: the file is newer than this code, or this user may not write it."""
        return self._refusal is not None

    def _connect_patiently(self) -> sqlite3.Connection:
        give_up = time.monotonic() + _OPEN_PATIENCE_S
        while True:
            try:
                return self._connect()
            except sqlite3.OperationalError as error:
                if not is_busy(error) or time.monotonic() > give_up:
                    raise
            time.sleep(0.02)

    def _connect(self) -> sqlite3.Connection:
        if self._refusal is not None and self._refusal.code == "database_read_only":
            return open_read_only(self.path, seconds=self._busy_timeout_ms / 1000, check_same_thread=False)
        if not self.path.exists():
            self.path.touch(mode=0o600)
        connection = sqlite3.connect(
            address_of(self.path),
            uri=True,
            isolation_level=None,
            check_same_thread=False,
            timeout=self._busy_timeout_ms / 1000,
        )
        connection.row_factory = sqlite3.Row
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute(f"PRAGMA synchronous = {self._durability}")
            if self._durability == "FULL":
                connection.execute("PRAGMA fullfsync = ON")  # macOS: fsync alone leaves the bytes in the drive's cache
            connection.execute("PRAGMA foreign_keys = ON")
            connection.execute("PRAGMA secure_delete = ON")  # what `lore forget` removes leaves no bytes in free pages
        except BaseException:
            connection.close()
            raise
        return connection

    def _migrate(self, migrations: Sequence[Migration]) -> None:
        newest = len(migrations)
        version = _schema_version(self._writer)
        if version > newest:
            self._refusal = StorageError(
                f"{self.path} was written by a newer release of lorehooks and is open for reading only",
                hint="pip install --upgrade lorehooks",
                code="database_newer",
            )
        if version >= newest or self._refusal is not None:
            return
        with self.write() as connection:
            version = _schema_version(connection)  # another process may have been quicker
            if version >= newest:
                return
            if version == 0:
                connection.execute(
                    "CREATE TABLE migrations (version INTEGER PRIMARY KEY, name TEXT NOT NULL, at TEXT NOT NULL"
                    " DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ', 'now')))"
                )
            for number, step in enumerate(migrations[version:], start=version + 1):
                for statement in step.statements():
                    connection.execute(statement)
                connection.execute("INSERT INTO migrations (version, name) VALUES (?, ?)", (number, step.name))
            connection.execute(f"PRAGMA user_version = {newest}")

    def _reader(self) -> _Reader:
        reader: _Reader | None = getattr(self._local, "reader", None)
        if reader is None:
            if self._closed:
                raise StorageError(f"{self.path} is closed")
            try:
                reader = self._local.reader = _Reader(self._connect())
            except (OSError, sqlite3.Error) as error:
                raise storage_error(self.path, error) from error
            reader.connection.execute("PRAGMA query_only = ON")
            self._readers.add(reader)
        return reader

    def query(self, statement: str, arguments: Sequence[object] = ()) -> list[sqlite3.Row]:
        """All rows of a reading statement. Raises StorageError."""
        reader = self._reader()
        with reader.lock:
            try:
                return reader.connection.execute(statement, arguments).fetchall()
            except sqlite3.Error as error:
                raise storage_error(self.path, error) from error

    @contextlib.contextmanager
    def snapshot(self) -> Iterator[sqlite3.Connection]:
        """This thread's reading connection, held at one state of the database until the end of the block."""
        reader = self._reader()
        with reader.lock:
            reader.connection.execute("BEGIN")
            try:
                yield reader.connection
            finally:
                with contextlib.suppress(sqlite3.Error):
                    reader.connection.execute("COMMIT")

    @contextlib.contextmanager
    def write(self) -> Iterator[sqlite3.Connection]:
        """One transaction: committed at the end of the block, rolled back on any exception.

        Raises StorageError when the database is read-only, locked by another process, or the disk refuses, and
        sqlite3.IntegrityError as it is.
        """
        with self._exclusive():
            try:
                self._writer.execute("BEGIN IMMEDIATE")
                try:
                    yield self._writer
                    self._writer.execute("COMMIT")
                except BaseException:
                    with contextlib.suppress(sqlite3.Error):  # a full disk has rolled back by itself
                        if self._writer.in_transaction:
                            self._writer.execute("ROLLBACK")
                    raise
            except sqlite3.IntegrityError:
                raise
            except sqlite3.Error as error:
                raise storage_error(self.path, error) from error

    @contextlib.contextmanager
    def _exclusive(self) -> Iterator[None]:
        if self._refusal is not None:
            raise StorageError(self._refusal.message, hint=self._refusal.hint, code=self._refusal.code)
        if self._writing_thread == threading.get_ident():
            raise RuntimeError("a write inside a write of the same thread would wait for itself")
        with self._write_lock:
            if self._closed:
                raise StorageError(f"{self.path} is closed")
            self._writing_thread = threading.get_ident()
            try:
                yield
            finally:
                self._writing_thread = None

    def compact(self) -> None:
        """Write the file anew from what it holds and empty the WAL, so that nothing deleted is left in a byte of either.

        Raises StorageError, with code `database_locked` while another program still reads the old state.
        """
        with self._exclusive():
            try:
                self._writer.execute("VACUUM")
                busy = True
                give_up = time.monotonic() + self._busy_timeout_ms / 1000
                while busy and time.monotonic() < give_up:
                    (busy, _, _) = self._writer.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
            except sqlite3.Error as error:
                raise storage_error(self.path, error) from error
        if busy:
            raise StorageError(
                f"{self.path}-wal still holds old bytes, since another program reads them",
                hint="end that program, then repeat the command",
                code="database_locked",
            )

    def check(self) -> list[str]:
        """What SQLite finds wrong with the file; empty when it is sound."""
        try:
            rows = self.query("PRAGMA integrity_check")
        except StorageError as error:
            return [error.message]
        return [row[0] for row in rows if row[0] != "ok"]

    def close(self) -> None:
        """Let go of the file. A write that is under way is finished first, reads in other threads are broken off."""
        with self._write_lock:
            self._closed = True
            for reader in list(self._readers):
                _close_reader(reader)
            with contextlib.suppress(sqlite3.Error):
                self._writer.close()  # last, so that the WAL is folded into the file
        self._local = threading.local()


def _close_reader(reader: _Reader) -> None:
    with contextlib.suppress(sqlite3.Error):
        reader.connection.interrupt()
    if reader.lock.acquire(timeout=_CLOSE_PATIENCE_S):  # else its thread closes it when it ends
        try:
            with contextlib.suppress(sqlite3.Error):
                reader.connection.close()
        finally:
            reader.lock.release()


def _schema_version(connection: sqlite3.Connection) -> int:
    version: int = connection.execute("PRAGMA user_version").fetchone()[0]
    return version


def _writable(path: Path) -> bool:
    """Whether SQLite may write the file and, for its WAL, the folder."""
    effective = os.access in os.supports_effective_ids
    return os.access(path, os.R_OK | os.W_OK, effective_ids=effective) and os.access(
        path.parent, os.W_OK | os.X_OK, effective_ids=effective
    )
