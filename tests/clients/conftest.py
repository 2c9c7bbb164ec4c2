"""Servers for the client tests: one that answers by path, the misbehaving one of `tests/support`, and a listening trap."""

from __future__ import annotations

import contextlib
import json
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.parse import urlsplit

import pytest

BAD_SERVER = Path(__file__).parents[1] / "support" / "bad_server.py"


@dataclass
class Misbehaving:
    """A running bad server and the request heads it has seen."""

    port: int
    heads: list[str] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"


@dataclass
class Asked:
    """One request that an upstream has seen. Header names are in lower case."""

    what: str
    query: str
    headers: dict[str, str]
    body: Any


@dataclass
class Upstream:
    """A Lore server over TCP: `answers` by method and path below /api, 401 without its token."""

    port: int = 0
    token: str | None = None
    answers: dict[str, tuple[int, Any]] = field(default_factory=dict)
    asked: list[Asked] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def count(self, what: str) -> int:
        return sum(asked.what == what for asked in self.asked)

    def last(self, what: str) -> Asked:
        return next(asked for asked in reversed(self.asked) if asked.what == what)

    def answer(self, asked: Asked) -> tuple[int, Any]:
        if asked.what == "GET /health":
            return self.answers.get(asked.what, (200, {"status": "ok", "database": "connected", "version": "1.3.22"}))
        if self.token and asked.headers.get("authorization") != f"Bearer {self.token}":
            return 401, {"detail": "Unauthorized"}
        return self.answers.get(asked.what, (404, {"detail": "Path not found", "code": "not_found"}))


@pytest.fixture
def upstream() -> Iterator[Callable[..., Upstream]]:
    """`upstream(token=None)` runs a Lore server until the test ends. A body of bytes goes out as a web page."""
    with ExitStack() as stack:
        yield lambda token=None: stack.enter_context(_answering(token))


@contextlib.contextmanager
def _answering(token: str | None) -> Iterator[Upstream]:
    state = Upstream(token=token, answers={"GET /browse/domains": (200, [{"domain": "core", "root_count": 2}])})

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        wbufsize = -1  # head and body in one piece: two would wait for each other's acknowledgement

        def _take(self) -> None:
            raw = self.rfile.read(int(self.headers.get("content-length", 0)))
            address = urlsplit(self.path)
            what = f"{self.command} {address.path.removeprefix('/api')}"
            headers = {name.lower(): value for name, value in self.headers.items()}
            asked = Asked(what, address.query, headers, json.loads(raw) if raw else None)
            state.asked.append(asked)
            status, body = state.answer(asked)
            content = body if isinstance(body, bytes) else json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Type", "text/html" if isinstance(body, bytes) else "application/json")
            self.send_header("Content-Length", str(len(content)))
            if 300 <= status < 400:
                self.send_header("Location", body)
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_POST = do_PUT = do_DELETE = _take  # noqa: N815

        def log_message(self, *_: object) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as httpd:
        httpd.daemon_threads = True
        httpd.block_on_close = False
        state.port = httpd.server_address[1]
        thread = Thread(target=httpd.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        thread.start()
        try:
            yield state
        finally:
            httpd.shutdown()
            thread.join()


Start = Callable[..., Misbehaving]


@pytest.fixture
def wait() -> Callable[[Callable[[], object]], None]:
    """Poll until a condition holds; a slow machine gets 20 seconds."""

    def until(condition: Callable[[], object]) -> None:
        end = time.monotonic() + 20
        while not condition():
            assert time.monotonic() < end
            time.sleep(0.01)

    return until


@pytest.fixture
def misbehaving() -> Iterator[Start]:
    """`misbehaving(MODE, port=0)` runs `bad_server.py MODE` until the test ends."""
    with ExitStack() as stack:
        yield lambda mode, port=0: stack.enter_context(_running(mode, port))


@pytest.fixture
def trap() -> Iterator[tuple[int, list[bytes]]]:
    """The port of a listener that answers nothing, and what reached it. The port below it is free."""
    with _listening() as found:
        yield found


@contextlib.contextmanager
def _running(mode: str, port: int) -> Iterator[Misbehaving]:
    with subprocess.Popen(
        [sys.executable, str(BAD_SERVER), mode, str(port)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        try:
            server = Misbehaving(int(process.stdout.readline().split()[-1]))
            reader = Thread(target=lambda: server.heads.extend(process.stderr or ()), daemon=True)
            reader.start()
            yield server
        finally:
            process.kill()
            reader.join()


def _listening() -> AbstractContextManager[tuple[int, list[bytes]]]:
    while True:
        listener = socket.socket()
        listener.bind(("127.0.0.1", 0))
        port = listener.getsockname()[1]
        with socket.socket() as below, contextlib.suppress(OSError):
            below.bind(("127.0.0.1", port - 1))
            return _catching(listener, port)
        listener.close()


@contextlib.contextmanager
def _catching(listener: socket.socket, port: int) -> Iterator[tuple[int, list[bytes]]]:
    caught: list[bytes] = []

    def catch() -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = listener.accept()
                with connection:
                    connection.settimeout(5)
                    caught.append(connection.recv(65536))

    listener.listen()
    thread = Thread(target=catch, daemon=True)
    thread.start()
    try:
        yield port, caught
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join()
