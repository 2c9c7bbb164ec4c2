"""Writes of agents to boot nodes that wait for a person's yes (design "Always true" 3)."""

from __future__ import annotations

import json
import sqlite3
from dataclasses import dataclass

from lorehooks.core import uri as uris
from lorehooks.core.errors import ConflictError, NotFoundError, short
from lorehooks.core.events import State, state_of
from lorehooks.core.history import MAX_SEQ
from lorehooks.core.model import Node, Origin, WriteResult
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
    rows = store.database.query(
        "SELECT p.*, e.data FROM proposals p JOIN events e USING (seq) WHERE p.status = 'pending' ORDER BY p.seq"
    )
    found = []
    for row in rows:
        node = store.require(uris.parse(row["uri"]))
        found.append(
            Proposal(
                row["seq"],
                row["uri"],
                state_of(node),
                _applied(node, row),
                row["at"],
                row["client_type"],
                row["source"],
            )
        )
    return found


def accept(store: Store, number: int, origin: Origin) -> WriteResult:
    """Write what was proposed. Raises NotFoundError, or ConflictError when it was decided before."""
    with store.transaction(origin) as transaction:
        row = _open_proposal(transaction, number)
        node = transaction.require(uris.parse(row["uri"]))
        transaction.append("proposal_accepted", {"proposal": number}, node_uuid=node.uuid, uri=node.uri)
        after = _applied(node, row)
        if after != state_of(node):
            transaction.change("update", node, after, proposal=number)
    return WriteResult(node.uri, node.uuid, tuple(transaction.changes))


def reject(store: Store, number: int, origin: Origin) -> WriteResult:
    """Drop what was proposed; the log keeps it. Raises NotFoundError, or ConflictError when it was decided before."""
    with store.transaction(origin) as transaction:
        row = _open_proposal(transaction, number)
        transaction.append("proposal_rejected", {"proposal": number}, node_uuid=row["node_uuid"], uri=row["uri"])
    return WriteResult(row["uri"], row["node_uuid"])


def _applied(node: Node, row: sqlite3.Row) -> State:
    """The node with the fields that were proposed to change; what a person wrote since to the others stays."""
    before, after = json.loads(row["data"])["before"], json.loads(row["after"])
    return state_of(node) | {name: after[name] for name in after if after[name] != before.get(name)}


def _open_proposal(transaction: Transaction, number: int) -> sqlite3.Row:
    row: sqlite3.Row | None = None
    if 0 < number < MAX_SEQ:
        row = transaction.connection.execute(
            "SELECT p.*, e.data FROM proposals p JOIN events e USING (seq) WHERE p.seq = ?", (number,)
        ).fetchone()
    if row is None:
        raise NotFoundError(f"There is no proposal {short(number)}", hint="lore pending list")
    if row["status"] != "pending":
        raise ConflictError(f"Proposal {number} was {row['status']} already", hint="lore pending list")
    return row
