"""The embedded memory between the event loop and its writing threads: what was committed is always recalled."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from lorehooks.clients import embedded
from lorehooks.clients.embedded import EmbeddedBackend
from lorehooks.core import writes
from lorehooks.core.model import REHEARSAL, NodeDraft, Origin, RecallQuery
from lorehooks.core.runs import Recorder
from lorehooks.core.store import Store
from lorehooks.core.uri import parse

PERSON = Origin("cli")
PATIENCE = 30
Scenario = Callable[[EmbeddedBackend], Awaitable[None]]


@asynccontextmanager
async def opened(folder: Path) -> AsyncIterator[EmbeddedBackend]:
    recorder = Recorder(folder / "records.db")
    memory = EmbeddedBackend(Store(folder / "lore.db"), recorder)
    loading = asyncio.create_task(memory.load())
    try:
        await asyncio.wait_for(memory.ready.wait(), PATIENCE)
        yield memory
    finally:
        loading.cancel()
        await asyncio.gather(loading, return_exceptions=True)
        await memory.close()
        recorder.close()


def draft(uri: str) -> NodeDraft:
    return NodeDraft(uri, "Refund webhooks are idempotent", glossary=("refund webhook",), disclosure="When testing")


class Held:
    """Holds a verb of `core.writes` in its thread, before it commits, until it is let go."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, verb: str) -> None:
        self.begun, self.go = threading.Event(), threading.Event()
        write = getattr(writes, verb)

        def held(*args: object, **kwargs: object) -> object:
            self.begun.set()
            assert self.go.wait(PATIENCE)
            return write(*args, **kwargs)

        monkeypatch.setattr(embedded.writes, verb, held)

    async def reached(self) -> None:
        assert await asyncio.to_thread(self.begun.wait, PATIENCE)


def test_a_write_whose_caller_has_gone_is_recalled_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The thread cannot be called back: without the rest, the memory would be stored and never found until a restart."""

    async def scenario() -> None:
        async with opened(tmp_path) as memory:
            held = Held(monkeypatch, "create")
            writing = asyncio.create_task(memory.create_node(draft("w://a"), PERSON))
            await held.reached()
            writing.cancel()
            with pytest.raises(asyncio.CancelledError):
                await writing
            held.go.set()
            await memory.set_settings({"recall.display.max_display_items": 5}, PERSON)  # waits for its turn
            found = await memory.search("refund webhook", mode="keyword", domain=None, limit=5, content_limit=0)
            assert [hit.uri for hit in found] == ["w://a"]
            assert memory.last_seq == memory.store.last_event()

    asyncio.run(scenario())


def test_closing_waits_for_a_write_under_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        async with opened(tmp_path) as memory:
            held = Held(monkeypatch, "create")
            writing = asyncio.create_task(memory.create_node(draft("w://a"), PERSON))
            await held.reached()
            closing = asyncio.create_task(memory.close())
            await asyncio.sleep(0)
            held.go.set()
            assert (await asyncio.wait_for(writing, PATIENCE)).uri == "w://a"
            await asyncio.wait_for(closing, PATIENCE)

    asyncio.run(scenario())
    store = Store(tmp_path / "lore.db")
    assert store.node(parse("w://a")) is not None
    store.close()


def test_a_setting_does_not_name_an_event_that_recall_has_not_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A record says up to which event recall knew the memory; replay rebuilds it from that number."""

    async def scenario() -> None:
        async with opened(tmp_path) as memory:
            before = memory.last_seq
            held = Held(monkeypatch, "create")
            writing = asyncio.create_task(memory.create_node(draft("w://a"), PERSON))
            await held.reached()
            setting = asyncio.create_task(memory.set_settings({"recall.display.max_display_items": 5}, PERSON))
            done, _ = await asyncio.wait([setting], timeout=0.2)
            assert not done, "it waits until the write before it has reached the index"
            assert memory.last_seq == before
            held.go.set()
            await asyncio.wait_for(asyncio.gather(writing, setting), PATIENCE)
            assert memory.last_seq == memory.store.last_event() == before + 2

    asyncio.run(scenario())


def test_what_a_rehearsal_showed_is_no_use_of_a_memory(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with opened(tmp_path) as memory:
            await memory.create_node(draft("w://a"), PERSON)
            for session_id, counts in ((REHEARSAL, False), ("s-1", True)):
                origin = Origin("hook:prompt.submit", "codex", session_id)
                recalled = await memory.recall(RecallQuery("Where is the refund webhook?"), origin)
                assert [one.uri for one in recalled.result.shown] == ["w://a"]
                ids = {"query_id": recalled.query_id, "session_id": session_id}
                assert await memory.mark_used(uri="w://a", how="passed", **ids) is counts
            other = {"query_id": recalled.query_id, "session_id": "another"}
            assert not await memory.mark_used(uri="w://a", how="passed", **other)

    asyncio.run(scenario())
