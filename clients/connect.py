"""`lore connect`: move this home to another memory, once that memory has answered and taken the token."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shutil
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import getproxies_environment, proxy_bypass

from lorehooks.clients import config, credentials
from lorehooks.clients.answers import Health
from lorehooks.clients.client import LoreClient
from lorehooks.clients.config import EMBEDDED
from lorehooks.clients.credentials import Credential
from lorehooks.clients.endpoint import LOCAL_URL, Endpoint, is_loopback, origin_of, parse_url
from lorehooks.clients.errors import ServerProblem
from lorehooks.clients.target import BASE_URL, PUBLIC_FILE, Target, resolve
from lorehooks.clients.transport import Transport
from lorehooks.clients.tunnel import AGENT, Tunnel, find_home, parse_ssh
from lorehooks.core.errors import InvalidError, LoreError
from lorehooks.core.home import Home

RELOAD_PATH = "/hooks/v1/reload"
"""Asks the running service to end, so that the next use starts one with the new settings."""
_SECONDS = 10.0
_SECONDS_TO_END = 3.0
_OK = 200


@dataclass(frozen=True, slots=True)
class Connected:
    """What `lore connect` did: the addresses before and after, the server's health, and each change in words."""

    before: str
    after: str
    health: Health | None
    changes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


async def connect_url(
    home: Home,
    address: str,
    environment: Mapping[str, str],
    *,
    token: str | None = None,
    allow_insecure_http: bool = False,
) -> Connected:
    """Use the server at an http(s) address. Without a token, the one kept for the same origin is used again.

    Nothing is saved unless its health and one call with the token succeed. Raises LoreError.
    """
    url = parse_url(address)
    _check_not_itself(home, url)
    kept = credentials.credential_for(home, url)
    wanted = replace(
        kept,
        token=token or kept.token,
        allow_insecure_http=allow_insecure_http or (token is None and kept.allow_insecure_http),
        proxy=shell_proxy(url),
    )
    health = await _try(Endpoint(url, wanted.token, allow_insecure_http=wanted.allow_insecure_http, proxy=wanted.proxy))
    before = resolve(home, config.load(home), environment)
    changes = _keep(home, url, kept, wanted)
    warnings = []
    if url.startswith("http://") and not is_loopback(url):
        warnings.append(f"{url} is plain http: everyone on the way can read what is sent and answered")
    return await _save(home, url, before, environment, health, changes, warnings)


async def connect_ssh(home: Home, address: str, environment: Mapping[str, str], *, ssh: str = "ssh") -> Connected:
    """Use the service of another machine through ssh. Nothing is saved unless it answers. Raises LoreError."""
    found = await find_home(parse_ssh(address), ssh=ssh)
    with tempfile.TemporaryDirectory(prefix="lore-") as folder:
        tunnel = Tunnel(found, Path(folder) / "try.sock", ssh=ssh)
        try:
            await tunnel.ensure()
            health = await _try(Endpoint(LOCAL_URL, socket=tunnel.near, name=str(found)))
        finally:
            await tunnel.close()
    before = resolve(home, config.load(home), environment)
    kept = credentials.credential_for(home, str(found))
    changes = _keep(home, str(found), kept, Credential(agent=environment.get(AGENT) or kept.agent))
    return await _save(home, str(found), before, environment, health, changes, [])


async def connect_embedded(home: Home, environment: Mapping[str, str]) -> Connected:
    """Go back to the memory on this machine. Tokens stay where they are, each for its own server."""
    before = resolve(home, config.load(home), environment)
    return await _save(home, EMBEDDED, before, environment, None, [], [])


async def reload_service(home: Home) -> str:
    """Have a running background service end, so that the next use starts with the new settings. What is left to do.

    Waits until it is gone: while it ends it may still answer, by the old settings.
    """
    pid = _service_pid(home)
    transport = Transport(Endpoint(LOCAL_URL, socket=home.socket))
    try:
        reply = await transport.call("POST", RELOAD_PATH, seconds=_SECONDS)
    except ServerProblem:
        return ""  # none runs, or it ended while it answered
    finally:
        await transport.close()
    if reply.status >= _OK + 100:
        return "The service runs in the foreground: end it and start `lore serve` again"
    end = time.monotonic() + _SECONDS_TO_END
    while pid is not None and time.monotonic() < end:
        try:
            os.kill(pid, 0)
        except OSError:
            break
        await asyncio.sleep(0.02)
    return ""


