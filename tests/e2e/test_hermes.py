"""The real Hermes with our provider, and with our hooks beside another one: what its requests hold, and its traps."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import re
import signal
import statistics
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

PACKAGE, VERSION = "hermes-agent", "0.19.0"
NODE = "project://deploy_checklist"
CONTENT = "Production deploys go through the blue cluster first and never on a Friday."
QUESTION = "How do we run a production deploy?"
UNRELATED = "What colour has the sky at noon?"
GET_NODE = "lore_get_node"
LIMITS_MS = (400, 700)
PATIENCE = 90
TURNS_TIMED = 20
SETTINGS = """\
# my Hermes
model:
  default: fake-model   # it costs nothing
  provider: custom
  base_url: "{url}/v1"
  api_key: not-a-secret
  context_length: 200000
agent: {{max_turns: 40}}
security: {{tirith_enabled: false}}
approvals: {{destructive_slash_confirm: false}}
"""
OTHER = """
from agent.memory_provider import MemoryProvider

class Other(MemoryProvider):
    name = "other"
    def is_available(self): return True
    def initialize(self, session_id, **kwargs): pass
    def get_tool_schemas(self): return []
    def prefetch(self, query, *, session_id=""): return "OTHER-RECALL"

def register(ctx): ctx.register_memory_provider(Other())
"""


@pytest.fixture
def hermes(python_program: Callable[..., Path], new_machine: Callable[..., Any]) -> Callable[..., Any]:
    """`hermes(settings="", **environment)`: a machine with Hermes and its user's settings, not yet with us."""
    binaries = python_program(PACKAGE, VERSION, "hermes")

    def make(settings: str = "", **environment: str) -> Any:
        machine = new_machine(binaries, **environment)
        home = machine.user / ".hermes"
        home.mkdir()
        (home / "config.yaml").write_text(SETTINGS.format(url=machine.model.url) + settings)
        return machine

    return make


@pytest.fixture
def ready(hermes: Callable[..., Any]) -> Any:
    """The same with our memory in it, and one memory to find."""
    machine = hermes()
    machine.lore("install", "hermes")
    remember(machine)
    return machine


def remember(machine: Any) -> None:
    machine.remember(
        NODE, CONTENT, disclosure="When a production deploy is planned", glossary="production deploy,deploy"
    )


def ask(machine: Any, text: str, *words: str, tools: str = "memory") -> str:
    """One turn of a process of its own; answers the session's id. `-t` keeps other tools, and seconds, away."""
    printed = machine.run("hermes", "chat", "-Q", "-t", tools, *words, "-q", text)
    assert "FAKE-OK" in printed
    found = re.search(r"session_id: (\S+)", printed + machine.said[-1])
    assert found
    return found[1]


def call(name: str, arguments: dict[str, Any], when: str) -> dict[str, Any]:
    """A rule: asked this, the model calls a tool."""
    return {
        "when": {"last_contains": when, "has_tool_result": False, "has_tool": name},
        "reply": {"tool_calls": [{"name": name, "arguments": arguments}]},
    }


def said(request: dict[str, Any], role: str) -> list[str]:
    return [each["content"] for each in request["body"]["messages"] if each["role"] == role]


def system(request: dict[str, Any]) -> str:
    (text,) = said(request, "system")
    return text


def opened(machine: Any, session: str) -> str:
    return json.dumps(machine.lore("replay", session))


