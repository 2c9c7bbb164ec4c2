"""What happened to a memory, read from the log, and the way back (seed "History and rollback")."""

from __future__ import annotations

from lorehooks.core import uri as uris
from lorehooks.core.errors import InvalidError, NotFoundError
from lorehooks.core.events import Event
from lorehooks.core.model import NodePatch, Origin, WriteResult
from lorehooks.core.store import Store, not_found
from lorehooks.core.writes import update

NODE_EVENTS = ("create", "update", "move", "delete", "glossary_add", "glossary_remove")
_KINDS = ",".join(f"'{name}'" for name in NODE_EVENTS)
MAX_LIMIT = 10_000
MAX_SEQ = 2**63
ROLLBACK_EVENTS = ("create", "update")
"""Events one can roll back to; a move and a delete stay visible, and cannot be undone here."""


def history(store: Store, uri: uris.Uri, limit: int = 50) -> list[Event]:
    """Events of the memory at an address, newest first; of a deleted one too. Raises NotFoundError."""
    identity = _identity(store, uri)
    return store.events(
        f"WHERE node_uuid = ? AND type IN ({_KINDS}) ORDER BY seq DESC LIMIT ?",
        (identity, max(0, min(limit, MAX_LIMIT))),
    )


def rollback(store: Store, uri: uris.Uri, seq: int, origin: Origin) -> WriteResult:
    """Restore content, priority, disclosure and glossary as they were after event `seq`; written as a new update.

    Raises NotFoundError for an unknown event, InvalidError for one of another memory or of a kind that cannot be
    rolled back to.
    """
    node = store.require(uri)
    event = next(iter(store.events("WHERE seq = ?", (seq,))), None) if 0 < seq < MAX_SEQ else None
    if event is None or event.type not in NODE_EVENTS:
        raise NotFoundError(f"There is no event {seq} of {uri}", hint=f"lore node history {uri}")
    if event.node_uuid != node.uuid:
        raise InvalidError(f"Event {seq} belongs to another memory ({event.uri})", hint=f"lore node history {uri}")
    if event.type not in ROLLBACK_EVENTS:
        raise InvalidError(
            f"Event {seq} is a {event.type.replace('_', ' ')}; only a create or an update can be rolled back to",
            hint=f"lore node history {uri}",
        )
    after = event.data["after"]
    patch = NodePatch(
        content=after["content"],
        priority=after["priority"],
        disclosure=after["disclosure"],
        glossary=tuple(after["glossary"]),
    )
    return update(store, uri, patch, origin, allow_secret=True, rollback_from=seq)


def is_rollback(event: Event) -> bool:
    return "rollback_from" in event.data


def _identity(store: Store, uri: uris.Uri) -> str:
    """The node at an address now, or the one that was there last."""
    node = store.node(uri)
    if node is not None:
        return node.uuid
    for last in store.events(f"WHERE uri = ? AND type IN ({_KINDS}) ORDER BY seq DESC LIMIT 1", (str(uri),)):
        if last.node_uuid is not None:
            return last.node_uuid
    raise not_found(uri)
