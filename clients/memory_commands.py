"""`lore remember` and `lore pending`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from lorehooks.clients import output
from lorehooks.clients.command import Group, Invocation, json_option, pass_invocation
from lorehooks.clients.node_commands import CLI, secret_option, tell_write
from lorehooks.clients.output import Column
from lorehooks.clients.text_input import asked_content, given_content, keywords
from lorehooks.core.model import WriteResult
from lorehooks.core.repository import repository_of

if TYPE_CHECKING:
    from lorehooks.clients.answers import Proposal
    from lorehooks.clients.client import LoreClient

_PENDING = (
    Column("number", right=True),
    Column("memory", elastic=True),
    Column("when"),
    Column("by"),
    Column("change", elastic=True),
)


@click.command()
@click.argument("text", required=False)
@click.option("--at", metavar="URI", help="Where to keep it. Without it, below the project you stand in.")
@click.option(
    "--when", "--disclosure", "disclosure", default="", help="The one future situation in which it should surface."
)
@click.option(
    "--words",
    "--glossary",
    "glossary",
    multiple=True,
    metavar="A,B,…",
    help="Words that people type when they mean it.",
)
@secret_option
@json_option
@pass_invocation
def remember(
    invocation: Invocation,
    text: str | None,
    *,
    at: str | None,
    disclosure: str,
    glossary: tuple[str, ...],
    allow_secret: bool,
) -> None:
    """Keep one thing, quickly. TEXT is what to remember, or - for stdin.

    \b
    lore remember "Refund webhooks are idempotent by event.id" --when "changing payment webhooks" --words refund,stripe
    """  # noqa: D301  (click's mark for lines to keep)
    from lorehooks.clients.remember import remember as keep

    content = given_content(text, None)
    content = (asked_content() if content is None else content).strip()
    if not content:
        raise click.UsageError("There is nothing to remember in that.")
    _, repository = repository_of(str(Path.cwd()))
    result = invocation.ask(
        lambda client: keep(
            client,
            content,
            at=at,
            project=repository,
            disclosure=disclosure,
            glossary=keywords(glossary),
            origin=CLI,
            allow_secret=allow_secret,
        )
    )
    tell_write(invocation, "Remembered", result)


@click.group(cls=Group)
def pending() -> None:
    """Writes of agents to your rules, which wait for a yes."""


@pending.command("list")
@click.option("--diff", is_flag=True, help="Show what each would change.")
@json_option
@pass_invocation
def list_(invocation: Invocation, *, diff: bool) -> None:
    """What waits, oldest first."""
    proposals = invocation.ask(lambda client: client.pending())
    if invocation.as_json:
        output.say_json({"proposals": proposals})
    elif diff:
        for proposal in proposals:
            output.say(f"{proposal.number}  {proposal.uri}  {_by(proposal)}", bold=True)
            for line in _diff(proposal):
                output.say_diff(f"  {line}")
    else:
        rows = [(each.number, each.uri, output.moment(each.at), _by(each), _summary(each)) for each in proposals]
        output.say_table(_PENDING, rows, empty="Nothing waits for you.")


@pending.command()
@click.argument("numbers", nargs=-1, required=True, type=int)
@json_option
@pass_invocation
def accept(invocation: Invocation, numbers: tuple[int, ...]) -> None:
    """Write what was proposed."""
    _decide(invocation, numbers, accepted=True)


@pending.command()
@click.argument("numbers", nargs=-1, required=True, type=int)
@json_option
@pass_invocation
def reject(invocation: Invocation, numbers: tuple[int, ...]) -> None:
    """Drop what was proposed; the log remembers that it was."""
    _decide(invocation, numbers, accepted=False)


def _decide(invocation: Invocation, numbers: tuple[int, ...], *, accepted: bool) -> None:
    async def decide(client: LoreClient) -> list[WriteResult]:
        return [await client.decide(number, accepted=accepted) for number in numbers]

    done = invocation.ask(decide)
    if invocation.as_json:
        decided = [
            {"number": number, "success": True, "accepted": accepted, "uri": each.uri, "node_uuid": each.uuid}
            for number, each in zip(numbers, done, strict=True)
        ]
        output.say_json({"decided": decided})
        return
    for number, each in zip(numbers, done, strict=True):
        output.say(f"{'Accepted' if accepted else 'Rejected'} {number}: {each.uri}")


def _by(proposal: Proposal) -> str:
    return proposal.client_type or proposal.source


def _summary(proposal: Proposal) -> str:
    lines = [line for line in _diff(proposal) if line[:1] in "+-"]
    return " ".join(lines) or "no difference to what is there now"


def _diff(proposal: Proposal) -> list[str]:
    """What would change, field by field."""
    before, after = proposal.before, proposal.after
    found: list[str] = []
    for name in after:
        if after[name] != before.get(name):
            found += [f"{name}:", *output.changed_lines(before.get(name), after[name])]
    return found
