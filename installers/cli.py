"""The `lore` command: each room's own commands under one name, imported when they are used, and one way to fail.

Exit codes, all of them: 0 done; 1 refused or failed, and the line says why; 2 the command line was wrong; 3 a defect of
ours; 4 there is no such memory, event, run or setting; 130 ended by Ctrl-C; 141 the reader of the output went away.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING

import click

from lorehooks.clients.command import Group, Invocation
from lorehooks.core.errors import LoreError, NotFoundError
from lorehooks.core.home import Home

if TYPE_CHECKING:
    from lorehooks.clients.client import LoreClient

DONE, FAILED, USAGE, DEFECT, NOT_FOUND, INTERRUPTED, READER_GONE = 0, 1, 2, 3, 4, 130, 141
EXIT_CODES = {
    DONE: "Done.",
    FAILED: "Refused or failed; one line says why and what mends it. `verify` and `doctor`: something was found.",
    USAGE: "The command line was wrong.",
    DEFECT: "A defect of lorehooks; a report to paste into an issue was written.",
    NOT_FOUND: "There is no such memory, event, run, proposal or setting.",
    INTERRUPTED: "Ended by Ctrl-C.",
    READER_GONE: "The program that read the output went away (`lore replay | head`).",
}

MENU: Mapping[str, Mapping[str, tuple[str, str]]] = {
    "Memories": {
        "init": ("lorehooks.hooks.init_command:init", "Fill the memory from rules and notes that are here already."),
        "remember": ("lorehooks.clients.memory_commands:remember", "Keep one thing, quickly."),
        "node": ("lorehooks.clients.node_commands:node", "Create, read, change, find and restore memories."),
        "boot": ("lorehooks.hooks.preview_commands:boot", "Print what a session starts with, or edit its rules."),
        "recall": ("lorehooks.hooks.preview_commands:recall", "Print the block that a prompt would get."),
        "why": (
            "lorehooks.hooks.why_command:why",
            "Find out why a memory was or was not shown for a prompt.",
        ),
        "export": (
            "lorehooks.hooks.transfer_commands:export",
            "Write the memory out as files.",
        ),
        "import": (
            "lorehooks.hooks.transfer_commands:import_",
            "Take memories in from files.",
        ),
        "forget": ("lorehooks.clients.forget_command:forget", "Purge memories for good."),
        "pending": (
            "lorehooks.clients.memory_commands:pending",
            "Writes of agents to your rules, which wait for a yes.",
        ),
        "config": ("lorehooks.clients.config_commands:config", "Read and change settings."),
    },
    "Agents": {
        "install": ("lorehooks.installers.commands:install", "Give agents their memory: hooks and tools."),
        "update": ("lorehooks.installers.commands:update", "Bring installed runtimes up to date with this release."),
        "uninstall": ("lorehooks.installers.commands:uninstall", "Take agents' hooks and tools out again."),
        "status": ("lorehooks.installers.status_command:status", "What is connected, and whether it works."),
        "doctor": (
            "lorehooks.installers.doctor_command:doctor",
            "Find out what is wrong, and say what mends it.",
        ),
        "replay": ("lorehooks.hooks.replay_command:replay", "Read back what hooks sent to agents."),
    },
    "Server": {
        "connect": ("lorehooks.clients.commands:connect", "Use the memory of another Lore server."),
        "service": ("lorehooks.hooks.commands:service", "The local service that hooks and tools talk to."),
        "serve": ("lorehooks.hooks.commands:serve", "Be a Lore server for other clients."),
        "mcp": ("lorehooks.hooks.commands:mcp", "Be an MCP server on stdin and stdout."),
        "backup": ("lorehooks.hooks.backup_commands:backup", "Copy the whole memory, while it is in use."),
        "restore": ("lorehooks.hooks.backup_commands:restore", "Put a backup in the place of the memory."),
        "verify": ("lorehooks.hooks.maintenance_commands:verify", "Compare the memory with its log."),
        "rebuild": (
            "lorehooks.hooks.maintenance_commands:rebuild",
            "Build everything that follows from the log again.",
        ),
    },
}
"""Section to command name to (`module:attribute`, short help). The help stands here so that listing imports nothing."""


class Menu(Group):
    """The top of the command tree."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        return [name for section in MENU.values() for name in section]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        for section in MENU.values():
            if cmd_name in section:
                module, _, attribute = section[cmd_name][0].partition(":")
                command: click.Command = getattr(importlib.import_module(module), attribute)
                return command
        return None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        for title, section in MENU.items():
            with formatter.section(title):
                formatter.write_dl([(name, text) for name, (_, text) in section.items()])


@click.group(cls=Menu, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="lorehooks", prog_name="lore", message="%(prog)s %(version)s")
def lore() -> None:
    """One long-term memory for every coding agent on this machine."""


def connect(home: Home) -> AbstractAsyncContextManager[LoreClient]:
    """The memory of a home, through its local service, which is started if need be."""
    from lorehooks.hooks.local import connect_local  # brings httpx

    return connect_local(home)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command and exit."""
    sys.exit(run(sys.argv[1:] if arguments is None else arguments))


def run(arguments: Sequence[str]) -> int:
    """Run the command; answers its exit code."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")  # a terminal that is not UTF-8 shows what it can
    if os.environ.get("_LORE_COMPLETE"):
        lore.main(list(arguments), prog_name="lore")  # a shell asks for completions
    invocation = Invocation(connect)
    try:
        with lore.make_context("lore", list(arguments), obj=invocation) as context:
            result = lore.invoke(context)
        sys.stdout.flush()
    except click.exceptions.Exit as exit_:
        return exit_.exit_code
    except LoreError as error:
        return _fail(invocation, error.code, error.message, error.hint, _code_of(error))
    except click.UsageError as error:
        invocation.as_json = invocation.as_json or "--json" in arguments
        command = error.ctx.command_path if error.ctx else " ".join(("lore", *invocation.path))
        return _fail(invocation, "usage", error.format_message(), f"{command} --help", USAGE)
    except click.ClickException as error:
        return _fail(invocation, "error", error.format_message(), "", FAILED)
    except (click.Abort, EOFError, KeyboardInterrupt) as error:
        if sys.stderr.isatty():
            click.echo(err=True)  # the line of the question, or of ^C, ends here
        if isinstance(error, KeyboardInterrupt) or isinstance(error.__context__, KeyboardInterrupt):
            return INTERRUPTED
        return _fail(invocation, "aborted", "Nothing was done", "", FAILED)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # the flush at exit has somewhere to go
        return READER_GONE
    except Exception as error:  # noqa: BLE001  everything else is a defect of ours, and the report says where
        from lorehooks.installers.defect import report

        return _fail(invocation, "defect", f"This is a defect of lorehooks: {error!r}", report(invocation), DEFECT)
    return result if isinstance(result, int) else DONE


def _code_of(error: LoreError) -> int:
    return NOT_FOUND if isinstance(error, NotFoundError) or error.code == NotFoundError.code else FAILED


def _fail(invocation: Invocation, code: str, message: str, hint: str, exit_code: int) -> int:
    from lorehooks.clients import output

    if invocation.as_json:
        output.say_json({"error": {"code": code, "message": message, "hint": hint, "exit_code": exit_code}})
    else:
        text = " ".join(message.split())
        output.note(f"Error: {text} ({hint})" if hint else f"Error: {text}", fg="red")
    return exit_code


if __name__ == "__main__":
    main()
