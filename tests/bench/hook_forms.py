"""Which form of hook costs a prompt least: none, `true`, our process, http, an MCP tool, in the real Claude Code and Codex.

    python tests/bench/hook_forms.py [--rounds 30] [--fresh 20] [--write docs/decisions/0010-which-hook-form.md]

One long session for each form and program, all open at once and asked in turn, so that all forms meet the same moments of the
machine; the model is `fake_model.py` on loopback. Measured is the time from handing over a prompt to the arrival of the request
that holds it. Then fresh programs are started to see whether a session's first prompt gets its block. All of it twice: on an
idle machine, and beside a busy process for each processor.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import platform
import queue
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path[:0] = [str(HERE), str(HERE.parent / "support")]
from fake_model import FakeModel  # noqa: E402
from scratch import scratch_home  # noqa: E402

from lorehooks.core.home import Home  # noqa: E402
from lorehooks.core.model import NodeDraft, Origin  # noqa: E402
from lorehooks.core.store import Store  # noqa: E402
from lorehooks.core.writes import create  # noqa: E402
from lorehooks.hooks import service  # noqa: E402
from lorehooks.installers.codexserver import AppServer  # noqa: E402
from lorehooks.installers.registered import registered_command  # noqa: E402

PROGRAMS = {"claude": ROOT / ".e2e" / "claude-code-2.1.332", "codex": ROOT / ".e2e" / "codex-0.171.0"}
FORMS = {"claude": ("none", "true", "process", "http", "mcp_tool"), "codex": ("none", "true", "process", "mcp_tool")}
WORDS = {
    "none": "none",
    "true": "`true`",
    "process": "our process",
    "http": "`http`",
    "mcp_tool": "`mcp_tool` through the bridge",
}
WITH_MEMORY = ("process", "http", "mcp_tool")
CLIENT = {"claude": "claudecode", "codex": "codex"}
QUESTION = "How do we run a production deploy? ({})"
WARM_UP = 3
PATIENCE = 120.0
IDLE = {
    True: "Idle means: before all other work of a shared machine (SCHED_RR); first prompts beside it.",
    False: "Idle means: without load of ours.",
}
MARKS = "<!-- figures -->", "<!-- end of figures -->"
OFFLINE = {
    **dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"), "http://127.0.0.1:9"),
    **dict.fromkeys(("NO_PROXY", "no_proxy"), "127.0.0.1,localhost"),
}


@dataclass
class Setting:
    """One form in one program: a user of its own, whose only hook is that of the prompt."""

    program: str
    form: str
    user: Path
    home: Home
    model: FakeModel
    state: str = ""
    environment: dict[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return f"{self.program}-{self.form}"

    @property
    def folder(self) -> Path:
        """HOME of its user."""
        return self.user / self.state

    def prepare(self, state: str) -> None:
        """Set up a new user for a state of the machine."""
        self.state = state
        (self.folder / "project").mkdir(parents=True)
        self.environment = {
            "PATH": f"{PROGRAMS[self.program] / 'node_modules' / '.bin'}:/usr/local/bin:/usr/bin:/bin",
            "HOME": str(self.folder),
            "LANG": "C.UTF-8",
            "TERM": "xterm",
            **OFFLINE,
        }
        hook = self._hook()
        events = {"UserPromptSubmit": [{"hooks": [hook]}]} if hook else {}
        if self.program == "claude":
            self._prepare_claude(events)
        else:
            self._prepare_codex(events)

    def _hook(self) -> dict[str, Any] | None:
        client = CLIENT[self.program]
        if self.form == "true":
            return {"type": "command", "command": "true", "timeout": 10}
        if self.form == "process":
            command = registered_command(self.home, client, "prompt.submit")
            return {"type": "command", "command": command, "timeout": 10}
        if self.form == "http":
            port = json.loads(self.home.service_file.read_bytes())["port"]
            return {
                "type": "http",
                "url": f"http://127.0.0.1:{port}/hooks/v1/{client}/prompt.submit",
                "headers": {"Authorization": "Bearer ${BENCH_TOKEN}"},
                "allowedEnvVars": ["BENCH_TOKEN"],
                "timeout": 10,
            }
        if self.form == "mcp_tool":
            given = {name: f"${{{name}}}" for name in ("prompt", "session_id", "cwd")}
            return {"type": "mcp_tool", "server": "lore", "tool": "hook_prompt", "input": given, "timeout": 10}
        return None

    @property
    def _server(self) -> list[str]:
        script = str(HERE / "hook_bridge.py")
        return [str(self.home.bin / "python"), "-I", "-S", script, str(self.home.root), CLIENT[self.program]]

    def _prepare_claude(self, events: dict[str, Any]) -> None:
        self.environment |= {
            "ANTHROPIC_BASE_URL": self.model.url,
            "ANTHROPIC_API_KEY": "dummy",
            "DISABLE_TELEMETRY": "1",
            "DISABLE_ERROR_REPORTING": "1",
            "DISABLE_AUTOUPDATER": "1",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "BENCH_TOKEN": json.loads(self.home.service_file.read_bytes())["token"],
        }
        (self.folder / ".claude").mkdir()
        (self.folder / ".claude" / "settings.json").write_text(json.dumps({"hooks": events}))
        program, *arguments = self._server
        servers = {"lore": {"command": program, "args": arguments}} if self.form == "mcp_tool" else {}
        (self.folder / ".claude.json").write_text(json.dumps({"mcpServers": servers}))

    def _prepare_codex(self, events: dict[str, Any]) -> None:
        self.environment["FAKE_KEY"] = "dummy"
        folder = self.folder / ".codex"
        folder.mkdir()
        (folder / "hooks.json").write_text(json.dumps({"hooks": events}))
        lines = [
            'model = "fake-model"', 'model_provider = "fake"', "[features]", "plugins = false", "[analytics]",
            "enabled = false", "[model_providers.fake]", 'name = "fake"', f'base_url = "{self.model.url}/v1"',
            'wire_api = "responses"', 'env_key = "FAKE_KEY"', "request_max_retries = 0", "stream_max_retries = 0",
        ]  # fmt: skip
        if self.form == "mcp_tool":
            program, *arguments = self._server
            lines += ["[mcp_servers.lore]", f"command = {json.dumps(program)}", f"args = {json.dumps(arguments)}"]
        (folder / "config.toml").write_text("\n".join(lines) + "\n")
        if events:
            with AppServer(PROGRAMS["codex"] / "node_modules" / ".bin" / "codex", self.environment) as server:
                trust = {hook["key"]: {"trusted_hash": hook["currentHash"]} for hook in server.hooks()}
                server.write([("hooks.state", trust)])

    def arrival(self, marker: str) -> dict[str, Any]:
        """The request that brought a prompt to the model."""
        end = time.monotonic() + PATIENCE
        while True:
            for request in reversed(self.model.requests):
                if request["tools"] and marker in request["text"]:
                    return request
            if time.monotonic() > end:
                raise TimeoutError(f"{self.name}: no request with {marker}")
            time.sleep(0.005)


class Session:
    """A program that stays open and is asked over its stdin."""

    def __init__(self, setting: Setting, command: Sequence[str]) -> None:
        self.setting = setting
        self.blocks = 0
        self._lines: queue.SimpleQueue[dict[str, Any] | None] = queue.SimpleQueue()
        self._process = subprocess.Popen(
            command,
            cwd=setting.folder / "project",
            env=setting.environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self._process.stdout
        for line in self._process.stdout:
            with contextlib.suppress(ValueError):
                self._lines.put(json.loads(line))
        self._lines.put(None)

    def send(self, message: dict[str, Any]) -> None:
        assert self._process.stdin
        self._process.stdin.write(json.dumps(message).encode() + b"\n")
        self._process.stdin.flush()

    def wait(self, is_it: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        while True:
            message = self._lines.get(timeout=PATIENCE)
            if message is None:
                raise RuntimeError(f"{self.setting.name} ended")
            if is_it(message):
                return message

    def ask(self, marker: str) -> float:
        """Milliseconds from a prompt to the model's request; returns when the turn is over."""
        began = time.time()
        self.submit(QUESTION.format(marker))
        request = self.setting.arrival(marker)
        self.settle()
        blocks = request["text"].count("<recall ")
        if self.setting.form in WITH_MEMORY and blocks <= self.blocks:
            raise RuntimeError(f"{self.setting.name}: a prompt without its block")
        self.blocks = blocks
        return float((request["time"] - began) * 1000)

    def submit(self, text: str) -> None:
        raise NotImplementedError

    def settle(self) -> None:
        raise NotImplementedError

    def end(self) -> None:
        assert self._process.stdin
        with contextlib.suppress(OSError):
            self._process.stdin.close()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


