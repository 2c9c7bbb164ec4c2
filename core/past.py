"""The memory as it was after an event: its log replayed up to there, beside the memory of today."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass

from lorehooks.core.errors import NotFoundError
from lorehooks.core.events import event_of, node_of, project
from lorehooks.core.model import Node, View
from lorehooks.core.schema import MIGRATIONS
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
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as copy:
        copy.row_factory = sqlite3.Row
        for step in MIGRATIONS:
            copy.executescript(step.script)
        for row in log.execute("SELECT * FROM events WHERE seq <= ? ORDER BY seq", (seq,)):
            project(copy, event_of(row))
            progress()
        refined: dict[str, list[tuple[View, str]]] = {}
        for row in copy.execute("SELECT * FROM views"):
            view = View(row["type"], row["text"], "llm", row["model"])
            refined.setdefault(row["node_uuid"], []).append((view, row["signature"]))
        return Past(
            seq,
            tuple(node_of(row) for row in copy.execute("SELECT * FROM nodes ORDER BY uri")),
            refined,
            Settings({row["key"]: json.loads(row["value"]) for row in copy.execute("SELECT * FROM settings")}),
        )
