"""Marks of recalled memories that were opened, waiting for their server in `H/queue.jsonl` (one JSON object a line).

A server logs a recall behind its answer, so a mark is sent a moment later (`lore-contract.md` 8.20); when the server does not
answer, marks wait here, across restarts too, and are dropped after 30 days.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import asdict, dataclass
from datetime import timedelta
from itertools import groupby
from pathlib import Path

from lorehooks.clients.errors import ServerProblem
from lorehooks.core.clock import Clock, system_clock, to_iso
from lorehooks.core.errors import LoreError
from lorehooks.core.files import write_whole

SECONDS = 1.0
"""How long a mark waits, so that the server has logged the recall."""
RETRY_SECONDS = (5.0, 15.0, 60.0, 300.0)
"""Pauses while the server does not answer."""
MOST = 10_000
_DAYS = 30


@dataclass(frozen=True, slots=True)
class Mark:
    """One memory that was opened with the ids of a recall. `server` is the address that recalled it."""

    server: str
    query_id: str
    uri: str
    session_id: str | None
    client_type: str | None
    at: str


class MarkQueue:
    """The waiting marks of a home. One service per home writes it."""

    def __init__(self, path: Path, clock: Clock = system_clock) -> None:
        """Read what waits. Lines that cannot be read are passed over."""
        self.path = path
        self.clock = clock
        self._waiting = self._read()

    def waiting(self, server: str) -> Sequence[Mark]:
        """Marks for a server, oldest first."""
        return [mark for mark in self._waiting if mark.server == server]

    def add(self, mark: Mark) -> None:
        """Queue a mark; the oldest give way when there are far too many."""
        if mark in self._waiting:
            return
        self._waiting.append(mark)
        if len(self._waiting) > MOST:
            del self._waiting[: len(self._waiting) - MOST]
            self._rewrite()
            return
        with contextlib.suppress(OSError), self.path.open("a", encoding="utf-8") as file:
            self.path.chmod(0o600)
            file.write(_line(mark))

    def done(self, marks: Collection[Mark]) -> None:
        """Take delivered marks out, with those that have waited too long."""
        oldest = to_iso(self.clock() - timedelta(days=_DAYS))
        self._waiting = [mark for mark in self._waiting if mark not in marks and mark.at >= oldest]
        self._rewrite()

    def _rewrite(self) -> None:
        with contextlib.suppress(OSError):
            if self._waiting:
                write_whole(self.path, "".join(map(_line, self._waiting)).encode())
            else:
                self.path.unlink(missing_ok=True)

    def _read(self) -> list[Mark]:
        found = []
        try:
            lines = self.path.read_text(encoding="utf-8", errors="replace").splitlines()
        except OSError:
            return []
        for line in lines:
            with contextlib.suppress(ValueError, TypeError):
                found.append(Mark(**json.loads(line)))
        return found


class Courier:
    """Takes waiting marks to one server."""

    def __init__(
        self,
        queue: MarkQueue,
        server: str,
        send: Callable[[Mark, Sequence[str]], Awaitable[object]],
        seconds: float = SECONDS,
    ) -> None:
        """`send` gets the ids of a recall (in any mark of it) and the addresses opened with them."""
        self.queue = queue
        self.server = server
        self._send = send
        self._seconds = seconds
        self._wake = asyncio.Event()

    def add(self, mark: Mark) -> None:
        """Queue a mark, and deliver it soon."""
        self.queue.add(mark)
        self._wake.set()

    async def run(self) -> None:
        """Deliver until cancelled, what waits from before included."""
        failures = 0
        if self.queue.waiting(self.server):
            self._wake.set()
        while True:
            await self._wake.wait()
            self._wake.clear()
            await asyncio.sleep(self._seconds)
            try:
                await self.deliver()
                failures = 0
            except ServerProblem:
                await asyncio.sleep(RETRY_SECONDS[min(failures, len(RETRY_SECONDS) - 1)])
                failures += 1
                self._wake.set()

    async def deliver(self) -> None:
        """Send what waits; what the server refuses is dropped. Raises ServerProblem when it does not answer."""
        for _, group in groupby(sorted(self.queue.waiting(self.server), key=_recall_of), _recall_of):
            marks = list(group)
            try:
                await self._send(marks[0], [mark.uri for mark in marks])
            except ServerProblem:
                raise
            except LoreError:
                pass  # its last word
            self.queue.done(marks)


def _recall_of(mark: Mark) -> tuple[str, str, str]:
    return mark.query_id, mark.session_id or "", mark.client_type or ""


def _line(mark: Mark) -> str:
    return json.dumps(asdict(mark)) + "\n"
