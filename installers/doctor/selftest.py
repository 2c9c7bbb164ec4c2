"""Hooks and tools run for real, exactly as registered, in a session of a reserved name that no record keeps."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from lorehooks.clients.runtimes import EventKind, Runtime
from lorehooks.core.errors import LoreError
from lorehooks.core.home import Home
from lorehooks.core.model import SELF_TEST
from lorehooks.hooks.localhttp import local_answer
from lorehooks.hooks.replay import sent_text
from lorehooks.installers.plan import Context
from lorehooks.installers.registered import registered_bridge, registered_process

EVENTS: tuple[EventKind, ...] = ("session.start", "prompt.submit", "subagent.start")
WORDS = {"session.start": "session start", "prompt.submit": "prompt", "subagent.start": "subagent"}
_SECONDS = 10.0
_INITIALIZE = {
    "protocolVersion": "2025-06-18",
    "capabilities": {},
    "clientInfo": {"name": "lore-doctor", "version": "1"},
}


@dataclass(frozen=True, slots=True)
class Tried:
    """One thing that was tried: how long it took in milliseconds, and what was wrong, empty when nothing was."""

    what: str
    ms: float
    wrong: str


def try_runtime(context: Context, runtime: Runtime, *, subagents: bool = True) -> Iterator[Tried]:
    """Every event whose answer reaches the model, then the tools. Raises nothing for what does not work.

    `subagents` is the setting `hooks.subagent_boot`, without which their event stays silent.
    """
    for event in EVENTS:
        if event in runtime.contexts and (subagents or event != "subagent.start"):
            yield _timed(WORDS[event], partial(_try_event, context, runtime, event))
    yield _timed("tools", partial(_try_tools, context, runtime))


def _timed(what: str, act: Callable[[], str]) -> Tried:
    began = time.perf_counter()
    wrong = act()
    return Tried(what, (time.perf_counter() - began) * 1000, wrong)


def _try_event(context: Context, runtime: Runtime, event: EventKind) -> str:
    body = {
        "session_id": SELF_TEST,
        "hook_event_name": runtime.events.get(event, event),
        "cwd": str(context.user_home),
        "source": "startup",
        "prompt": "Self-test of lore doctor",
        "agent_id": SELF_TEST if event == "subagent.start" else None,
    }
    if runtime.form == "plugin":  # its file speaks to the same socket from inside the host
        path = f"/hooks/v1/{runtime.client_type}/{event}"
        try:
            answer = _ask(context.home, path, {name: value for name, value in body.items() if value})
        except LoreError as error:
            return str(error)
    else:
        command = registered_process(context.home, runtime.client_type, event)
        seconds = runtime.host_timeout_ms[event] / 1000
        answer, wrong = _run(context, command, json.dumps(body).encode(), seconds)
        if wrong:
            return wrong
    if not answer:
        return "it stayed silent"
    try:
        json.loads(answer)
    except ValueError:
        return f"it answered what is no JSON: {answer[:60]!r}"
    return "" if sent_text(answer).strip() else "its answer holds no text"


def _try_tools(context: Context, runtime: Runtime) -> str:
    """The service's tools, and where the host starts our bridge, the bridge."""
    path = f"/hooks/v1/{runtime.client_type}/tool"
    try:
        answer = json.loads(_ask(context.home, path, {"name": "lore_status", "arguments": {}, "session_id": SELF_TEST}))
        if answer.get("is_error"):
            return f"lore_status: {answer.get('text')}"
    except (LoreError, ValueError) as error:
        return str(error)
    return _try_bridge(context, runtime) if runtime.form == "hook" else ""


def _try_bridge(context: Context, runtime: Runtime) -> str:
    messages = (
        {"id": 1, "method": "initialize", "params": _INITIALIZE},
        {"method": "notifications/initialized"},
        {"id": 2, "method": "tools/list"},
    )
    lines = "".join(json.dumps({"jsonrpc": "2.0", **message}) + "\n" for message in messages)
    answer, wrong = _run(context, registered_bridge(context.home, runtime.client_type), lines.encode(), _SECONDS)
    if wrong:
        return wrong
    try:
        answers = {each.get("id"): each for each in map(json.loads, answer.splitlines())}
        return "" if answers[2]["result"]["tools"] else "the bridge lists no tools"
    except (ValueError, KeyError, TypeError, AttributeError):
        return f"the bridge answered {answer[:60]!r}" if answer else "the bridge stayed silent"


def _run(context: Context, command: Sequence[str], data: bytes, seconds: float) -> tuple[bytes, str]:
    """What a command of ours printed, and what was wrong with that in the eyes of a host."""
    try:
        done = subprocess.run(
            [*command],
            input=data,
            env=dict(context.environment),
            cwd="/",
            capture_output=True,
            check=False,
            timeout=seconds,
        )
    except subprocess.TimeoutExpired:
        return b"", f"it did not end within {seconds:g} s"
    except OSError as error:
        return b"", f"it could not be started: {error.strerror}"
    if done.returncode:
        return b"", f"exit code {done.returncode}"
    if done.stderr:
        return b"", f"it wrote to stderr: {done.stderr[:100].decode(errors='replace')}"
    return done.stdout, ""


def _ask(home: Home, path: str, body: object) -> bytes:
    with local_answer(home, "POST", path, body=body, seconds=_SECONDS) as answer:
        return answer.read()
