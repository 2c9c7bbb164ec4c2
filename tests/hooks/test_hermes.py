"""The files that Hermes loads, driven as Hermes drives them, against a stand-in service that behaves as badly as a test says."""

from __future__ import annotations

import ast
import contextlib
import importlib.util
import json
import os
import shlex
import socket
import sys
import threading
import time
import types
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from lorehooks import hooks
from lorehooks.core.home import Home
from lorehooks.installers.hermesfiles import NAME, SOURCES, named_home, plugin_files

BOTH = pytest.mark.parametrize("form", ["provider", "beside"])
PACKAGE = "_hermes_user_memory"
SESSION = "20261129_201453_9949e9"
LIMIT = 0.4
"""Seconds, as `run/limits` of the stand-in homes says."""
PATIENCE = 20.0


def answer(value: object, status: str = "200 OK") -> bytes:
    body = json.dumps(value, ensure_ascii=False).encode()
    return f"HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body


@dataclass
class StandIn:
    """A home, what its service was asked, and what it does with each request: `serve(connection, request)`."""

    home: Home
    serve: Callable[[socket.socket, Any], None] | None = None
    asked: list[Any] = field(default_factory=list)
    listener: socket.socket | None = None
    over: threading.Event = field(default_factory=threading.Event)

    def listen(self) -> None:
        path = self.home.socket
        if len(os.fsencode(path)) < 104:
            self.listener = socket.socket(socket.AF_UNIX)
            path.unlink(missing_ok=True)
            self.listener.bind(str(path))
        else:
            self.listener = socket.socket()
            self.listener.bind(("127.0.0.1", 0))
            info = {"port": self.listener.getsockname()[1], "token": "secret"}
            self.home.service_file.write_text(json.dumps(info))
        self.listener.listen()
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        assert self.listener
        with contextlib.suppress(OSError):
            while True:
                threading.Thread(target=self._take, args=(self.listener.accept()[0],), daemon=True).start()

    def _take(self, connection: socket.socket) -> None:
        data = b""
        with contextlib.suppress(OSError), connection:
            while part := connection.recv(1 << 20):
                data += part
                head, complete, body = data.partition(b"\r\n\r\n")
                if not complete or len(body) < int(head.lower().partition(b"content-length:")[2].split(b"\r")[0]):
                    continue
                line, *rest = head.decode().split("\r\n")
                headers = dict(each.lower().split(": ", 1) for each in rest)
                request = types.SimpleNamespace(
                    event=line.split()[1].rpartition("/")[2],
                    line=line,
                    headers=headers,
                    body=json.loads(body),
                    ms=float(headers["x-lore-remaining-ms"]),
                )
                self.asked.append(request)
                assert self.serve
                self.serve(connection, request)
                return

    def says(self, value: object, status: str = "200 OK") -> None:
        self.serve = lambda connection, _request: connection.sendall(answer(value, status))

    def events(self, name: str) -> list[Any]:
        return [request for request in self.asked if request.event == name]

    def misses(self) -> list[str]:
        with contextlib.suppress(FileNotFoundError):
            return [" ".join(line.split()[1:]) for line in self.home.misses.read_text().splitlines()]
        return []

    def close(self) -> None:
        self.over.set()
        if self.listener:
            with contextlib.suppress(OSError):
                self.listener.shutdown(socket.SHUT_RDWR)
            self.listener.close()


@pytest.fixture
def new_home(tmp_path: Path) -> Iterator[Callable[..., StandIn]]:
    made: list[StandIn] = []

    def make(folder: str = "zoë 김", *, limits: str = "400 400") -> StandIn:
        home = Home(tmp_path / folder / ".lore")
        home.run.mkdir(parents=True, mode=0o700)
        home.run.chmod(0o700)
        (home.bin / "tools").mkdir(parents=True)
        (home.run / "limits").write_text(limits)
        made.append(StandIn(home))
        return made[-1]

    yield make
    for each in made:
        each.close()


