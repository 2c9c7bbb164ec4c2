"""The real OpenClaw with our plugin: what its requests hold, a session begun anew, and what it does when we are in trouble.

A turn takes 6 to 40 seconds, so there are few; the others are `make soak`.
"""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

NODE_JS = "24.19.0"
VERSION = "2026.9.6"
NODE = "project://deploy_checklist"
CONTENT = "Production deploys go through the blue cluster first and never on a Friday."
QUESTION = "How do we run a production deploy?"
UNRELATED = "What colour has the sky at noon?"
GET_NODE = "lore_get_node"
LIMITS_MS = (400, 700)
SECONDS = 120
SETTINGS = """\
{
  // mine
  agents: { defaults: { workspace: "{project}", model: { primary: "fake/fake-model" } } },
  models: {
    mode: "merge",
    providers: {
      fake: {
        baseUrl: "{url}/v1",
        apiKey: "dummy",
        api: "openai-completions",
        models: [
          { id: "fake-model", name: "Fake", contextWindow: 200000, maxTokens: 4096, input: ["text"], reasoning: false },
        ],
      },
    },
  },
  plugins: { allow: ["memory-core"], slots: { memory: "none" } }, // little, so that it starts sooner
}
"""


@pytest.fixture
def openclaw(npm_program: Callable[..., Path], new_machine: Callable[..., Any]) -> Any:
    """A machine with OpenClaw and its user's settings, not yet with us."""
    node = npm_program("node", NODE_JS, "node")
    binaries = npm_program("openclaw", VERSION, "openclaw", "--ignore-scripts")
    machine = new_machine(f"{binaries}:{node}")
    folder = machine.user / ".openclaw"
    folder.mkdir()
    config(machine).write_text(settings(machine))
    return machine


def settings(machine: Any) -> str:
    return SETTINGS.replace("{project}", str(machine.project)).replace("{url}", machine.model.url)


def config(machine: Any) -> Path:
    return machine.user / ".openclaw" / "openclaw.json"


@pytest.fixture
def ready(openclaw: Any) -> Any:
    """The same with our memory in it, and one memory to find."""
    openclaw.lore("install", "openclaw")
    openclaw.remember(
        NODE, CONTENT, disclosure="When a production deploy is planned", glossary="production deploy,deploy"
    )
    return openclaw


def ask(machine: Any, text: str, *words: str) -> str:
    """One turn, in a process of its own."""
    return machine.run("openclaw", "agent", "--local", "--agent", "main", "--message", text, *words)


def call(name: str, arguments: dict[str, Any], when: str) -> dict[str, Any]:
    """A rule: asked this, the model calls a tool."""
    return {
        "when": {"last_contains": when, "has_tool_result": False, "has_tool": name},
        "reply": {"tool_calls": [{"name": name, "arguments": arguments}]},
    }


def said(request: dict[str, Any], role: str) -> list[str]:
    """The texts of the messages of a role, in their order, without what OpenClaw itself puts behind a prompt."""
    found = [each["content"] for each in request["body"]["messages"] if each["role"] == role]
    texts = [each if isinstance(each, str) else "".join(part["text"] for part in each) for each in found]
    return [text for text in texts if not text.startswith("<<<BEGIN_OPENCLAW_INTERNAL_CONTEXT")]


def boot(request: dict[str, Any]) -> str:
    """What the one system message has from us."""
    (text,) = said(request, "system")
    return text.partition("plugin-injected system context")[2]


def opened(machine: Any, session: str) -> str:
    return json.dumps(machine.lore("replay", session))


class Gateway:
    """A running `openclaw gateway`."""

    def __init__(self, machine: Any) -> None:
        self.machine = machine

    def ask(self, text: str) -> list[dict[str, Any]]:
        """One turn; answers the requests of the conversation."""
        before = len(self.machine.turns)
        self.machine.run("openclaw", "agent", "--agent", "main", "--message", text)
        return self.machine.turns[before:]