def _service_pid(home: Home) -> int | None:
    try:
        pid = json.loads(home.service_file.read_bytes())["pid"]
    except (OSError, ValueError, TypeError, KeyError):
        return None
    return pid if isinstance(pid, int) and pid > 0 and pid != os.getpid() else None


def _keep(home: Home, address: str, kept: Credential, wanted: Credential) -> list[str]:
    """Keep what is new for an address, and say so without repeating it."""
    if wanted == kept:
        return []
    credentials.keep(home, address, wanted)
    path = credentials.path_of(home)
    told = {
        f"token for {origin_of(address)}, sent nowhere else" if wanted.token else "": wanted.token != kept.token,
        "the proxy of this shell": wanted.proxy != kept.proxy,
        "the ssh agent of this login": wanted.agent != kept.agent,
        "plain http accepted": wanted.allow_insecure_http != kept.allow_insecure_http,
    }
    return [f"{path}: {text}" for text, is_new in told.items() if is_new and text]


def shell_proxy(url: str) -> str | None:
    """The proxy that this shell's variables name for an address; none for this machine."""
    if is_loopback(url):
        return None
    proxies = getproxies_environment()
    parts = urlsplit(url)
    if not parts.hostname or proxy_bypass(parts.hostname):
        return None
    found = proxies.get(parts.scheme) or proxies.get("all")
    return found if not found or "://" in found else f"http://{found}"


def _check_not_itself(home: Home, url: str) -> None:
    """Raise InvalidError for the address of this home's own service, which would ask itself without end."""
    try:
        port = json.loads(home.service_file.read_bytes())["port"]
    except (OSError, ValueError, TypeError, KeyError):
        return
    if is_loopback(url) and origin_of(url).endswith(f":{port}"):
        raise InvalidError(f"{url} is the service of this home itself", hint="lore connect --embedded")


async def _try(endpoint: Endpoint) -> Health:
    """Health, then a call that needs the token, since health is open to everyone."""
    async with LoreClient(endpoint, seconds=_SECONDS) as client:
        health = await client.health()
        await client.domains()
        return health


async def _save(
    home: Home,
    address: str,
    before: Target,
    environment: Mapping[str, str],
    health: Health | None,
    changes: list[str],
    warnings: list[str],
) -> Connected:
    if config.load(home).server != address:
        config.save(home, {"server.url": address})
        changes.append(f"{home.config}: server.url = {address}")
    with contextlib.suppress(OSError):
        shutil.rmtree(kept_folder(home))  # copies of another server's rules have no place beside this one's
    if changes:
        left = await reload_service(home)
        warnings += [left] if left else []
    if environment.get(BASE_URL, "").strip():
        warnings.append(f"{BASE_URL} is set in this shell and goes before config.toml where it is")
    elif before.row == "public":
        warnings.append(f"{home.root / PUBLIC_FILE} stays as it is and is not used any more")
    if health is not None and health.status != "ok":
        warnings.append(f"The server answers, but says it is {health.status} (database {health.database or 'unknown'})")
    return Connected(before.address, address, health, tuple(changes), tuple(warnings))


def kept_folder(home: Home) -> Path:
    """Where copies of a server's answers lie, for the time it does not answer."""
    return home.run / "remote"


def check_flags(address: str | None, *, embedded: bool, has_token: bool, allow_insecure_http: bool) -> None:
    """Raise LoreError for flags that do not go together."""
    if embedded and (address or has_token or allow_insecure_http):
        raise LoreError("--embedded goes alone", hint="lore connect --embedded")
    if address and address.startswith("ssh://") and (has_token or allow_insecure_http):
        raise LoreError("An ssh:// address needs no token", hint=f"lore connect {address}")
    if address is None and (has_token or allow_insecure_http):
        raise LoreError("Which server?", hint="lore connect URL --token-stdin")
