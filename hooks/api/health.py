"""`GET /health`: whether the service and its database answer. Needs no token."""

from __future__ import annotations

from typing import Literal

from lorehooks.core.errors import LoreError
from lorehooks.hooks.api.operation import Answer, Call, Operation, operation
from lorehooks.hooks.serviceinfo import installed_version

operations: list[Operation] = []


class Cache(Answer):
    """The public server names its cache of recall rows here; ours has the whole index in memory."""

    provider: Literal["local"] = "local"
    ok: bool = True


class Health(Answer):
    status: Literal["ok", "degraded"]
    database: Literal["connected", "disconnected"]
    cache: Cache
    version: str
    server: Literal["lorehooks"] = "lorehooks"
    index_ready: bool
    """Whether every memory can be recalled yet; false for a moment after a start."""

    @property
    def status_code(self) -> int:
        return 200 if self.status == "ok" else 503


@operation(operations, "GET", "/health", "Whether the server and its database answer")
async def health(call: Call) -> Health:
    backend = call.parts.backend
    try:
        await backend.status()
        connected = True
    except LoreError:
        connected = False
    return Health(
        status="ok" if connected else "degraded",
        database="connected" if connected else "disconnected",
        cache=Cache(),
        version=installed_version(),
        index_ready=backend.ready.is_set(),
    )