@pytest.fixture
def stand_in(new_home: Callable[..., StandIn]) -> StandIn:
    stand_in = new_home()
    stand_in.says({})
    stand_in.listen()
    return stand_in


@pytest.fixture
def load(tmp_path: Path) -> Iterator[Callable[..., Any]]:
    """`load(home, form)`: the module, installed and loaded in the order in which Hermes does it."""
    number = 0

    def make(home: Home, form: str = "provider") -> Any:
        nonlocal number
        number += 1
        hermes = tmp_path / f"hermes{number}"
        for file in plugin_files(hermes, home, form):
            file.path.parent.mkdir(parents=True, exist_ok=True)
            file.path.write_bytes(file.content)
        folder = hermes / "plugins" / NAME
        sys.modules[PACKAGE] = types.ModuleType(PACKAGE)
        name = f"{PACKAGE}.{NAME}"
        spec = importlib.util.spec_from_file_location(
            name, folder / "__init__.py", submodule_search_locations=[str(folder)]
        )
        assert spec
        assert spec.loader
        module = sys.modules[name] = importlib.util.module_from_spec(spec)
        for sibling in folder.glob("[!_]*.py"):
            its = importlib.util.spec_from_file_location(f"{name}.{sibling.stem}", sibling)
            assert its
            assert its.loader
            loaded = sys.modules[f"{name}.{sibling.stem}"] = importlib.util.module_from_spec(its)
            its.loader.exec_module(loaded)
        spec.loader.exec_module(module)
        return module

    yield make
    for name in [each for each in sys.modules if each.startswith(PACKAGE)]:
        del sys.modules[name]


@pytest.fixture
def provider(stand_in: StandIn, load: Callable[..., Any]) -> Any:
    provider = load(stand_in.home).LoreProvider()
    provider.initialize(SESSION, platform="cli", hermes_home="/x")
    wait_for(lambda: stand_in.events("session.start"))
    return provider


def wait_for(condition: Callable[[], object]) -> None:
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.005)


def seconds(act: Callable[[], Any]) -> tuple[Any, float]:
    began = time.monotonic()
    return act(), time.monotonic() - began


class Ctx:
    """What `register` gets: of the memory loader only the first method, of the plugin manager the others."""

    def __init__(self) -> None:
        self.provider: Any = None
        self.hooks: dict[str, Callable[..., Any]] = {}
        self.tools: dict[str, dict[str, Any]] = {}

    def register_memory_provider(self, provider: Any) -> None:
        self.provider = provider

    def register_hook(self, name: str, hook: Callable[..., Any]) -> None:
        self.hooks[name] = hook

    def register_tool(self, **tool: Any) -> None:
        self.tools[tool["name"]] = tool


# --- the files themselves


@BOTH
def test_hermes_takes_the_folder_for_a_provider_only_in_that_form(form, tmp_path):
    main = next(plugin_files(tmp_path, Home(tmp_path), form)).content.decode()[:8192]
    assert any(word in main for word in ("MemoryProvider", "register_memory_provider")) == (form == "provider")


@pytest.mark.parametrize("path", sorted(SOURCES.glob("*.py")), ids=lambda path: path.name)
def test_the_files_need_nothing_but_hermes_and_the_standard_library(path):
    tree = ast.parse(path.read_text(), feature_version=(3, 11))
    names = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    names |= {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and not node.level}
    assert {name.split(".")[0] for name in names} <= {*sys.stdlib_module_names, "agent"}


@pytest.mark.parametrize("folder", ["plain", 'q"\\ $& {x} 日本', "it's", "\udcff"])
def test_an_installed_folder_names_its_home_whatever_the_path_holds(folder, tmp_path):
    lore = Home(tmp_path / folder)
    for file in plugin_files(tmp_path, lore, "provider"):
        file.path.parent.mkdir(parents=True, exist_ok=True)
        file.path.write_bytes(file.content)
    assert named_home(tmp_path) == lore.root


