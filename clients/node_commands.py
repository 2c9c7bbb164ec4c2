"""`lore node`: single memories, as a person reads and writes them."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lorehooks.clients import output
from lorehooks.clients.command import Group, Invocation, json_option, pass_invocation
from lorehooks.clients.node_text import CHILDREN, changes, child_json, child_row, event_row, node_json, say_page
from lorehooks.clients.output import Column
from lorehooks.clients.text_input import asked_content, edited, given_content, keywords
from lorehooks.core.escape import visible
from lorehooks.core.model import DEFAULT_PRIORITY, NodeDraft, NodePatch, Origin, WriteResult

if TYPE_CHECKING:
    from lorehooks.clients.answers import Child
    from lorehooks.clients.client import LoreClient

CLI = Origin("cli")
_HITS = (Column("score", right=True), Column("memory", elastic=True), Column("says", elastic=True))
_HISTORY = (
    Column("event", right=True),
    Column("when"),
    Column("what"),
    Column("by", elastic=True),
    Column("change", elastic=True),
)

file_option = click.option(
    "--file", type=click.Path(path_type=Path, dir_okay=False), help="Take the content from this file."
)
secret_option = click.option("--allow-secret", is_flag=True, help="Store it although it looks like it holds a secret.")


@click.group(cls=Group)
def node() -> None:
    """Create, read, change, find and restore memories."""


@node.command()
@click.argument("uri")
@click.argument("content", required=False)
@file_option
@click.option("--priority", default=DEFAULT_PRIORITY, show_default=True, help="0 core identity, 1 key facts, 2 and up.")
@click.option("--disclosure", "--when", default="", help="The one future situation in which it should surface.")
@click.option("--glossary", "--words", multiple=True, metavar="A,B,…", help="Words that people type when they mean it.")
@secret_option
@json_option
@pass_invocation
def create(
    invocation: Invocation,
    uri: str,
    content: str | None,
    *,
    file: Path | None,
    priority: int,
    disclosure: str,
    glossary: tuple[str, ...],
    allow_secret: bool,
) -> None:
    """Write a new memory at URI (domain://path).

    CONTENT is the text, or - for stdin. Without it, a pipe is read, and at a terminal your editor opens.
    """
    text = given_content(content, file)
    draft = NodeDraft(uri, asked_content() if text is None else text, priority, disclosure, keywords(glossary))
    tell_write(
        invocation, "Created", invocation.ask(lambda client: client.create_node(draft, CLI, allow_secret=allow_secret))
    )


@node.command()
@click.argument("uri")
@click.option("--content", "bare", is_flag=True, help="Print the content and nothing else.")
@json_option
@pass_invocation
def get(invocation: Invocation, uri: str, *, bare: bool) -> None:
    """Open a memory, or the root of a domain (domain://)."""
    page = invocation.ask(lambda client: client.node_page(uri))
    if invocation.as_json:
        output.say_json(node_json(page))
    elif bare:
        click.echo(page.node.content)
    else:
        say_page(page)


@node.command()
@click.argument("uri")
@click.argument("content", required=False)
@file_option
@click.option("--edit", is_flag=True, help="Change the content in your editor.")
@click.option("--priority", type=int, help="0 core identity, 1 key facts, 2 and up.")
@click.option("--disclosure", "--when", help="The one future situation in which it should surface.")
@click.option("--glossary", "--words", multiple=True, metavar="A,B,…", help="These words instead of the present ones.")
@click.option("--add", multiple=True, metavar="A,B,…", help="Add these words to the glossary.")
@click.option("--remove", multiple=True, metavar="A,B,…", help="Take these words from the glossary.")
@secret_option
@json_option
@pass_invocation
def update(
    invocation: Invocation,
    uri: str,
    content: str | None,
    *,
    file: Path | None,
    edit: bool,
    priority: int | None,
    disclosure: str | None,
    glossary: tuple[str, ...],
    add: tuple[str, ...],
    remove: tuple[str, ...],
    allow_secret: bool,
) -> None:
    """Change a memory; what is not named stays. CONTENT is the new text, or - for stdin."""
    text = given_content(content, file)
    if edit and text is not None:
        raise click.UsageError("--edit opens the content in your editor, so give no other content.")
    patch = NodePatch(
        text,
        priority,
        disclosure,
        keywords(glossary) if glossary else None,
        keywords(add),
        keywords(remove),
    )
    if edit or (patch == NodePatch() and sys.stdin.isatty()):
        before = invocation.ask(lambda client: client.get_node(uri)).content
        patch = NodePatch(edited(before), *_rest(patch))
    if patch == NodePatch():
        raise click.UsageError(
            "Say what to change: CONTENT, --edit, --priority, --disclosure, --glossary, --add, --remove."
        )
    tell_write(
        invocation,
        "Updated",
        invocation.ask(lambda client: client.update_node(uri, patch, CLI, allow_secret=allow_secret)),
    )


@node.command()
@click.argument("uri")
@click.option("--yes", "-y", is_flag=True, help="Ask nothing.")
@json_option
@pass_invocation
def delete(invocation: Invocation, uri: str, *, yes: bool) -> None:
    """Delete a memory and everything below it. Its history stays readable."""
    if not yes:
        page = invocation.ask(lambda client: client.node_page(uri, nav_only=True))
        if invocation.as_json or not sys.stdin.isatty():
            raise click.UsageError("Deleting cannot be undone: add --yes.")
        below = f" and everything below it ({len(page.children)} directly)" if page.children else ""
        click.confirm(visible(f"Delete {page.node.uri}{below}?"), abort=True, err=True)
    tell_write(invocation, "Deleted", invocation.ask(lambda client: client.delete_node(uri, CLI)))


@node.command()
@click.argument("old_uri")
@click.argument("new_uri")
@json_option
@pass_invocation
def move(invocation: Invocation, old_uri: str, new_uri: str) -> None:
    """Give a memory, and everything below it, another address."""
    tell_write(invocation, "Moved to", invocation.ask(lambda client: client.move_node(old_uri, new_uri, CLI)))


@node.command("ls")
@click.argument("uri", required=False)
@click.option("--recursive", "-r", is_flag=True, help="Everything below it, not only the next level.")
@json_option
@pass_invocation
def list_(invocation: Invocation, uri: str | None, *, recursive: bool) -> None:
    """List what lies below URI; without one, the domains."""
    if uri is None and not recursive:
        domains = invocation.ask(lambda client: client.domains())
        if invocation.as_json:
            output.say_json({"domains": domains})
        else:
            rows = [(f"{line.domain}://", line.count) for line in domains]
            output.say_table((Column("domain"), Column("at its top", right=True)), rows, empty="No memories yet.")
        return
    children = invocation.ask(lambda client: _below(client, uri, recursive=recursive))
    if invocation.as_json:
        output.say_json({"uri": uri or "", "children": [child_json(child) for child in children]})
    else:
        output.say_table(CHILDREN, [child_row(child) for child in children], empty=f"Nothing lies below {uri}.")


@node.command()
@click.argument("query")
@click.option("--mode", type=click.Choice(["keyword", "semantic", "both"]), default="both", show_default=True)
@click.option("--domain", help="Only memories of this domain.")
@click.option("--limit", default=10, show_default=True, type=click.IntRange(1, 100))
@json_option
@pass_invocation
def search(invocation: Invocation, query: str, *, mode: Any, domain: str | None, limit: int) -> None:
    """Find memories by words, by meaning, or both. Nothing is withheld, unlike in recall."""
    found = invocation.ask(
        lambda client: client.search(query, mode=mode, domain=domain, limit=limit, content_limit=limit)
    )
    if invocation.as_json:
        output.say_json({"query": query, "results": found})
        return
    output.say_table(_HITS, [(f"{hit.score:.2f}", hit.uri, hit.snippet) for hit in found], empty="No memory matches.")


@node.command()
@click.argument("uri")
@click.option("--limit", default=20, show_default=True, type=click.IntRange(1, 200), help="Latest events.")
@click.option("--diff", is_flag=True, help="Show what each event changed.")
@json_option
@pass_invocation
def history(invocation: Invocation, uri: str, *, limit: int, diff: bool) -> None:
    """What happened to a memory, newest first; of a deleted one too."""
    past = invocation.ask(lambda client: client.history(uri, limit=limit))
    if invocation.as_json:
        output.say_json(past)
    elif diff:
        for event in past.events:
            output.say("  ".join(event_row(event)[:4]), bold=True)
            for line in changes(event):
                output.say_diff(f"  {line}")
    else:
        output.say_table(_HISTORY, [event_row(event) for event in past.events])


@node.command()
@click.argument("uri")
@click.argument("event", type=int)
@json_option
@pass_invocation
def rollback(invocation: Invocation, uri: str, event: int) -> None:
    """Restore a memory as it was after EVENT, a create or update of its history. It becomes a new update."""
    tell_write(invocation, "Rolled back", invocation.ask(lambda client: client.rollback(uri, event, CLI)))


def tell_write(invocation: Invocation, done: str, result: WriteResult) -> None:
    """Say what a write did, with its warnings on stderr."""
    if invocation.as_json:
        output.say_json(
            {"uri": result.uri, "uuid": result.uuid, "warnings": result.warnings, "proposal": result.proposal}
        )
        return
    if result.proposal is not None:
        output.say(f"Waits for a yes: lore pending accept {result.proposal}")
    else:
        output.say(f"{done} {result.uri}")
    output.warn(result.warnings)


async def _below(client: LoreClient, uri: str | None, *, recursive: bool) -> list[Child]:
    if uri is None:
        roots = [f"{line.domain}://" for line in await client.domains()]
        return [child for root in roots for child in await _below(client, root, recursive=True)]
    found = []
    for child in (await client.node_page(uri, nav_only=True)).children:
        found.append(child)
        if recursive and child.approx_children_count:
            found += await _below(client, child.uri, recursive=True)
    return found


def _rest(patch: NodePatch) -> tuple[Any, ...]:
    return (patch.priority, patch.disclosure, patch.glossary, patch.glossary_add, patch.glossary_remove)
