"""The service's own routes, over the real application."""

from __future__ import annotations

import json

import pytest

from lorehooks.clients.live_index import LiveIndex
from lorehooks.clients.runtimes import RUNTIMES
from lorehooks.core.errors import StorageError
from lorehooks.core.tools import tool_definitions
from lorehooks.hooks import app
from lorehooks.hooks.replay import sent_text

START = {"session_id": "s-1", "source": "startup"}


@pytest.fixture
def server(lore_server):
    return lore_server()


@pytest.mark.parametrize("remaining", ["", "soon", "nan", "-5", "1e999", "2000"])
def test_a_hook_is_answered_whatever_its_time_header_says(server, remaining):
    answer = server.post("/hooks/v1/claudecode/session.start", json=START, headers={"X-Lore-Remaining-Ms": remaining})
    assert answer.status_code == 200
    assert sent_text(answer.content)


@pytest.mark.parametrize("body", [b"", b"null", b"[]", b"{", b"\xff\xfe", b'{"prompt": {"a": 1}}', b"[" * 100_000])
def test_a_body_that_is_none_gets_silence(server, body):
    answer = server.post("/hooks/v1/claudecode/prompt.submit", content=body)
    assert (answer.status_code, answer.content) == (200, b"")


def test_unknown_clients_and_events_get_nothing(server):
    assert server.post("/hooks/v1/nobody/session.start", json=START).content == b""
    assert server.post("/hooks/v1/claudecode/never.heard", json=START).content == b""


def test_tools_are_listed_and_run_for_plugin_files(server):
    assert server.get("/hooks/v1/tools").json() == {"tools": tool_definitions()}
    ran = server.post("/hooks/v1/opencode/tool", json={"name": "lore_status", "arguments": {}, "session_id": "s-1"})
    assert ran.json()["is_error"] is False


@pytest.mark.parametrize(
    ("call", "status"),
    [
        ({"name": "no_such_tool"}, 200),
        ({"name": "lore_get_node", "arguments": [1]}, 400),
        ({"name": "lore_get_node", "arguments": {"uri": 7}}, 200),
        ({"arguments": {}}, 400),
        ([], 400),
        ("text", 400),
    ],
)
def test_a_wrong_tool_call_is_an_error_in_words(server, call, status):
    ran = server.post("/hooks/v1/opencode/tool", content=json.dumps(call))
    assert ran.status_code == status
    assert ran.json()["is_error"] is True
    assert ran.json()["text"]


def test_the_state_names_what_a_doctor_asks_for(server):
    server.post("/hooks/v1/flush")
    state = server.get("/hooks/v1/state").json()
    assert state["memory"]["address"] == "embedded"
    assert (state["memory"]["read_only"], state["memory"]["write_error"]) == (False, "")
    assert state["records"] == {"waiting": 0, "dropped": 0, "error": ""}
    assert state["stale_files"] == []


@pytest.mark.parametrize("client", ["nobody", "%00", "..", "x" * 5000])
def test_a_tool_call_of_an_unknown_client_is_refused(server, client):
    ran = server.post(f"/hooks/v1/{client}/tool", json={"name": "lore_boot"})
    assert ran.status_code in (404, 405)


def test_an_id_longer_than_any_host_gives_names_no_session(server):
    call = {"name": "lore_get_node", "arguments": {"uri": "core://agent"}, "session_id": "s" * 100_000}
    assert server.post("/hooks/v1/opencode/tool", json=call).json()["is_error"] is False
    assert server.app.state.parts.ledger._sessions == {}


def test_recall_comes_back_when_reading_the_memory_failed_at_first(lore_server, monkeypatch):
    """Without another try, each prompt would wait for an index that never comes."""
    failures = [StorageError("the disk was away"), RuntimeError("a defect")]
    read = LiveIndex._read

    def fails_at_first(index):
        if failures:
            raise failures.pop()
        return read(index)

    monkeypatch.setattr(LiveIndex, "_read", fails_at_first)
    monkeypatch.setattr(app, "_AGAIN_SECONDS", 0.01)
    server = lore_server()
    found = server.post("/api/browse/search", json={"query": "anything"})
    assert found.json()["results"] == []
    assert failures == []


def test_use_is_noted_by_hooks_tools_and_open_plugins(server):
    activity = server.app.state.activity
    for path in ("/hooks/v1/alive", *(f"/hooks/v1/{client}/session.start" for client in RUNTIMES)):
        activity.last_use = 0.0
        assert server.post(path, json=START).status_code in (200, 204)
        assert activity.last_use > 0


def test_a_service_in_the_foreground_does_not_end_for_new_settings(server):
    assert server.post("/hooks/v1/reload").status_code == 409
    ended = []
    server.app.state.end = ended.append
    assert server.post("/hooks/v1/reload").status_code == 204
    assert ended == ["its settings were changed"]
