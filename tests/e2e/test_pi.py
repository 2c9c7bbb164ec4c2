"""The real Pi with our extension, on both of its lines: what its requests hold, and what it does when we are in trouble."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

NODE_JS = "22.23.3"
"""For Pi 1.x, which needs a newer one than many systems have."""
PACKAGE = "@earendil-works/pi-coding-agent"
VERSIONS = ("0.74.2", "1.6.0")
NODE = "project://deploy_checklist"
CONTENT = "Production deploys go through the blue cluster first and never on a Friday."
QUESTION = "How do we run a production deploy?"
UNRELATED = "What colour has the sky at noon?"
GET_NODE = "lore_get_node"
LIMITS_MS = (400, 700)


@pytest.fixture(params=VERSIONS)
def pi(
    request: pytest.FixtureRequest, npm_program: Callable[..., Path], new_machine: Callable[..., Any]
) -> Callable[..., Any]:
    """`pi(name="user", **environment)`: a machine with Pi and its user's settings, not yet with us."""
    binaries = str(npm_program(PACKAGE, request.param, "pi"))
    if not request.param.startswith("0."):
        try:
            binaries = f"{npm_program('node', NODE_JS, 'node')}:{binaries}"
        except AssertionError as error:
            pytest.skip(f"Pi {request.param} needs Node {NODE_JS}, which cannot be fetched here: {error}")

    def make(name: str = "user", **environment: str) -> Any:
        machine = new_machine(binaries, name, PI_OFFLINE="1", **environment)
        folder = Path(environment.get("PI_CODING_AGENT_DIR", machine.user / ".pi" / "agent"))
        folder.mkdir(parents=True)
        provider = {
            "baseUrl": f"{machine.model.url}/v1",
            "api": "openai-completions",
            "apiKey": "dummy",
            "models": [{"id": "fake-model", "contextWindow": 100_000, "maxTokens": 4096}],
        }
        (folder / "models.json").write_text(json.dumps({"providers": {"fake": provider}}))
        compaction = {"enabled": True, "reserveTokens": 1000, "keepRecentTokens": 50}
        settings = {"defaultProvider": "fake", "defaultModel": "fake-model", "compaction": compaction}
        (folder / "settings.json").write_text(json.dumps(settings))
        return machine

    return make


@pytest.fixture
def ready(pi: Callable[..., Any]) -> Any:
    """The same with our memory in it, and one memory to find."""
    machine = pi()
    machine.lore("install", "pi")
    remember(machine)
    return machine


def remember(machine: Any) -> None:
    machine.remember(
        NODE, CONTENT, disclosure="When a production deploy is planned", glossary="production deploy,deploy"
    )


def ask(machine: Any, text: str, *words: str) -> str:
    return machine.run("pi", *words, "-p", text)


def call(name: str, arguments: dict[str, Any], when: str) -> dict[str, Any]:
    """A rule: asked this, the model calls a tool."""
    return {
        "when": {"text_contains": when, "has_tool_result": False, "has_tool": name},
        "reply": {"tool_calls": [{"name": name, "arguments": arguments}]},
    }


def said(request: dict[str, Any], *roles: str) -> list[str]:
    """The texts of the messages of these roles, in their order."""
    found = [each["content"] for each in request["body"]["messages"] if each["role"] in roles]
    return [each if isinstance(each, str) else "".join(part["text"] for part in each) for each in found]


def system(request: dict[str, Any]) -> str:
    """The one system message."""
    (text,) = said(request, "system", "developer")
    return text


def opened(machine: Any, session: str) -> str:
    return json.dumps(machine.lore("replay", session))


# --- sessions by `pi -p`


def test_two_turns(ready):
    """Boot, recall and use; then a resume after a write in between, with another prompt, and with the ids passed."""
    ready.script(call(GET_NODE, {"uri": NODE}, "production deploy"))
    assert ask(ready, QUESTION).strip() == "FAKE-OK"
    first, second = ready.turns
    assert said(first, "user")[0] == QUESTION
    ids = re.fullmatch(r'<recall session_id="([^"]+)" query_id="([^"]+)">\n(.*)\n</recall>', said(first, "user")[1])
    assert ids
    assert NODE in ids[3]
    session, query = ids[1], ids[2]
    assert "core://agent" in system(first)
    assert CONTENT not in first["text"]
    tool = next(each for each in first["body"]["tools"] if each["function"]["name"] == GET_NODE)
    assert tool["function"]["parameters"]["required"] == ["uri"]
    assert CONTENT in said(second, "tool")[0]
    assert "filled" in opened(ready, session)

    ready.remember("project://other", "Something new.", disclosure="When asked for news")
    ready.script(call(GET_NODE, {"uri": NODE, "session_id": session, "query_id": query}, "sky"))
    assert ask(ready, UNRELATED, "--continue").strip() == "FAKE-OK"
    again = ready.turns
    assert {system(request) for request in again} == {system(first)}
    assert said(again[0], "user")[-1] == UNRELATED
    assert said(again[0], "user")[1] == ids[0]
    assert "passed" in opened(ready, session)

    ready.script()
    ask(ready, UNRELATED, "--fork", session)
    (forked,) = ready.turns
    assert "project://other" in system(forked)  # a session of its own begins anew
    assert said(forked, "user")[1] == ids[0]


