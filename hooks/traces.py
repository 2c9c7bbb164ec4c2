"""The part of `lore forget` that concerns everything else below the home: logs, waiting marks, kept answers, ready files.

What is a cache goes whole, logs lose the text, and what must not be touched (settings, tokens, receipts) is named when it
holds the text, so that the person can decide.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from lorehooks.core.home import Home

MARK = "[forgotten]"
_CHUNK = 1 << 18
_LOGS = ("run/service.log*", "run/misses.log*")
_QUEUES = ("queue.jsonl",)
_CACHES = ("run/boot/*", "run/tools/*", "run/remote/**/*", "defect.md")


@dataclass(frozen=True, slots=True)
class Traces:
    """Files that were cleaned or removed, and those that still hold the text. Paths are below the home."""

    cleaned: tuple[str, ...] = ()
    left: tuple[str, ...] = ()


def pattern_of(texts: Sequence[str]) -> re.Pattern[str] | None:
    """What finds any of the texts, also as JSON writes them, in any case; None for no text."""
    forms: dict[str, None] = {}
    for text in texts:
        if text.strip():
            for form in (text, json.dumps(text)[1:-1], json.dumps(text, ensure_ascii=False)[1:-1]):
                forms[re.escape(form)] = None
    return re.compile("|".join(forms), re.IGNORECASE) if forms else None


def holding(home: Home, texts: Sequence[str]) -> list[str]:
    """Files below the home, databases aside, that hold one of the texts."""
    pattern = pattern_of(texts)
    if pattern is None:
        return []
    return [_name(home, path) for path in _files(home) if not _is_database(home, path) and _holds(path, pattern)]


def clean(home: Home, texts: Sequence[str], *, watched: Sequence[str]) -> Traces:
    """Take the texts out of logs, caches and waiting marks, then look for the `watched` ones in every byte below the home."""
    pattern, seeking = pattern_of(texts), pattern_of(watched)
    cleaned = _cleaned(home, pattern) if pattern else []
    left = [path for path in _files(home) if _holds(path, seeking)] if seeking else []
    return Traces(tuple(_name(home, path) for path in cleaned), tuple(_name(home, path) for path in left))


def _cleaned(home: Home, pattern: re.Pattern[str]) -> list[Path]:
    caches = [path for path in _matching(home, _CACHES) if _holds(path, pattern)]
    for path in caches:
        path.unlink(missing_ok=True)
    logs = [path for path in _matching(home, _LOGS) if _holds(path, pattern)]
    for path in logs:
        _take_out(path, pattern)
    queues = [path for path in _matching(home, _QUEUES) if _holds(path, pattern)]
    for path in queues:
        _take_lines_out(path, pattern)
    return [*caches, *logs, *queues]


def _take_out(log: Path, pattern: re.Pattern[str]) -> None:
    """Replace the text in place: whoever writes the log keeps it open, and appends to this very file."""
    with contextlib.suppress(OSError), log.open("r+b") as file:
        text = file.read().decode("utf-8", "replace")
        file.seek(0)
        file.write(pattern.sub(MARK, text).encode())
        file.truncate()


def _take_lines_out(path: Path, pattern: re.Pattern[str]) -> None:
    with contextlib.suppress(OSError), path.open("r+b") as file:
        lines = file.read().decode("utf-8", "replace").splitlines(keepends=True)
        file.seek(0)
        file.write("".join(line for line in lines if not pattern.search(line)).encode())
        file.truncate()


def _holds(path: Path, pattern: re.Pattern[str]) -> bool:
    """Whether a file holds what is sought, read piece by piece; a piece overlaps the one before by as much as is sought."""
    overlap = 4 * len(pattern.pattern)
    rest = b""
    try:
        with path.open("rb") as file:
            while chunk := file.read(_CHUNK):
                data = rest + chunk
                if pattern.search(data.decode("utf-8", "replace")):
                    return True
                rest = data[-overlap:]
    except OSError:
        return False
    return False


def _matching(home: Home, globs: Sequence[str]) -> Iterator[Path]:
    for glob in globs:
        for path in home.root.glob(glob):
            if path.is_file() and not path.is_symlink():
                yield path


def _files(home: Home) -> Iterator[Path]:
    """Every regular file below the home; links lead to what is not ours."""
    for folder, _, names in os.walk(home.root):
        for name in names:
            path = Path(folder, name)
            if path.is_file() and not path.is_symlink():
                yield path


def _is_database(home: Home, path: Path) -> bool:
    return path.parent == home.backups or path.name.startswith((home.database.name, home.records.name))


def _name(home: Home, path: Path) -> str:
    return str(path.relative_to(home.root))
