"""Writes of agents to boot nodes that wait for a person's yes (design "Always true" 3)."""

from __future__ import annotations

import json
from dataclasses import dataclass

from lorehooks.core import uri as uris
from lorehooks.core.errors import ConflictError, NotFoundError
from lorehooks.core.events import State
from lorehooks.core.model import Origin, WriteResult
from lorehooks.core.store import Store, Transaction


@dataclass(frozen=True, slots=True)
class Proposal:
    """`before` is the boot node as it is now, `after` as it would be. `number` is the event that proposed it."""

    number: int
    uri: str
    before: State
    after: State
    at: str
    client_type: str | None
    source: str


def pending(store: Store) -> list[Proposal]:
    """Proposals that nobody has decided on, oldest first."""
    rows = store.database.read.execute("SELECT * FROM proposals WHERE status = 'pending' ORDER BY seq").fetchall()
    found = []
    for row in rows:
        node = store.require(uris.parse(row["uri"]))
        before = {"uri": node.uri, "content": node.content, "priority": node.priority,
                  "disclosure": node.disclosure, "glossary": list(node.glossary)}  # fmt: skip
        found.append(
            Proposal(
                row["seq"], row["uri"], before, json.loads(row["after"]), row["at"], row["client_type"], row["source"]
            )
        )
    return found


def accept(store: Store, number: int, origin: Origin) -> WriteResult:
    """Write what was proposed. Raises NotFoundError, or ConflictError when it was decided before."""
    with store.transaction(origin) as transaction:
        row = _open_proposal(transaction, number)
        node = transaction.require(uris.parse(row["uri"]))
        transaction.append("proposal_accepted", {"proposal": number}, node_uuid=node.uuid, uri=node.uri)
        transaction.change("update", node, json.loads(row["after"]), proposal=number)
    return WriteResult(node.uri, node.uuid, tuple(transaction.changes))


def reject(store: Store, number: int, origin: Origin) -> WriteResult:
    """Drop what was proposed; the log keeps it. Raises NotFoundError, or ConflictError when it was decided before."""
    with store.transaction(origin) as transaction:
        row = _open_proposal(transaction, number)
        transaction.append("proposal_rejected", {"proposal": number}, node_uuid=row["node_uuid"], uri=row["uri"])
    return WriteResult(row["uri"], row["node_uuid"])


def _open_proposal(transaction: Transaction, number: int) -> dict[str, str]:
    row = transaction.connection.execute("SELECT * FROM proposals WHERE seq = ?", (number,)).fetchone()
    if row is None:
        raise NotFoundError(f"There is no proposal {number}", hint="lore pending list")
    if row["status"] != "pending":
        raise ConflictError(f"Proposal {number} was {row['status']} already", hint="lore pending list")
    return dict(row)
