"""Records of hook runs, for replay: what came in, what recall weighed, what was sent, what was opened afterwards.

They are a log beside the memory: masked, local, pruned by age and size, and written behind the answer. A memory that is
locked or full costs records, never a prompt.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields
from datetime import timedelta
from hashlib import sha256
from pathlib import Path
from typing import Any

from lorehooks.core.clock import Clock, system_clock, to_iso
from lorehooks.core.database import Database, Migration
from lorehooks.core.errors import StorageError
from lorehooks.core.model import Candidate, Signals
from lorehooks.core.secrets import find_secrets, mask
from lorehooks.core.write_behind import Statement, WriteBehind

MIGRATIONS = (
    Migration(
        "runs and sessions",
        """
        CREATE TABLE runs (
            id INTEGER PRIMARY KEY AUTOINCREMENT,
            at TEXT NOT NULL,
            client_type TEXT NOT NULL,
            event TEXT NOT NULL,
            session_id TEXT,
            epoch INTEGER,
            query_id TEXT,
            reason TEXT NOT NULL,
            ms REAL NOT NULL,
            input TEXT NOT NULL,
            recall TEXT,
            output TEXT
        );
        CREATE INDEX runs_by_session ON runs (session_id, id);
        CREATE INDEX runs_by_query ON runs (query_id);
        CREATE TABLE outputs (sha TEXT PRIMARY KEY, bytes BLOB NOT NULL) WITHOUT ROWID;
        CREATE TABLE opened (
            at TEXT NOT NULL,
            client_type TEXT,
            session_id TEXT,
            query_id TEXT,
            uri TEXT NOT NULL,
            how TEXT NOT NULL
        );
        CREATE INDEX opened_by_query ON opened (query_id);
        CREATE TABLE sessions (
            client_type TEXT NOT NULL,
            session_id TEXT NOT NULL,
            epoch INTEGER NOT NULL,
            boot TEXT,
            boot_key TEXT NOT NULL,
            project TEXT,
            shown TEXT NOT NULL,
            in_epoch TEXT NOT NULL,
            seen_at TEXT NOT NULL,
            PRIMARY KEY (client_type, session_id)
        ) WITHOUT ROWID
        """,
    ),
)


_INSERT_RUN = (
    "INSERT INTO runs (at, client_type, event, session_id, epoch, query_id, reason, ms, input, recall, output)"
    " VALUES (?,?,?,?,?,?,?,?,?,?,?)"
)
_INSERT_OUTPUT = "INSERT OR IGNORE INTO outputs (sha, bytes) VALUES (?, ?)"


@dataclass(frozen=True, slots=True)
class Run:
    """One hook run. `recall` holds what makes it repeatable; `output` the exact bytes that the host got."""

    at: str
    client_type: str
    event: str
    session_id: str | None
    epoch: int | None
    query_id: str | None
    reason: str
    """Why nothing was sent, such as `blank` or `no_match`; empty when something was."""
    ms: float
    input: dict[str, Any] = field(default_factory=dict)
    recall: dict[str, Any] | None = None
    output: bytes = b""


@dataclass(frozen=True, slots=True)
class Shown:
    """Which memories a recall put before whom."""

    client_type: str | None
    session_id: str | None
    uris: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Opened:
    """A memory that was opened, with the ids as they came. `how` is `passed`, `filled` or `none`."""

    at: str
    client_type: str | None
    session_id: str | None
    query_id: str | None
    uri: str
    how: str


_CANDIDATE = tuple(each.name for each in fields(Candidate))
_SIGNALS = tuple(each.name for each in fields(Signals))
"""Read one by one: `asdict` copies every value deeply, which took longer than recall."""


def candidate_record(candidate: Candidate) -> dict[str, Any]:
    """A candidate as it is kept: everything that decided its fate, nothing of its content."""
    record = {name: getattr(candidate, name) for name in _CANDIDATE}
    for parts in ("raw", "weighted"):
        signals = record[parts]
        record[parts] = {name: value for name in _SIGNALS if (value := getattr(signals, name))}
    return record


_HARMLESS = 8
"""Characters that hold no secret of any form: half of a record's texts are that short."""


def _dump(record: dict[str, Any]) -> str:
    """JSON in which every text is masked by itself: masking the document could cut it short.

    Most records hold no secret, which one look at all their texts tells: none reaches across a line's end but a key block.
    """
    masked = _masked(record) if find_secrets("\n".join(_texts(record))) else record
    return json.dumps(masked, ensure_ascii=False)


