from __future__ import annotations

import json
import time
from datetime import UTC, datetime, timedelta

import pytest

from lorehooks.clients import config
from lorehooks.core.home import Home
from lorehooks.core.runs import Recorder, Run
from lorehooks.core.store import Store
from lorehooks.installers import cli, codexstate, receipt, zcode
from lorehooks.installers.plan import Context
from lorehooks.installers.receipt import Receipt
from lorehooks.installers.status import age, look


@pytest.fixture
def home(tmp_path, monkeypatch) -> Home:
    monkeypatch.setenv("LORE_HOME", str(tmp_path / "lore"))
    home = Home(tmp_path / "lore")
    home.run.mkdir(parents=True, mode=0o700)
    return home


def status(capfd) -> tuple[dict, str]:
    """The JSON and the text of `lore status`."""
    assert cli.run(["status", "--json"]) == 0
    found = json.loads(capfd.readouterr().out)
    assert cli.run(["status"]) == 0
    return found, capfd.readouterr().out


def record(home: Home, client_type: str, event: str, at: str) -> None:
    recorder = Recorder(home.records)
    recorder.add(lambda: [Run(at, client_type, event, "s", 1, None, "", 1.0)])
    recorder.close()


def test_a_fresh_home_names_the_next_step(home, capfd):
    found, text = status(capfd)
    assert found["memory"]["memories"] == 0
    assert found["runtimes"] == []
    assert "lore install" in text
    assert not home.database.exists()


def test_installed_runtimes_tell_their_last_hook_and_what_they_missed(home, capfd):
    receipt.save(home, Receipt("claudecode", state="installed", complete=True))
    receipt.save(home, Receipt("codex", state="installing"))
    record(home, "claudecode", "prompt.submit", "2026-01-02T03:04:05.000Z")
    now = int(time.time() * 1000)
    home.misses.write_text(
        f"{now - 3 * 86_400_000} claudecode prompt.submit timeout\n"
        f"{now - 60_000} claudecode prompt.submit timeout\n"
        f"{now - 1_000} claudecode prompt.submit start_failed\n"
    )
    found, text = status(capfd)
    claude, codex = sorted(found["runtimes"], key=lambda each: each["runtime"])
    assert (claude["state"], claude["last_event"], claude["misses"]) == ("installed", "prompt.submit", 2)
    assert claude["last_miss"] == "start failed"
    assert (codex["state"], codex["last_event"], codex["misses"]) == ("interrupted", None, 0)
    assert "2 (last: start failed; lore doctor)" in text
    assert "never" in text


def test_a_damaged_memory_is_told_and_not_hidden(home, capfd):
    Store(home.database).close()
    home.database.write_bytes(b"not a database at all" * 1000)
    found, text = status(capfd)
    assert found["memory"]["reachable"] is False
    assert "cannot be read" in text


def test_a_server_that_does_not_answer_is_told_with_its_address(home, capfd):
    config.save(home, {"server.url": "http://127.0.0.1:9"})
    found, text = status(capfd)
    assert found["memory"]["address"] == "http://127.0.0.1:9"
    assert found["memory"]["reachable"] is False
    assert "http://127.0.0.1:9, does not answer" in text


def test_a_wrong_setting_in_the_file_is_a_problem_and_no_failure(home, capfd):
    home.config.write_text("[hooks]\nprompt_timeout_ms = 3\n")
    found, text = status(capfd)
    assert "hooks.prompt_timeout_ms is at least 200" in found["problems"][0]
    assert "Problem" in text


def test_looking_starts_nothing_and_writes_nothing(home):
    before = sorted(path.name for path in home.root.rglob("*"))
    look(home, {})
    assert sorted(path.name for path in home.root.rglob("*")) == before


def test_ages_are_told_in_one_unit():
    now = datetime(2026, 3, 2, 12, 0, tzinfo=UTC)
    told = [age((now - timedelta(seconds=s)).isoformat(), now) for s in (5, 60, 7_300, 200_000, -5)]
    assert told == ["just now", "1 minute ago", "2 hours ago", "2 days ago", "just now"]


def test_hooks_that_a_host_does_not_run_are_told_with_the_reason(home, capfd, own_world):
    for runtime in ("codex", "zcode"):
        receipt.save(home, Receipt(runtime, state="installed", complete=True))
    (own_world / ".codex").mkdir()
    context = Context.from_environment()
    groups = {name: [group] for name, group in codexstate.wanted(home).items() if name != "SubagentStart"}
    (own_world / ".codex" / "hooks.json").write_text(json.dumps({"hooks": groups}))
    key = f"{own_world}/.codex/hooks.json:user_prompt_submit:0:0"
    (own_world / ".codex" / "config.toml").write_text(f'[hooks.state."{key}"]\nenabled = false\n')
    (own_world / ".zcode" / "cli").mkdir(parents=True)
    events = {name: [group] for name, group in zcode.wanted(home).items() if name != "PreToolUse"}
    (own_world / ".zcode" / "cli" / "config.json").write_text(json.dumps({"hooks": {"events": events}}))
    found, text = status(capfd)
    hooks = {each["runtime"]: each["hooks"] for each in found["runtimes"]}
    assert hooks == {
        "codex": {"SessionStart": "untrusted", "UserPromptSubmit": "disabled", "SubagentStart": "missing"},
        "zcode": {"SessionStart": "switched off", "UserPromptSubmit": "switched off", "PreToolUse": "missing"},
    }
    words = " ".join(text.split())
    assert "untrusted" in words
    assert "lore doctor" in words
    (own_world / ".zcode" / "cli" / "config.json").write_text("{")
    assert [each.hooks for each in look(home, context.environment).runtimes][1] == {"all": "unreadable"}
