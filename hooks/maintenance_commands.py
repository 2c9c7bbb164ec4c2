"""`lore verify` and `lore rebuild`: is the memory what its log says, and making it so."""

from __future__ import annotations

import json
from typing import Any

import click

from lorehooks.clients import output
from lorehooks.clients.command import Invocation, json_option, pass_invocation
from lorehooks.core.errors import StorageError

_SILENCE_SECONDS = 600.0
PHASES = {"projections": "Replaying the log", "index": "Building the index"}


@click.command()
@json_option
@pass_invocation
def verify(invocation: Invocation) -> int:
    """Compare the memory with its log. Changes nothing; exit code 1 when something is wrong."""
    from lorehooks.hooks import service
    from lorehooks.hooks.localhttp import local_answer

    service.start(invocation.home)
    with (
        output.waiting("Comparing the memory with its log…"),
        local_answer(invocation.home, "POST", "/api/maintenance/verify", seconds=_SILENCE_SECONDS) as answer,
    ):
        found = json.loads(answer.read())
    if invocation.as_json:
        output.say_json(found)
    elif found["ok"]:
        output.say(f"Sound: {found['counts']['nodes']:,} memories say what {found['counts']['events']:,} events say.")
    else:
        for problem in found["problems"]:
            output.say(problem, fg="red")
    return 0 if found["ok"] else 1


@click.command()
@json_option
@pass_invocation
def rebuild(invocation: Invocation) -> None:
    """Build everything that follows from the log again. The log itself, and so every memory, stays as it is."""
    from lorehooks.hooks import service
    from lorehooks.hooks.localhttp import local_answer

    service.start(invocation.home)
    path = "/api/maintenance/rebuild?progress=true"
    line: dict[str, Any] = {}
    with output.Progress() as bar, local_answer(invocation.home, "POST", path, seconds=_SILENCE_SECONDS) as answer:
        for raw in answer:
            line = json.loads(raw)
            if "phase" in line:
                bar.show(PHASES.get(line["phase"], line["phase"]), line["done"], line["total"])
    if not line.get("success"):
        raise StorageError(
            str(line.get("detail", "The service ended before the rebuild was done")),
            hint="lore verify",
            code=str(line.get("code", "")),
        )
    if invocation.as_json:
        output.say_json({"counts": line["counts"]})
    else:
        output.say(f"Rebuilt: {line['counts']['nodes']:,} memories from {line['counts']['events']:,} events.")
