"""No test sees the developer's own home, agents' folders or keys, and none reaches beyond this machine."""

from __future__ import annotations

import ipaddress
import json
import os
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

FOREIGN_PREFIXES = (
    "LORE_", "XDG_", "CLAUDE", "CODEX", "OPENCODE", "PI_", "OPENCLAW", "HERMES", "ZCODE", "DSH_",
    "ANTHROPIC", "OPENAI", "AI_AGENT",
)  # fmt: skip
FOREIGN_NAMES = {"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"}

# A run that was started in the background ignores Ctrl-C, and so would every program that a test starts and interrupts.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def own_world(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """A HOME of this test's own, no variable that could lead out of it, sockets held to this machine. Returns that HOME."""
    home = tmp_path_factory.mktemp("home")
    for name in list(os.environ):
        if name.startswith(FOREIGN_PREFIXES) or name.upper() in FOREIGN_NAMES:
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home / ".config"))
    if request.node.get_closest_marker("e2e") is None:
        _hold_sockets(monkeypatch)
    return home


def _hold_sockets(monkeypatch: pytest.MonkeyPatch) -> None:
    connect, connect_ex, getaddrinfo = socket.socket.connect, socket.socket.connect_ex, socket.getaddrinfo

    def check(address: object) -> None:
        host = address[0] if isinstance(address, tuple) else ""
        if not _is_local(host):
            raise AssertionError(f"a test reached for {host}")

    def held_connect(self: socket.socket, address: Any) -> None:
        check(address)
        connect(self, address)

    def held_connect_ex(self: socket.socket, address: Any) -> int:
        check(address)
        return connect_ex(self, address)

    def held_getaddrinfo(host: Any, *args: Any, **kwargs: Any) -> Any:
        check((host.decode() if isinstance(host, bytes) else host or "localhost",))
        return getaddrinfo(host, *args, **kwargs)

    monkeypatch.setattr(socket.socket, "connect", held_connect)
    monkeypatch.setattr(socket.socket, "connect_ex", held_connect_ex)
    monkeypatch.setattr(socket, "getaddrinfo", held_getaddrinfo)


def _is_local(host: object) -> bool:
    """A Unix socket's address is no tuple and comes here as an empty host."""
    if host in {"", "localhost"}:
        return True
    try:
        return ipaddress.ip_address(str(host)).is_loopback
    except ValueError:
        return False


@pytest.fixture
def lore_server(tmp_path: Path) -> Iterator[Callable[..., Any]]:
    """Start our Lore server in a home below `tmp_path` and get an HTTP client of it; `vectors` loads the model."""
    with ExitStack() as started:

        def start(*, vectors: bool = False, name: str = "lore") -> Any:
            from starlette.testclient import TestClient

            from lorehooks.core.home import Home
            from lorehooks.core.model import Origin
            from lorehooks.core.store import Store
            from lorehooks.core.writes import set_settings
            from lorehooks.hooks.app import create_app

            home = Home(tmp_path / name)
            home.run.mkdir(parents=True, exist_ok=True)
            home.service_file.write_text(json.dumps({"token": "a-token"}))
            if not vectors:
                store = Store(home.database)
                set_settings(store, {"embedding.provider": "off"}, Origin("cli"))
                store.close()
            app = create_app(home)
            client = TestClient(
                app, base_url="http://127.0.0.1", headers={"Authorization": "Bearer a-token"}, follow_redirects=False
            )
            started.enter_context(client)
            client.home = home
            if vectors:
                client.portal.call(app.state.parts.backend.live.complete.wait)
            return client

        yield start
