"""A remote memory whose server comes and goes: what sessions and prompts get meanwhile, and what it is asked."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest

from lorehooks.clients.backend import SESSION_START
from lorehooks.clients.breaker import FAILURES
from lorehooks.clients.client import LoreClient
from lorehooks.clients.endpoint import Endpoint
from lorehooks.clients.errors import DeadlineError, PausedError, UnreachableError
from lorehooks.clients.remote import RemoteBackend
from lorehooks.clients.target import Target
from lorehooks.core.home import Home
from lorehooks.core.model import Origin, RecallQuery
from lorehooks.core.runs import Recorder
from lorehooks.core.settings import Settings

URL = "http://127.0.0.1:18901"
PROMPT = Origin("hook:prompt.submit", "claudecode", "s-1")
START = Origin(SESSION_START, "claudecode", "s-1")
BOOT = {
    "core_memories": [
        {"uri": "core://agent", "content": "Test first.", "priority": 0, "disclosure": None, "node_uuid": "u-1"}
    ],
    "recent_memories": [
        {"uri": uri, "priority": 2, "disclosure": None, "created_at": "2026-05-01T00:00:00.000Z"}
        for uri in ("core://soul", *(f"project://m{number}" for number in range(7)))
    ],
}
ITEM = {
    "uri": "project://shop",
    "score": 0.693,
    "exact_score": 0.84,
    "score_breakdown": {"exact": 0.252, "semantic": 0.15, "priority": 0.04},
    "cues": ["a", "b", "c", "d"],
    "matched_on": ["exact"],
    "priority": 1,
    "boot": False,
}
RECALL = {
    "query": "q",
    "candidates": [
        ITEM,
        {**ITEM, "uri": "project://near", "score": 0.7},
        {**ITEM, "uri": "project://far", "score": 0.1},
        {**ITEM, "uri": "core://soul", "score": 0.9, "boot": True},
    ],
    "items": [ITEM],
    "retrieval_meta": {},
    "event_log": {"query_id": "q-1", "enabled": True},
}


class Server:
    """Answers by path; `down` refuses connections, `hangs` accepts and says nothing."""

    def __init__(self) -> None:
        self.answers: dict[str, tuple[int, Any]] = {
            "GET /api/browse/boot": (200, BOOT),
            "GET /api/lifecycle/guidance": (200, {"guidance": "Theirs."}),
            "GET /api/settings": (401, {"detail": "Unauthorized"}),
            "POST /api/browse/recall": (200, RECALL),
            "POST /api/browse/recall/usage": (200, {"updated_count": 1}),
        }
        self.asked: list[tuple[str, Any]] = []
        self.down = False
        self.hangs = False

    async def handle(self, request: httpx.Request) -> httpx.Response:
        if self.down:
            raise httpx.ConnectError("All connection attempts failed")
        what = f"{request.method} {request.url.path}"
        self.asked.append((what, json.loads(request.content) if request.content else dict(request.url.params)))
        if self.hangs:
            await asyncio.sleep(3600)
        status, body = self.answers.get(what, (404, {"detail": "Path not found", "code": "not_found"}))
        stream = httpx.ByteStream(json.dumps(body).encode())
        return httpx.Response(status, headers={"content-type": "application/json"}, stream=stream)

    def count(self, what: str) -> int:
        return sum(asked == what for asked, _ in self.asked)


@pytest.fixture
def server() -> Server:
    return Server()


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path)


@pytest.fixture
def with_memory(home: Home, server: Server) -> Callable[..., None]:
    """`with_memory(part, **options)` runs a part with a remote memory on that server."""

    @asynccontextmanager
    async def opened(**options: Any) -> AsyncIterator[RemoteBackend]:
        endpoint = Endpoint(URL)
        client = LoreClient(endpoint, inner=httpx.MockTransport(server.handle), seconds=options.pop("seconds", 20))
        recorder = Recorder(home.records)
        machine = options.pop("machine", Settings())
        memory = RemoteBackend(Target("config", URL, endpoint), home, recorder, machine, client=client, **options)
        yield memory
        await memory.close()
        recorder.close()

    def run(part: Callable[[RemoteBackend], Awaitable[None]], **options: Any) -> None:
        async def whole() -> None:
            async with opened(**options) as memory:
                await part(memory)

        asyncio.run(whole())

    return run


def test_a_dead_server_leaves_a_session_what_it_said_last_with_its_age(with_memory, server: Server) -> None:
    now = datetime(2026, 5, 1, 12, tzinfo=UTC)

    async def before(memory: RemoteBackend) -> None:
        data = await memory.boot("claudecode")
        assert [node.uri for node in data.recent] == [f"project://m{number}" for number in range(5)]
        assert data.notice == ""

    async def after(memory: RemoteBackend) -> None:
        data = await memory.boot("claudecode")
        assert (
            data.notice
            == f"Memory note: {URL} does not answer; what stands here is from 3 hours ago. `lore doctor` says more."
        )
        assert [node.content for node in data.nodes] == ["Test first."]
        assert data.guidance == "Theirs."
        with pytest.raises(UnreachableError):
            await memory.boot("codex")

    with_memory(before, clock=lambda: now)
    server.down = True
    with_memory(after, clock=lambda: now + timedelta(hours=3, minutes=20))


def test_copies_are_kept_apart_by_server_and_lie_privately(with_memory, home: Home) -> None:
    async def part(memory: RemoteBackend) -> None:
        await memory.boot("claudecode")
        memory.name = "http://127.0.0.1:1"
        (kept,) = home.run.glob("remote/*/boot-claudecode.json")
        assert (kept.stat().st_mode & 0o777, kept.parent.stat().st_mode & 0o777) == (0o600, 0o700)
        kept.write_text("{broken")
        assert memory.kept.boot("claudecode") is None

    with_memory(part)


def test_startup_recall_is_kept_per_project_and_a_prompts_recall_is_not(with_memory, server: Server) -> None:
    async def part(memory: RemoteBackend) -> None:
        query = RecallQuery("shop", "shop")
        live = await memory.recall(query, START)
        await memory.recall(query, PROMPT)
        server.down = True
        kept = await memory.recall(query, START)
        assert (kept.query_id, kept.result) == (live.query_id, live.result)
        assert await memory.mark_used(uri="project://shop", how="passed", query_id="q-1", session_id="s-1")
        with pytest.raises(UnreachableError):
            await memory.recall(query, PROMPT)
        with pytest.raises(UnreachableError):
            await memory.recall(RecallQuery("shop", "other"), START)

    with_memory(part)


def test_prompts_stop_waiting_for_a_server_that_hangs(with_memory, server: Server) -> None:
    async def part(memory: RemoteBackend) -> None:
        for _ in range(FAILURES):
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(memory.recall(RecallQuery("q"), PROMPT), 0.6)  # as the dispatcher gives up
        asked = len(server.asked)
        began = time.monotonic()
        with pytest.raises(PausedError, match=URL):
            await memory.recall(RecallQuery("q"), PROMPT)
        assert time.monotonic() - began < 0.5
        assert len(server.asked) == asked

    server.hangs = True
    with_memory(part)


def test_a_session_start_leaves_time_for_the_kept_copy(with_memory, server: Server) -> None:
    async def before(memory: RemoteBackend) -> None:
        await memory.boot("claudecode")

    async def after(memory: RemoteBackend) -> None:
        server.hangs = True
        began = time.monotonic()
        data = await memory.boot("claudecode")
        assert "does not answer" in data.notice
        assert time.monotonic() - began < 5
        with pytest.raises(DeadlineError):
            await memory.boot("codex")

    with_memory(before)
    with_memory(after, machine=Settings({"hooks.start_timeout_ms": 500}))


def test_settings_come_from_the_server_where_someone_set_them(with_memory, server: Server) -> None:
    server.answers["GET /api/settings"] = (
        200,
        {
            "values": {
                "recall.display.max_display_items": 5,
                "recall.display.min_display_score": 99,
                "lifecycle.boot.preamble": "theirs",
                "language": "zh",
                "dream.cron": "0 3 * * *",
            },
            "sources": {
                "recall.display.max_display_items": "db",
                "recall.display.min_display_score": "db",
                "lifecycle.boot.preamble": "default",
                "language": "db",
                "dream.cron": "db",
            },
        },
    )

    async def part(memory: RemoteBackend) -> None:
        settings = await memory.settings()
        assert dict(settings.changed) == {"recall.display.max_display_items": 5}
        await memory.settings()
        assert server.count("GET /api/settings") == 1
        memory.forget_settings()
        await memory.settings()
        assert server.count("GET /api/settings") == 2

    with_memory(part)


@pytest.mark.parametrize("status", [401, 404, 500])
def test_a_server_that_does_not_show_its_settings_gets_the_defaults(with_memory, server: Server, status: int) -> None:
    server.answers["GET /api/settings"] = (status, {"detail": "no"})

    async def part(memory: RemoteBackend) -> None:
        assert dict((await memory.settings()).changed) == {}
        await memory.settings()
        assert server.count("GET /api/settings") == 1

    with_memory(part)


def test_a_prompt_waits_only_once_for_settings_that_do_not_come(with_memory, server: Server) -> None:
    server.hangs = True

    async def part(memory: RemoteBackend) -> None:
        await memory.settings()
        began = time.monotonic()
        for _ in range(20):
            await memory.settings()
        assert time.monotonic() - began < 0.9

    with_memory(part)


def test_a_server_without_guidance_leaves_ours(with_memory, server: Server) -> None:
    server.answers["GET /api/lifecycle/guidance"] = (404, {"detail": "Unknown API route. GET /api/lifecycle/guidance"})

    async def part(memory: RemoteBackend) -> None:
        assert "lore_get_node" in await memory.guidance()

    with_memory(part)


def test_candidates_keep_their_signals_and_the_reason_they_were_withheld(with_memory) -> None:
    async def part(memory: RemoteBackend) -> None:
        recalled = await memory.recall(RecallQuery("q", "shop", limit=5), PROMPT)
        by_uri = {one.uri: one for one in recalled.result.candidates}
        assert recalled.result.candidates[0].uri == "project://shop"
        assert {uri: one.withheld for uri, one in by_uri.items()} == {
            "project://shop": "",
            "project://near": "limit",
            "project://far": "score",
            "core://soul": "boot",
        }
        shown = by_uri["project://shop"]
        assert (shown.raw.exact, shown.weighted.exact, shown.weighted.dense) == (0.84, 0.252, 0.15)
        assert shown.cues == ("a", "b", "c")

    with_memory(part)


def test_recall_asks_with_project_session_and_client(with_memory, server: Server) -> None:
    async def part(memory: RemoteBackend) -> None:
        await memory.recall(RecallQuery("q", "shop", max_display_items=4), PROMPT)
        (_, body) = server.asked[-1]
        assert (body["query"], body["project"], body["session_id"], body["max_display_items"]) == (
            "q",
            "shop",
            "s-1",
            4,
        )
        assert "min_display_score" not in body  # the server's own setting

    with_memory(part)


def test_notices_of_the_server_become_facts(with_memory, server: Server) -> None:
    notice = {
        "uri": "notice://recall/query_truncated",
        "score_display": None,
        "score": None,
        "cues": ["long"],
        "matched_on": ["notice"],
    }
    meta = {"query_truncated": True, "query_char_limit": 200}
    cut = {**RECALL, "items": [notice, ITEM], "retrieval_meta": meta}
    late = {
        "query": "",
        "candidates": [],
        "items": [{**notice, "uri": "notice://recall/timeout"}],
        "retrieval_meta": {"recall_timed_out": True, "timeout_ms": 500},
        "event_log": {"enabled": False},
    }

    async def part(memory: RemoteBackend) -> None:
        server.answers["POST /api/browse/recall"] = (200, cut)
        result = (await memory.recall(RecallQuery("q"), PROMPT)).result
        assert (result.truncated_at, [one.uri for one in result.shown]) == (200, ["project://shop"])
        server.answers["POST /api/browse/recall"] = (200, late)
        recalled = await memory.recall(RecallQuery("q"), PROMPT)
        assert (recalled.result.timed_out_ms, recalled.result.candidates) == (500, ())

    with_memory(part)


def test_a_mark_reaches_the_server_after_the_recall_with_its_ids(with_memory, server: Server, home: Home) -> None:
    async def part(memory: RemoteBackend) -> None:
        usage_call = "POST /api/browse/recall/usage"
        running = asyncio.create_task(memory.load())
        await memory.recall(RecallQuery("q"), PROMPT)
        await memory.mark_used(uri="project://shop", how="passed", query_id="q-1", session_id=None)
        async with asyncio.timeout(20):
            while (home.root / "queue.jsonl").exists() or not server.count(usage_call):  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        running.cancel()
        usage = dict(server.asked)[usage_call]
        assert usage == {
            "query_id": "q-1",
            "node_uris": ["project://shop"],
            "source": "tool:lore_get_node",
            "session_id": "s-1",
        }

    with_memory(part, mark_seconds=0.05)


def test_a_wrong_address_fails_each_call_with_its_problem(home: Home) -> None:
    async def run() -> None:
        recorder = Recorder(home.records)
        target = Target(
            "config", "nonsense", Endpoint("nonsense"), problem="'nonsense' is not the address of a Lore server"
        )
        memory = RemoteBackend(target, home, recorder, Settings())
        with pytest.raises(UnreachableError, match="not the address"):
            await memory.boot("claudecode")
        await memory.close()
        recorder.close()

    asyncio.run(run())
