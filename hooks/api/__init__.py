"""The Lore API under `/api`: the routes of the public Lore server that its clients call, and ours (docs/compatibility.md).

The first request imports the routes: hooks come over the same socket, need none of this, and must not wait for it.
"""

from __future__ import annotations

import asyncio

from starlette.routing import BaseRoute, Mount
from starlette.types import ASGIApp, Receive, Scope, Send


class _Api:
    """The ASGI application of the API, loaded in a thread when it is first asked."""

    def __init__(self) -> None:
        self._router: ASGIApp | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._router is None:
            self._router = await asyncio.to_thread(_load)
        await self._router(scope, receive, send)


def _load() -> ASGIApp:
    from lorehooks.hooks.api.table import router

    return router()


def api_routes() -> list[BaseRoute]:
    """What `hooks.app` mounts under `/api`."""
    return [Mount("", app=_Api())]
