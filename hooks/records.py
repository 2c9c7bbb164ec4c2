"""Reading the records of hook runs (`core.runs` writes them): sessions, their timelines, single runs and their exact bytes."""

from __future__ import annotations

import json
import sqlite3
from dataclasses import dataclass, field
from typing import Any

from lorehooks.core.errors import InvalidError, NotFoundError
from lorehooks.core.model import Candidate, Signals

NO_SESSION = "-"
"""What stands for the session of runs whose host named none."""
_LISTED = 8
_RUNS = "SELECT runs.*, outputs.bytes FROM runs LEFT JOIN outputs ON outputs.sha = runs.output"


@dataclass(frozen=True, slots=True)
class SessionLine:
    """One session in the list. `shown` counts memories put before the model on prompts, `opened` those it then opened."""

    session_id: str
    client_type: str
    began_at: str
    last_at: str
    runs: int
    prompts: int
    shown: int
    opened: int


@dataclass(frozen=True, slots=True)
class OpenedLine:
    """A memory that was opened after a run showed it. `how` the ids came: `passed`, `filled` or `none`."""

    at: str
    uri: str
    how: str


@dataclass(frozen=True, slots=True)
class RunRecord:
    """One hook run as it was recorded. `reason` says why nothing was sent, and is empty when something was."""

    id: int
    at: str
    client_type: str
    event: str
    session_id: str
    epoch: int | None
    query_id: str | None
    reason: str
    ms: float
    input: dict[str, Any]
    recall: dict[str, Any] | None
    output: bytes
    opened: tuple[OpenedLine, ...] = field(default=())

    @property
    def host_session(self) -> str | None:
        """The session's id as the host gave it, or None."""
        return None if self.session_id == NO_SESSION else self.session_id

    @property
    def prompt(self) -> str:
        """What the person asked, secrets masked; empty for other events."""
        return str(self.input.get("prompt", ""))

    @property
    def candidates(self) -> tuple[Candidate, ...]:
        """What recall considered, best first."""
        return tuple(candidate_of(record) for record in (self.recall or {}).get("candidates", ()))

    @property
    def shown(self) -> tuple[Candidate, ...]:
        return tuple(candidate for candidate in self.candidates if not candidate.withheld)


