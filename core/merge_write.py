"""Carrying out a merge in one transaction, and looking at what it would do."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from lorehooks.core.archive import Archive
from lorehooks.core.clock import to_iso
from lorehooks.core.errors import SecretError
from lorehooks.core.events import Event, append, event_of, node_of
from lorehooks.core.lineage import REFERENCES, log_key
from lorehooks.core.merge import IMPORT, Here, MergePlan, Wishes, plan_merge
from lorehooks.core.model import Change, Node, Origin
from lorehooks.core.store import Store

_IN_LIST = 500


@dataclass(frozen=True, slots=True)
class Merged:
    """What an import did. `changes` is for indexes that follow the memory."""

    plan: MergePlan
    changes: tuple[Change, ...]


def preview(store: Store, archive: Archive, wishes: Wishes) -> MergePlan:
    """What `merge` would do now; nothing is changed."""
    with store.database.snapshot() as connection:
        return plan_merge(_here(connection, archive, store.settings, to_iso(store.clock())), archive, wishes)


def merge(store: Store, archive: Archive, wishes: Wishes) -> Merged:
    """Bring an archive in, all of it or nothing. Raises SecretError, StorageError."""
    with store.transaction(Origin(IMPORT)) as transaction:
        here = _here(transaction.connection, archive, transaction.settings, transaction.at)
        plan = plan_merge(here, archive, wishes)
        if plan.secrets:
            more = f" and {len(plan.secrets) - 1} more" if len(plan.secrets) > 1 else ""
            raise SecretError(
                f"The file holds what looks like a secret ({plan.secrets[0]}{more}); a memory is read by every agent",
                hint="take it out of the file, or import it all the same with --allow-secret",
            )
        _append(transaction.connection, plan, _numbers(here, archive))
        changes = _changes(here, plan, transaction.connection)
    return Merged(plan, changes)


def _here(connection: sqlite3.Connection, archive: Archive, settings: Mapping[str, Any], now: str) -> Here:
    nodes = [node_of(row) for row in connection.execute("SELECT * FROM nodes")]
    wanted = {node.uuid for node in archive.nodes} | {event.node_uuid for event in archive.events}
    return Here(
        nodes={node.uuid: node for node in nodes},
        events=_events(connection, sorted(uuid for uuid in wanted if uuid)),
        settings={row["key"]: json.loads(row["value"]) for row in connection.execute("SELECT * FROM settings")},
        priority_caps=settings["policy.priority_budget_enabled"],
        now=now,
    )


def _events(connection: sqlite3.Connection, uuids: list[str]) -> dict[str, list[Event]]:
    found: dict[str, list[Event]] = {}
    for start in range(0, len(uuids), _IN_LIST):
        part = uuids[start : start + _IN_LIST]
        marks = ",".join("?" * len(part))
        rows = connection.execute(f"SELECT * FROM events WHERE node_uuid IN ({marks}) ORDER BY seq", part)  # noqa: S608  only ?
        for row in rows:
            found.setdefault(row["node_uuid"], []).append(event_of(row))
    return found


def _numbers(here: Here, archive: Archive) -> dict[int, int]:
    """Numbers of the file's events that are here already, and the numbers they have here."""
    ours = {log_key(event): event.seq for log in here.events.values() for event in log}
    return {event.seq: seq for event in archive.events if (seq := ours.get(log_key(event))) is not None}


def _append(connection: sqlite3.Connection, plan: MergePlan, numbers: dict[int, int]) -> None:
    """Append what was worked out. An event keeps its number where that is free; references follow the numbers."""
    (last,) = connection.execute("SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = 'events'").fetchone()
    for draft in plan.drafts:
        event = draft.event
        data = dict(event.data)
        for name in REFERENCES:
            if name in data and draft.seq is not None:
                number = numbers.get(data.pop(name))
                if number is not None:
                    data[name] = number
        if event.type in ("proposal_accepted", "proposal_rejected") and "proposal" not in data:
            continue  # what it decided on is not here
        written = append(
            connection,
            event.type,
            data,
            at=event.at,
            origin=Origin(event.source, event.client_type, event.session_id),
            node_uuid=event.node_uuid,
            uri=event.uri,
            seq=max(last + 1, draft.seq or 0),
        )
        last = written.seq
        if draft.seq is not None:
            numbers[draft.seq] = written.seq


def _changes(here: Here, plan: MergePlan, connection: sqlite3.Connection) -> tuple[Change, ...]:
    touched = dict.fromkeys(draft.event.node_uuid for draft in plan.drafts if draft.event.node_uuid)
    now = _nodes(connection, touched)
    found = ((here.nodes.get(uuid), now.get(uuid)) for uuid in touched)
    return tuple(Change(before, after) for before, after in found if before is not None or after is not None)


def _nodes(connection: sqlite3.Connection, uuids: Iterable[str]) -> dict[str, Node]:
    found = {}
    for uuid in uuids:
        row = connection.execute("SELECT * FROM nodes WHERE uuid = ?", (uuid,)).fetchone()
        if row is not None:
            found[uuid] = node_of(row)
    return found
