"""The one way to lose memory: a person's `lore forget`, a true purge over log and projections, with a tombstone.

Forgetting an address takes the memory there, everything below it, and deleted memories that last stood there. Forgetting
a text takes each memory that holds it now, and each deleted one that ever held it; a memory that held it only earlier
stays and loses those states. A fixed boot node, and a parent of memories that stay, is left behind empty.
"""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from lorehooks.core import uri as uris
from lorehooks.core.errors import InvalidError, StorageError
from lorehooks.core.events import Event, State, event_of
from lorehooks.core.history import NODE_EVENTS
from lorehooks.core.model import Change, Origin
from lorehooks.core.rebuild import rebuild_projections
from lorehooks.core.store import Store, empty_state, not_found
from lorehooks.core.wellformed import well_formed

_NO_TEXT = frozenset({"type", "how", "key", "signature", "created_at"})
"""Fields of an event's data that hold our own words."""

MIN_TEXT = 2
"""Characters of a text to match: one character would take nearly everything."""


@dataclass(frozen=True, slots=True)
class ForgetPlan:
    """What would go, by address, for a person to confirm."""

    memories: tuple[str, ...] = ()
    """Memories that exist now."""
    deleted: tuple[str, ...] = ()
    """Deleted memories, of which the history would go."""
    earlier: tuple[str, ...] = ()
    """Memories that stay and lose earlier states."""
    settings: tuple[str, ...] = ()
    """Settings that hold the text and would be as they were before."""

    def __bool__(self) -> bool:
        return bool(self.memories or self.deleted or self.earlier or self.settings)


@dataclass(frozen=True, slots=True)
class ForgetResult:
    """What went. `removed` and `changed` count events; `changes` is for indexes that follow the memory."""

    plan: ForgetPlan
    removed: int
    changed: int
    changes: tuple[Change, ...]
    left: str = ""
    """Why old bytes may still be in the file; empty when none are."""


@dataclass(slots=True)
class _Selection:
    """`whole` are memories (uuid to last address) of which nothing stays; `touched` those that lose some events."""

    whole: dict[str, str] = field(default_factory=dict)
    touched: set[str] = field(default_factory=set)
    settings: set[str] = field(default_factory=set)


def plan_forget(store: Store, addresses: Sequence[uris.Uri] = (), matching: str = "") -> ForgetPlan:
    """What `forget` would take. Raises NotFoundError for an address without a trace, InvalidError for a text too short."""
    pattern = _pattern(matching)
    with store.database.snapshot() as connection:
        return _plan(connection, _select(connection, addresses, pattern))


def forget(store: Store, origin: Origin, addresses: Sequence[uris.Uri] = (), matching: str = "") -> ForgetResult:
    """Purge memories by address, by text, or both, from the log, views, use marks, proposals and cached vectors.

    The file is written anew afterwards, so that no byte of them is left in free pages or in the WAL. The tombstone says
    only how much went. Raises NotFoundError, InvalidError, StorageError, and then nothing has gone.
    """
    pattern = _pattern(matching)
    with store.transaction(origin) as transaction:
        connection = transaction.connection
        selection = _select(connection, addresses, pattern)
        plan = _plan(connection, selection)
        gone = [transaction.require(uris.parse(text)) for text in plan.memories]
        kept = [transaction.require(uris.parse(text)) for text in plan.earlier]
        removed = _remove_whole(connection, selection.whole)
        changed = 0
        if pattern is not None:
            for node_uuid in selection.touched:
                less, other = _trim(connection, node_uuid, pattern)
                removed, changed = removed + less, changed + other
            removed += _remove_settings(connection, pattern)
            changed += _blank_sessions(connection, pattern)
        connection.execute("DELETE FROM vectors")  # they carry no text to find them by, and are computed again
        rebuild_projections(connection)
        for node in gone:
            if node.is_boot or transaction.subtree(uris.parse(node.uri)):
                state = empty_state(node.uri) | {"priority": node.priority}
                transaction.append("create", {"after": state}, node_uuid=node.uuid, uri=node.uri)
        if removed or changed:
            counts: dict[str, object] = {"nodes": len(selection.whole), "removed": removed, "changed": changed}
            transaction.append("purge", counts, node_uuid=None, uri=None)
        changes = tuple(Change(node, transaction.node(uris.parse(node.uri))) for node in (*gone, *kept))
    try:
        store.database.compact()
    except StorageError as error:
        return ForgetResult(plan, removed, changed, changes, left=str(error))
    return ForgetResult(plan, removed, changed, changes)


