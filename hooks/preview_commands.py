"""`lore boot` and `lore recall`: what a session would get, before one gets it."""

from __future__ import annotations

from pathlib import Path

import click

from lorehooks.clients import output
from lorehooks.clients.command import Invocation, json_option, pass_invocation
from lorehooks.clients.node_commands import CLI, secret_option, tell_write
from lorehooks.clients.runtimes import RUNTIMES
from lorehooks.clients.text_input import edited
from lorehooks.core.blocks import render_recall
from lorehooks.core.model import CLIENT_TYPES, REHEARSAL, NodePatch, Origin, RecallQuery
from lorehooks.core.repository import project_key, repository_of
from lorehooks.core.settings import Settings

client_option = click.option(
    "--client", "client_type", type=click.Choice(CLIENT_TYPES), default="claudecode", show_default=True, help="Runtime."
)


@click.command()
@client_option
@click.option("--edit", "uri", metavar="URI", help="Open a boot node, such as core://agent, in your editor instead.")
@secret_option
@json_option
@pass_invocation
def boot(invocation: Invocation, client_type: str, *, uri: str | None, allow_secret: bool) -> None:
    """Print what a session starts with, or edit its rules.

    The block is what a session of that runtime would be sent in this folder. --edit opens a boot node in your editor:
    core://agent (rules for all), core://soul (style), preferences://user (you), core://agent/RUNTIME (rules for one).
    """
    if uri is not None:
        _edit(invocation, uri, allow_secret=allow_secret)
        return
    text = _rehearsed_start(invocation, client_type)
    if invocation.as_json:
        budget = RUNTIMES[client_type].boot_budget
        output.say_json({"client_type": client_type, "text": text, "limit": budget.limit, "unit": budget.unit})
    else:
        output.say(text or "Nothing: this runtime would start without memory.")


@click.command()
@click.argument("prompt")
@click.option("--project", help="Repository of the session. Without it, the one you stand in.")
@client_option
@click.option("--explain", is_flag=True, help="Every memory that was considered: its signals, and why it was withheld.")
@json_option
@pass_invocation
def recall(invocation: Invocation, prompt: str, *, project: str | None, client_type: str, explain: bool) -> None:
    """Print the block that a prompt would get."""
    from lorehooks.hooks.replay import explain_candidates

    repository = project or repository_of(str(Path.cwd()))[1]
    query = RecallQuery(prompt, project_key(repository) or None if repository else None)
    recalled = invocation.ask(lambda client: client.recall(query, Origin(CLI.source, client_type, REHEARSAL)))
    result = recalled.result
    block = render_recall(
        result.shown,
        session_id=None,
        query_id=recalled.query_id,
        truncated_at=result.truncated_at,
        timed_out_ms=result.timed_out_ms,
        budget=RUNTIMES[client_type].recall_budget,
    )
    if invocation.as_json:
        output.say_json({"block": block, "query_id": recalled.query_id, "project": query.project, **vars_of(result)})
        return
    output.say(block or "Nothing: no memory reaches the display threshold.")
    if explain:
        page = invocation.ask(lambda client: client.settings())
        known = {key: value for key, value in page.values.items() if page.sources.get(key) != "default"}
        for line in explain_candidates(result.candidates, Settings(known)):
            output.say(line)


def vars_of(result: object) -> dict[str, object]:
    """A result's fields, for a JSON object that holds more beside them."""
    fields: dict[str, object] = output.jsonable(result)
    return fields


def _edit(invocation: Invocation, uri: str, *, allow_secret: bool) -> None:
    before = invocation.ask(lambda client: client.get_node(uri))
    after = edited(before.content)
    result = invocation.ask(
        lambda client: client.update_node(uri, NodePatch(content=after), CLI, allow_secret=allow_secret)
    )
    tell_write(invocation, "Updated", result)


def _rehearsed_start(invocation: Invocation, client_type: str) -> str:
    """A session start as the runtime would ask for it, through the same service, and kept out of its records."""
    from lorehooks.hooks import service
    from lorehooks.hooks.localhttp import local_answer
    from lorehooks.hooks.replay import sent_text

    service.start(invocation.home)
    with local_answer(
        invocation.home,
        "POST",
        f"/hooks/v1/{client_type}/session.start",
        body={"session_id": REHEARSAL, "source": "startup", "cwd": str(Path.cwd())},
        headers={"X-Lore-Remaining-Ms": "10000"},
    ) as answer:
        return sent_text(answer.read())
