"""The running service: the app on both sockets, until a signal, idleness or the loss of its home ends it."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import logging.handlers
import signal
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import uvicorn

from lorehooks.core.home import Home
from lorehooks.hooks import lease, serviceinfo
from lorehooks.hooks.claim import BACKLOG, Claim
from lorehooks.hooks.guard import LOCAL, Reach

LAST_RESORT = 4
"""Seconds after which an ending that hangs is cut short."""
GRACE = 2
"""Seconds that requests get to finish once the end has begun."""
LOG_BYTES = 1 << 20
_SWITCH_SECONDS = 0.0005
"""How long a thread that writes records or rebuilds may hold up the loop; Python's own 5 ms are longer than a recall."""
logger = logging.getLogger("lorehooks.service")


def log_to_file(home: Home) -> None:
    """Send what the service and uvicorn say to `run/service.log`, kept small."""
    handler = logging.handlers.RotatingFileHandler(
        home.log,
        maxBytes=LOG_BYTES,
        backupCount=1,
        encoding="utf-8",
        delay=True,  # a log that cannot be opened then costs its lines, not the service
    )
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    logging.basicConfig(level=logging.INFO, handlers=[handler], force=True)
    logging.captureWarnings(capture=True)
    for loud in ("uvicorn.access", "httpx", "mcp"):
        logging.getLogger(loud).setLevel(logging.WARNING)


class Server(uvicorn.Server):
    """uvicorn without its signal handlers, which would raise the signal again after an orderly end."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def serve_until_ended(claim: Claim, *, idle_after: float | None, reach: Reach = LOCAL) -> None:
    """Load the app and serve until the end. `idle_after`: seconds without use, None for never."""
    from lorehooks.hooks.app import create_app

    app = create_app(claim.home, reach)
    server = Server(
        uvicorn.Config(
            app,
            log_config=None,
            access_log=False,
            lifespan="on",
            loop="asyncio",
            http="h11",
            ws="none",
            backlog=BACKLOG,
            server_header=False,
            timeout_graceful_shutdown=GRACE,
        )
    )

    def end(why: str) -> None:
        if not server.should_exit:
            logger.info("ends: %s", why)
            signal.alarm(LAST_RESORT)  # its default action ends the process, whatever hangs
        server.should_exit = True

    app.state.settled = (
        gc.freeze
    )  # looking through 10,000 memories for garbage, which they are not, stops all for 0.1 s
    if idle_after is not None:
        app.state.end = end  # a background service may end at any time; `lore serve` is the person's own

    async def run() -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, end, signal.Signals(number).name)
        watch = asyncio.create_task(_watch(claim, app.state, idle_after, end))
        await server.serve(sockets=[claim.unix, claim.tcp])
        watch.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await watch  # had it failed, the log should say so

    sys.setswitchinterval(_SWITCH_SECONDS)
    logger.info("serves %s on port %d, version %s", claim.home.root, claim.info.port, claim.info.version)
    asyncio.run(run())
    signal.alarm(0)


async def _watch(claim: Claim, state: Any, idle_after: float | None, end: Callable[[str], None]) -> None:
    """Renew the lease; end the service when it is idle, its home was moved away, or its release was replaced."""
    pause = min(lease.RENEW, (idle_after or lease.RENEW) / 4)
    renewed, replaced = time.monotonic(), 0
    while True:
        await asyncio.sleep(pause)
        now = time.monotonic()
        activity = getattr(state, "activity", None)  # None until the app has opened its files
        idle = now - activity.last_use if activity else 0.0
        if idle_after is not None and idle > idle_after:
            end(f"not used for {idle:.0f} s")
        if not claim.holds_home():
            end("the home was moved, removed or taken over")
        elif now - renewed >= lease.RENEW:
            renewed = now
            try:
                lease.write_lease(claim.home)
            except OSError as error:
                logger.warning("lease not renewed: %s", error)
        # An upgrade takes the package away for a moment: only what is seen twice counts.
        replaced = replaced + 1 if serviceinfo.installed_version() != claim.info.version else 0
        if replaced > 1:
            end("another release was installed")
