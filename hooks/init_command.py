"""`lore init`: rules and notes that are on this machine already, looked at piece by piece and taken into memory."""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lorehooks.clients import output
from lorehooks.clients.command import Invocation, json_option, pass_invocation
from lorehooks.clients.node_commands import secret_option
from lorehooks.clients.output import Column
from lorehooks.core.errors import LoreError

if TYPE_CHECKING:
    from lorehooks.core.events import State
    from lorehooks.core.proposed_notes import Piece

_LIST = (Column("from", elastic=True), Column("piece", elastic=True), Column("goes to", elastic=True), Column(""))
_LINES = 14
"""Lines of a piece that a person is shown before it is taken."""
_STATUS = {"new": "", "there": "there already", "secret": "looks like a secret"}


@click.command()
@click.option("--yes", is_flag=True, help="Take every piece that is new, as it is proposed.")
@click.option("--dry-run", is_flag=True, help="Show what there is and where it would go, and do nothing.")
@click.option("--all-projects", is_flag=True, help="Claude Code's notes of other projects, too.")
@secret_option
@json_option
@pass_invocation
def init(invocation: Invocation, *, yes: bool, dry_run: bool, all_projects: bool, allow_secret: bool) -> None:
    """Fill the memory from rules and notes that are here already.

    Looks for CLAUDE.md, AGENTS.md, GEMINI.md and Cursor's rules of the folder you stand in, those of your own, and what
    Claude Code and Codex noted. Proposes a place for each piece and asks. None of those files is changed.
    """
    from lorehooks.clients.found_notes import found_notes
    from lorehooks.core.proposed_notes import pieces_of, settled

    notes = found_notes(Path.cwd(), os.environ, all_projects=all_projects)
    states = _states(invocation)
    contents = {uri: state["content"] for uri, state in states.items()}
    pieces = settled([piece for note in notes for piece in pieces_of(note)], contents)
    if dry_run:
        _show(invocation, pieces)
        return
    wanted = [piece for piece in pieces if piece.status == "new" or (piece.status == "secret" and allow_secret)]
    if wanted and not yes:
        if invocation.as_json or not sys.stdin.isatty():
            raise click.UsageError("There is nobody to ask: look with --dry-run, then take all with --yes.")
        _show(invocation, pieces)
        wanted = _chosen(wanted, states)
    done = _take(invocation, wanted, states, allow_secret=allow_secret) if wanted else None
    if invocation.as_json:
        output.say_json({"pieces": [_as_json(piece) for piece in pieces], "taken": len(wanted), "imported": done})
        return
    _say(pieces, wanted, done)


def _states(invocation: Invocation) -> dict[str, State]:
    """Every memory that is there, by address."""
    from lorehooks.core.archive_v1 import archive_of_backup
    from lorehooks.hooks.transfer_commands import read_document

    archive = archive_of_backup(read_document(invocation))
    return {node.uri: node.state for node in archive.nodes}


def _show(invocation: Invocation, pieces: Sequence[Piece]) -> None:
    if invocation.as_json:
        output.say_json({"pieces": [_as_json(piece) for piece in pieces]})
        return
    rows = [(one.source, one.heading or "(beginning)", one.state["uri"], _STATUS[one.status]) for one in pieces]
    output.say_table(_LIST, rows, empty=_NOTHING)


_NOTHING = "There are no rules or notes here. Write your own: lore boot --edit core://agent, lore remember TEXT"


def _chosen(pieces: Sequence[Piece], states: Mapping[str, State]) -> list[Piece]:
    """Ask about each piece. Raises click.Abort on Ctrl-C, and then nothing is taken."""
    chosen: list[Piece] = []
    for number, one in enumerate(pieces, start=1):
        piece = one
        while True:
            _show_piece(piece, number, len(pieces))
            answer = click.prompt(
                "Take it? [y]es, [n]o, [e]dit, [a]ll the rest, [q]uit and take what was chosen",
                type=click.Choice(("y", "n", "e", "a", "q")),
                show_choices=False,
                default="y",
                err=True,
            )
            if answer != "e":
                break
            piece = _edited(piece, states)
        if answer in ("y", "a"):
            chosen.append(piece)
        if answer == "a":
            return [*chosen, *pieces[number:]]
        if answer == "q":
            break
    return chosen


def _show_piece(piece: Piece, number: int, total: int) -> None:
    state = piece.state
    output.say(f"\n{number} of {total}  {piece.source}  {piece.heading}", bold=True)
    output.say(f"  {'added to' if piece.is_boot else 'at'} {state['uri']}")
    if state["disclosure"]:
        output.say(f"  disclosure  {state['disclosure']}")
    if state["glossary"]:
        output.say(f"  glossary    {', '.join(state['glossary'])}")
    lines = state["content"].splitlines()
    for line in lines[:_LINES]:
        output.say(f"  | {line}")
    if len(lines) > _LINES:
        output.say(f"  | … {len(lines) - _LINES} more lines", dim=True)


def _edited(piece: Piece, states: Mapping[str, State]) -> Piece:
    """The piece as the person left it in their editor; as it was when that is no memory."""
    from lorehooks.core.archive import ArchivedNode
    from lorehooks.core.archive_markdown import node_of, text_of

    after = click.edit(text_of(ArchivedNode(piece.state)), extension=".md")
    if after is None:
        return piece
    try:
        node, _ = node_of(after)
    except LoreError as error:
        output.note(f"Not taken over: {error}", fg="red")
        return piece
    edited = replace(piece, state=node.state)
    if not edited.is_boot and states.get(node.uri, {}).get("content"):
        output.note(f"Not taken over: there is a memory at {node.uri} already", fg="red")
        return piece
    return edited


def _take(
    invocation: Invocation, pieces: Sequence[Piece], states: Mapping[str, State], *, allow_secret: bool
) -> dict[str, Any]:
    """Bring the pieces in at once: boot nodes with theirs added, the others as memories of their own."""
    from lorehooks.hooks.transfer_commands import ask_import

    nodes: dict[str, dict[str, Any]] = {}
    for piece in pieces:
        uri = piece.state["uri"]
        if uri in nodes or piece.is_boot:
            before = nodes.get(uri) or states.get(uri) or {**piece.state, "content": ""}
            nodes[uri] = {**before, "content": _joined(before["content"], piece.state["content"])}
        else:
            nodes[uri] = piece.state
    wishes = {"keep": "theirs", "allow_secret": allow_secret, "confirm": True}
    return ask_import(invocation, {"nodes": list(nodes.values())}, wishes)


def _joined(before: str, more: str) -> str:
    return f"{before.rstrip()}\n\n{more}" if before.strip() else more


def _say(pieces: Sequence[Piece], taken: Sequence[Piece], done: dict[str, Any] | None) -> None:
    counts = Counter(piece.status for piece in pieces)
    if done is None:
        output.say("Nothing new was taken." if pieces else _NOTHING)
    else:
        boot = sum(piece.is_boot for piece in taken)
        output.say(f"Taken: {boot} pieces into your standing rules, {len(taken) - boot} memories. No file was changed.")
        output.note("See what a session starts with now: lore boot", dim=True)
    if counts["there"]:
        output.say(f"There already: {counts['there']}.")
    held = [piece for piece in pieces if piece.status == "secret" and piece not in taken]
    output.warn(f"left out, it looks like a secret: {one.source} {one.heading} ({one.secret})" for one in held)


def _as_json(piece: Piece) -> dict[str, Any]:
    return {
        "source": piece.source,
        "heading": piece.heading,
        "status": piece.status,
        "secret": piece.secret,
        "boot": piece.is_boot,
        **piece.state,
    }
