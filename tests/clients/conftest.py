"""Servers for the client tests: the misbehaving one of `tests/support`, as a process of its own, and a listening trap."""

from __future__ import annotations

import contextlib
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from threading import Thread

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


Start = Callable[..., Misbehaving]


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
