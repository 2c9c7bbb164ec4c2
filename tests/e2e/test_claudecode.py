"""The real Claude Code with our memory: what its requests hold, and what is left when we go."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

VERSION = "2.1.332"
LORE = Path(sys.executable).with_name("lore")
START = "SessionStart hook additional context: "
PROMPT = "UserPromptSubmit hook additional context: "
NODE = "project://deploy_checklist"
CONTENT = "Production deploys go through the blue cluster first and never on a Friday."
QUESTION = "How do we run a production deploy?"
UNRELATED = "What colour has the sky at noon?"
GET_NODE = "mcp__plugin_lore_lore__lore_get_node"
SETTINGS = b'{\n\t"model": "sonnet",\n\t"big": 12345678901234567890, "t": 1.10,\n\t"permissions": {"deny": []}\n}\n'


@pytest.fixture
def claude(npm_program: Callable[..., Path], new_machine: Callable[..., Any]) -> Callable[..., Any]:
    """`claude(name="user")`: a machine with Claude Code and settings of its user, not yet with us."""

    def make(name: str = "user") -> Any:
        machine = new_machine(
            npm_program("@anthropic-ai/claude-code", VERSION, "claude"),
            name,
            ANTHROPIC_BASE_URL="{url}",
            ANTHROPIC_API_KEY="dummy",
            DISABLE_TELEMETRY="1",
            DISABLE_ERROR_REPORTING="1",
            DISABLE_AUTOUPDATER="1",
            CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC="1",
        )
        (machine.user / ".claude").mkdir()
        (machine.user / ".claude" / "settings.json").write_bytes(SETTINGS)
        return machine

    return make


@pytest.fixture
def ready(claude: Callable[..., Any]) -> Any:
    """The same with our memory in it, and one memory to find."""
    machine = claude()
    machine.lore("install", "claudecode", "--allow-reads")
    remember(machine)
    return machine


def remember(machine: Any) -> None:
    machine.remember(
        NODE, CONTENT, disclosure="When a production deploy is planned", glossary="production deploy,deploy"
    )


def prompt(machine: Any, text: str, *words: str) -> str:
    return machine.run("claude", *words, "-p", text)


def call(name: str, arguments: dict[str, Any], when: str) -> dict[str, Any]:
    """A rule: asked this, the model calls a tool."""
    return {
        "when": {"last_contains": when, "has_tool_result": False},
        "reply": {"tool_calls": [{"name": name, "arguments": arguments}]},
    }


def recalled(request: dict[str, Any]) -> list[str]:
    """The recall lines of the last prompt's block."""
    block = request["text"].rpartition(PROMPT)[2].partition("</recall>")[0]
    return re.findall(r"^[01]\.\d\d \| .*$", block, re.MULTILINE)


def boots(request: dict[str, Any]) -> list[str]:
    """What each session start put in, oldest first."""
    return request["text"].split(START)[1:]


def test_the_first_request_holds_the_boot_block_and_the_memory_that_fits(ready):
    assert prompt(ready, QUESTION).strip() == "FAKE-OK"
    (request,) = ready.turns
    assert "core://agent" in boots(request)[0]
    (line,) = recalled(request)
    assert NODE in line
    assert CONTENT not in request["text"]
    assert GET_NODE in request["tools"]
    assert "mcp__plugin_lore_lore__lore_search" in request["tools"]


def test_a_prompt_that_fits_nothing_gets_no_block(ready):
    prompt(ready, UNRELATED)
    (request,) = ready.turns
    assert len(boots(request)) == 1
    assert PROMPT not in request["text"]


@pytest.mark.parametrize("passed", [True, False])
def test_a_node_is_opened_without_a_question_and_its_use_is_marked(ready, passed):
    """With the ids of the block passed by the model, and with the ids left out and filled in by the hook."""
    prompt(ready, QUESTION)
    ids = re.search(r'<recall session_id="([^"]+)" query_id="([^"]+)"', ready.turns[0]["text"])
    assert ids
    session, query = ids.groups()
    arguments = {"uri": NODE, **({"session_id": session, "query_id": query} if passed else {})}
    ready.script(call(GET_NODE, arguments, "open it"))
    prompt(ready, f"{QUESTION} open it", "--resume", session)
    assert CONTENT in ready.turns[-1]["text"]
    runs = ready.lore("replay", session)
    opened = json.dumps(runs)
    assert ("passed" if passed else "filled") in opened


def test_without_the_users_word_reading_asks_and_the_answer_is_no(claude):
    machine = claude()
    machine.lore("install", "claudecode")
    remember(machine)
    machine.script(call(GET_NODE, {"uri": NODE}, "open it"))
    prompt(machine, "open it")
    assert CONTENT not in machine.turns[-1]["text"]


def test_resuming_adds_the_boot_block_only_when_it_changed(ready):
    prompt(ready, UNRELATED)
    prompt(ready, UNRELATED, "--continue")
    assert len(boots(ready.turns[-1])) == 1
    ready.lore("node", "update", "preferences://user", "Answers in Esperanto.")
    prompt(ready, UNRELATED, "--continue")
    assert len(boots(ready.turns[-1])) == 2
    assert "Esperanto" in boots(ready.turns[-1])[1]


def test_two_turns_carry_the_same_boot_bytes_although_memory_changed_between(ready):
    prompt(ready, UNRELATED)
    ready.remember("project://other", "Something new.", disclosure="When asked for news")
    prompt(ready, UNRELATED, "--continue")
    first, second = (boots(request)[0].partition("\n\n# ")[0] for request in (ready.turns[0], ready.turns[-1]))
    assert first == second


