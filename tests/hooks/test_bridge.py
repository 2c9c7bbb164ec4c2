"""The MCP bridge as hosts start it: first answers from a file, calls through the service, silence where a host wants it."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from lorehooks.hooks import bridge, service


class Conversation:
    """One bridge process and the lines that go in and come out."""

    def __init__(self, place, client: str = "claudecode", **options) -> None:
        self.command = [str(place.home.bin / "python"), "-I", "-S", str(place.home.bin / "bridge.py"), client]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        self.process = place.popen(self.command, **pipes, **options)

    def say(self, message: object) -> None:
        line = message if isinstance(message, bytes) else json.dumps(message).encode()
        self.process.stdin.write(line + b"\n")
        self.process.stdin.flush()

    def hear(self) -> object:
        return json.loads(self.process.stdout.readline())

    def ask(self, method: str, params: object = None, id_: object = 1) -> dict:
        self.say({"jsonrpc": "2.0", "id": id_, "method": method, "params": params or {}})
        return self.hear()

    def call(self, name: str, id_: object = 1) -> dict:
        return self.ask("tools/call", {"name": name, "arguments": {}}, id_)["result"]

    def close(self) -> tuple[bytes, bytes]:
        """End stdin; what else came out, and what was said on stderr."""
        out, err = self.process.communicate(timeout=40)
        assert self.process.returncode == 0
        return out, err


def text_of(result: dict) -> str:
    return result["content"][0]["text"]


def has_ended(pid: int) -> bool:
    """Whether a process is gone, or only waits for a parent to take note, which nobody may do in a container."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].startswith("Z")
    except OSError:
        return True


def test_first_questions_are_answered_without_a_service(place) -> None:
    (place.home.bin / "service").write_text("#!/bin/sh\nexec sleep 60\n")
    began = time.monotonic()
    host = Conversation(place)
    initialize = host.ask("initialize", {"protocolVersion": "2025-06-18"}, "a")
    assert initialize["id"] == "a"
    assert initialize["result"]["protocolVersion"] == "2025-06-18"
    assert "tools" in initialize["result"]["capabilities"]
    host.say({"jsonrpc": "2.0", "method": "notifications/initialized"})
    names = {tool["name"] for tool in host.ask("tools/list", id_=2)["result"]["tools"]}
    assert {"lore_boot", "lore_search", "lore_get_node"} <= names
    assert host.ask("ping", id_=3) == {"jsonrpc": "2.0", "id": 3, "result": {}}
    assert host.close() == (b"", b"")
    assert time.monotonic() - began < 2, "nothing of this may wait for a service"  # the benchmark holds it to 50 ms
    assert not place.home.socket.exists()


@pytest.mark.parametrize(
    ("asked", "answered"), [*((known, known) for known in bridge.PROTOCOLS), ("1999-01-01", bridge.PROTOCOLS[-1])]
)
def test_a_known_protocol_is_echoed(asked: str, answered: str, place) -> None:
    spoken = bridge.Bridge(str(place.home.root), "mcp", lambda _: None, disabled=False)
    assert (
        spoken._answer({"id": 1, "method": "initialize", "params": {"protocolVersion": asked}})["result"][
            "protocolVersion"
        ]
        == answered
    )


def test_answers_of_the_service_win_over_those_of_the_installation(place) -> None:
    place.home.tools.mkdir()
    ready = {
        "initialize": {"serverInfo": {"name": "lore"}},
        "discover": {"x": 1},
        "tools_list": {"tools": [{"name": "t"}]},
    }
    (place.home.tools / "claudecode.json").write_text(json.dumps(ready))
    host = Conversation(place)
    assert host.ask("tools/list")["result"] == ready["tools_list"]
    assert host.ask("server/discover")["result"] == {"x": 1}
    host.close()


@pytest.mark.parametrize("method", ["server/discover", "resources/list", "prompts/list", "no/such"])
def test_unknown_methods_get_an_error(place, method: str) -> None:
    host = Conversation(place)
    assert host.ask(method)["error"]["code"] == -32601
    host.close()


