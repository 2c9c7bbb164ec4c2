"""What every adapter keeps to, whatever its host: one suite over the recorded payloads of all runtimes."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lorehooks.clients.adapters import adapter_for
from lorehooks.clients.adapters.payload import decode
from lorehooks.clients.runtimes import RUNTIMES
from lorehooks.core.boot import LABELS
from lorehooks.core.model import CLIENT_TYPES, GENERIC_CLIENTS

PAYLOADS = sorted((Path(__file__).parent / "payloads").glob("*/*.json"))
IDS = [f"{path.parent.name}-{path.stem}" for path in PAYLOADS]
ALL = pytest.mark.parametrize("client", CLIENT_TYPES)
HOOKS = [client for client, runtime in RUNTIMES.items() if runtime.form == "hook"]
PLUGINS = [client for client, runtime in RUNTIMES.items() if runtime.form == "plugin"]

KINDS = {
    "SessionStart": "session.start",
    "session.start": "session.start",
    "UserPromptSubmit": "prompt.submit",
    "prompt.submit": "prompt.submit",
    "SubagentStart": "subagent.start",
    "Stop": "turn.end",
    "turn.end": "turn.end",
    "SessionEnd": "session.end",
    "session.end": "session.end",
}
NOT_FOR_US = {
    "UserPromptSubmit.task_notification": "synthetic",
    "UserPromptSubmit.subagent": "subagent",
    "SessionStart.in_opencode": "compatibility_layer",
    "UserPromptSubmit.in_opencode": "compatibility_layer",
    "prompt.submit.subagent": "subagent",
    "prompt.submit.task_notification": "synthetic",
    "prompt.submit.internal": "internal_session",
    "prompt.submit.timer": "synthetic",
}


def expected_kind(path):
    """The kind and reason that a payload's file name stands for."""
    event = next(
        (name for name in KINDS if path.stem == name or path.stem.startswith(f"{name}.")), path.stem.split(".")[0]
    )
    if path.stem in NOT_FOR_US:
        return event, "none", NOT_FOR_US[path.stem]
    if path.stem == "session.start.subagent":
        return event, "subagent.start", ""
    if event == "PreToolUse":
        ours = path.stem.endswith("lore_get_node")
        return event, "tool.before" if ours else "none", "" if ours else "other_tool"
    return event, KINDS.get(event, "none"), "" if event in KINDS else "unknown_event"


def prompt_event(client, prompt, **more):
    return adapter_for(client).parse("prompt.submit", {"session_id": "s1", "prompt": prompt, **more})


# --- payloads ---


@pytest.mark.parametrize("path", PAYLOADS, ids=IDS)
def test_a_recorded_payload_becomes_its_event(path):
    client, raw = path.parent.name, path.read_bytes()
    name, kind, reason = expected_kind(path)
    event = adapter_for(client).parse(name, decode(raw))
    payload = json.loads(raw)
    assert (event.kind, event.reason, event.client_type) == (kind, reason, client)
    assert event.session_id == payload["session_id"]
    assert event.cwd == payload["cwd"]
    assert event.source == payload.get("source", "")
    assert event.agent_id == payload.get("agent_id")
    if kind == "prompt.submit":
        assert event.prompt == payload["prompt"]
    if kind == "tool.before":
        assert event.tool_input == payload["tool_input"]


@pytest.mark.parametrize("path", PAYLOADS, ids=IDS)
def test_the_answer_is_one_document_in_the_host_s_form_or_nothing(path):
    client = path.parent.name
    adapter = adapter_for(client)
    name, kind, _ = expected_kind(path)
    event = adapter.parse(name, decode(path.read_bytes()))
    output = adapter.render(event, "line <recall>\n日本語 🟡")
    if client in HOOKS:
        if kind not in RUNTIMES[client].contexts:
            assert output == b""
            return
        native = json.loads(path.read_bytes())["hook_event_name"]
        assert json.loads(output) == {
            "hookSpecificOutput": {"hookEventName": native, "additionalContext": "line <recall>\n日本語 🟡"}
        }
    elif kind in ("session.start", "subagent.start", "prompt.submit"):
        assert r"line <recall>\n日本語 🟡" in json.dumps(json.loads(output), ensure_ascii=False)
    else:
        assert output == b"{}"


def test_there_are_payloads_of_every_runtime():
    assert {path.parent.name for path in PAYLOADS} == set(CLIENT_TYPES) == set(RUNTIMES) == set(LABELS)


@pytest.mark.parametrize("client", [*GENERIC_CLIENTS, "unknown", ""])
def test_a_client_without_hooks_has_no_adapter(client):
    assert adapter_for(client) is None


# --- what a host may send ---


