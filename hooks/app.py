"""The one ASGI application of the service: hooks, tools, MCP and the Lore API, over the Unix socket and over TCP."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import sys
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Mount, Route, Router
from starlette.types import ASGIApp, Receive, Scope, Send

from lorehooks.clients.adapters.payload import decode
from lorehooks.clients.backend import Backend
from lorehooks.clients.config import Config, load_or_defaults
from lorehooks.clients.embedded import EmbeddedBackend
from lorehooks.clients.errors import UnsupportedError
from lorehooks.clients.open import open_backend
from lorehooks.clients.target import resolve
from lorehooks.core.backup import automatic_backup
from lorehooks.core.errors import LoreError
from lorehooks.core.guidance import resolve_language
from lorehooks.core.home import Home
from lorehooks.core.ledger import Ledger
from lorehooks.core.model import known_client
from lorehooks.core.runs import Recorder
from lorehooks.core.tools import call_tool, tool_definitions
from lorehooks.hooks.dispatch import Dispatcher
from lorehooks.hooks.forward import Forwarding
from lorehooks.hooks.guard import LOCAL, Guard, Reach
from lorehooks.hooks.mcp_server import create_mcp_app
from lorehooks.hooks.misses import Misses
from lorehooks.hooks.ready import ReadyFiles
from lorehooks.hooks.toolcall import tool_context

if TYPE_CHECKING:
    from lorehooks.clients.remote import RemoteBackend

_HOUSEKEEPING_SECONDS = 3600
_AGAIN_SECONDS = 10
_DEFAULT_REMAINING_MS = 2000.0
logger = logging.getLogger(__name__)


@dataclass(slots=True)
class Activity:
    """When the service was last of use, so that an idle one can end."""

    last_use: float = field(default_factory=time.monotonic)
    answering: int = 0
    """How many prompts are being answered."""

    def touch(self) -> None:
        self.last_use = time.monotonic()

    def is_busy(self) -> bool:
        """Whether somebody waits who must not wait long, so that other work gives way."""
        return self.answering > 0


class Prompts:
    """ASGI middleware that counts the prompts being answered, from their first byte to the last of their answers."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = scope.get("path", "")
        if scope["type"] != "http" or not (path.startswith("/hooks/v1/") or path == "/api/browse/recall"):
            await self.app(scope, receive, send)
            return
        activity: Activity = scope["app"].state.activity
        activity.answering += 1
        try:
            await self.app(scope, receive, send)
        finally:
            activity.answering -= 1


class Parts:
    """What the service is made of, opened at start and closed at its end."""

    def __init__(self, home: Home, config: Config) -> None:
        self.home = home
        self.config = config
        self.language = resolve_language(config.settings["language"], os.environ)
        self.activity = Activity()
        self.misses = Misses(home.misses)
        self.recorder = Recorder(home.records)
        self.ledger = Ledger(self.recorder.database.query, self.recorder.put)
        self.target = resolve(home, config, os.environ)
        self.memory = open_backend(
            self.target, home, self.recorder, config.settings, language=self.language, on_change=self._changed
        )
        if isinstance(self.memory, EmbeddedBackend):
            self.memory.live.busy = self.activity.is_busy
        self.ready = ReadyFiles(home, self.memory, config.settings, self.language)
        self.dispatcher = Dispatcher(
            self.memory,
            self.ledger,
            self.recorder,
            self.misses,
            config.settings,
            self.language,
            ready=self.ready.boot_bytes,
        )

    @property
    def backend(self) -> EmbeddedBackend:
        """The embedded memory, for what looks into its store. Raises UnsupportedError with a remote server."""
        if not isinstance(self.memory, EmbeddedBackend):
            raise UnsupportedError(f"The memory is kept by {self.memory.name}", hint="do it there")
        return self.memory

    @property
    def remote(self) -> RemoteBackend | None:
        """The remote server, when the memory is kept by one."""
        return None if isinstance(self.memory, EmbeddedBackend) else self.memory

    @property
    def for_tools(self) -> ForTools:
        return ForTools(self.memory, self.ledger, self.language)

    def _changed(self) -> None:
        self.ready.schedule()

    async def close(self) -> None:
        await self.ready.close()
        await asyncio.to_thread(self.recorder.close)
        await self.memory.close()


@dataclass(frozen=True, slots=True)
class ForTools:
    """What MCP needs, whoever keeps the memory."""

    backend: Backend
    ledger: Ledger
    language: str


