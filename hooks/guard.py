"""Who may speak to the service: anyone on the Unix socket (its folder is private), on TCP only with token and known names.

A page in a browser can reach 127.0.0.1 too, under any name that its own DNS gives that address, so `Host` and `Origin` are
held to the names the service really has, and forms that a page may post without asking are refused (bug case D10).
"""

from __future__ import annotations

import hmac
import ipaddress
import json
import os
import re
from collections.abc import Iterable
from dataclasses import dataclass

from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from lorehooks.core.home import Home

MAX_BODY = 64 << 20
_OPEN_PATHS = ("/api/health",)
_LOCAL_NAMES = frozenset({"127.0.0.1", "localhost", "::1"})
_EVERYWHERE = ("", "0.0.0.0", "::")  # noqa: S104  (what the person gave as --host)
_AUTHORITY = re.compile(r"(?:\[(?P<six>[0-9a-f:.]{2,45})\]|(?P<name>[a-z0-9._-]{1,255}))(?::[0-9]{1,5})?")
_FORMS = ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data")


@dataclass(frozen=True, slots=True)
class Reach:
    """Which names the service goes by on TCP. With `any_address` every bare IP address is one of them."""

    names: frozenset[str] = _LOCAL_NAMES
    any_address: bool = False

    def holds(self, authority: str) -> bool:
        """Whether a `Host`, or what follows `://` in an `Origin`, names us; its port does not matter."""
        found = _AUTHORITY.fullmatch(authority.lower())
        if found is None:
            return False
        name = found["six"] or found["name"]
        return name in self.names or (self.any_address and _is_address(name))


LOCAL = Reach()


def reach_of(host: str, names: Iterable[str] = ()) -> Reach:
    """The reach of `lore serve --host HOST --name NAME…`.

    On all interfaces it goes by the machine's own name and by any address: DNS, with which a page could pose as ours, has
    no part in an address.
    """
    own = {host.lower(), *(name.lower() for name in names)}
    everywhere = host in _EVERYWHERE
    if everywhere:
        machine = os.uname().nodename.lower()
        own |= {machine, machine.partition(".")[0], f"{machine.partition('.')[0]}.local"}
    return Reach(_LOCAL_NAMES | own - {""}, any_address=everywhere)


class Guard:
    """ASGI middleware."""

    def __init__(self, app: ASGIApp, home: Home, reach: Reach = LOCAL) -> None:
        self.app = app
        self.home = home
        self.reach = reach
        self._token: str | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope.get("headers", ())}
        refusal = _too_large(headers) or (None if _is_unix(scope) else self._refuse(scope, headers))
        if refusal is not None:
            await refusal(scope, receive, send)
            return
        await self.app(scope, _capped(receive), send)

    def _refuse(self, scope: Scope, headers: dict[str, str]) -> JSONResponse | None:
        if scope["type"] != "http" or not self.reach.holds(headers.get("host", "")):
            return _forbidden("This address is not served here", "forbidden_host")
        origin = headers.get("origin")
        if origin is not None:
            scheme, _, authority = origin.partition("://")
            if scheme not in ("http", "https") or not self.reach.holds(authority):
                return _forbidden("Requests from other sites are refused", "forbidden_origin")
        if headers.get("content-type", "").partition(";")[0].strip().lower() in _FORMS:
            return _forbidden("Bodies are application/json here", "forbidden_content_type")
        if scope["path"] in _OPEN_PATHS or self._has_token(headers.get("authorization", "")):
            return None
        if scope["path"].startswith("/api/mcp"):
            error = {"code": -32000, "message": "Unauthorized"}
            return JSONResponse({"jsonrpc": "2.0", "error": error, "id": None}, 401)
        return JSONResponse({"detail": "Unauthorized"}, 401)

    def _has_token(self, authorization: str) -> bool:
        scheme, _, given = authorization.partition(" ")
        token = self._read_token()
        return (
            bool(token) and scheme.lower() == "bearer" and hmac.compare_digest(given.strip().encode(), token.encode())
        )

    def _read_token(self) -> str:
        if self._token is None:
            try:
                self._token = str(json.loads(self.home.service_file.read_text(encoding="utf-8"))["token"])
            except (OSError, ValueError, KeyError, TypeError):
                return ""
        return self._token


def _forbidden(detail: str, code: str) -> JSONResponse:
    return JSONResponse({"detail": detail, "code": code}, 403)


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def _is_unix(scope: Scope) -> bool:
    """Whether a request came over the Unix socket: uvicorn names neither a client nor a port of ours there."""
    server = scope.get("server")
    return scope.get("client") is None and (server is None or server[1] is None)


def _too_large(headers: dict[str, str]) -> JSONResponse | None:
    given = headers.get("content-length", "")
    if not given.isdecimal() or int(given[:18]) <= MAX_BODY:
        return None
    return JSONResponse({"detail": "The request is too large", "code": "too_large"}, 413)


def _capped(receive: Receive) -> Receive:
    """End a body that tells no length and grows beyond any request of ours, so that memory stays bounded."""
    size = 0

    async def wrapped() -> Message:
        nonlocal size
        message = await receive()
        size += len(message.get("body", b""))
        if size > MAX_BODY:
            return {"type": "http.disconnect"}
        return message

    return wrapped
