"""The real OpenCode with our plugin: what its requests hold, how it starts offline, and what it does when we are in trouble."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

VERSION = "1.18.33"
NODE = "project://deploy_checklist"
CONTENT = "Production deploys go through the blue cluster first and never on a Friday."
QUESTION = "How do we run a production deploy?"
UNRELATED = "What colour has the sky at noon?"
GET_NODE = "lore_get_node"
LIMITS_MS = (400, 700)
"""Prompt and start limits for the tests of trouble: quick, and far below the time that OpenCode itself takes."""


@pytest.fixture
def opencode(npm_program: Callable[..., Path], new_machine: Callable[..., Any]) -> Callable[..., Any]:
    """`opencode(name="user", **environment)`: a machine with OpenCode and its user's settings, not yet with us."""

    def make(name: str = "user", **environment: str) -> Any:
        machine = new_machine(
            npm_program("opencode-ai", VERSION, "opencode"), name, OPENCODE_DISABLE_MODELS_FETCH="1", **environment
        )
        folder = machine.user / ".config" / "opencode"
        folder.mkdir(parents=True)
        model = {"name": "Fake", "limit": {"context": 100_000, "output": 4096}}
        provider = {
            "npm": "@ai-sdk/openai-compatible",
            "options": {"baseURL": f"{machine.model.url}/v1", "apiKey": "dummy"},
            "models": {"fake-model": model},
        }
        settings = {
            "model": "fake/fake-model",
            "small_model": "fake/fake-model",
            "autoupdate": False,
            "share": "disabled",
        }
        (folder / "opencode.json").write_text(json.dumps({**settings, "provider": {"fake": provider}}))
        return machine

    return make


@pytest.fixture
def ready(opencode: Callable[..., Any]) -> Any:
    """The same with our memory in it, and one memory to find."""
    machine = opencode()
    machine.lore("install", "opencode")
    remember(machine)
    return machine


def remember(machine: Any) -> None:
    machine.remember(
        NODE, CONTENT, disclosure="When a production deploy is planned", glossary="production deploy,deploy"
    )


def ask(machine: Any, text: str, *words: str) -> str:
    return machine.run("opencode", "run", *words, text)


def call(name: str, arguments: dict[str, Any], when: str) -> dict[str, Any]:
    """A rule: asked this, the model calls a tool."""
    return {
        "when": {"last_contains": when, "has_tool_result": False, "has_tool": name},
        "reply": {"tool_calls": [{"name": name, "arguments": arguments}]},
    }


def messages(request: dict[str, Any], role: str) -> list[Any]:
    return [each["content"] for each in request["body"]["messages"] if each["role"] == role]


def system(request: dict[str, Any]) -> str:
    """The one system message."""
    (text,) = messages(request, "system")
    return text


def parts(request: dict[str, Any]) -> list[str]:
    """The texts of the last message of the user, in their order."""
    content = messages(request, "user")[-1]
    return [content] if isinstance(content, str) else [part["text"] for part in content]


def opened(machine: Any, session: str) -> str:
    return json.dumps(machine.lore("replay", session))


# --- sessions by `opencode run`


def test_two_turns(ready):
    """Boot, recall and use; then a resume after a write in between, with another prompt, and with the ids passed."""
    ready.script(call(GET_NODE, {"uri": NODE}, "production deploy"))
    assert ask(ready, QUESTION).strip() == "FAKE-OK"
    titles = [request for request in ready.model.requests if not request["tools"]]
    first, second = ready.turns
    assert titles
    assert all("core://agent" not in request["text"] for request in titles)
    prompt, block = parts(first)
    assert QUESTION in prompt
    ids = re.fullmatch(r'<recall session_id="(ses_\w+)" query_id="([^"]+)" phase="prompt">\n(.*)\n</recall>', block)
    assert ids
    assert NODE in ids[3]
    session, query = ids[1], ids[2]
    assert "core://agent" in system(first)
    assert CONTENT not in first["text"]
    tool = next(each for each in first["body"]["tools"] if each["function"]["name"] == GET_NODE)
    assert tool["function"]["parameters"]["required"] == ["uri"]
    assert CONTENT in second["text"]
    assert "filled" in opened(ready, session)

    ready.remember("project://other", "Something new.", disclosure="When asked for news")
    ready.script(call(GET_NODE, {"uri": NODE, "session_id": session, "query_id": query}, "sky"))
    assert ask(ready, UNRELATED, "--continue").strip() == "FAKE-OK"
    again = ready.turns
    assert {system(request) for request in again} == {system(first)}
    assert UNRELATED in parts(again[0])[0]
    assert len(parts(again[0])) == 1
    assert block in again[0]["text"]
    assert "passed" in opened(ready, session)


def test_moved_folders(opencode, tmp_path):
    """`XDG_CONFIG_HOME` is followed, `OPENCODE_CONFIG_DIR` comes on top, and the plugin is loaded once."""
    moved, added = tmp_path / "moved", tmp_path / "added"
    added.mkdir()
    machine = opencode(XDG_CONFIG_HOME=str(moved), OPENCODE_CONFIG_DIR=str(added))
    machine.lore("install", "opencode")
    listed = machine.run("opencode", "debug", "info").partition("plugins:")[2].split()
    assert [each for each in listed if "lorehooks" in each] == [
        (moved / "opencode" / "plugins" / "lorehooks.js").as_uri()
    ]
    machine.lore("uninstall", "opencode")
    assert not list(moved.rglob("lorehooks.js"))
    assert not (added / ".npmrc").exists()


