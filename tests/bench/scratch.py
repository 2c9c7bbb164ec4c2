"""Scratch homes with any number of invented memories, a service on them, and a caller that stays connected.

Everything lies below one temporary folder; what was started is ended and what was written removed at the end of the block.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from lorehooks.core.home import Home
from lorehooks.core.model import Node, Origin
from lorehooks.core.store import Store
from lorehooks.hooks import layout, service

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "support"))
from synthetic import synthetic_nodes, synthetic_prompts  # noqa: E402

PATIENCE = 120.0
PAGE = os.sysconf("SC_PAGE_SIZE")
TICK = os.sysconf("SC_CLK_TCK")


@contextlib.contextmanager
def scratch_home(memories: int = 0) -> Iterator[Home]:
    """A laid-out home that holds so many memories; its service, if one runs by then, is ended with the block."""
    with tempfile.TemporaryDirectory(prefix="lore-bench-") as folder:
        home = Home(Path(folder) / ".lore")
        layout.lay(home)
        try:
            fill(home, memories)
            yield home
        finally:
            pid = service.listener(home)
            service.stop(home)
            wait_for(lambda: not pid or not Path(f"/proc/{pid}").exists(), "the service's end")


def fill(home: Home, memories: int, seed: int = 1) -> None:
    """Write so many memories, each below memories for its project and part, in one transaction."""
    store = Store(home.database)
    try:
        with store.transaction(Origin("import")) as transaction:
            for state in states(memories, seed):
                transaction.change("create", None, state)
    finally:
        store.close()


def states(memories: int, seed: int = 1) -> Iterator[dict[str, Any]]:
    """The states of exactly so many memories: projects, and right below them what is known of their parts."""
    written: set[str] = set()
    for node in synthetic_nodes(memories, seed):
        project, part, name = node.path.split("/")
        for path, state in (
            (project, _state(node, f"project://{project}", content=f"Notes on {project}.", glossary=[project])),
            (f"{project}/{part}_{name}", _state(node, f"project://{project}/{part}_{name}")),
        ):
            if path not in written and len(written) < memories:
                written.add(path)
                yield state


def _state(node: Node, uri: str, **other: Any) -> dict[str, Any]:
    return {
        "uri": uri,
        "content": node.content,
        "priority": max(node.priority, 2),  # of the more important ones a memory has few
        "disclosure": node.disclosure,
        "glossary": list(node.glossary),
        **other,
    }


def prompts(count: int) -> list[str]:
    """So many prompts about such memories."""
    return synthetic_prompts(count, 2)


def first_project() -> str:
    """The name of a project that every scratch home with memories has."""
    return synthetic_nodes(1, 1)[0].path.partition("/")[0]


@contextlib.contextmanager
def running(home: Home) -> Iterator[int]:
    """The service of a home, loaded with all its vectors; its process id."""
    service.start(home)
    with Caller(home) as caller:
        wait_for(lambda: caller.get("/hooks/v1/state")["memory"]["index_ready"], "the index")
    yield service.listener(home)
    service.stop(home)


class Caller(http.client.HTTPConnection):
    """A connection to the service's Unix socket that stays open, as the plugins in JavaScript have one."""

    def __init__(self, home: Home) -> None:
        super().__init__("lore", timeout=PATIENCE)
        self._home = home

    def connect(self) -> None:
        self.sock = service.connect(self._home, PATIENCE)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def ask(self, method: str, path: str, body: bytes | None = None, *, ms: int = 60_000) -> bytes:
        """The body of an answer; a hook's has `ms` left. Raises RefusedError for a status that is no success."""
        headers = {"Content-Type": "application/json", "X-Lore-Remaining-Ms": str(ms)}
        try:
            self.request(method, path, body, headers)
            answer = self.getresponse()
        except (http.client.RemoteDisconnected, BrokenPipeError, ConnectionResetError):
            if method not in ("GET", "HEAD") and not path.startswith("/hooks/"):
                raise  # it may have been written: asked again, it would be written twice
            self.close()  # an idle connection was closed by the other side
            self.request(method, path, body, headers)
            answer = self.getresponse()
        content = answer.read()
        if answer.status >= 300:
            raise RefusedError(f"{method} {path}: {answer.status} {content[:500]!r}")
        return content

    def get(self, path: str) -> Any:
        return json.loads(self.ask("GET", path))

    def json(self, method: str, path: str, body: object) -> Any:
        answer = self.ask(method, path, json.dumps(body).encode())
        return json.loads(answer) if answer else None

    def prompt(self, text: str, session: str, cwd: str = "/srv", *, ms: int = 60_000) -> bytes:
        """A prompt by the hook's way: the bytes that Claude Code would get."""
        return self.ask("POST", "/hooks/v1/claudecode/UserPromptSubmit", prompt_payload(text, session, cwd), ms=ms)


class RefusedError(Exception):
    """The service gave another answer than a success."""


def prompt_payload(text: str, session: str, cwd: str = "/srv") -> bytes:
    """What Claude Code writes on the hook's stdin."""
    fields = {"session_id": session, "hook_event_name": "UserPromptSubmit", "cwd": cwd, "prompt": text}
    return json.dumps(fields).encode()


@dataclass(frozen=True, slots=True)
class Spread:
    """Milliseconds of wall clock."""

    p50: float
    p95: float
    p99: float
    count: int

    @classmethod
    def of(cls, milliseconds: Sequence[float]) -> Spread:
        ordered = sorted(milliseconds)
        p50, p95, p99 = (round(ordered[int(len(ordered) * share)], 2) for share in (0.5, 0.95, 0.99))
        return cls(p50, p95, p99, len(ordered))


def timed(call: Callable[[], object]) -> float:
    """Milliseconds that a call takes."""
    began = time.perf_counter()
    call()
    return (time.perf_counter() - began) * 1000


def resident_mb(pid: int) -> float:
    """Resident memory of a process in MB (10^6 bytes); 0 where /proc does not say."""
    try:
        return int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1]) * PAGE / 1e6
    except OSError:
        return 0.0


def cpu_seconds(pid: int) -> float:
    """Processor time a process has used; 0 where /proc does not say."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / TICK


def wait_for(condition: Callable[[], object], what: str) -> None:
    """Poll until a condition holds. Raises TimeoutError."""
    end = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > end:
            raise TimeoutError(f"waited in vain for {what}")
        time.sleep(0.01)


def together(works: Sequence[Callable[[], None]]) -> None:
    """Run each in a thread of its own and wait for all; the first error is raised."""
    errors: list[BaseException] = []

    def guarded(work: Callable[[], None]) -> None:
        try:
            work()
        except BaseException as error:  # noqa: BLE001  it is raised below
            errors.append(error)

    threads = [threading.Thread(target=guarded, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
