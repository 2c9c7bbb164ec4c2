"""The way from Hermes to the memory service of one home.

It runs in Hermes's own Python, so it has only the standard library. Whatever goes wrong, nothing of `Lore` raises and nothing
waits past its limit: Hermes has none of its own for most of what it calls.
"""

# os.path and open instead of pathlib, for a quick start of somebody else's program; a silent end is the rule here:
# ruff: noqa: PTH112, PTH116, PTH123, BLE001
from __future__ import annotations

import contextlib
import functools
import json
import os
import select
import socket
import subprocess
import threading
import time
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

LORE_HOME = "@LORE_HOME@"  # the installer writes the folder's name here
CLIENT = "hermes"
TOOL = "tool"
TOOL_SECONDS = 20.0
TELL_SECONDS = 2.0
ALIVE_SECONDS = 600.0
SOCKET_PATH_BYTES = 104
"""Room for a socket's path with its closing zero on macOS; Linux has 108."""
MOST_ANSWER = 4 << 20
BREAKER_FAILURES, BREAKER_SECONDS = 3, 60
OTHERS_MAY_WRITE = 0o022
ALLOWED = (
    *("HOME", "PATH", "LANG", "TZ", "TMPDIR", "USER", "LOGNAME"),
    *("XDG_RUNTIME_DIR", "SSL_CERT_FILE", "SSL_CERT_DIR"),
)
"""What the service gets of Hermes's environment, besides LC_* and LORE_*: no keys. The hook program has the same list."""
START = '"$0" --ready-fd "$1" & exit 0'
"""By a shell that leaves at once: the service is then no child of Hermes, ends not with it and leaves no zombie."""

P = ParamSpec("P")
T = TypeVar("T")
D = TypeVar("D")


class MissedError(Exception):
    """There is no answer; the text is the reason, in the words of `run/misses.log`."""


