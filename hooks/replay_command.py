"""`lore replay`: what hooks sent, why, and what they would send today."""

from __future__ import annotations

import contextlib
import difflib
import sys
from collections.abc import Iterator, Mapping

import click

from lorehooks.clients import output
from lorehooks.clients.command import Invocation, json_option, pass_invocation
from lorehooks.clients.output import Column
from lorehooks.core.clock import system_clock
from lorehooks.core.errors import ConflictError, InvalidError, LoreError
from lorehooks.core.home import Home
from lorehooks.core.readonly import looking_into
from lorehooks.hooks import replay as words
from lorehooks.hooks.records import Records, RunRecord

_SESSIONS = (
    Column("session", elastic=True),
    Column("runtime"),
    Column("last"),
    Column("prompts", right=True),
    Column("shown", right=True),
    Column("opened", right=True),
)


@click.command()
@click.argument("name", metavar="[SESSION|RUN]", required=False)
@click.option("--exact", is_flag=True, help="Print the bytes that the host got, and nothing else.")
@click.option("--explain", is_flag=True, help="Why each memory was shown or withheld.")
@click.option("--again", is_flag=True, help="Ask the prompt again: today's memory, settings and clock.")
@click.option(
    "--as-of-then", is_flag=True, help="With --again: memory, settings and clock of then; the bytes must be the same."
)
@click.option(
    "--set", "changes", metavar="KEY=VALUE", multiple=True, help="With --again: this setting instead. Repeatable."
)
@click.option("--limit", default=20, show_default=True, type=click.IntRange(1), help="Sessions in the list.")
@json_option
@pass_invocation
def replay(
    invocation: Invocation,
    name: str | None,
    *,
    exact: bool,
    explain: bool,
    again: bool,
    as_of_then: bool,
    changes: tuple[str, ...],
    limit: int,
) -> int | None:
    """Read back what hooks sent to agents.

    Without a name: the latest sessions. With a session: its timeline. With a run (its number in the timeline, or the
    query id that stands in the recall tag): what it asked and sent. The beginning of an id is enough.
    """
    if sum((exact, explain, again)) > 1:
        raise click.UsageError("--exact, --explain and --again are three different looks: choose one.")
    if (as_of_then or changes) and not again:
        raise click.UsageError("--as-of-then and --set go with --again.")
    if exact and invocation.as_json:
        raise click.UsageError("--exact prints bytes, so --json does not go with it.")
    if name is None and (exact or explain or again):
        raise click.UsageError("Name a run; `lore replay SESSION` lists them.")
    flush(invocation.home)
    with _records(invocation.home) as records:
        if name is None:
            _list(invocation, records, limit)
            return None
        found = records.find(name)
    if isinstance(found, list):
        if exact or explain or again:
            raise InvalidError(f"{name} is a session of {len(found)} runs", hint=f"choose one: lore replay {name}")
        _timeline(invocation, found)
    elif exact:
        _exact(found)
    elif again:
        return _again(invocation, found, as_of_then=as_of_then, changes=_settings(changes))
    elif invocation.as_json:
        output.say_json(words.as_json(found))
    elif explain:
        _lines(words.explanation(found))
    else:
        _run(found)
    return None


def flush(home: Home, seconds: float = 3.0) -> None:
    """Have a running service write down what it has recorded so far. Starts nothing, and raises nothing."""
    from lorehooks.hooks.localhttp import local_answer

    with contextlib.suppress(LoreError), local_answer(home, "POST", "/hooks/v1/flush", seconds=seconds) as answer:
        answer.read()


@contextlib.contextmanager
def _records(home: Home) -> Iterator[Records]:
    with looking_into(home.records, missing="No hook has run in this home yet", hint="lore install") as connection:
        yield Records(connection)