def test_the_service_gets_the_same_environment_from_hermes_as_from_hooks(load, stand_in):
    hook = (Path(hooks.__file__).parent / "hook.py").read_text()
    allowed = next(line for line in hook.splitlines() if line.startswith("ALLOWED"))
    load(stand_in.home)
    assert set(sys.modules[f"{PACKAGE}.{NAME}.transport"].ALLOWED) == set(allowed.split('"')[1].split())


@BOTH
def test_registering_gives_hermes_the_one_or_the_other(form, stand_in, load):
    ctx = Ctx()
    load(stand_in.home, form).register(ctx)
    assert (ctx.provider is not None) == (form == "provider")
    assert bool(ctx.hooks) == (form == "beside")


def test_the_provider_has_the_name_of_its_folder(provider):
    assert provider.name == NAME


# --- the way to the service


def test_a_prompt_goes_to_the_service_and_its_block_comes_back(provider, stand_in, monkeypatch):
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    text = '<recall session_id="a">\n0.91 | core://a → 김 🟡\n</recall>'

    def serve(connection, _request):
        data = answer({"context": text})
        for start in range(0, len(data), 7):
            connection.sendall(data[start : start + 7])

    stand_in.serve = serve
    assert provider.prefetch("lone \ud83d surrogate, → 김") == text
    (asked,) = stand_in.events("prompt.submit")
    assert asked.line == "POST /hooks/v1/hermes/prompt.submit HTTP/1.0"
    assert asked.body == {"session_id": SESSION, "cwd": str(Path.cwd()), "prompt": "lone \ud83d surrogate, → 김"}
    assert 0 < asked.ms <= LIMIT * 1000
    assert stand_in.misses() == []


def hang(stand_in):
    stand_in.serve = lambda _connection, _request: stand_in.over.wait()


def drip(stand_in):
    def serve(connection, _request):
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n")
        while not stand_in.over.wait(0.02):
            connection.sendall(b" ")

    stand_in.serve = serve


def nonsense(stand_in):
    stand_in.serve = lambda connection, _request: connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n[]")


def refusal(stand_in):
    stand_in.says({"detail": "no"}, "500 Internal Server Error")


def html(stand_in):
    stand_in.serve = lambda connection, _request: connection.sendall(b"<html>sign in</html>")


def wrong_kind(stand_in):
    stand_in.says({"context": ["not", "text"]})


@pytest.mark.parametrize(
    ("trouble", "miss"),
    [(hang, "timeout"), (drip, "timeout"), (nonsense, "bad_answer"), (refusal, "bad_answer"), (html, "bad_answer")],
)
def test_a_recall_ends_within_its_limit_whatever_the_service_does(provider, stand_in, trouble, miss):
    trouble(stand_in)
    text, took = seconds(lambda: provider.prefetch("hello"))
    assert text == ""
    assert took < LIMIT + 1.5
    assert stand_in.misses() == [f"hermes prompt.submit {miss}"]


def test_a_longer_limit_of_the_user_stays_below_hermes_s_own(new_home, load):
    stand_in = new_home(limits="9000 9000")
    stand_in.says({})
    stand_in.listen()
    provider = load(stand_in.home).LoreProvider()
    provider.initialize(SESSION)
    provider.prefetch("hello")
    assert stand_in.events("prompt.submit")[0].ms <= 5500


def test_a_line_that_went_dead_is_tried_again_but_no_tool_is_called_twice(provider, stand_in):
    stand_in.serve = lambda _connection, _request: None
    assert provider.prefetch("hello") == ""
    assert len(stand_in.events("prompt.submit")) == 2
    assert "error" in json.loads(provider.handle_tool_call("lore_create_node", {"content": "x"}))
    assert len(stand_in.events("tool")) == 1


def test_three_slow_failures_open_the_breaker_and_an_answer_closes_it(provider, stand_in):
    hang(stand_in)
    for _ in range(3):
        provider.prefetch("hello")
    asked = len(stand_in.asked)
    text, took = seconds(lambda: provider.prefetch("hello"))
    assert (text, len(stand_in.asked)) == ("", asked)
    assert took < LIMIT
    assert stand_in.misses()[-1] == "hermes prompt.submit breaker"
    os.utime(stand_in.home.run / "breaker", (0, 0))
    stand_in.says({"context": "again"})
    assert provider.prefetch("hello") == "again"
    assert not (stand_in.home.run / "breaker").exists()


