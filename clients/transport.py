"""One HTTP exchange with a Lore server, held to one deadline and one size.

The deadline spans connecting, headers and body: a server that sends a byte now and then cannot stretch it (bug case D2).
Redirects are never followed, since they would carry the token to another address (D7). Loopback and Unix sockets are
reached directly whatever the proxy variables say (D9).
"""

from __future__ import annotations

import asyncio
import json
import math
import os
import ssl
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from http.cookiejar import CookieJar, DefaultCookiePolicy
from pathlib import Path
from typing import Any

import certifi
import httpx

from lorehooks.clients.endpoint import Endpoint
from lorehooks.clients.errors import BadAnswerError, DeadlineError, UnreachableError
from lorehooks.core.wellformed import well_formed_json

MAX_ANSWER = 16 << 20
"""Bytes of an answer; more is refused unread."""
Params = Mapping[str, str] | Sequence[tuple[str, str]]
_CHUNK = 1 << 16
_LIMITS = httpx.Limits(max_connections=64, max_keepalive_connections=8, keepalive_expiry=30)
_SOCKET_PATH_ROOM = 100
"""Bytes that fit into a socket's path on every system."""
_SAFE_METHODS = ("GET", "HEAD")


@dataclass(frozen=True, slots=True)
class Reply:
    """A complete answer. `content_type` is lower-case and without parameters, `location` where a redirect points."""

    status: int
    content: bytes
    content_type: str = ""
    location: str = ""


class Transport:
    """Connections to one server, kept alive between calls. Opened on first use, on the loop that uses it."""

    def __init__(self, endpoint: Endpoint, *, inner: httpx.AsyncBaseTransport | None = None) -> None:
        """`inner` answers in place of the network, for an application in this process."""
        self.endpoint = endpoint
        self._inner = inner
        self._http: httpx.AsyncClient | None = None
        self._resources = AsyncExitStack()

    async def call(
        self,
        method: str,
        path: str,
        *,
        seconds: float,
        params: Params | None = None,
        content: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        repeatable: bool | None = None,
    ) -> Reply:
        """Send one request and read its whole answer, whatever its status.

        `repeatable`: whether sending it twice does no harm, so that it is tried once more when the connection fails before
        an answer begins; by default a GET is. Raises UnreachableError, DeadlineError, BadAnswerError, InsecureError.
        """
        self.endpoint.check()
        repeatable = method in _SAFE_METHODS if repeatable is None else repeatable
        try:
            async with asyncio.timeout(seconds):
                try:
                    return await self._exchange(method, path, params, content, headers)
                except _NotBegunError as failure:
                    if not (repeatable or failure.never_sent) or failure.is_final:
                        raise
                    return await self._exchange(method, path, params, content, headers)
        except TimeoutError:
            raise DeadlineError(
                f"{self.endpoint.label} did not answer within {seconds:g} s{_perhaps_arrived(repeatable)}",
                hint=self._mend(),
            ) from None
        except _NotBegunError as failure:
            arrived = "" if failure.never_sent else _perhaps_arrived(repeatable)
            raise UnreachableError(
                f"{self.endpoint.label} cannot be reached: {failure}{arrived}",
                hint="set SSL_CERT_FILE to the certificate of its authority" if failure.is_final else self._mend(),
            ) from None

    async def close(self) -> None:
        """End the connections."""
        if self._http is not None:
            http, self._http = self._http, None
            await http.aclose()
        await self._resources.aclose()

    async def _exchange(
        self,
        method: str,
        path: str,
        params: Params | None,
        content: bytes | None,
        headers: Mapping[str, str] | None,
    ) -> Reply:
        http = self._open()
        url = f"{self.endpoint.url}{path}"
        begun = False
        try:
            async with http.stream(method, url, params=_params(params), content=content, headers=headers) as response:
                begun = True
                body = await self._read(response)
                kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
                return Reply(response.status_code, body, kind, response.headers.get("location", ""))
        except httpx.InvalidURL as error:
            raise BadAnswerError(f"{url} cannot be asked for: {error}") from None
        except httpx.RemoteProtocolError as error:
            if begun or "without sending" not in str(error):
                raise BadAnswerError(
                    f"{self.endpoint.label} broke off or does not speak HTTP: {error}", hint=self._mend()
                ) from None
            raise _NotBegunError("it closed the connection without an answer") from None
        except httpx.TransportError as error:
            if begun:
                raise BadAnswerError(f"{self.endpoint.label} broke off its answer", hint=self._mend()) from None
            raise _not_begun(error) from None

    async def _read(self, response: httpx.Response) -> bytes:
        """The body, up to the limit. It was asked for uncompressed: a small compressed one could grow without bound."""
        if response.headers.get("content-encoding", "identity").lower() != "identity":
            raise BadAnswerError(f"{self.endpoint.label} compresses its answers, though asked not to")
        length = response.headers.get("content-length", "")
        too_much = BadAnswerError(
            f"{self.endpoint.label} sends more than {MAX_ANSWER >> 20} MB in one answer", hint=self._mend()
        )
        if length.isascii() and length.isdigit() and int(length[:20]) > MAX_ANSWER:
            raise too_much
        parts, size = [], 0
        async for part in response.aiter_raw(_CHUNK):
            size += len(part)
            if size > MAX_ANSWER:
                raise too_much
            parts.append(part)
        return b"".join(parts)

    def _open(self) -> httpx.AsyncClient:
        if self._http is None:
            try:
                self._http = self._build()
            except (OSError, ValueError, ImportError) as error:  # a proxy variable or a certificate file that is wrong
                raise _NotBegunError(str(error), never_sent=True, is_final=False) from None
        return self._http

    def _build(self) -> httpx.AsyncClient:
        endpoint = self.endpoint
        headers = {"Accept": "application/json", "Accept-Encoding": "identity", "User-Agent": "lorehooks"}
        if endpoint.token is not None:
            headers["Authorization"] = f"Bearer {endpoint.token}"
        transport = self._inner
        if transport is None and endpoint.socket is not None:
            transport = httpx.AsyncHTTPTransport(
                uds=self._reachable(endpoint.socket), verify=_trusts_nobody(), limits=_LIMITS
            )
        return httpx.AsyncClient(
            transport=transport,
            headers=headers,
            cookies=CookieJar(DefaultCookiePolicy(allowed_domains=[])),
            verify=_trusted() if endpoint.url.startswith("https://") else _trusts_nobody(),
            proxy=None if endpoint.is_local else endpoint.proxy,
            trust_env=not endpoint.is_local and endpoint.proxy is None,
            follow_redirects=False,
            timeout=None,  # noqa: S113  (`call` holds the whole exchange to one deadline)
            limits=_LIMITS,
        )

    def _reachable(self, socket: Path) -> str:
        """The socket's path, or a short one through a descriptor of its folder, kept open as long as the connections."""
        if len(os.fsencode(socket)) <= _SOCKET_PATH_ROOM:
            return os.fspath(socket)
        folder = os.open(socket.parent, os.O_RDONLY | os.O_DIRECTORY)
        self._resources.callback(os.close, folder)
        return f"/dev/fd/{folder}/{socket.name}"

    def _mend(self) -> str:
        if self.endpoint.mend:
            return self.endpoint.mend
        if self.endpoint.socket is not None:
            return "lore service restart"
        return "look whether it runs and whether the address is right; lore connect --embedded goes back to the memory here"