def _texts(record: dict[str, Any]) -> list[str]:
    """All texts in a record that may hold a secret."""
    found: list[str] = []
    values: list[Any] = [record]
    while values:
        value = values.pop()
        if isinstance(value, str):
            if len(value) > _HARMLESS:
                found.append(value)
        elif isinstance(value, dict):
            values += value.values()
        elif isinstance(value, list | tuple):
            values += value
    return found


def _masked(value: Any) -> Any:
    if isinstance(value, str):
        return mask(value)
    if isinstance(value, dict):
        return {name: _masked(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_masked(item) for item in value]
    return value


def _statements(run: Run) -> list[Statement]:
    sha = sha256(run.output).hexdigest() if run.output else None
    values = (
        run.at,
        run.client_type,
        run.event,
        run.session_id,
        run.epoch,
        run.query_id,
        run.reason,
        run.ms,
        _dump(run.input),
        None if run.recall is None else _dump(run.recall),
        sha,
    )
    statements: list[Statement] = [(_INSERT_RUN, values)]
    return [(_INSERT_OUTPUT, (sha, run.output)), *statements] if sha else statements


class Recorder:
    """Writes records in a thread of its own. `put` never waits and never raises."""

    def __init__(self, path: Path, clock: Clock = system_clock) -> None:
        """Open or create the records. Raises StorageError."""
        self.database = Database(path, MIGRATIONS, durability="NORMAL")
        self.clock = clock
        self._queue = WriteBehind(self.database, "recorder")
        self.put = self._queue.put
        self.flush = self._queue.flush

    @property
    def waiting(self) -> int:
        """Statements that are not written yet."""
        return self._queue.waiting

    @property
    def dropped(self) -> int:
        """Records that were lost, because writing failed for long."""
        return self._queue.dropped

    @property
    def last_error(self) -> str:
        """Why the last attempt to write failed; empty when it did not."""
        return self._queue.last_error

    def add(self, make: Callable[[], Sequence[Run]]) -> None:
        """Queue the records of what has just been answered. They are made, and secrets in them masked, after the answer."""
        self._queue.put_later(lambda: [statement for run in make() for statement in _statements(run)])

    def opened(self, mark: Opened) -> None:
        """Queue that a memory was opened."""
        self.put(
            "INSERT INTO opened (at, client_type, session_id, query_id, uri, how) VALUES (?,?,?,?,?,?)",
            (mark.at, mark.client_type, mark.session_id, mark.query_id, mark.uri, mark.how),
        )

    def shown(self, query_id: str) -> Shown | None:
        """What a recorded recall showed to whom; None for an id that no record has."""
        try:
            rows = self.database.query(
                "SELECT client_type, session_id, recall FROM runs WHERE query_id = ? AND recall IS NOT NULL LIMIT 1",
                (query_id,),
            )
        except StorageError:
            return None
        for row in rows:
            candidates = json.loads(row["recall"])["candidates"]
            uris = tuple(candidate["uri"] for candidate in candidates if not candidate["withheld"])
            return Shown(row["client_type"], row["session_id"], uris)
        return None

    def prune(self, days: int, megabytes: int) -> None:
        """Queue the removal of what is too old, and of the oldest when there is too much. Raises StorageError."""
        before = to_iso(self.clock() - timedelta(days=days))
        for table, column in (("runs", "at"), ("opened", "at"), ("sessions", "seen_at")):
            self.put(f"DELETE FROM {table} WHERE {column} < ?", (before,))  # noqa: S608  our own names
        if self._bytes() > megabytes * 1_000_000:
            for table, order in (("runs", "id"), ("sessions", "seen_at")):
                self.put(
                    f"DELETE FROM {table} WHERE {order} <= (SELECT {order} FROM {table} ORDER BY {order} LIMIT 1"  # noqa: S608  our own names
                    f" OFFSET (SELECT count(*) / 4 FROM {table}))",
                    (),
                )
        self.put("DELETE FROM outputs WHERE sha NOT IN (SELECT output FROM runs WHERE output IS NOT NULL)", ())

    def _bytes(self) -> int:
        """What the records take. Pages that a removal freed are used again and do not count, though the file keeps them."""
        page, pages, free = (
            int(self.database.query(f"PRAGMA {name}")[0][0]) for name in ("page_size", "page_count", "freelist_count")
        )
        return page * (pages - free)

    def close(self) -> None:
        """Write what is queued, within a few seconds, and let go of the file."""
        self._queue.close()
        self.database.close()
