"""Servers that misbehave, against every call of the client: the stated error, in time, and no token elsewhere."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
import tracemalloc
from collections.abc import Awaitable, Callable, Iterator

import pytest

from lorehooks.clients.client import LoreClient
from lorehooks.clients.endpoint import Endpoint
from lorehooks.clients.errors import (
    BadAnswerError,
    DeadlineError,
    RedirectedError,
    ServerError,
    UnreachableError,
)
from lorehooks.clients.transport import MAX_ANSWER
from lorehooks.core.errors import LoreError
from lorehooks.core.model import NodeDraft, NodePatch, Origin, RecallQuery

TOKEN = "lm_test_token"
SHORT = 0.5
"""Seconds for servers that never finish."""
PATIENCE = 20.0
"""Seconds for all others, on a machine that has more to do; far below what the slow modes would take."""
AT_ONCE = 8
"""Calls under way together: a listener's queue holds 16, and what does not fit in waits for a second."""
ORIGIN = Origin("cli", "claudecode", "s-1")

CALLS: dict[str, Callable[[LoreClient], Awaitable[object]]] = {
    "health": lambda client: client.health(),
    "guidance": lambda client: client.guidance(),
    "boot": lambda client: client.boot("claudecode"),
    "get_node": lambda client: client.get_node("project://shop"),
    "search": lambda client: client.search("webhook"),
    "domains": lambda client: client.domains(),
    "recall": lambda client: client.recall(RecallQuery("webhook"), ORIGIN),
    "mark_used": lambda client: client.mark_used("q-1", ["project://shop"]),
    "create_node": lambda client: client.create_node(NodeDraft("project://shop", "text"), ORIGIN),
    "update_node": lambda client: client.update_node("project://shop", NodePatch(content="text"), ORIGIN),
    "delete_node": lambda client: client.delete_node("project://shop", ORIGIN),
    "move_node": lambda client: client.move_node("project://shop", "project://store", ORIGIN),
    "history": lambda client: client.history("project://shop"),
    "rollback": lambda client: client.rollback("project://shop", 1, ORIGIN),
    "settings": lambda client: client.settings(),
    "put_settings": lambda client: client.put_settings({"recall.display.max_display_items": 4}),
    "reset_settings": lambda client: client.reset_settings(["recall.display.max_display_items"]),
    "pending": lambda client: client.pending(),
    "decide": lambda client: client.decide(1, accepted=True),
}
WRITES = ("create_node", "update_node", "delete_node", "move_node", "rollback", "put_settings", "decide")

MODES: dict[str, type[LoreError]] = {
    "hang": DeadlineError,
    "slow_accept": DeadlineError,
    "drip_headers": DeadlineError,
    "drip_body": DeadlineError,
    "rst": UnreachableError,
    "html502": ServerError,
    "err500json": ServerError,
    "html200": BadAnswerError,
    "badjson": BadAnswerError,
    "truncated": BadAnswerError,
    "empty200": BadAnswerError,
    "wrongtype": BadAnswerError,
    "not_utf8": BadAnswerError,
    "nan": BadAnswerError,
    "big": BadAnswerError,
    "redirect_other": RedirectedError,
    "redirect_loop": RedirectedError,
}


async def outcomes(url: str, *, token: str | None = TOKEN, seconds: float = PATIENCE) -> dict[str, object]:
    """What each call ends in, when several are made at a time over one client."""
    room = asyncio.Semaphore(AT_ONCE)

    async def one(call: Callable[[LoreClient], Awaitable[object]]) -> tuple[object, float]:
        async with room:
            began = time.monotonic()
            try:
                result: object = await call(client)
            except LoreError as error:
                result = error
            return result, time.monotonic() - began

    async with LoreClient(Endpoint(url, token), seconds=seconds) as client:
        found = await asyncio.gather(*(one(call) for call in CALLS.values()))
    assert max(took for _, took in found) < PATIENCE
    return dict(zip(CALLS, (result for result, _ in found), strict=True))


