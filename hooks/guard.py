"""Who may speak to the service: anyone on the Unix socket (its folder is private), on TCP only with token and local names.

A page in a browser can reach 127.0.0.1 too, so `Host` and `Origin` are held to local names, exactly (bug case D10).
"""

from __future__ import annotations

import hmac
import json
from collections.abc import Iterable

from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from lorehooks.core.home import Home

MAX_BODY = 64 << 20
_OPEN_PATHS = ("/api/health",)
_LOCAL_NAMES = ("127.0.0.1", "localhost", "[::1]")


class Guard:
    """ASGI middleware. `extra_hosts` are further names that `lore serve` is reached by."""

    def __init__(self, app: ASGIApp, home: Home, extra_hosts: Iterable[str] = ()) -> None:
        self.app = app
        self.home = home
        self.hosts = {*_LOCAL_NAMES, *extra_hosts}
        self._token: str | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        refusal = None if _is_unix(scope) else self._refuse(scope)
        if refusal is not None:
            await refusal(scope, receive, send)
            return
        await self.app(scope, _capped(receive), send)

    def _refuse(self, scope: Scope) -> JSONResponse | None:
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        host = headers.get("host", "")
        name, _, port = host.rpartition(":") if not host.endswith("]") else (host, "", "")
        if (name or port) not in self.hosts:
            return JSONResponse({"detail": "This address is not served here", "code": "forbidden_host"}, 403)
        origin = headers.get("origin")
        if origin is not None and origin.partition("://")[2].rsplit(":", 1)[0] not in self.hosts:
            return JSONResponse({"detail": "Requests from other sites are refused", "code": "forbidden_origin"}, 403)
        if scope["path"] in _OPEN_PATHS or self._has_token(headers.get("authorization", "")):
            return None
        if scope["path"].startswith("/api/mcp"):
            error = {"code": -32000, "message": "Unauthorized"}
            return JSONResponse({"jsonrpc": "2.0", "error": error, "id": None}, 401)
        return JSONResponse({"detail": "Unauthorized"}, 401)

    def _has_token(self, authorization: str) -> bool:
        scheme, _, given = authorization.partition(" ")
        token = self._read_token()
        return bool(token) and scheme == "Bearer" and hmac.compare_digest(given.strip().encode(), token.encode())

    def _read_token(self) -> str:
        if self._token is None:
            try:
                self._token = str(json.loads(self.home.service_file.read_text(encoding="utf-8"))["token"])
            except (OSError, ValueError, KeyError, TypeError):
                return ""
        return self._token


def _is_unix(scope: Scope) -> bool:
    """Whether a request came over the Unix socket: uvicorn names no client address there."""
    server = scope.get("server")
    return scope.get("client") is None and (server is None or server[1] is None)


def _capped(receive: Receive) -> Receive:
    """Turn away bodies larger than any request of ours by ending them, so that memory stays bounded."""
    size = 0

    async def wrapped() -> Message:
        nonlocal size
        message = await receive()
        size += len(message.get("body", b""))
        if size > MAX_BODY:
            return {"type": "http.disconnect"}
        return message

    return wrapped
