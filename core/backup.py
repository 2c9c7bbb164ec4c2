"""Whole copies of the memory in its own form: one SQLite file with the log, everything that follows from it, and no free pages.

A copy is as of one moment, whatever is written meanwhile, and stands under its name only when it is complete.
"""

from __future__ import annotations

import contextlib
import os
import re
import sqlite3
import tempfile
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from lorehooks.core.clock import to_iso
from lorehooks.core.errors import ConflictError, InvalidError, StorageError
from lorehooks.core.home import Home
from lorehooks.core.readonly import looking_into
from lorehooks.core.schema import MIGRATIONS

MAGIC = b"SQLite format 3\x00"
AUTOMATIC, BEFORE_RESTORE = "auto", "before-restore"
_NAME = re.compile(r"lore-(\d{4}-\d\d-\d\dT\d\d-\d\d-\d\dZ)(?:-(auto|before-restore))?(?:-\d+)?\.db")


@dataclass(frozen=True, slots=True)
class Backup:
    """One copy in `H/backups`. `kind` is empty for one that a person asked for."""

    path: Path
    created_at: str
    size: int
    kind: str = ""


def write_backup(database: Path, target: Path) -> Path:
    """Copy a memory, in use or not, to a new file for its owner only. Answers the file.

    Raises NotFoundError without a memory, ConflictError when the target exists, StorageError when it cannot be written.
    """
    if target.exists():
        raise ConflictError(f"{target} exists already", hint="name another file")
    with looking_into(
        database, missing=f"There is no memory in {database.parent}", hint="lore remember TEXT"
    ) as memory:
        try:
            target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            handle, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
        except OSError as error:
            raise StorageError(f"{target} cannot be written: {error.strerror}", hint="name another file") from None
        os.close(handle)
        half = Path(name)
        try:
            memory.execute("VACUUM INTO ?", (name,))
            _settle(half)
            _name(half, target)
        except FileExistsError:
            raise ConflictError(f"{target} exists already", hint="name another file") from None
        except (sqlite3.Error, OSError) as error:
            raise StorageError(
                f"{target} could not be written: {error}", hint="free disk space, or name another file"
            ) from None
        finally:
            half.unlink(missing_ok=True)
    return target


def free_name(home: Home, now: datetime, kind: str = "") -> Path:
    """A name in `H/backups` that nothing has yet."""
    stem = f"lore-{now.astimezone(UTC):%Y-%m-%dT%H-%M-%SZ}" + (f"-{kind}" if kind else "")
    path, number = home.backups / f"{stem}.db", 1
    while path.exists():
        number += 1
        path = home.backups / f"{stem}-{number}.db"
    return path


def backups_of(home: Home) -> list[Backup]:
    """The copies in `H/backups`, newest first. What has another name there is somebody else's."""
    found = []
    with contextlib.suppress(FileNotFoundError):
        for path in home.backups.iterdir():
            named = _NAME.fullmatch(path.name)
            if named is not None and path.is_file():
                moment = datetime.strptime(named[1], "%Y-%m-%dT%H-%M-%SZ").replace(tzinfo=UTC)
                found.append(Backup(path, to_iso(moment), path.stat().st_size, named[2] or ""))
    return sorted(found, key=lambda backup: (backup.created_at, backup.path.name), reverse=True)


def automatic_backup(home: Home, *, every_hours: float, keep: int, now: datetime) -> Path | None:
    """Make a copy when the last automatic one is that old, and drop automatic ones beyond `keep`. Answers a new one.

    Copies that a person asked for, and those from before a restore, are never dropped.
    """
    if every_hours <= 0:
        return None
    automatic = [backup for backup in backups_of(home) if backup.kind == AUTOMATIC]
    due = to_iso(now - timedelta(hours=every_hours))
    if automatic and automatic[0].created_at > due:
        return None
    made = write_backup(home.database, free_name(home, now, AUTOMATIC))
    for backup in automatic[keep - 1 :]:
        backup.path.unlink(missing_ok=True)
    return made


def check_form(path: Path) -> None:
    """Raise InvalidError unless a file is a memory's own copy, of a release that this one can read."""
    try:
        with path.open("rb") as file:
            beginning = file.read(len(MAGIC))
    except OSError as error:
        raise InvalidError(f"{path} cannot be read: {error.strerror}") from None
    if beginning != MAGIC:
        hint = f"lore import '{path}'" if beginning.lstrip()[:1] in (b"{", b"-") else "lore backup makes one"
        raise InvalidError(f"{path} is no backup of a memory", hint=hint)
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro&immutable=1", uri=True)) as copy:
            (version,) = copy.execute("PRAGMA user_version").fetchone()
            copy.execute("SELECT seq FROM events LIMIT 1").fetchone()
            problems = [row[0] for row in copy.execute("PRAGMA integrity_check(1)") if row[0] != "ok"]
    except sqlite3.Error as error:
        raise InvalidError(f"{path} is damaged or no memory: {error}", hint="take another backup") from None
    if problems:
        raise InvalidError(f"{path} is damaged: {problems[0]}", hint="take another backup")
    if version > len(MIGRATIONS):
        raise InvalidError(
            f"{path} was written by a newer release of lorehooks", hint="pip install --upgrade lorehooks"
        )


def _name(half: Path, target: Path) -> None:
    """Give a complete file its name, and never another file's. Raises FileExistsError."""
    try:
        os.link(half, target)
    except FileExistsError:
        raise
    except OSError:  # a stick whose file system has no links
        half.rename(target)


def _settle(path: Path) -> None:
    """Hand a file to the disk before its name says that it is there."""
    path.chmod(0o600)
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
