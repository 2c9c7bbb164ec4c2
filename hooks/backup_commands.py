"""`lore backup` and `lore restore`."""

from __future__ import annotations

import os
from pathlib import Path

import click

from lorehooks.clients import config, output
from lorehooks.clients.command import Invocation, json_option, pass_invocation
from lorehooks.clients.errors import UnsupportedError
from lorehooks.clients.output import Column
from lorehooks.clients.target import resolve
from lorehooks.core import backup as copies
from lorehooks.core.clock import system_clock

_LIST = (Column("file", elastic=True), Column("made"), Column("size", right=True), Column("kind"))
_KINDS = {copies.AUTOMATIC: "automatic", copies.BEFORE_RESTORE: "before a restore", "": "by hand"}


@click.command()
@click.argument("file", required=False, type=click.Path(path_type=Path))
@click.option("--list", "wants_list", is_flag=True, help="List the backups in the home instead.")
@json_option
@pass_invocation
def backup(invocation: Invocation, file: Path | None, *, wants_list: bool) -> None:
    """Copy the whole memory, while it is in use.

    The copy, history and all, is as of one moment: FILE, or a new one in the home's backups folder. lore restore reads it
    back. For automatic ones: lore config set backup.every_hours 24.
    """
    home = invocation.home
    if wants_list:
        _list(invocation)
        return
    target = resolve(home, config.load_or_defaults(home), os.environ)
    if target.endpoint is not None:
        raise UnsupportedError(
            f"The memory is kept by {target.address}", hint="lore export FILE --format lore-backup, or do it there"
        )
    made_at = file.absolute() if file else copies.free_name(home, system_clock())
    with output.waiting("Copying the memory…"):
        made = copies.write_backup(home.database, made_at)
    size = made.stat().st_size
    if invocation.as_json:
        output.say_json({"file": made, "size": size})
    else:
        output.say(f"Backup: {made} ({_size(size)})")


@click.command()
@click.argument("file", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@click.option("--yes", is_flag=True, help="Do not ask.")
@json_option
@pass_invocation
def restore(invocation: Invocation, file: Path, *, yes: bool) -> None:
    """Put a backup in the place of the memory.

    FILE is checked beside the memory first. The memory from before is kept in the backups folder. To add to a memory and
    not replace it: lore import.
    """
    from lorehooks.hooks import restore as restoring

    copies.check_form(file)
    if not yes and invocation.home.database.exists():
        if invocation.as_json:
            raise click.UsageError("This replaces the memory: say so with --yes.")
        click.confirm(f"Replace the memory in {invocation.home.root}?", abort=True, err=True)
    with output.waiting("Checking the backup and exchanging the memory…"):
        done = restoring.restore(invocation.home, file)
    if invocation.as_json:
        output.say_json(done)
        return
    output.say(f"Restored: {done.memories:,} memories from {done.events:,} events.")
    if done.former is not None:
        output.say(f"The memory from before: {done.former}")


def _list(invocation: Invocation) -> None:
    found = copies.backups_of(invocation.home)
    if invocation.as_json:
        output.say_json({"backups": found})
        return
    rows = [(each.path, output.moment(each.created_at), _size(each.size), _KINDS[each.kind]) for each in found]
    output.say_table(_LIST, rows, empty="No backup yet: lore backup")


def _size(size: int) -> str:
    return f"{size / 1e6:,.1f} MB"