class ClaudeSession(Session):
    def __init__(self, setting: Setting) -> None:
        form = ("--input-format", "stream-json", "--output-format", "stream-json", "--verbose")
        super().__init__(setting, ["claude", "-p", *form])

    def submit(self, text: str) -> None:
        self.send({"type": "user", "message": {"role": "user", "content": [{"type": "text", "text": text}]}})

    def settle(self) -> None:
        self.wait(lambda message: message.get("type") == "result")


class CodexSession(Session):
    def __init__(self, setting: Setting) -> None:
        super().__init__(setting, ["codex", "app-server"])
        about = {"name": "bench", "title": "bench", "version": "0"}
        self.send({"id": 1, "method": "initialize", "params": {"clientInfo": about, "capabilities": {}}})
        self.wait(lambda message: message.get("id") == 1)
        self.send({"method": "initialized"})
        start = {"cwd": str(setting.folder / "project"), "approvalPolicy": "never", "sandbox": "read-only"}
        self.send({"id": 2, "method": "thread/start", "params": start})
        self._thread = self.wait(lambda message: message.get("id") == 2)["result"]["thread"]["id"]

    def submit(self, text: str) -> None:
        turn = {"threadId": self._thread, "input": [{"type": "text", "text": text}]}
        self.send({"id": 3, "method": "turn/start", "params": turn})

    def settle(self) -> None:
        self.wait(lambda message: message.get("method") == "turn/completed")


