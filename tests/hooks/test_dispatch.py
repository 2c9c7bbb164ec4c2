"""What each event of a session gets, driven through the dispatcher over a real memory; slow and broken ones put before it."""

from __future__ import annotations

import asyncio
import json
import sqlite3
import threading
import time
from datetime import UTC, datetime, timedelta

import pytest

from lorehooks.clients.embedded import EmbeddedBackend
from lorehooks.clients.runtimes import RUNTIMES
from lorehooks.core.blocks import parse_recall
from lorehooks.core.budget import measure
from lorehooks.core.errors import StorageError
from lorehooks.core.home import Home
from lorehooks.core.ledger import Ledger
from lorehooks.core.model import REHEARSAL, SELF_TEST, NodeDraft, NodePatch, Origin
from lorehooks.core.runs import Recorder
from lorehooks.core.settings import Settings
from lorehooks.core.store import Store
from lorehooks.core.writes import set_settings
from lorehooks.hooks import whereabouts
from lorehooks.hooks.dispatch import SELF_TEST_TEXT, Dispatcher
from lorehooks.hooks.misses import Misses
from lorehooks.hooks.replay import sent_text
from lorehooks.hooks.runrecord import STARTUP_RECALL

CLI = Origin("cli")
WEBHOOKS = NodeDraft(
    "project://refunds",
    "Refund webhooks are idempotent by event.id.",
    2,
    "When changing refund webhooks",
    ("refund webhook", "idempotency key"),
)
QUESTION = "how does the refund webhook use the idempotency key?"
RULE = "Ask before you delete anything."
READY = b'{"ready":"boot bytes"}'
PLENTY = 30_000.0
NEW = ["startup", "clear", "compact", "fork", "", "of-a-later-release"]


class Slow:
    """A memory before which one method never ends, or fails."""

    def __init__(self, memory, method: str, error: Exception | None = None) -> None:
        self._memory = memory
        self._method = method
        self._error = error

    def __getattr__(self, name):
        return self._fail if name == self._method else getattr(self._memory, name)

    async def _fail(self, *_args, **_more):
        if self._error is not None:
            raise self._error
        await asyncio.Event().wait()


class Hooks:
    """A home whose hooks are called one after the other."""

    def __init__(self, home: Home, runner: asyncio.Runner) -> None:
        self.home = home
        self.runner = runner
        self.now = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
        self.machine = Settings()
        self.output = b""
        home.run.mkdir(parents=True)
        store = Store(home.database)
        set_settings(store, {"embedding.provider": "off"}, CLI)
        store.close()
        self.open()

    def open(self) -> None:
        self.recorder = Recorder(self.home.records, clock=lambda: self.now)
        self.memory = EmbeddedBackend(Store(self.home.database, clock=lambda: self.now), self.recorder)
        self.run(self.memory.load())
        self.dispatcher = Dispatcher(
            self.memory,
            Ledger(self.recorder.database.query, self.recorder.put),
            self.recorder,
            Misses(self.home.misses),
            self.machine,
            "en",
            ready=lambda _: READY,
        )

    def close(self) -> None:
        self.recorder.close()
        self.run(self.memory.close())

    def restart(self) -> None:
        """A service that ends and starts again."""
        self.close()
        self.open()

    def run(self, work):
        return self.runner.run(work)

    def send(
        self, event: str, *, client: str = "claudecode", ms: float = PLENTY, session: str | None = "s-1", **fields
    ):
        """The text that an event of a host puts before the model."""
        self.now += timedelta(minutes=1)
        body = {"session_id": session, "hook_event_name": event, **fields}
        self.output = self.run(self.dispatcher.handle(client, event, json.dumps(body).encode(), ms))
        return sent_text(self.output)

    def start(self, source: str = "startup", **more) -> str:
        return self.send("SessionStart", source=source, **more)

    def prompt(self, text: str = QUESTION, **more) -> str:
        return self.send("UserPromptSubmit", prompt=text, **more)

    def opens(self, **tool_input) -> dict:
        """Claude Code's call of our tool; the arguments that replace the model's, if any."""
        self.send("PreToolUse", tool_name="mcp__plugin_lore_lore__lore_get_node", tool_input=tool_input)
        return json.loads(self.output)["hookSpecificOutput"]["updatedInput"] if self.output else {}

    def write(self, uri: str, content: str) -> None:
        self.run(self.memory.update_node(uri, NodePatch(content=content), CLI))

    def create(self, *drafts: NodeDraft) -> None:
        for draft in drafts:
            self.run(self.memory.create_node(draft, CLI))

    def set(self, **values) -> None:
        self.run(self.memory.set_settings({key.replace("__", "."): value for key, value in values.items()}, CLI))

    def before_memory(self, method: str, error: Exception | None = None) -> None:
        self.dispatcher.backend = Slow(self.memory, method, error)

    def rows(self, table: str = "runs") -> list[sqlite3.Row]:
        """What was recorded of the events themselves."""
        assert self.recorder.flush()
        rows = self.recorder.database.query(f"SELECT * FROM {table}")
        return [row for row in rows if table != "runs" or row["event"] != STARTUP_RECALL]

    def reasons(self) -> list[str]:
        return [row["reason"] for row in self.rows()]

    def missed(self) -> list[str]:
        return [miss.reason for miss in Misses(self.home.misses).read()]


