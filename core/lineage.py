"""How two logs of the same memory relate: whether one continues the other, and whether histories fit beside each other."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from lorehooks.core.events import Event
from lorehooks.core.history import NODE_EVENTS
from lorehooks.core.model import BOOT_URIS

REFERENCES = ("rollback_from", "proposal")
"""Fields that hold the number of another event, which is another in another memory."""


def log_key(event: Event) -> str:
    """What makes two events of two logs the same one, whatever their numbers."""
    data = {name: value for name, value in event.data.items() if name not in REFERENCES}
    if event.type == "create" and event.uri in BOOT_URIS and not event.data["after"]["content"]:
        return f"born {event.uri}"  # each memory makes its own boot nodes, at another moment
    parts = (event.type, event.at, event.source, event.client_type, event.session_id, event.node_uuid, event.uri)
    return json.dumps((*parts, data), sort_keys=True)


def continuation(ours: Sequence[Event], theirs: Sequence[Event]) -> Sequence[Event] | None:
    """What `theirs` has after the last state that both had; None when `ours` went another way, or further."""
    mine = [log_key(event) for event in ours if event.type in NODE_EVENTS]
    their_states = [event for event in theirs if event.type in NODE_EVENTS]
    if not mine or [log_key(event) for event in their_states[: len(mine)]] != mine:
        return None
    last_common = their_states[len(mine) - 1].seq
    return [event for event in theirs if event.seq > last_common]


def without_clashes(at: Mapping[str, str], histories: Mapping[str, Sequence[Event]]) -> set[str]:
    """The memories (uuids) whose histories must stay out, so that the rest can be replayed on `at` (address to uuid)."""
    left_out: set[str] = set()
    while True:
        clashing = _clashes(at, {uuid: log for uuid, log in histories.items() if uuid not in left_out})
        if not clashing:
            return left_out
        left_out |= clashing


def _clashes(at: Mapping[str, str], histories: Mapping[str, Sequence[Event]]) -> set[str]:
    """Replay side by side; the memories that would step onto another's address, or whose events make no sense."""
    uuid_at = dict(at)
    address = {uuid: uri for uri, uuid in at.items()}
    clashing: set[str] = set()
    for event in sorted((event for log in histories.values() for event in log), key=lambda event: event.seq):
        uuid = event.node_uuid or ""
        if event.type not in NODE_EVENTS or uuid in clashing:
            continue
        stood = address.pop(uuid, None)
        if stood is not None:
            del uuid_at[stood]
        uri = None if event.type == "delete" else event.data["after"]["uri"]
        if (stood is None) != (event.type == "create") or uri in uuid_at:
            clashing.add(uuid)
        elif uri is not None:
            uuid_at[uri], address[uuid] = uuid, uri
    return clashing
