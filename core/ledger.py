"""The session ledger: what was sent to which session in which epoch, and which recall showed what.

An epoch begins with a session start, a clear and a compaction: what was in the context before is gone for the model.
The ledger lives in memory and is written behind the answer, so that a locked disk never delays a prompt; after a restart
of the service a session is read back the first time it is seen.
"""

from __future__ import annotations

import json
import math
import sqlite3
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from lorehooks.core.errors import StorageError
from lorehooks.core.tool_backend import RecallIds

Query = Callable[[str, Sequence[object]], list[sqlite3.Row]]
"""All rows of a reading statement, such as `Database.query`. Raises StorageError."""

MAX_SESSIONS = 1_000
"""Sessions kept in memory; older ones are read back from disk when they return."""


@dataclass(slots=True)
class Session:
    """One session of one runtime. `boot` is the text that this epoch got, or None before the first."""

    client_type: str
    session_id: str
    epoch: int = 0
    boot: str | None = None
    boot_key: str = ""
    """What of the boot block decides whether it must be sent again on a resume."""
    project: str | None = None
    shown: dict[str, str] = field(default_factory=dict)
    """URI to the query id of the latest recall that showed it."""
    shown_in_epoch: set[str] = field(default_factory=set)
    boot_on_resume: float = -math.inf
    """Monotonic second at which a resume brought the boot block, until the prompt that it was for."""

    def begin_epoch(self, *, keep_boot: bool = False) -> None:
        """Forget what the model cannot see any more."""
        self.epoch += 1
        if not keep_boot:
            self.boot = None
            self.boot_key = ""
        self.shown_in_epoch.clear()

    def note_shown(self, query_id: str, shown: Sequence[str]) -> None:
        for uri in shown:
            self.shown[uri] = query_id
            self.shown_in_epoch.add(uri)

    def ids_for(self, uri: str) -> RecallIds | None:
        """The ids of the latest recall in this session that showed the address."""
        query_id = self.shown.get(uri)
        return RecallIds(self.session_id, query_id) if query_id else None


class Ledger:
    """All sessions, the recently used in memory. `query` reads them back, `save` takes a write that may happen later."""

    def __init__(self, query: Query, save: Callable[[str, tuple[object, ...]], None]) -> None:
        self._query = query
        self._save = save
        self._sessions: OrderedDict[tuple[str, str], Session] = OrderedDict()

    def session(self, client_type: str, session_id: str) -> Session:
        """The session, from memory, from disk, or new."""
        key = (client_type, session_id)
        session = self._sessions.get(key)
        if session is None:
            session = self._sessions[key] = self._load(client_type, session_id)
            if len(self._sessions) > MAX_SESSIONS:
                self._sessions.popitem(last=False)
        self._sessions.move_to_end(key)
        return session

    def drop_cached(self) -> None:
        """Read every session back from disk the next time, after something was removed there."""
        self._sessions.clear()

    def keep(self, session: Session, at: str) -> None:
        """Write down where a session stands."""
        self._save(
            "INSERT OR REPLACE INTO sessions (client_type, session_id, epoch, boot, boot_key, project, shown, in_epoch,"
            " seen_at) VALUES (?,?,?,?,?,?,?,?,?)",
            (
                session.client_type,
                session.session_id,
                session.epoch,
                session.boot,
                session.boot_key,
                session.project,
                json.dumps(session.shown),
                json.dumps(sorted(session.shown_in_epoch)),
                at,
            ),
        )

    def _load(self, client_type: str, session_id: str) -> Session:
        session = Session(client_type, session_id)
        try:
            rows = self._query(
                "SELECT * FROM sessions WHERE client_type = ? AND session_id = ?", (client_type, session_id)
            )
        except StorageError:
            rows = []  # a session that cannot be read back begins anew: better a block twice than none
        for row in rows:
            session.epoch = row["epoch"]
            session.boot = row["boot"]
            session.boot_key = row["boot_key"]
            session.project = row["project"]
            session.shown = json.loads(row["shown"])
            session.shown_in_epoch = set(json.loads(row["in_epoch"]))
        return session