def _list(invocation: Invocation, records: Records, limit: int) -> None:
    sessions = records.sessions(limit)
    if invocation.as_json:
        output.say_json({"sessions": sessions})
        return
    output.say_table(
        _SESSIONS,
        [
            (
                line.session_id,
                line.client_type,
                output.moment(line.last_at),
                line.prompts,
                line.shown,
                line.opened,
            )
            for line in sessions
        ],
        empty="No hook has run yet.",
    )


def _timeline(invocation: Invocation, runs: list[RunRecord]) -> None:
    first = runs[0]
    if invocation.as_json:
        output.say_json(
            {
                "session_id": first.session_id,
                "client_type": first.client_type,
                "runs": [words.as_json(run) for run in runs],
            }
        )
        return
    output.say(f"{first.client_type} session {first.session_id}, {output.moment(first.at)}", bold=True)
    _lines(words.timeline(runs))


def _run(run: RunRecord) -> None:
    output.say(f"Run {run.id}: {run.client_type} {words.EVENTS.get(run.event, run.event)}", bold=True)
    output.say(f"{output.moment(run.at)}, session {run.session_id}, {run.ms:.1f} ms")
    if run.prompt:
        output.say(f"\nAsked:\n{run.prompt}")
    if run.output:
        output.say(f"\nSent:\n{words.sent_text(run.output)}")
    else:
        output.say(f"\nNothing was sent: {words.reason_text(run.reason)}.")
    for line in run.opened:
        output.say(f"\nOpened {words.clock(line.at)}: {line.uri}")
    output.note(f"\nlore replay {run.id} --exact | --explain | --again", dim=True)


def _exact(run: RunRecord) -> None:
    stream = sys.stdout.buffer
    stream.write(run.output)
    stream.flush()
    if not run.output:
        output.note(f"Nothing was sent: {words.reason_text(run.reason)}.")


def _again(invocation: Invocation, run: RunRecord, *, as_of_then: bool, changes: Mapping[str, str]) -> int:
    from lorehooks.hooks.rerun import rerun  # brings numpy and the model

    missing = "There is no memory in this home"
    with looking_into(invocation.home.database, missing=missing, hint="lore status") as log, output.Progress() as bar:
        again = rerun(run, log, as_of_then=as_of_then, now=system_clock(), changes=changes, progress=bar.begin)
    same = again.output == run.output
    if invocation.as_json:
        output.say_json(
            {
                "run": run.id,
                "same_bytes": same,
                "sent_then": run.output.decode("utf-8", "replace"),
                "sent_again": again.output.decode("utf-8", "replace"),
                "candidates": again.candidates,
                "caveats": again.caveats,
            }
        )
    else:
        output.say(again.text or "Nothing would be sent.")
        output.say()
        _compare(run, again.text, same=same)
        for caveat in again.caveats:
            output.note(f"Note: {caveat}", fg="yellow")
    if same or changes or not as_of_then:
        return 0
    if not invocation.as_json:
        raise ConflictError(
            f"Run {run.id} does not give the same bytes again{': ' if again.caveats else ''}{'; '.join(again.caveats)}",
            hint=f"lore replay {run.id} --explain" if again.caveats else "please report this",
            code="not_the_same",
        )
    return 1


def _compare(run: RunRecord, text: str, *, same: bool) -> None:
    if same:
        output.say("The same bytes as then.", fg="green")
        return
    output.say("Then and now:", bold=True)
    then = words.sent_text(run.output) if run.output else ""
    for line in difflib.unified_diff(then.splitlines(), text.splitlines(), "then", "now", lineterm="", n=0):
        output.say_diff(line)


def _settings(changes: tuple[str, ...]) -> dict[str, str]:
    found = {}
    for change in changes:
        key, sign, value = change.partition("=")
        if not sign:
            raise click.UsageError(f"--set takes KEY=VALUE, not {change!r}.")
        found[key.strip()] = value.strip()
    return found


def _lines(lines: Iterator[str]) -> None:
    for line in lines:
        output.say(line)
