"""Which project a session works in, asked of the disk aside: a folder on a dead network drive must hold up nobody."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from pathlib import PurePath

from lorehooks.core.repository import repository_of

SECONDS = 0.3
"""How long a folder may take to say whose repository it is."""
_MOST = 32
"""Folders that may be silent at the same time, each with a thread that waits for it."""

_KNOWN_SECONDS = 10.0
"""How long an answer holds: a repository seldom gets another name, and a thread for each prompt of eight agents is dear."""
_MOST_KNOWN = 256

Names = tuple[str | None, str | None]
"""(name of the folder, name of the repository around it), each None where it cannot be told."""


class Whereabouts:
    """Answers for all sessions of the service. One folder that does not answer costs one thread and, once, `seconds`."""

    def __init__(self, seconds: float = SECONDS) -> None:
        self._seconds = seconds
        self._asked: dict[str, asyncio.Future[Names]] = {}
        self._silent: set[str] = set()
        self._known: dict[str, tuple[float, Names]] = {}
        """Folder to when it answered, and what."""

    async def of(self, cwd: str) -> Names:
        """The names for a working folder; of one that does not answer in time, only its own."""
        since, names = self._known.get(cwd, (-_KNOWN_SECONDS, (None, None)))
        if time.monotonic() - since < _KNOWN_SECONDS:
            return names
        by_name: Names = (PurePath(cwd).name or None, None)
        if cwd in self._silent or (cwd not in self._asked and len(self._asked) >= _MOST):
            return by_name
        try:
            async with asyncio.timeout(self._seconds):
                return await asyncio.shield(self._asked.get(cwd) or self._ask(cwd))
        except TimeoutError:
            self._silent.add(cwd)
            return by_name

    def _ask(self, cwd: str) -> asyncio.Future[Names]:
        loop = asyncio.get_running_loop()
        asked = self._asked[cwd] = loop.create_future()

        def answered(names: Names) -> None:
            del self._asked[cwd]
            self._silent.discard(cwd)
            if len(self._known) >= _MOST_KNOWN:
                self._known.clear()
            self._known[cwd] = (time.monotonic(), names)
            asked.set_result(names)

        def look() -> None:
            names = repository_of(cwd)
            with contextlib.suppress(RuntimeError):  # the loop has ended meanwhile
                loop.call_soon_threadsafe(answered, names)

        # No pool: its threads are waited for when the process ends, and one that waits for a dead drive never does.
        threading.Thread(target=look, name="lore-whereabouts", daemon=True).start()
        return asked
