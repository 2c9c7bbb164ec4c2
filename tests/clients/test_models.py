"""Models behind endpoints at work on a whole memory: what waits, what survives, and what a prompt waits for."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import numpy as np
import pytest
from fake_openai import FakeOpenAI

from lorehooks.clients.background import Pace
from lorehooks.clients.console import Console
from lorehooks.clients.credentials import Credential
from lorehooks.clients.embedded import EmbeddedBackend
from lorehooks.clients.embedding_endpoint import EmbeddingClient, known_dim, profile_of, sample_texts
from lorehooks.clients.errors import BadAnswerError, ServerError
from lorehooks.clients.model_endpoint import ModelCalls, model_endpoint
from lorehooks.core import uri as uris
from lorehooks.core.errors import LoreError
from lorehooks.core.home import Home
from lorehooks.core.model import NodeDraft, NodePatch, Origin, RecallQuery
from lorehooks.core.recorded_model import RecordedModel
from lorehooks.core.refine import unrefined
from lorehooks.core.runs import Recorder
from lorehooks.core.store import Store
from lorehooks.core.writes import create, set_settings

PERSON = Origin("cli")
PROMPT = Origin("hook:prompt.submit", "claudecode", "s-1")
QUICK = Pace(retries=(0.0, 0.0), first_pause=0.02, longest_pause=0.05, settle=0.0)
PATIENT = Pace(retries=(), first_pause=3600.0, longest_pause=3600.0, settle=0.0)
QUESTION = RecallQuery("when do we send a webhook from the outbox", min_display_score=0.0)
MEMORIES = {
    "w://webhooks": "Send a webhook from the outbox, never inline.",
    "w://invoices": "Invoice numbers run without gaps within a year.",
    "w://buttons": "Buttons take the accent colour of the theme.",
}


@pytest.fixture
def server() -> Iterator[FakeOpenAI]:
    with FakeOpenAI() as running:
        yield running


@pytest.fixture
def home(tmp_path: Path) -> Home:
    home = Home(tmp_path)
    store = Store(home.database)
    set_settings(store, {"embedding.provider": "off"}, PERSON)
    for uri, content in MEMORIES.items():
        create(store, NodeDraft(uri, content, 2, "When it fits", ("word",)), PERSON)
    store.close()
    return home


@asynccontextmanager
async def opened(home: Home, pace: Pace = QUICK, **settings: object) -> AsyncIterator[EmbeddedBackend]:
    """The memory at work, as the service has it."""
    store = Store(home.database)
    set_settings(store, settings, PERSON)
    recorder = Recorder(home.records)
    memory = EmbeddedBackend(store, recorder, pace=pace)
    try:
        await memory.load()
        yield memory
    finally:
        recorder.close()
        await memory.close()


def views_of(server: FakeOpenAI) -> dict[str, object]:
    return {"view_llm.base_url": server.url, "view_llm.model": "some-model"}


def vectors_of(server: FakeOpenAI, model: str = "m") -> dict[str, object]:
    return {
        "embedding.provider": "openai_compatible", "embedding.base_url": server.url, "embedding.model": model,
    }  # fmt: skip


async def until(condition: Callable[[], object]) -> None:
    end = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < end
        await asyncio.sleep(0.005)


def run(work: Callable[[], Awaitable[None]]) -> None:
    asyncio.run(work())  # type: ignore[arg-type]


def shown_views(memory: EmbeddedBackend, uri: str) -> dict[str, str]:
    node = memory.store.require(uris.parse(uri))
    return {view.type: view.source for view in memory.live.views_of(node)}


def profile(memory: EmbeddedBackend) -> str | None:
    return memory.live.embedder.profile if memory.live.embedder else None


# --- views ---


def test_all_memories_get_their_views_the_latest_first_and_boot_nodes_none(home: Home, server: FakeOpenAI) -> None:
    async def work() -> None:
        async with opened(home, **views_of(server)) as memory:
            await until(lambda: not unrefined(memory.store))
            assert [told["uri"] for told in server.told()] == list(MEMORIES)[::-1]
            assert shown_views(memory, "w://webhooks") == {"gist": "llm", "question": "llm"}
            assert memory.models.state()["views"]["problem"] == ""  # type: ignore[index]

    run(work)


def test_a_write_asks_for_its_own_views_and_for_no_others(home: Home, server: FakeOpenAI) -> None:
    async def work() -> None:
        async with opened(home, **views_of(server)) as memory:
            await until(lambda: not unrefined(memory.store))
            before = len(server.asked)
            await memory.update_node("w://buttons", NodePatch(content="Buttons are round."), PERSON)
            await until(lambda: not unrefined(memory.store))
            assert [told["content"] for told in server.told()[before:]] == ["Buttons are round."]
            await memory.update_node("w://buttons", NodePatch(priority=4), PERSON)
            await memory.delete_node("w://invoices", PERSON)
            await memory.create_node(NodeDraft("w://new", "New.", 3, "When new", ("n",)), PERSON)
            await until(lambda: not unrefined(memory.store))
            assert [told["uri"] for told in server.told()[before + 1 :]] == ["w://new"]

    run(work)


@pytest.mark.parametrize("way", ["500", "html", "partial", "401"])
def test_retries_are_bounded_and_the_rule_stands_in(home: Home, server: FakeOpenAI, way: str) -> None:
    server.chat = way

    async def work() -> None:
        pace = Pace(retries=(0.0, 0.0), first_pause=3600.0, longest_pause=3600.0, settle=0.0)
        async with opened(home, pace, **views_of(server)) as memory:
            await until(lambda: memory.models.refiner.state()["retry_in"])
            assert len(server.asked) == {"500": 3, "html": 3, "partial": 9, "401": 1}[way]
            assert shown_views(memory, "w://webhooks") == {"gist": "rule", "question": "rule"}
            state = memory.models.refiner.state()
            assert state["problem"]
            assert state["retry_in"] == pytest.approx(3600, abs=60)
            await memory.update_node("w://buttons", NodePatch(content="Buttons are round."), PERSON)
            recalled = await memory.recall(QUESTION, PROMPT)
            assert recalled.result.shown[0].uri == "w://webhooks"
            assert len(server.asked) == {"500": 3, "html": 3, "partial": 9, "401": 1}[way]

    run(work)


def test_one_memory_that_a_model_cannot_do_holds_up_no_other(home: Home, server: FakeOpenAI) -> None:
    server.chat = lambda body: "no" if "w://invoices" in str(body) else {"gist": "g", "question": ["a", "b", "c"]}

    async def work() -> None:
        async with opened(home, **views_of(server)) as memory:
            await until(lambda: memory.models.refiner.state()["unusable"] == 1)
            await until(lambda: len(unrefined(memory.store)) == 1)
            asked = len(server.asked)
            await memory.create_node(NodeDraft("w://new", "New.", 3, "When new", ("n",)), PERSON)
            await until(lambda: len(unrefined(memory.store)) == 1)
            assert [told["uri"] for told in server.told()[asked:]] == ["w://new"]
            assert memory.models.refiner.state()["problem"] == ""

    run(work)


def test_what_waits_goes_on_after_a_restart_and_what_is_done_is_not_asked_again(home: Home, server: FakeOpenAI) -> None:
    def only_first(_body: object) -> object:
        return {"gist": "g", "question": ["a", "b", "c"]} if len(server.asked) == 1 else (500, "text/plain", b"")

    server.chat = only_first

    async def work() -> None:
        async with opened(home, PATIENT, **views_of(server)) as memory:
            await until(lambda: memory.models.refiner.state()["retry_in"])
            assert len(unrefined(memory.store)) == 2
        server.chat, first = "good", server.told()[0]["uri"]
        before = len(server.asked)
        async with opened(home) as memory:
            await until(lambda: not unrefined(memory.store))
            assert first not in [told["uri"] for told in server.told()[before:]]
            assert len(server.asked) == before + 2

    run(work)


def test_an_endpoint_that_comes_back_is_found_again(home: Home, server: FakeOpenAI) -> None:
    server.chat = "503"

    async def work() -> None:
        async with opened(home, **views_of(server)) as memory:
            await until(lambda: len(server.asked) > 8)
            server.chat = "good"
            await until(lambda: not unrefined(memory.store))
            assert memory.models.refiner.state()["problem"] == ""

    run(work)


def test_a_rebuild_with_the_endpoint_down_leaves_refined_views_as_they_are(home: Home, server: FakeOpenAI) -> None:
    async def work() -> None:
        async with opened(home, **views_of(server)) as memory:
            await until(lambda: not unrefined(memory.store))
            server.stop()
            await Console(memory).rebuild(lambda *_: None)
            assert not unrefined(memory.store)
            assert shown_views(memory, "w://webhooks") == {"gist": "llm", "question": "llm"}
            await memory.live.rebuild()
            assert shown_views(memory, "w://webhooks") == {"gist": "llm", "question": "llm"}
        async with opened(home) as memory:
            assert shown_views(memory, "w://webhooks") == {"gist": "llm", "question": "llm"}

    run(work)


def test_views_that_come_after_the_memory_has_changed_are_not_kept(home: Home, server: FakeOpenAI) -> None:
    server.chat = "hang"

    async def work() -> None:
        async with opened(home, **views_of(server)) as memory:
            await until(lambda: server.asked)
            uri = server.told()[0]["uri"]
            await memory.update_node(uri, NodePatch(content="Something else."), PERSON)
            server.chat = "good"
            server.released.set()
            await until(lambda: not unrefined(memory.store))
            assert [told["content"] for told in server.told() if told["uri"] == uri] == [
                MEMORIES[uri],
                "Something else.",
            ]

    run(work)


def test_setting_and_unsetting_the_endpoint_takes_effect_at_once(home: Home, server: FakeOpenAI) -> None:
    async def work() -> None:
        async with opened(home) as memory:
            assert memory.models.refiner.state()["model"] is None
            await memory.set_settings(views_of(server), PERSON)
            await until(lambda: not unrefined(memory.store))
            await memory.set_settings({"view_llm.base_url": None}, PERSON)
            await until(lambda: memory.models.refiner.state()["model"] is None)
            asked = len(server.asked)
            await memory.update_node("w://buttons", NodePatch(content="Buttons are round."), PERSON)
            assert shown_views(memory, "w://buttons") == {"gist": "rule", "question": "rule"}
            assert len(server.asked) == asked

    run(work)


# --- vectors ---


def client_of(server: FakeOpenAI) -> EmbeddingClient:
    return EmbeddingClient(ModelCalls(model_endpoint(server.url, Credential(), "embedding"), "embedding"), "m")


def embed(server: FakeOpenAI, texts: list[str]) -> dict[str, np.ndarray]:
    async def work() -> dict[str, np.ndarray]:
        client = client_of(server)
        try:
            return await client.documents(texts)
        finally:
            await client.close()

    return asyncio.run(work())


def test_vectors_come_back_for_their_texts_in_whatever_order_and_number(server: FakeOpenAI) -> None:
    texts = [f"text {number} of many" for number in range(70)]
    plain = embed(server, texts)
    server.embeddings, server.most_inputs = "turned round", 10
    again = embed(server, texts)
    assert list(plain) == list(again) == texts
    assert all(np.array_equal(plain[text], again[text]) for text in texts)
    assert all(abs(float(np.linalg.norm(row.astype(np.float32))) - 1) < 0.01 for row in plain.values())


def test_a_text_that_is_too_long_is_shortened_and_one_that_stays_refused_left_out(server: FakeOpenAI) -> None:
    server.embeddings = "no long texts"
    assert list(embed(server, ["short", "x" * 100, "y" * 500])) == ["short", "x" * 100]


@pytest.mark.parametrize(
    ("way", "error"),
    [
        ("one short", BadAnswerError), ("uneven", BadAnswerError), ("zeros", BadAnswerError), ("nan", BadAnswerError),
        ("html", BadAnswerError), ("500", ServerError), ("429", ServerError),
    ],
)  # fmt: skip
def test_what_are_no_vectors_is_refused(server: FakeOpenAI, way: str, error: type[LoreError]) -> None:
    server.embeddings = way
    with pytest.raises(error):
        embed(server, ["one", "two"])
    assert len(server.asked) == 1


def test_a_profile_is_address_model_and_width() -> None:
    profiles = [profile_of("https://a/v1", "m", 8), profile_of("https://a/v1", "m2", 4), "wordllama/x"]
    assert known_dim(profiles, "https://a/v1", "m") == 8
    assert known_dim(profiles, "https://b/v1", "m") is None
    assert known_dim([*profiles, profile_of("https://a/v1", "m", 16)], "https://a/v1", "m") is None


def test_an_endpoints_vectors_take_over_when_all_memories_have_theirs(home: Home, server: FakeOpenAI) -> None:
    async def work() -> None:
        async with opened(home) as memory:
            assert profile(memory) is None
            await memory.set_settings(vectors_of(server), PERSON)
            await until(lambda: profile(memory))
            assert profile(memory) == profile_of(server.url, "m", server.dim)
            assert memory.index.pending() == 0
            recalled = await memory.recall(QUESTION, PROMPT)
            best = recalled.result.candidates[0]
            assert best.uri == "w://webhooks"
            assert best.raw.dense > 0.3
            meta = recalled.result.meta
            assert "without_vector" not in meta
            found = RecordedModel(meta)
            assert found.query("") == pytest.approx(memory.live.embedder.query(str(QUESTION.text)))  # type: ignore[union-attr]
            assert found.scale(None, None) == memory.index.vectors.calibration  # type: ignore[arg-type]

    run(work)


def test_a_write_gets_its_vectors_and_a_text_is_embedded_once(home: Home, server: FakeOpenAI) -> None:
    async def work() -> None:
        async with opened(home, **vectors_of(server)) as memory:
            await until(lambda: profile(memory) == profile_of(server.url, "m", server.dim))
            await memory.create_node(
                NodeDraft("w://new", "Cache keys hold the version.", 3, "When new", ("n",)), PERSON
            )
            await until(lambda: memory.index.pending() == 0)
            await memory.recall(QUESTION, PROMPT)
            await memory.recall(QUESTION, PROMPT)
            texts = server.inputs()
            assert len(texts) == len(set(texts))
            assert texts.count(QUESTION.text) == 1

    run(work)


def test_prompts_are_answered_in_time_while_embeddings_hang(home: Home, server: FakeOpenAI) -> None:
    async def work() -> None:
        async with opened(home, **vectors_of(server)) as memory:
            await until(lambda: profile(memory) == profile_of(server.url, "m", server.dim))
            server.embeddings = "hang"
            began = time.monotonic()
            first = await memory.recall(QUESTION, PROMPT, seconds=0.5)
            assert time.monotonic() - began < 0.5
            assert first.result.shown[0].uri == "w://webhooks"
            assert first.result.shown[0].raw.dense == 0
            assert first.result.meta["without_vector"] == "slow"
            asked = len(server.asked)
            for number in range(5):  # nobody waits again while the first is overdue
                other = await memory.recall(RecallQuery(f"another webhook {number}"), PROMPT, seconds=30.0)
                assert other.result.meta["without_vector"] == "slow"
            assert len(server.asked) == asked
            server.embeddings = "good"
            server.released.set()
            await until(lambda: memory.live.embedder.query(str(QUESTION.text)) is not None)  # type: ignore[union-attr]
            later = await memory.recall(QUESTION, PROMPT)
            assert "without_vector" not in later.result.meta
            assert later.result.candidates[0].raw.dense > 0.3

    run(work)


def test_an_endpoint_that_fails_is_left_alone_after_three_prompts(home: Home, server: FakeOpenAI) -> None:
    async def work() -> None:
        async with opened(home, **vectors_of(server)) as memory:
            await until(lambda: profile(memory) == profile_of(server.url, "m", server.dim))
            server.embeddings, before = "500", len(server.asked)
            reasons = [
                (await memory.recall(RecallQuery(f"webhook {number}"), PROMPT)).result.meta["without_vector"]
                for number in range(5)
            ]
            assert reasons == ["server_error", "server_error", "server_error", "paused", "paused"]
            assert len(server.asked) == before + 3
            assert memory.models.source.state()["prompts_paused"]

    run(work)


def test_without_its_vector_a_prompt_is_scored_like_one_without_a_model(home: Home, server: FakeOpenAI) -> None:
    async def work() -> None:
        async with opened(home) as memory:
            plain = await memory.recall(QUESTION, PROMPT)
            await memory.set_settings(vectors_of(server), PERSON)
            await until(lambda: profile(memory))
            server.embeddings = "500"
            failed = await memory.recall(QUESTION, PROMPT)
            assert [(each.uri, each.raw.exact, each.raw.glossary_semantic) for each in failed.result.candidates] == [
                (each.uri, each.raw.exact, each.raw.glossary_semantic) for each in plain.result.candidates
            ]

    run(work)


def test_there_and_back_asks_for_no_text_twice(home: Home, server: FakeOpenAI) -> None:
    async def work() -> None:
        async with opened(home) as memory:
            first, second = profile_of(server.url, "m", server.dim), profile_of(server.url, "n", server.dim)
            for model, wanted in (("m", first), ("n", second), ("m", first)):
                await memory.set_settings(vectors_of(server, model), PERSON)
                await until(lambda wanted=wanted: profile(memory) == wanted)
                assert memory.index.pending() == 0
            await memory.set_settings({"embedding.provider": "off"}, PERSON)
            await until(lambda: profile(memory) is None)
            samples = set(sample_texts())
            mine = [
                (asked.body["model"], text)
                for asked in server.asked
                for text in asked.body["input"]
                if text not in samples
            ]
            assert len(mine) == len(set(mine))
            assert {model for model, _ in mine} == {"m", "n"}

    run(work)


def test_a_change_that_cannot_be_finished_leaves_the_model_before_in_use(home: Home, server: FakeOpenAI) -> None:
    async def work() -> None:
        async with opened(home, **vectors_of(server)) as memory:
            before = profile_of(server.url, "m", server.dim)
            await until(lambda: profile(memory) == before)
            server.embeddings = "500"
            await memory.set_settings({"embedding.model": "n"}, PERSON)
            await until(lambda: memory.models.source.state()["problem"])
            assert profile(memory) == before
            server.embeddings = "good"
            await until(lambda: profile(memory) == profile_of(server.url, "n", server.dim))
            await until(lambda: memory.models.source.state()["problem"] == "")

    run(work)


def test_a_restart_with_the_endpoint_down_keeps_its_vectors_and_answers(home: Home, server: FakeOpenAI) -> None:
    async def work() -> None:
        async with opened(home, **vectors_of(server)) as memory:
            await until(lambda: profile(memory) == profile_of(server.url, "m", server.dim))
        server.stop()
        async with opened(home, PATIENT) as memory:
            assert profile(memory) == profile_of(server.url, "m", server.dim)
            assert memory.index.pending() == 0
            recalled = await memory.recall(QUESTION, PROMPT)
            assert recalled.result.shown[0].uri == "w://webhooks"
            assert recalled.result.meta["without_vector"] == "unreachable"

    run(work)


def test_a_restart_in_the_middle_of_a_change_goes_on_where_it_was(home: Home, server: FakeOpenAI) -> None:
    store = Store(home.database)
    for number in range(200):
        create(store, NodeDraft(f"w://n{number}", f"Fact {number} of many.", 3, "When", ("w",)), PERSON)
    store.close()
    samples = set(sample_texts())

    def texts() -> list[str]:
        return [text for text in server.inputs() if text not in samples]

    async def work() -> None:
        async with opened(home, PATIENT) as memory:
            server.released.clear()
            await memory.set_settings(vectors_of(server), PERSON)
            await until(lambda: len(texts()) >= 128)
            server.embeddings = "500"
            await until(lambda: memory.models.source.state()["problem"] or profile(memory))
        done = len(set(texts()))
        server.embeddings = "good"
        async with opened(home) as memory:
            await until(lambda: profile(memory) == profile_of(server.url, "m", server.dim))
            assert memory.index.pending() == 0
        total = 2 * (200 + len(MEMORIES))
        assert done >= 128
        assert len(texts()) < total + 128

    run(work)


def test_a_model_that_changes_its_width_under_the_same_name_is_taken_as_another(home: Home, server: FakeOpenAI) -> None:
    async def work() -> None:
        async with opened(home, **vectors_of(server)) as memory:
            await until(lambda: profile(memory) == profile_of(server.url, "m", 24))
            server.dim = 32
            await memory.update_node("w://buttons", NodePatch(content="Buttons are round."), PERSON)
            await until(lambda: profile(memory) == profile_of(server.url, "m", 32))
            assert memory.index.pending() == 0

    run(work)


def test_nothing_of_a_forgotten_memory_is_kept_by_a_vector_that_comes_late(home: Home, server: FakeOpenAI) -> None:
    async def work() -> None:
        async with opened(home, **vectors_of(server)) as memory:
            await until(lambda: profile(memory) == profile_of(server.url, "m", server.dim))
            server.embeddings = "hang"
            before = len(server.asked)
            await memory.create_node(NodeDraft("w://gone", "Zebra crossing.", 3, "When", ("w",)), PERSON)
            await until(lambda: len(server.asked) > before)
            async with memory.live.forgetting():
                server.embeddings = "good"
                server.released.set()
                await asyncio.sleep(0)
            await memory.delete_node("w://gone", PERSON)
            await until(lambda: memory.index.pending() == 0)
            kept = memory.live.cache.known(profile_of(server.url, "m", server.dim))
            assert len(kept) <= len(sample_texts()) + 2 * (len(MEMORIES) + 12)

    run(work)
