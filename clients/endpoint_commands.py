"""`lore config key` and `lore config test`: endpoints of models, their keys and whether they answer."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from pathlib import Path

import click

from lorehooks.clients import output
from lorehooks.clients.command import Invocation, json_option, pass_invocation
from lorehooks.clients.config import EMBEDDED
from lorehooks.core.address import base_address
from lorehooks.core.errors import InvalidError

_SECTIONS = click.Choice(["embedding", "view_llm"])


@click.command()
@click.argument("address", metavar="URL")
@click.option("--token-stdin", is_flag=True, help="Read the key from stdin, so that no list of processes shows it.")
@click.option("--remove", is_flag=True, help="Forget the key.")
@click.option(
    "--allow-insecure-http", is_flag=True, help="Send the key over plain http to another machine all the same."
)
@json_option
@pass_invocation
def key(invocation: Invocation, address: str, *, token_stdin: bool, remove: bool, allow_insecure_http: bool) -> None:
    """Keep the key of the endpoint at URL, for views or vectors.

    It is sent to the host and port of URL and nowhere else, whatever base_url says later. It stands in
    credentials.toml (mode 0600), and in no setting, event, export or backup.
    """
    from lorehooks.clients import config, credentials, target
    from lorehooks.clients.connect import shell_proxy
    from lorehooks.clients.endpoint import is_loopback, origin_of

    url = base_address(address)
    if not url:
        raise InvalidError("Which endpoint?", hint="lore config key https://api.openai.com/v1")
    if remove and (token_stdin or allow_insecure_http):
        raise InvalidError("--remove goes alone", hint=f"lore config key {url} --remove")
    used = target.resolve(invocation.home, config.load(invocation.home), os.environ)
    if used.address != EMBEDDED:
        raise InvalidError(f"The memory is kept by {used.address}, and so are its keys", hint="set the key there")
    kept = credentials.credential_for(invocation.home, url)
    if remove:
        wanted = replace(kept, api_key=None)
    else:
        insecure = url.startswith("http://") and not is_loopback(url) and not allow_insecure_http
        if insecure and not kept.allow_insecure_http:
            raise InvalidError(
                f"{url} is plain http: its key could be read on the way",
                hint=f"use https, or accept that with: lore config key {url} --allow-insecure-http",
            )
        wanted = replace(
            kept,
            api_key=_read_key(url, token_stdin=token_stdin),
            allow_insecure_http=allow_insecure_http or kept.allow_insecure_http,
            proxy=shell_proxy(url) or kept.proxy,
        )
    credentials.keep(invocation.home, url, wanted)
    reload_service(invocation)
    _tell(invocation, origin_of(url), credentials.path_of(invocation.home), has_key=not remove)


@click.command()
@click.argument("section", type=_SECTIONS)
@json_option
@pass_invocation
def test(invocation: Invocation, section: str) -> None:
    """Call the endpoint of SECTION once and say how it answers. Nothing of your memory is sent."""
    done = invocation.ask(lambda client: client.test_settings(section))
    if invocation.as_json:
        output.say_json(done.model_dump())
    else:
        output.say(f"{section}: {done.model} answers ({done.detail})")


def reload_service(invocation: Invocation) -> None:
    """Let the next use start a service with what the files of this machine say now."""
    import asyncio

    from lorehooks.clients.connect import reload_service as reload_  # brings httpx

    left = asyncio.run(reload_(invocation.home))
    output.warn([left] if left else [])


def _tell(invocation: Invocation, origin: str, file: Path, *, has_key: bool) -> None:
    if invocation.as_json:
        output.say_json({"origin": origin, "has_key": has_key})
    else:
        output.say(f"{file}: {f'a key for {origin}, sent nowhere else' if has_key else f'no key for {origin}'}")


def _read_key(url: str, *, token_stdin: bool) -> str:
    if token_stdin:
        return sys.stdin.readline().strip()
    if not sys.stdin.isatty():
        raise InvalidError("There is no terminal to ask at", hint=f"lore config key {url} --token-stdin < key.txt")
    text: str = click.prompt("Key", hide_input=True, err=True)
    return text.strip()