@pytest.fixture
def gateway(ready: Any) -> Iterator[Gateway]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    own = f'gateway: {{ mode: "local", port: {port}, bind: "loopback", auth: {{ mode: "token", token: "fake" }} }},'
    config(ready).write_text(config(ready).read_text().replace("models:", f"{own}\n  models:", 1))
    log = ready.user / "gateway.log"
    environment = {**ready.environment, "OPENCLAW_SKIP_CHANNELS": "1", "NO_COLOR": "1"}
    with log.open("wb") as file:
        process = subprocess.Popen(
            ["openclaw", "gateway", "run"],
            cwd=ready.project,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        end = time.monotonic() + 2 * SECONDS
        while "[gateway] ready" not in log.read_text():
            assert process.poll() is None, log.read_text()
            assert time.monotonic() < end, log.read_text()
            time.sleep(0.1)
        yield Gateway(ready)
    finally:
        os.killpg(process.pid, signal.SIGKILL)  # asked to end, it would wait minutes for its work
        process.wait()


def test_a_conversation_and_a_new_one_of_the_same_id(gateway):
    """Boot, recall and use; the same boot bytes after a write in between and with a new service; `/new` lets the news in."""
    machine = gateway.machine
    machine.script(call(GET_NODE, {"uri": NODE}, "production deploy"))
    first, second = gateway.ask(QUESTION)
    ids = re.fullmatch(
        r'\[[^\]]+\] <recall session_id="([^"]+)" query_id="([^"]+)">\n(.*)\n</recall>\n\n(.*)',
        said(first, "user")[0].partition("\n\nRuntime:")[0],
    )
    assert ids
    assert NODE in ids[3]
    assert ids[4] == QUESTION
    session, query = ids[1], ids[2]
    assert "core://agent" in boot(first)
    assert CONTENT not in first["text"]
    tool = next(each for each in first["body"]["tools"] if each["function"]["name"] == GET_NODE)
    assert tool["function"]["parameters"]["required"] == ["uri"]
    assert CONTENT in said(second, "tool")[0]
    assert "filled" in opened(machine, session)

    machine.remember("project://news", "Something new.", disclosure="When asked for news")
    pid = machine.lore("service", "status")["pid"]
    os.kill(pid, signal.SIGKILL)
    machine.script(call(GET_NODE, {"uri": NODE, "session_id": session, "query_id": query}, "sky"))
    again = gateway.ask(UNRELATED)
    assert len(again) == 2
    assert {boot(request) for request in again} == {boot(first)}
    assert "<recall " not in "".join(said(again[0], "user"))  # OpenClaw keeps none in its history
    assert "passed" in opened(machine, session)
    new = machine.lore("service", "status")["pid"]
    assert new != pid
    assert os.getsid(new) == new  # it outlives the program that started it

    machine.script()
    assert gateway.ask("/new") == []
    (fresh,) = gateway.ask(QUESTION)
    assert f'session_id="{session}"' in said(fresh, "user")[0]
    assert len(said(fresh, "user")) == 1
    assert "project://news" in boot(fresh)


def test_a_stopped_service_and_uninstalling(ready):
    """Two turns of a process each, as scripts have them: one in trouble, and one without us."""
    assert "// mine" in config(ready).read_text()
    found = ready.lore("doctor", code=None)
    assert not [each for each in found["findings"] if each["area"] == "openclaw" and each["severity"] == "problem"]
    ready.limit(*LIMITS_MS)
    pid = ready.lore("service", "status")["pid"]
    os.kill(pid, signal.SIGSTOP)
    try:
        assert "FAKE-OK" in ask(ready, QUESTION)
    finally:
        os.kill(pid, signal.SIGCONT)
    assert "before_prompt_build" not in ready.said[-1]
    (request,) = ready.turns
    assert "<recall " not in request["text"]
    assert "core://agent" in boot(request)  # the block that the service left ready
    assert max(ready.handler_ms("before_prompt_build")) < sum(LIMITS_MS) + 1500
    assert ready.misses() == {"timeout"}

    ready.lore("uninstall", "openclaw")
    assert not (ready.user / ".openclaw" / "extensions").exists()
    left = re.sub(r'\n  "meta": \{.*?\n  \},', "", config(ready).read_text(), flags=re.DOTALL)
    assert left == settings(ready)
    ready.script()
    ask(ready, QUESTION)
    (request,) = ready.turns
    assert GET_NODE not in request["tools"]
    assert boot(request) == ""


# --- long runs


@pytest.mark.soak
def test_trouble(ready, trouble):
    """The turn completes within our limits, and nothing of the trouble shows."""
    ready.limit(*LIMITS_MS)
    kind = trouble(ready)
    assert "FAKE-OK" in ask(ready, QUESTION)
    assert "before_prompt_build" not in ready.said[-1]
    (request,) = ready.turns
    assert "<recall " not in request["text"]
    assert max(ready.handler_ms(), default=0) < sum(LIMITS_MS) + 1500
    if kind == "home":
        assert not ready.home.root.exists()
        assert boot(request) == ""
    else:
        assert ready.misses() <= {"timeout", "start_failed"}
        assert ready.misses()
        assert "core://agent" in boot(request)


@pytest.mark.soak
def test_without_the_right_to_see_conversations_tools_work_alone_and_doctor_says_so(ready):
    granted = re.compile(r'("allowConversationAccess"\s*:\s*)true')
    text, changed = granted.subn(r"\1false", config(ready).read_text())
    assert changed == 1
    config(ready).write_text(text)
    found = {each["code"]: each for each in ready.lore("doctor", code=None)["findings"]}
    assert found["not_granted"]["fix"] == "lore install openclaw"
    ask(ready, QUESTION)
    (request,) = ready.turns
    assert "<recall " not in request["text"]
    assert GET_NODE in request["tools"]
    ready.lore("install", "openclaw")
    ready.script()
    ask(ready, QUESTION)
    assert "<recall " in ready.turns[0]["text"]


@pytest.mark.soak
def test_a_sub_agent_and_a_compaction(gateway):
    machine = gateway.machine
    machine.script(call("tool_call", {"id": "sessions_spawn", "args": {"task": QUESTION}}, "delegate"))
    first, _, *_ = gateway.ask(f"Please delegate this. {'word ' * 300}")
    end = time.monotonic() + SECONDS
    while not (children := [each for each in machine.turns if "[Subagent Context]" in said(each, "user")[0]]):
        assert time.monotonic() < end
        time.sleep(0.1)
    assert "<recall " not in children[0]["text"]
    assert "core://agent" not in boot(children[0])
    assert "lore_search" in boot(children[0])

    machine.remember("project://news", "Something new.", disclosure="When asked for news")
    (again,) = gateway.ask(f"{UNRELATED} {'word ' * 300}")
    assert boot(again) == boot(first)
    machine.run("openclaw", "sessions", "compact", "agent:main:main")
    (after,) = gateway.ask(UNRELATED)
    assert "compacted into the following summary" in after["text"]
    assert "project://news" in boot(after)


@pytest.mark.soak
def test_handlers_take_little_time(gateway):
    slow = gateway.machine.slow_handlers_ms(lambda number: gateway.ask(f"{QUESTION} {number}"), "before_prompt_build")
    assert slow < 30
