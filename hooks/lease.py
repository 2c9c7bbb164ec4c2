"""The note in a home that names the machine which owns its database.

A lock keeps two services of one machine apart, but a home in a synchronised or shared folder can meet two machines, whose
locks do not see each other, and then SQLite's files break. So the service writes `lease.json` with the machine and the
time, renews it while it runs and removes it when it ends. Another machine that finds a note renewed within `FRESH` seconds
leaves the database alone. The note of a machine that crashed goes stale by itself; a container or a machine started anew
on the same kernel or with the same machine id takes it over at once, since there the lock has already decided.
"""

from __future__ import annotations

import json
import os
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from lorehooks.core.errors import StorageError
from lorehooks.core.files import write_whole
from lorehooks.core.home import Home

FRESH = 180.0
"""Seconds after which a note that nobody renews no longer counts."""
RENEW = 60.0
"""Seconds between two renewals."""


@dataclass(frozen=True, slots=True)
class Lease:
    """Who owns the database. `heartbeat` is Unix time in seconds; `boot` is empty where the system has no boot id."""

    host: str
    machine: str
    boot: str
    pid: int
    heartbeat: float

    def is_ours(self, mine: Lease) -> bool:
        """Whether the lock of this machine covers that owner, too: one kernel, or one machine started again."""
        return (bool(self.boot) and self.boot == mine.boot) or self.machine == mine.machine


def lease_file(home: Home) -> Path:
    return home.root / "lease.json"


def here() -> Lease:
    """This machine, now."""
    machine = _first_line("/etc/machine-id")
    if not machine:
        import uuid  # only systems without that file pay for it

        machine = f"{uuid.getnode():012x}"
    boot = _first_line("/proc/sys/kernel/random/boot_id")
    return Lease(os.uname().nodename, machine, boot, os.getpid(), time.time())


def read_lease(home: Home) -> Lease | None:
    """The note in the home; None when there is none or it cannot be read."""
    try:
        return Lease(**json.loads(lease_file(home).read_bytes()))
    except (OSError, ValueError, TypeError):
        return None


def check_lease(home: Home) -> None:
    """Raise StorageError when another machine holds the database now."""
    found, mine = read_lease(home), here()
    if found is None or found.is_ours(mine):
        return
    age = mine.heartbeat - found.heartbeat
    if abs(age) < FRESH:
        raise StorageError(
            f"The memory in {home.root} is in use on {found.host} (last sign {max(age, 0):.0f} s ago)",
            hint="lore connect URL of that machine's lore serve, or end it there",
        )


def write_lease(home: Home) -> None:
    """Take or renew the note. Only the holder of the service lock calls it, after `check_lease`."""
    write_whole(lease_file(home), json.dumps(asdict(here())).encode())


def drop_lease(home: Home) -> None:
    """Remove our own note."""
    found = read_lease(home)
    if found is not None and found.pid == os.getpid() and found.is_ours(here()):
        lease_file(home).unlink(missing_ok=True)


def _first_line(path: str) -> str:
    try:
        return Path(path).read_text(encoding="ascii", errors="replace").strip()
    except OSError:
        return ""
