"""Reading the tables that follow from the log, whether they are the memory's own or a replay beside it."""

from __future__ import annotations

import contextlib
import json
import sqlite3
from collections.abc import Iterable

from lorehooks.core.errors import InvalidError
from lorehooks.core.model import View
from lorehooks.core.schema import MIGRATIONS
from lorehooks.core.settings import SETTINGS, Settings, Value


def empty_copy() -> sqlite3.Connection:
    """A database in memory with every table of the newest schema, to replay a log into. The caller closes it."""
    connection = sqlite3.connect(":memory:", isolation_level=None)
    connection.row_factory = sqlite3.Row
    for step in MIGRATIONS:
        connection.executescript(step.script)
    return connection


def settings_in(rows: Iterable[sqlite3.Row]) -> Settings:
    """The settings in rows of `settings`. A stored value that this release does not allow counts as not set."""
    changed: dict[str, Value] = {}
    for row in rows:
        if row["key"] in SETTINGS:
            with contextlib.suppress(InvalidError):
                changed[row["key"]] = SETTINGS[row["key"]].check(json.loads(row["value"]))
    return Settings(changed)


def refined_in(rows: Iterable[sqlite3.Row]) -> dict[str, list[tuple[View, str]]]:
    """Views that a model wrote, in rows of `views`: node uuid to `(view, signature of the node it was written for)`."""
    found: dict[str, list[tuple[View, str]]] = {}
    for row in rows:
        view = View(row["type"], row["text"], "llm", row["model"])
        found.setdefault(row["node_uuid"], []).append((view, row["signature"]))
    return found
