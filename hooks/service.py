"""The local service as others see it: `python -m lorehooks.hooks.service` runs it, `start` and the rest manage it.

The starter's protocol: a starter passes `--ready-fd N`; a byte on it means that connections are taken now (by this process
or, when another was first, by that one); its end without a byte means that there will be no service.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import socket
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from lorehooks.core.errors import ConflictError, LoreError, StorageError
from lorehooks.core.files import write_whole
from lorehooks.core.home import Home
from lorehooks.hooks import claim, serviceinfo
from lorehooks.hooks.serviceinfo import ServiceInfo

DEFAULT_PORT = 18901
"""Where `lore serve` listens."""
SOCKET_PATH_BYTES = 104
"""Room for a socket's path with its closing zero on macOS; Linux has 108."""
START_SECONDS = 20.0
STOP_SECONDS = 6.0
_LOG_TAIL = 20_000
_LOG_LINE = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d+ ")
_LOG_ERROR = re.compile(_LOG_LINE.pattern + r"(?:ERROR|CRITICAL) [^:]+: (?P<text>.*)")
_CAME_UP = "Application startup complete."
_SAYS_NOTHING = ("Application startup failed. Exiting.",)


@dataclass(frozen=True, slots=True)
class Status:
    """Whether a service runs, whether it answers (a stopped or stuck one does not), and what it wrote down."""

    running: bool
    answering: bool
    info: ServiceInfo | None


def main(arguments: list[str] | None = None) -> int:
    """Run the service in this process, for a starter that waits on `--ready-fd`. Returns the exit code."""
    arguments = sys.argv[1:] if arguments is None else arguments
    ready = int(arguments[1]) if arguments[:1] == ["--ready-fd"] else None
    signal.signal(signal.SIGHUP, signal.SIG_IGN)  # it outlives the terminal whose agent started it
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))  # until the loop takes over, an end still cleans up
    home = Home(Path.absolute(Home.from_environment().root))
    try:
        with claim.claimed(home) as claimed:
            claim.tell_ready(ready)
            return 0 if claimed is None else _run(claimed)
    except (LoreError, OSError) as error:
        _note(home, str(error))
        return 1


def _run(claimed: claim.Claim) -> int:
    """Load and serve. What fails is noted before the lock goes, so that who waits for that finds it written."""
    try:
        from lorehooks.clients import config  # from here on it may take its time
        from lorehooks.hooks import layout, process

        process.log_to_file(claimed.home)
        layout.refresh(claimed.home)
        hours = config.load_or_defaults(claimed.home).settings["service.idle_hours"]
        process.serve_until_ended(claimed, idle_after=hours * 3600)
    except Exception:  # noqa: BLE001  (nobody reads the stderr of a service; the log is read)
        import traceback

        _note(claimed.home, traceback.format_exc())
        return 1
    return 0


def serve(
    home: Home,
    port: int = DEFAULT_PORT,
    host: str = "127.0.0.1",
    *,
    names: Sequence[str] = (),
    on_ready: Callable[[ServiceInfo], None] = lambda _: None,
) -> None:
    """`lore serve`: the service in the foreground, with a fixed port and the token in `H/token`, until a signal ends it.

    `names` are further host names that clients reach it by, such as that of a proxy before it. A background service of
    this home is asked to end first. Raises ConflictError when the port is taken or another
    `lore serve` holds the home.
    """
    home = Home(home.root.absolute())
    token = persistent_token(home)
    now = status(home)
    if now.running and now.info is not None and now.info.mode == "foreground":
        raise ConflictError(
            f"lore serve runs already (pid {now.info.pid}, port {now.info.port})", hint="lore service stop"
        )
    for _ in range(5):  # an agent's prompt may start the background service between the two steps
        stop(home)
        with claim.claimed(home, port=port, host=host, token=token) as claimed:
            if claimed is not None:
                from lorehooks.hooks import guard, process

                on_ready(claimed.info)
                process.serve_until_ended(claimed, idle_after=None, reach=guard.reach_of(host, names))
                return
    raise ConflictError("Agents start the background service again and again", hint="run lore serve once more")


def persistent_token(home: Home) -> str:
    """The token of `lore serve`, made on first use and kept in `H/token` (mode 0600)."""
    from lorehooks.hooks.place import check_place

    check_place(home)
    file = home.root / "token"
    try:
        token = file.read_text(encoding="ascii").strip()
    except FileNotFoundError:
        token = ""
    if not token:
        token = os.urandom(32).hex()
        write_whole(file, f"{token}\n".encode())
    return token


def start(home: Home) -> ServiceInfo:
    """Start the service unless it runs; return when it answers.

    A running older release is replaced when this environment owns the home (`bin/service` names it), and left alone
    otherwise. Raises StorageError with what the service said when it does not come up.
    """
    from lorehooks.hooks import layout
    from lorehooks.hooks.bridge import start_service
    from lorehooks.hooks.place import check_place

    home = Home(home.root.absolute())
    check_place(home)
    now = status(home)
    is_superseded = now.running and now.info is not None and _is_superseded(home, now.info)
    if is_superseded:
        stop(home)
    if layout.environment_of(home) in {None, sys.prefix}:
        layout.lay(home)
    if now.answering and now.info is not None and not is_superseded:
        return now.info  # no starter, which would cost each command a start of Python to find the home taken
    began = home.log.stat().st_size if home.log.exists() else 0
    if start_service(str(home.root), START_SECONDS) and answers(home, START_SECONDS):
        info = serviceinfo.read_info(home)
        if info is not None:
            return info
    if pid := listener(home):
        raise StorageError(f"The service (pid {pid}) does not answer", hint="lore service restart")
    end = time.monotonic() + STOP_SECONDS
    while _is_locked(home) and time.monotonic() < end:  # it is still saying why
        time.sleep(0.02)
    raise StorageError(f"The service did not start: {_last_line(home, began)}", hint=f"see {home.log}")


