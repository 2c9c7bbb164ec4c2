"""The real Codex with our memory: what its requests hold, whose word its hooks need, and what is left when we go."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lorehooks.core.home import Home
from lorehooks.hooks import service
from lorehooks.installers import codex as installer
from lorehooks.installers import codextrust, hookentries, receipt
from lorehooks.installers.codexserver import AppServer
from lorehooks.installers.jsontext import parse
from lorehooks.installers.plan import Context

VERSION = "0.171.0"
NODE = "project://deploy_checklist"
CONTENT = "Production deploys go through the blue cluster first and never on a Friday."
QUESTION = "How do we run a production deploy?"
UNRELATED = "What colour has the sky at noon?"
BOOT = "core://agent"
RULE = "Always answer in whole sentences."
CONFIG = """# what the user wrote
model = "fake-model"   # kept
model_provider = "fake"
model_auto_compact_token_limit = 20000
{extra}
[model_providers.fake]
name = "fake"
base_url = "{url}/v1"
wire_api = "responses"
env_key = "FAKE_KEY"
request_max_retries = 0
stream_max_retries = 0
"""
FULL = {"reply": {"text": "ok", "usage": {"input_tokens": 100_000, "output_tokens": 10}}}
"""An answer after which Codex finds its context full, and compacts it before the next prompt."""
LIMIT = 10_000
HOST_OWN = (
    r"(\w+_\d+\.sqlite(-shm|-wal)?|installation_id|version\.json|models_cache\.json|history\.jsonl|\.personality_migration)"
    r"|(sessions|skills|tmp|\.tmp|log|shell_snapshots|cache)/.*"
)
"""What Codex keeps in its home by itself, whatever is installed."""


@pytest.fixture
def codex(npm_program: Callable[..., Path], new_machine: Callable[..., Any]) -> Callable[..., Any]:
    """`codex(name="user", extra="")`: a machine with Codex and a configuration of its user, not yet with us."""

    def make(name: str = "user", extra: str = "") -> Any:
        machine = new_machine(npm_program("@openai/codex", VERSION, "codex"), name, FAKE_KEY="dummy")
        (machine.user / ".codex").mkdir()
        config = CONFIG.format(url=machine.model.url, extra=extra)
        (machine.user / ".codex" / "config.toml").write_text(config)
        return machine

    return make


@pytest.fixture
def ready(codex: Callable[..., Any]) -> Any:
    """The same with our memory in it, trusted, with a rule and one memory to find."""
    machine = codex()
    machine.lore("install", "codex", "--trust")
    remember(machine)
    return machine


def remember(machine: Any) -> None:
    machine.lore("node", "update", BOOT, RULE)
    machine.remember(
        NODE, CONTENT, disclosure="When a production deploy is planned", glossary="production deploy,deploy"
    )


def prompt(machine: Any, text: str, *words: str) -> list[str]:
    """Run one prompt; answers what Codex says of its hooks, such as `SessionStart Completed`."""
    out = machine.run("codex", "exec", *words, "--skip-git-repo-check", text)
    assert out.strip() in ("FAKE-OK", "ok")
    return re.findall(r"^hook: (\w+ \w+)$", machine.said[-1], re.MULTILINE)


def resume(machine: Any, text: str) -> list[str]:
    return prompt(machine, text, "resume", "--last")


def call(tool: str, arguments: dict[str, Any], when: str) -> dict[str, Any]:
    """A rule: asked this, the model calls a tool."""
    return {
        "when": {"last_contains": when, "has_tool_result": False},
        "reply": {"tool_calls": [{"name": f"*{tool}", "arguments": arguments}]},
    }


def placed(request: dict[str, Any]) -> list[tuple[str, str]]:
    """(kind, text) in the order of the request: `boot`, `prompt`, `recall`; what Codex adds itself is left out."""
    found = []
    for item in request["body"]["input"]:
        text = "".join(part.get("text", "") for part in item.get("content") or [])
        if item.get("role") == "developer" and text.startswith("<recall "):
            found.append(("recall", text))
        elif item.get("role") == "developer" and "Lore: your long-term memory" in text:
            found.append(("boot", text))
        elif item.get("role") == "user" and not text.startswith(("<environment_context>", "Another language model")):
            found.append(("prompt", text))
    return found


def kinds(request: dict[str, Any]) -> list[str]:
    return [kind for kind, _ in placed(request)]


def ids(request: dict[str, Any]) -> tuple[str, str]:
    """session_id and query_id of the last recall block."""
    found = re.findall(r'<recall session_id="([^"]+)" query_id="([^"]+)"', request["text"])
    return found[-1]


def output(request: dict[str, Any]) -> str:
    """What the last tool call of a request answered."""
    return json.dumps(request["body"]["input"][-1], ensure_ascii=False)


def context(machine: Any) -> Context:
    noted = receipt.load(machine.home, "codex")
    return Context(Home(machine.home.root), machine.user, machine.environment, noted)


def findings(machine: Any) -> dict[str, list[str]]:
    """What `doctor` asks the installer for: code to texts."""
    found: dict[str, list[str]] = {}
    for finding in installer.Codex().check(context(machine)):
        found.setdefault(finding.code, []).append(finding.text)
    return found


# --- what the model gets


def test_boot_stands_before_the_prompt_and_recall_behind_it_as_developer_messages(ready):
    assert prompt(ready, QUESTION) == ["SessionStart Completed", "UserPromptSubmit Completed"]
    (request,) = ready.turns
    (boot_kind, boot), asked, (recall_kind, recall) = placed(request)
    assert (boot_kind, asked, recall_kind) == ("boot", ("prompt", QUESTION), "recall")
    assert RULE in boot
    assert NODE in recall
    assert CONTENT not in request["text"]
    assert {"mcp__lore/lore_get_node", "mcp__lore/lore_search"} <= set(request["tools"])


def test_a_prompt_that_fits_nothing_gets_no_block(ready):
    prompt(ready, UNRELATED)
    assert kinds(ready.turns[0]) == ["boot", "prompt"]


def test_a_node_is_opened_without_a_question_and_its_use_is_marked(ready):
    prompt(ready, QUESTION)
    session, query = ids(ready.turns[0])
    ready.script(call("lore_get_node", {"uri": NODE, "session_id": session, "query_id": query}, "open it"))
    resume(ready, "open it")
    assert CONTENT in output(ready.turns[-1])
    runs = ready.lore("replay", session)["runs"]
    opened = [use for run in runs for use in run["opened"]]
    assert [(use["uri"], use["how"]) for use in opened] == [(NODE, "passed")]


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        (
            "lore_create_node",
            {"uri": "project://x", "content": "y", "priority": 2, "disclosure": "d", "glossary": ["x"]},
        ),
        ("lore_update_node", {"uri": NODE, "content": "Changed."}),
        ("lore_move_node", {"old_uri": NODE, "new_uri": "project://moved"}),
        ("lore_delete_node", {"uri": NODE}),
    ],
)
def test_a_tool_that_writes_asks_first(ready, tool, arguments):
    """`codex exec` has nobody to ask, and so the answer is no."""
    ready.script(call(tool, arguments, "write it"))
    prompt(ready, "write it")
    assert "requires approval" in output(ready.turns[-1])
    assert ready.lore("node", "get", NODE)["content"] == CONTENT


def test_resuming_adds_the_boot_block_only_when_it_changed(ready):
    prompt(ready, UNRELATED)
    resume(ready, UNRELATED)
    assert kinds(ready.turns[-1]) == ["boot", "prompt", "prompt"]
    ready.lore("node", "update", "preferences://user", "Answers in Esperanto.")
    resume(ready, UNRELATED)
    assert kinds(ready.turns[-1]) == ["boot", "prompt", "prompt", "boot", "prompt"]
    assert "Esperanto" in placed(ready.turns[-1])[3][1]


def test_after_a_compaction_the_boot_block_is_there_again_once(ready):
    """Codex runs both `resume` and `compact` before the prompt that follows."""
    ready.script({"when": {"last_contains": "fill up"}, **FULL})
    prompt(ready, "fill up")
    events = resume(ready, QUESTION)
    assert events.count("SessionStart Completed") == 2
    assert kinds(ready.turns[-1])[-3:] == ["boot", "prompt", "recall"]
    assert kinds(ready.turns[-1]).count("boot") == 1
    resume(ready, QUESTION)
    assert kinds(ready.turns[-1]).count("boot") == 1


def test_a_session_from_before_us_gets_one_boot_block_although_it_is_compacted(codex):
    machine = codex()
    machine.script({"when": {"last_contains": "fill up"}, **FULL})
    prompt(machine, "fill up")
    machine.lore("install", "codex", "--trust")
    events = resume(machine, QUESTION)
    assert events.count("SessionStart Completed") == 2
    assert kinds(machine.turns[-1]).count("boot") == 1


def test_a_subagent_gets_the_short_boot_block_and_no_recall(ready):
    ready.script(call("spawn_agent", {"message": f"LOOK-AROUND {QUESTION}"}, "send an agent"))
    answer = ready.model.script.choose

    def wait_for_the_agent(api: str, body: dict[str, Any]) -> Any:
        """Codex ends with the main agent's answer, so it first has to wait for the other one."""
        found = re.search(r'"agent_id":"([^"]+)"', str((body.get("input") or [{}])[-1].get("output")))
        wait = {"name": "*wait_agent", "arguments": {"targets": [found[1]]}} if found else {}
        return (None, {"tool_calls": [wait]}) if found else answer(api, body)

    ready.model.script.choose = wait_for_the_agent
    prompt(ready, "send an agent")
    (subagent,) = (turn for turn in ready.turns if placed(turn)[-1][1].startswith("LOOK-AROUND"))
    own = [item for item in subagent["body"]["input"] if item.get("role") == "developer"][-1]["content"][0]["text"]
    assert "lore_search" in own
    assert RULE not in own
    assert "<recall " not in subagent["text"]