def _pattern(matching: str) -> re.Pattern[str] | None:
    text = well_formed(matching).strip()
    if not text and not matching:
        return None
    if len(text) < MIN_TEXT:
        raise InvalidError(f"A text to forget has at least {MIN_TEXT} characters, not {matching!r}")
    return re.compile(re.escape(text), re.IGNORECASE)


def _select(
    connection: sqlite3.Connection, addresses: Sequence[uris.Uri], pattern: re.Pattern[str] | None
) -> _Selection:
    """Choose by address and by text. Every event is read once when there is a text."""
    last = _last_addresses(connection)
    selection = _Selection()
    for address in addresses:
        found = {uuid: uri for uuid, (uri, _) in last.items() if address.contains(uris.parse(uri))}
        if not found:
            raise not_found(address)
        selection.whole |= found
    if pattern is None:
        return selection
    matched: set[str] = set()
    for row in connection.execute("SELECT * FROM events"):
        event = event_of(row)
        if not any(pattern.search(text) for text in _texts(event)):
            continue
        if event.type == "setting":
            selection.settings.add(event.data["key"])
        elif event.node_uuid is not None:
            matched.add(event.node_uuid)
    for node_uuid in matched - selection.whole.keys():
        uri, exists = last[node_uuid]
        if not exists or _holds_now(connection, node_uuid, pattern):
            selection.whole[node_uuid] = uri
        else:
            selection.touched.add(node_uuid)
    return selection


def _last_addresses(connection: sqlite3.Connection) -> dict[str, tuple[str, bool]]:
    """Each memory there ever was: its last address, and whether it still exists."""
    marks = ",".join("?" * len(NODE_EVENTS))
    rows = connection.execute(
        "SELECT node_uuid, uri, type FROM events WHERE seq IN"  # noqa: S608  only ?
        f" (SELECT max(seq) FROM events WHERE type IN ({marks}) GROUP BY node_uuid)",
        NODE_EVENTS,
    )
    return {row["node_uuid"]: (row["uri"], row["type"] != "delete") for row in rows}


def _holds_now(connection: sqlite3.Connection, node_uuid: str, pattern: re.Pattern[str]) -> bool:
    row = connection.execute(
        "SELECT uri, content, disclosure, glossary FROM nodes WHERE uuid = ?", (node_uuid,)
    ).fetchone()
    texts = (row["uri"], row["content"], row["disclosure"], *json.loads(row["glossary"]))
    return any(pattern.search(text) for text in texts)


def _plan(connection: sqlite3.Connection, selection: _Selection) -> ForgetPlan:
    now = {row["uuid"]: row["uri"] for row in connection.execute("SELECT uuid, uri FROM nodes")}
    return ForgetPlan(
        memories=tuple(sorted(now[uuid] for uuid in selection.whole if uuid in now)),
        deleted=tuple(sorted(uri for uuid, uri in selection.whole.items() if uuid not in now)),
        earlier=tuple(sorted(now[uuid] for uuid in selection.touched)),
        settings=tuple(sorted(selection.settings)),
    )


def _remove_whole(connection: sqlite3.Connection, node_uuids: Iterable[str]) -> int:
    return sum(
        connection.execute("DELETE FROM events WHERE node_uuid = ?", (node_uuid,)).rowcount for node_uuid in node_uuids
    )


def _trim(connection: sqlite3.Connection, node_uuid: str, pattern: re.Pattern[str]) -> tuple[int, int]:
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
    if is_linked and not any(pattern.search(text) for text in _texts(event)):
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


def _remove_settings(connection: sqlite3.Connection, pattern: re.Pattern[str]) -> int:
    """Drop values that match. What was set before them is in force again."""
    rows = connection.execute("SELECT * FROM events WHERE type = 'setting'").fetchall()
    found = [row["seq"] for row in rows if any(pattern.search(text) for text in _texts(event_of(row)))]
    connection.executemany("DELETE FROM events WHERE seq = ?", [(seq,) for seq in found])
    return len(found)


def _blank_sessions(connection: sqlite3.Connection, pattern: re.Pattern[str]) -> int:
    rows = connection.execute("SELECT DISTINCT session_id FROM events WHERE session_id IS NOT NULL").fetchall()
    return sum(
        connection.execute("UPDATE events SET session_id = NULL WHERE session_id = ?", (row["session_id"],)).rowcount
        for row in rows
        if pattern.search(row["session_id"])
    )


def _result_matches(event: Event, pattern: re.Pattern[str]) -> bool:
    """Whether what an event brought in matches, and not only what it replaced."""
    return any(pattern.search(text) for text in _strings(event.data, _NO_TEXT | {"before", "root", "keywords"}))


def _texts(event: Event) -> Iterable[str]:
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