def test_moved_folder(pi, tmp_path):
    machine = pi(PI_CODING_AGENT_DIR=str(tmp_path / "zoë 김"))
    machine.lore("install", "pi")
    remember(machine)
    ask(machine, QUESTION)
    assert NODE in said(machine.turns[0], "user")[1]
    assert not (machine.user / ".pi").exists()
    machine.lore("uninstall", "pi")
    machine.script()
    ask(machine, QUESTION)
    assert said(machine.turns[0], "user") == [QUESTION]
    assert not list((tmp_path / "zoë 김").rglob("*lore*"))


# --- sessions of one long-lived process, as people and editors have them


class Talk:
    """`pi --mode rpc`: one JSON document a line, both ways."""

    def __init__(self, machine: Any, process: subprocess.Popen[str]) -> None:
        self.machine = machine
        self.process = process

    def send(self, **command: str) -> None:
        assert self.process.stdin
        self.process.stdin.write(json.dumps(command) + "\n")
        self.process.stdin.flush()

    def wait(self, **wanted: str) -> dict[str, Any]:
        """Read until a document has these values."""
        assert self.process.stdout
        for line in self.process.stdout:
            document = json.loads(line)
            if all(document.get(name) == value for name, value in wanted.items()):
                return document
        raise AssertionError(f"Pi ended without {wanted}")

    def ask(self, text: str) -> dict[str, Any]:
        """One turn; answers the request of its last model call."""
        self.send(type="prompt", message=text)
        self.wait(type="agent_end")
        return self.machine.turns[-1]


@pytest.fixture
def talk(ready: Any) -> Iterator[Talk]:
    process = subprocess.Popen(
        ["pi", "--mode", "rpc"],
        cwd=ready.project,
        env=ready.environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    with process:
        yield Talk(ready, process)
        process.kill()


def test_compaction_and_a_killed_service(talk):
    machine = talk.machine
    boot = system(talk.ask(f"{QUESTION} {'word ' * 300}"))
    talk.ask(f"{UNRELATED} {'word ' * 300}")
    machine.remember("project://news", "Something new.", disclosure="When asked for news")
    assert system(talk.ask(UNRELATED)) == boot

    pid = machine.lore("service", "status")["pid"]
    os.kill(pid, signal.SIGKILL)
    again = talk.ask(QUESTION)
    assert system(again) == boot
    assert NODE in said(again, "user")[-1]
    new = machine.lore("service", "status")["pid"]
    assert new != pid
    assert os.getsid(new) == new  # it outlives the program that started it

    talk.send(type="compact")
    assert talk.wait(type="response", command="compact")["success"]
    after = talk.ask(QUESTION)
    assert "project://news" in system(after)
    assert NODE in said(after, "user")[-1]
    assert sum("<recall " in each for each in said(after, "user")) <= 2


@pytest.mark.soak
def test_handlers_take_little_time(talk):
    """From entry to exit, with boot and recall: far below what a person could notice."""
    talk.ask(QUESTION)
    slow = talk.machine.slow_handlers_ms(lambda number: talk.ask(f"{QUESTION} {number}"), "before_agent_start")
    assert slow < 30


# --- trouble


def test_trouble(ready, trouble):
    """The turn completes within our limits, and nothing of the trouble shows."""
    ready.limit(*LIMITS_MS)
    kind = trouble(ready)
    assert ask(ready, QUESTION).strip() == "FAKE-OK"
    assert ready.said[-1] == ""
    (request,) = ready.turns
    assert said(request, "user") == [QUESTION]
    assert max(ready.handler_ms(), default=0) < sum(LIMITS_MS) + 1500
    if kind == "home":
        assert not ready.home.root.exists()
        assert "core://agent" not in system(request)
    else:
        assert ready.misses() <= {"timeout", "start_failed"}
        assert ready.misses()
        assert "core://agent" in system(request)  # the block that the service left ready
