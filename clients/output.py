"""What commands print: tables that fit the terminal, JSON that loses nothing, colour and progress only where a person looks.

Text from memory may hold anything. A person's terminal gets it without escapes and control characters; JSON keeps them,
written as escapes, so that no terminal acts on them either.
"""

from __future__ import annotations

import dataclasses
import difflib
import json
import os
import re
import shutil
import sys
import threading
import time
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import click

from lorehooks.core.clock import from_iso
from lorehooks.core.escape import INVISIBLE, visible

GAP = "  "
NARROWEST = 12
"""Cells below which a column is not narrowed: less of a word helps nobody."""
PATIENCE_SECONDS = 1.0
"""What is done sooner shows no progress bar."""
_UNSAFE = re.compile(rf"[\x7f-\x9f\u2028\u2029\ud800-\udfff{INVISIBLE}]")


def say(text: str = "", **style: Any) -> None:
    """Print a line, or several, for a person. `style` is what `click.style` takes; it shows on terminals only."""
    click.echo(_styled(text, style), color=_colour())


def note(text: str, **style: Any) -> None:
    """Print a line beside the result, on stderr, so that a pipe gets the result alone."""
    click.echo(_styled(text, style), err=True, color=_colour())


def _styled(text: str, style: Mapping[str, Any]) -> str:
    wanted = {name: value for name, value in style.items() if value is not None}
    return click.style(visible(text), **wanted) if wanted else visible(text)


def _colour() -> bool | None:
    """No colour where the person said so (no-color.org) or the terminal has none; else click decides by the stream."""
    return False if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb" else None


def warn(texts: Iterable[str]) -> None:
    """Print warnings of a write on stderr."""
    for text in texts:
        note(f"Warning: {text}", fg="yellow")


def say_diff(line: str) -> None:
    """Print one line of a diff, in the colour of what it does."""
    say(line, fg={"+": "green", "-": "red"}.get(line.lstrip()[:1]))


def changed_lines(before: object, after: object) -> list[str]:
    """The difference of two texts or lists as lines that begin with `+`, `-` or a blank; None is nothing."""
    old, new = (
        list(map(str, value)) if isinstance(value, list | tuple) else str("" if value is None else value).splitlines()
        for value in (before, after)
    )
    return [line for line in list(difflib.unified_diff(old, new, lineterm="", n=1))[2:] if not line.startswith("@@")]


def say_json(value: object) -> None:
    """Print one JSON document: dataclasses as objects, anything invisible escaped."""
    text = json.dumps(jsonable(value), ensure_ascii=False, indent=2)
    click.echo(_UNSAFE.sub(_as_escape, text))


def jsonable(value: object) -> Any:
    """The value in what JSON has: dataclasses and pydantic models as objects, a path as its text."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {item.name: jsonable(getattr(value, item.name)) for item in dataclasses.fields(value)}
    if hasattr(value, "model_dump"):
        return jsonable(value.model_dump(mode="json", by_alias=True))
    if isinstance(value, Mapping):
        return {str(key): jsonable(item) for key, item in value.items()}
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if isinstance(value, Iterable) and not isinstance(value, str):
        return [jsonable(item) for item in value]
    return value


def moment(at: str) -> str:
    """A recorded moment (ISO 8601) as a calendar and a clock here show it; what is none stays as it is."""
    try:
        return from_iso(at).astimezone().strftime("%Y-%m-%d %H:%M")
    except ValueError:
        return at


def cells(text: str) -> int:
    """How many columns of a terminal a text takes: two for a Chinese character, none for a combining mark."""
    if text.isascii():
        return len(text)
    return sum(_width(character) for character in text)


def clip(text: str, width: int) -> str:
    """The text on one line within that many cells, with `…` where something was cut."""
    text = " ".join(visible(text).split())
    if cells(text) <= width:
        return text
    kept, used = [], 0
    for character in text:
        used += _width(character)
        if used > width - 1:
            break
        kept.append(character)
    return "".join(kept).rstrip() + "…" if width > 0 else ""


def terminal_width() -> int | None:
    """Cells of the terminal that stdout is, or None for a pipe or a file, which get whole lines."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