@pytest.fixture
def hooks(tmp_path):
    with asyncio.Runner() as runner:
        hooks = Hooks(Home(tmp_path / "lore"), runner)
        hooks.create(WEBHOOKS)
        hooks.write("core://agent", RULE)
        yield hooks
        hooks.close()


# --- session starts ---


@pytest.mark.parametrize("source", NEW)
def test_every_new_context_gets_the_whole_boot_block(hooks, source):
    hooks.start("startup")
    assert RULE in hooks.start(source)


def test_a_session_without_an_id_gets_its_boot_block_too(hooks):
    assert RULE in hooks.start(session=None)
    assert hooks.rows("sessions") == []


def test_resume_of_an_unchanged_memory_adds_nothing(hooks):
    hooks.start()
    assert hooks.start("resume") == ""
    assert hooks.output == b""
    assert hooks.reasons() == ["", "unchanged"]


def test_resume_after_a_changed_rule_gets_the_block_anew(hooks):
    hooks.start()
    hooks.write("core://agent", "Never delete.")
    assert "Never delete." in hooks.start("resume")
    assert hooks.start("resume") == ""


def test_resume_after_an_ordinary_memory_was_written_adds_nothing(hooks):
    hooks.start()
    hooks.write(WEBHOOKS.uri, "Webhooks moved.")
    hooks.create(NodeDraft("project://other", "New.", 2, "", ()))
    assert hooks.start("resume") == ""


def test_resume_knows_across_a_restart_of_the_service_what_was_sent(hooks):
    hooks.start()
    hooks.restart()
    assert hooks.start("resume") == ""
    hooks.write("core://agent", "Never delete.")
    hooks.restart()
    assert "Never delete." in hooks.start("resume")


def test_resume_of_a_session_that_was_never_seen_gets_its_block(hooks):
    assert RULE in hooks.start("resume", session="from-before-installation")


def test_codex_compacts_before_it_resumes_so_a_block_of_that_resume_is_not_sent_twice(hooks):
    assert RULE in hooks.start("resume", client="codex")
    assert hooks.start("compact", client="codex") == ""
    assert [row["epoch"] for row in hooks.rows()] == [0, 1]
    hooks.prompt(client="codex")
    assert RULE in hooks.start("compact", client="codex")


@pytest.mark.parametrize("client", ["claudecode", "codex"])
def test_a_compaction_brings_the_block_again_whatever_came_before(hooks, client):
    for source in ("startup", "compact", "resume", "compact"):
        text = hooks.start(source, client=client)
        assert (RULE in text) == (source != "resume")


def test_in_claude_code_a_compaction_takes_the_block_of_a_resume_away(hooks):
    assert RULE in hooks.start("resume")
    assert RULE in hooks.start("compact")


def test_each_new_context_begins_an_epoch_and_a_resume_does_not(hooks):
    for source in ("startup", "resume", "clear", "compact", "resume", "later"):
        hooks.start(source)
    assert [row["epoch"] for row in hooks.rows()] == [1, 1, 2, 3, 3, 4]


@pytest.mark.parametrize("client", ["opencode", "pi", "openclaw", "dsh"])
def test_a_host_that_asks_again_gets_the_same_bytes_until_a_new_epoch(hooks, client):
    hooks.start("startup", client=client)
    first = hooks.output
    hooks.write("core://agent", "Never delete.")
    hooks.create(NodeDraft("project://other", "New.", 2, "", ()))
    for source in ("ask", "resume", "ask"):
        hooks.start(source, client=client)
        assert hooks.output == first
    hooks.restart()
    hooks.start("ask", client=client)
    assert hooks.output == first
    assert "Never delete." in hooks.start("clear", client=client)


