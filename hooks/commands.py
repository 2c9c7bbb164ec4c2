"""`lore service`, `lore serve` and `lore mcp`."""

from __future__ import annotations

import contextlib
import os
import sys
from dataclasses import asdict

import click

from lorehooks.clients import output
from lorehooks.clients.command import Group, Invocation, json_option, pass_invocation
from lorehooks.core.errors import StorageError
from lorehooks.core.home import Home
from lorehooks.hooks import service as local
from lorehooks.hooks.place import check_place
from lorehooks.hooks.serviceinfo import ServiceInfo


@click.group(cls=Group)
def service() -> None:
    """The local service that hooks and tools talk to. It starts by itself when it is needed."""


@service.command()
@json_option
@pass_invocation
def start(invocation: Invocation) -> None:
    """Start it, unless it runs. With --json: port, token, pid, version."""
    _tell(invocation, local.start(invocation.home))


@service.command()
@json_option
@pass_invocation
def restart(invocation: Invocation) -> None:
    """End it and start it again, so that it reads its settings anew."""
    _tell(invocation, local.restart(invocation.home))


@service.command()
@json_option
@pass_invocation
def stop(invocation: Invocation) -> None:
    """End it. The next hook starts it again."""
    stopped = local.stop(invocation.home)
    if invocation.as_json:
        output.say_json({"stopped": stopped})
    else:
        output.say("The service was ended." if stopped else "No service was running.")


@service.command()
@json_option
@pass_invocation
def status(invocation: Invocation) -> None:
    """Whether it runs and answers. Starts nothing."""
    now = local.status(invocation.home)
    if invocation.as_json:
        output.say_json({"running": now.running, "answering": now.answering, **_public(now.info)})
        return
    if not now.running:
        output.say("No service is running; the next hook starts it.")
        return
    if now.info is None:
        raise StorageError("A service runs and says nothing of itself", hint="lore service restart")
    output.say(_line(now.info))
    if not now.answering:
        output.say("It does not answer: lore service restart", fg="yellow")


@click.command()
@click.option("--port", default=local.DEFAULT_PORT, show_default=True, type=click.IntRange(1, 65535), help="TCP port.")
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option("--name", "names", multiple=True, help="A further host name that clients reach it by. Repeatable.")
@json_option
@pass_invocation
def serve(invocation: Invocation, port: int, host: str, names: tuple[str, ...]) -> None:
    """Be a Lore server for other clients.

    In the foreground, on a fixed port, with a token that stays, until Ctrl-C.
    """

    def ready(info: ServiceInfo) -> None:
        if invocation.as_json:
            output.say_json(asdict(info))
        else:
            output.say(
                f"Lore server on http://{f'[{host}]' if ':' in host else host}:{info.port}/api, version {info.version}"
            )
            output.say(f"Token: {invocation.home.root / 'token'}")
            output.note("Ctrl-C ends it.", dim=True)

    # Before its loop runs, Ctrl-C is an exception, and as much the regular end.
    with contextlib.suppress(KeyboardInterrupt):
        local.serve(invocation.home, port, host, names=names, on_ready=ready)


@click.command()
@json_option
@pass_invocation
def mcp(invocation: Invocation) -> None:
    """Be an MCP server on stdin and stdout.

    For any MCP client that starts its servers; `lore install mcp --print` says what to paste into its settings. The first
    tool call starts the local service.
    """
    home = Home(invocation.home.root.absolute())
    check_place(home)
    program, bridge = home.bin / "python", home.bin / "bridge.py"
    if not (program.exists() and bridge.is_file()):
        from lorehooks.hooks import layout

        layout.lay(home)
    if sys.stdin.isatty():
        output.note("This waits for an MCP client; Ctrl-C ends it. `lore install mcp --print` says how to connect one.")
    # The bridge takes this process's place, so that the client ends it as it ends its own child.
    os.execv(program, [str(program), "-I", "-S", str(bridge), "mcp"])  # noqa: S606


def _tell(invocation: Invocation, info: ServiceInfo) -> None:
    if invocation.as_json:
        output.say_json(asdict(info))
    else:
        output.say(_line(info))


def _line(info: ServiceInfo) -> str:
    kind = "lore serve" if info.mode == "foreground" else "The service"
    return f"{kind} runs: pid {info.pid}, 127.0.0.1:{info.port}, version {info.version}, since {output.moment(info.started_at)}"


def _public(info: ServiceInfo | None) -> dict[str, object]:
    """What anyone may read in a paste: everything but the token."""
    return {name: value for name, value in asdict(info).items() if name != "token"} if info else {}