def stop(home: Home) -> bool:
    """End the service of this home, in order if it can, and return when it has ended. False when none ran.

    Raises StorageError when it runs where no signal reaches it, such as in a container that shares this home.
    """
    home = Home(home.root.absolute())
    if not _is_locked(home):
        return False
    ending = 0
    for number in (signal.SIGTERM, signal.SIGKILL):
        end = time.monotonic() + STOP_SECONDS
        sent = False
        while time.monotonic() < end:
            pid = listener(home)
            if not _is_locked(home) or (ending and pid not in {0, ending}):  # a prompt has started the next one already
                return True
            if pid and not sent:
                _signal(pid, number)
                ending, sent = pid, True
            time.sleep(0.02)
    raise StorageError(
        f"The service of {home.root} does not end", hint="end it where it runs: another container or user"
    )


def restart(home: Home) -> ServiceInfo:
    """Stop, then start."""
    stop(home)
    return start(home)


def status(home: Home) -> Status:
    """What runs now. Looks and waits at most 2 seconds for an answer; starts nothing."""
    home = Home(home.root.absolute())
    if not _is_locked(home):
        return Status(running=False, answering=False, info=None)
    return Status(running=True, answering=answers(home, 2.0), info=serviceinfo.read_info(home))


def answers(home: Home, seconds: float) -> bool:
    """Whether the service answers a health question within that time."""
    end = time.monotonic() + seconds
    try:
        with connect(home, seconds) as service:
            service.sendall(b"GET /api/health HTTP/1.1\r\nHost: lore\r\nConnection: close\r\n\r\n")
            answer = b""
            while b"\r\n" not in answer:
                service.settimeout(max(end - time.monotonic(), 0.001))
                part = service.recv(4096)
                if not part:
                    return False
                answer += part
    except OSError:
        return False
    return answer[9:12] == b"200"


def connect(home: Home, seconds: float) -> socket.socket:
    """A connection to the service's Unix socket. Raises OSError.

    A longer path than a socket may have is reached from its own folder, which is the process's for that moment.
    """
    service = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    service.settimeout(seconds)
    try:
        if len(os.fsencode(home.socket)) < SOCKET_PATH_BYTES:
            service.connect(os.fspath(home.socket))
        else:
            with contextlib.chdir(home.run):
                service.connect(claim.SOCKET_NAME)
    except BaseException:
        service.close()
        raise
    return service


def _is_superseded(home: Home, running: ServiceInfo) -> bool:
    from lorehooks.hooks import layout

    if layout.environment_of(home) != sys.prefix or running.mode == "foreground":
        return False
    return _order(running.version) < _order(serviceinfo.installed_version())


def _order(version: str) -> list[int]:
    return [int(part) if part.isdigit() else -1 for part in version.replace("-", ".").split(".")]


def _is_locked(home: Home) -> bool:
    """Whether a service holds the home. A shared look, which a starter in the same moment just tries again after."""
    import fcntl

    try:
        descriptor = os.open(home.lock, os.O_RDONLY)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


def listener(home: Home) -> int:
    """The process id of who listens, as this process can see it; 0 when unknown.

    Asked of the kernel, since a written number may be old, or of another container, and would end a stranger.
    """
    try:
        with connect(home, 1.0) as service:
            if sys.platform == "darwin":
                return int.from_bytes(service.getsockopt(0, 0x002, 4), sys.byteorder)  # SOL_LOCAL, LOCAL_PEERPID
            return int.from_bytes(service.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)[:4], sys.byteorder)
    except OSError:
        return 0


def _signal(pid: int, number: signal.Signals) -> None:
    try:
        os.kill(pid, number)
        os.kill(pid, signal.SIGCONT)  # a stopped process takes its end only when it goes on
    except ProcessLookupError:
        pass
    except PermissionError:
        raise StorageError(f"The service (pid {pid}) belongs to another user", hint=f"sudo kill {pid}") from None


def _note(home: Home, text: str) -> None:
    """Leave a line where `lore doctor` and `start` look: a starter's stderr is /dev/null."""
    try:
        with home.log.open("a", encoding="utf-8") as log:
            log.write(f"{time.strftime('%Y-%m-%d %H:%M:%S')},000 ERROR lorehooks.service: {text.rstrip()}\n")
    except OSError:
        print(text, file=sys.stderr)  # noqa: T201


def last_error(home: Home, began: int = 0) -> str:
    """What the log ends with, if that is an error, on one line; empty when a service came up after it.

    `began` is the size in bytes that the log had before.
    """
    try:
        with home.log.open("rb") as log:
            log.seek(max(began, home.log.stat().st_size - _LOG_TAIL))
            lines = log.read().decode(errors="replace").splitlines()
    except OSError:
        return ""
    for number in range(len(lines) - 1, -1, -1):
        if _CAME_UP in lines[number]:
            return ""
        found = _LOG_ERROR.match(lines[number])
        if found is not None and found["text"] not in _SAYS_NOTHING:
            below = [line for line in lines[number + 1 :] if line.strip() and not _LOG_LINE.match(line)]
            return (below[-1] if below else found["text"]).strip()  # a traceback says at its end what went wrong
    return ""


def _last_line(home: Home, began: int) -> str:
    try:
        with home.log.open("rb") as log:
            log.seek(began)
            lines = log.read().decode(errors="replace").strip().splitlines()
    except OSError:
        lines = []
    return last_error(home, began) or (lines[-1] if lines else "it said nothing")


if __name__ == "__main__":
    sys.exit(main())
