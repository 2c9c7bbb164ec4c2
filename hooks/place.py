"""Whether a home is a place where a memory may live: ours, and on a disk of this machine."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

from lorehooks.core.errors import StorageError
from lorehooks.core.home import Home

NETWORK_FILESYSTEMS = frozenset(
    {
        *(
            "nfs",
            "nfs4",
            "cifs",
            "smb3",
            "smbfs",
            "9p",
            "afs",
            "afpfs",
            "ceph",
            "glusterfs",
            "lustre",
            "beegfs",
            "gpfs",
        ),
        *("davfs", "webdav", "fuse.sshfs", "fuse.rclone", "fuse.s3fs", "fuse.glusterfs", "fuse.davfs2", "fuse.gcsfuse"),
    }
)
"""File systems whose locks and shared memory SQLite's WAL cannot trust."""


def check_place(home: Home) -> None:
    """Make the home if it is missing; raise StorageError where no memory may be kept, with the step that mends it."""
    try:
        home.root.mkdir(mode=0o700, parents=True, exist_ok=True)
        home.run.mkdir(mode=0o700, exist_ok=True)
        owners = {home.root.stat().st_uid, home.run.stat().st_uid}
    except OSError as error:
        raise StorageError(f"{home.root} cannot be used as home: {error.strerror}", hint="set LORE_HOME") from None
    if owners != {os.geteuid()}:
        raise StorageError(
            f"{home.root} belongs to another user (uid {max(owners - {os.geteuid()})}, you are {os.geteuid()})",
            hint="run lore as its owner, or set LORE_HOME",
        )
    if not os.access(home.run, os.W_OK | os.X_OK):
        raise StorageError(f"{home.root} is read-only", hint="make it writable, or set LORE_HOME")
    if home.run.stat().st_mode & 0o077:
        home.run.chmod(0o700)  # the socket in it answers without a token
    kind = filesystem_of(home.root, mount_table())
    if kind in NETWORK_FILESYSTEMS:
        raise StorageError(
            f"{home.root} lies on a network file system ({kind}), where a database shared by machines breaks",
            hint="lore connect URL, or set LORE_HOME to a local folder",
        )


def filesystem_of(folder: Path, mounts: str) -> str:
    """The type of the file system that holds `folder`, given `/proc/mounts` or the output of macOS's `mount`."""
    best, kind = "", ""
    path = os.path.realpath(folder)
    for line in mounts.splitlines():
        if apple := re.fullmatch(r".* on (/.*) \((\w+)[,)].*", line):
            point, type_ = apple.groups()
        else:
            fields = line.split(" ")
            if len(fields) < 3:  # noqa: PLR2004  (device, mount point, type)
                continue
            point, type_ = re.sub(r"\\([0-7]{3})", lambda m: chr(int(m[1], 8)), fields[1]), fields[2]
        inside = path == point or path.startswith(point.rstrip("/") + "/")
        if inside and len(point) >= len(best):  # a later mount on the same point hides the earlier
            best, kind = point, type_
    return kind


def mount_table() -> str:
    if sys.platform == "darwin":
        import subprocess  # Linux starts its service without it

        return subprocess.run(["/sbin/mount"], capture_output=True, text=True, check=False, timeout=5).stdout
    try:
        return Path("/proc/self/mounts").read_text(errors="surrogateescape")
    except OSError:
        return ""