class Lore:
    """One exchange after another with the service of a home."""

    def __init__(self, home: str = LORE_HOME) -> None:
        self._home = home
        self._run = f"{home}/run"
        self._program = f"{home}/bin/service"
        self._alive: threading.Thread | None = None

    def is_here(self) -> bool:
        """Whether there is a home to ask, and nobody else can put his own in its place."""
        if os.environ.get("LORE_DISABLE", "0") not in {"", "0"} or not os.path.isdir(f"{self._home}/bin"):
            return False
        try:
            owner = os.stat(self._run)
        except OSError:
            return True  # a run folder that is missing comes with the service
        return not owner.st_mode & OTHERS_MAY_WRITE and owner.st_uid == os.geteuid()

    def hook(self, event: str, facts: dict[str, Any], seconds: float) -> dict[str, Any] | None:
        """What Hermes is to be told at an event; None when there was no answer, and `run/misses.log` says why."""
        return self._ask(event, f"/hooks/v1/{CLIENT}/{event}", facts, seconds)

    def tell(self, event: str, facts: dict[str, Any]) -> None:
        """Pass on what needs no answer. Hermes waits for it when it ends."""
        self.hook(event, facts, min(self.limit(is_start=False), TELL_SECONDS))

    def tool(self, name: str, arguments: object, session_id: str) -> tuple[str, bool]:
        """(what a memory tool says, whether that is an error)."""
        body = {"name": name, "arguments": arguments or {}, "session_id": session_id or None}
        answer = self._ask(TOOL, f"/hooks/v1/{CLIENT}/tool", body, TOOL_SECONDS)
        text = (answer or {}).get("text")
        if isinstance(text, str):
            return text, bool((answer or {}).get("is_error"))
        return "The memory does not answer right now. Go on without it; `lore doctor` says why.", True

    def tools(self) -> list[dict[str, Any]]:
        """The tools as Hermes wants them. From disk, so that no start waits for the service."""
        if not self.is_here():
            return []
        for folder in ("run", "bin"):
            with contextlib.suppress(Exception), open(f"{self._home}/{folder}/tools/{CLIENT}.json", "rb") as file:
                listed = json.load(file)["tools_list"]["tools"]
                return [
                    {"name": each["name"], "description": each["description"], "parameters": each["inputSchema"]}
                    for each in listed
                ]
        return []

    def ready_boot(self) -> str:
        """The boot block that the service left on disk for the times when it is not there."""
        with contextlib.suppress(Exception):
            if self.is_here():
                with open(f"{self._run}/boot/{CLIENT}", "rb") as file:
                    return text_in(json.load(file), "system_context")
        return ""

    def limit(self, *, is_start: bool) -> float:
        """Seconds that the user allows a session start or a prompt."""
        try:
            with open(f"{self._run}/limits", encoding="ascii") as file:
                ms = int(file.read(64).split()[is_start])
        except (OSError, ValueError, IndexError):
            ms = 5000 if is_start else 2000
        return min(max(ms, 200), 8000) / 1000

    def stay_alive(self) -> None:
        """Count as use of the service while Hermes lives. Starts none, and keeps Hermes from nothing."""
        if self._alive is None:
            self._alive = threading.Thread(target=self._tell_alive, name="lore-alive", daemon=True)
            self._alive.start()

    def _tell_alive(self) -> None:
        while True:
            time.sleep(ALIVE_SECONDS)
            with contextlib.suppress(Exception):
                if self.is_here():
                    self._exchange("/hooks/v1/alive", json.dumps({"client_type": CLIENT}), time.monotonic() + 5)

    # --- asking

    def _ask(self, event: str, target: str, facts: dict[str, Any], seconds: float) -> dict[str, Any] | None:
        try:
            if not self.is_here():
                return None
            if event != TOOL and self._is_broken():
                self._note(event, "breaker")
                return None
            # A write may have been made although its answer was lost, so a tool is not called a second time.
            answer = self._answer(target, json.dumps(facts), time.monotonic() + seconds, repeat=event != TOOL)
            with contextlib.suppress(OSError):
                os.unlink(f"{self._run}/breaker")  # noqa: PTH108
        except MissedError as missed:
            self._note(event, str(missed))
        except Exception:
            self._note(event, "bad_answer")
        else:
            return answer
        return None

    def _answer(self, target: str, body: str, end: float, *, repeat: bool) -> dict[str, Any]:
        """The answer to a request, with the service started when nobody listens. Raises MissedError."""
        started = False
        while True:
            try:
                return self._exchange(target, body, end)
            except (TimeoutError, BlockingIOError):  # the latter from a stopped service whose backlog is full
                raise MissedError("timeout") from None
            except (FileNotFoundError, ConnectionRefusedError):
                if started:
                    raise MissedError("start_failed") from None
                started = True
                self._start(end)
            except ConnectionError:
                if not repeat:
                    raise MissedError("bad_answer") from None
                repeat = False
            except (OSError, ValueError):
                raise MissedError("bad_answer") from None

    def _exchange(self, target: str, body: str, end: float) -> dict[str, Any]:
        """POST to the service and wait for the whole answer until `end`, a monotonic moment.

        Plain sockets on purpose: where a proxy is set, urllib would ask it for 127.0.0.1 too.
        """
        service, token = self._connected(end)
        with service:
            # HTTP/1.0, so that no answer comes in chunks and the line is closed after it
            head = (
                f"POST {target} HTTP/1.0\r\nHost: 127.0.0.1\r\nConnection: close\r\nContent-Type: application/json\r\n{token}"
                f"X-Lore-Remaining-Ms: {_left(end) * 1000:.0f}\r\nContent-Length: {len(body)}\r\n\r\n"
            )
            service.sendall(f"{head}{body}".encode())
            answer = b""
            while len(answer) < MOST_ANSWER:
                service.settimeout(_left(end))
                part = service.recv(1 << 16)
                answer += part
                found = _parsed(answer, is_closed=not part)
                if found is not None:
                    return found
                if not part:
                    raise ConnectionResetError
        raise ValueError

    def _connected(self, end: float) -> tuple[socket.socket, str]:
        """A connection to the service, and the header that it needs. A path too long for a socket is got round over TCP."""
        path, token = f"{self._run}/service.sock", ""
        short = len(os.fsencode(path)) < SOCKET_PATH_BYTES
        if not short:
            with open(f"{self._run}/service.json", "rb") as file:
                info = json.load(file)
            token = f"Authorization: Bearer {info['token']}\r\n"
        service = socket.socket(socket.AF_UNIX if short else socket.AF_INET, socket.SOCK_STREAM)
        try:
            service.settimeout(_left(end))
            service.connect(path if short else ("127.0.0.1", info["port"]))
        except BaseException:
            service.close()
            raise
        return service, token

    def _start(self, end: float) -> None:
        """Start the service and return when it listens. Raises MissedError."""
        if not os.access(self._program, os.X_OK):
            raise MissedError("no_service")
        kept = {k: v for k, v in os.environ.items() if k in ALLOWED or k.startswith(("LC_", "LORE_"))}
        ready, done = os.pipe()
        try:
            try:
                starter = subprocess.Popen(
                    ["/bin/sh", "-c", START, self._program, str(done)],
                    env=kept,
                    cwd="/",
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    pass_fds=(done,),
                    start_new_session=True,
                )
            finally:
                os.close(done)
            starter.wait(_left(end))
            if not select.select([ready], [], [], _left(end))[0]:
                raise MissedError("timeout")
            if os.read(ready, 1) != b"1":
                raise MissedError("start_failed")
        except (TimeoutError, subprocess.TimeoutExpired):
            raise MissedError("timeout") from None
        except OSError:
            raise MissedError("start_failed") from None
        finally:
            os.close(ready)

    # --- what went wrong

    def _note(self, event: str, reason: str) -> None:
        """Say why a session got no memory, for the next session start and `lore doctor`. Three slow failures open the breaker."""
        with contextlib.suppress(OSError):
            _append(f"{self._run}/misses.log", f"{time.time() * 1000:.0f} {CLIENT} {event} {reason}\n")
            if event != TOOL and reason in {"timeout", "start_failed"}:
                _append(f"{self._run}/breaker", ".")

    def _is_broken(self) -> bool:
        try:
            counted = os.stat(f"{self._run}/breaker")
        except OSError:
            return False
        return counted.st_size >= BREAKER_FAILURES and abs(time.time() - counted.st_mtime) < BREAKER_SECONDS


