"""Files that answer while the service is not there: boot bytes for session starts, tool lists for bridges, limits.

Written after each change of memory that changes them, a moment later and whole.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from dataclasses import replace

from lorehooks.clients.adapters import HookEvent, adapter_for
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

    async def close(self) -> None:
        if self._task is not None:
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

    async def _soon(self) -> None:
        while True:
            self._again = False
            await asyncio.sleep(_PAUSE_SECONDS)
            with contextlib.suppress(OSError, LoreError):
                await self._write()
            if not self._again:
                return

    async def _write(self) -> None:
        limits = f"{self.machine['hooks.prompt_timeout_ms']} {self.machine['hooks.start_timeout_ms']}\n"
        files = {self.home.run / "limits": limits.encode()}
        guidance = await self.backend.guidance()
        for client_type, runtime in RUNTIMES.items():
            adapter = adapter_for(client_type)
            if adapter is None:
                continue
            files[self.home.tools / f"{client_type}.json"] = _json(ready_answers(client_type, guidance))
            try:
                data = replace(await self.backend.boot(client_type), notice="")
            except LoreError:
                continue  # a server that does not answer: the file of last time stays
            text = render_boot(data, client_type=client_type, language=self.language, budget=runtime.boot_budget)
            event = HookEvent("session.start", client_type, native_event="SessionStart")
            files[self.home.boot / client_type] = adapter.render(event, text)
        for client_type in GENERIC_CLIENTS:
            files[self.home.tools / f"{client_type}.json"] = _json(ready_answers(client_type, guidance))
        for folder in (self.home.boot, self.home.tools):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        for path, wanted in files.items():
            if not path.exists() or path.read_bytes() != wanted:
                write_whole(path, wanted)


def _json(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode()
