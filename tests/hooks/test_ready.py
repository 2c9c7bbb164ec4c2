"""The files that answer while no service runs, kept in step with memory by a running one."""

from __future__ import annotations

import json
import logging
import shutil

import pytest

from lorehooks.clients.runtimes import RUNTIMES
from lorehooks.core.model import CLIENT_TYPES, GENERIC_CLIENTS
from lorehooks.hooks import ready
from lorehooks.hooks.misses import Misses
from lorehooks.hooks.replay import sent_text

RULE = "Ask before you delete anything."


@pytest.fixture
def server(lore_server, wait_for):
    """A running application whose ready files are there; `settle` waits for those that a write brings."""
    client = lore_server()

    def settle() -> None:
        wait_for(lambda: client.get("/hooks/v1/state").json()["stale_files"] == [], "the ready files")

    client.settle = settle
    client.boot = lambda name="claudecode": (client.home.boot / name).read_bytes()
    settle()
    return client


def write(server, uri: str, content: str) -> None:
    domain, _, path = uri.partition("://")
    answer = server.put("/api/browse/node", params={"domain": domain, "path": path}, json={"content": content})
    assert answer.status_code == 200, answer.text


def test_each_runtime_has_its_boot_bytes_tools_and_limits(server):
    assert {path.name for path in server.home.boot.iterdir()} == set(RUNTIMES)
    assert {path.name for path in server.home.tools.iterdir()} == {
        f"{name}.json" for name in (*CLIENT_TYPES, *GENERIC_CLIENTS)
    }
    for name in CLIENT_TYPES:
        assert sent_text(server.boot(name))
        assert json.loads((server.home.tools / f"{name}.json").read_bytes())["tools_list"]["tools"]
    assert (server.home.run / "limits").read_text() == "2000 5000\n"


def test_the_bytes_are_what_a_fresh_session_is_sent(server):
    write(server, "core://agent", RULE)
    server.settle()
    body = {"session_id": "s-1", "source": "startup", "hook_event_name": "SessionStart"}
    sent = server.post("/hooks/v1/claudecode/session.start", json=body).content
    assert sent == server.boot()
    assert RULE in sent_text(sent)


def test_a_rule_of_one_runtime_changes_its_file_only(server):
    before = {name: server.boot(name) for name in RUNTIMES}
    write(server, "core://agent/codex", "Use uv.")
    server.settle()
    changed = {name for name in RUNTIMES if server.boot(name) != before[name]}
    assert changed == {"codex"}
    assert "Use uv." in sent_text(server.boot("codex"))


def test_what_does_not_change_is_not_written_again(server):
    before = {path: path.stat().st_ino for path in server.home.run.rglob("*") if path.is_file()}
    write(server, "core://agent/codex", "Use uv.")
    server.settle()
    after = {path: path.stat().st_ino for path in before}
    assert {path.name for path in before if after[path] != before[path]} == {"codex"}


def test_several_writes_in_a_row_are_answered_by_a_few_passes(server, monkeypatch):
    passes = []
    put = ready.ReadyFiles._put
    monkeypatch.setattr(ready.ReadyFiles, "_put", lambda self, files: (passes.append(1), put(self, files)))
    monkeypatch.setattr(ready, "_PAUSE_SECONDS", 0.5)
    for number in range(20):
        write(server, "core://agent", f"Rule {number}.")
    server.settle()
    assert "Rule 19." in sent_text(server.boot())
    assert len(passes) < 20


def test_lost_and_changed_files_are_named_and_come_back_with_the_next_write(server):
    (server.home.boot / "pi").unlink()
    (server.home.tools / "mcp.json").write_text("{}")
    assert server.get("/hooks/v1/state").json()["stale_files"] == ["run/tools/mcp.json", "run/boot/pi"]
    shutil.rmtree(server.home.boot)
    write(server, "core://agent", RULE)
    server.settle()
    assert RULE in sent_text(server.boot("pi"))


def test_a_folder_that_refuses_is_noted_and_tried_again(server, monkeypatch, caplog, wait_for):
    def refuse(*_):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as full, caplog.at_level(logging.WARNING):
        full.setattr(ready, "write_whole", refuse)
        write(server, "core://agent", RULE)
        wait_for(lambda: "No space left" in caplog.text, "a line in the log")
    assert RULE not in sent_text(server.boot())
    write(server, "core://soul", "Be brief.")
    server.settle()
    assert RULE in sent_text(server.boot())


def test_news_for_one_session_are_not_in_the_files(server):
    Misses(server.home.misses).add("claudecode", "prompt.submit", "timeout")
    write(server, "core://agent", RULE)
    server.settle()
    assert "Memory note" not in sent_text(server.boot())


def test_limits_are_those_of_the_machine_s_settings(lore_server, tmp_path, wait_for):
    (tmp_path / "slow").mkdir()
    (tmp_path / "slow" / "config.toml").write_text("[hooks]\nprompt_timeout_ms = 900\nstart_timeout_ms = 1500\n")
    limits = lore_server(name="slow").home.run / "limits"
    wait_for(limits.exists, "limits")
    assert limits.read_text() == "900 1500\n"


def test_bytes_of_no_runtime_are_never_read(server):
    (server.home.root / "secret").write_text("x")
    files = server.app.state.parts.ready
    assert files.boot_bytes("../../secret") == b""
    assert files.boot_bytes("claudecode") == server.boot()
    (server.home.boot / "claudecode").unlink()
    assert files.boot_bytes("claudecode") == b""
