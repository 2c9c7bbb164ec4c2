"""With a remote server: the Lore API of the local service passes requests on to it, so that commands and clients go on working.

The caller's own credentials stop here, the server's token is added, and what the server sends is held to the same limits as
everything else. What the service answers by itself (hooks, MCP, lifecycle events) is not passed on: it uses the same server.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from lorehooks.core import uri as uris
from lorehooks.core.errors import InvalidError, LoreError, NotFoundError
from lorehooks.core.model import Origin, known_client
from lorehooks.hooks.forget_here import PATH as FORGET_PATH
from lorehooks.hooks.forget_here import forget_here
from lorehooks.hooks.serviceinfo import installed_version

if TYPE_CHECKING:
    from lorehooks.clients.remote import RemoteBackend
    from lorehooks.hooks.app import Parts

LOCAL_PATHS = ("/lifecycle/event",)
"""Answered by the dispatcher here, which has records, ledger and every runtime."""
MAX_REQUEST = 16 << 20
SECONDS = 30.0
LONG_SECONDS = 600.0
_LONG_PATHS = ("/maintenance/", "/browse/recall/rebuild", "/backup")
_WRITES = ("/browse/node", "/browse/boot", "/browse/triggers", "/browse/glossary", "/browse/history")
_PASSED_HEADERS = ("content-type", "x-lore-source")
_ROUTE = re.compile(r"(?:/[A-Za-z0-9_-]+)+")
"""How a route is spelled. Another spelling (`..`, `?`, `//`, a slash at the end) may be another route to the server than to the
checks here, and lead out of its API with its token."""


class Forwarding:
    """ASGI application of `/api`: `local` with the embedded memory, the remote server's API otherwise."""

    def __init__(self, local: ASGIApp) -> None:
        self.local = local

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        parts: Parts = scope["app"].state.parts
        path = scope["path"].removeprefix(scope.get("root_path", "").rstrip("/"))
        if parts.remote is None or path in LOCAL_PATHS:
            await self.local(scope, receive, send)
            return
        request = Request(scope, receive)
        try:
            response = (
                _health(parts.remote) if path == "/health" else await _forward(parts, parts.remote, request, path)
            )
        except LoreError as error:
            body = {"detail": error.message, "code": error.code} | ({"hint": error.hint} if error.hint else {})
            response = JSONResponse(body, error.status)
        except ClientDisconnect:
            response = JSONResponse({"detail": "The request is too large", "code": "too_large"}, 413)
        await response(scope, receive, send)


def _health(remote: RemoteBackend) -> Response:
    """The service's own health: it runs, whatever its server does. That one's health is `lore status`."""
    return JSONResponse(
        {
            "status": "ok",
            "database": "connected",
            "version": installed_version(),
            "server": "lorehooks",
            "remote": remote.name,
            "remote_paused": remote.link.breaker.is_open,
        }
    )


async def _forward(parts: Parts, remote: RemoteBackend, request: Request, path: str) -> Response:
    parts.activity.touch()
    if not _ROUTE.fullmatch(path):
        raise NotFoundError("Unknown API route")
    content = await request.body()
    if len(content) > MAX_REQUEST:
        raise LoreError("The request is too large", code="too_large", status=413)
    await _check_write(remote, request, path, content)
    reply = await remote.pass_on(
        request.method,
        path,
        params=request.query_params.multi_items(),
        content=content or None,
        headers={name: request.headers[name] for name in _PASSED_HEADERS if name in request.headers},
        hops=_hops(request),
        seconds=LONG_SECONDS if path.startswith(_LONG_PATHS) else SECONDS,
    )
    if path.startswith("/settings") and request.method != "GET":
        remote.forget_settings()
    answer = await forget_here(parts, content, reply.content) if path == FORGET_PATH else reply.content
    return Response(answer, reply.status, media_type=reply.content_type or None)


async def _check_write(remote: RemoteBackend, request: Request, path: str, content: bytes) -> None:
    """Hold writes to the rules that our own server has and others may lack. Raises SecretError, NeedsPersonError."""
    if request.method not in ("POST", "PUT") or path not in _WRITES:
        return
    try:
        body = json.loads(content or b"{}")
    except (ValueError, RecursionError):
        raise InvalidError("The body is no JSON", code="bad_json", status=400) from None
    fields = body if isinstance(body, dict) else {}
    origin = Origin(request.headers.get("x-lore-source", "api"), known_client(request.query_params.get("client_type")))
    texts, allow_secret = list(_texts(fields)), fields.get("allow_secret") is True
    for uri in _addresses(request, path, fields):
        await remote.check_write(uri, texts, origin, allow_secret=allow_secret)


def _addresses(request: Request, path: str, fields: Mapping[str, Any]) -> list[str]:
    """What a write is about, in the spelling in which boot nodes are known, however the caller spells it. Never empty."""
    query = request.query_params
    if path == "/browse/boot":
        nodes = fields.get("nodes")
        named = list(nodes) if isinstance(nodes, dict) else []
    elif path == "/browse/triggers" or fields.get("uri"):
        named = [fields.get("uri")]
    elif path == "/browse/node" and request.method == "POST":
        named = [f"{fields.get('domain') or 'core'}://{fields.get('parent_path') or ''}/{fields.get('title') or ''}"]
    else:
        named = [f"{query.get('domain', 'core')}://{query.get('path', '')}"]
    return [str(uris.parse(each)) for each in named if isinstance(each, str)] or [""]


def _texts(value: Any) -> Iterable[str]:
    """Every text inside a request body."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _texts(item)


def _hops(request: Request) -> int:
    given = request.headers.get("x-lore-hops", "0")
    return int(given) if given.isascii() and given.isdigit() and len(given) == 1 else 0
