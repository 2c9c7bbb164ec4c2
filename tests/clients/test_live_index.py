"""The index of a running service: complete after any mixture of loads, rebuilds and writes, and quick to give way."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import pytest

from lorehooks.clients import live_index
from lorehooks.clients.embedded import EmbeddedBackend
from lorehooks.clients.live_index import LiveIndex
from lorehooks.core.model import NodeDraft, NodePatch, Origin, RecallQuery
from lorehooks.core.runs import Recorder
from lorehooks.core.store import Store
from lorehooks.core.uri import parse
from lorehooks.core.writes import create, set_settings, update

PERSON = Origin("cli")
WORDS = ("quokka", "zebra", "okapi", "tapir", "lemur", "civet", "genet", "dugong", "kudu", "eland", "oryx", "dingo")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    store = Store(tmp_path / "lore.db")
    set_settings(store, {"embedding.provider": "off"}, PERSON)
    for word in WORDS:
        create(store, NodeDraft(f"w://{word}", f"About the {word}.", glossary=(word,)), PERSON)
    yield store
    store.close()


@pytest.fixture
def in_small_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_index, "_SLICE_SECONDS", 0.0)
    monkeypatch.setattr(live_index, "_PUT_AT_ONCE", 1)


@pytest.fixture
def use(store: Store, tmp_path: Path) -> Callable[[Callable[[EmbeddedBackend], Awaitable[None]]], None]:
    """Run a scenario on a memory that is not loaded yet."""

    def run(scenario: Callable[[EmbeddedBackend], Awaitable[None]]) -> None:
        async def work() -> None:
            recorder = Recorder(tmp_path / "records.db")
            memory = EmbeddedBackend(store, recorder)
            try:
                await scenario(memory)
            finally:
                await memory.close()
                recorder.close()

        asyncio.run(work())

    return run


async def first(memory: EmbeddedBackend, word: str, seconds: float = 5.0) -> str:
    result = (await memory.recall(RecallQuery(word), PERSON, seconds=seconds)).result
    return result.shown[0].uri if result.shown else ""


async def until(condition: Callable[[], bool]) -> None:
    while not condition():  # noqa: ASYNC110  (the index tells nobody of its steps)
        await asyncio.sleep(0)


def test_recall_has_every_memory_at_every_moment_of_a_rebuild(use, in_small_slices) -> None:
    async def scenario(memory: EmbeddedBackend) -> None:
        await memory.load()
        index, looks = memory.index, 0
        rebuild = asyncio.create_task(memory.live.rebuild())
        while not rebuild.done():
            looks += 1
            assert [await first(memory, word) for word in WORDS] == [f"w://{word}" for word in WORDS]
            await asyncio.sleep(0)
        assert looks > 2
        assert await rebuild == len(WORDS) + 11
        assert memory.index is index

    use(scenario)


def test_what_is_written_during_a_rebuild_wins_over_what_it_had_read(use, in_small_slices) -> None:
    async def scenario(memory: EmbeddedBackend) -> None:
        await memory.load()
        rebuild = asyncio.create_task(memory.live.rebuild())
        await until(lambda: memory.live._written is not None)
        await memory.update_node("w://dingo", NodePatch(glossary=("wombat",)), PERSON)
        await memory.delete_node("w://quokka", PERSON)
        await memory.create_node(NodeDraft("w://late", "Late.", glossary=("axolotl",)), PERSON)
        await rebuild
        assert await first(memory, "wombat") == "w://dingo"
        assert await first(memory, "axolotl") == "w://late"
        assert await first(memory, "quokka") == ""
        assert len(memory.index) == len(WORDS) + 11

    use(scenario)


def test_a_rebuild_mends_an_index_that_is_not_what_the_store_holds(use) -> None:
    async def scenario(memory: EmbeddedBackend) -> None:
        await memory.load()
        stray, lost = (memory.store.node_by_uuid(uuid) for uuid in memory.index.uuids()[:2])
        assert stray is not None
        assert lost is not None
        memory.index.remove(lost.uuid)
        memory.index.put(type(stray)(**{name: getattr(stray, name) for name in stray.__slots__} | {"uuid": "x"}), ())
        await memory.live.rebuild()
        assert sorted(memory.index.uuids()) == sorted(node.uuid for node in memory.store.nodes())

    use(scenario)


def test_a_damaged_index_is_built_anew(use) -> None:
    async def scenario(memory: EmbeddedBackend) -> None:
        await memory.load()
        memory.index.postings._lists.clear()
        assert await first(memory, "zebra") == ""
        await memory.live.rebuild()
        assert [await first(memory, word) for word in WORDS] == [f"w://{word}" for word in WORDS]

    use(scenario)


def test_a_prompt_during_the_load_is_answered_from_what_is_there_and_its_record_says_so(use, in_small_slices) -> None:
    async def scenario(memory: EmbeddedBackend) -> None:
        loading = asyncio.create_task(memory.load())
        await until(lambda: len(memory.index) >= 3)
        there = memory.index.entry(0).uri
        loading.cancel()
        await asyncio.gather(loading, return_exceptions=True)
        recalled = await memory.recall(RecallQuery(there.removeprefix("w://")), PERSON, seconds=0.2)
        assert [one.uri for one in recalled.result.shown] == [there]
        assert recalled.result.meta["loaded"] == len(memory.index) < recalled.result.meta["memories"]
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.3):  # what is not found may be among the rest: no silence for it
                await memory.recall(RecallQuery("narwhal"), PERSON, seconds=0.2)
        await memory.load()
        whole = await memory.recall(RecallQuery("zebra"), PERSON, seconds=0.2)
        assert "loaded" not in whole.result.meta

    use(scenario)


def test_the_project_that_a_prompt_comes_from_is_loaded_first(use, store, in_small_slices) -> None:
    for uri in ("project://zoo_api", "project://aviary", "project://zoo_api/deploy"):
        create(store, NodeDraft(uri, "Feeding times.", glossary=("feeding",)), PERSON)

    async def scenario(memory: EmbeddedBackend) -> None:
        for word in WORDS:  # so that the project's memories are not the last written
            await asyncio.to_thread(update, store, parse(f"w://{word}"), NodePatch(priority=3), PERSON)
        memory.live.prefer("zoo-api")
        loading = asyncio.create_task(memory.load())
        await until(lambda: len(memory.index) >= 2)
        there = {memory.index.entry(slot).uri for slot in range(2)}
        assert there == {"project://zoo_api", "project://zoo_api/deploy"}
        await loading
        assert len(memory.index) == len(WORDS) + 11 + 3

    use(scenario)


def test_slices_give_way_to_prompts_for_a_moment_and_then_go_on(store, in_small_slices) -> None:
    async def work() -> None:
        live = LiveIndex(store)
        await live.load()
        asked = 0

        def busy() -> bool:
            nonlocal asked
            asked += 1
            return asked % 4 != 0

        live.busy = busy
        await live.rebuild()
        assert asked > len(WORDS)
        live.busy = lambda: True
        began = time.monotonic()
        await live.rebuild()
        assert time.monotonic() - began >= 0.02 * len(WORDS)

    asyncio.run(work())
