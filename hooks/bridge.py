"""MCP over stdin and stdout for hosts that start a program: `H/bin/python -I -S H/bin/bridge.py CLIENT_TYPE`.

One JSON-RPC message a line. What a host asks first (`initialize`, `tools/list`) is answered from a file, since hosts hold
the user's first prompt for a slow server; tool calls go to the service's `/api/mcp` over its Unix socket. Standard library
only, and a single file: it runs as a copy in the home, outside any environment.
"""

# os and open instead of pathlib, for the same reason as below:
# ruff: noqa: PTH100, PTH116, PTH120, PTH123
from __future__ import annotations

import contextlib
import json
import os
import sys
import threading
import time

TYPE_CHECKING = False  # importing typing would add a third to a bridge's start
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    Message = dict[str, Any]

PROTOCOLS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
"""Revisions that begin with `initialize`, oldest first."""
ALLOWED = (
    *("HOME", "PATH", "LANG", "TZ", "TMPDIR", "USER", "LOGNAME"),
    *("XDG_RUNTIME_DIR", "SSL_CERT_FILE", "SSL_CERT_DIR"),
)
"""What the service gets of a host's environment, besides LC_* and LORE_*: no keys. The hook program has the same list."""
CALL_SECONDS = 30.0
HOOK_SECONDS = 2.0
"""Tools named `hook_…` are a host's way to run a hook: they answer in time and stay silent when anything fails."""
ALIVE_SECONDS = 600.0
MOST_ANSWER = 32 << 20


class NoAnswerError(Exception):
    """The service gave none; the text says why, in the words of `run/misses.log`."""


def allowed_environment() -> dict[str, str]:
    """The part of this process's environment that a service may have."""
    return {k: v for k, v in os.environ.items() if k in ALLOWED or k.startswith(("LC_", "LORE_"))}


def start_service(home: str, seconds: float) -> bool:
    """Start the service of `home` aside and wait until it takes connections. False when it does not in that time."""
    import select
    import subprocess

    ready, done = os.pipe()
    try:
        process = subprocess.Popen(
            [f"{home}/bin/service", "--ready-fd", str(done)],
            env=allowed_environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=(done,),
            start_new_session=True,
        )
    except OSError:
        os.close(done)
        os.close(ready)
        return False
    os.close(done)
    threading.Thread(target=process.wait, daemon=True).start()  # a bridge outlives services, and leaves no zombies
    try:
        return bool(select.select([ready], [], [], seconds)[0]) and os.read(ready, 1) == b"1"
    finally:
        os.close(ready)


def exchange(target: str, body: bytes, end: float, protocol: str = PROTOCOLS[-1]) -> bytes:
    """POST to the service of the working folder; the body of its answer. `end` is the monotonic moment at which waiting is over.

    Raises OSError when nobody answers in time, NoAnswerError for another status.
    """
    import socket

    def left() -> float:
        seconds = end - time.monotonic()
        if seconds <= 0:
            raise TimeoutError
        return seconds

    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as service:
        service.settimeout(left())
        service.connect("service.sock")  # relative, since a socket's path has room for 108 bytes
        head = (
            f"POST {target} HTTP/1.1\r\nHost: lore\r\nConnection: close\r\nContent-Type: application/json\r\n"
            f"Accept: application/json, text/event-stream\r\nMCP-Protocol-Version: {protocol}\r\nX-Lore-Remaining-Ms: {left() * 1000:.0f}\r\n"
            f"Content-Length: {len(body)}\r\n\r\n"
        )
        service.sendall(head.encode() + body)
        answer = b""
        while len(answer) < MOST_ANSWER:
            service.settimeout(left())
            part = service.recv(1 << 16)
            answer += part
            if not part:
                break
        top, complete, content = answer.partition(b"\r\n\r\n")
        if not complete:
            raise ConnectionResetError
        if top[9:12] not in {b"200", b"202", b"204"}:
            raise NoAnswerError(f"bad_answer {top[9:12].decode(errors='replace')}")
        return content


