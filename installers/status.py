"""What is connected and whether it works, told quickly: nothing is started, and no host program is run (`doctor` does that)."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from lorehooks.clients import config
from lorehooks.clients.config import EMBEDDED
from lorehooks.clients.runtimes import RUNTIMES
from lorehooks.clients.target import Target, resolve
from lorehooks.core.clock import from_iso
from lorehooks.core.errors import LoreError, NotFoundError
from lorehooks.core.home import Home
from lorehooks.core.model import BOOT_URIS
from lorehooks.core.readonly import looking_into
from lorehooks.hooks import service
from lorehooks.hooks.misses import Miss, Misses
from lorehooks.installers import codexstate, receipt, zcode
from lorehooks.installers.modelstate import ModelStatus, models_of
from lorehooks.installers.plan import Context

_DAY_MS = 86_400_000
_SECONDS = 3.0


@dataclass(frozen=True, slots=True)
class MemoryStatus:
    """The memory in use. Counts are None for a server that is not on this machine, or a memory that cannot be read."""

    address: str
    reachable: bool
    version: str = ""
    memories: int | None = None
    boot_written: int | None = None
    boot_total: int | None = None
    pending: int | None = None
    problem: str = ""


@dataclass(frozen=True, slots=True)
class RuntimeStatus:
    """One installed runtime. `state` is `installed` or `interrupted`; the last hook is None before the first."""

    runtime: str
    label: str
    state: str
    last_event: str | None
    last_at: str | None
    misses: int
    last_miss: str
    hooks: Mapping[str, str]
    """The host's names of our events and how it stands to each, where its own files tell (`_STATES`); `unreadable` is one."""

    @property
    def idle_hooks(self) -> dict[str, list[str]]:
        """What keeps the host from running hooks of ours, and which."""
        found: dict[str, list[str]] = {}
        for event, state in self.hooks.items():
            if state not in ("trusted", "registered"):
                found.setdefault(state, []).append(event)
        return found


@dataclass(frozen=True, slots=True)
class Status:
    home: str
    memory: MemoryStatus
    running: bool
    answering: bool
    pid: int | None
    port: int | None
    version: str
    runtimes: tuple[RuntimeStatus, ...]
    problems: tuple[str, ...]
    models: tuple[ModelStatus, ...] = ()
    """Endpoints of models in use."""


def look(home: Home, environment: Mapping[str, str] = os.environ) -> Status:
    """Read everything. Raises nothing: what cannot be read is a problem in the answer."""
    settings = config.load_or_defaults(home)
    now = service.status(home)
    info = now.info
    return Status(
        home=str(home.root),
        memory=memory(home, resolve(home, settings, environment)),
        running=now.running,
        answering=now.answering,
        pid=info.pid if info else None,
        port=info.port if info else None,
        version=info.version if info else "",
        runtimes=_runtimes(home, environment),
        problems=settings.problems,
        models=models_of(home) if now.answering else (),
    )


def age(at: str, now: datetime) -> str:
    """How long ago, in one unit."""
    seconds = max(0, int((now - from_iso(at)).total_seconds()))
    for size, unit in ((86_400, "day"), (3_600, "hour"), (60, "minute")):
        if seconds >= size:
            count = seconds // size
            return f"{count} {unit}{'s' if count > 1 else ''} ago"
    return "just now"


def memory(home: Home, target: Target) -> MemoryStatus:
    """Whether the memory in use can be reached, and what is in it."""
    if target.problem:
        return MemoryStatus(target.address, reachable=False, problem=target.problem)
    return _embedded(home) if target.address == EMBEDDED else _remote(target)


def _embedded(home: Home) -> MemoryStatus:
    marks = ",".join("?" * len(BOOT_URIS))
    missing = "No memory yet; the first use makes one"
    try:
        with looking_into(home.database, missing=missing, hint="lore remember") as memory:
            (count,) = memory.execute(f"SELECT count(*) FROM nodes WHERE uri NOT IN ({marks})", BOOT_URIS).fetchone()  # noqa: S608  only ?
            (written,) = memory.execute(
                f"SELECT count(*) FROM nodes WHERE trim(content) <> '' AND uri IN ({marks})",  # noqa: S608  only ?
                BOOT_URIS,
            ).fetchone()
            (pending,) = memory.execute("SELECT count(*) FROM proposals WHERE status = 'pending'").fetchone()
    except NotFoundError as error:
        return MemoryStatus(
            EMBEDDED, reachable=True, memories=0, boot_written=0, boot_total=len(BOOT_URIS), problem=error.message
        )
    except LoreError as error:
        return MemoryStatus(EMBEDDED, reachable=False, problem=str(error))
    return MemoryStatus(
        EMBEDDED, reachable=True, memories=count, boot_written=written, boot_total=len(BOOT_URIS), pending=pending
    )


def _remote(target: Target) -> MemoryStatus:
    from lorehooks.clients.client import LoreClient  # brings httpx

    endpoint = target.endpoint
    if endpoint is None or (target.ssh is not None and endpoint.socket is not None and not endpoint.socket.exists()):
        return MemoryStatus(target.address, reachable=False, problem="The way there opens when the service starts")

    async def ask() -> MemoryStatus:
        async with LoreClient(endpoint, seconds=_SECONDS) as client:
            health = await client.health()
            await client.domains()  # health is open to everyone; this needs the token
            return MemoryStatus(target.address, reachable=health.status == "ok", version=health.version)

    try:
        return asyncio.run(ask())
    except LoreError as error:
        return MemoryStatus(target.address, reachable=False, problem=str(error))


_STATES: Mapping[str, Callable[[Context], dict[str, str]]] = {
    "codex": codexstate.hook_states,
    "zcode": zcode.hook_states,
}
"""Runtimes that may leave registered hooks unused, or lose them: what their files say, without running them."""


def _hooks(runtime: str, home: Home, environment: Mapping[str, str]) -> dict[str, str]:
    if runtime not in _STATES:
        return {}
    user = Path(environment.get("HOME") or Path.home())
    try:
        return _STATES[runtime](Context(home, user, environment))
    except LoreError:
        return {"all": "unreadable"}


def _runtimes(home: Home, environment: Mapping[str, str]) -> tuple[RuntimeStatus, ...]:
    since = time.time() * 1000 - _DAY_MS
    missed: dict[str, list[Miss]] = {}
    for miss in Misses(home.misses).read():
        if miss.at_ms >= since:
            missed.setdefault(miss.client_type, []).append(miss)
    last = _last_hooks(home)
    return tuple(
        RuntimeStatus(
            runtime=each.runtime,
            label=RUNTIMES[each.runtime].label,
            state="installed" if each.state == "installed" else "interrupted",
            last_event=last.get(each.runtime, (None, None))[0],
            last_at=last.get(each.runtime, (None, None))[1],
            misses=len(missed.get(each.runtime, ())),
            last_miss=missed[each.runtime][-1].reason.replace("_", " ") if each.runtime in missed else "",
            hooks=_hooks(each.runtime, home, environment),
        )
        for each in receipt.installed(home)
    )


def _last_hooks(home: Home) -> dict[str, tuple[str | None, str | None]]:
    """The latest hook run of each runtime: event and moment."""
    try:
        with looking_into(home.records, missing="", hint="") as records:
            rows = records.execute("SELECT client_type, event, max(at) AS at FROM runs GROUP BY client_type").fetchall()
    except (LoreError, sqlite3.Error):
        return {}
    return {row["client_type"]: (row["event"], row["at"]) for row in rows}
