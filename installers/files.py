"""Reads and writes files that belong to other programs: whole or not at all, and never over someone else's change.

Links are followed first, through any chain, and the target is written, so that a dotfile stays a link. A link that points
nowhere is refused: creating its target would put a file into a folder that its owner has not set up.
Mode, owner and extended attributes are kept. What a package store or a person has made read-only is refused.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from lorehooks.installers.problem import ChangedError, RefusedError

STORES = ("/nix/store/", "/gnu/store/")
TEMPORARY = ".lorehooks-tmp"
TRIES = 8
PAUSE = 0.1
"""Seconds between tries."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A file as it was read. `content` is None when there is none; `target` is where all links lead."""

    path: Path
    target: Path
    content: bytes | None
    status: os.stat_result | None = None

    @property
    def existed(self) -> bool:
        return self.content is not None


def read(path: Path) -> Snapshot:
    """Read a file through its links. Raises RefusedError for a link that leads nowhere or round, a folder, a device."""
    target = resolve(path)
    try:
        descriptor = os.open(target, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)  # a pipe must not hold us
        with os.fdopen(descriptor, "rb") as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode):
                raise RefusedError(path, "it is not a regular file")
            return Snapshot(path, target, file.read(), status)
    except FileNotFoundError:
        return Snapshot(path, target, None)
    except IsADirectoryError as error:
        raise RefusedError(path, "it is a folder") from error
    except OSError as error:
        raise RefusedError(path, f"it cannot be read ({error.strerror})") from error


def resolve(path: Path) -> Path:
    """Where a path leads. Raises RefusedError for a link to nothing or a ring of links."""
    try:
        return path.resolve(strict=True)
    except FileNotFoundError as error:
        if path.is_symlink():
            raise RefusedError(
                path,
                f"it is a link to {path.readlink()}, which is not there",
                hint="create the file it points to, or remove the link",
            ) from error
        return path.resolve()
    except (OSError, RuntimeError) as error:  # a ring is RuntimeError before Python 3.13
        raise RefusedError(path, "its links do not lead to a file") from error


def check_writable(snapshot: Snapshot) -> None:
    """Raise RefusedError when a file must not or cannot be replaced, before anything else has been done."""
    target = snapshot.target
    if str(target).startswith(STORES):
        raise RefusedError(
            snapshot.path, f"it is managed by a package store ({target})", hint="add it where it is declared"
        )
    folder = target.parent
    while not folder.exists():
        folder = folder.parent
    if not folder.is_dir() or not os.access(folder, os.W_OK | os.X_OK):
        raise RefusedError(snapshot.path, f"the folder {folder} cannot be written")
    status = snapshot.status
    if status is None:
        return
    if not status.st_mode & 0o222 or not os.access(target, os.W_OK):
        raise RefusedError(snapshot.path, "it is read-only", hint=f"chmod u+w {target}")
    if status.st_nlink > 1:
        raise RefusedError(
            snapshot.path, "it has a second name (hard link), which an exchange of the file would cut off"
        )


def replace(snapshot: Snapshot, content: bytes, *, mode: int = 0o600) -> None:
    """Exchange a file for new content in one step; `mode` is for a file that did not exist.

    The file is read again just before: raises ChangedError when it is no longer what the snapshot holds.
    """
    check_writable(snapshot)
    made = make_folders(snapshot.target.parent)

    def still_so() -> None:
        if not _unchanged(snapshot):
            raise ChangedError(snapshot.path)

    try:
        _exchange(snapshot.target, content, lambda file: _take_over(file, snapshot, mode), still_so)
    except BaseException:
        remove_folders(made)
        raise


def write_own(path: Path, content: bytes, *, mode: int = 0o600) -> None:
    """Write a file of ours, whatever was there."""
    make_folders(path.parent)
    _exchange(path, content, lambda file: os.fchmod(file, mode), lambda: None)


def _exchange(target: Path, content: bytes, dress: Callable[[int], None], check: Callable[[], None]) -> None:
    """Write beside the target, make it durable, check once more, rename."""
    sweep(target)
    temporary = target.with_name(f".{target.name}.{os.getpid()}{TEMPORARY}")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            dress(file.fileno())
            file.flush()
            os.fsync(file.fileno())
        check()
        temporary.replace(target)
    except BaseException:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise
    sync_folder(target.parent)


def remove(snapshot: Snapshot) -> None:
    """Take a file away if it is still what the snapshot holds; a link to it stays. Raises ChangedError otherwise."""
    if not _unchanged(snapshot):
        raise ChangedError(snapshot.path)
    if snapshot.existed:
        snapshot.target.unlink()
        sync_folder(snapshot.target.parent)


def persist(act: Callable[[], T]) -> T:
    """Try again while a host is in the middle of writing its file. Raises what the last try raised."""
    for _ in range(TRIES - 1):
        try:
            return act()
        except RefusedError as error:
            if not error.passing:
                raise
            time.sleep(PAUSE)
    return act()


def digest(content: bytes | None) -> str:
    """SHA-256 in hexadecimal; of no file as of an empty one."""
    return hashlib.sha256(content or b"").hexdigest()


def missing_folders(folder: Path) -> tuple[Path, ...]:
    """A folder and those above it that are not there, outermost first."""
    missing = []
    while not folder.exists():
        missing.append(folder)
        folder = folder.parent
    return tuple(reversed(missing))


def make_folders(folder: Path) -> tuple[Path, ...]:
    """Create a folder and what is missing above it (mode 0700). Returns those it made, outermost first."""
    missing = missing_folders(folder)
    for each in missing:
        each.mkdir(mode=0o700, exist_ok=True)
    return missing


def remove_folders(folders: tuple[Path, ...]) -> None:
    """Remove folders we made, innermost first, as long as they are empty."""
    for folder in sorted(folders, key=lambda each: len(each.parts), reverse=True):
        with contextlib.suppress(OSError):
            folder.rmdir()


def sync_folder(folder: Path) -> None:
    """Make a rename in a folder durable."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        with contextlib.suppress(OSError):  # some file systems cannot
            os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _unchanged(snapshot: Snapshot) -> bool:
    try:
        now = read(snapshot.path)
    except RefusedError:
        return False
    return now.target == snapshot.target and now.content == snapshot.content


def _take_over(descriptor: int, snapshot: Snapshot, mode: int) -> None:
    """Give the new file the mode, owner and extended attributes of the old one."""
    status = snapshot.status
    if status is None:
        os.fchmod(descriptor, mode)
        return
    if (status.st_uid, status.st_gid) != (os.geteuid(), os.getegid()):
        try:
            os.fchown(descriptor, status.st_uid, status.st_gid)
        except OSError as error:
            raise RefusedError(snapshot.path, "it belongs to another user, and would not any more") from error
    os.fchmod(descriptor, stat.S_IMODE(status.st_mode))
    if hasattr(os, "listxattr"):
        with contextlib.suppress(OSError):
            for name in os.listxattr(snapshot.target):
                os.setxattr(descriptor, name, os.getxattr(snapshot.target, name))


def sweep(target: Path) -> None:
    """Remove what a killed run of ours left beside a file (where its links lead)."""
    for left in target.parent.glob(f".{_escape(target.name)}.*{TEMPORARY}"):
        pid = left.name.removesuffix(TEMPORARY).rpartition(".")[2]
        if pid.isdigit() and (int(pid) == os.getpid() or not _alive(int(pid))):
            with contextlib.suppress(OSError):
                left.unlink()


def _escape(name: str) -> str:
    return "".join(f"[{sign}]" if sign in "*?[" else sign for sign in name)


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True