def somebody_listens() -> bool:
    """Whether the socket of the working folder takes connections."""
    import socket

    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        return probe.connect_ex("service.sock") == 0


class Bridge:
    """One host's connection. `write` takes whole lines and may be called by several threads."""

    def __init__(self, home: str, client: str, write: Callable[[bytes], None], *, disabled: bool) -> None:
        self.home = home
        self.client = client
        self.disabled = disabled
        self._write = write
        self._ready = {} if disabled else self._read_ready()
        self._version = PROTOCOLS[-1]
        self._starting = threading.Lock()
        self._calls: list[threading.Thread] = []

    def _read_ready(self) -> Message:
        """The answers that the service or the installation left ready."""
        for folder in ("run", "bin"):
            try:
                with open(f"{self.home}/{folder}/tools/{self.client}.json", "rb") as file:
                    found = json.load(file)
            except (OSError, ValueError):
                continue
            if isinstance(found, dict):
                return found
        return {}

    def take(self, line: bytes) -> None:
        """Answer one line; what needs the service is answered by a thread of its own."""
        try:
            message = json.loads(line)
        except (ValueError, RecursionError):
            self._send(_error(None, -32700, "Parse error"))
            return
        if isinstance(message, list) and message:
            self._aside(lambda: self._send([a for a in map(self._answer, message) if a is not None] or None))
        elif not isinstance(message, dict):
            self._send(_error(None, -32600, "Invalid request"))
        elif message.get("method") == "tools/call" or (message.get("method") == "tools/list" and not self._ready):
            self._aside(lambda: self._send(self._answer(message)))
        else:
            self._send(self._answer(message))

    def finish(self) -> None:
        """Wait for calls that are under way; each has a deadline."""
        for call in self._calls:
            call.join()

    def tell_alive(self) -> None:
        """Let the service know that it is in use, if there is one."""
        body = json.dumps({"client_type": self.client}).encode()
        with contextlib.suppress(OSError, NoAnswerError):
            exchange("/hooks/v1/alive", body, time.monotonic() + 5)

    def _aside(self, work: Callable[[], None]) -> None:
        self._calls = [call for call in self._calls if call.is_alive()]
        self._calls.append(threading.Thread(target=work, daemon=True))
        self._calls[-1].start()

    def _send(self, answer: object) -> None:
        if answer is not None:
            self._write(json.dumps(answer, ensure_ascii=True, separators=(",", ":")).encode() + b"\n")

    def _answer(self, message: object) -> Message | None:
        """The answer to one message; None for what gets none."""
        if not isinstance(message, dict):
            return _error(None, -32600, "Invalid request")
        method, id_ = message.get("method"), message.get("id")
        if id_ is None or not isinstance(method, str):
            asks = id_ is not None and "result" not in message and "error" not in message
            return _error(id_, -32600, "Invalid request") if asks else None
        if method == "ping":
            return _result(id_, {})
        if method == "initialize":
            return _result(id_, self._initialize(message.get("params")))
        if method == "server/discover" and self._ready.get("discover"):
            return _result(id_, self._ready["discover"])
        if method == "tools/list":
            return self._list(message)
        if method == "tools/call":
            return self._call(message)
        return _error(id_, -32601, f"Method not found: {method}")

    def _initialize(self, params: object) -> Message:
        asked = params.get("protocolVersion") if isinstance(params, dict) else None
        self._version = asked if asked in PROTOCOLS else PROTOCOLS[-1]
        ready = self._ready.get("initialize") or {
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "lore", "version": "0"},
        }
        return {**ready, "protocolVersion": self._version}

    def _list(self, message: Message) -> Message:
        if self.disabled:
            return _result(message["id"], {"tools": []})
        if self._ready.get("tools_list"):
            return _result(message["id"], self._ready["tools_list"])
        try:
            return self._forward(message, HOOK_SECONDS)
        except NoAnswerError:
            return _result(message["id"], {"tools": []})

    def _call(self, message: Message) -> Message:
        params = message.get("params")
        name = params.get("name") if isinstance(params, dict) else None
        is_hook = isinstance(name, str) and name.startswith("hook_")
        if self.disabled:
            text = (
                ""
                if is_hook
                else "Lore is switched off here (LORE_DISABLE is set, or its home belongs to another user)."
            )
            return _result(message["id"], _text(text, failed=not is_hook))
        try:
            return self._forward(message, HOOK_SECONDS if is_hook else CALL_SECONDS)
        except NoAnswerError as error:
            self._note(str(name) if is_hook else "tools.call", str(error))
            if is_hook:
                return _result(message["id"], _text("", failed=False))
            text = f"Lore did not answer ({error}): run `lore doctor` to see why."
            return _result(message["id"], _text(text, failed=True))

    def _forward(self, message: Message, seconds: float) -> Message:
        """The service's own answer to a request. Starts it when nobody listens. Raises NoAnswerError."""
        end = time.monotonic() + seconds
        target = f"/api/mcp?client_type={self.client}"
        body = json.dumps(message).encode()
        try:
            try:
                content = exchange(target, body, end, self._version)
            except TimeoutError:
                raise
            except OSError:
                with self._starting:  # calls made together start one service
                    if not somebody_listens() and not start_service(self.home, end - time.monotonic()):
                        raise NoAnswerError("start_failed") from None
                content = exchange(target, body, end, self._version)
            answer = json.loads(content)
        except TimeoutError:
            raise NoAnswerError("timeout") from None
        except OSError:
            raise NoAnswerError("no_service") from None
        except ValueError:
            raise NoAnswerError("bad_answer") from None
        if not isinstance(answer, dict) or answer.get("id") != message["id"]:
            raise NoAnswerError("bad_answer")
        return answer

    def _note(self, event: str, reason: str) -> None:
        line = f"{time.time() * 1000:.0f} {self.client} {event} {reason.partition(' ')[0]}\n"
        try:
            with open(
                "misses.log", "a", encoding="utf-8", opener=lambda path, flags: os.open(path, flags, 0o600)
            ) as log:
                log.write(line)
        except OSError:
            pass  # a full disk is no reason to fail a second time


