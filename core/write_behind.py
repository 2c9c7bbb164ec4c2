"""Statements that are written a moment after the answer, in a thread of their own.

For logs only: what is queued is lost when the process is killed. A locked or full disk delays the queue and nobody else.
"""

from __future__ import annotations

import sqlite3
import threading
from collections import deque
from collections.abc import Callable, Sequence

from lorehooks.core.database import Database
from lorehooks.core.errors import StorageError
from lorehooks.core.wellformed import well_formed

Statement = tuple[str, tuple[object, ...]]
Work = Callable[[], Sequence[Statement]]

_MAX_WAITING = 10_000
_BATCH = 500
_LATER_SECONDS = 0.05
"""A batch waits this long, so that writing does not compete with the answer that is just being sent."""
_RETRY_SECONDS = 1.0
_PASSING = ("database_locked", "disk_refused", "database_read_only")
"""Refusals that may end by themselves."""


class WriteBehind:
    """A queue of statements for one database. `put` never waits and never raises."""

    def __init__(self, database: Database, name: str) -> None:
        self.dropped = 0
        """Statements lost: the oldest of a full queue, and those that the database will never take."""
        self.last_error = ""
        self._database = database
        self._waiting: deque[Statement | Work] = deque()
        self._changed = threading.Condition()
        self._writing = False
        self._hurry = False
        self._stop = False
        self._thread = threading.Thread(target=self._work, name=name, daemon=True)
        self._thread.start()

    @property
    def waiting(self) -> int:
        """Statements that are not written yet."""
        return len(self._waiting)

    def put(self, statement: str, arguments: tuple[object, ...]) -> None:
        """Queue one statement."""
        self._queue((statement, arguments))

    def put_later(self, work: Work) -> None:
        """Queue statements that are yet to be made: `work` runs in the writing thread and must read nothing that changes."""
        self._queue(work)

    def _queue(self, item: Statement | Work) -> None:
        with self._changed:
            if len(self._waiting) >= _MAX_WAITING:
                self._waiting.popleft()
                self.dropped += 1
            self._waiting.append(item)
            self._changed.notify_all()

    def flush(self, seconds: float = 5.0) -> bool:
        """Wait until everything queued is written; False when it was not within the time."""
        with self._changed:
            self._hurry = True
            self._changed.notify_all()
            return self._changed.wait_for(lambda: not self._waiting and not self._writing, seconds)

    def close(self, seconds: float = 5.0) -> None:
        """Write what is queued, as far as the time goes, and end the thread."""
        self.flush(seconds)
        with self._changed:
            self._stop = True
            self._changed.notify_all()
        self._thread.join(timeout=3)

    def _work(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._waiting or self._stop)
                if self._stop:
                    return
                self._changed.wait_for(lambda: self._hurry or self._stop, _LATER_SECONDS)
                batch = [self._waiting.popleft() for _ in range(min(_BATCH, len(self._waiting)))]
                self._writing = True
            refused = self._write(self._made(batch))
            with self._changed:
                self._waiting.extendleft(reversed(refused))
                self._writing = False
                self._hurry = self._hurry and bool(self._waiting)
                self._changed.notify_all()
                if refused:
                    self._changed.wait_for(lambda: self._stop, _RETRY_SECONDS)

    def _made(self, batch: Sequence[Statement | Work]) -> list[Statement]:
        made: list[Statement] = []
        for item in batch:
            try:
                made += item() if callable(item) else [item]
            except Exception as error:  # noqa: BLE001  a record that cannot be made must not end the thread
                self.dropped += 1
                self.last_error = f"{type(error).__name__}: {error}"
        return [(text, tuple(well_formed(v) if isinstance(v, str) else v for v in values)) for text, values in made]

    def _write(self, batch: list[Statement]) -> list[Statement]:
        """Write a batch; answers what has to be tried again. One statement that never fits does not hold up the rest."""
        try:
            with self._database.write() as connection:
                for statement, arguments in batch:
                    connection.execute(statement, arguments)
        except (StorageError, sqlite3.Error, OverflowError) as error:  # the last for a number that SQLite cannot hold
            self.last_error = str(error)
            if isinstance(error, StorageError) and error.code in _PASSING:
                return batch
            if len(batch) > 1:
                return [left for statement in batch for left in self._write([statement])]
            self.dropped += 1
        else:
            if batch:
                self.last_error = ""
        return []
