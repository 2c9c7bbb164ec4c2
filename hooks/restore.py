"""Putting a backup in the place of a memory: checked beside it first, exchanged while no service runs, the former one kept."""

from __future__ import annotations

import contextlib
import os
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from lorehooks.core.backup import BEFORE_RESTORE, check_form, free_name
from lorehooks.core.clock import system_clock
from lorehooks.core.errors import ConflictError, InvalidError, LoreError, StorageError
from lorehooks.core.home import Home
from lorehooks.core.rebuild import rebuild, verify
from lorehooks.core.store import Store
from lorehooks.hooks import claim, service
from lorehooks.hooks.place import check_place

_COMPANIONS = ("-wal", "-shm")
_TRIES = 5
"""An agent's prompt may start a service between its end and the exchange."""


@dataclass(frozen=True, slots=True)
class Restored:
    """What is in force now. `former` is where the memory from before lies; None when there was none."""

    memories: int
    events: int
    former: Path | None


def restore(home: Home, file: Path, *, step: Callable[[str], None] = lambda _: None) -> Restored:
    """Make a backup the memory of this home. Raises LoreError, and then the memory is what it was.

    `step` is told what is being done.
    """
    home = Home(home.root.absolute())
    now = service.status(home)
    if now.running and now.info is not None and now.info.mode == "foreground":
        raise ConflictError("lore serve uses this memory", hint="end it, then repeat the command")
    check_form(file)
    check_place(home)
    with _beside(home) as copy:
        step("Checking the backup")
        memories, events = _checked_copy(home, file, copy)
        step("Exchanging the memory")
        former = _exchange(home, lambda: _put_in_place(home, copy))
    step("Starting the service")
    try:
        service.start(home)
    except LoreError as error:
        if former is None:
            raise
        _exchange(home, lambda: _put_back(home, former))
        raise StorageError(f"The restored memory does not open, the former one is back: {error}") from error
    return Restored(memories, events, former)


@contextlib.contextmanager
def _beside(home: Home) -> Iterator[Path]:
    """A place for the copy, next to the memory so that it can be renamed; nothing of it is left behind."""
    copy = home.database.with_name(f"{home.database.name}.restoring")
    leftovers = [copy, *(_companion(copy, sign) for sign in _COMPANIONS)]
    for path in leftovers:
        path.unlink(missing_ok=True)
    try:
        yield copy
    finally:
        for path in leftovers:
            path.unlink(missing_ok=True)


def _checked_copy(home: Home, file: Path, copy: Path) -> tuple[int, int]:
    """Copy a backup and hold it against its own log; tables that differ are built from the log, which is the truth."""
    try:
        copy.touch(mode=0o600)
        shutil.copyfile(file, copy)
    except OSError as error:
        raise StorageError(f"{file} could not be copied: {error.strerror}", hint="free disk space") from None
    try:
        with closing(Store(copy)) as store:
            found = verify(store)
            if found.problems:
                rebuild(store)
                found = verify(store)
            if found.problems:
                raise InvalidError(f"{file} is damaged: {found.problems[0]}", hint="take another backup")
            _go_on_numbering(store, home.database)
    except StorageError as error:
        raise InvalidError(f"{file} is damaged: {error.message}", hint="take another backup") from None
    return found.nodes, found.events


def _go_on_numbering(store: Store, former: Path) -> None:
    """No number of an event of the former memory is ever given to another one: records of hook runs name them."""
    try:
        with closing(sqlite3.connect(f"{former.as_uri()}?mode=ro", uri=True)) as before:
            row = before.execute("SELECT seq FROM sqlite_sequence WHERE name = 'events'").fetchone()
    except sqlite3.Error:
        return  # none there, or damaged, which may be why it is replaced
    if row is not None:
        with store.database.write() as connection:
            connection.execute("UPDATE sqlite_sequence SET seq = max(seq, ?) WHERE name = 'events'", (row[0],))


def _exchange(home: Home, put: Callable[[], Path | None]) -> Path | None:
    """End the service, keep others from starting, and do it."""
    for _ in range(_TRIES):
        service.stop(home)
        with claim.held(home) as ours:
            if ours:
                return put()
    raise ConflictError("Agents start the service again and again", hint="run lore restore once more")


def _put_in_place(home: Home, copy: Path) -> Path | None:
    former = None
    if home.database.exists():
        _fold(home.database)
        former = free_name(home, system_clock(), BEFORE_RESTORE)
        former.parent.mkdir(mode=0o700, exist_ok=True)
        _keep(home.database, former)
        _take_companions(home.database, former)
    copy.replace(home.database)
    return former


def _put_back(home: Home, former: Path) -> None:
    for sign in _COMPANIONS:
        _companion(home.database, sign).unlink(missing_ok=True)
    former.replace(home.database)
    wal = _companion(former, "-wal")
    if wal.exists():
        wal.replace(_companion(home.database, "-wal"))


def _fold(database: Path) -> None:
    """Bring what stands in the WAL into the file, where a sound file lets us."""
    with contextlib.suppress(sqlite3.Error), closing(sqlite3.connect(database)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def _keep(database: Path, former: Path) -> None:
    """A second name for the same file where that can be, so that the memory is never without one; else a copy."""
    try:
        os.link(database, former)
    except OSError:
        shutil.copy2(database, former)
        former.chmod(0o600)


def _take_companions(database: Path, former: Path) -> None:
    """A WAL belongs to its file: beside another one it would be replayed into it."""
    wal = _companion(database, "-wal")
    if wal.exists() and wal.stat().st_size:
        wal.replace(_companion(former, "-wal"))
    wal.unlink(missing_ok=True)
    _companion(database, "-shm").unlink(missing_ok=True)


def _companion(database: Path, sign: str) -> Path:
    return database.with_name(database.name + sign)