@pytest.mark.parametrize("letters", ["记忆里的规则。", "🟡 rule & <b>\\", "plain words "])
def test_a_block_of_any_size_stays_below_what_codex_would_put_into_a_file(ready, letters):
    for uri in (BOOT, "core://soul", "preferences://user", "core://agent/codex"):
        ready.lore("node", "update", uri, letters * (30_000 // len(letters)))
    prompt(ready, QUESTION)
    boot, recall = (text for kind, text in placed(ready.turns[0]) if kind != "prompt")
    assert LIMIT * 0.8 < len(boot.encode()) <= LIMIT
    assert len(recall.encode()) <= LIMIT
    assert "truncated output" not in ready.turns[0]["text"]
    assert not list((ready.user / "tmp").glob("hook_outputs/**/*.txt"))


def test_replay_prints_the_bytes_that_the_model_got(ready):
    prompt(ready, QUESTION)
    session, _ = ids(ready.turns[0])
    runs = [run for run in ready.lore("replay", session)["runs"] if run["sent"]]
    assert [run["event"] for run in runs] == ["session.start", "prompt.submit"]
    sent = [json.loads(run["sent"])["hookSpecificOutput"]["additionalContext"] for run in runs]
    assert sent == [text for kind, text in placed(ready.turns[0]) if kind != "prompt"]


@pytest.mark.parametrize("name", ["Ann Lee", "zoë 김", 'it\'s "quoted" $HOME'])
def test_a_home_of_any_name_works_like_any_other(codex, name):
    machine = codex(name)
    machine.lore("install", "codex", "--trust")
    remember(machine)
    machine.script(call("lore_get_node", {"uri": NODE}, "production deploy"))
    prompt(machine, QUESTION)
    assert kinds(machine.turns[0]) == ["boot", "prompt", "recall"]
    assert CONTENT in output(machine.turns[-1])
    assert findings(machine) == {}


# --- trust


def test_hooks_run_only_when_the_user_said_so_and_until_then_the_check_names_each(codex):
    machine = codex()
    (outcome,) = machine.lore("install", "codex")["outcomes"]
    assert installer.TRUST.without in outcome["notes"]
    assert prompt(machine, QUESTION) == []
    assert kinds(machine.turns[0]) == ["prompt"]
    untrusted = findings(machine)["untrusted"]
    assert [text.split(":")[0].rpartition(" ")[2] for text in untrusted] == [
        "SessionStart", "UserPromptSubmit", "SubagentStart",
    ]  # fmt: skip
    doctor = machine.lore("doctor", code=1)["findings"]
    assert [each["fix"] for each in doctor if each["code"] == "untrusted"] == ["lore install codex --trust"] * 3
    assert set(machine.lore("status")["runtimes"][0]["hooks"].values()) == {"untrusted"}
    (outcome,) = machine.lore("install", "codex", "--trust")["outcomes"]
    assert outcome["status"] == "updated"
    assert machine.lore("doctor")["problems"] == 0
    assert prompt(machine, UNRELATED) == ["SessionStart Completed", "UserPromptSubmit Completed"]
    assert findings(machine) == {}


def test_a_hook_that_was_changed_or_switched_off_is_named(ready):
    file = ready.user / ".codex" / "hooks.json"
    data = json.loads(file.read_bytes())
    data["hooks"]["UserPromptSubmit"][0]["hooks"][0]["timeout"] = 20
    file.write_text(json.dumps(data))
    key = codextrust.states({}, file, tuple(hookentries.entries(parse(file.read_bytes(), name="x").plain, ("hooks",))))[
        0
    ]
    with AppServer(context(ready).which("codex"), ready.environment) as server:
        server.write([(f"hooks.state.{json.dumps(key.key)}.enabled", False)])
    found = findings(ready)
    assert "UserPromptSubmit" in found["modified"][0]
    assert "SessionStart" in found["disabled"][0]
    assert prompt(ready, QUESTION) == []


def test_our_reckoning_of_hashes_agrees_with_codex_for_every_kind_of_entry(codex):
    machine = codex()
    handler = {"type": "command", "command": "true"}
    groups = [
        {"hooks": [handler]},
        {"matcher": "startup|clear", "hooks": [{**handler, "timeout": 7}, {**handler, "statusMessage": "é/ 김"}]},
        {"matcher": "", "hooks": [{**handler, "timeout": 0, "async": True}]},
    ]
    file = machine.user / ".codex" / "hooks.json"
    file.write_text(json.dumps({"hooks": dict.fromkeys(("SessionStart", "UserPromptSubmit", "SubagentStart"), groups)}))
    own = tuple(hookentries.entries(parse(file.read_bytes(), name="x").plain, ("hooks",)))
    with AppServer(context(machine).which("codex"), machine.environment) as server:
        said = {hook["key"]: hook["currentHash"] for hook in server.hooks()}
    config = {"hooks": {"state": {key: {"trusted_hash": value} for key, value in said.items()}}}
    assert len(said) == len(own) == 12
    assert {each.state for each in codextrust.states(config, file, own)} == {"trusted"}


def test_an_upgrade_leaves_the_trust_valid(ready):
    """Another release lays the home out anew and installs again, from another environment."""
    file = ready.user / ".codex" / "hooks.json"
    before, config = file.read_bytes(), (ready.user / ".codex" / "config.toml").read_bytes()
    noted = ready.home.receipts / "codex.json"
    noted.write_text(json.dumps(json.loads(noted.read_text()) | {"lorehooks": "0.0.1", "environment": "/opt/old"}))
    (ready.home.bin / "hook.py").write_text("raise SystemExit")
    (ready.home.bin / "python").unlink()
    (outcome,) = ready.lore("update", "codex")["outcomes"]
    assert outcome["changes"] == []
    assert (file.read_bytes(), (ready.user / ".codex" / "config.toml").read_bytes()) == (before, config)
    assert prompt(ready, QUESTION) == ["SessionStart Completed", "UserPromptSubmit Completed"]
    assert kinds(ready.turns[0]) == ["boot", "prompt", "recall"]


# --- when things go wrong


def test_a_halted_service_costs_no_more_than_the_limit_and_shows_nothing(ready):
    prompt(ready, UNRELATED)
    (ready.home.run / "limits").write_text("700 700\n")
    os.kill(json.loads(ready.home.service_file.read_bytes())["pid"], signal.SIGSTOP)
    try:
        events = resume(ready, QUESTION)
    finally:
        os.kill(json.loads(ready.home.service_file.read_bytes())["pid"], signal.SIGCONT)
    assert events == ["SessionStart Completed", "UserPromptSubmit Completed"]
    assert kinds(ready.turns[-1]) == ["boot", "prompt", "prompt"]
    assert "timeout" in ready.home.misses.read_text()


def test_a_killed_service_is_started_again_by_the_next_prompt(ready):
    prompt(ready, UNRELATED)
    os.kill(json.loads(ready.home.service_file.read_bytes())["pid"], signal.SIGKILL)
    (ready.home.run / "limits").write_text("8000 8000\n")
    assert resume(ready, QUESTION) == ["SessionStart Completed", "UserPromptSubmit Completed"]
    assert kinds(ready.turns[-1])[-1] == "recall"


@pytest.mark.parametrize("mode", ["hang", "drip_body", "html200", "rst"])
def test_a_memory_on_a_server_that_misbehaves_costs_the_limit_and_shows_nothing(ready, mode):
    service.stop(ready.home)
    script = Path(__file__).parents[1] / "support" / "bad_server.py"
    bad = subprocess.Popen([sys.executable, script, mode], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        port = bad.stdout.readline().split()[-1]
        ready.home.config.write_text(f'[server]\nurl = "http://127.0.0.1:{port}"\n')
        began = time.monotonic()
        events = prompt(ready, QUESTION)
    finally:
        bad.kill()
        bad.communicate()
    assert time.monotonic() - began < 60
    assert events == ["SessionStart Completed", "UserPromptSubmit Completed"]
    assert ready.home.misses.read_text()
    assert ("prompt", QUESTION) in placed(ready.turns[-1])


@pytest.mark.parametrize("damage", ["package gone", "interpreter gone", "hook gone", "home gone", "home read-only"])
def test_what_happens_to_our_files_never_shows_in_a_session(ready, damage):
    service.stop(ready.home)
    match damage:
        case "package gone":
            script = ready.home.bin / "service"
            script.write_text(script.read_text().replace("lorehooks.hooks.service", "gone.service"))
        case "interpreter gone":
            (ready.home.bin / "python").unlink()
            (ready.home.bin / "python").symlink_to("/opt/gone/python")
        case "hook gone":
            (ready.home.bin / "hook.py").unlink()
        case "home gone":
            shutil.rmtree(ready.home.root)
        case "home read-only":
            for path in (ready.home.root, *ready.home.root.rglob("*")):
                if not path.is_symlink():
                    path.chmod(path.stat().st_mode & ~0o222)
    began = time.monotonic()
    events = prompt(ready, QUESTION)
    assert time.monotonic() - began < 60
    assert events == ["SessionStart Completed", "UserPromptSubmit Completed"]
    assert "error" not in ready.said[-1].lower()
    assert ("prompt", QUESTION) in placed(ready.turns[-1])


# --- in and out


def test_uninstall_leaves_the_bytes_of_before_among_foreign_hooks_servers_and_links(codex):
    machine = codex(extra='notify = ["notify-send", "Codex"]\n')
    home, dotfiles = machine.user / ".codex", machine.user / "dotfiles"
    dotfiles.mkdir()
    foreign = b'{\r\n\t"hooks": {"SessionStart": [ {"hooks":[{"type": "command","command":"true","timeout": 5, "n": 1.10}]} ],\r\n\t"Stop": []},\r\n\t"description": "\\u00e9"\r\n}'
    (dotfiles / "hooks.json").write_bytes(foreign)
    (home / "hooks.json").symlink_to("../dotfiles/hooks.json")
    with (home / "config.toml").open("a") as file:
        file.write(
            '\n[mcp_servers.other]  # theirs\ncommand = "true"\nargs = ["a",   "b"]\n\n[tui]\nnotifications = true\n'
        )
    (home / "config.toml").rename(dotfiles / "config.toml")
    (home / "config.toml").symlink_to("../dotfiles/config.toml")
    prompt(machine, UNRELATED)  # the host's own folders come into being
    before = machine.files(machine.user / "dotfiles"), set(machine.files(home))
    machine.lore("install", "codex", "--trust")
    assert machine.lore("install", "codex")["outcomes"][0]["status"] == "unchanged"
    installed = tomllib.loads((home / "config.toml").read_text())
    assert set(installed["mcp_servers"]) == {"other", "lore"}
    assert prompt(machine, QUESTION)[:2] == ["SessionStart Completed", "UserPromptSubmit Completed"]
    (outcome,) = machine.lore("uninstall", "codex")["outcomes"]
    assert outcome["stays"] == []
    assert machine.files(machine.user / "dotfiles") == before[0]
    assert (home / "hooks.json").is_symlink()
    assert (home / "config.toml").is_symlink()
    own = {name for name in set(machine.files(home)) ^ before[1] if not re.fullmatch(HOST_OWN, name)}
    assert own == set()
    assert prompt(machine, QUESTION) == []
    assert kinds(machine.turns[-1]) == ["prompt"]
    assert not machine.home.socket.exists()


def test_a_home_named_by_codex_home_is_the_one_that_is_used(codex):
    machine = codex()
    moved = machine.user / "else where"
    (machine.user / ".codex").rename(machine.user / "real")
    moved.symlink_to("real")
    machine.environment["CODEX_HOME"] = str(moved)
    machine.lore("install", "codex", "--trust")
    remember(machine)
    prompt(machine, QUESTION)
    assert kinds(machine.turns[0]) == ["boot", "prompt", "recall"]
    assert findings(machine) == {}
    (outcome,) = machine.lore("uninstall", "codex")["outcomes"]
    assert outcome["stays"] == []
    config = (machine.user / "real" / "config.toml").read_text()
    assert config == CONFIG.format(url=machine.model.url, extra="")
    assert not (machine.user / ".codex").exists()
