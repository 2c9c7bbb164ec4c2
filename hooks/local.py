"""The way of a command to the memory: the local service, started when it does not run."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from lorehooks.clients.client import SECONDS, LoreClient
from lorehooks.clients.endpoint import LOCAL_URL, Endpoint
from lorehooks.core.home import Home
from lorehooks.hooks import service


@asynccontextmanager
async def connect_local(home: Home, *, seconds: float = SECONDS) -> AsyncIterator[LoreClient]:
    """A client of this home's service over its Unix socket, which needs no token. `seconds` is the deadline of a call.

    With a remote server the service passes the calls on. Raises LoreError when the service does not start.
    """
    home = Home(home.root.absolute())
    await asyncio.to_thread(service.start, home)
    async with LoreClient(Endpoint(LOCAL_URL, socket=home.socket, name="The local service"), seconds=seconds) as client:
        yield client