def create_app(home: Home, reach: Reach = LOCAL) -> Starlette:
    """Build the application of one home; its files are opened when it starts. Raises nothing for a bad `config.toml`.

    `reach` says by which names it may be asked over TCP.
    """
    mcp = create_mcp_app(lambda request: request.app.state.parts.for_tools)

    @contextlib.asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        parts = app.state.parts = Parts(home, load_or_defaults(home))
        app.state.activity = parts.activity
        background = [
            asyncio.create_task(_load(parts, getattr(app.state, "settled", lambda: None))),
            asyncio.create_task(_housekeeping(parts)),
        ]
        parts.ready.schedule()
        try:
            yield
        finally:
            for task in background:
                task.cancel()
            await asyncio.gather(*background, return_exceptions=True)
            await mcp.close()
            await parts.close()

    routes: list[BaseRoute] = [
        Route("/hooks/v1/alive", _alive, methods=["POST"]),
        Route("/hooks/v1/flush", _flush, methods=["POST"]),
        Route("/hooks/v1/reload", _reload, methods=["POST"]),
        Route("/hooks/v1/state", _state, methods=["GET"]),
        Route("/hooks/v1/tools", _tools, methods=["GET"]),
        Route("/hooks/v1/{client_type}/tool", _tool, methods=["POST"]),
        Route("/hooks/v1/{client_type}/{event}", _hook, methods=["POST"]),
    ]
    from lorehooks.hooks.api import api_routes

    routes.append(Route("/api/mcp", mcp))
    routes.append(Mount("/api", app=Forwarding(Router(api_routes()))))
    app = Starlette(routes=routes, lifespan=lifespan)
    app.add_middleware(Prompts)
    app.add_middleware(Guard, home=home, reach=reach)
    return app


async def _load(parts: Parts, settled: Callable[[], object]) -> None:
    """The memory's own work beside the service. Without it recall waits for ever, so what ends it is told and tried again.

    `settled` is called when everything is loaded.
    """
    while True:
        try:
            await parts.memory.load()
        except Exception:
            logger.exception("the memory's own work failed and begins again in %d s", _AGAIN_SECONDS)
            await asyncio.sleep(_AGAIN_SECONDS)
        else:
            settled()
            return


async def _housekeeping(parts: Parts) -> None:
    while True:
        settings = parts.config.settings
        with contextlib.suppress(LoreError):  # a file that is damaged or was taken away is noticed where it is written
            await asyncio.to_thread(parts.recorder.prune, settings["records.days"], settings["records.megabytes"])
        parts.misses.cut()
        if isinstance(parts.memory, EmbeddedBackend):
            try:
                await asyncio.to_thread(
                    automatic_backup,
                    parts.home,
                    every_hours=settings["backup.every_hours"],
                    keep=settings["backup.keep"],
                    now=parts.memory.store.clock(),
                )
            except (LoreError, OSError) as error:
                logger.warning("no automatic backup: %s", error)
        await asyncio.sleep(_HOUSEKEEPING_SECONDS)


async def _hook(request: Request) -> Response:
    parts: Parts = request.app.state.parts
    parts.activity.touch()
    try:
        remaining = float(request.headers.get("x-lore-remaining-ms", _DEFAULT_REMAINING_MS))
    except ValueError:
        remaining = _DEFAULT_REMAINING_MS
    body = await request.body()
    output = await parts.dispatcher.handle(
        request.path_params["client_type"], request.path_params["event"], body, remaining
    )
    return Response(output, media_type="application/json")


async def _alive(request: Request) -> Response:
    request.app.state.activity.touch()
    return Response(status_code=204)


async def _flush(request: Request) -> Response:
    """Write down what has been recorded so far, for `lore replay`, which reads the file."""
    parts: Parts = request.app.state.parts
    written = await asyncio.to_thread(parts.recorder.flush)
    return JSONResponse({"written": written})


async def _reload(request: Request) -> Response:
    """End, so that the next use starts a service with what `config.toml` says now."""
    end = getattr(request.app.state, "end", None)
    if end is None:
        return JSONResponse({"detail": "This service runs in the foreground", "code": "conflict"}, 409)
    end("its settings were changed")
    return Response(status_code=204)


async def _state(request: Request) -> Response:
    """What only the running service knows of itself, for `lore doctor`."""
    parts: Parts = request.app.state.parts
    recorder = parts.recorder
    memory: dict[str, object] = {"address": parts.memory.name}
    if isinstance(parts.memory, EmbeddedBackend):
        memory |= parts.memory.state()
    return JSONResponse(
        {
            "version": parts.dispatcher.release,
            "environment": sys.prefix,
            "memory": memory,
            "records": {"waiting": recorder.waiting, "dropped": recorder.dropped, "error": recorder.last_error},
            "stale_files": await parts.ready.stale(),
        }
    )


async def _tools(_request: Request) -> Response:
    return JSONResponse({"tools": tool_definitions()})


async def _tool(request: Request) -> Response:
    parts: Parts = request.app.state.parts
    parts.activity.touch()
    client_type = known_client(request.path_params["client_type"])
    if client_type is None:
        return JSONResponse({"text": "No such client", "is_error": True}, status_code=404)
    body = decode(await request.body())
    arguments = body.get("arguments") or {} if isinstance(body, dict) else None
    if not isinstance(body, dict) or not isinstance(body.get("name"), str) or not isinstance(arguments, dict):
        return JSONResponse(
            {"text": "A tool call is {name, arguments, session_id?}", "is_error": True}, status_code=400
        )
    name, session_id = body["name"], body.get("session_id")
    context = tool_context(parts.ledger, parts.language, tool=name, client_type=client_type, session_id=session_id)
    result = await call_tool(parts.memory, name, arguments, context)
    return JSONResponse({"text": result.text, "is_error": result.is_error})
