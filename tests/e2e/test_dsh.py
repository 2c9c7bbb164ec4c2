"""The real dsh with our plugin, of both of its lines: what its requests hold, and what it does when we are in trouble."""

from __future__ import annotations

import json
import os
import re
import signal
import statistics
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

PACKAGE = "deepseek-harness-runtime-bin"
VERSIONS = ("0.1.5rc1", "0.2.1rc2")
NODE = "project://deploy_checklist"
CONTENT = "Production deploys go through the blue cluster first and never on a Friday."
QUESTION = "How do we run a production deploy?"
UNRELATED = "What colour has the sky at noon?"
GET_NODE = "lore_get_node"
LIMITS_MS = (400, 700)
SETTINGS = """\
# mine
- id: llm-pi-ai
  config:
    providers:
      fake:
        displayName: Fake
        apiKeyEnv: FAKE_KEY
        api: openai-completions
        baseURL: {url}/v1
        models:
          - id: fake-model
            contextWindow: 100000
            maxTokens: 4096
- id: agent-default-model
  config:
    provider: fake
    model: fake-model
"""
WITHOUT_TITLES = "- id: session-title-llm\n  disabled: true\n"
"""A package that it needs is missing in the older wheel."""


@pytest.fixture(params=VERSIONS)
def dsh(
    request: pytest.FixtureRequest, wheel_program: Callable[..., Path], new_machine: Callable[..., Any], tmp_path: Path
) -> Any:
    """A machine with dsh and its user's settings, not yet with us."""
    home = tmp_path / "zoë 김"
    machine = new_machine(
        wheel_program(PACKAGE, request.param, "dsh"),
        DSH_HOME=str(home),
        FAKE_KEY="dummy",
        DSH_TELEMETRY_DISABLED="1",
        DSH_PERMISSION_MODE="danger-full-access",
    )
    home.mkdir()
    old = request.param.startswith("0.1.")
    patches(machine).write_text(SETTINGS.replace("{url}", machine.model.url) + (WITHOUT_TITLES if old else ""))
    return machine


@pytest.fixture
def ready(dsh: Any) -> Any:
    """The same with our memory in it, and one memory to find."""
    dsh.lore("install", "dsh")
    dsh.remember(NODE, CONTENT, disclosure="When a production deploy is planned", glossary="production deploy,deploy")
    return dsh


def home_of(machine: Any) -> Path:
    return Path(machine.environment["DSH_HOME"])


def patches(machine: Any) -> Path:
    return home_of(machine) / "cordis.patch.yml"


def ask(machine: Any, text: str, *words: str, **options: Any) -> str:
    return machine.run("dsh", "--profile", "headless", *words, text, **options)


def call(name: str, arguments: dict[str, Any], when: str, **more: Any) -> dict[str, Any]:
    """A rule: asked this, the model calls a tool."""
    return {
        "when": {"last_contains": when, "has_tool_result": False, "has_tool": name},
        "reply": {"tool_calls": [{"name": name, "arguments": arguments}]},
        **more,
    }


def said(request: dict[str, Any], role: str) -> list[str]:
    """The texts of the messages of a role, in their order."""
    found = [each["content"] for each in request["body"]["messages"] if each["role"] == role]
    return [each if isinstance(each, str) else "".join(part["text"] for part in each) for each in found]


def system(request: dict[str, Any]) -> str:
    """The one system message."""
    (text,) = said(request, "system")
    return text


def is_old(machine: Any) -> bool:
    return "0.1." in machine.run("dsh", "--version")


def opened(machine: Any, session: str) -> str:
    return json.dumps(machine.lore("replay", session))


def test_one_turn_of_several_steps(ready):
    """Boot, recall and use; the boot block stays the same to the byte after a write of the model's own in between."""
    ready.lore("node", "update", "preferences://user", "Write {{name}} and {{{raw}}} as they are.")
    new = {"uri": "project://news", "content": "Something new.", "disclosure": "When asked for news"}
    write = {"name": "lore_create_node", "arguments": {**new, "priority": 2, "glossary": ["news"]}}
    ready.script(
        call(GET_NODE, {"uri": NODE}, "production deploy"),
        {"when": {"has_tool": GET_NODE}, "reply": {"tool_calls": [write]}},
    )
    assert ask(ready, QUESTION).strip() == "FAKE-OK"
    first, second, third = ready.turns
    assert system(first).rstrip().endswith("When a production deploy is planned")
    assert "Write { {name}} and { { {raw}}} as they are." in system(first)
    assert said(first, "user")[0] == QUESTION
    ids = re.fullmatch(
        r'<recall session_id="(session-[\w-]+)" query_id="([^"]+)">\n(.*)\n</recall>', said(first, "user")[-1]
    )
    assert ids
    assert NODE in ids[3]
    assert CONTENT not in first["text"]
    tool = next(each for each in first["body"]["tools"] if each["function"]["name"] == GET_NODE)
    assert tool["function"]["parameters"]["required"] == ["uri"]
    assert CONTENT in said(second, "tool")[0]
    assert "filled" in opened(ready, ids[1])
    assert "project://news" in said(third, "tool")[-1]
    assert system(first) == system(second) == system(third)
    assert sum("<recall " in each for each in said(third, "user")) == 1


