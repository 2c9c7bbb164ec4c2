"""Who may speak to the service: the real application over a Unix socket's scope and over TCP's (bug case D10)."""

from __future__ import annotations

import asyncio
import os
import socket

import pytest

from lorehooks.core.home import Home
from lorehooks.hooks import guard, process, service, serviceinfo
from lorehooks.hooks.guard import Guard, Reach, reach_of

TOKEN = "t0ken-of-this-service"
JSON = {"content-type": "application/json"}
BEARER = {"authorization": f"Bearer {TOKEN}"}


@pytest.fixture
def ask(tmp_path):
    """Send one request to a guarded application; answers its status, 200 when the application got it."""
    home = Home(tmp_path)
    home.run.mkdir()
    home.service_file.write_text(f'{{"token": "{TOKEN}"}}')

    def send(
        path: str = "/api/browse/node",
        headers: dict[str, str] | None = None,
        *,
        unix: bool = False,
        reach: Reach = guard.LOCAL,
        bodies: tuple[bytes, ...] = (b"{}",),
        method: str = "POST",
        kind: str = "http",
    ) -> int:
        sent = []
        waiting = [{"type": "http.request", "body": body, "more_body": True} for body in bodies]

        async def application(scope, receive, send):
            heard = 0
            for _ in bodies:
                message = await receive()
                if message["type"] == "http.disconnect":
                    sent.append({"type": "cut off", "status": heard})
                    return
                heard += len(message["body"])
            await send({"type": "http.response.start", "status": 200, "headers": []})

        async def receive():
            return waiting.pop(0)

        async def answer(message):
            sent.append(message)

        scope = {
            "type": kind,
            "method": method,
            "path": path,
            "headers": [(name.encode(), value.encode("latin-1")) for name, value in (headers or {}).items()],
            "client": None if unix else ("127.0.0.1", 50_000),
            "server": None if unix else ("127.0.0.1", 18_901),
        }
        asyncio.run(Guard(application, home, reach)(scope, receive, answer))
        return sent[0]["status"]

    send.home = home
    return send


HERE = {"host": "127.0.0.1:18901"}


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "127.0.0.1:18901", "localhost:18901", "LOCALHOST", "[::1]:18901", "[::1]"]
)
def test_local_names_with_the_token_are_served(ask, host):
    assert ask(headers={"host": host, **JSON, **BEARER}) == 200


@pytest.mark.parametrize(
    "host",
    [
        *("evil.test:18901", "localhost.evil.test", "127.0.0.1.evil.test:18901", "evil.test", "localhost."),
        *("localhost:18901@evil.test", "localhost:x", ":localhost", "[::1", "::1", "", "192.168.1.5:18901", "0x7f.1"),
    ],
)
def test_every_other_host_is_refused_token_or_not(ask, host):
    assert ask(headers={"host": host, **JSON, **BEARER}) == 403
    assert ask("/api/health", {"host": host}) == 403


def test_a_request_without_a_host_is_refused(ask):
    assert ask(headers={**JSON, **BEARER}) == 403


@pytest.mark.parametrize(
    "origin",
    [
        *("https://evil.test", "null", "", "https://localhost.evil.test", "http://127.0.0.1.evil.test:18901"),
        *("http://localhost:1@evil.test", "file://", "chrome-extension://localhost", "http://evil.test#localhost"),
    ],
)
def test_requests_of_other_sites_are_refused(ask, origin):
    assert ask(headers={**HERE, "origin": origin, **JSON, **BEARER}) == 403


@pytest.mark.parametrize("origin", ["http://127.0.0.1:18901", "http://localhost:18901", "http://[::1]:18901"])
def test_our_own_pages_are_served(ask, origin):
    assert ask(headers={**HERE, "origin": origin, **JSON, **BEARER}) == 200


