"""Writes `docs/cli.md` from the command tree: `python -m lorehooks.installers.clidocs`. A test holds the two together."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click

from lorehooks.installers.cli import EXIT_CODES, MENU, lore

WIDTH = 100
_HEAD = """# The `lore` command

Written by `python -m lorehooks.installers.clidocs` from the commands themselves.

Every command takes `--json`: one JSON document on stdout, errors as `{"error": {"code", "message", "hint", "exit_code"}}`.
Without it, results go to stdout, and warnings, questions and progress to stderr. Colour and progress bars are for terminals
only; `NO_COLOR` switches colour off. `LORE_HOME` names another home than `~/.lore`.

## Exit codes

| code | meaning |
|---|---|
"""


def render() -> str:
    """The whole page."""
    parts = [_HEAD + "\n".join(f"| {code} | {text} |" for code, text in EXIT_CODES.items())]
    every = list(contexts(lore))
    for title, section in MENU.items():
        parts.append(f"## {title}")
        for name in section:
            mine = [context for context in every if context.command_path.split(" ")[1:2] == [name]]
            parts += [f"### `{context.command_path}`\n\n```\n{context.get_help()}\n```" for context in mine]
    return "\n\n".join(parts) + "\n"


def contexts(command: click.Command, parent: click.Context | None = None) -> Iterator[click.Context]:
    """A command and everything below it, each in a context for its help."""
    context = click.Context(
        command,
        parent,
        info_name=command.name,
        terminal_width=WIDTH,
        max_content_width=WIDTH,
        **command.context_settings,
    )
    yield context
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            if below is not None:
                yield from contexts(below, context)


def main() -> None:
    """Write the page into the repository this file stands in."""
    page = Path(__file__).resolve().parent.parent / "docs" / "cli.md"
    page.write_text(render(), encoding="utf-8")


if __name__ == "__main__":
    main()
