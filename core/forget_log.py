"""What `lore forget` does to the log itself: whole histories go, others lose the states that hold a text."""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from lorehooks.core.embeddings import vector_key
from lorehooks.core.events import Event, State, event_of, node_of
from lorehooks.core.history import NODE_EVENTS
from lorehooks.core.views import rule_views

_NO_TEXT = frozenset({"type", "how", "key", "signature", "created_at"})
"""Fields of an event's data that hold our own words."""


def remove_whole(connection: sqlite3.Connection, node_uuids: Iterable[str]) -> int:
    """Drop everything the log says of some memories; answers how many events that were."""
    return sum(
        connection.execute("DELETE FROM events WHERE node_uuid = ?", (node_uuid,)).rowcount for node_uuid in node_uuids
    )


def trim(connection: sqlite3.Connection, node_uuid: str, pattern: re.Pattern[str]) -> tuple[int, int]:
    """Take the states that match out of one memory's history; answers how many events went and how many changed.

    An event whose result matches goes. One that only came from such a state gets the last state that is left as its
    `before`, and becomes the creation when there is none.
    """
    rows = connection.execute("SELECT * FROM events WHERE node_uuid = ? ORDER BY seq", (node_uuid,)).fetchall()
    events = [event_of(row) for row in rows]
    (now,) = connection.execute("SELECT uri FROM nodes WHERE uuid = ?", (node_uuid,)).fetchone()
    created_at = events[0].data.get("created_at", events[0].at)
    last: State | None = None
    removed: set[int] = set()
    changed = 0
    for event in events:
        is_decision = event.type in {"proposal_accepted", "proposal_rejected"}
        if _result_matches(event, pattern) or (is_decision and event.data["proposal"] in removed):
            connection.execute("DELETE FROM events WHERE seq = ?", (event.seq,))
            removed.add(event.seq)
            continue
        kept = _without(event, last, created_at, pattern)
        if kept.uri and pattern.search(kept.uri):
            kept = replace(kept, uri=last["uri"] if last else now)
        if kept != event:
            connection.execute(
                "UPDATE events SET type = ?, uri = ?, data = ? WHERE seq = ?",
                (kept.type, kept.uri, json.dumps(kept.data, ensure_ascii=False, separators=(",", ":")), event.seq),
            )
            changed += 1
        if event.type in NODE_EVENTS:
            last = event.data["after"]
    return len(removed), changed


def _without(event: Event, last: State | None, created_at: str, pattern: re.Pattern[str]) -> Event:
    """The event without what matches in where it came from."""
    is_linked = event.type == "create" or event.type not in NODE_EVENTS or event.data.get("before") == last
    if is_linked and not any(pattern.search(text) for text in texts(event)):
        return event
    data = dict(event.data)
    if event.type == "proposal":
        data["before"] = last or data["after"]
        return replace(event, data=data)
    if event.type not in NODE_EVENTS:
        return event  # its address may match, which the caller sets right
    if last is None:
        return replace(event, type="create", data={"after": data["after"], "created_at": created_at})
    data.pop("keywords", None)
    data["before"] = last
    moved = event.type == "move" and last["uri"] != data["after"]["uri"]
    if moved:
        data["root"] = last["uri"]
    else:
        data.pop("root", None)
    return replace(event, type="move" if moved else "update", data=data)


def drop_vectors(connection: sqlite3.Connection) -> None:
    """Drop every cached vector that no view of a memory of now would ask for: a vector says much of its text."""
    texts = [row["text"] for row in connection.execute("SELECT text FROM views")]
    for row in connection.execute("SELECT * FROM nodes"):
        texts += [view.text for view in rule_views(node_of(row))]
    wanted = {vector_key(text) for text in texts}
    keys = [(row["key"],) for row in connection.execute("SELECT DISTINCT key FROM vectors") if row["key"] not in wanted]
    connection.executemany("DELETE FROM vectors WHERE key = ?", keys)


def remove_settings(connection: sqlite3.Connection, pattern: re.Pattern[str]) -> int:
    """Drop values that match. What was set before them is in force again."""
    rows = connection.execute("SELECT * FROM events WHERE type = 'setting'").fetchall()
    found = [row["seq"] for row in rows if any(pattern.search(text) for text in texts(event_of(row)))]
    connection.executemany("DELETE FROM events WHERE seq = ?", [(seq,) for seq in found])
    return len(found)


def blank_sessions(connection: sqlite3.Connection, pattern: re.Pattern[str]) -> int:
    """Take session ids that match out of events; answers how many changed."""
    rows = connection.execute("SELECT DISTINCT session_id FROM events WHERE session_id IS NOT NULL").fetchall()
    return sum(
        connection.execute("UPDATE events SET session_id = NULL WHERE session_id = ?", (row["session_id"],)).rowcount
        for row in rows
        if pattern.search(row["session_id"])
    )


def _result_matches(event: Event, pattern: re.Pattern[str]) -> bool:
    """Whether what an event brought in matches, and not only what it replaced."""
    return any(pattern.search(text) for text in _strings(event.data, _NO_TEXT | {"before", "root", "keywords"}))


def texts(event: Event) -> Iterable[str]:
    """Every text of an event that a person, a model or a host made up."""
    yield event.uri or ""
    yield from _strings(event.data, _NO_TEXT)


def _strings(value: Any, left_out: frozenset[str] = frozenset()) -> Iterable[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for name, item in value.items():
            if name not in left_out:
                yield from _strings(item)
    elif isinstance(value, list):
        for item in value:
            yield from _strings(item)