def test_two_turns(ready):
    """Boot, recall and use; a resume after a write in between, with the ids passed; and the way out."""
    settings = ready.user / ".hermes" / "config.yaml"
    installed = settings.read_bytes()
    ready.script(call(GET_NODE, {"uri": NODE}, QUESTION))
    session = ask(ready, QUESTION)
    first, second = ready.turns
    assert "core://agent" in system(first)
    assert CONTENT not in first["text"]
    (prompt,) = said(first, "user")
    recall = re.search(r'<recall session_id="([^"]+)" query_id="([^"]+)">\n(.*)\n</recall>', prompt)
    assert recall
    assert prompt.startswith(QUESTION)
    assert prompt.endswith(f"{recall[0]}\n</memory-context>")
    assert recall[1] == session
    assert NODE in recall[3]
    tool = next(each["function"] for each in first["body"]["tools"] if each["function"]["name"] == GET_NODE)
    assert tool["parameters"]["required"] == ["uri"]
    (result,) = said(second, "tool")
    assert CONTENT in json.loads(result)["result"]
    assert "filled" in opened(ready, session)

    ready.remember("project://other", "Something new.", disclosure="When asked for news")
    ready.script(call(GET_NODE, {"uri": NODE, "session_id": session, "query_id": recall[2]}, UNRELATED))
    assert ask(ready, UNRELATED, "--resume", session) == session
    again = ready.turns
    assert {system(request) for request in again} == {system(first)}
    assert said(again[0], "user") == [prompt, UNRELATED]
    assert "passed" in opened(ready, session)
    assert ready.misses() == set()

    assert settings.read_bytes() == installed
    ready.lore("uninstall", "hermes")
    assert settings.read_text() == SETTINGS.format(url=ready.model.url)
    assert not (ready.user / ".hermes" / "plugins").exists()
    assert ready.lore("service", "status")["running"] is False


def test_what_hermes_says_of_us(ready):
    """Through its own commands; and why a long header must not stand in our file."""
    status = ready.run("hermes", "memory", "status")
    assert re.search(r"Provider:\s+lorehooks\b", status)
    assert re.search(r"Status:\s+available", status)
    main = ready.user / ".hermes" / "plugins" / "lorehooks" / "__init__.py"
    main.write_text(f"# {'licence ' * 1100}\n{main.read_text()}")
    assert "NOT installed" in ready.run("hermes", "memory", "status")


def test_beside_another_provider(hermes):
    machine = hermes("memory: {provider: other} # mine\n")
    other = machine.user / ".hermes" / "plugins" / "other"
    other.mkdir(parents=True)
    (other / "__init__.py").write_text(OTHER)
    before = (machine.user / ".hermes" / "config.yaml").read_bytes()
    machine.lore("install", "hermes")
    remember(machine)
    machine.script(call(GET_NODE, {"uri": NODE}, QUESTION))
    session = ask(machine, QUESTION, tools="lore")
    first, second = machine.turns
    assert "core://agent" not in system(first)
    (prompt,) = said(first, "user")
    assert prompt.index(QUESTION) < prompt.index("OTHER-RECALL") < prompt.index("core://agent") < prompt.index(NODE)
    assert CONTENT in json.loads(said(second, "tool")[0])["result"]
    assert "filled" in opened(machine, session)

    machine.script()
    ask(machine, UNRELATED, "--resume", session, tools="lore")
    (again,) = machine.turns
    users = said(again, "user")
    assert users[0] == prompt
    assert users[1].startswith(UNRELATED)
    assert "core://agent" not in users[1]
    assert NODE not in users[1]

    machine.lore("uninstall", "hermes")
    assert (machine.user / ".hermes" / "config.yaml").read_bytes() == before
    assert [path.name for path in other.parent.iterdir()] == ["other"]


# --- sessions of one long-lived process, as people have them


