"""`lore export` and `lore import`: a memory as files that people and other programs read, and back."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

import click

from lorehooks.clients import output
from lorehooks.clients.command import Invocation, json_option, pass_invocation
from lorehooks.clients.output import Column
from lorehooks.core.clock import system_clock, to_iso
from lorehooks.core.errors import LoreError

if TYPE_CHECKING:
    from lorehooks.core.archive import Archive

MARKDOWN, LINES, PUBLIC = "markdown", "jsonl", "lore-backup"
_SECONDS = 600.0
_STDIO = Path("-")
_ENTRIES = (Column("memory", elastic=True), Column("is"), Column("so"), Column("note", elastic=True))


@click.command()
@click.argument("path", type=click.Path(path_type=Path))
@click.option(
    "--format",
    "form",
    type=click.Choice((MARKDOWN, LINES, PUBLIC)),
    default=MARKDOWN,
    show_default=True,
    help="The form.",
)
@click.option("--below", metavar="URI", help="Only this memory and what lies below it.")
@json_option
@pass_invocation
def export(invocation: Invocation, path: Path, *, form: str, below: str | None) -> None:
    """Write the memory out as files that people and other programs read.

    PATH is what it makes:

    \b
    markdown     a folder with one file for each memory, as it is now
    jsonl        one file: every memory, and the whole log with what was deleted; - for stdout
    lore-backup  one file in the form of the public server (lore-backup-v1); - for stdout

    A folder that an earlier export made is brought up to date; nothing else is ever replaced.
    """  # noqa: D301  (click's mark for lines to keep)
    from lorehooks.core import uri as uris
    from lorehooks.core.archive import below as part_below
    from lorehooks.core.archive_v1 import archive_of_backup

    if form == PUBLIC and below:
        raise click.UsageError("lore-backup holds a whole memory; a part goes out as markdown or jsonl.")
    if form == MARKDOWN and path == _STDIO:
        raise click.UsageError("markdown goes into a folder; stdout takes jsonl and lore-backup.")
    with output.waiting("Reading the memory…"):
        document = read_document(invocation)
    archive = archive_of_backup(document)
    if below:
        archive = part_below(archive, uris.parse(below))
        if not archive.nodes:
            raise LoreError(f"There is no memory at {below}", code="not_found")
    removed = _write(path, form, document, archive)
    if path == _STDIO:
        return
    if invocation.as_json:
        output.say_json({"path": path, "format": form, "memories": len(archive.nodes), "removed": removed})
        return
    output.say(f"Exported {len(archive.nodes):,} memories to {path}" + (f"; {removed} files gone" if removed else ""))


@click.command("import")
@click.argument("path", type=click.Path(path_type=Path))
@click.option(
    "--keep",
    type=click.Choice(("ours", "theirs", "newer")),
    default="ours",
    show_default=True,
    help="Who wins where a memory is here and differs in the file.",
)
@click.option("--settings", is_flag=True, help="Take settings of the file, too; they may name a server to use.")
@click.option("--allow-secret", is_flag=True, help="Take memories that look like they hold a secret.")
@click.option("--dry-run", is_flag=True, help="Show what would happen, and do nothing.")
@json_option
@pass_invocation
def import_(
    invocation: Invocation, path: Path, *, keep: str, settings: bool, allow_secret: bool, dry_run: bool
) -> None:
    """Take memories in from files, with their history where they have it.

    PATH is a folder of Markdown files, or one file of Markdown, JSON Lines or lore-backup-v1; - for stdin. All of it comes
    in, or nothing. Nothing here is deleted; what differs stays as it is unless --keep says otherwise.
    """
    from lorehooks.core.archive import as_json
    from lorehooks.hooks.archive_files import archive_of, read_archive

    archive = archive_of(sys.stdin.buffer.read(), "stdin") if path == _STDIO else read_archive(path)
    wishes = {"keep": keep, "settings": settings, "allow_secret": allow_secret, "confirm": not dry_run}
    with output.waiting("Taking memories in…"):
        done = ask_import(invocation, as_json(archive), wishes)
    done["notes"] = [*archive.notes, *done["notes"]]
    if invocation.as_json:
        output.say_json(done)
        return
    say_import(done, details=dry_run)


def ask_import(invocation: Invocation, archive: dict[str, Any], wishes: dict[str, Any]) -> dict[str, Any]:
    """Ask the service to bring an archive in, or with `confirm` false what that would do."""
    from lorehooks.hooks import service
    from lorehooks.hooks.localhttp import local_answer

    service.start(invocation.home)
    query = urlencode({name: str(value).lower() for name, value in wishes.items()})
    with local_answer(
        invocation.home,
        "POST",
        f"/api/maintenance/import?{query}",
        body=json.dumps(archive, ensure_ascii=False).encode(),
        headers={"X-Lore-Source": "import"},
        seconds=_SECONDS,
    ) as answer:
        done: dict[str, Any] = json.loads(answer.read())
    return done


def say_import(done: dict[str, Any], *, details: bool) -> None:
    """Print what an import did, or would do."""
    rows = [
        (one["uri"], one["kind"], _fate(one), one["note"])
        for one in done["entries"]
        if one["kind"] != "same" and (details or one["kind"] == "different" or one["note"])
    ]
    if rows:
        output.say_table(_ENTRIES, rows)
    counts = done["counts"]
    said = ", ".join(f"{count:,} {kind}" for kind, count in counts.items() if count) or "no memories"
    output.say(f"{'Imported' if done['success'] else 'Would import'}: {said}; {done['events']:,} events.")
    if done["parents"]:
        output.say(f"Parents made to hold them: {', '.join(done['parents'])}")
    taken = [one["key"] for one in done["settings"] if one["taken"] and one["kind"] != "same"]
    if taken:
        output.say(f"Settings: {', '.join(taken)}")
    left = [one["key"] for one in done["settings"] if not one["taken"]]
    if left:
        output.note(f"Settings of the file that were not taken (--settings): {', '.join(left)}")
    for note in done["notes"]:
        output.note(f"Note: {note}")
    output.warn(f"looks like a secret: {secret} (--allow-secret)" for secret in done["secrets"])


def _fate(entry: dict[str, Any]) -> str:
    if entry["kind"] == "different":
        return "replaced" if entry["taken"] else "stays as it is here"
    return "taken"


def read_document(invocation: Invocation) -> bytes:
    """The whole memory as lore-backup-v1, from whoever keeps it."""
    from lorehooks.hooks import service
    from lorehooks.hooks.localhttp import local_answer

    service.start(invocation.home)
    with local_answer(invocation.home, "GET", "/api/backup?action=export", seconds=_SECONDS) as answer:
        return answer.read()


def _write(path: Path, form: str, document: bytes, archive: Archive) -> int:
    """Write it; answers how many files of an earlier export are gone."""
    from lorehooks.core.archive_lines import lines_of
    from lorehooks.core.archive_markdown import files_of
    from lorehooks.hooks.archive_files import write_file, write_tree
    from lorehooks.hooks.serviceinfo import installed_version

    if form == MARKDOWN:
        return write_tree(path, files_of(archive))
    data = document
    if form == LINES:
        data = b"".join(lines_of(archive, created_at=to_iso(system_clock()), release=installed_version()))
    if path == _STDIO:
        sys.stdout.flush()
        with os.fdopen(os.dup(sys.stdout.fileno()), "wb") as pipe:
            pipe.write(data)
    else:
        write_file(path, data)
    return 0