def test_the_service_is_started_aside_without_hermes_s_keys(new_home, load, monkeypatch):
    stand_in = new_home(limits="8000 8000")
    monkeypatch.setenv("OPENROUTER_API_KEY", "secret")
    monkeypatch.setenv("LORE_X", "kept")
    seen = stand_in.home.root / "seen"
    program = stand_in.home.bin / "service"
    source = f"""
import json, os, socket, sys
path, info = {str(stand_in.home.socket)!r}, {str(stand_in.home.service_file)!r}
is_short = len(os.fsencode(path)) < 104
listener = socket.socket(socket.AF_UNIX if is_short else socket.AF_INET)
listener.bind(path if is_short else ("127.0.0.1", 0))
listener.listen()
listener.settimeout({PATIENCE})  # it ends, whatever becomes of the test
if not is_short:
    open(info, "w").write(json.dumps({{"port": listener.getsockname()[1], "token": "secret"}}))
facts = {{"pid": os.getpid(), "session": os.getsid(0), "environment": dict(os.environ), "words": sys.argv[1:]}}
open({str(seen)!r}, "w").write(json.dumps(facts))
os.write(int(sys.argv[2]), b"1")
connection, _ = listener.accept()
connection.recv(65536)
connection.sendall({answer({"context": "up"})!r})
"""
    body = stand_in.home.root / "service.py"
    body.write_text(source)
    program.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -I {shlex.quote(str(body))} "$@"\n')
    program.chmod(0o755)
    provider = load(stand_in.home).LoreProvider()
    assert provider.prefetch("hello") == "up"
    facts = json.loads(seen.read_text())
    assert facts["words"][0] == "--ready-fd"
    assert facts["session"] not in {0, os.getsid(0)}
    assert "OPENROUTER_API_KEY" not in facts["environment"]
    assert facts["environment"]["LORE_X"] == "kept"


def test_it_is_said_at_once_that_a_service_does_not_start_or_that_there_is_none(new_home, load):
    stand_in = new_home(limits="8000 8000")
    provider = load(stand_in.home).LoreProvider()
    text, took = seconds(lambda: provider.prefetch("hello"))
    assert (text, stand_in.misses()) == ("", ["hermes prompt.submit no_service"])
    (stand_in.home.bin / "service").write_text("#!/bin/sh\nexit 1\n")
    (stand_in.home.bin / "service").chmod(0o755)
    text, more = seconds(lambda: provider.prefetch("hello"))
    assert (text, stand_in.misses()[1:]) == ("", ["hermes prompt.submit start_failed"])
    assert took + more < 6


def test_a_service_behind_a_long_path_is_reached_over_tcp_with_its_token(new_home, load):
    stand_in = new_home("long" * 30)
    stand_in.says({"context": "far"})
    stand_in.listen()
    assert load(stand_in.home).LoreProvider().prefetch("hello") == "far"
    assert stand_in.asked[0].headers["authorization"] == "bearer secret"


@BOTH
@pytest.mark.parametrize("why", ["gone", "disabled", "open to others"])
def test_without_a_home_of_ours_everything_is_silent(form, why, stand_in, load, monkeypatch):
    module = load(stand_in.home, form)
    if why == "disabled":
        monkeypatch.setenv("LORE_DISABLE", "1")
    elif why == "gone":
        stand_in.home.bin.joinpath("tools").rmdir()
        stand_in.home.bin.rmdir()
    else:
        stand_in.home.run.chmod(0o777)
    if form == "beside":
        ctx = Ctx()
        module.register(ctx)
        assert not ctx.hooks
        assert not ctx.tools
        assert module.Hooks().pre_llm_call(session_id=SESSION, user_message="x", is_first_turn=True) is None
    else:
        provider = module.LoreProvider()
        assert provider.is_available() is False
        provider.initialize(SESSION)
        assert (provider.system_prompt_block(), provider.prefetch("x"), provider.get_tool_schemas()) == ("", "", [])
        provider.sync_turn("u", "a", session_id=SESSION)
        provider.on_session_end([])
    assert stand_in.asked == []
    assert stand_in.misses() == []