@pytest.mark.parametrize(
    "kind",
    ["text/plain", "Text/Plain; charset=utf-8", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"],
)
def test_bodies_that_a_page_may_post_without_asking_are_refused(ask, kind):
    assert ask(headers={**HERE, "content-type": kind, **BEARER}) == 403
    assert ask("/api/mcp", headers={**HERE, "content-type": kind, **BEARER}) == 403


@pytest.mark.parametrize(
    "given",
    [
        "",
        "Bearer",
        "Bearer ",
        "Bearer wrong",
        f"Bearer {TOKEN}x",
        f"Basic {TOKEN}",
        TOKEN,
        f"Bearer {TOKEN[:-1]}",
        "Bearer é",
    ],
)
def test_without_the_token_there_is_nothing_but_health(ask, given):
    headers = {**HERE, **JSON, "authorization": given}
    assert ask(headers=headers) == ask("/api/mcp", headers) == ask("/hooks/v1/claudecode/stop", headers) == 401
    assert ask("/api/health", headers) == 200
    assert ask("/api/health/", headers) == 401


def test_the_scheme_of_a_token_may_be_written_in_any_case(ask):
    assert ask(headers={**HERE, **JSON, "authorization": f"bearer {TOKEN}"}) == 200


def test_without_a_service_file_nobody_has_the_token(ask):
    ask.home.service_file.unlink()
    assert ask(headers={**HERE, **JSON, "authorization": "Bearer "}) == 401


def test_whoever_reaches_the_unix_socket_is_served(ask):
    assert ask(unix=True) == 200
    assert ask(unix=True, headers={"host": "lore", "content-type": "text/plain"}) == 200


def test_nothing_but_http_comes_in_over_tcp(ask):
    assert ask(headers={**HERE, **BEARER}, kind="websocket") == 403


@pytest.mark.parametrize("unix", [True, False])
def test_huge_bodies_are_turned_away(ask, monkeypatch, unix):
    monkeypatch.setattr(guard, "MAX_BODY", 10)
    headers = {**HERE, **JSON, **BEARER}
    assert ask(headers={**headers, "content-length": "11"}, unix=unix) == 413
    assert ask(headers={**headers, "content-length": "9" * 30}, unix=unix) == 413
    assert ask(headers={**headers, "content-length": "10"}, unix=unix) == 200
    assert ask(headers=headers, unix=unix, bodies=(b"12345", b"67890")) == 200
    assert ask(headers=headers, unix=unix, bodies=(b"12345", b"67890", b"1")) == 10, "cut off after ten bytes"


@pytest.mark.parametrize(
    ("host", "names", "served", "refused"),
    [
        ("127.0.0.1", (), ["localhost"], ["192.168.1.5", "evil.test"]),
        ("192.168.1.5", (), ["192.168.1.5:18901", "localhost"], ["192.168.1.6", "evil.test"]),
        (
            "0.0.0.0",
            (),
            ["192.168.1.5:18901", "[fe80::1]:18901", os.uname().nodename],
            ["evil.test", "1.2.3.4.evil.test"],
        ),
        ("::", ("Lore.example.org",), ["lore.example.org", "10.0.0.1"], ["example.org", "lore.example.org.evil.test"]),
        ("127.0.0.1", ("lore.example.org",), ["lore.example.org:443"], ["10.0.0.1"]),
    ],
)
def test_lore_serve_goes_by_the_names_it_was_given_and_bare_addresses(host, names, served, refused):
    reach = reach_of(host, names)
    assert [name for name in served if not reach.holds(name)] == []
    assert [name for name in refused if reach.holds(name)] == []


def test_lore_serve_hands_its_names_to_the_service(tmp_path, monkeypatch):
    given = []
    monkeypatch.setattr(process, "serve_until_ended", lambda _, **options: given.append(options["reach"]))
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(os, "umask", lambda _: 0)  # this process goes on after it
    service.serve(Home(tmp_path / "lore"), port, names=["lore.example.org"])
    assert given == [reach_of("127.0.0.1", ["lore.example.org"])]


def test_the_running_service_keeps_to_it(real):
    info = serviceinfo.read_info(real.home)

    def status(path: str, *lines: str) -> bytes:
        with socket.create_connection(("127.0.0.1", info.port), timeout=10) as connection:
            head = "".join(f"{line}\r\n" for line in (f"GET {path} HTTP/1.1", *lines, "Connection: close"))
            connection.sendall(f"{head}\r\n".encode())
            return connection.recv(4096)[9:12]

    assert status("/api/health", f"Host: 127.0.0.1:{info.port}") == b"200"
    assert status("/api/health", "Host: evil.test") == b"403"
    assert status("/api/health") == b"400"
    assert status("/api/browse/domains", "Host: localhost") == b"401"
    assert status("/api/browse/domains", "Host: localhost", f"Authorization: Bearer {info.token}") == b"200"
