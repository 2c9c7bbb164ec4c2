"""The folder that everything lies in: whose it is, whether it takes writes, on which disk."""

from __future__ import annotations

import os
import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path

from lorehooks.core.errors import LoreError
from lorehooks.hooks import lease, place
from lorehooks.installers.doctor.finding import Finding, note, ok, problem
from lorehooks.installers.doctor.subject import Subject

AREA = "home"
_FULL, _NEARLY_FULL = 50_000_000, 500_000_000
"""Bytes below which a disk counts as full, and as nearly full."""


def check(subject: Subject) -> Iterator[Finding]:
    """Where the home is and whether it may be used as one."""
    root = subject.home.root
    if subject.context.environment.get("LORE_DISABLE", "0") not in ("", "0"):
        text = "LORE_DISABLE is set, so agents that are started from here get no memory"
        yield note(AREA, "disabled", text, "unset LORE_DISABLE")
    if not subject.is_there:
        if root.exists() or root.is_symlink():
            yield problem(AREA, "no_folder", f"{root} is no folder", "set LORE_HOME to another place")
        else:
            yield note(AREA, "no_home", f"There is no memory at {root} yet", "lore install")
        return
    troubles = [*_rights(subject), *_disk(root), *_shared(subject)]
    yield from troubles or [ok(AREA, "home", f"{root} is yours and takes writes")]
    if not subject.receipts:
        yield note(AREA, "no_agents", "No agent has this memory yet", "lore install")
    for text in subject.config.problems:
        yield problem(AREA, "config", text, "lore config list")


def _rights(subject: Subject) -> Iterator[Finding]:
    home = subject.home
    folder = shlex.quote(str(home.root))
    present = [path for path in (home.root, home.run, home.bin, home.database, home.records) if path.exists()]
    others = {path.stat().st_uid for path in present} - {os.geteuid()}
    if others:
        text = f"{home.root} belongs to another user (uid {min(others)}, you are {os.geteuid()}), so hooks stay silent"
        yield problem(AREA, "foreign", text, f'sudo chown -R "$USER" {folder}')
    refusing = [path for path in present if not _takes_writes(path)]
    if refusing and not others:
        text = f"{refusing[0]} is read-only, so nothing can be kept and no service starts"
        yield problem(AREA, "read_only", text, f"chmod -R u+rwX {folder}")
    if home.run.exists() and not others and home.run.stat().st_mode & 0o022:
        text = f"Others may write to {home.run}, so hooks do not trust it and stay silent"
        yield problem(AREA, "run_open", text, fixable=True)


def _takes_writes(path: Path) -> bool:
    wanted = os.W_OK | os.R_OK | (os.X_OK if path.is_dir() else 0)
    return os.access(path, wanted, effective_ids=os.access in os.supports_effective_ids)


def _disk(root: Path) -> Iterator[Finding]:
    free = shutil.disk_usage(root).free
    entries = os.statvfs(root)
    if free < _FULL or (entries.f_files and not entries.f_favail):
        text = f"The disk of {root} is full ({free / 1e6:.0f} MB free): records are lost, and writes are refused"
        yield problem(AREA, "disk_full", text, "free disk space")
    elif free < _NEARLY_FULL:
        yield note(AREA, "disk_low", f"The disk of {root} has {free / 1e6:.0f} MB left", "free disk space")


def _shared(subject: Subject) -> Iterator[Finding]:
    home = subject.home
    kind = place.filesystem_of(home.root, place.mount_table())
    if kind in place.NETWORK_FILESYSTEMS:
        text = f"{home.root} lies on a network file system ({kind}), where a database shared by machines breaks"
        yield problem(AREA, "network", text, "lore connect URL, or set LORE_HOME to a local folder")
    try:
        lease.check_lease(home)
    except LoreError as error:
        yield problem(AREA, "elsewhere", error.message, error.hint)
