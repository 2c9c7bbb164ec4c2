"""The part of `lore forget` that concerns copies of the memory in `H/backups`: they forget the same."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from lorehooks.core import uri as uris
from lorehooks.core.backup import backups_of
from lorehooks.core.errors import LoreError
from lorehooks.core.forget import forget, holds, plan_in
from lorehooks.core.home import Home
from lorehooks.core.model import Origin
from lorehooks.core.readonly import looking_into
from lorehooks.core.store import Store


@dataclass(frozen=True, slots=True)
class BackupsForgotten:
    """Names of the copies that were written anew, and of those that could not be, with the reason."""

    changed: tuple[str, ...] = ()
    left: tuple[str, ...] = ()


def plan_backups(
    home: Home, addresses: Sequence[uris.Uri], matching: str, uuids: Collection[str]
) -> dict[str, list[str]]:
    """Copies that hold what is to go: name to those addresses that they know. One that cannot be read knows none."""
    found: dict[str, list[str]] = {}
    for backup in backups_of(home):
        try:
            with looking_into(backup.path, missing="", hint="") as memory:
                known = [address for address in addresses if holds(memory, address)]
                if plan_in(memory, known, matching, uuids):
                    found[backup.path.name] = [str(address) for address in known]
        except (LoreError, sqlite3.Error):
            continue
    return found


def forget_in_backups(
    home: Home, origin: Origin, addresses: Sequence[uris.Uri], matching: str, uuids: Collection[str]
) -> BackupsForgotten:
    """Purge every copy that holds what goes. Raises nothing: what could not be cleaned is in `left`."""
    changed, left = [], []
    for backup in backups_of(home):
        try:
            if _forget_in(backup.path, origin, addresses, matching, uuids):
                changed.append(backup.path.name)
        except LoreError as error:
            left.append(f"{backup.path} cannot be cleaned, so delete it: {error.message}")
    return BackupsForgotten(tuple(changed), tuple(left))


def _forget_in(
    path: Path, origin: Origin, addresses: Sequence[uris.Uri], matching: str, uuids: Collection[str]
) -> bool:
    with looking_into(path, missing="", hint="") as memory:
        known = [address for address in addresses if holds(memory, address)]
        if not plan_in(memory, known, matching, uuids):
            return False
    with closing(Store(path)) as store:
        result = forget(store, origin, known, matching, uuids)
        if result.left:
            raise LoreError(result.left)
    return True