@pytest.mark.parametrize("command", ["/clear", "/compact"])
def test_after_clear_and_compact_the_boot_block_is_there_again(ready, command):
    prompt(ready, UNRELATED)
    prompt(ready, command, "--continue")
    prompt(ready, QUESTION, "--continue")
    last = ready.turns[-1]
    assert len(boots(last)) == 1
    assert "core://agent" in boots(last)[0]
    assert any(NODE in line for line in recalled(last))


def test_a_subagent_gets_its_own_short_boot_block(ready):
    task = {"description": "look", "prompt": "LOOK-AROUND", "subagent_type": "general-purpose"}
    ready.script(call("Task", task, "send an agent"))
    prompt(ready, "send an agent")
    (subagent,) = (turn for turn in ready.turns if "LOOK-AROUND" in json.dumps(turn["body"]["messages"][0]))
    assert "SubagentStart hook additional context: " in subagent["text"]
    assert "lore_search" in subagent["text"].partition("SubagentStart hook additional context: ")[2]


def test_replay_prints_the_bytes_that_the_model_got(ready):
    prompt(ready, QUESTION)
    text = ready.turns[0]["text"]
    session = re.search(r'<recall session_id="([^"]+)"', text)
    assert session
    runs = [run for run in ready.lore("replay", session[1])["runs"] if run["sent"]]
    assert [run["event"] for run in runs] == ["session.start", "prompt.submit"]
    for run in runs:
        exact = ready.run(str(LORE), "replay", str(run["id"]), "--exact")
        assert exact == run["sent"]
        assert json.loads(exact)["hookSpecificOutput"]["additionalContext"] in text


@pytest.mark.parametrize("name", ["Ann Lee", "zoë 김"])
def test_a_home_with_a_space_or_chinese_letters_works_like_any_other(claude, name):
    machine = claude(name)
    machine.lore("install", "claudecode", "--allow-reads")
    remember(machine)
    machine.script(call(GET_NODE, {"uri": NODE}, "production deploy"))
    prompt(machine, QUESTION)
    assert len(boots(machine.turns[0])) == 1
    assert any(NODE in line for line in recalled(machine.turns[0]))
    assert CONTENT in machine.turns[-1]["text"]


def test_where_only_the_settings_file_can_be_edited_all_works_the_same(claude):
    machine = claude()
    with_program = machine.environment["PATH"]
    machine.environment["PATH"] = "/usr/bin:/bin"
    machine.lore("install", "claudecode", "--allow-reads")
    machine.environment["PATH"] = with_program
    remember(machine)
    machine.script(call(GET_NODE, {"uri": NODE}, "production deploy"))
    prompt(machine, QUESTION)
    assert any(NODE in line for line in recalled(machine.turns[0]))
    assert CONTENT in machine.turns[-1]["text"]


def test_uninstall_gives_the_settings_their_bytes_back_and_lists_what_the_program_wrote(claude):
    machine = claude()
    machine.run("claude", "-p", UNRELATED)
    before = machine.files(machine.user / ".claude")
    machine.lore("install", "claudecode", "--allow-reads")
    installed = (machine.user / ".claude" / "settings.json").read_bytes()
    assert installed.startswith(SETTINGS.partition(b'"permissions"')[0])
    assert machine.lore("install", "claudecode")["outcomes"][0]["status"] == "unchanged"
    assert (machine.user / ".claude" / "settings.json").read_bytes() == installed
    (outcome,) = machine.lore("uninstall", "claudecode")["outcomes"]
    assert outcome["stays"] == []
    after = machine.files(machine.user / ".claude")
    assert after["settings.json"] == SETTINGS
    mine = {name for name in after.keys() | before.keys() if after.get(name) != before.get(name)}
    assert not [name for name in mine if not name.startswith("backups/")]
    assert prompt(machine, QUESTION).strip() == "FAKE-OK"
    assert START not in machine.turns[-1]["text"]
    assert not machine.home.socket.exists()


@pytest.mark.parametrize(
    "damage", ["package gone", "home gone", "home moved", "home read-only", "home of another user"]
)
def test_what_happens_to_our_files_never_shows_in_a_session(ready, damage):
    ready.lore("service", "stop")
    match damage:
        case "package gone":
            script = ready.home.bin / "service"
            script.write_text(script.read_text().replace("lorehooks.hooks.service", "gone.service"))
        case "home gone":
            shutil.rmtree(ready.home.root)
        case "home moved":
            ready.home.root.rename(ready.user / "moved")
        case "home read-only":
            for path in (ready.home.root, *ready.home.root.rglob("*")):
                if not path.is_symlink():
                    path.chmod(path.stat().st_mode & ~0o222)
        case "home of another user":
            if os.geteuid():
                pytest.skip("only root gives files away")
            for path in (ready.home.root, *ready.home.root.rglob("*")):
                os.chown(path, 12345, 12345, follow_symlinks=False)
    events = ready.run("claude", "-p", QUESTION, "--output-format", "stream-json", "--verbose", "--include-hook-events")
    hooks = [event for event in map(json.loads, events.splitlines()) if event.get("subtype") == "hook_response"]
    # With its folder the plugin is gone too, and then there is nothing to run.
    events_run = set() if damage in ("home gone", "home moved") else {"SessionStart", "UserPromptSubmit"}
    assert {hook["hook_event"] for hook in hooks} == events_run
    assert all((hook["exit_code"], hook["outcome"], hook["stderr"]) == (0, "success", "") for hook in hooks)
    assert json.loads(events.splitlines()[-1])["result"] == "FAKE-OK"
    assert ready.said[-1] == ""
    assert ready.turns
