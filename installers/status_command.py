"""`lore status`."""

from __future__ import annotations

import click

from lorehooks.clients import output
from lorehooks.clients.command import Invocation, json_option, pass_invocation
from lorehooks.clients.config import EMBEDDED
from lorehooks.clients.output import Column
from lorehooks.core.clock import system_clock
from lorehooks.hooks.replay import EVENTS
from lorehooks.hooks.replay_command import flush
from lorehooks.installers.status import MemoryStatus, RuntimeStatus, Status, age, look

_RUNTIMES = (
    Column("runtime"),
    Column("state", elastic=True),
    Column("last hook"),
    Column("without memory since yesterday", elastic=True),
)


@click.command()
@json_option
@pass_invocation
def status(invocation: Invocation) -> None:
    """What is connected, and whether it works. Starts nothing; `lore doctor` looks deeper."""
    flush(invocation.home)
    found = look(invocation.home)
    if invocation.as_json:
        output.say_json(found)
        return
    output.say(f"Memory   {_memory_line(found.memory, found.home)}")
    if found.memory.problem:
        output.say(f"         {found.memory.problem}", fg=None if found.memory.reachable else "red")
    output.say(f"Service  {_service_line(found)}")
    for model in found.models:
        output.say(f"{model.label:<8} {model.text}")
        if model.problem:
            output.say(f"         {model.problem}", fg="red")
    if found.memory.pending:
        output.say(f"Waiting  {found.memory.pending} for your yes: lore pending list", fg="yellow")
    for problem in found.problems:
        output.say(f"Problem  {problem}", fg="red")
    output.say()
    output.say_table(
        _RUNTIMES, [_row(each) for each in found.runtimes], empty="No agent has this memory yet: lore install"
    )


def _memory_line(memory: MemoryStatus, home: str) -> str:
    if memory.address != EMBEDDED:
        state = "answers" if memory.reachable else "does not answer"
        return f"{memory.address}, {state}{f', version {memory.version}' if memory.version else ''}"
    if memory.memories is None:
        return f"embedded in {home}, cannot be read"
    count = "1 memory" if memory.memories == 1 else f"{memory.memories:,} memories"
    return f"embedded in {home}: {count}, {memory.boot_written} of {memory.boot_total} boot nodes written"


def _service_line(found: Status) -> str:
    if not found.running:
        return "not running; the next hook or command starts it"
    state = "runs" if found.answering else "runs, but does not answer (lore service restart)"
    return f"{state}, pid {found.pid}, 127.0.0.1:{found.port}, version {found.version}"


def _row(each: RuntimeStatus) -> tuple[str, str, str, str]:
    last = "never"
    if each.last_at and each.last_event:
        last = f"{EVENTS.get(each.last_event, each.last_event)}, {age(each.last_at, system_clock())}"
    missed = f"{each.misses} (last: {each.last_miss}; lore doctor)" if each.misses else "no"
    idle = "; ".join(f"{', '.join(events)} {state}" for state, events in each.idle_hooks.items())
    return each.runtime, f"{each.state}, but {idle} (lore doctor)" if idle else each.state, last, missed
