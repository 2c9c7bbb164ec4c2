"""The way to a remote server: its client, the breaker before it, the tunnel to it where there is one."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from lorehooks.clients.breaker import Breaker
from lorehooks.clients.client import LoreClient
from lorehooks.clients.endpoint import Endpoint
from lorehooks.clients.errors import DeadlineError, UnreachableError
from lorehooks.clients.target import Target
from lorehooks.clients.tunnel import Tunnel, tunnel_socket
from lorehooks.core.home import Home

Answer = TypeVar("Answer")


class Link:
    """One server for the life of the service."""

    def __init__(self, target: Target, home: Home, client: LoreClient | None = None) -> None:
        """`client` replaces the one that the target's endpoint gives."""
        self.target = target
        self.breaker = Breaker(target.address)
        self._client = client or LoreClient(target.endpoint or Endpoint(target.address), hops=1)
        self._tunnel = Tunnel(target.ssh, tunnel_socket(home), agent=target.agent) if target.ssh else None

    async def ask(self, call: Callable[[LoreClient], Awaitable[Answer]], seconds: float | None = None) -> Answer:
        """Make one call, unless the breaker is open. `seconds` is what reaching the server through a tunnel may take.

        Raises what the call raises, PausedError, and UnreachableError for a target that is wrong.
        """
        if self.target.problem:
            raise UnreachableError(self.target.problem)
        async with self.breaker.attempt():
            if self._tunnel is None:
                return await call(self._client)
            await self._reach(self._tunnel, seconds or self._client.seconds)
            try:
                return await call(self._client)
            except UnreachableError:
                await self._tunnel.close()  # the far service may have ended: a new ssh starts it again
                raise

    async def close(self) -> None:
        """End connections and tunnel."""
        await self._client.close()
        if self._tunnel is not None:
            await self._tunnel.close()

    async def _reach(self, tunnel: Tunnel, seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds):
                await tunnel.ensure()
        except TimeoutError:
            raise DeadlineError(
                f"{self.target.address} did not answer within {seconds:g} s", hint="lore doctor"
            ) from None