# --- sessions of the provider


def boots(stand_in):
    """Give each session start a block of its own."""

    def serve(connection, request):
        said = {"system_context": f"boot {len(stand_in.events('session.start'))}"}
        connection.sendall(answer(said if request.event == "session.start" else {}))

    stand_in.serve = serve


def starts(stand_in):
    return [(request.body["session_id"], request.body["source"]) for request in stand_in.events("session.start")]


def test_the_boot_block_is_asked_for_once_and_stays_the_same(stand_in, load):
    boots(stand_in)
    provider = load(stand_in.home).LoreProvider()
    provider.initialize(SESSION)
    assert provider.system_prompt_block() == "boot 1"
    assert provider.system_prompt_block() == "boot 1"
    assert starts(stand_in) == [(SESSION, "ask")]


def test_each_change_of_session_is_told_for_what_it_is(stand_in, load):
    boots(stand_in)
    provider = load(stand_in.home).LoreProvider()
    provider.initialize("s1")
    assert provider.system_prompt_block() == "boot 1"
    provider.on_session_switch("s2", parent_session_id="s1", reset=True, reason="new_session")
    assert provider.system_prompt_block() == "boot 2"
    provider.on_session_switch("s1", parent_session_id="s2", reset=False, reason="resume")
    assert provider.system_prompt_block() == "boot 1"
    provider.on_session_switch("s1", rewound=True)
    assert provider.system_prompt_block() == "boot 1"
    provider.on_session_switch("s3", parent_session_id="s1", reason="branch")
    assert provider.system_prompt_block() == "boot 3"
    provider.on_session_switch("s4", parent_session_id="s3", reason="resume")
    assert provider.system_prompt_block() == "boot 4"
    assert starts(stand_in) == [("s1", "ask"), ("s2", "startup"), ("s3", "fork"), ("s4", "ask")]


@pytest.mark.parametrize("new", ["s1", "s2"])
def test_a_compression_begins_an_epoch_and_is_no_end(new, stand_in, load):
    boots(stand_in)
    provider = load(stand_in.home).LoreProvider()
    provider.initialize("s1")
    assert provider.system_prompt_block() == "boot 1"
    assert provider.on_pre_compress([]) == ""
    assert provider.system_prompt_block() == "boot 2"
    provider.on_session_end([])
    provider.on_session_switch(new, parent_session_id="s1", reset=False, reason="compression")
    assert provider.system_prompt_block() == "boot 2"
    assert starts(stand_in) == [("s1", "ask"), ("s1", "compact")]
    assert stand_in.events("session.end") == []
    provider.on_session_end([])
    assert [request.body["session_id"] for request in stand_in.events("session.end")] == [new]


def test_a_boot_block_that_did_not_come_is_asked_for_again(stand_in, load):
    refusal(stand_in)
    provider = load(stand_in.home).LoreProvider()
    provider.initialize(SESSION)
    assert provider.system_prompt_block() == ""
    boots(stand_in)
    assert provider.system_prompt_block().startswith("boot ")


def test_the_ready_block_serves_when_the_service_does_not_and_is_kept(stand_in, load):
    refusal(stand_in)
    stand_in.home.boot.mkdir()
    (stand_in.home.boot / "hermes").write_text(json.dumps({"system_context": "ready"}))
    provider = load(stand_in.home).LoreProvider()
    provider.initialize(SESSION)
    assert provider.system_prompt_block() == "ready"
    boots(stand_in)
    assert provider.system_prompt_block() == "ready"


