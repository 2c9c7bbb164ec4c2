"""The memory as it was after an event: its log replayed up to there, beside the memory of today."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass

from lorehooks.core.errors import NotFoundError
from lorehooks.core.events import event_of, node_of, project
from lorehooks.core.model import Node, View
from lorehooks.core.projections import empty_copy, refined_in, settings_in
from lorehooks.core.settings import Settings


@dataclass(frozen=True, slots=True)
class Past:
    """Every node by address, views that a model wrote (node uuid to `(view, signature)`), and the settings in force."""

    seq: int
    nodes: tuple[Node, ...]
    refined: dict[str, list[tuple[View, str]]]
    settings: Settings


def last_event(log: sqlite3.Connection) -> int:
    """The number of the newest event, 0 for none."""
    seq: int = log.execute("SELECT coalesce(max(seq), 0) FROM events").fetchone()[0]
    return seq


def memory_at(log: sqlite3.Connection, seq: int, progress: Callable[[], None] = lambda: None) -> Past:
    """The memory right after event `seq`. `progress` is called for each event up to there.

    Raises NotFoundError when the log does not reach that far: it is then another memory, or was purged or restored since.
    """
    if seq > last_event(log):
        raise NotFoundError(f"This memory's log ends before event {seq}", hint="was the memory moved or restored?")
    with closing(empty_copy()) as copy:
        for row in log.execute("SELECT * FROM events WHERE seq <= ? ORDER BY seq", (seq,)):
            project(copy, event_of(row))
            progress()
        return Past(
            seq,
            tuple(node_of(row) for row in copy.execute("SELECT * FROM nodes ORDER BY uri")),
            refined_in(copy.execute("SELECT * FROM views")),
            settings_in(copy.execute("SELECT * FROM settings")),
        )