class Records:
    """The records behind a read-only connection (`core.readonly`)."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def sessions(self, limit: int) -> list[SessionLine]:
        """Sessions by their last run, newest first."""
        rows = self._connection.execute(
            "SELECT session_id, client_type, min(at) AS began_at, max(at) AS last_at, max(id) AS last_id, count(*) AS runs,"
            " sum(event = 'prompt.submit') AS prompts FROM runs"
            " GROUP BY session_id, client_type ORDER BY last_id DESC LIMIT ?",
            (limit,),
        ).fetchall()
        return [
            SessionLine(
                row["session_id"] or NO_SESSION,
                row["client_type"],
                row["began_at"],
                row["last_at"],
                row["runs"],
                row["prompts"],
                self._shown_in(row["session_id"], row["client_type"]),
                self._opened_in(row["session_id"], row["client_type"]),
            )
            for row in rows
        ]

    def runs(self, session_id: str, client_type: str) -> list[RunRecord]:
        """The runs of one session in order, each with what was opened after it."""
        rows = self._connection.execute(
            f"{_RUNS} WHERE session_id IS ? AND client_type = ? ORDER BY id",
            (None if session_id == NO_SESSION else session_id, client_type),
        )
        return [self._run(row) for row in rows.fetchall()]

    def run(self, number: int) -> RunRecord:
        """One run by its number. Raises NotFoundError."""
        row = self._connection.execute(f"{_RUNS} WHERE id = ?", (number,)).fetchone()
        if row is None:
            raise _nothing(str(number))
        return self._run(row)

    def find(self, name: str) -> RunRecord | list[RunRecord]:
        """A run by its number or query id, or a session's runs by its id; the beginning of an id is enough.

        Raises NotFoundError, and InvalidError with the ids that begin so when there are several.
        """
        if name.isascii() and name.isdigit():
            row = self._connection.execute(f"{_RUNS} WHERE id = ?", (int(name[:18]),)).fetchone()
            if row is not None:
                return self._run(row)
        sessions = self._session_ids(name)
        queries = self._query_ids(name)
        exact = [each for each in sessions if each[0] == name]
        if len(exact) == 1 or (len(sessions) == 1 and not queries):
            return self.runs(*(exact or sessions)[0])
        if len(queries) == 1 and not sessions:
            return self.run(queries[0][0])
        if not sessions and not queries:
            raise _nothing(name)
        found = [f"{client_type} {session_id}" for session_id, client_type in sessions]
        found += [f"run {number} {query_id}" for number, query_id in queries]
        more = f" and {len(found) - _LISTED} more" if len(found) > _LISTED else ""
        raise InvalidError(
            f"{name!r} is the beginning of {len(found)} ids: {', '.join(found[:_LISTED])}{more}",
            hint="give more of it",
            code="ambiguous",
        )

    def _session_ids(self, beginning: str) -> list[tuple[str, str]]:
        rows = self._connection.execute(
            "SELECT DISTINCT coalesce(session_id, ?1) AS session_id, client_type FROM runs"
            " WHERE substr(coalesce(session_id, ?1), 1, ?2) = ?3 ORDER BY session_id",
            (NO_SESSION, len(beginning), beginning),
        )
        return [(row["session_id"], row["client_type"]) for row in rows]

    def _query_ids(self, beginning: str) -> list[tuple[int, str]]:
        rows = self._connection.execute(
            "SELECT id, query_id FROM runs WHERE substr(query_id, 1, ?) = ? ORDER BY id", (len(beginning), beginning)
        )
        return [(row["id"], row["query_id"]) for row in rows]

    def _run(self, row: sqlite3.Row) -> RunRecord:
        return RunRecord(
            id=row["id"],
            at=row["at"],
            client_type=row["client_type"],
            event=row["event"],
            session_id=row["session_id"] or NO_SESSION,
            epoch=row["epoch"],
            query_id=row["query_id"],
            reason=row["reason"],
            ms=row["ms"],
            input=json.loads(row["input"]),
            recall=json.loads(row["recall"]) if row["recall"] else None,
            output=row["bytes"] or b"",
            opened=self._opened_after(row["query_id"]) if row["query_id"] else (),
        )

    def _opened_after(self, query_id: str) -> tuple[OpenedLine, ...]:
        rows = self._connection.execute(
            "SELECT at, uri, how FROM opened WHERE query_id = ? ORDER BY at, rowid", (query_id,)
        )
        return tuple(OpenedLine(row["at"], row["uri"], row["how"]) for row in rows)

    def _shown_in(self, session_id: str | None, client_type: str) -> int:
        """Counted for the sessions of a list only: looking into every record of a month takes seconds."""
        count: int = self._connection.execute(
            "SELECT count(*) FROM runs, json_each(runs.recall, '$.candidates') AS candidate"
            " WHERE session_id IS ? AND client_type = ? AND json_extract(candidate.value, '$.withheld') = ''",
            (session_id, client_type),
        ).fetchone()[0]
        return count

    def _opened_in(self, session_id: str | None, client_type: str) -> int:
        count: int = self._connection.execute(
            "SELECT count(*) FROM opened WHERE query_id IS NOT NULL AND (session_id = ?1 OR query_id IN"
            " (SELECT query_id FROM runs WHERE session_id IS ?1 AND client_type = ?2))",
            (session_id, client_type),
        ).fetchone()[0]
        return count


def candidate_of(record: dict[str, Any]) -> Candidate:
    """A candidate as it was before `core.runs.candidate_record` wrote it down."""
    return Candidate(
        **{
            **record,
            "raw": Signals(**record["raw"]),
            "weighted": Signals(**record["weighted"]),
            "cues": tuple(record["cues"]),
            "matched_on": tuple(record["matched_on"]),
            "views": tuple(record["views"]),
        }
    )


def _nothing(name: str) -> NotFoundError:
    return NotFoundError(f"No recorded session or run begins with {name!r}", hint="lore replay")
