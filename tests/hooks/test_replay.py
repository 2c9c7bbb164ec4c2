from __future__ import annotations

import asyncio
import contextlib
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lorehooks.clients.embedded import EmbeddedBackend
from lorehooks.core.errors import ConflictError, NotFoundError
from lorehooks.core.home import Home
from lorehooks.core.ledger import Ledger
from lorehooks.core.model import NodeDraft, NodePatch, Origin
from lorehooks.core.runs import Recorder
from lorehooks.core.settings import Settings
from lorehooks.core.store import Store
from lorehooks.hooks.dispatch import Dispatcher
from lorehooks.hooks.misses import Misses
from lorehooks.installers import cli

WEBHOOKS = NodeDraft(
    "project://checkout_api",
    "Refund webhooks are idempotent by event.id. Tests replay the same event twice and assert one refund row.",
    1,
    "When changing refund or payment webhooks in checkout-api",
    ("refund webhook", "idempotency key", "stripe"),
)
DEPLOY = NodeDraft(
    "project://deploy",
    "部署前先在预发布环境跑一遍冒烟测试，再发布。",
    2,
    "部署到生产环境之前",
    ("部署", "上线", "发布流程"),
)
SESSION = "3f2a9c10-7d5e-4f7a-9d3c-0a1b2c3d4e5f"
QUESTION = "how should the refund webhook handle the idempotency key from stripe?"


class World:
    """A home with a memory and hooks, driven without a process in between."""

    def __init__(self, root: Path) -> None:
        self.home = Home(root)
        self.home.run.mkdir(parents=True)
        self.now = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
        self.sent: list[bytes] = []

    def play(self, *steps: Callable[[EmbeddedBackend, Dispatcher], object]) -> None:
        """Start a service's parts, take the steps in order, and close everything."""
        asyncio.run(self._play(steps))

    async def _play(self, steps):
        recorder = Recorder(self.home.records, clock=lambda: self.now)
        backend = EmbeddedBackend(Store(self.home.database, clock=lambda: self.now), recorder)
        await backend.load()
        dispatcher = Dispatcher(
            backend,
            Ledger(recorder.database.query, recorder.put),
            recorder,
            Misses(self.home.misses),
            Settings(),
            "en",
        )
        for step in steps:
            self.now += timedelta(minutes=1)
            await step(backend, dispatcher)
        await asyncio.to_thread(recorder.close)
        await backend.close()

    def hook(self, event: str, session: str = SESSION, client: str = "claudecode", **fields: object):
        """A step: what the host sends, its answer kept in `sent`."""

        async def step(_: EmbeddedBackend, dispatcher: Dispatcher) -> None:
            body = json.dumps({"session_id": session, "cwd": str(self.home.root), **fields}).encode()
            self.sent.append(await dispatcher.handle(client, event, body, 30_000))

        return step

    def prompt(self, text: str = QUESTION, session: str = SESSION, client: str = "claudecode"):
        return self.hook("UserPromptSubmit", session, client, hook_event_name="UserPromptSubmit", prompt=text)

    def start(self, source: str = "startup", session: str = SESSION):
        return self.hook("SessionStart", session, hook_event_name="SessionStart", source=source)


def create(*drafts: NodeDraft):
    async def step(backend: EmbeddedBackend, _: Dispatcher) -> None:
        for draft in drafts:
            await backend.create_node(draft, Origin("cli"))
        while backend.index.pending() and backend.index.vectors.embedder:
            backend.index.embed_some(64)

    return step


def update(uri: str, patch: NodePatch):
    async def step(backend: EmbeddedBackend, _: Dispatcher) -> None:
        await backend.update_node(uri, patch, Origin("cli"))

    return step


def setting(**values: object):
    async def step(backend: EmbeddedBackend, _: Dispatcher) -> None:
        await backend.set_settings({key.replace("__", "."): value for key, value in values.items()}, Origin("cli"))

    return step


@pytest.fixture
def world(tmp_path, monkeypatch) -> World:
    monkeypatch.setenv("LORE_HOME", str(tmp_path / "lore"))
    return World(tmp_path / "lore")


@pytest.fixture
def lore(capfd):
    """Run a command in this process; answers exit code, stdout and stderr."""

    def run(*arguments: str) -> tuple[int, str, str]:
        code = cli.run(arguments)
        return code, *capfd.readouterr()

    return run


def runs_of(lore, session: str = SESSION) -> list[dict]:
    code, out, err = lore("replay", session, "--json")
    assert code == 0, err
    return json.loads(out)["runs"]


