"""Where a Lore server is, and what may be sent there. A token belongs to one origin: scheme, host and port."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import SplitResult, urlsplit

from lorehooks.clients.errors import InsecureError
from lorehooks.core.errors import InvalidError

LOCAL_URL = "http://lore"
"""Stands in requests over a Unix socket, which have no host."""
_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One server. `url` is the base without `/api`; with `socket` the requests go over that Unix socket instead."""

    url: str
    token: str | None = field(default=None, repr=False)
    socket: Path | None = None
    allow_insecure_http: bool = False
    proxy: str | None = field(default=None, repr=False)
    """Goes before the proxy variables; never used on this machine."""
    name: str = ""
    """What people call it in messages; empty takes the address."""
    mend: str = ""
    """What to do when it does not answer; empty takes what helps with a Lore server."""

    @property
    def label(self) -> str:
        """The server as messages name it."""
        return self.name or (f"the service at {self.socket}" if self.socket else self.url)

    @property
    def is_local(self) -> bool:
        """Whether requests stay on this machine, so that no proxy may see them."""
        return self.socket is not None or is_loopback(self.url)

    def check(self) -> None:
        """Raise InvalidError for what is no address, InsecureError when the token could be read on the way."""
        if self.socket is not None:
            return
        parse_url(self.url)
        if self.token is None:
            return
        check_token(self.token)
        if self.url.startswith("http://") and not self.allow_insecure_http and not is_loopback(self.url):
            raise InsecureError(
                f"{self.url} is plain http: its token could be read on the way",
                hint=f"use https, or accept that with: lore connect {self.url} --token-stdin --allow-insecure-http",
            )


def parse_url(text: str) -> str:
    """The base address of a server as it is kept: lower-case scheme and host, no `/api`, no slash at the end.

    Raises InvalidError that says what is wrong with it.
    """
    text = text.strip()
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError as error:
        raise InvalidError(f"{text!r} is not an address: {error}", hint="write it as https://host:port") from None
    if parts.scheme not in _PORTS or not parts.hostname:
        raise InvalidError(f"{text!r} is not the address of a Lore server", hint="write it as https://host:port")
    if parts.username is not None or parts.password is not None:
        raise InvalidError("A name or password in the address is not supported", hint="lore connect URL --token-stdin")
    if parts.query or parts.fragment:
        raise InvalidError(f"{text!r} has more than an address", hint="write it as https://host:port")
    if any(not "!" <= character <= "~" for character in text):
        raise InvalidError(f"{text!r} has characters that an address cannot have", hint="write it as https://host:port")
    path = parts.path.rstrip("/").removesuffix("/api").rstrip("/")
    shown = "" if port is None or port == _PORTS[parts.scheme] else f":{port}"
    return f"{parts.scheme}://{_bracketed(parts)}{shown}{path}"


def origin_of(url: str) -> str:
    """`scheme://host:port` with the port always written, the key that a token is kept under."""
    parts = urlsplit(parse_url(url))
    return f"{parts.scheme}://{_bracketed(parts)}:{parts.port or _PORTS[parts.scheme]}"


def is_loopback(url: str) -> bool:
    """Whether an address can only be this machine: `localhost`, 127.0.0.0/8 or ::1."""
    try:
        host = urlsplit(url).hostname or ""
    except ValueError:
        return False
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def check_token(token: str) -> None:
    """Raise InvalidError for a token that does not fit into a header, without repeating it."""
    if not token or any(not "!" <= character <= "~" for character in token):
        raise InvalidError("The token is empty or has spaces, line ends or other characters that no token has")


def _bracketed(parts: SplitResult) -> str:
    host = parts.hostname or ""
    return f"[{host}]" if ":" in host else host