def test_offline_start(ready):
    """With the network gone OpenCode starts within a second of its start without the plugin."""
    alone = ["unshare", "-n", "--"]
    if subprocess.run([*alone, "true"], capture_output=True, check=False).returncode:
        pytest.skip("this user may not make a network namespace")
    plugin = ready.user / ".config" / "opencode" / "plugins" / "lorehooks.js"
    hidden = plugin.with_suffix(".hidden")

    def start() -> float:
        began = time.monotonic()
        listed = ready.run(*alone, "opencode", "debug", "info")
        assert ("lorehooks.js" in listed) is plugin.exists()
        return time.monotonic() - began

    start()  # sets up its database and caches
    with_it, without = [], []
    for _ in range(6):  # as often as a busy machine needs to show the difference
        with_it.append(start())
        plugin.rename(hidden)
        without.append(start())
        hidden.rename(plugin)
        # Without a plugin it ends before npm has, and leaves a lock that the next start would wait for.
        shutil.rmtree(ready.user / ".local" / "state" / "opencode" / "locks", ignore_errors=True)
        if min(with_it) < min(without) + 1:
            return
    pytest.fail(f"with the plugin {with_it} s, without {without} s")


# --- sessions of one long-lived process, as the terminal and desktop programs have them


class Served:
    """`opencode serve` and its API."""

    def __init__(self, machine: Any, client: httpx.Client) -> None:
        self.machine = machine
        self.client = client

    def post(self, path: str, body: dict[str, Any]) -> Any:
        answer = self.client.post(path, json=body)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def session(self) -> str:
        return self.post("/session", {})["id"]

    def ask(self, session: str, text: str) -> dict[str, Any]:
        """One turn; answers the request of its last model call in that session."""
        self.post(f"/session/{session}/message", {"parts": [{"type": "text", "text": text}]})
        return self.machine.turns[-1]


@pytest.fixture
def served(ready: Any) -> Iterator[Served]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    process = subprocess.Popen(
        ["opencode", "serve", "--hostname", "127.0.0.1", "--port", str(port)],
        cwd=ready.project,
        env=ready.environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    assert process.stdout
    reader = threading.Thread(target=process.stdout.read)
    try:
        for line in process.stdout:
            if "listening on" in line:
                break
        reader.start()
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=60, trust_env=False) as client:
            yield Served(ready, client)
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        reader.join()
        process.stdout.close()


def test_sub_agent_compaction_and_fork(served):
    machine, task = served.machine, {"description": "look", "prompt": QUESTION, "subagent_type": "general"}
    machine.script(call("task", task, "delegate"))
    session = served.session()
    boot = system(served.ask(session, QUESTION))
    served.ask(session, "delegate this")
    (child,) = (request for request in machine.turns if parts(request) == [QUESTION])
    assert "core://agent" not in system(child)
    assert "lore_search" in system(child)

    machine.remember("project://news", "Something new.", disclosure="When asked for news")
    served.post(f"/session/{session}/summarize", {"providerID": "fake", "modelID": "fake-model"})
    summary = machine.model.requests[-1]
    assert not summary["tools"]
    assert "core://agent" not in system(summary)
    after = served.ask(session, QUESTION)
    assert system(after) != boot
    assert "project://news" in system(after)
    assert NODE in parts(after)[-1]

    fork = served.post(f"/session/{session}/fork", {})["id"]
    forked = served.ask(fork, UNRELATED)
    assert fork != session
    assert system(forked).count("core://agent") == boot.count("core://agent")
    assert served.client.delete(f"/session/{fork}").status_code == 200


@pytest.mark.soak
def test_handlers_take_little_time(served):
    """From entry to exit, with boot and recall: far below what a person could notice."""
    sessions: list[str] = []

    def turn(number: int) -> None:
        if number % 10 == 0:  # OpenCode's own work grows with a session
            sessions.append(served.session())
        served.ask(sessions[-1], f"{QUESTION} {number}")

    assert served.machine.slow_handlers_ms(turn, "chat.message", "system.transform") < 30


def test_service_killed_between_turns(served):
    """It is started again by the next prompt, in a session that goes on with the same boot bytes."""
    machine = served.machine
    session = served.session()
    boot = system(served.ask(session, QUESTION))
    pid = machine.lore("service", "status")["pid"]
    os.kill(pid, signal.SIGKILL)
    again = served.ask(session, QUESTION)
    assert system(again) == boot
    assert NODE in parts(again)[-1]
    assert machine.lore("service", "status")["pid"] != pid
    new = machine.lore("service", "status")["pid"]
    if Path("/proc").is_dir():
        assert os.getsid(new) == new  # it outlives the program that started it


# --- trouble


def test_trouble(ready, trouble):
    """The turn completes within our limits, and nothing of the trouble shows."""
    ready.limit(*LIMITS_MS)
    kind = trouble(ready)
    assert ask(ready, QUESTION).strip() == "FAKE-OK"
    assert "lore" not in ready.said[-1].lower()
    (request,) = ready.turns
    assert len(parts(request)) == 1
    assert max(ready.handler_ms(), default=0) < sum(LIMITS_MS) + 1500
    if kind == "home":
        assert not ready.home.root.exists()
        assert "core://agent" not in system(request)
    else:
        assert ready.misses() <= {"timeout", "start_failed"}
        assert ready.misses()
        assert "core://agent" in system(request)  # the block that the service left ready
