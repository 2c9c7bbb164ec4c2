"""`lore install`, `lore update`, `lore uninstall`."""

from __future__ import annotations

import difflib
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from lorehooks.clients import output
from lorehooks.clients.command import Invocation, json_option, pass_invocation
from lorehooks.clients.output import Column
from lorehooks.clients.runtimes import RUNTIMES
from lorehooks.core.errors import LoreError
from lorehooks.installers import mcpsnippets, operations, receipt
from lorehooks.installers.catalog import INSTALLERS
from lorehooks.installers.operations import Runtime
from lorehooks.installers.outcome import Outcome
from lorehooks.installers.plan import Context, Question, RuntimeInstaller
from lorehooks.installers.problem import RefusedError

QUESTIONS: Mapping[str, Question] = {
    question.key: question for installer in INSTALLERS.values() for question in installer.questions
}
STATES = {"absent": "not found"}
VERBS = {
    "planned": "would be changed",
    "installed": "installed",
    "updated": "updated",
    "unchanged": "is up to date, nothing was changed",
    "removed": "uninstalled",
    "absent": "is not installed, nothing was changed",
    "refused": "left as it was",
    "failed": "failed",
}


def _question_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """One pair of flags for each question of any installer."""
    for question in QUESTIONS.values():
        flag = question.key.replace("_", "-")
        command = click.option(f"--{flag}/--no-{flag}", question.key, default=None, help=question.text)(command)
    return command


MCP = "mcp"
"""Any MCP client: nothing is installed, but said what to paste."""