def recorded_ids(backend: EmbeddedBackend) -> list[str]:
    """The query ids of all recalls so far, oldest first."""
    assert backend.recorder.flush()
    rows = backend.recorder.database.query("SELECT query_id FROM runs WHERE query_id IS NOT NULL ORDER BY id")
    return [row["query_id"] for row in rows]


def test_sessions_are_listed_newest_first_with_what_they_showed(world, lore):
    world.play(create(WEBHOOKS), world.start(), world.prompt(), world.prompt("thanks"), world.prompt(session="b" * 36))
    code, out, _ = lore("replay", "--json")
    newest, oldest = json.loads(out)["sessions"]
    assert code == 0
    assert newest["session_id"] == "b" * 36
    assert (oldest["prompts"], oldest["shown"]) == (2, 1)
    _, table, _ = lore("replay")
    assert table.index("b" * 36) < table.index(SESSION)


def test_a_timeline_tells_what_was_shown_what_not_and_what_was_opened(world, lore):
    async def opened(backend: EmbeddedBackend, _: Dispatcher) -> None:
        query_id, *_ = recorded_ids(backend)
        await backend.mark_used(uri=WEBHOOKS.uri, how="passed", query_id=query_id, session_id=SESSION)

    world.play(create(WEBHOOKS), world.prompt(), opened, world.prompt("/clear"), world.prompt("zzz qqq"))
    code, out, _ = lore("replay", SESSION[:6])
    assert code == 0
    assert f"prompt: {QUESTION}" in out
    assert "shown" in out
    assert WEBHOOKS.uri in out
    assert "opened    project://checkout_api  ids passed" in out
    assert "a slash command" in out
    assert "no memory reached the display threshold" in out
    assert [line["uri"] for line in runs_of(lore)[0]["opened"]] == [WEBHOOKS.uri]


def test_exact_prints_the_bytes_that_the_host_got(world):
    world.play(create(WEBHOOKS, DEPLOY), world.start(), world.prompt("部署到生产环境要注意什么？ deploy"))
    for number, sent in zip((1, 4), world.sent, strict=True):  # 2 and 3 are the recalls of the session start
        printed = subprocess.run(
            [sys.executable, "-m", "lorehooks.installers.cli", "replay", str(number), "--exact"],
            capture_output=True,
            check=True,
        )
        assert printed.stdout == sent
        assert sent


def test_a_new_epoch_stands_in_the_timeline(world, lore):
    world.play(create(WEBHOOKS), world.start(), world.prompt(), world.start("compact"))
    _, out, _ = lore("replay", SESSION)
    assert "--- epoch 2" in out


def test_what_a_session_start_recalled_is_told_explained_and_marked_like_a_prompt(world, lore):
    async def opened(backend: EmbeddedBackend, _: Dispatcher) -> None:
        for query_id in recorded_ids(backend):
            await backend.mark_used(uri=WEBHOOKS.uri, how="passed", query_id=query_id, session_id=SESSION)

    folder = world.home.root / "checkout-api"
    folder.mkdir()
    hook = world.hook("SessionStart", hook_event_name="SessionStart", source="startup", cwd=str(folder))
    world.play(create(WEBHOOKS), hook, opened)
    assert b"project://checkout_api" in world.sent[0].partition(b"<recall")[2]
    start, *recalls = runs_of(lore)
    asked = {run["input"]["prompt"]: run for run in recalls}
    assert (start["event"], set(asked)) == ("session.start", {"Claude Code", "checkout-api"})
    assert [line["uri"] for line in asked["checkout-api"]["opened"]] == [WEBHOOKS.uri]
    assert asked["checkout-api"]["query_id"].encode() in world.sent[0]
    _, out, _ = lore("replay", SESSION)
    assert "startup recall: checkout-api" in out
    _, out, _ = lore("replay", str(asked["checkout-api"]["id"]), "--explain")
    assert "project://checkout_api  shown" in out


def test_explain_names_every_signal_and_why_a_memory_was_withheld(world, lore):
    other = NodeDraft(
        "project://webhook_names", "Webhook names are kebab case.", 2, "When naming a webhook", ("webhook",)
    )
    world.play(
        create(WEBHOOKS, other),
        setting(recall__display__max_display_items=1),
        world.prompt(),
        setting(recall__display__min_display_score=1.0),
        world.prompt(),
    )
    code, out, _ = lore("replay", "1", "--explain")
    assert code == 0
    assert "project://checkout_api  shown" in out
    assert "withheld: 1 are shown already" in out or "withheld: below 0.60" in out
    assert "project://checkout_api  withheld: below 1.00" in lore("replay", "2", "--explain")[1]
    candidates = runs_of(lore)[0]["recall"]["candidates"]
    for candidate in candidates:
        assert f"{round(sum(candidate['weighted'].values()), 6)}" == f"{candidate['score']}"
        for value in candidate["weighted"].values():
            assert f"{value:.4f}  " in out