def test_an_empty_boot_answer_is_an_answer(provider, stand_in):
    assert provider.system_prompt_block() == ""
    boots(stand_in)
    assert provider.system_prompt_block() == ""
    assert len(starts(stand_in)) == 1


def test_hermes_waits_three_seconds_for_a_boot_block_and_not_for_initialize(new_home, load, monkeypatch):
    stand_in = new_home(limits="8000 8000")
    hang(stand_in)
    stand_in.listen()
    module = load(stand_in.home)
    assert module.BOOT_SECONDS == 3.0
    monkeypatch.setattr(module, "BOOT_SECONDS", 0.2)
    provider = module.LoreProvider()
    _, began = seconds(lambda: provider.initialize(SESSION))
    text, waited = seconds(provider.system_prompt_block)
    assert text == ""
    assert began < 1.5
    assert waited < 1.5


def test_many_sessions_cost_bounded_memory(provider):
    for number in range(150):
        provider.on_session_switch(f"s{number}", reset=True)
    assert len(provider._boots) == 100
    assert "s149" in provider._boots


def test_turns_and_ends_are_told(provider, stand_in):
    provider.sync_turn("question", "a" * 30_000, session_id=SESSION, messages=[{"role": "user"}])
    provider.on_session_end([])
    (turn,), (end,) = stand_in.events("turn.end"), stand_in.events("session.end")
    assert turn.body["session_id"] == end.body["session_id"] == SESSION
    assert len(turn.body["last_assistant_message"]) == 20_000


def test_a_messenger_s_session_names_no_folder(stand_in, load):
    provider = load(stand_in.home).LoreProvider()
    provider.initialize(SESSION, platform="telegram", chat_id="1")
    provider.prefetch("hello", session_id="other")
    assert stand_in.events("prompt.submit")[0].body == {"session_id": "other", "prompt": "hello"}


# --- tools


TOOL = {
    "name": "lore_get_node",
    "description": "Read",
    "inputSchema": {"type": "object", "required": ["uri"]},
    "title": "t",
}


def put_tools(stand_in, folder="bin"):
    path = stand_in.home.root / folder / "tools" / "hermes.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps({"tools_list": {"tools": [TOOL]}}))


@pytest.mark.parametrize("folder", ["bin", "run"])
def test_tools_come_from_disk_in_hermes_s_form(folder, stand_in, load):
    put_tools(stand_in, folder)
    provider = load(stand_in.home).LoreProvider()
    wanted = {"name": "lore_get_node", "description": "Read", "parameters": TOOL["inputSchema"]}
    assert provider.get_tool_schemas() == [wanted]
    assert stand_in.asked == []


def test_a_tool_runs_for_the_session_and_answers_json(provider, stand_in):
    stand_in.says({"text": "URI: core://a → 김", "is_error": False})
    assert json.loads(provider.handle_tool_call("lore_get_node", {"uri": "core://a"})) == {
        "result": "URI: core://a → 김"
    }
    assert stand_in.events("tool")[0].body == {
        "name": "lore_get_node",
        "arguments": {"uri": "core://a"},
        "session_id": SESSION,
    }
    stand_in.says({"text": "There is no such memory", "is_error": True})
    assert json.loads(provider.handle_tool_call("lore_get_node", {})) == {"error": "There is no such memory"}


@pytest.mark.parametrize("trouble", [nonsense, refusal, html, wrong_kind])
def test_nothing_raises(provider, stand_in, trouble):
    trouble(stand_in)
    assert provider.prefetch("x") == ""
    assert provider.prefetch(None) == ""
    assert "error" in json.loads(provider.handle_tool_call("lore_get_node", object()))
    provider.sync_turn(None, None)
    provider.on_session_switch(None)
    provider.initialize(None)
    assert isinstance(provider.system_prompt_block(), str)
    provider.on_session_end(None)


# --- beside another provider