@pytest.mark.parametrize(
    ("line", "code"),
    [
        (b"{", -32700),
        (b"\xff\xfe", -32700),
        (b"[" * 100_000, -32700),
        (b"[]", -32600),
        (b"7", -32600),
        (b'{"id": 1}', -32600),
        (b'{"id": 1, "method": 5}', -32600),
    ],
)
def test_lines_that_are_no_request_get_an_error(place, line: bytes, code: int) -> None:
    host = Conversation(place)
    host.say(line)
    assert host.hear()["error"]["code"] == code
    assert "result" in host.ask("ping")
    host.close()


@pytest.mark.parametrize(
    "line",
    [
        b'{"method": "notifications/cancelled", "params": {}}',
        b'{"id": 9, "result": {}}',
        b'{"id": 9, "error": {}}',
        b"",
        b"  ",
    ],
)
def test_notifications_and_answers_get_none(place, line: bytes) -> None:
    host = Conversation(place)
    host.say(line)
    assert host.close() == (b"", b"")


def test_calls_go_to_the_service_as_one_line_each(running) -> None:
    host = Conversation(running, "codex")
    result = host.call("lore_search", "x")
    assert text_of(result) == f"lore_search by {running.pid()}\nsecond line"
    host.close()
    assert "codex:lore_search" in running.seen()["calls"]


def test_first_call_starts_the_service(place) -> None:
    host = Conversation(place)
    assert text_of(host.call("lore_boot")).startswith(f"lore_boot by {place.pid()}")
    host.close()


def test_a_slow_call_holds_up_nothing_else(running) -> None:
    host = Conversation(running)
    host.say({"jsonrpc": "2.0", "id": "slow", "method": "tools/call", "params": {"name": "slow"}})
    assert host.ask("ping", id_="ping")["id"] == "ping"
    assert not host.call("lore_search", "quick")["isError"]
    host.process.kill()


def test_several_calls_at_once_start_one_service_and_each_gets_its_answer(place) -> None:
    host = Conversation(place)
    for number in range(6):
        host.say({"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": {"name": f"tool_{number}"}})
    answers = [host.hear() for _ in range(6)]
    assert {answer["id"]: text_of(answer["result"]).split(" ")[0] for answer in answers} == {
        number: f"tool_{number}" for number in range(6)
    }
    host.close()
    assert place.home.log.read_text().count("serves") == 1


def test_batch_is_answered_as_one_line(running) -> None:
    host = Conversation(running)
    host.say(
        [
            {"jsonrpc": "2.0", "id": 1, "method": "ping"},
            {"jsonrpc": "2.0", "method": "notifications/initialized"},
            {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "lore_search"}},
            5,
        ]
    )
    answers = host.hear()
    assert [answer.get("id") for answer in answers] == [1, 2, None]
    host.say([{"jsonrpc": "2.0", "method": "notifications/initialized"}])
    assert host.close() == (b"", b"")


def test_call_under_way_is_still_answered_after_the_end_of_input(place) -> None:
    host = Conversation(place)
    out, err = host.process.communicate(
        b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"lore_boot"}}\n', timeout=40
    )
    assert text_of(json.loads(out)["result"]).startswith("lore_boot by")
    assert err == b""


@pytest.mark.parametrize("fault", ["missing", "broken"])
def test_call_without_service_says_what_to_do(place, fault: str) -> None:
    script = place.home.bin / "service"
    script.unlink() if fault == "missing" else script.write_text("#!/bin/sh\nexit 1\n")
    host = Conversation(place)
    result = host.call("lore_search")
    assert result["isError"]
    assert "lore doctor" in text_of(result)
    assert "\n" not in text_of(result)
    assert host.call("hook_fill_ids") == {"content": [{"type": "text", "text": ""}], "isError": False}
    host.close()
    assert place.misses() == ["start_failed", "start_failed"]


def test_failing_service_is_an_error_for_tools_and_silence_for_hooks(running) -> None:
    host = Conversation(running)
    assert host.call("boom")["isError"]
    assert host.call("hook_boom") == {"content": [{"type": "text", "text": ""}], "isError": False}
    host.close()
    assert running.misses() == ["bad_answer", "bad_answer"]