class _NotBegunError(Exception):
    """The exchange failed before an answer began. `never_sent`: no byte of the request can have arrived."""

    def __init__(self, message: str, *, never_sent: bool = False, is_final: bool = False) -> None:
        super().__init__(message)
        self.never_sent = never_sent
        self.is_final = is_final
        """Whether trying again is of no use."""


def _params(params: Params | None) -> httpx.QueryParams | None:
    return httpx.QueryParams(dict(params) if isinstance(params, Mapping) else list(params)) if params else None


def decode_json(reply: Reply, label: str) -> Any:
    """The JSON value of an answer, its text made storable. Raises BadAnswerError for what is not JSON in UTF-8."""
    try:
        value = json.loads(reply.content.decode("utf-8"), parse_constant=_no_constant, parse_float=_finite)
    except UnicodeDecodeError:
        raise BadAnswerError(f"{label} sends text that is not UTF-8") from None
    except (ValueError, RecursionError):
        what = "a web page" if reply.content_type == "text/html" else "nothing" if not reply.content else "broken JSON"
        raise BadAnswerError(
            f"{label} answers with {what} instead of JSON",
            hint="a sign-in page or a proxy may be in between, or another program answers at this address",
        ) from None
    return well_formed_json(value)


def encode_json(value: object) -> bytes:
    """A request body."""
    return json.dumps(well_formed_json(value), ensure_ascii=False, allow_nan=False).encode()


def _no_constant(name: str) -> float:
    raise ValueError(f"{name} is not JSON")


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text} is no finite number")
    return number


def _not_begun(error: httpx.TransportError) -> _NotBegunError:
    if "CERTIFICATE_VERIFY_FAILED" in str(error):
        return _NotBegunError("its certificate is not trusted", never_sent=True, is_final=True)
    text = str(error) or type(error).__name__
    if isinstance(error, httpx.ConnectError | httpx.ProxyError):
        return _NotBegunError(_plain(text), never_sent=True)
    return _NotBegunError(f"the connection broke ({text})")


def _plain(text: str) -> str:
    return "nothing answers there" if "connection attempts failed" in text or "Connection refused" in text else text


def _perhaps_arrived(repeatable: bool) -> str:
    return "" if repeatable else "; the change may have arrived, so look before you repeat it"


def _trusted() -> ssl.SSLContext:
    """The authorities of this machine and those of certifi; only those of SSL_CERT_FILE or SSL_CERT_DIR where set."""
    context = ssl.create_default_context()  # reads the two variables itself
    if not (os.environ.get("SSL_CERT_FILE") or os.environ.get("SSL_CERT_DIR")):
        context.load_verify_locations(certifi.where())
    return context


def _trusts_nobody() -> ssl.SSLContext:
    """For connections without TLS: cheap, and were one to use TLS after all, it would fail and not go unchecked."""
    return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
