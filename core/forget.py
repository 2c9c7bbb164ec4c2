"""The one way to lose memory: a person's `lore forget`, a true purge over log and projections, with a tombstone.

Forgetting an address takes the memory there, everything below it, and deleted memories that last stood there. Forgetting
a text takes each memory that holds it now, and each deleted one that ever held it; a memory that held it only earlier
stays and loses those states. A fixed boot node, and a parent of memories that stay, is left behind empty.
"""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from lorehooks.core import uri as uris
from lorehooks.core.errors import InvalidError, StorageError
from lorehooks.core.events import event_of
from lorehooks.core.forget_log import blank_sessions, drop_vectors, remove_settings, remove_whole, texts, trim
from lorehooks.core.history import NODE_EVENTS
from lorehooks.core.model import Change, Origin
from lorehooks.core.rebuild import rebuild_projections
from lorehooks.core.store import Store, empty_state, not_found
from lorehooks.core.wellformed import well_formed

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
    uuids: tuple[str, ...]
    """Memories of which nothing stays, by identity: for copies of the memory, where they may stand elsewhere."""
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


def plan_forget(
    store: Store, addresses: Sequence[uris.Uri] = (), matching: str = "", uuids: Collection[str] = ()
) -> ForgetPlan:
    """What `forget` would take. Raises NotFoundError for an address without a trace, InvalidError for a text too short."""
    with store.database.snapshot() as connection:
        return plan_in(connection, addresses, matching, uuids)


def plan_in(
    connection: sqlite3.Connection, addresses: Sequence[uris.Uri], matching: str, uuids: Collection[str] = ()
) -> ForgetPlan:
    """The same for a memory that is open for reading."""
    return _plan(connection, _select(connection, addresses, text_pattern(matching), uuids))


def uuids_at(store: Store, addresses: Sequence[uris.Uri]) -> set[str]:
    """Identities of the memories that stand, or last stood, at these addresses and below them."""
    with store.database.snapshot() as connection:
        last = _last_addresses(connection)
    return {uuid for uuid, (uri, _) in last.items() if any(address.contains(uris.parse(uri)) for address in addresses)}


def holds(connection: sqlite3.Connection, address: uris.Uri) -> bool:
    """Whether a memory knows anything of an address."""
    return any(address.contains(uris.parse(uri)) for uri, _ in _last_addresses(connection).values())


def forget(
    store: Store,
    origin: Origin,
    addresses: Sequence[uris.Uri] = (),
    matching: str = "",
    uuids: Collection[str] = (),
) -> ForgetResult:
    """Purge memories by address, by text, by identity, from the log, views, use marks, proposals and cached vectors.

    The file is written anew afterwards, so that no byte of them is left in free pages or in the WAL. The tombstone says
    only how much went. Raises NotFoundError for an address without a trace, InvalidError, StorageError, and then nothing
    has gone. Unknown identities are passed over.
    """
    pattern = text_pattern(matching)
    with store.transaction(origin) as transaction:
        connection = transaction.connection
        selection = _select(connection, addresses, pattern, uuids)
        plan = _plan(connection, selection)
        gone = [transaction.require(uris.parse(text)) for text in plan.memories]
        kept = [transaction.require(uris.parse(text)) for text in plan.earlier]
        removed = remove_whole(connection, selection.whole)
        changed = 0
        if pattern is not None:
            for node_uuid in selection.touched:
                less, other = trim(connection, node_uuid, pattern)
                removed, changed = removed + less, changed + other
            removed += remove_settings(connection, pattern)
            changed += blank_sessions(connection, pattern)
        rebuild_projections(connection)
        drop_vectors(connection)
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
        return ForgetResult(plan, tuple(selection.whole), removed, changed, changes, left=str(error))
    return ForgetResult(plan, tuple(selection.whole), removed, changed, changes)


def text_pattern(matching: str) -> re.Pattern[str] | None:
    """What finds a text in any case; None for no text. Raises InvalidError for one too short."""
    text = well_formed(matching).strip()
    if not text and not matching:
        return None
    if len(text) < MIN_TEXT:
        raise InvalidError(f"A text to forget has at least {MIN_TEXT} characters, not {matching!r}")
    return re.compile(re.escape(text), re.IGNORECASE)


def _select(
    connection: sqlite3.Connection,
    addresses: Sequence[uris.Uri],
    pattern: re.Pattern[str] | None,
    uuids: Collection[str] = (),
) -> _Selection:
    """Choose by address, identity and text. Every event is read once when there is a text."""
    last = _last_addresses(connection)
    selection = _Selection({uuid: last[uuid][0] for uuid in uuids if uuid in last})
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
        if not any(pattern.search(text) for text in texts(event)):
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
