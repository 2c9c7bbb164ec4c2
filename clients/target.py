"""Which memory this home uses, in one table.

The first row that names an address wins, and with it its token: the two always come from the same row.

    row          address                                token
    ------------ -------------------------------------- -------------------------------------------------
    environment  LORE_BASE_URL                          LORE_API_TOKEN
    config       server.url in H/config.toml            H/credentials.toml, under that address's origin
                 (written by `lore connect`; may be
                 `embedded` or an ssh:// address)
    public       base_url in H/config.json, the public  api_token in the same file
                 Lore's own file, which is only read
    embedded     none of these: the memory in H/lore.db none needed

`LORE_API_TOKEN` without `LORE_BASE_URL` is not used: it was not set for the address of another row. A token is sent to
the origin it stands for and to no other, over plain http only to this machine, unless `lore connect
--allow-insecure-http` accepted that for the origin.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from lorehooks.clients.config import EMBEDDED, Config
from lorehooks.clients.credentials import credential_for
from lorehooks.clients.endpoint import LOCAL_URL, Endpoint, parse_url
from lorehooks.clients.tunnel import SshAddress, parse_ssh, tunnel_socket
from lorehooks.core.errors import LoreError
from lorehooks.core.home import Home

Row = Literal["environment", "config", "public", "embedded"]
BASE_URL, API_TOKEN = "LORE_BASE_URL", "LORE_API_TOKEN"
PUBLIC_FILE = "config.json"


@dataclass(frozen=True, slots=True)
class Target:
    """The memory in use. `endpoint` is None for the embedded one; `ssh` is set when a tunnel leads to it."""

    row: Row = "embedded"
    address: str = EMBEDDED
    endpoint: Endpoint | None = None
    ssh: SshAddress | None = None
    agent: str = ""
    """Socket of the ssh agent that `lore connect` had."""
    problem: str = ""
    """What is wrong with it. Calls then fail with the same words, since falling back would split the memory in two."""


def resolve(home: Home, config: Config, environment: Mapping[str, str]) -> Target:
    """The memory this home uses. Raises nothing: a wrong address or file becomes a `problem`."""
    url = environment.get(BASE_URL, "").strip()
    if url:
        return _web(home, "environment", url, environment.get(API_TOKEN, "").strip() or None)
    if config.server == EMBEDDED:
        return Target("config")
    if config.server is not None:
        return _configured(home, config.server)
    public_url, public_token, problem = _public(home)
    if public_url:
        return _web(home, "public", public_url, public_token)
    return Target(problem=problem)


def endpoint_over(home: Home, ssh: SshAddress) -> Endpoint:
    """The endpoint at the near end of a tunnel. The far end is a private socket, so that no token is needed."""
    return Endpoint(LOCAL_URL, socket=tunnel_socket(home), name=str(ssh))


def _configured(home: Home, address: str) -> Target:
    try:
        if address.startswith("ssh://"):
            ssh = parse_ssh(address)
            agent = credential_for(home, address).agent or ""
            return Target("config", str(ssh), endpoint_over(home, ssh), ssh, agent)
        return _web(home, "config", address, credential_for(home, address).token)
    except LoreError as error:
        return Target("config", address, Endpoint(address), problem=str(error))


def _web(home: Home, row: Row, url: str, token: str | None) -> Target:
    try:
        url = parse_url(url)
        kept = credential_for(home, url)
        endpoint = Endpoint(url, token, allow_insecure_http=kept.allow_insecure_http, proxy=kept.proxy)
        endpoint.check()
    except LoreError as error:
        return Target(row, url, Endpoint(url, token), problem=str(error))
    return Target(row, url, endpoint)


def _public(home: Home) -> tuple[str, str | None, str]:
    """Address and token of the public Lore's own file, and what is wrong with it."""
    path = home.root / PUBLIC_FILE
    try:
        fields = json.loads(path.read_text(encoding="utf-8-sig"))
    except FileNotFoundError:
        return "", None, ""
    except (OSError, ValueError) as error:
        return "", None, f"{path} cannot be read ({type(error).__name__}), so its server is not used"
    if not isinstance(fields, dict):
        return "", None, f"{path} is no JSON object, so its server is not used"
    url, token = fields.get("base_url"), fields.get("api_token")
    return (
        url.strip() if isinstance(url, str) else "",
        token.strip() if isinstance(token, str) and token.strip() else None,
        "",
    )