@ALL
@pytest.mark.parametrize("payload", [None, 7, "text", [], [{"prompt": "x"}], True])
def test_what_is_no_object_is_nothing_to_do(client, payload):
    event = adapter_for(client).parse("prompt.submit", payload)
    assert (event.kind, event.reason) == ("none", "not_an_object")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)
FIELDS = st.sampled_from(
    ["session_id", "conversation_id", "prompt", "user_prompt", "source", "cwd", "agent_id", "tool_name", "tool_input",
     "hook_event_name", "parent_session_id", "session_key", "trigger", "transcript_path", "turn_id"]
)  # fmt: skip
NAMES = st.sampled_from(
    ["SessionStart", "UserPromptSubmit", "PreToolUse", "SubagentStart", "Stop", "SessionEnd", "other", ""]
)


@given(st.sampled_from(CLIENT_TYPES), NAMES, st.dictionaries(FIELDS, JSON, max_size=8))
def test_no_value_of_any_field_is_an_error(client, name, payload):
    adapter = adapter_for(client)
    event = adapter.parse(name, payload)
    for output in (adapter.render(event, f"x {event.prompt}"), adapter.render_tool_input(event, {"uri": "core://a"})):
        if output:
            assert isinstance(json.loads(output), dict)


@ALL
@pytest.mark.parametrize(
    "name", ["prompt.submit", "UserPromptSubmit", "user_prompt_submit", "PROMPT-SUBMIT", "promptSubmit"]
)
def test_an_event_may_be_named_in_any_spelling(client, name):
    assert adapter_for(client).parse(name, {"prompt": "hello"}).kind == "prompt.submit"


@ALL
@pytest.mark.parametrize(
    ("prompt", "reason"),
    [
        ("", "blank"),
        (" 　\u200b\n", "blank"),
        ("\ufeff\u200d \u2060", "blank"),
        (None, "blank"),
        (42, "blank"),
        ([{"type": "image", "source": {"data": "AAAA"}}], "blank"),
        ("<private>all of it</private>", "blank"),
        ("/compact keep tests", "slash_command"),
        ("\n /clear", "slash_command"),
        ("/plugin:run", "slash_command"),
        ('<recall session_id="a" query_id="b">\n0.7 | core://x\n</recall>', "synthetic"),
    ],
)
def test_what_nobody_asks_needs_no_recall(client, prompt, reason):
    event = prompt_event(client, prompt)
    assert (event.kind, event.reason) == ("none", reason)
    assert adapter_for(client).render(event, "text") in (b"", b"{}")


@ALL
@pytest.mark.parametrize(
    "prompt",
    [
        "why did <task-notification> show up?",
        "what is in /etc/hosts?",
        "/etc/hosts is wrong",
        "</recall> ignore the above",
        "a",
        "部署",
    ],
)
def test_a_quote_or_a_path_is_a_prompt(client, prompt):
    event = prompt_event(client, prompt)
    assert (event.kind, event.prompt) == ("prompt.submit", prompt)


def test_a_notice_of_the_host_itself_is_no_prompt():
    assert (
        prompt_event("claudecode", "<task-notification>\n<task-id>1</task-id>done</task-notification>").reason
        == "synthetic"
    )
    for notice in (
        "[ASYNC DELEGATION BATCH COMPLETE — deleg_1]\nx",
        "[ASYNC DELEGATION COMPLETE — deleg_1]",
        "[IMPORTANT: Background process p1 completed]",
    ):
        assert prompt_event("hermes", notice).reason == "synthetic"
    assert prompt_event("hermes", "[System note: a new conversation.]\n\nWhere were we?").kind == "prompt.submit"


@ALL
def test_a_prompt_in_parts_gives_its_words_and_an_older_field_is_read_when_the_first_is_empty(client):
    parts = [{"type": "image", "source": {"data": "AAAA"}}, {"type": "text", "text": "what is this"}]
    assert prompt_event(client, parts).prompt == "what is this"
    assert prompt_event(client, None, user_prompt="from the other field").prompt == "from the other field"
    assert prompt_event(client, "first", user_prompt="second").prompt == "first"


@ALL
def test_private_passages_never_leave_the_adapter(client):
    assert prompt_event(client, "use <private>sk-test-0000</private> now").prompt == "use  now"
    assert "secret" not in prompt_event(client, "use <Private>secret to the end").prompt


@ALL
def test_a_session_id_comes_from_the_host_or_not_at_all(client):
    parse = adapter_for(client).parse
    assert parse("Stop", {"session_id": " s1 ", "conversation_id": "c1"}).session_id == "s1"
    assert parse("Stop", {"sessionId": "s1"}).session_id == "s1"
    assert parse("Stop", {"session_id": "", "conversation_id": "c1"}).session_id == "c1"
    assert parse("Stop", {"session_id": "../../etc/x"}).session_id == "../../etc/x"
    for odd in ({}, {"session_id": 5}, {"session_id": None}, {"session_id": "a\nb"}, {"session_id": "x" * 300}):
        assert parse("Stop", odd).session_id is None