def _runtimes_argument(*more: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    return click.argument("runtimes", metavar="[RUNTIME]...", nargs=-1, type=click.Choice([*INSTALLERS, *more]))


runtimes_argument = _runtimes_argument()
dry_run_option = click.option("--dry-run", is_flag=True, help="Show the changes and host commands, and do nothing.")
yes_option = click.option("--yes", "-y", is_flag=True, help="Ask nothing.")


@click.command()
@_runtimes_argument(MCP)
@click.option("--all", "everything", is_flag=True, help="Every runtime that is found.")
@click.option("--print", "printed", is_flag=True, help=f"With {MCP}: what to paste into any MCP client's settings.")
@dry_run_option
@yes_option
@_question_options
@json_option
@pass_invocation
def install(
    invocation: Invocation,
    /,
    runtimes: Sequence[str],
    everything: bool,
    printed: bool,
    dry_run: bool,
    yes: bool,
    **said: bool | None,
) -> int:
    """Give agents their memory: hooks and tools. Without a name, list what is here."""
    context = Context.from_environment()
    if printed or MCP in runtimes:
        return _print_mcp(invocation, context, runtimes, printed=printed)
    if not runtimes and not everything:
        return _list(invocation, operations.survey(context))
    if everything:
        runtimes = [each.name for each in operations.survey(context) if each.state != "absent"]
        if not runtimes:
            raise LoreError("No runtime was found on this machine", hint="lore install", code="not_present")
    return _install(invocation, context, runtimes, dry_run=dry_run, yes=yes, said=said)


@click.command()
@runtimes_argument
@dry_run_option
@json_option
@pass_invocation
def update(invocation: Invocation, runtimes: Sequence[str], dry_run: bool) -> int:
    """Bring installed runtimes up to date with this release. Answers given at installation are kept."""
    context = Context.from_environment()
    installed = [each.runtime for each in receipt.installed(context.home)]
    missing = [name for name in runtimes if name not in installed]
    if missing:
        raise LoreError(f"{missing[0]} is not installed", hint=f"lore install {missing[0]}", code="not_installed")
    if not installed:
        raise LoreError("No runtime is installed", hint="lore install", code="not_installed")
    return _install(invocation, context, runtimes or installed, dry_run=dry_run, yes=True, said={})


@click.command()
@runtimes_argument
@click.option("--all", "everything", is_flag=True, help="Every runtime that is installed.")
@dry_run_option
@yes_option
@click.option(
    "--purge-memory", is_flag=True, help="Afterwards delete the memory itself. Asks for its folder to be typed."
)
@json_option
@pass_invocation
def uninstall(
    invocation: Invocation, runtimes: Sequence[str], everything: bool, dry_run: bool, yes: bool, purge_memory: bool
) -> int:
    """Take agents' hooks and tools out again. The memory itself stays."""
    context = Context.from_environment()
    purge_memory = purge_memory and not dry_run
    if purge_memory:
        _check_purge(invocation, context)
    if everything:
        runtimes = [name for name in INSTALLERS if name in {each.runtime for each in receipt.installed(context.home)}]
    if not runtimes and not everything:
        raise click.UsageError("Name the runtimes to take out, or say --all.")
    if everything and not dry_run and not yes and _is_interactive(invocation):
        click.confirm(f"Take the memory out of {', '.join(runtimes) or 'nothing'}?", abort=True, err=True)
    outcomes = [operations.uninstall(context, name, dry_run=dry_run) for name in runtimes]
    notes = []
    if not dry_run and operations.finish_removal(context.home):
        notes.append("The service was ended; the memory stays.")
    code = _report(invocation, outcomes, notes)
    if purge_memory and code == 0:
        _purge(context)
    return code


def _print_mcp(invocation: Invocation, context: Context, runtimes: Sequence[str], *, printed: bool) -> int:
    """Say what to paste into an MCP client. Raises LoreError for anything else asked for along with it."""
    if tuple(runtimes) != (MCP,):
        raise click.UsageError(f"--print is for {MCP} alone: lore install {MCP} --print")
    if not printed:
        text = "An MCP client keeps its servers in settings of its own, which are yours to edit"
        raise LoreError(text, hint=f"lore install {MCP} --print", code="by_hand")
    server = mcpsnippets.server(context)
    found, typed = mcpsnippets.snippets(server), mcpsnippets.commands(server)
    if invocation.as_json:
        each = [{"clients": dict(snippet.clients), "settings": snippet.data} for snippet in found]
        output.say_json({"server": server.entry, "snippets": each, "commands": dict(typed)})
        return 0
    for snippet in found:
        for client, place in snippet.clients:
            output.say(f"{client}: {place}", bold=True)
        output.say(f"{snippet.text}\n")
    for client, command in typed:
        output.say(f"{client}, by command:", bold=True)
        output.say(f"{command}\n")
    output.note("Merge it with what is there, and start the client anew. It gets the memory tools, and no hooks.")
    return 0


def _install(
    invocation: Invocation,
    context: Context,
    names: Sequence[str],
    *,
    dry_run: bool,
    yes: bool,
    said: Mapping[str, bool | None],
) -> int:
    interactive = not yes and not dry_run and _is_interactive(invocation)

    def ask(installer: RuntimeInstaller, context: Context) -> dict[str, bool]:
        noted = context.receipt.answers if context.receipt else {}
        answers = {}
        for question in installer.questions:
            given = said.get(question.key)
            given = noted.get(question.key) if given is None else given
            if given is None and interactive and question.arises(context):
                given = click.confirm(question.text, default=False, err=True)
            if given is not None:
                answers[question.key] = given
        return answers

    outcomes = [operations.install(context, name, ask, dry_run=dry_run) for name in names]
    notes = []
    if not dry_run and any(outcome.ok for outcome in outcomes):
        notes = list(filter(None, [operations.finish(context.home)]))
    return _report(invocation, outcomes, notes)


def _is_interactive(invocation: Invocation) -> bool:
    return not invocation.as_json and sys.stdin.isatty() and sys.stderr.isatty()


def _list(invocation: Invocation, found: Sequence[Runtime]) -> int:
    if invocation.as_json:
        output.say_json({"runtimes": [_row(each) for each in found]})
        return 0
    long = any(each.state in ("interrupted", "too old") for each in found)  # a command is never cut, a sentence may be
    columns = (Column("runtime"), Column("program", elastic=True), Column("state"), Column("next", elastic=long))
    output.say_table(
        columns, [(each.name, _program(each), STATES.get(each.state, each.state), _next(each)) for each in found]
    )
    if all(each.state == "absent" for each in found):
        output.say("\nNone of them is on this machine: no program on the PATH, and no folder of theirs.")
    output.note(f"Any other MCP client: lore install {MCP} --print")
    return 0


def _row(runtime: Runtime) -> dict[str, Any]:
    noted = runtime.receipt
    return {
        "runtime": runtime.name,
        "title": runtime.title,
        "state": runtime.state,
        **asdict(runtime.detection),
        "lorehooks": noted.lorehooks if noted else None,
        "installed_at": noted.installed_at if noted else None,
    }


def _program(runtime: Runtime) -> str:
    found = runtime.detection
    if found.program is not None:
        return found.version or str(found.program)
    return f"{_short(found.folder)}, no program" if found.present else "-"


def _short(path: Path) -> str:
    return f"~/{path.relative_to(Path.home())}" if path.is_relative_to(Path.home()) else str(path)


def _next(runtime: Runtime) -> str:
    match runtime.state:
        case "installed" if runtime.receipt and runtime.receipt.lorehooks != receipt.here()[0]:
            return f"lore update {runtime.name}"
        case "interrupted":
            return f"lore install {runtime.name} to finish, lore uninstall {runtime.name} to take back"
        case "too old":
            return runtime.detection.problem
        case "found":
            return f"lore install {runtime.name}"
    return ""


def _report(invocation: Invocation, outcomes: Sequence[Outcome], notes: Sequence[str]) -> int:
    """Print outcomes; answers the exit code."""
    if invocation.as_json:
        output.say_json({"outcomes": [_as_json(outcome) for outcome in outcomes], "notes": list(notes)})
    else:
        for outcome in outcomes:
            _say(outcome)
        for text in notes:
            output.note(text)
    return 0 if all(outcome.ok for outcome in outcomes) else 1


def _as_json(outcome: Outcome) -> dict[str, Any]:
    problem = outcome.problem
    said: dict[str, Any] = {
        "runtime": outcome.runtime,
        "status": outcome.status,
        "changes": outcome.changes,
        "stays": outcome.stays,
        "notes": outcome.notes,
    }
    if outcome.diffs:
        said["diff"] = "".join(_diff(*each) for each in outcome.diffs)
    if problem is not None:
        said["error"] = {"code": problem.code, "message": problem.message, "hint": problem.hint}
        if isinstance(problem, RefusedError):
            said["error"] |= {"path": str(problem.path), "line": problem.line, "column": problem.column}
            said["error"]["snippet"] = problem.snippet
    return said


def _say(outcome: Outcome) -> None:
    title = RUNTIMES[outcome.runtime].label
    output.say(f"{title}: {VERBS[outcome.status]}", bold=True)
    for text in outcome.changes:
        output.say(f"  {text}")
    for each in outcome.diffs:
        for line in _diff(*each).splitlines():
            output.say(line, fg={"+": "green", "-": "red"}.get(line[:1]))
    for text in outcome.stays:
        output.say(f"  stays: {text}", fg="yellow")
    for text in outcome.notes:
        output.say(f"  {text}")
    if outcome.problem is not None:
        output.note(f"Error: {outcome.problem}", fg="red")
        if isinstance(outcome.problem, RefusedError) and outcome.problem.snippet:
            output.note(f"To add it by hand:\n{outcome.problem.snippet}")


def _diff(path: Path, old: bytes, new: bytes) -> str:
    before, after = (content.decode("utf-8", "replace").splitlines() for content in (old, new))
    return "\n".join(difflib.unified_diff(before, after, str(path), f"{path} (after)", lineterm="")) + "\n"


def _check_purge(invocation: Invocation, context: Context) -> None:
    """Raise LoreError, before anything is done, where there is no memory or nobody can type a word."""
    memory = operations.memory_of(context.home)
    if not _is_interactive(invocation):
        raise LoreError(
            f"The memory in {memory.folder} ({memory.megabytes:.1f} MB) is deleted only on a typed word at a terminal",
            hint=f"lore uninstall without --purge-memory, then delete {memory.folder} yourself",
            code="not_confirmed",
        )


def _purge(context: Context) -> None:
    """Delete the memory after its folder was typed. There is no flag for that: it cannot be undone."""
    operations.check_unused(context.home)
    memory = operations.memory_of(context.home)
    output.note(f"This deletes every memory in {memory.folder} ({memory.megabytes:.1f} MB) for good.", fg="red")
    typed = click.prompt("Type the folder's full path to go on", err=True, default="", show_default=False)
    if typed != str(memory.folder):
        raise LoreError("That is not the folder, so the memory stays", code="not_confirmed")
    rest = operations.purge(memory)
    output.say(f"Deleted the memory in {memory.folder}")
    for path in rest:
        output.say(f"  stays: {path}, which is not ours", fg="yellow")