def test_a_run_is_found_by_the_query_id_that_stands_in_its_tag(world, lore):
    world.play(create(WEBHOOKS), world.prompt())
    query_id = runs_of(lore)[0]["query_id"]
    assert query_id.encode() in world.sent[0]
    code, out, _ = lore("replay", query_id[:8], "--json")
    assert (code, json.loads(out)["id"]) == (0, 1)


def test_the_beginning_of_several_ids_is_refused_and_lists_them(world, lore):
    world.play(world.prompt(session="abc-one"), world.prompt(session="abc-two"))
    code, _, err = lore("replay", "abc")
    assert code == 1
    assert "abc-one" in err
    assert "abc-two" in err
    assert lore("replay", "abc-o")[0] == 0


def test_an_unknown_name_is_not_found(world, lore):
    world.play(world.prompt())
    code, out, _ = lore("replay", "nothing-like-it", "--json")
    assert code == cli.NOT_FOUND
    assert json.loads(out)["error"]["code"] == "not_found"


def test_a_home_where_no_hook_ran_says_so(world, lore):
    code, _, err = lore("replay")
    assert code == cli.NOT_FOUND
    assert err == "Error: No hook has run in this home yet (lore install)\n"


@pytest.mark.parametrize(
    "arguments", [("--exact", "--explain"), ("--as-of-then",), ("--exact", "--json"), ("--set", "x")]
)
def test_options_that_do_not_go_together_are_a_usage_error(world, lore, arguments):
    world.play(world.prompt())
    assert lore("replay", "1", *arguments)[0] == cli.USAGE


def test_the_memory_of_then_gives_the_same_bytes_after_it_has_changed(world, lore):
    world.play(
        create(WEBHOOKS, DEPLOY),
        world.prompt(),
        world.prompt("部署到生产之前要做什么"),
        update(WEBHOOKS.uri, NodePatch(content="Refunds are handled by another team now.", glossary=("refund team",))),
        create(
            NodeDraft("project://stripe_keys", "Stripe idempotency keys live a day.", 1, "With stripe", ("stripe",))
        ),
        setting(recall__weights__w_exact=0.0),
    )
    for number in ("1", "2"):
        code, out, err = lore("replay", number, "--again", "--as-of-then", "--json")
        assert code == 0, err
        assert json.loads(out)["same_bytes"] is True
        assert json.loads(out)["sent_again"].encode() == world.sent[int(number) - 1]
        assert json.loads(out)["caveats"] == []
    assert b"checkout_api" in world.sent[0]
    _, out, _ = lore("replay", "1", "--again", "--json")
    assert json.loads(out)["same_bytes"] is False


PROMPTS = (
    QUESTION,
    "部署到生产之前要做什么",
    "refund webhook",
    "thanks",
    "stripe idempotency key 上线",
    "deploy the shop",
)
TEXTS = (WEBHOOKS.content, DEPLOY.content, "Refunds moved to another team.", "发布流程要两个人看", "")
WORDS = ("refund webhook", "stripe", "部署", "上线", "deploy", "shop")
PLACES = ("project://a", "project://b", "core://c", "preferences://d")
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("write"), st.sampled_from(PLACES), st.sampled_from(TEXTS), st.sets(st.sampled_from(WORDS))),
        st.tuples(st.just("delete"), st.sampled_from(PLACES)),
        st.tuples(st.just("repeat"), st.sampled_from(["always", "once"])),
        st.tuples(st.just("threshold"), st.sampled_from([0.0, 0.3, 0.6])),
        st.tuples(st.just("start"), st.sampled_from(["startup", "compact", "resume"])),
        st.tuples(st.just("prompt"), st.sampled_from(PROMPTS)),
    ),
    min_size=6,
    max_size=14,
)


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=STEPS)
def test_whatever_was_written_and_asked_each_prompt_gives_the_same_bytes_again(lore, monkeypatch, steps):
    with tempfile.TemporaryDirectory() as folder:
        monkeypatch.setenv("LORE_HOME", folder)
        world = World(Path(folder))
        world.play(create(WEBHOOKS), world.prompt(), *(_step(world, *step) for step in steps), world.prompt())
        prompts = [run for run in runs_of(lore) if run["event"] == "prompt.submit"]
        for run in prompts:
            code, out, err = lore("replay", str(run["id"]), "--again", "--as-of-then", "--json")
            assert (code, json.loads(out)["sent_again"]) == (0, run["sent"]), err


