"""`lore forget`: the one way in which something stored is gone for good."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from lorehooks.clients import output
from lorehooks.clients.command import Invocation, json_option, pass_invocation
from lorehooks.core.errors import LoreError, NotFoundError

if TYPE_CHECKING:
    from lorehooks.clients.client import LoreClient

WORD = "forget"
PARTS = {
    "memories": "Memories that go, with everything below them",
    "deleted": "Deleted memories whose history goes",
    "earlier": "Memories that lose earlier states",
    "settings": "Settings that lose earlier values",
    "backups": "Backups in the home that are written anew",
    "files": "Files in the home that hold the text",
}


@click.command()
@click.argument("uris", metavar="[URI]...", nargs=-1)
@click.option("--matching", default="", metavar="TEXT", help="Everything that holds this text, wherever it stands.")
@click.option("--dry-run", is_flag=True, help="Show what would go, and do nothing.")
@click.option("--confirm", metavar=WORD, help=f"The word {WORD!r}, for a script that cannot type it.")
@json_option
@pass_invocation
def forget(invocation: Invocation, uris: tuple[str, ...], *, matching: str, dry_run: bool, confirm: str | None) -> None:
    """Purge memories for good.

    They go from the log and its history, from records, caches and backups.

    Unlike `lore node delete`, nothing is left to read back, and no rollback brings it back. Asks for a typed word.
    """
    if not uris and not matching.strip():
        raise click.UsageError("Name what to forget: URI, --matching TEXT, or both.")
    body = {"uris": list(uris), "matching": matching}
    plan = invocation.ask(lambda client: _ask(client, body))["plan"]
    if not any(plan[part] for part in (*PARTS, "records")):
        raise NotFoundError("Nothing here holds that", hint="lore node search TEXT")
    if not invocation.as_json or dry_run:
        _show(invocation, plan)
    if dry_run:
        return
    _check_word(invocation, confirm)
    with output.waiting("Forgetting; every file is written anew…"):
        done = invocation.ask(lambda client: _ask(client, {**body, "confirm": True}))
    if invocation.as_json:
        output.say_json(done)
        return
    output.say(
        f"Forgotten: {len(done['plan']['memories'])} memories, {done['removed_events']} events, {done['removed_records']}"
        f" records, in {len(done['changed_backups'])} backups and {len(done['cleaned_files'])} other files."
    )
    output.note("Copies that you made outside of the home still hold it.", dim=True)
    output.warn([done["left"]] if done["left"] else [])


async def _ask(client: LoreClient, body: dict[str, Any]) -> dict[str, Any]:
    from lorehooks.clients.client import LONG_SECONDS

    return await client.ask(dict[str, Any], "POST", "/maintenance/forget", body=body, seconds=LONG_SECONDS)


def _show(invocation: Invocation, plan: dict[str, Any]) -> None:
    if invocation.as_json:
        output.say_json({"plan": plan})
        return
    for part, title in PARTS.items():
        if plan[part]:
            output.say(f"{title}:", bold=True)
            for name in plan[part]:
                output.say(f"  {name}")
    if plan["records"]:
        output.say(f"Records of hook runs that go: {plan['records']:,}", bold=True)


def _check_word(invocation: Invocation, confirm: str | None) -> None:
    if confirm is None and not invocation.as_json and sys.stdin.isatty():
        confirm = click.prompt(f"Type {WORD!r} to go on", err=True, default="", show_default=False)
    if confirm != WORD:
        raise LoreError("Nothing was forgotten: the word was not given", hint=f"--confirm {WORD}", code="not_confirmed")
