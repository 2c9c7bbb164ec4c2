"""Where the content of a memory comes from on a command line: the argument, a file, stdin, or the person's editor."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable
from pathlib import Path

import click

from lorehooks.core.errors import InvalidError

_SEPARATORS = re.compile(r"[,，、;；\n]")


def given_content(argument: str | None, file: Path | None) -> str | None:
    """The content as it was given, None when it was not. `-` reads stdin. Raises InvalidError for what is no text."""
    if argument is not None and file is not None:
        raise click.UsageError("Give the content as an argument or with --file, not both.")
    if file is not None:
        try:
            return _text(file.read_bytes(), str(file))
        except OSError as error:
            raise InvalidError(f"{file} cannot be read: {error.strerror}") from error
    if argument == "-":
        return _text(sys.stdin.buffer.read(), "stdin")
    return argument


def asked_content(before: str = "") -> str:
    """The content from a pipe, or from the editor of a person at a terminal. Raises InvalidError when nothing was saved."""
    if sys.stdin.isatty():
        return edited(before)
    return _text(sys.stdin.buffer.read(), "stdin")


def edited(before: str) -> str:
    """The text after the person changed it in `$VISUAL` or `$EDITOR`. Raises InvalidError when nothing was saved."""
    if not sys.stdin.isatty() and not (os.environ.get("VISUAL") or os.environ.get("EDITOR")):
        raise InvalidError(
            "There is no terminal to open an editor in", hint="pass the content: lore node update URI - < file"
        )
    try:
        after = click.edit(before, extension=".md")
    except click.ClickException as error:
        raise InvalidError(
            f"The editor could not be used ({error.message})", hint="set EDITOR, such as: EDITOR=nano"
        ) from error
    if after is None:
        raise InvalidError("The editor saved nothing, so nothing was changed")
    return _without_last_newline(after)


def keywords(texts: Iterable[str]) -> tuple[str, ...]:
    """Keywords from options that may be repeated and may each hold several, with commas of either language between."""
    return tuple(word for text in texts for part in _SEPARATORS.split(text) if (word := part.strip()))


def _text(raw: bytes, name: str) -> str:
    try:
        return _without_last_newline(raw.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise InvalidError(f"{name} is no UTF-8 text (byte {error.start})", hint=f"iconv -t utf-8 {name}") from error


def _without_last_newline(text: str) -> str:
    """Editors and `echo` end a text with a newline that nobody meant."""
    return text.removesuffix("\n").removesuffix("\r")
