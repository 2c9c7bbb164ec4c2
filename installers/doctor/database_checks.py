"""The two database files: readable, sound, of a schema we know, free of other programs' locks, taking writes."""

from __future__ import annotations

import os
import sqlite3
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from lorehooks.clients.config import EMBEDDED
from lorehooks.core import runs, schema
from lorehooks.core.errors import LoreError
from lorehooks.core.readonly import address_of, looking_into
from lorehooks.installers.doctor.finding import Finding, note, ok, problem
from lorehooks.installers.doctor.subject import Subject

_LOCK_SECONDS = 1.0


def check(subject: Subject) -> Iterator[Finding]:
    """The memory, if it is kept here, and the records."""
    state = subject.state or {}
    if subject.target.address == EMBEDDED and subject.home.database.exists():
        troubles = [*_file("memory", subject.home.database, len(schema.MIGRATIONS), subject), *_writes(state)]
        yield from troubles or [ok("memory", "database", f"{subject.home.database} is sound and takes writes")]
    if subject.home.records.exists():
        troubles = [*_file("records", subject.home.records, len(runs.MIGRATIONS), subject), *_queue(state)]
        yield from troubles or [
            ok("records", "database", f"{subject.home.records} is sound, and nothing waits to be written")
        ]


def _file(area: str, path: Path, newest: int, subject: Subject) -> Iterator[Finding]:
    try:
        with looking_into(path, missing="", hint="") as database:
            version = database.execute("PRAGMA user_version").fetchone()[0]
            wrong = [row[0] for row in database.execute("PRAGMA quick_check(1)") if row[0] != "ok"]
    except (LoreError, sqlite3.Error) as error:
        text = error.message if isinstance(error, LoreError) else f"{path} cannot be read: {error}"
        yield problem(area, "damaged", text, _cure(area, path))
        return
    if wrong:
        yield problem(area, "damaged", f"{path} is damaged: {wrong[0]}", _cure(area, path))
    elif version > newest:
        text = f"{path} was written by a newer release of lorehooks and is open for reading only"
        yield problem(area, "newer", text, "pip install --upgrade lorehooks")
    elif _is_locked(path):
        info = subject.service.info
        yield from _locked(area, path, _holders(path) - {os.getpid()}, info.pid if info else 0)


def _cure(area: str, path: Path) -> str:
    return "lore verify" if area == "memory" else f"lore service stop, then move {path} away: records begin anew"


def _is_locked(path: Path) -> bool:
    """Whether a write would be refused because another program holds the file. Nothing is written."""
    if not os.access(path, os.W_OK) or not os.access(path.parent, os.W_OK):
        return False  # said by the checks of the home
    try:
        database = sqlite3.connect(address_of(path, "mode=rw"), uri=True, isolation_level=None)
        try:
            database.execute(f"PRAGMA busy_timeout = {_LOCK_SECONDS * 1000:.0f}")
            database.execute("BEGIN IMMEDIATE")
            database.execute("ROLLBACK")
        finally:
            database.close()
    except sqlite3.OperationalError as error:
        return error.sqlite_errorcode & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
    return False


def _locked(area: str, path: Path, holders: set[int], service: int) -> Iterator[Finding]:
    others = sorted(holders - {service})
    if holders and not others:
        yield note(area, "busy", f"The service has been writing to {path} for a while")
        return
    named = f" (pid {', '.join(map(str, others))})" if others else ""
    text = f"{path} is locked by another program{named}: writes are refused, recall goes on"
    yield problem(area, "locked", text, f"kill {others[0]}" if len(others) == 1 else "end the program that holds it")


def _holders(path: Path) -> set[int]:
    """Processes that have the file open, as far as this user may see; none where the system does not tell."""
    if sys.platform != "linux":
        return set()
    wanted, found = os.path.realpath(path), set()
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if any(os.path.realpath(each) == wanted for each in (process / "fd").iterdir()):
                found.add(int(process.name))
        except OSError:
            continue
    return found


def _writes(state: Mapping[str, Any]) -> Iterator[Finding]:
    memory = state.get("memory") or {}
    if memory.get("write_error"):
        yield problem(
            "memory", "write_refused", f"The last write was refused: {memory['write_error']}", "lore service restart"
        )


def _queue(state: Mapping[str, Any]) -> Iterator[Finding]:
    records = state.get("records") or {}
    if records.get("error"):
        text = f"{records['waiting']} lines of records wait, since writing fails: {records['error']}"
        yield problem(
            "records", "waiting", text, "free what holds or fills the file; they are written by themselves then"
        )
    if records.get("dropped"):
        yield note(
            "records", "dropped", f"{records['dropped']} lines of records were lost, because writing failed for long"
        )