def test_asking_before_any_start_gets_a_block_that_then_stays(hooks):
    hooks.start("ask", client="opencode")
    first = hooks.output
    hooks.write("core://agent", "Never delete.")
    hooks.start("ask", client="opencode")
    assert RULE in sent_text(first)
    assert hooks.output == first


def test_sessions_of_two_runtimes_with_one_id_are_two(hooks):
    hooks.start()
    assert RULE in hooks.start("resume", client="codex")


def test_startup_recall_names_the_repository_s_memories(hooks, tmp_path):
    (tmp_path / "checkout-api" / ".git").mkdir(parents=True)
    hooks.create(NodeDraft("project://checkout_api", "The shop.", 1, "", ("checkout-api",)))
    sent = hooks.start(cwd=str(tmp_path / "checkout-api"))
    block = parse_recall(sent)
    assert block is not None
    assert block.uris[0] == "project://checkout_api"
    assert block.session_id == "s-1"
    assert hooks.opens(uri="project://checkout_api")["query_id"] == block.query_id


def test_a_subagent_gets_the_short_block_unless_it_is_switched_off(hooks):
    hooks.write("core://agent/claudecode", "Use uv.")
    sent = hooks.send("SubagentStart", agent_id="a-1")
    assert "Use uv." in sent
    assert RULE not in sent
    hooks.dispatcher.machine = Settings({"hooks.subagent_boot": False})
    assert hooks.send("SubagentStart", agent_id="a-2") == ""
    assert hooks.reasons() == ["", "switched_off"]


def test_a_prompt_inside_a_subagent_gets_no_recall(hooks):
    assert hooks.prompt(client="codex", agent_id="a-1") == ""
    assert hooks.reasons() == ["subagent"]


# --- prompts ---


def test_a_matching_prompt_gets_its_memory_and_the_record_holds_the_bytes(hooks):
    sent = hooks.prompt()
    block = parse_recall(sent)
    assert block is not None
    assert block.uris == (WEBHOOKS.uri,)
    assert [row["bytes"] for row in hooks.rows("outputs")] == [hooks.output]
    assert [row["query_id"] for row in hooks.rows()] == [block.query_id]


def test_a_prompt_that_matches_nothing_is_recorded_as_that(hooks):
    assert hooks.prompt("thanks, that is all for today") == ""
    assert hooks.output == b""
    assert hooks.reasons() == ["no_match"]


def test_a_memory_is_shown_again_unless_once_per_epoch_is_set(hooks):
    assert hooks.prompt()
    assert hooks.prompt()
    hooks.set(recall__display__repeat="once")
    hooks.start("clear")
    assert hooks.prompt()
    assert hooks.prompt() == ""
    withheld = json.loads(hooks.rows()[-1]["recall"])["candidates"][0]
    assert (withheld["uri"], withheld["withheld"]) == (WEBHOOKS.uri, "repeat")
    hooks.start("compact")
    assert hooks.prompt()


def test_the_same_prompt_gives_the_same_block_but_for_its_id(hooks):
    def text():
        sent = hooks.prompt()
        return sent.replace(parse_recall(sent).query_id, "ID")

    hooks.now = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
    first = text()
    hooks.restart()
    hooks.now = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
    assert text() == first


def test_projects_of_the_same_term_are_told_apart_by_where_the_session_works(hooks, tmp_path):
    hooks.set(recall__display__min_display_score=0.4)
    for name in ("checkout_api", "billing"):
        hooks.create(NodeDraft(f"project://{name}", "A service.", 2, "", (name,)))
        hooks.create(NodeDraft(f"project://{name}/deploy", f"How {name} deploys.", 2, "", ("deploy checklist",)))
        (tmp_path / name / ".git").mkdir(parents=True)
    for session in ("s-1", None):
        for name in ("checkout_api", "billing"):
            sent = hooks.prompt("where is the deploy checklist?", session=session, cwd=str(tmp_path / name))
            assert parse_recall(sent).uris == (f"project://{name}/deploy",)