@pytest.fixture
def beside(stand_in, load):
    """The hooks and tools as Hermes has them, and a service that answers boot and recall."""
    put_tools(stand_in)
    ctx = Ctx()
    load(stand_in.home, "beside").register(ctx)

    def serve(connection, request):
        said = {
            "session.start": {"system_context": "BOOT"},
            "prompt.submit": {"context": "RECALL"},
            "tool": {"text": "node", "is_error": False},
        }
        connection.sendall(answer(said.get(request.event, {})))

    stand_in.serve = serve
    return ctx


def turn(beside, message="hello", history=(), **more):
    more = {"session_id": SESSION, "is_first_turn": False, "platform": "cli", **more}
    return beside.hooks["pre_llm_call"](user_message=message, conversation_history=list(history), task_id="t", **more)


def test_boot_and_recall_end_the_first_message_and_recall_the_next(beside, stand_in):
    assert turn(beside, is_first_turn=True) == {"context": "BOOT\n\nRECALL"}
    assert turn(beside, history=[{"role": "user", "content": "BOOT"}, {}]) == {"context": "RECALL"}
    assert starts(stand_in) == [(SESSION, "startup")]


def test_a_resumed_session_asks_whether_the_rules_have_changed(beside, stand_in):
    assert turn(beside) == {"context": "BOOT\n\nRECALL"}
    assert starts(stand_in) == [(SESSION, "resume")]


def test_a_compressed_history_gets_its_block_again(beside, stand_in):
    turn(beside, is_first_turn=True, history=[{"content": "hello"}])
    long = [{"content": "hello", "api_content": "hello\n\nBOOT"}, *[{"content": "x"}] * 8]
    assert turn(beside, history=long) == {"context": "RECALL"}
    assert turn(beside, history=long[:4]) == {"context": "RECALL"}  # undone, and the block still there
    assert turn(beside, history=[{"content": "summary"}, {"content": "x"}]) == {"context": "BOOT\n\nRECALL"}
    assert starts(stand_in)[-1] == (SESSION, "compact")


def test_more_than_hermes_takes_is_not_sent(beside, stand_in):
    stand_in.serve = lambda connection, request: connection.sendall(
        answer({"system_context": "B" * 8000, "context": "R" * 4000})
    )
    assert turn(beside, is_first_turn=True) == {"context": "B" * 8000}


def test_a_subagent_is_told_whose_it_is(beside, stand_in):
    beside.hooks["subagent_start"](child_session_id="child", parent_session_id=SESSION, child_goal="x")
    turn(beside, session_id="child", is_first_turn=True)
    assert stand_in.events("session.start")[0].body["parent_session_id"] == SESSION
    assert stand_in.events("prompt.submit")[0].body["parent_session_id"] == SESSION


def test_turns_and_ends_are_told_by_hooks(beside, stand_in):
    turn(beside, is_first_turn=True)
    beside.hooks["post_llm_call"](session_id=SESSION, assistant_response="done", platform="cli")
    wait_for(lambda: stand_in.events("turn.end"))
    beside.hooks["on_session_finalize"](session_id=SESSION, platform="cli", reason="shutdown")
    beside.hooks["on_session_finalize"](session_id=None)
    assert len(stand_in.events("session.end")) == 1


def test_a_tool_beside_knows_its_session(beside, stand_in):
    tool = beside.tools["lore_get_node"]
    assert tool["schema"]["parameters"] == TOOL["inputSchema"]
    assert json.loads(tool["handler"]({"uri": "core://a"}, session_id=SESSION, task_id="t")) == {"result": "node"}
    assert stand_in.events("tool")[0].body["session_id"] == SESSION


def test_an_image_with_words_is_passed_on_in_its_parts(beside, stand_in):
    parts = [{"type": "text", "text": "what is this"}, {"type": "image_url", "image_url": {}}]
    turn(beside, parts)
    assert stand_in.events("prompt.submit")[0].body["prompt"] == parts


def test_a_dead_service_costs_the_hooks_their_limit_and_no_more(beside, stand_in):
    hang(stand_in)
    text, took = seconds(lambda: turn(beside, is_first_turn=True))
    assert text is None
    assert took < 2 * LIMIT + 1.5