class Talk:
    """`hermes chat` on a terminal of its own."""

    def __init__(self, machine: Any) -> None:
        self.machine = machine
        self.screen = b""
        self._fd, inside = pty.openpty()
        self.process = subprocess.Popen(
            ["hermes", "chat", "-t", "memory"],
            cwd=machine.project,
            env={**machine.environment, "COLUMNS": "120", "LINES": "50"},
            stdin=inside,
            stdout=inside,
            stderr=inside,
            start_new_session=True,
        )
        os.close(inside)
        threading.Thread(target=self._read, daemon=True).start()
        self._wait(lambda: "❯".encode() in self.screen)

    def _read(self) -> None:
        with contextlib.suppress(OSError):
            while part := os.read(self._fd, 65536):
                self.screen += part
                if b"\x1b[6n" in part:  # where is the cursor?
                    os.write(self._fd, b"\x1b[1;1R")

    def _wait(self, condition: Callable[[], object]) -> None:
        end = time.monotonic() + PATIENCE
        while not condition():
            assert self.process.poll() is None, self.screen.decode(errors="replace")[-2000:]
            assert time.monotonic() < end, self.screen.decode(errors="replace")[-2000:]
            time.sleep(0.02)

    def count(self, *handlers: str) -> int:
        return len(self.machine.handler_ms(*handlers))

    def type(self, line: str) -> None:
        seen = len(self.screen)
        os.write(self._fd, line.encode())
        self._wait(lambda: line[-8:].encode() in self.screen[seen:])
        os.write(self._fd, b"\r")

    def ask(self, text: str) -> dict[str, Any]:
        """One turn, to its very end; answers its request."""
        turns, ended = len(self.machine.turns), self.count("sync_turn")
        self.type(text)
        self._wait(lambda: len(self.machine.turns) > turns)
        self._wait(lambda: self.count("sync_turn") > ended)
        return self.machine.turns[-1]

    def new(self) -> None:
        """A new session in the same process."""
        switched = self.count("on_session_switch")
        self.type("/new")
        self._wait(lambda: self.count("on_session_switch") > switched)

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self._fd)


@pytest.fixture
def talk(ready: Any) -> Iterator[Talk]:
    talk = Talk(ready)
    yield talk
    talk.close()


def test_one_process(talk):
    """The same bytes after a write, a new session, a service that is stopped (the 8 s join) and one that is killed."""
    machine = talk.machine
    first = talk.ask(QUESTION)
    machine.remember("project://news", "Something new.", disclosure="When asked for news")
    second = talk.ask(UNRELATED)
    assert system(second) == system(first)
    assert said(second, "user")[-1] == UNRELATED
    assert said(second, "user")[0] == said(first, "user")[0]

    talk.new()
    third = talk.ask(QUESTION)
    assert "project://news" in system(third)
    sessions = [re.findall(r'<recall session_id="([^"]+)"', each["text"])[-1] for each in (first, third)]
    assert len(set(sessions)) == 2

    machine.lore("config", "set", "hooks.prompt_timeout_ms", "8000")  # more than Hermes would wait
    machine.lore("service", "restart")
    pid = machine.lore("service", "status")["pid"]
    os.kill(pid, signal.SIGSTOP)
    try:
        stuck = talk.ask(QUESTION)
    finally:
        os.kill(pid, signal.SIGCONT)
    assert said(stuck, "user")[-1] == QUESTION
    assert "timeout" in machine.misses()
    assert NODE in said(talk.ask(f"{QUESTION} Once more."), "user")[-1]  # Hermes did not give us up

    os.kill(pid, signal.SIGKILL)
    assert NODE in said(talk.ask(f"{QUESTION} And again."), "user")[-1]
    new = machine.lore("service", "status")["pid"]
    assert new != pid
    assert os.getsid(new) != os.getsid(talk.process.pid)  # it outlives the program that started it


@pytest.mark.soak
def test_handlers_take_little_time(talk):
    for number in range(TURNS_TIMED):
        talk.ask(f"{QUESTION} Step {number}")
    measured = talk.machine.handler_ms("prefetch")
    assert len(measured) == TURNS_TIMED
    assert statistics.quantiles(measured, n=20)[-1] < 30


# --- trouble


def test_trouble(ready, trouble):
    """The turn completes within our limits, and nothing of the trouble shows."""
    ready.limit(*LIMITS_MS)
    kind = trouble(ready)
    ask(ready, QUESTION)
    (request,) = ready.turns
    assert said(request, "user") == [QUESTION]
    assert max(ready.handler_ms("prefetch", "system_prompt_block", "initialize"), default=0) < sum(LIMITS_MS) + 1500
    if kind == "home":
        assert not ready.home.root.exists()
        assert "core://agent" not in system(request)
        assert GET_NODE not in request["tools"]
    else:
        assert ready.misses() <= {"timeout", "start_failed", "breaker"}
        assert ready.misses()
        assert "core://agent" in system(request)  # the block that the service left ready