def test_hook_tool_is_silent_within_its_limit_when_the_service_hangs(running) -> None:
    os.kill(running.pid(), signal.SIGSTOP)
    host = Conversation(running)
    began = time.monotonic()
    assert text_of(host.call("hook_fill_ids")) == ""
    assert time.monotonic() - began < bridge.HOOK_SECONDS + 1
    host.close()
    assert running.misses() == ["timeout"]


def test_killed_service_is_started_again_by_the_next_call(running) -> None:
    host = Conversation(running)
    host.call("lore_search")
    before = running.pid()
    os.kill(before, signal.SIGKILL)
    assert text_of(host.call("lore_search")).startswith(f"lore_search by {running.pid()}")
    assert running.pid() != before
    host.close()


def test_lore_disable_leaves_no_tools(running) -> None:
    host = Conversation(running, env={"LORE_DISABLE": "1"})
    assert "instructions" not in host.ask("initialize", {"protocolVersion": "2025-06-18"})["result"]
    assert host.ask("tools/list")["result"] == {"tools": []}
    assert host.call("lore_search")["isError"]
    assert text_of(host.call("hook_fill_ids")) == ""
    host.close()
    assert running.seen()["calls"] == []
    assert running.misses() == []


def test_open_bridge_tells_a_running_service_that_it_is_there(running, wait_for) -> None:
    host = Conversation(running)
    wait_for(lambda: "alive" in running.seen()["calls"], "a sign of life")
    host.close()


def test_sign_of_life_starts_no_service(place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(place.home.run)
    bridge.Bridge(str(place.home.root), "claudecode", lambda _: None, disabled=False).tell_alive()
    assert not place.home.socket.exists()
    assert place.misses() == []


def test_without_ready_files_the_service_is_asked_for_the_tools(running) -> None:
    for file in (running.home.bin / "tools").iterdir():
        file.unlink()
    host = Conversation(running)
    assert "result" in host.ask("initialize", {"protocolVersion": "2025-06-18"})
    assert text_of(host.ask("tools/list")["result"]).startswith("tools/list by")
    host.close()


def test_bridge_ends_with_its_parent_though_its_input_stays_open(place, wait_for) -> None:
    read, write = os.pipe()
    command = Conversation(place).command
    starts = (
        "import subprocess, sys; child = subprocess.Popen(sys.argv[1:]); print(child.pid, flush=True); child.wait()"
    )
    parent = place.popen([sys.executable, "-c", starts, *command], stdin=read, stdout=subprocess.PIPE, text=True)
    pid = int(parent.stdout.readline())
    os.write(write, b"\n")  # it has begun to read once the pipe is empty again
    wait_for(lambda: not select.select([read], [], [], 0)[0], "the bridge to read")
    parent.kill()
    parent.wait()
    wait_for(lambda: has_ended(pid), "the bridge to end")
    os.close(read)
    os.close(write)


def test_bridge_ends_when_nobody_reads(place) -> None:
    host = Conversation(place)
    host.process.stdout.close()
    host.say({"jsonrpc": "2.0", "id": 1, "method": "ping"})
    assert host.process.wait(timeout=20) == 0
    assert host.process.stderr.read() == b""


def test_home_of_another_user_offers_nothing(running, monkeypatch: pytest.MonkeyPatch) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can give a file away")
    os.chown(running.home.run, 65534, 65534)
    try:
        host = Conversation(running)
        assert host.ask("tools/list")["result"] == {"tools": []}
        host.close()
    finally:
        os.chown(running.home.run, 0, 0)


def test_starter_waits_no_longer_than_it_was_told(place) -> None:
    place.start_by("echo $$ >run/hanging; exec sleep 60")
    began = time.monotonic()
    assert not bridge.start_service(str(place.home.root), 0.3)
    assert time.monotonic() - began < 5
    os.kill(int((place.home.run / "hanging").read_text()), signal.SIGKILL)


def test_starter_that_finds_one_running_says_so(running) -> None:
    assert bridge.start_service(str(running.home.root), 30)
    assert service.listener(running.home) == running.pid()