def test_sessions_that_are_taken_up_again(ready):
    """The boot block stays as it was after a write in between and with a new service; a compaction lets the news in."""
    if is_old(ready):
        pytest.skip("dsh 0.1.5 takes up no session on its command line")
    quick = "- id: compaction-basic\n  config:\n    thresholdRatio: 0.05\n    retainRatio: 0.01\n"
    patches(ready).write_text(quick + patches(ready).read_text())
    ask(ready, QUESTION)
    (first,) = ready.turns
    block = said(first, "user")[-1]
    query = re.search(r'query_id="([^"]+)"', block)
    (session,) = (path.name for path in home_of(ready).glob("sessions/*/session-*"))
    assert query

    ready.remember("project://news", "Something new.", disclosure="When asked for news")
    pid = ready.lore("service", "status")["pid"]
    os.kill(pid, signal.SIGKILL)
    ready.script(call(GET_NODE, {"uri": NODE, "session_id": session, "query_id": query[1]}, "sky"))
    assert ask(ready, UNRELATED, "--session-id", session).strip() == "FAKE-OK"
    again = ready.turns
    assert {system(request) for request in again} == {system(first)}
    assert said(again[0], "user")[-1] == UNRELATED
    assert said(again[0], "user").count(block) == 1
    assert "passed" in opened(ready, session)
    new = ready.lore("service", "status")["pid"]
    assert new != pid
    assert os.getsid(new) == new  # it outlives the program that started it

    ready.script()
    for _ in range(2):  # the first makes the session long, at the start of the second it is compacted
        ask(ready, UNRELATED + " word" * 8000, "--session-id", session)
    assert any("compaction engine" in request["text"] for request in ready.model.requests)
    ready.script()
    ask(ready, QUESTION, "--session-id", session)
    after = ready.turns[-1]
    assert "project://news" in system(after)
    assert NODE in said(after, "user")[-1]


def test_sub_agents_get_the_short_block_and_no_recall(ready):
    task = {"description": "look", "prompt": QUESTION, **({"run_in_background": False} if is_old(ready) else {})}
    slow = {"when": {"text_contains": "the parent waits"}, "reply": {"text": "FAKE-OK", "delay_ms": 3000}}
    ready.script(call("subagent", task, "the parent waits"), slow)
    ask(ready, "Delegate this; the parent waits.")
    (child,) = (request for request in ready.turns if "the parent waits" not in request["text"])
    assert all("<recall " not in each for each in said(child, "user"))
    assert "core://agent" not in system(child)
    assert "lore_search" in system(child)


@pytest.mark.soak
def test_handlers_take_little_time(ready):
    """All but the first step, in which dsh itself keeps its event loop busy and which is waited for in any case."""
    ready.script({**call(GET_NODE, {"uri": NODE}, ""), "when": {"has_tool": GET_NODE}, "times": 30})
    ask(ready, QUESTION)
    measured = ready.handler_ms("assemble", "pre-step")
    assert len(ready.turns) == 31
    assert len(measured) == 62
    assert statistics.quantiles(measured, n=20)[-1] < 30


def test_what_is_thrown_in_our_code_stays_there(ready):
    """In a listener it would end the user's turn."""
    plugin = home_of(ready) / "lorehooks.mjs"
    source = plugin.read_text()
    broken = source.replace("const facts = factsOf(agent)", 'throw new Error("boom")')
    broken = broken.replace("if (!agent) return down", 'throw new Error("boom")')
    broken = broken.replace("if (!source) return", 'throw new Error("boom")')
    assert broken.count("boom") == 3
    plugin.write_text(broken)
    assert ask(ready, QUESTION).strip() == "FAKE-OK"
    assert "boom" not in ready.said[-1]
    (request,) = ready.turns
    assert "core://agent" not in request["text"]
    plugin.write_text(source.replace("if (!lore.isHere()) return", 'throw new Error("boom")'))
    assert ask(ready, QUESTION).strip() == "FAKE-OK"
    assert "boom" not in ready.said[-1]


def test_trouble(ready, trouble):
    """The turn completes within our limits, and nothing of the trouble shows."""
    ready.limit(*LIMITS_MS)
    kind = trouble(ready)
    assert ask(ready, QUESTION).strip() == "FAKE-OK"
    assert ready.said[-1] == ""
    (request,) = ready.turns
    assert "<recall " not in request["text"]
    assert max(ready.handler_ms("pre-step"), default=0) < sum(LIMITS_MS) + 1500
    if kind == "home":
        assert not ready.home.root.exists()
        assert "core://agent" not in system(request)
    else:
        assert ready.misses() <= {"timeout", "start_failed"}
        assert ready.misses()
        assert "core://agent" in system(request)  # the block that the service left ready


def test_uninstalling_leaves_no_trace_and_a_dsh_that_runs(dsh):
    ask(dsh, UNRELATED)
    before = dsh.files(home_of(dsh))
    dsh.lore("install", "dsh")
    found = dsh.lore("doctor")
    dsh.lore("uninstall", "dsh")
    assert not [each for each in found["findings"] if each["area"] == "dsh" and each["severity"] == "problem"]
    assert dsh.files(home_of(dsh)) == before
    dsh.script()
    ask(dsh, QUESTION)
    (request,) = dsh.turns
    assert "lore" not in request["text"]
    assert GET_NODE not in request["tools"]
