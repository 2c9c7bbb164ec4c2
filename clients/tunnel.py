"""A Lore service on another machine, reached through ssh: its Unix socket appears here, and no port is opened anywhere.

`ssh -L near.sock:far.sock host` runs as a child. Its remote command starts the service over there and then waits on stdin,
so that the far end closes with this process, however it ends.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import shlex
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote, unquote, urlsplit

from lorehooks.clients.errors import UnreachableError
from lorehooks.core.errors import InvalidError
from lorehooks.core.home import Home

AGENT = "SSH_AUTH_SOCK"
START_SECONDS = 15.0
_END_SECONDS = 3.0
OPTIONS = (
    *("-T", "-S", "none"),
    *("-o", "BatchMode=yes"),
    *("-o", "ControlMaster=no"),  # a shared connection would keep the forwarding after this process
    *("-o", "ConnectTimeout=10"),
    *("-o", "ExitOnForwardFailure=yes"),
    *("-o", "StreamLocalBindUnlink=yes"),
    *("-o", "StreamLocalBindMask=0177"),
    *("-o", "ServerAliveInterval=15"),
    *("-o", "ServerAliveCountMax=3"),
    *("-o", "LogLevel=ERROR"),
    *("-o", "ForwardAgent=no"),
    *("-o", "ForwardX11=no"),
)
_HOST = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?|[0-9A-Fa-f:]+")
_USER = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]*")
_POLL_SECONDS = 0.03
_FIND_HOME = 'h="${LORE_HOME:-$HOME/.lore}"; [ -x "$h/bin/service" ] || exit 44; printf "%s\\n" "$h"'
_NOT_SET_UP = 44
_MAX_WORDS = 300


@dataclass(frozen=True, slots=True)
class SshAddress:
    """`ssh://[user@]host[:port][/home]`. `home` is the far home folder, empty until it was asked for."""

    host: str
    user: str = ""
    port: int | None = None
    home: str = ""

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        user = f"{self.user}@" if self.user else ""
        port = f":{self.port}" if self.port else ""
        return f"ssh://{user}{host}{port}{quote(self.home)}"

    @property
    def destination(self) -> list[str]:
        """Arguments that name the machine to `ssh`."""
        port = ["-p", str(self.port)] if self.port else []
        return [*port, "--", f"{self.user}@{self.host}" if self.user else self.host]


def parse_ssh(text: str) -> SshAddress:
    """Read an ssh:// address. Raises InvalidError, also for parts that ssh would take for an option."""
    hint = "write it as ssh://user@host:port"
    try:
        parts = urlsplit(text.strip())
        port = parts.port
    except ValueError as error:
        raise InvalidError(f"{text!r} is not an address: {error}", hint=hint) from None
    host, user = parts.hostname or "", parts.username or ""
    if parts.scheme != "ssh" or not _HOST.fullmatch(host) or (user and not _USER.fullmatch(user)):
        raise InvalidError(f"{text!r} is not an ssh address", hint=hint)
    if parts.password is not None or parts.query or parts.fragment:
        raise InvalidError(f"{text!r} has more than user, host, port and folder", hint=hint)
    return SshAddress(host, user, port, unquote(parts.path).rstrip("/"))


def tunnel_socket(home: Home) -> Path:
    """Where the near end of a home's tunnel is."""
    return home.run / "remote.sock"


async def find_home(address: SshAddress, *, ssh: str = "ssh") -> SshAddress:
    """The address with the far home folder filled in. Raises UnreachableError with what ssh said."""
    if address.home:
        return address
    command = [ssh, *OPTIONS, "-n", *address.destination, f"exec sh -c {shlex.quote(_FIND_HOME)}"]
    try:
        done = await asyncio.to_thread(
            subprocess.run, command, stdin=subprocess.DEVNULL, capture_output=True, check=False, timeout=START_SECONDS
        )
    except subprocess.TimeoutExpired:
        raise UnreachableError(f"{address} did not answer within {START_SECONDS:g} s", hint=_try(address)) from None
    except OSError as error:
        raise UnreachableError(f"ssh cannot be run: {error}", hint="install the OpenSSH client") from None
    if done.returncode == _NOT_SET_UP:
        raise UnreachableError(f"lorehooks is not set up on {address.host}", hint="run there: lore service start")
    found = done.stdout.decode(errors="replace").strip()
    if done.returncode != 0 or not found.startswith("/"):
        raise UnreachableError(f"{address} cannot be reached: {_words(done.stderr)}", hint=_try(address))
    return SshAddress(address.host, address.user, address.port, found)