def _result(id_: object, result: Message) -> Message:
    return {"jsonrpc": "2.0", "id": id_, "result": result}


def _error(id_: object, code: int, text: str) -> Message:
    return {"jsonrpc": "2.0", "id": id_, "error": {"code": code, "message": text}}


def _text(text: str, *, failed: bool) -> Message:
    return {"content": [{"type": "text", "text": text}], "isError": failed}


def main() -> None:
    home, client = os.path.dirname(os.path.dirname(os.path.abspath(__file__))), sys.argv[1]
    disabled = os.environ.get("LORE_DISABLE", "0") not in {"", "0"}
    writing = threading.Lock()

    def write(line: bytes) -> None:
        with writing:
            try:
                while line:
                    line = line[os.write(1, line) :]
            except OSError:
                os._exit(0)  # the host is gone

    try:
        os.chdir(f"{home}/run")
        ours = os.stat(".").st_uid == os.geteuid()
    except OSError:
        ours = False
    bridge = Bridge(home, client, write, disabled=disabled or not ours)
    if not bridge.disabled:
        threading.Thread(target=_stay_alive, args=(bridge,), daemon=True).start()
    for line in sys.stdin.buffer:
        if line.strip():
            bridge.take(line)
    bridge.finish()
    os._exit(0)


def _stay_alive(bridge: Bridge) -> None:
    """Count as use of the service while the host lives, and end with it."""
    parent, told = os.getppid(), -ALIVE_SECONDS
    while os.getppid() == parent:
        if time.monotonic() - told >= ALIVE_SECONDS:
            bridge.tell_alive()
            told = time.monotonic()
        time.sleep(1)
    os._exit(0)


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        os._exit(0)