@dataclasses.dataclass(frozen=True, slots=True)
class Column:
    """One column of a table. `elastic` ones give up room when the terminal is narrow."""

    title: str
    elastic: bool = False
    right: bool = False


def table_lines(columns: Sequence[Column], rows: Sequence[Sequence[object]], width: int | None) -> list[str]:
    """A header and one line for each row; none is wider than `width` as long as elastic columns can give way."""
    texts = [[" ".join(visible(str(value)).split()) for value in row] for row in rows]
    widths = [max(cells(line[at]) for line in [[c.title for c in columns], *texts]) for at in range(len(columns))]
    if width is not None:
        _narrow(widths, columns, width)
    return [
        GAP.join(_pad(text, room, column) for text, room, column in zip(line, widths, columns, strict=True)).rstrip()
        for line in [[column.title for column in columns], *texts]
    ]


def say_table(columns: Sequence[Column], rows: Sequence[Sequence[object]], empty: str = "Nothing here.") -> None:
    """Print a table, or one line when there is nothing in it."""
    if not rows:
        say(empty)
        return
    head, *body = table_lines(columns, rows, terminal_width())
    say(head, bold=True)
    for line in body:
        say(line)


class Progress:
    """Progress bars on stderr, one phase after the other: only on a terminal, and only once a second has passed."""

    def __init__(self) -> None:
        self._began = time.monotonic()
        self._label = ""
        self._done = 0
        self._bar: Any = None

    def show(self, label: str, done: int, total: int) -> None:
        """So many of `total` steps are done; another label begins another phase."""
        if label != self._label:
            self._end()
            self._label = label
        if self._bar is None and time.monotonic() - self._began > PATIENCE_SECONDS and sys.stderr.isatty():
            self._bar = click.progressbar(length=total, label=label, file=sys.stderr)
            self._bar.__enter__()
        if self._bar is not None:
            self._bar.update(done - self._done)
            self._done = done

    def begin(self, label: str, steps: int) -> Callable[[], None]:
        """Begin a phase; answers what is to be called for each of its steps."""
        done = 0

        def step() -> None:
            nonlocal done
            done += 1
            self.show(label, done, steps)

        return step

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end()

    def _end(self) -> None:
        if self._bar is not None:
            self._bar.__exit__(None, None, None)
        self._bar = None
        self._done = 0


@contextmanager
def waiting(label: str) -> Iterator[None]:
    """Say on a terminal what is being done when it takes longer than a second and its progress cannot be known."""
    timer = threading.Timer(PATIENCE_SECONDS, note, [label], {"dim": True})
    timer.daemon = True
    if sys.stderr.isatty():
        timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _narrow(widths: list[int], columns: Sequence[Column], width: int) -> None:
    """Take from the widest elastic column, cell by cell, until the line fits or nothing can give."""
    spare = width - len(GAP) * (len(columns) - 1)
    while sum(widths) > spare:
        elastic = [at for at, column in enumerate(columns) if column.elastic and widths[at] > NARROWEST]
        if not elastic:
            return
        widths[max(elastic, key=lambda at: widths[at])] -= 1


def _pad(text: str, room: int, column: Column) -> str:
    text = clip(text, room)
    space = " " * (room - cells(text))
    return space + text if column.right else text + space


def _width(character: str) -> int:
    if unicodedata.category(character) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def _as_escape(found: re.Match[str]) -> str:
    code = ord(found[0])
    if code < 0x10000:  # noqa: PLR2004  (one UTF-16 unit)
        return f"\\u{code:04x}"
    high, low = divmod(code - 0x10000, 0x400)
    return f"\\u{0xD800 + high:04x}\\u{0xDC00 + low:04x}"