@pytest.mark.parametrize("client", RUNTIMES)
@pytest.mark.parametrize("letter", ["x", "部", "🟡"])
def test_blocks_keep_below_each_host_s_cap_whatever_people_wrote(hooks, client, letter):
    runtime = RUNTIMES[client]
    long = f"{letter * 40} " * 400
    hooks.set(lifecycle__prompt_recall__preamble=long, lifecycle__guidance__global=long)
    for uri in ("core://agent", "core://soul", "preferences://user", f"core://agent/{client}"):
        hooks.write(uri, long)
    start, prompt = hooks.start(client=client), hooks.prompt(client=client)
    assert 0 < measure(start, runtime.boot_budget.unit) <= runtime.boot_budget.limit
    assert 0 < measure(prompt, runtime.boot_budget.unit) <= runtime.boot_budget.limit
    assert parse_recall(prompt).uris == (WEBHOOKS.uri,)


# --- ids ---


def test_ids_that_the_model_left_out_are_filled_in(hooks):
    block = parse_recall(hooks.prompt())
    ids = {"session_id": "s-1", "query_id": block.query_id}
    assert hooks.opens(uri=WEBHOOKS.uri) == {"uri": WEBHOOKS.uri, **ids}
    assert hooks.opens(uri=WEBHOOKS.uri, nav_only=True) == {"uri": WEBHOOKS.uri, "nav_only": True, **ids}
    assert hooks.opens(uri="project://refunds/")["query_id"] == block.query_id
    assert hooks.opens(uri=WEBHOOKS.uri, query_id="Q")["query_id"] == "Q"


def test_ids_are_left_alone_where_there_is_nothing_to_fill_in(hooks):
    hooks.prompt()
    assert hooks.opens(uri=WEBHOOKS.uri, session_id="S", query_id="Q") == {}
    assert hooks.opens(uri="project://never_shown") == {}
    assert hooks.opens(uri=["no", "text"]) == {}
    assert hooks.opens() == {}
    assert hooks.reasons()[1:] == ["ids_passed", *["not_recalled"] * 3]


def test_a_host_that_takes_an_object_gets_one_for_nothing(hooks):
    hooks.send("tool.before", client="opencode", tool_name="lore_get_node", tool_input={"uri": "project://x"})
    assert hooks.output == b"{}"


# --- time and trouble ---


@pytest.mark.parametrize(("setting_ms", "remaining_ms"), [(500, PLENTY), (30_000, 700.0)])
def test_a_recall_that_is_too_slow_is_said_in_time(hooks, setting_ms, remaining_ms):
    hooks.set(recall__safety__timeout_ms=setting_ms)
    hooks.before_memory("recall")
    began = time.monotonic()
    sent = hooks.prompt(ms=remaining_ms)
    assert time.monotonic() - began < 5
    assert sent == "Lore: recall took longer than 1 s and was skipped for this prompt. lore_search still works."
    assert hooks.reasons() == hooks.missed() == ["slow_recall"]


def test_slow_startup_recall_does_not_cost_a_session_its_rules(hooks):
    hooks.before_memory("recall")
    assert RULE in hooks.start(ms=500)
    assert hooks.missed() == ["slow_recall"]
    assert hooks.reasons() == [""]


def test_failing_startup_recall_does_not_either(hooks):
    hooks.before_memory("recall", StorageError("The disk is gone"))
    assert RULE in hooks.start()


def test_a_session_start_that_hangs_ends_in_time_with_the_ready_bytes(hooks):
    hooks.before_memory("boot")
    began = time.monotonic()
    hooks.start(ms=500)
    assert time.monotonic() - began < 5
    assert hooks.output == READY
    hooks.start("resume", ms=300)
    assert hooks.output == b""
    assert hooks.missed() == ["timeout", "timeout"]
    hooks.dispatcher.backend = hooks.memory
    assert RULE in hooks.start("resume"), "what was not sent is sent once it can be"


@pytest.mark.parametrize(
    ("error", "missed"),
    [
        (StorageError("locked", code="database_locked"), "database_locked"),
        (RuntimeError("ours"), "defect_RuntimeError"),
        (RecursionError(), "defect_RecursionError"),
    ],
)
def test_whatever_fails_is_silence_and_a_reason(hooks, error, missed):
    hooks.before_memory("recall", error)
    assert hooks.prompt() == ""
    assert hooks.output == b""
    assert hooks.missed() == [missed]
    hooks.before_memory("boot", error)
    hooks.start()
    assert hooks.output == READY


