"""Vectors that were computed once, kept in the memory's database between runs of the service.

A cache and no projection: what cannot be read or written is computed again, so trouble with the file costs time only.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Mapping, Sequence

from lorehooks.core.database import Database
from lorehooks.core.errors import StorageError

_IN_LIST = 500
_PROFILES = """
WITH RECURSIVE each(profile) AS (
    SELECT min(profile) FROM vectors
    UNION ALL
    SELECT (SELECT min(profile) FROM vectors WHERE profile > each.profile) FROM each WHERE each.profile IS NOT NULL
)
SELECT profile FROM each WHERE profile IS NOT NULL
"""
"""Steps from one to the next, where DISTINCT would read every vector."""


class SqliteVectorCache:
    """Rows of the table `vectors`: profile of the model, key of the text, float16 bytes."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def get_many(self, profile: str, keys: Sequence[bytes]) -> dict[bytes, bytes]:
        """The vectors of these keys, as far as they are known."""
        found: dict[bytes, bytes] = {}
        try:
            for start in range(0, len(keys), _IN_LIST):
                part = keys[start : start + _IN_LIST]
                marks = ",".join("?" * len(part))
                rows = self._database.query(
                    f"SELECT key, vector FROM vectors WHERE profile = ? AND key IN ({marks})",  # noqa: S608  only ?
                    (profile, *part),
                )
                found.update((row["key"], row["vector"]) for row in rows)
        except StorageError:
            return found
        return found

    def known(self, profile: str) -> set[bytes]:
        """The keys of all vectors of a model."""
        try:
            return {row["key"] for row in self._database.query("SELECT key FROM vectors WHERE profile = ?", (profile,))}
        except StorageError:
            return set()

    def profiles(self) -> list[str]:
        """The models whose vectors are kept."""
        try:
            return [row["profile"] for row in self._database.query(_PROFILES)]
        except StorageError:
            return []

    def put_many(self, profile: str, rows: Mapping[bytes, bytes]) -> None:
        """Keep these vectors."""
        if not rows:
            return
        try:
            with self._database.write() as connection:
                connection.executemany(
                    "INSERT OR REPLACE INTO vectors (profile, key, vector) VALUES (?, ?, ?)",
                    ((profile, key, vector) for key, vector in rows.items()),
                )
        except StorageError:
            return

    def prune(self, profile: str, keep: Collection[bytes]) -> int:
        """Drop vectors of other profiles, and of texts that no memory has any more. Answers how many went."""
        wanted = set(keep)
        try:
            with self._database.write() as connection:
                dropped = connection.execute("DELETE FROM vectors WHERE profile <> ?", (profile,)).rowcount
                known = connection.execute("SELECT key FROM vectors WHERE profile = ?", (profile,)).fetchall()
                stale = [(profile, row["key"]) for row in known if row["key"] not in wanted]
                connection.executemany("DELETE FROM vectors WHERE profile = ? AND key = ?", stale)
        except StorageError:
            return 0
        return dropped + len(stale)


class KnownVectors:
    """What another process has computed, behind a connection that cannot write; nothing is written back."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def get_many(self, profile: str, keys: Sequence[bytes]) -> dict[bytes, bytes]:
        """The vectors of these keys, as far as they are known."""
        found: dict[bytes, bytes] = {}
        for start in range(0, len(keys), _IN_LIST):
            part = keys[start : start + _IN_LIST]
            marks = ",".join("?" * len(part))
            rows = self._connection.execute(
                f"SELECT key, vector FROM vectors WHERE profile = ? AND key IN ({marks})",  # noqa: S608  only ?
                (profile, *part),
            )
            found.update((row["key"], row["vector"]) for row in rows)
        return found

    def put_many(self, profile: str, rows: Mapping[bytes, bytes]) -> None:
        """Keep nothing: this is somebody else's database."""
