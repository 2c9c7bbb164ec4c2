"""Work beside the service that never ends: begun anew when something it depends on changes, paced when it fails."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from lorehooks.core.errors import LoreError

_log = logging.getLogger("lorehooks.service")


@dataclass(frozen=True, slots=True)
class Pace:
    """How long to wait, in seconds."""

    retries: tuple[float, ...] = (1.0, 5.0)
    """Before each further try of the same thing."""
    first_pause: float = 30.0
    """After all of them failed; doubled with each failure that follows."""
    longest_pause: float = 3600.0
    settle: float = 2.0
    """After a write, since agents often write one memory twice."""

    def pause(self, failures: int) -> float:
        """The pause after so many failures in a row."""
        return float(min(self.first_pause * 2 ** min(failures - 1, 20), self.longest_pause))


@dataclass(slots=True)
class Trouble:
    """What went wrong last, how often in a row, and until when nothing is tried."""

    problem: str = ""
    failures: int = 0
    until: float = 0.0

    @property
    def retry_in(self) -> int | None:
        """Seconds until the next try; None when nothing is wrong."""
        return max(0, round(self.until - time.monotonic())) if self.failures else None

    def over(self) -> None:
        """It works again."""
        self.problem, self.failures = "", 0

    async def wait(self, error: LoreError, pace: Pace) -> None:
        """Note a failure and pause, longer each time."""
        self.problem = str(error)
        self.failures += 1
        pause = pace.pause(self.failures)
        self.until = time.monotonic() + pace.pause(self.failures)
        await asyncio.sleep(pause)


class Worker:
    """Runs one piece of work at a time, from its beginning whenever `wake` is called."""

    def __init__(self, work: Callable[[], Awaitable[None]]) -> None:
        self._work = work
        self._wake = asyncio.Event()

    def wake(self) -> None:
        """Break off what runs, where it waits, and begin anew."""
        self._wake.set()

    async def run(self) -> None:
        """Run until cancelled. A defect in the work is logged, and ends it until the next `wake`."""
        while True:
            self._wake.clear()
            working = asyncio.ensure_future(self._guarded())
            waking = asyncio.ensure_future(self._wake.wait())
            try:
                await waking
            finally:
                for task in (working, waking):
                    task.cancel()
                    with contextlib.suppress(asyncio.CancelledError):
                        await task

    async def _guarded(self) -> None:
        try:
            await self._work()
        except Exception:  # noqa: BLE001  (whatever it is, it must not end the service)
            _log.exception("work in the background ended")
