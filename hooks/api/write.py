"""Creating, changing, moving and deleting memories, and their glossary (`lore-contract.md` 1.8)."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from lorehooks.clients.console import Console
from lorehooks.core import uri as uris
from lorehooks.core.model import DEFAULT_PRIORITY, Node, NodeDraft, NodePatch, WriteResult
from lorehooks.core.writes import clean_keywords
from lorehooks.hooks.api.fields import MAX_INTEGER, Keywords, warnings_of
from lorehooks.hooks.api.operation import Answer, Body, Call, MayWait, Operation, Query, operation

operations: list[Operation] = []


class CreateBody(Body):
    """A memory to create: `domain`, `parent_path` and `title`, or the whole address in `uri`."""

    uri: str | None = None
    domain: str | None = None
    parent_path: str | None = None
    title: str | None = None
    """Last part of the path; blank takes the next number among the siblings."""
    content: str | None = None
    priority: int | None = Field(default=None, le=MAX_INTEGER, ge=-MAX_INTEGER)
    """2 when left out: a memory is general unless someone says otherwise."""
    disclosure: str | None = None
    glossary: Keywords | None = None
    session_id: str | None = None
    allow_secret: bool = False


class NodeQuery(Query):
    """Which memory."""

    domain: str = uris.DEFAULT_DOMAIN
    path: str = ""
    session_id: str | None = None


class UpdateBody(Body):
    """What to change; a field that is left out or null stays. `glossary` replaces, the other two add and remove."""

    content: str | None = None
    priority: int | None = Field(default=None, le=MAX_INTEGER, ge=-MAX_INTEGER)
    disclosure: str | None = None
    glossary: Keywords | None = None
    glossary_add: Keywords | None = None
    glossary_remove: Keywords | None = None
    session_id: str | None = None
    allow_secret: bool = False


class DeleteBody(Body):
    session_id: str | None = None


class MoveBody(Body):
    old_uri: str = ""
    new_uri: str = ""
    session_id: str | None = None


class KeywordBody(Body):
    keyword: str
    node_uuid: str
    session_id: str | None = None


class TriggersBody(Body):
    uri: str
    add: Keywords = Field(default_factory=list)
    remove: Keywords = Field(default_factory=list)
    session_id: str | None = None


class NodeRef(Answer):
    uri: str
    node_uuid: str
    content: str | None = None


class Written(MayWait):
    success: Literal[True] = True
    operation: Literal["create", "update"]
    uri: str
    path: str
    node_uuid: str
    node: NodeRef
    warnings: list[str]
    policy_warnings: list[str]


class Deleted(Answer):
    success: Literal[True] = True
    operation: Literal["delete"] = "delete"
    uri: str
    path: str
    node_uuid: str
    deleted_uri: str
    deleted_uris: list[str]
    """Everything that went, the memories below included."""
    warnings: list[str]
    policy_warnings: list[str]


class Moved(Answer):
    success: Literal[True] = True
    operation: Literal["move"] = "move"
    uri: str
    path: str
    node_uuid: str
    old_uri: str
    new_uri: str
    warnings: list[str]


class KeywordDone(MayWait):
    success: bool
    keyword: str
    node_uuid: str


class TriggersDone(MayWait):
    success: Literal[True] = True
    uri: str
    added: list[str]
    skipped_add: list[str]
    removed: list[str]
    skipped_remove: list[str]
    current: list[str]


@operation(operations, "POST", "/browse/node", "Create a memory")
async def create(call: Call, body: CreateBody) -> Written:
    draft = NodeDraft(
        uri=body.uri or "",
        content=body.content or "",
        priority=DEFAULT_PRIORITY if body.priority is None else body.priority,
        disclosure=body.disclosure or "",
        glossary=tuple(body.glossary or ()),
    )
    origin = call.origin(body.session_id)
    parent = uris.parse(f"{body.domain or uris.DEFAULT_DOMAIN}://{body.parent_path or ''}")
    if not body.uri and not (body.title or "").strip():
        console = Console(call.parts.backend)
        result = await console.create_numbered(parent, draft, origin, allow_secret=body.allow_secret)
    else:
        uri = body.uri or f"{parent}{'/' if parent.path else ''}{_title(body.title or '')}"
        named = NodeDraft(uri, draft.content, draft.priority, draft.disclosure, draft.glossary)
        result = await call.parts.backend.create_node(named, origin, allow_secret=body.allow_secret)
    return _written("create", result, draft.content)


@operation(operations, "PUT", "/browse/node", "Change a memory")
async def update(call: Call, query: NodeQuery, body: UpdateBody) -> Written:
    patch = NodePatch(
        content=body.content,
        priority=body.priority,
        disclosure=body.disclosure,
        glossary=None if body.glossary is None else tuple(body.glossary),
        glossary_add=tuple(body.glossary_add or ()),
        glossary_remove=tuple(body.glossary_remove or ()),
    )
    result = await call.parts.backend.update_node(
        f"{query.domain}://{query.path}", patch, call.origin(body.session_id), allow_secret=body.allow_secret
    )
    return _written("update", result)


@operation(operations, "DELETE", "/browse/node", "Delete a memory with everything below it")
async def delete(call: Call, query: NodeQuery, body: DeleteBody) -> Deleted:
    origin = call.origin(body.session_id or query.session_id)
    result = await call.parts.backend.delete_node(f"{query.domain}://{query.path}", origin)
    gone = [change.before.uri for change in result.changes if change.before is not None]
    return Deleted(
        uri=result.uri,
        path=uris.parse(result.uri).path,
        node_uuid=result.uuid,
        deleted_uri=result.uri,
        deleted_uris=sorted(gone),
        warnings=warnings_of(result),
        policy_warnings=warnings_of(result),
    )


@operation(operations, "POST", "/browse/move", "Give a memory, and everything below it, another address")
async def move(call: Call, body: MoveBody) -> Moved:
    old = str(uris.parse(body.old_uri))
    result = await call.parts.backend.move_node(old, body.new_uri, call.origin(body.session_id))
    return Moved(
        uri=result.uri,
        path=uris.parse(result.uri).path,
        node_uuid=result.uuid,
        old_uri=old,
        new_uri=result.uri,
        warnings=warnings_of(result),
    )


@operation(operations, "POST", "/browse/glossary", "Give a memory a keyword")
async def add_keyword(call: Call, body: KeywordBody) -> KeywordDone:
    node = Console(call.parts.backend).by_uuid(body.node_uuid)
    patch = NodePatch(glossary_add=(body.keyword,))
    result = await call.parts.backend.update_node(node.uri, patch, call.origin(body.session_id))
    return KeywordDone(success=True, keyword=body.keyword, node_uuid=node.uuid, proposal=result.proposal)


@operation(operations, "DELETE", "/browse/glossary", "Take a keyword from a memory")
async def remove_keyword(call: Call, body: KeywordBody) -> KeywordDone:
    node = Console(call.parts.backend).by_uuid(body.node_uuid)
    patch = NodePatch(glossary_remove=(body.keyword,))
    result = await call.parts.backend.update_node(node.uri, patch, call.origin(body.session_id))
    return KeywordDone(
        success=bool(result.changes), keyword=body.keyword, node_uuid=node.uuid, proposal=result.proposal
    )


@operation(operations, "POST", "/browse/triggers", "Give a memory keywords and take others from it")
async def triggers(call: Call, body: TriggersBody) -> TriggersDone:
    add, remove = clean_keywords(body.add), clean_keywords(body.remove)
    patch = NodePatch(glossary_add=add, glossary_remove=remove)
    result = await call.parts.backend.update_node(body.uri, patch, call.origin(body.session_id))
    before, after = _sides(call, result)
    return TriggersDone(
        uri=result.uri,
        added=[word for word in add if _has(after, word) and not _has(before, word)],
        skipped_add=[word for word in add if _has(before, word)],
        removed=[word for word in remove if _has(before, word) and not _has(after, word)],
        skipped_remove=[word for word in remove if not _has(before, word)],
        current=list(after),
        proposal=result.proposal,
    )


def _title(text: str) -> str:
    """A title as one segment; a slash in it would be a second one, which the grammar then refuses by its own words."""
    return text.strip().replace("/", " ")


def _written(name: Literal["create", "update"], result: WriteResult, content: str | None = None) -> Written:
    return Written(
        operation=name,
        uri=result.uri,
        path=uris.parse(result.uri).path,
        node_uuid=result.uuid,
        node=NodeRef(uri=result.uri, node_uuid=result.uuid, content=content),
        warnings=warnings_of(result),
        policy_warnings=warnings_of(result),
        proposal=result.proposal,
    )


def _sides(call: Call, result: WriteResult) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The glossary before and after a write, the same twice when it changed nothing."""
    if result.changes:
        before, after = result.changes[0].before, result.changes[0].after
        return _words(before), _words(after)
    words = _words(call.parts.backend.store.node_by_uuid(result.uuid))
    return words, words


def _words(node: Node | None) -> tuple[str, ...]:
    return node.glossary if node else ()


def _has(words: tuple[str, ...], word: str) -> bool:
    return word.casefold() in {known.casefold() for known in words}
