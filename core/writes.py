"""The verbs that change memory: create, update, delete, move, mark as used, set a setting.

Each is one transaction: it checks the rules of the memory model, appends events and answers what changed.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence

from lorehooks.core import policy
from lorehooks.core import uri as uris
from lorehooks.core.errors import ConflictError, InvalidError
from lorehooks.core.events import EventType, State, state_of
from lorehooks.core.model import Node, NodeDraft, NodePatch, Origin, WriteResult
from lorehooks.core.settings import Value, find
from lorehooks.core.store import Store, Transaction
from lorehooks.core.wellformed import well_formed


def clean_keywords(keywords: Iterable[str]) -> tuple[str, ...]:
    """Trimmed, without blanks, and without repeats in any case; the first spelling stays."""
    seen: dict[str, str] = {}
    for keyword in keywords:
        text = " ".join(well_formed(keyword).split())
        if text:
            seen.setdefault(text.casefold(), text)
    return tuple(seen.values())


def create(store: Store, draft: NodeDraft, origin: Origin, *, allow_secret: bool = False) -> WriteResult:
    """Write a new memory. The parent must exist, the path must be free.

    Raises InvalidError (path, priority cap, missing parent), ConflictError (path exists), SecretError, StorageError.
    """
    uri = uris.parse_for_write(draft.uri)
    glossary = clean_keywords(draft.glossary)
    content, disclosure = well_formed(draft.content), well_formed(draft.disclosure).strip()
    policy.check_priority_value(draft.priority)
    policy.check_text(content, disclosure, glossary)
    if not allow_secret:
        policy.check_secrets((content, disclosure, *glossary))
    with store.transaction(origin) as transaction:
        if transaction.node(uri) is not None:
            raise ConflictError(f"{uri} exists already", hint=f"update it instead: lore node update {uri}")
        if uri.parent is not None and transaction.node(uri.parent) is None:
            raise InvalidError(
                f"Parent path not found: {uri.parent}", hint=f"create it first: lore node create {uri.parent}"
            )
        policy.check_priority(transaction.connection, draft.priority, transaction.settings)
        state: State = {
            "uri": str(uri),
            "content": content,
            "priority": draft.priority,
            "disclosure": disclosure,
            "glossary": list(glossary),
        }
        node = transaction.change("create", None, state)
        warnings = [
            *policy.disclosure_warnings(disclosure, transaction.settings),
            *policy.glossary_warnings(glossary),
            *policy.path_warnings(uri),
        ]
    return WriteResult(str(uri), node.uuid if node else "", tuple(transaction.changes), tuple(warnings))


def update(
    store: Store, uri: uris.Uri, patch: NodePatch, origin: Origin, *, allow_secret: bool = False, **details: object
) -> WriteResult:
    """Change a memory; fields that the patch leaves out stay. Changing nothing writes nothing.

    An agent's write to a fixed boot node becomes a proposal under `policy.boot_write = review`. `details` go into the
    event. Raises NotFoundError, InvalidError, SecretError, StorageError.
    """
    with store.transaction(origin) as transaction:
        before = transaction.require(uri)
        after = _patched(before, patch)
        glossary = tuple(after["glossary"])
        policy.check_text(after["content"], after["disclosure"], glossary)
        if not allow_secret:
            known = "\n".join((before.content, before.disclosure, *before.glossary))
            policy.check_secrets((after["content"], after["disclosure"], *glossary), known)
        policy.check_priority_value(after["priority"])
        if after["priority"] != before.priority and not before.is_boot:
            policy.check_priority(transaction.connection, after["priority"], transaction.settings, uuid=before.uuid)
        if after == state_of(before):
            return WriteResult(before.uri, before.uuid)
        warnings: list[str] = []
        if patch.disclosure is not None and not before.is_boot:
            warnings = policy.disclosure_warnings(after["disclosure"], transaction.settings)
        if policy.needs_review(before.uri, origin, transaction.settings):
            return WriteResult(before.uri, before.uuid, (), tuple(warnings), _propose(transaction, before, after))
        if "rollback_from" in details:
            transaction.change(
                "update", before, after, **details
            )  # whatever it restores, so that it can be returned to
        else:
            event_type, keywords = _kind_of_update(before, after)
            transaction.change(event_type, before, after, **keywords, **details)
    return WriteResult(before.uri, before.uuid, tuple(transaction.changes), tuple(warnings))


def delete(store: Store, uri: uris.Uri, origin: Origin) -> WriteResult:
    """Remove a memory and everything below it; its history stays. Raises NotFoundError, ProtectedBootError."""
    policy.check_not_boot(uri, "deleted")
    with store.transaction(origin) as transaction:
        top = transaction.require(uri)
        for node in reversed(transaction.subtree(uri)):
            transaction.change("delete", node, None, root=str(uri))
    return WriteResult(str(uri), top.uuid, tuple(transaction.changes))


def move(store: Store, old: uris.Uri, new_text: str, origin: Origin) -> WriteResult:
    """Give a memory another address; everything below it goes along.

    Raises NotFoundError (source), ConflictError (target exists), InvalidError (bad path, missing parent, a target
    inside the source), ProtectedBootError.
    """
    new = uris.parse_for_write(new_text)
    policy.check_not_boot(old, "moved")
    policy.check_not_boot(new, "replaced")
    if old.contains(new):
        raise InvalidError(f"{new} lies inside {old}: choose a path outside of it")
    with store.transaction(origin) as transaction:
        top = transaction.require(old)
        if transaction.node(new) is not None:
            raise ConflictError(f"{new} exists already", hint=f"update it, then: lore node delete {old}")
        if new.parent is not None and transaction.node(new.parent) is None:
            raise InvalidError(
                f"Parent path not found: {new.parent}", hint=f"create it first: lore node create {new.parent}"
            )
        for node in transaction.subtree(old):
            target = uris.parse_for_write(str(new) + node.uri.removeprefix(str(old)))  # it may have become too long
            after = state_of(node) | {"uri": str(target)}
            transaction.change("move", node, after, root=str(old))
    return WriteResult(str(new), top.uuid, tuple(transaction.changes), tuple(policy.path_warnings(new)))


def mark_used(store: Store, query_id: str, nodes: Sequence[Node], how: str, origin: Origin) -> int:
    """Record that recalled memories were opened; a second mark of the same pair is not counted. Answers the new marks."""
    query_id = well_formed(query_id)
    fresh = 0
    with store.transaction(origin) as transaction:
        for node in nodes:
            if not _is_marked(transaction, query_id, node):
                transaction.append("use", {"query_id": query_id, "how": how}, node_uuid=node.uuid, uri=node.uri)
                fresh += 1
    return fresh


def set_settings(store: Store, values: Mapping[str, object | None], origin: Origin) -> None:
    """Set several settings, or none when one of them is wrong. None resets. Raises NotFoundError, InvalidError."""
    checked: dict[str, Value | None] = {
        key: None if value is None else find(key).check(value) for key, value in values.items()
    }
    for key in checked:
        if find(key).scope != "memory":
            raise InvalidError(
                f"{key} is a setting of this machine, not of the memory", hint=f"lore config set {key} …"
            )
    with store.transaction(origin) as transaction:
        for key, value in checked.items():
            if value != transaction.settings.changed.get(key):
                transaction.append("setting", {"key": key, "value": value}, node_uuid=None, uri=None)


def _patched(before: Node, patch: NodePatch) -> State:
    glossary = clean_keywords(before.glossary if patch.glossary is None else patch.glossary)
    removed = {keyword.casefold() for keyword in clean_keywords(patch.glossary_remove)}
    kept = [keyword for keyword in glossary if keyword.casefold() not in removed]
    return {
        "uri": before.uri,
        "content": before.content if patch.content is None else well_formed(patch.content),
        "priority": before.priority if patch.priority is None else patch.priority,
        "disclosure": before.disclosure if patch.disclosure is None else well_formed(patch.disclosure).strip(),
        "glossary": list(clean_keywords([*kept, *patch.glossary_add])),
    }


def _propose(transaction: Transaction, before: Node, after: State) -> int:
    """Note a write for a person to decide on and answer its number; the same proposal again keeps its first one."""
    waiting = transaction.connection.execute(
        "SELECT seq, after FROM proposals WHERE node_uuid = ? AND status = 'pending'", (before.uuid,)
    )
    for row in waiting.fetchall():
        if json.loads(row["after"]) == after:
            number: int = row["seq"]
            return number
    data: dict[str, object] = {"before": state_of(before), "after": after}
    return transaction.append("proposal", data, node_uuid=before.uuid, uri=before.uri).seq


def _kind_of_update(before: Node, after: State) -> tuple[EventType, dict[str, object]]:
    """`glossary_add` or `glossary_remove` with those keywords when nothing but keywords came or went, else `update`."""
    old, new = set(before.glossary), set(after["glossary"])
    if old != new and after == state_of(before) | {"glossary": after["glossary"]}:
        if old < new:
            return "glossary_add", {"keywords": [keyword for keyword in after["glossary"] if keyword not in old]}
        if new < old:
            return "glossary_remove", {"keywords": [keyword for keyword in before.glossary if keyword not in new]}
    return "update", {}


def _is_marked(transaction: Transaction, query_id: str, node: Node) -> bool:
    row = transaction.connection.execute(
        "SELECT 1 FROM uses WHERE query_id = ? AND node_uuid = ?", (query_id, node.uuid)
    ).fetchone()
    return row is not None
