"""What SQLite's errors mean to a person: the file, what is wrong with it, and the command that mends it."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from lorehooks.core.errors import StorageError


def primary_code(error: BaseException) -> int:
    """SQLite's own code of an error, without its extended part; 0 for an error of another kind."""
    code: int = getattr(error, "sqlite_errorcode", 0)
    return code & 0xFF


def is_busy(error: BaseException) -> bool:
    """Whether another connection stands in the way, which may be over in a moment."""
    return primary_code(error) in {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}


def storage_error(path: Path, error: Exception) -> StorageError:
    """The same as an error of ours. `code` is one of `database_locked`, `database_damaged`, `disk_refused` and others."""
    text = str(error)
    match primary_code(error):
        case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
            return StorageError(
                f"{path} is locked by another process",
                hint="end the program that holds it, then try again",
                code="database_locked",
            )
        case sqlite3.SQLITE_FULL | sqlite3.SQLITE_IOERR:
            return StorageError(
                f"{path} could not be written: {text}", hint="free disk space, then: lore doctor", code="disk_refused"
            )
        case sqlite3.SQLITE_NOTADB | sqlite3.SQLITE_CORRUPT:
            return StorageError(
                f"{path} is damaged: {text}", hint="lore verify, then lore restore", code="database_damaged"
            )
        case sqlite3.SQLITE_READONLY:
            return StorageError(f"{path} may not be written: {text}", hint="lore doctor", code="database_read_only")
    if isinstance(error, OSError) or primary_code(error) == sqlite3.SQLITE_CANTOPEN:
        return StorageError(f"{path} could not be opened: {text}", hint="lore doctor")
    return StorageError(f"{path} could not be used: {text}", hint="lore doctor")