class Tunnel:
    """The ssh child of one address. `ensure` starts it when it does not run; several callers wait for one start."""

    def __init__(self, address: SshAddress, near: Path, *, agent: str = "", ssh: str = "ssh") -> None:
        """`near` is the socket that will appear here; its folder must exist.

        `agent`: the socket of an ssh agent, for a process whose environment names none.
        """
        self.address = address
        self.near = near
        self._environment = {**os.environ} if AGENT in os.environ or not agent else {**os.environ, AGENT: agent}
        self._ssh = ssh
        self._child: _Child | None = None
        self._starting: asyncio.Task[None] | None = None

    async def ensure(self) -> None:
        """Return when the near socket takes connections. Raises UnreachableError with what ssh said."""
        if self._child is not None and not self._child.has_ended and self._starting is None:
            return
        if self._starting is None:
            self._starting = asyncio.create_task(self._start())
            self._starting.add_done_callback(self._started)
        await asyncio.shield(self._starting)  # who gives up waiting does not end it for the others

    async def close(self) -> None:
        """End the child. The next `ensure` starts another."""
        if self._starting is not None:
            self._starting.cancel()
            await asyncio.gather(self._starting, return_exceptions=True)
        if self._child is not None:
            child, self._child = self._child, None
            await child.end()
        with contextlib.suppress(OSError):
            self.near.unlink()

    def _started(self, task: asyncio.Task[None]) -> None:
        self._starting = None
        if not task.cancelled():
            task.exception()  # told to whoever waits; nobody may

    async def _start(self) -> None:
        if self._child is not None:
            child, self._child = self._child, None
            await child.end()
        far = f"{self.address.home}/run/service.sock"
        service = shlex.quote(f"{self.address.home}/bin/service")
        script = f"( {service} </dev/null >/dev/null 2>&1 & ) ; exec cat"
        child = await _Child.run(
            [
                *(self._ssh, *OPTIONS),
                *("-L", f"./{self.near.name}:{far}"),  # relative, since a socket's path has room for 108 bytes
                *(*self.address.destination, f"exec sh -c {shlex.quote(script)}"),
            ],
            self.near.parent,
            self._environment,
        )
        try:
            async with asyncio.timeout(START_SECONDS):
                await self._far_end(child)
        except TimeoutError:
            await child.end()
            raise UnreachableError(
                f"{self.address} did not answer within {START_SECONDS:g} s", hint=_try(self.address)
            ) from None
        except BaseException:
            await child.end()
            raise
        self._child = child

    async def _far_end(self, child: _Child) -> None:
        """Wait until the far service answers through the tunnel, however long it takes to start."""
        while not await _answers(self.near):
            if child.has_ended:
                words = await child.words()
                raise UnreachableError(f"{self.address} cannot be reached: {words}", hint=_try(self.address))
            await asyncio.sleep(_POLL_SECONDS)


class _Child:
    """A running ssh. What it says is read all the time, since a full pipe would stop it; the end of it is kept."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self._said = b""
        self._reading = asyncio.create_task(self._read())

    @classmethod
    async def run(cls, command: list[str], folder: Path, environment: Mapping[str, str]) -> _Child:
        """Start ssh. Raises UnreachableError where there is none."""
        try:
            process = await asyncio.create_subprocess_exec(
                *command,
                cwd=folder,
                env=environment,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.DEVNULL,
                stderr=asyncio.subprocess.PIPE,
            )
        except OSError as error:
            raise UnreachableError(f"ssh cannot be run: {error}", hint="install the OpenSSH client") from None
        return cls(process)

    @property
    def has_ended(self) -> bool:
        return self._process.returncode is not None

    async def words(self) -> str:
        """What an ended ssh said last."""
        await self._reading
        return _words(self._said)

    async def end(self) -> None:
        """Ask it to end, and see to it."""
        if self._process.stdin is not None:
            self._process.stdin.close()
        for stop in (self._process.terminate, self._process.kill):
            with contextlib.suppress(ProcessLookupError):
                stop()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._process.wait(), _END_SECONDS)
                break
        await self._reading

    async def _read(self) -> None:
        while self._process.stderr is not None and (part := await self._process.stderr.read(4096)):
            self._said = (self._said + part)[-4096:]


async def _answers(near: Path) -> bool:
    """Whether a Lore service answers at the far end of the near socket."""
    try:
        folder = os.open(near.parent, os.O_RDONLY | os.O_DIRECTORY)
    except OSError:
        return False
    try:
        reader, writer = await asyncio.open_unix_connection(f"/dev/fd/{folder}/{near.name}")
    except OSError:
        return False
    finally:
        os.close(folder)
    try:
        writer.write(b"GET /api/health HTTP/1.1\r\nHost: lore\r\nConnection: close\r\n\r\n")
        return (await reader.readline()).startswith(b"HTTP/1.")
    except OSError:
        return False
    finally:
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()


def _words(error: bytes) -> str:
    """What ssh said, on one line."""
    text = " ".join(error.decode(errors="replace").split())
    return text[-_MAX_WORDS:] or "ssh ended without a word"


def _try(address: SshAddress) -> str:
    port = f"-p {address.port} " if address.port else ""
    return f"try: ssh {port}{address.destination[-1]} true"