@pytest.mark.parametrize("mode", MODES)
def test_each_call_ends_in_the_stated_error_that_names_the_server(mode: str, misbehaving) -> None:
    server = misbehaving(mode)
    seconds = SHORT if MODES[mode] is DeadlineError else PATIENCE
    for call, error in asyncio.run(outcomes(server.url, seconds=seconds)).items():
        assert type(error) is MODES[mode], (call, error)
        assert server.url in str(error), call


def test_a_server_that_answers_something_else_is_told_from_one_with_an_answer(misbehaving) -> None:
    found = asyncio.run(outcomes(misbehaving("ok").url))
    hits = found.pop("search")
    assert [hit.uri for hit in hits] == ["core://demo"]
    assert {type(error) for error in found.values()} == {BadAnswerError}


@pytest.mark.parametrize("mode", ["hang", "drip_body", "rst"])
def test_a_write_without_an_answer_says_that_it_may_have_arrived(mode: str, misbehaving) -> None:
    found = asyncio.run(outcomes(misbehaving(mode).url, seconds=PATIENCE if mode == "rst" else SHORT))
    assert {call for call, error in found.items() if "may have arrived" in str(error)} == {*WRITES, "reset_settings"}


def test_a_redirect_takes_the_token_nowhere(trap, misbehaving) -> None:
    port, caught = trap
    server = misbehaving("redirect_other", port - 1)
    found = asyncio.run(outcomes(server.url))
    assert f"http://localhost:{port}/stolen" in str(found["recall"])
    assert caught == []
    assert any(f"Bearer {TOKEN}" in head for head in server.heads)


def test_a_redirect_is_refused_without_a_token_too(misbehaving) -> None:
    found = asyncio.run(outcomes(misbehaving("redirect_loop").url, token=None))
    assert {type(error) for error in found.values()} == {RedirectedError}


@pytest.mark.parametrize("name", ["HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"])
def test_loopback_is_reached_past_every_proxy_variable(name: str, misbehaving, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, "http://127.0.0.1:9")
    server = misbehaving("ok")
    found = asyncio.run(outcomes(server.url))
    assert [hit.uri for hit in found["search"]] == ["core://demo"]
    assert len(server.heads) == len(CALLS)


def test_elsewhere_the_proxy_is_used(trap, monkeypatch: pytest.MonkeyPatch) -> None:
    port, caught = trap
    monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{port}")

    async def ask() -> None:
        async with LoreClient(Endpoint("http://lore.example.test"), seconds=PATIENCE) as client:
            with pytest.raises(UnreachableError):
                await client.health()

    asyncio.run(ask())
    assert caught[0].startswith(b"GET http://lore.example.test/api/health HTTP/1.1\r\n")


@pytest.fixture
def endless() -> Iterator[str]:
    """A server that sends a body without length and without end."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        connection, _ = listener.accept()
        with connection:
            connection.recv(65536)
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n")
            try:
                while True:
                    connection.sendall(b" " * 65536)
            except OSError:
                return

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    thread.join(PATIENCE)
    listener.close()
    assert not thread.is_alive()


def test_a_body_without_end_is_cut_off_at_the_limit(endless: str) -> None:
    async def ask() -> None:
        async with LoreClient(Endpoint(endless), seconds=60) as client:
            with pytest.raises(BadAnswerError, match="more than 16 MB"):
                await client.domains()

    tracemalloc.start()
    try:
        asyncio.run(ask())
        assert tracemalloc.get_traced_memory()[1] < 2 * MAX_ANSWER
    finally:
        tracemalloc.stop()


def test_an_announced_flood_is_refused_unread(misbehaving) -> None:
    url = misbehaving("big").url
    tracemalloc.start()
    try:
        asyncio.run(outcomes(url))
        assert tracemalloc.get_traced_memory()[1] < 2 * MAX_ANSWER
    finally:
        tracemalloc.stop()
