"""Becoming the one service of a home: the lock first, then both sockets, before anything heavy is imported.

Whoever starts a service, and however often: a starter that finds another one listening leaves at once. Connections made
between binding and serving wait in the sockets' backlog.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import socket
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from lorehooks.core.clock import system_clock, to_iso
from lorehooks.core.errors import ConflictError
from lorehooks.core.home import Home
from lorehooks.hooks import lease, serviceinfo
from lorehooks.hooks.place import check_place

BACKLOG = 1024
PATIENCE = 10.0
"""Seconds a starter waits for a service that is just ending, or just about to bind."""
SOCKET_NAME = "service.sock"
LOCK_NAME = "service.lock"


@dataclass(frozen=True, slots=True)
class Claim:
    """What the one service of a home holds: both sockets listening, under the lock."""

    home: Home
    unix: socket.socket
    tcp: socket.socket
    info: serviceinfo.ServiceInfo
    socket_id: int
    """The inode of the Unix socket: when another lies in its place, the home is no longer ours."""

    def holds_home(self) -> bool:
        """Whether the socket at the home's address is still ours. Raises nothing."""
        try:
            return self.home.socket.stat().st_ino == self.socket_id
        except OSError:
            return False


@contextlib.contextmanager
def claimed(home: Home, *, port: int = 0, host: str = "127.0.0.1", token: str = "") -> Iterator[Claim | None]:
    """Become the service of this home; None when another is one already.

    `port` and `token` are given by `lore serve` (a taken port raises ConflictError); without them the last port is used
    again if it is free, and the token is new. Changes the working folder to `run/`. Raises StorageError where the home
    must not be used.
    """
    os.umask(0o077)
    check_place(home)
    os.chdir(home.run)
    lock = _lock()
    if lock is None:
        yield None
        return
    try:
        lease.check_lease(home)
        lease.write_lease(home)
        tcp = _listen_tcp(host, port) if port else _listen_again(host, serviceinfo.read_port(home))
        with tcp, _listen_unix() as unix:
            info = serviceinfo.ServiceInfo(
                port=tcp.getsockname()[1],
                token=token or os.urandom(32).hex(),
                pid=os.getpid(),
                version=serviceinfo.installed_version(),
                started_at=to_iso(system_clock()),
                environment=sys.prefix,
                mode="foreground" if port else "background",
            )
            serviceinfo.write_info(home, info)
            claim = Claim(home, unix, tcp, info, Path(SOCKET_NAME).stat().st_ino)
            try:
                yield claim
            finally:
                _clean_up(claim)
    finally:
        with contextlib.suppress(OSError):
            lease.drop_lease(home)
        os.close(lock)


@contextlib.contextmanager
def held(home: Home) -> Iterator[bool]:
    """Keep every service from starting for the moment in which files of the home are exchanged. False when one runs.

    Who wants to start one meanwhile waits up to `PATIENCE` seconds. Raises StorageError where the home must not be used.
    """
    check_place(home)
    with contextlib.chdir(home.run):
        lock = _lock()
        try:
            if lock is not None:
                lease.check_lease(home)
            yield lock is not None
        finally:
            if lock is not None:
                os.close(lock)


def _lock() -> int | None:
    """The lock of the home in the working folder, or None when somebody else listens there."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        descriptor = os.open(LOCK_NAME, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.path.samestat(os.fstat(descriptor), os.stat(LOCK_NAME)):  # noqa: PTH116
                return descriptor
        except BlockingIOError:
            if somebody_listens(SOCKET_NAME):
                os.close(descriptor)
                return None
        except FileNotFoundError:
            pass  # the folder was emptied between the two lines: what we locked is no longer the lock
        os.close(descriptor)
        time.sleep(0.02)
    raise ConflictError("Another service holds this home and does not listen", hint="lore service restart")


def somebody_listens(path: str) -> bool:
    """Whether the socket at `path` takes connections; a stopped service does, since its kernel does."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(1)
        try:
            probe.connect(path)
        except TimeoutError:
            return True  # its backlog is full
        except OSError:
            return False
    return True


def _listen_unix() -> socket.socket:
    """Listen in the working folder. The lock makes sure that a socket file found there is nobody's."""
    Path(SOCKET_NAME).unlink(missing_ok=True)
    unix = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    unix.bind(SOCKET_NAME)  # relative: a socket's path has room for about 100 bytes
    Path(SOCKET_NAME).chmod(0o600)
    unix.listen(BACKLOG)
    return unix


def _listen_tcp(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    tcp = socket.socket(family, socket.SOCK_STREAM)
    try:
        tcp.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        tcp.bind((host, port))
        tcp.listen(BACKLOG)
    except OSError as error:
        tcp.close()
        raise ConflictError(f"Port {port} on {host} cannot be used: {error.strerror}", hint="--port N") from None
    return tcp


def _listen_again(host: str, port: int) -> socket.socket:
    """Listen on the port of last time; when it is taken by now, on any."""
    try:
        return _listen_tcp(host, port)
    except ConflictError:
        return _listen_tcp(host, 0)


def _clean_up(claim: Claim) -> None:
    """Leave the home as a stopped service does. Before the lock goes: after that, what lies there may be the next one's."""
    with contextlib.suppress(OSError):  # the home may be gone or full, and the end must not fail for it
        if Path(SOCKET_NAME).stat().st_ino == claim.socket_id:
            Path(SOCKET_NAME).unlink()
            serviceinfo.forget_info(claim.home)


def tell_ready(descriptor: int | None) -> None:
    """Tell the starter that it can connect now. It may have given up waiting meanwhile."""
    if descriptor is None:
        return
    with contextlib.suppress(OSError):
        os.write(descriptor, b"1")
    with contextlib.suppress(OSError):
        os.close(descriptor)
