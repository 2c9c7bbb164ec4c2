"""What the commands of every room share: the `--json` switch, the home they work on, and the way to the memory."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

import click

from lorehooks.core.home import Home

if TYPE_CHECKING:
    from lorehooks.clients.client import LoreClient

Result = TypeVar("Result")
Connect = Callable[[Home], AbstractAsyncContextManager["LoreClient"]]
"""Opens the memory of a home. Given from above, since the local service belongs to a higher room."""


@dataclass(slots=True)
class Invocation:
    """One run of the `lore` command: click's `ctx.obj`."""

    connect: Connect
    home: Home = field(default_factory=Home.from_environment)
    as_json: bool = False
    path: list[str] = field(default_factory=list)
    """The names of the command, without its arguments, which may be memories."""

    def ask(self, question: Callable[[LoreClient], Awaitable[Result]]) -> Result:
        """Connect to the memory, ask, and answer. Raises LoreError."""
        import asyncio  # `lore --help` does without

        async def run() -> Result:
            async with self.connect(self.home) as client:
                return await question(client)

        return asyncio.run(run())


_pass = click.make_pass_decorator(Invocation)


def pass_invocation(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command its Invocation as first argument."""
    return _pass(command)


class Group(click.Group):
    """A group of commands that answers its bare name with its help, which is what was wanted."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if not args and not ctx.resilient_parsing:
            click.echo(ctx.get_help(), color=ctx.color)
            ctx.exit()
        return super().parse_args(ctx, args)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and self.get_command(ctx, args[0]) is None and not args[0].startswith("-"):
            from difflib import get_close_matches  # only a mistyped name pays for the import

            near = get_close_matches(args[0], self.list_commands(ctx), n=3)
            hint = f" Did you mean {', '.join(near)}?" if near else ""
            raise click.UsageError(f"There is no command {' '.join((ctx.command_path, args[0]))!r}.{hint}", ctx)
        name, command, rest = super().resolve_command(ctx, args)
        if name and isinstance(ctx.obj, Invocation):
            ctx.obj.path.append(name)
        return name, command, rest


def json_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add `--json`. The command reads it from its Invocation, and so does whoever reports its errors."""

    def remember(context: click.Context, _: click.Parameter, *, value: bool) -> None:
        if value and isinstance(context.obj, Invocation):
            context.obj.as_json = True

    option = click.option(
        "--json",
        is_flag=True,
        expose_value=False,
        is_eager=True,
        callback=lambda context, parameter, value: remember(context, parameter, value=value),
        help="Print JSON instead of text.",
    )
    return option(command)
