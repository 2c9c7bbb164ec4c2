"""Views that a model writes: which memories lack them, and how they become part of the memory.

There is no queue to keep: a memory waits exactly as long as the log holds no views that were written for it as it is now.
So what waits survives any end of the service, follows from an import or a rollback, and can never disagree with the memory.
"""

from __future__ import annotations

from collections.abc import Mapping

from lorehooks.core.events import node_of
from lorehooks.core.model import VIEW_TYPES, Node, Origin, ViewType
from lorehooks.core.store import Store
from lorehooks.core.views import signature

_ORIGIN = Origin("views")


def wants_views(node: Node) -> bool:
    """Whether a model should write its views. Boot nodes are never recalled, and of nothing there is nothing to say."""
    return not node.is_boot and bool(node.content.strip())


def unrefined(store: Store) -> list[str]:
    """The uuids of memories without up-to-date views by a model, the one written last first. Reads the whole memory."""
    written: dict[str, set[str]] = {}
    for row in store.database.query("SELECT node_uuid, type, signature FROM views"):
        written.setdefault(row["node_uuid"], set()).add(f"{row['type']} {row['signature']}")
    found = []
    for row in store.database.query("SELECT * FROM nodes ORDER BY seq DESC"):
        node = node_of(row)
        if wants_views(node):
            mark = signature(node)
            if not {f"{kind} {mark}" for kind in VIEW_TYPES} <= written.get(node.uuid, set()):
                found.append(node.uuid)
    return found


def is_refined(store: Store, node: Node) -> bool:
    """Whether a model has written both views for the memory as it is."""
    mark = signature(node)
    return {view.type for view, written_for in store.refined_views_of(node.uuid) if written_for == mark} == set(
        VIEW_TYPES
    )


def keep_views(store: Store, node: Node, texts: Mapping[ViewType, str], model: str) -> bool:
    """Make views that were written for a memory part of it. False, and nothing happens, when it is not as it was then.

    Raises StorageError.
    """
    mark = signature(node)
    with store.transaction(_ORIGIN) as transaction:
        row = transaction.connection.execute("SELECT * FROM nodes WHERE uuid = ?", (node.uuid,)).fetchone()
        if row is None or signature(node_of(row)) != mark:
            return False
        for kind, text in texts.items():
            data: dict[str, object] = {"type": kind, "text": text, "model": model, "signature": mark}
            transaction.append("view", data, node_uuid=node.uuid, uri=node.uri)
    return True