def first_prompt(setting: Setting, marker: str) -> bool:
    """Whether the first prompt of a fresh program reaches the model with its block."""
    fresh = ["claude", "-p"] if setting.program == "claude" else ["codex", "exec", "--skip-git-repo-check"]
    subprocess.run(
        [*fresh, QUESTION.format(marker)],
        cwd=setting.folder / "project",
        env=setting.environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=PATIENCE,
        check=False,
    )
    return "<recall " in setting.arrival(marker)["text"]


def bare_start(home: Home) -> float:
    """Milliseconds that a bare interpreter takes from start to end."""
    began = time.perf_counter()
    subprocess.run([home.bin / "python", "-I", "-S", "-c", ""], check=True)
    return (time.perf_counter() - began) * 1000


@contextlib.contextmanager
def precedence() -> Iterator[bool]:
    """Let this process and what it starts go before all other work, so that a shared machine is as good as idle.

    Answers whether that was allowed; only root on Linux may.
    """
    try:
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))
    except (AttributeError, PermissionError):
        yield False
        return
    try:
        yield True
    finally:
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))


@contextlib.contextmanager
def busy(processes: int) -> Iterator[None]:
    """So many processes that compute all the time."""
    burning = [subprocess.Popen([sys.executable, "-I", "-S", "-c", "while True: pass"]) for _ in range(processes)]
    try:
        yield
    finally:
        for process in burning:
            process.kill()
            process.wait()


@contextlib.contextmanager
def serving(home: Home, settings: Sequence[Setting], state: str) -> Iterator[None]:
    """A service that has what the state gives it, and users who know its port."""
    service.start(home)
    try:
        for setting in settings:
            setting.prepare(state)
        yield
    finally:
        service.stop(home)


@dataclass
class Figures:
    """What one state of the machine gave: milliseconds by setting, successes by setting, the interpreter's start."""

    times: dict[str, list[float]] = field(default_factory=dict)
    first: dict[str, list[bool]] = field(default_factory=dict)
    bare: list[float] = field(default_factory=list)
    alone: bool = False


def measure(settings: Sequence[Setting], home: Home, options: argparse.Namespace, state: str) -> Figures:
    """Everything in one state of the machine."""
    found = Figures()
    with contextlib.ExitStack() as machine, contextlib.ExitStack() as serving_:
        found.alone = machine.enter_context(precedence()) if state == "idle" else False
        if state == "loaded":
            machine.enter_context(busy(os.cpu_count() or 1))
        serving_.enter_context(serving(home, settings, state))
        ask_in_turn(settings, home, options.rounds, found)
        if state == "idle":
            machine.close()  # fresh programs compute for seconds: that would hold up everyone else
        for number in range(options.fresh):
            for setting in settings:
                if setting.form in WITH_MEMORY:
                    worked = first_prompt(setting, f"{state}-{setting.name}-first-{number}.")
                    found.first.setdefault(setting.name, []).append(worked)
            tell(f"{state}: first prompt {number + 1} of {options.fresh}")
    return found