def _step(world: World, kind: str, *values):
    async def write(backend: EmbeddedBackend, _: Dispatcher) -> None:
        uri, text, words = values
        try:
            await backend.create_node(NodeDraft(uri, text, 2, "When refunding", tuple(sorted(words))), Origin("cli"))
        except ConflictError:
            await backend.update_node(uri, NodePatch(content=text, glossary=tuple(sorted(words))), Origin("cli"))
        while backend.index.pending() and backend.index.vectors.embedder:
            backend.index.embed_some(64)

    async def delete(backend: EmbeddedBackend, _: Dispatcher) -> None:
        with contextlib.suppress(NotFoundError):
            await backend.delete_node(values[0], Origin("cli"))

    return {
        "write": lambda: write,
        "delete": lambda: delete,
        "repeat": lambda: setting(recall__display__repeat=values[0]),
        "threshold": lambda: setting(recall__display__min_display_score=values[0]),
        "start": lambda: world.start(values[0]),
        "prompt": lambda: world.prompt(values[0]),
    }[kind]()


def test_what_an_epoch_had_shown_is_part_of_then(world, lore):
    world.play(
        setting(recall__display__repeat="once", lifecycle__prompt_recall__preamble="Mind this:"),
        create(WEBHOOKS),
        world.prompt(),
        world.prompt(),
    )
    assert world.sent[1] == b""
    assert b"Mind this:" in world.sent[0]
    for number in ("1", "2"):
        code, _, err = lore("replay", number, "--again", "--as-of-then")
        assert code == 0, err
    assert runs_of(lore)[1]["recall"]["candidates"][0]["withheld"] == "repeat"


def test_a_prompt_is_asked_again_with_another_setting(world, lore):
    world.play(create(WEBHOOKS), world.prompt())
    code, out, _ = lore(
        "replay", "1", "--again", "--as-of-then", "--set", "recall.display.min_display_score=1", "--json"
    )
    again = json.loads(out)
    assert code == 0
    assert again["sent_again"] == ""
    assert again["candidates"][0]["withheld"] == "score"


def test_a_wrong_setting_names_its_bounds(world, lore):
    world.play(create(WEBHOOKS), world.prompt())
    code, _, err = lore("replay", "1", "--again", "--set", "recall.display.max_display_items=99")
    assert code == 1
    assert "at most 20" in err


def test_a_prompt_with_a_secret_gives_the_same_bytes_and_keeps_none_of_it(world, lore):
    secret = "sk-proj-a8Fk29Lq0Zx7Vb3Nn5Tt1Pw"
    key = "-----BEGIN RSA PRIVATE KEY-----\nMIIEow"
    world.play(create(WEBHOOKS), world.prompt(f"{QUESTION} {secret}"), world.prompt(f"refund webhook {key}"))
    for number in ("1", "2"):
        assert lore("replay", number, "--again", "--as-of-then")[0] == 0
    _, out, _ = lore("replay", SESSION, "--json")
    assert secret not in out
    assert "MIIEow" not in out
    for file in world.home.root.glob("records.db*"):
        assert secret.encode() not in file.read_bytes()


def test_only_a_prompt_can_be_asked_again(world, lore):
    world.play(create(WEBHOOKS), world.start())
    code, _, err = lore("replay", "1", "--again")
    assert code == 1
    assert "only prompts can be run again" in err


def test_a_log_that_no_longer_reaches_back_is_named(world, lore):
    world.play(create(WEBHOOKS), world.prompt())
    for file in world.home.root.glob("lore.db*"):
        file.unlink()
    Store(world.home.database).close()
    code, _, err = lore("replay", "1", "--again", "--as-of-then")
    assert code == cli.NOT_FOUND
    assert "log ends before event" in err


def test_reading_changes_no_file_and_works_in_a_home_that_is_read_only(world, lore):
    world.play(create(WEBHOOKS), world.prompt())
    before = {path: path.read_bytes() for path in world.home.root.glob("*.db")}
    assert lore("replay", SESSION)[0] == 0
    assert lore("replay", "1", "--again", "--as-of-then")[0] == 0
    assert {path: path.read_bytes() for path in world.home.root.glob("*.db")} == before


def test_escapes_in_a_prompt_do_not_reach_the_terminal(world, lore):
    world.play(world.prompt("before \x1b[2J\u202e after"))
    _, out, _ = lore("replay", SESSION)
    assert "before  after" in out
    assert "\x1b" not in out
