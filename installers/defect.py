"""The report of a defect: what a maintainer needs, and no memory."""

from __future__ import annotations

import contextlib
import os
import platform
import sqlite3
import sys
import traceback
from pathlib import Path

import click

from lorehooks.clients.command import Invocation
from lorehooks.core.files import write_whole
from lorehooks.core.secrets import mask


def report(invocation: Invocation) -> str:
    """Write a report of the exception that is being handled; answers where it is, as a hint for a person.

    It holds versions, lines of code and the exception's own message with secrets masked; no arguments and no values, since
    those may be memories. Where the home cannot be written, the report goes to stderr.
    """
    text = _text(" ".join(["lore", *invocation.path]))
    path = invocation.home.root / "defect.md"
    try:
        write_whole(path, text.encode())
    except OSError:
        click.echo(text, err=True)
        return "paste the report above into a new issue"
    return f"paste {path} into a new issue"


def _text(command: str) -> str:
    kind, error, trace = sys.exc_info()
    version = "unknown"
    with contextlib.suppress(Exception):
        from importlib.metadata import version as version_of

        version = version_of("lorehooks")
    lines = [
        "### A defect of lorehooks",
        "",
        f"- lorehooks {version}, Python {platform.python_version()}, SQLite {sqlite3.sqlite_version}",
        f"- {platform.platform()}",
        f"- command: {command}",
        "",
        "```",
        *(f"{frame.filename}:{frame.lineno} {frame.name}" for frame in traceback.extract_tb(trace)),
        f"{kind.__name__ if kind else ''}: {mask(str(error))}",
        "```",
        "",
    ]
    return "\n".join(lines).replace(os.fspath(Path.home()), "~")
