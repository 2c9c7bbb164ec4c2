"""Tokens of Lore servers and keys of model endpoints, in `H/credentials.toml` (mode 0600).

Each stands under the one origin that it may be sent to.

["https://lore.example.com:443"]
token = "…"
allow_insecure_http = true      # only for plain http beyond this machine, where someone accepted that

["https://api.openai.com:443"]
api_key = "…"
"""

from __future__ import annotations

import contextlib
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import tomli_w

from lorehooks.clients.config import ConfigError
from lorehooks.clients.endpoint import check_token, origin_of
from lorehooks.clients.tunnel import parse_ssh
from lorehooks.core.files import write_whole
from lorehooks.core.home import Home

FILE = "credentials.toml"


@dataclass(frozen=True, slots=True)
class Credential:
    """What is known for one origin."""

    token: str | None = field(default=None, repr=False)
    allow_insecure_http: bool = False
    proxy: str | None = field(default=None, repr=False)
    agent: str | None = None
    api_key: str | None = field(default=None, repr=False)
    """What an endpoint of models at this origin wants; a Lore server there has its own token."""


def path_of(home: Home) -> Path:
    """Where the tokens of a home lie."""
    return home.root / FILE


def credential_for(home: Home, url: str) -> Credential:
    """What is kept for the origin of an address; empty when nothing is. Raises ConfigError for a broken file."""
    entry = _read(home).get(_key(url), {})
    return Credential(
        _text(entry, "token"),
        entry.get("allow_insecure_http") is True,
        _text(entry, "proxy"),
        _text(entry, "agent"),
        _text(entry, "api_key"),
    )


def keep(home: Home, url: str, credential: Credential) -> None:
    """Keep a credential for the origin of an address, in place of the one before. Raises ConfigError, InvalidError."""
    for secret in (credential.token, credential.api_key):
        if secret is not None:
            check_token(secret)
    table = _read(home)
    fields = {
        "token": credential.token,
        "allow_insecure_http": credential.allow_insecure_http,
        "proxy": credential.proxy,
        "agent": credential.agent,
        "api_key": credential.api_key,
    }
    entry = {name: value for name, value in fields.items() if value}
    if entry:
        table[_key(url)] = entry
    else:
        table.pop(_key(url), None)
    home.root.mkdir(mode=0o700, parents=True, exist_ok=True)
    write_whole(path_of(home), tomli_w.dumps(table).encode(), 0o600)


def _key(address: str) -> str:
    """What an address is kept under: its origin, never a path below it."""
    if address.startswith("ssh://"):
        return str(replace(parse_ssh(address), home=""))
    return origin_of(address)


def _text(entry: Mapping[str, Any], name: str) -> str | None:
    value = entry.get(name)
    return value if isinstance(value, str) and value else None


def _read(home: Home) -> dict[str, dict[str, Any]]:
    path = path_of(home)
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
        if path.stat().st_mode & 0o077:
            with contextlib.suppress(OSError):
                path.chmod(0o600)  # an editor or a copy may have opened it to others
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigError(
            f"{path} cannot be read: {_without_line(error)}",
            hint="mend or remove it, then lore connect URL --token-stdin",
        ) from None
    return {origin: dict(entry) for origin, entry in table.items() if isinstance(entry, Mapping)}


def _without_line(error: Exception) -> str:
    """A parser's words may repeat the line, and so a token."""
    return type(error).__name__ if isinstance(error, tomllib.TOMLDecodeError | UnicodeDecodeError) else str(error)