class Boot:
    """The boot block of one session's epoch: fetched aside, and the same to the byte once it was given.

    `facts` are those of the session start. A fetch that failed is not kept: the block on disk is given, or the next call asks
    again.
    """

    def __init__(self, lore: Lore, facts: dict[str, Any]) -> None:
        self._lore = lore
        self._facts = facts
        self._given: str | None = None
        self._answer: str | None = None
        self._begin()

    def text(self, seconds: float) -> str:
        """The block, waited for no longer than that; empty for none."""
        if self._given is not None:
            return self._given
        if self._answer is None and not self._fetching.is_alive():
            self._begin()
        self._fetching.join(seconds)
        text = self._lore.ready_boot() if self._answer is None else self._answer
        if text or self._answer is not None:
            self._given = text
        return text

    def _begin(self) -> None:
        self._fetching = threading.Thread(target=self._fetch, name="lore-boot", daemon=True)
        self._fetching.start()

    def _fetch(self) -> None:
        answer = self._lore.hook("session.start", self._facts, self._lore.limit(is_start=True))
        if answer is not None:
            self._answer = text_in(answer, "system_context")


def guarded(default: D) -> Callable[[Callable[P, T]], Callable[P, T | D]]:
    """Make a handler that never raises: Hermes would skip us, or tell the user. Tests have its times written to a file."""

    def guard(handler: Callable[P, T]) -> Callable[P, T | D]:
        @functools.wraps(handler)
        def run(*args: P.args, **kwargs: P.kwargs) -> T | D:
            began = time.perf_counter()
            try:
                return handler(*args, **kwargs)
            except Exception:
                return default
            finally:
                times = os.environ.get("LORE_PLUGIN_TIMES")
                if times:
                    with contextlib.suppress(OSError):
                        _append(times, f"{CLIENT} {handler.__name__} {(time.perf_counter() - began) * 1000:.3f}\n")

        return run

    return guard


def text_in(answer: dict[str, Any] | None, name: str) -> str:
    """A text of an answer; empty for none and for what is no text."""
    text = (answer or {}).get(name)
    return text if isinstance(text, str) else ""


def place_of(session: dict[str, Any]) -> dict[str, str]:
    """`{cwd}` of a session at this machine's own terminal; a messenger's user works in no folder."""
    if session.get("chat_id") or session.get("gateway_session_key"):
        return {}
    with contextlib.suppress(OSError):
        return {"cwd": os.getcwd()}  # noqa: PTH109
    return {}


def tool_result(text: str, *, is_error: bool) -> str:
    """A tool's answer in the form of Hermes's own tools."""
    return json.dumps({"error" if is_error else "result": text}, ensure_ascii=False)


def _append(path: str, line: str) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.write(descriptor, line.encode())
    finally:
        os.close(descriptor)


def _left(end: float) -> float:
    """Seconds until a monotonic moment. Raises TimeoutError when it has passed."""
    seconds = end - time.monotonic()
    if seconds <= 0:
        raise TimeoutError
    return seconds


def _parsed(answer: bytes, *, is_closed: bool) -> dict[str, Any] | None:
    """What a whole HTTP answer says; None as long as it is not whole. Raises ValueError for another one than ours."""
    head, complete, body = answer.partition(b"\r\n\r\n")
    if not complete:
        return None
    _, counted, length = head.lower().partition(b"content-length:")
    whole = len(body) >= int(length.split(b"\r")[0]) if counted else is_closed
    if not whole:
        return None
    if head[9:12] not in {b"200", b"204"}:
        raise ValueError(head[:12])
    value = json.loads(body) if body.strip() else {}
    if not isinstance(value, dict):
        raise ValueError  # noqa: TRY004  (it is the service's answer that is wrong, not our call)
    return value