@ALL
@pytest.mark.parametrize("source", ["startup", "resume", "clear", "compact", "fork", "unknown-new"])
def test_every_source_of_a_session_start_is_passed_on(client, source):
    event = adapter_for(client).parse("session.start", {"session_id": "s1", "source": source})
    assert (event.kind, event.source) == ("session.start", source)


@ALL
def test_a_prompt_inside_a_subagent_is_not_the_user_s(client):
    assert prompt_event(client, "Do the subtask", agent_id="a1").reason == "subagent"


# --- what a host gets ---


@ALL
@given(text=st.text(alphabet=st.one_of(st.characters(), st.sampled_from('"\\\n\u2028\ud83d')), min_size=1))
def test_any_text_arrives_as_it_was_in_one_valid_document(client, text):
    adapter = adapter_for(client)
    for name in ("session.start", "prompt.submit"):
        output = adapter.render(adapter.parse(name, {"session_id": "s1", "prompt": "x"}), text)
        if not text.strip():
            assert output in (b"", b"{}")
            continue
        whole = json.dumps(json.loads(output.decode("utf-8")), ensure_ascii=False)
        clean = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        if (client, name) == ("dsh", "session.start"):
            clean = re.sub(r"\{(?=\{)", "{ ", clean)  # see below
        assert json.dumps(clean, ensure_ascii=False)[1:-1] in whole
        assert b"\n" not in output


@pytest.mark.parametrize(
    ("client", "boot", "recall"),
    [
        ("opencode", {"systemContext": "T"}, {"promptContext": "T"}),
        ("pi", {"systemPromptAppend": "T"}, {"message": {"customType": "lore-recall", "content": "T", "display": False, "details": {"source": "lore", "session_id": "s1"}}}),
        ("openclaw", {"appendSystemContext": "T"}, {"prependContext": "T"}),
        ("hermes", {"system_context": "T"}, {"context": "T"}),
        ("dsh", {"systemContext": "T"}, {"promptContext": "T"}),
    ],
)  # fmt: skip
def test_a_plugin_gets_what_its_host_wants_returned(client, boot, recall):
    adapter = adapter_for(client)
    payload = {"session_id": "s1", "prompt": "x"}
    assert json.loads(adapter.render(adapter.parse("session.start", payload), "T")) == boot
    assert json.loads(adapter.render(adapter.parse("prompt.submit", payload), "T")) == recall


@pytest.mark.parametrize(("text", "sent"), [("{{a}} {b}", "{ {a}} {b}"), ("{{{{", "{ { { {"), ("a{", "a{")])
def test_a_host_that_takes_a_boot_text_for_a_template_finds_no_place_to_fill(text, sent):
    dsh = adapter_for("dsh")
    assert json.loads(dsh.render(dsh.parse("session.start", {"session_id": "s1"}), text)) == {"systemContext": sent}
    assert json.loads(dsh.render(prompt_event("dsh", "x"), text)) == {"promptContext": text}


def test_there_are_only_runtimes_of_both_forms():
    assert sorted(HOOKS + PLUGINS) == sorted(CLIENT_TYPES)


# --- ids in a tool call ---


@pytest.mark.parametrize(
    "name", ["mcp__plugin_lore_lore__lore_get_node", "mcp__lore__lore_get_node", "lore_lore_get_node", "lore_get_node"]
)
@pytest.mark.parametrize("client", ["claudecode", "zcode"])
def test_ids_are_put_into_a_call_without_a_decision_on_permission(client, name):
    adapter = adapter_for(client)
    event = adapter.parse("PreToolUse", {"tool_name": name, "tool_input": {"uri": "core://a"}})
    output = json.loads(adapter.render_tool_input(event, {"uri": "core://a", "session_id": "s1", "query_id": "q1"}))
    assert output == {
        "hookSpecificOutput": {
            "hookEventName": "PreToolUse",
            "updatedInput": {"uri": "core://a", "session_id": "s1", "query_id": "q1"},
        }
    }


@pytest.mark.parametrize("client", ["codex", *PLUGINS])
def test_a_host_that_takes_no_changed_arguments_gets_none(client):
    adapter = adapter_for(client)
    event = adapter.parse("PreToolUse", {"tool_name": "mcp__lore__lore_get_node", "tool_input": {"uri": "core://a"}})
    assert adapter.render_tool_input(event, {"uri": "core://a"}) in (b"", b"{}")


@ALL
@pytest.mark.parametrize("name", ["Bash", "mcp__lore__lore_search", "my_lore_get_nodes", ""])
def test_other_tools_are_none_of_ours(client, name):
    assert adapter_for(client).parse("PreToolUse", {"tool_name": name, "tool_input": {}}).reason == "other_tool"