@pytest.mark.parametrize("remaining", [float("nan"), float("inf"), -1.0, 0.0, 1e300])
def test_nonsense_as_remaining_time_is_no_error(hooks, remaining):
    assert parse_recall(hooks.prompt(ms=remaining)) is not None


def test_a_folder_on_a_dead_drive_holds_up_nobody(hooks, monkeypatch):
    drive = threading.Event()
    looked = []

    def repository_of(cwd):
        looked.append(cwd)
        drive.wait()
        return None, None

    monkeypatch.setattr(whereabouts, "repository_of", repository_of)
    try:
        assert RULE in hooks.start(cwd="/net/dead/checkout-api")
        assert parse_recall(hooks.prompt(cwd="/net/dead/checkout-api")) is not None
        assert looked == ["/net/dead/checkout-api"], "one thread waits for it, and nobody a second time"
        assert [row["project"] for row in hooks.rows("sessions")] == ["checkout-api"]
    finally:
        drive.set()


def test_missed_memory_is_told_to_the_next_session_once(hooks):
    hooks.before_memory("recall", StorageError("locked", code="database_locked"))
    hooks.prompt()
    hooks.prompt()
    hooks.dispatcher.backend = hooks.memory
    assert "Memory note" not in hooks.start(client="codex")
    assert "2 times" in hooks.start(session=REHEARSAL), "a rehearsal shows what a session would be told"
    assert (
        "2 times since the last session this runtime got no memory (another program has locked the memory)"
        in hooks.start()
    )
    assert "Memory note" not in hooks.start("clear")
    hooks.restart()
    assert "Memory note" not in hooks.start("clear"), "a service that comes and goes does not repeat itself"
    assert len(hooks.missed()) == 2


# --- what is kept ---


@pytest.mark.parametrize("session", [REHEARSAL, SELF_TEST])
def test_a_rehearsal_is_answered_and_leaves_no_trace(hooks, session):
    assert RULE in hooks.start(session=session)
    block = parse_recall(hooks.prompt(session=session))
    assert block.uris == (WEBHOOKS.uri,)
    assert block.session_id == ""
    hooks.opens(uri=WEBHOOKS.uri)
    hooks.before_memory("recall", RuntimeError())
    hooks.prompt(session=session)
    assert hooks.missed() == []
    assert [row["event"] for row in hooks.rows()] == ["tool.before"]
    assert hooks.rows("sessions") == []
    used = hooks.run(
        hooks.memory.mark_used(uri=WEBHOOKS.uri, how="passed", query_id=block.query_id, session_id=session)
    )
    assert not used


def test_a_self_test_is_told_even_that_nothing_matched(hooks):
    assert hooks.prompt("nothing of the kind", session=SELF_TEST) == SELF_TEST_TEXT
    assert hooks.prompt("nothing of the kind", session=REHEARSAL) == ""


def test_secrets_and_private_passages_stay_out_of_recall_and_records(hooks):
    key = "sk-live-4f9aQ81xYz72bLmN03pT"
    hooks.prompt(f"{QUESTION} <private>my salary is 4711</private> password = tr0ub4dor&3xyz {key}")
    (row,) = hooks.rows()
    kept = row["input"] + row["recall"]
    assert "idempotency key" in kept
    for secret in (key, "tr0ub4dor&3xyz", "4711", "salary"):
        assert secret not in kept


@pytest.mark.parametrize("text", ["a" * 3_000_000, "部署方案 and more words " * 100_000, " ? " * 1_000_000])
def test_a_pasted_file_costs_neither_the_limit_nor_the_records(hooks, text):
    began = time.monotonic()
    hooks.prompt(f"{QUESTION}\n{text}")
    assert time.monotonic() - began < 1.5
    (row,) = hooks.rows()
    assert row["reason"] == ""
    assert len(row["input"]) < 100_000


@pytest.mark.parametrize(
    ("text", "reason"), [("/clear", "slash_command"), (" \n", "blank"), ("<task-notification>done", "synthetic")]
)
def test_what_needs_no_recall_is_silent_and_says_why(hooks, text, reason):
    assert hooks.prompt(text) == ""
    assert hooks.reasons() == [reason]
    assert hooks.missed() == []


def test_an_unknown_client_gets_nothing(hooks):
    assert hooks.prompt(client="nobody") == ""
    assert hooks.rows() == []
