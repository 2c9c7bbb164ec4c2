"""Commands about the memory a home uses: `lore connect`."""

from __future__ import annotations

import asyncio
import os
import sys

import click

from lorehooks.clients.command import Invocation, json_option, pass_invocation
from lorehooks.clients.output import note, say, say_json, warn


@click.command()
@click.argument("address", metavar="[URL]", required=False)
@click.option(
    "--token-stdin", is_flag=True, help="Read the server's token from stdin, so that no list of processes shows it."
)
@click.option(
    "--allow-insecure-http", is_flag=True, help="Send the token over plain http to another machine all the same."
)
@click.option("--embedded", is_flag=True, help="Go back to the memory on this machine.")
@json_option
@pass_invocation
def connect(
    invocation: Invocation, address: str | None, *, token_stdin: bool, allow_insecure_http: bool, embedded: bool
) -> None:
    """Use the memory of another Lore server: self-hosted, Loremem Cloud, or another machine through ssh.

    \b
    lore connect                                   which memory is used, and why
    lore connect https://lore.example.com --token-stdin < token.txt
    lore connect ssh://me@desk                     the service of that machine; no port is opened
    lore connect --embedded                        the memory on this machine again

    The server must answer and take the token before anything is saved.
    """  # noqa: D301  (\b is click's mark for lines to keep)
    from lorehooks.clients import connect as connecting  # httpx and pydantic take their time

    connecting.check_flags(address, embedded=embedded, has_token=token_stdin, allow_insecure_http=allow_insecure_http)
    if address is None and not embedded:
        _show(invocation)
        return
    token = _read_token() if token_stdin else None
    if embedded:
        done = asyncio.run(connecting.connect_embedded(invocation.home, os.environ))
    elif address is not None and address.startswith("ssh://"):
        done = asyncio.run(connecting.connect_ssh(invocation.home, address, os.environ))
    else:
        done = asyncio.run(
            connecting.connect_url(
                invocation.home,
                address or "",
                os.environ,
                token=token,
                allow_insecure_http=allow_insecure_http,
            )
        )
    if invocation.as_json:
        say_json(
            {
                "before": done.before,
                "after": done.after,
                "health": done.health.model_dump() if done.health else None,
                "changes": done.changes,
                "warnings": done.warnings,
            }
        )
        return
    version = f", version {done.health.version}" if done.health and done.health.version else ""
    say(f"Memory: {done.before} -> {done.after}{version}")
    for change in done.changes or ("nothing had to change",):
        say(f"  {change}")
    warn(done.warnings)


def _show(invocation: Invocation) -> None:
    from lorehooks.clients import config, target

    found = target.resolve(invocation.home, config.load(invocation.home), os.environ)
    if invocation.as_json:
        say_json({"address": found.address, "from": found.row, "problem": found.problem})
        return
    rows = {
        "environment": f"from {target.BASE_URL} in the environment",
        "config": f"from {invocation.home.config}",
        "public": f"from {invocation.home.root / target.PUBLIC_FILE}",
        "embedded": "nothing else is configured",
    }
    say(f"Memory: {found.address} ({rows[found.row]})")
    if found.problem:
        note(f"Problem: {found.problem}", fg="red")


def _read_token() -> str:
    if sys.stdin.isatty():
        token: str = click.prompt("Token", hide_input=True, err=True)
        return token.strip()
    return sys.stdin.readline().strip()
