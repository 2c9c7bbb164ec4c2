"""Files that answer while the service is not there: boot bytes for session starts, tool lists for bridges, limits.

Written after each change of memory that changes them, a moment later and whole.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from lorehooks.clients.adapters import HookEvent, any_adapter
from lorehooks.clients.backend import Backend
from lorehooks.clients.runtimes import RUNTIMES
from lorehooks.core.boot import render_boot
from lorehooks.core.errors import LoreError
from lorehooks.core.files import write_whole
from lorehooks.core.home import Home
from lorehooks.core.model import GENERIC_CLIENTS
from lorehooks.core.settings import Settings
from lorehooks.hooks.mcp_server import ready_answers

_PAUSE_SECONDS = 0.05
"""Several writes in a row are answered by one pass."""
_END_SECONDS = 1.0
"""What a last pass may take when the service ends: a server that does not answer must not hold it up."""
logger = logging.getLogger(__name__)


class ReadyFiles:
    """Keeps `run/boot`, `run/tools` and `run/limits` in step with the memory."""

    def __init__(self, home: Home, backend: Backend, machine: Settings, language: str) -> None:
        self.home = home
        self.backend = backend
        self.machine = machine
        self.language = language
        self._task: asyncio.Task[None] | None = None
        self._again = False

    def schedule(self) -> None:
        """Write the files soon. Called on the event loop."""
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._soon())
        else:
            self._again = True

    async def write_now(self) -> None:
        """Write the files before going on, after something was forgotten. Raises OSError, LoreError."""
        if self._task is not None and not self._task.done():
            await asyncio.wait([self._task])  # what it is about to write may be older
        files = await self._expected()
        await asyncio.to_thread(self._put, files)

    async def close(self) -> None:
        if self._task is not None:
            with contextlib.suppress(asyncio.CancelledError, TimeoutError):
                await asyncio.wait_for(self._task, _END_SECONDS)

    def boot_bytes(self, client_type: str) -> bytes:
        """What a runtime's session start gets when nothing better can be had; empty when there is no file."""
        try:
            return (self.home.boot / client_type).read_bytes() if client_type in RUNTIMES else b""
        except OSError:
            return b""

    async def stale(self) -> list[str]:
        """Names of files that are missing or say something else than memory does now, as far as memory answers."""
        if self._task is not None and not self._task.done():
            await asyncio.wait([self._task])
        files = await self._expected()
        return await asyncio.to_thread(
            lambda: [str(path.relative_to(self.home.root)) for path, wanted in files.items() if _differs(path, wanted)]
        )

    async def _soon(self) -> None:
        while True:
            self._again = False
            await asyncio.sleep(_PAUSE_SECONDS)
            try:
                files = await self._expected()
                await asyncio.to_thread(self._put, files)
            except (OSError, LoreError) as error:
                logger.warning("ready files not written: %s", error)
            if not self._again:
                return

    async def _expected(self) -> dict[Path, bytes]:
        """Each file with what it should say. A runtime whose boot the memory does not give now is left out."""
        limits = f"{self.machine['hooks.prompt_timeout_ms']} {self.machine['hooks.start_timeout_ms']}\n"
        files = {self.home.run / "limits": limits.encode()}
        guidance = await self.backend.guidance()
        for client_type in (*RUNTIMES, *GENERIC_CLIENTS):
            files[self.home.tools / f"{client_type}.json"] = _json(ready_answers(client_type, guidance))
        for client_type, runtime in RUNTIMES.items():
            try:
                data = replace(await self.backend.boot(client_type), notice="")
            except LoreError:
                continue  # a server that does not answer: the file of last time stays
            text = render_boot(data, client_type=client_type, language=self.language, budget=runtime.boot_budget)
            event = HookEvent("session.start", client_type, native_event="SessionStart")
            files[self.home.boot / client_type] = any_adapter(client_type).render(event, text)
        return files

    def _put(self, files: Mapping[Path, bytes]) -> None:
        for folder in (self.home.boot, self.home.tools):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        for path, wanted in files.items():
            if _differs(path, wanted):
                write_whole(path, wanted)


def _differs(path: Path, wanted: bytes) -> bool:
    try:
        return path.read_bytes() != wanted
    except OSError:
        return True


def _json(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode()