def ask_in_turn(settings: Sequence[Setting], home: Home, rounds: int, found: Figures) -> None:
    """One session for each setting, and so many prompts for each."""
    kinds = {"claude": ClaudeSession, "codex": CodexSession}
    sessions: list[Session] = []
    try:
        sessions.extend(kinds[setting.program](setting) for setting in settings)
        for number in range(-WARM_UP, rounds):
            for at in range(len(sessions)):
                session = sessions[(at + number) % len(sessions)]
                taken = session.ask(f"{session.setting.state}-{session.setting.name}-{number}.")
                if number >= 0:
                    found.times.setdefault(session.setting.name, []).append(taken)
            if number >= 0:
                found.bare.append(bare_start(home))
            tell(f"{settings[0].state}: round {number + 1} of {rounds}")
    finally:
        for session in sessions:
            session.end()


def tell(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def table(figures: dict[str, Figures]) -> str:
    """The figures as Markdown."""
    states = list(figures)
    head = [
        "UserPromptSubmit hook",
        *(f"{state}: median, p90 (added)" for state in states),
        *(f"first prompt, {state}" for state in states),
    ]
    lines = []
    for program, title in (("claude", "Claude Code 2.1.332"), ("codex", "Codex 0.171.0")):
        lines += [f"**{title}**", "", f"| {' | '.join(head)} |", f"|{'---|' * len(head)}"]
        for form in FORMS[program]:
            cells = [WORDS[form]]
            for found in figures.values():
                times = found.times[f"{program}-{form}"]
                added = statistics.median(times) - statistics.median(found.times[f"{program}-none"])
                cells.append(f"{statistics.median(times):.0f}, {_p90(times):.0f} (+{max(added, 0):.0f})")
            for found in figures.values():
                worked = found.first.get(f"{program}-{form}")
                cells.append(f"{sum(worked)} of {len(worked)}" if worked else "–")
            lines.append(f"| {' | '.join(cells)} |")
        lines.append("")
    for state, found in figures.items():
        bare = statistics.median(found.bare)
        for program in FORMS:
            none, true, process = (
                statistics.median(found.times[f"{program}-{form}"]) for form in ("none", "true", "process")
            )
            room = (true - none) + 1.5 * bare
            verdict = "within" if process - none <= room else "above"
            lines.append(
                f"- {state}, {program}: our process adds {process - none:.0f} ms, {verdict} what `true` adds plus 1.5 starts of the "
                f"bare interpreter ({true - none:.0f} + 1.5 × {bare:.0f} = {room:.0f} ms)."
            )
    return "\n".join(lines)


def _p90(times: Sequence[float]) -> float:
    return statistics.quantiles(times, n=10)[-1]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--fresh", type=int, default=20)
    parser.add_argument("--write", type=Path, help="put the figures between the marks of this file")
    options = parser.parse_args()
    with scratch_home(1_000) as home, FakeModel() as model, tempfile.TemporaryDirectory(prefix="hook-forms-") as folder:
        store = Store(home.database)
        glossary = ("production deploy", "deploy")
        create(
            store,
            NodeDraft("project://deploy_checklist", "Blue first.", 2, "When a production deploy is planned", glossary),
            Origin("cli"),
        )
        store.close()
        settings = [
            Setting(program, form, Path(folder) / f"{program}-{form}", home, model)
            for program, forms in FORMS.items()
            for form in forms
        ]
        figures = {state: measure(settings, home, options, state) for state in ("idle", "loaded")}
    text = (
        f"{platform.system()}, {os.cpu_count()} processors, Python {platform.python_version()}, a memory of 1,000 nodes, "
        f"{options.rounds} prompts for each form in turn, {options.fresh} fresh starts. Milliseconds from prompt to the model's "
        f"request. {IDLE[figures['idle'].alone]}\n\n{table(figures)}"
    )
    print(text)
    if options.write:
        before, mark, rest = options.write.read_text().partition(MARKS[0])
        options.write.write_text(f"{before}{mark}\n{text}\n{MARKS[1]}{rest.partition(MARKS[1])[2]}")


if __name__ == "__main__":
    main()
