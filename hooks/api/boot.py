"""The fixed boot nodes: reading them for a client, and a person's own editing of them (`lore-contract.md` 1.6)."""

from __future__ import annotations

from typing import Any, Literal

from lorehooks.core import uri as uris
from lorehooks.core.errors import InvalidError, LoreError
from lorehooks.core.model import Node, NodePatch, Origin, boot_uris_for
from lorehooks.hooks.api.bootnodes import SPECS, BootSpec
from lorehooks.hooks.api.operation import Answer, Body, Call, Operation, operation

operations: list[Operation] = []


class Spec(Answer):
    """What a boot node is for."""

    id: str
    uri: str
    role: Literal["agent", "soul", "user"]
    role_label: str
    purpose: str
    dream_protection: Literal["protected"] = "protected"
    scope: Literal["global", "client"]
    client_type: str | None
    setup_slug: str
    setup_title: str
    setup_description: str


class CoreMemory(Spec):
    """A boot node as a session gets it."""

    content: str
    priority: int
    disclosure: str | None
    node_uuid: str
    boot_role: str
    boot_role_label: str
    boot_purpose: str


class BootNode(Spec):
    """A boot node as an editor shows it. Boot nodes exist from the start, so none is ever missing."""

    state: Literal["empty", "initialized"]
    content: str
    content_length: int
    priority: int
    disclosure: str | None
    node_uuid: str


class Recent(Answer):
    uri: str
    priority: int
    disclosure: str | None
    created_at: str
    """When its content was written."""


class BootAnswer(Answer):
    loaded: int
    total: int
    failed: list[str]
    core_memories: list[CoreMemory]
    recent_memories: list[Recent]
    nodes: list[BootNode]
    overall_state: Literal["uninitialized", "partial", "complete"]
    remaining_count: int
    draft_generation_available: bool = False
    draft_generation_reason: str | None = "Drafts are not generated here."
    selected_client_type: str | None
    includes_all_clients: bool


class BootBody(Body):
    """New contents by address of the boot node."""

    nodes: dict[str, str]
    session_id: str | None = None


class BootResult(Answer):
    """`pending`: an agent asked, and a person has to agree first."""

    uri: str
    status: Literal["created", "updated", "unchanged", "pending", "failed"]
    node_uuid: str | None
    detail: str | None


class BootResults(Answer):
    results: list[BootResult]


@operation(operations, "GET", "/browse/boot", "The boot nodes of a client, and the latest memories")
async def read(call: Call) -> BootAnswer:
    client_type = call.client_type
    data = await call.parts.backend.boot(client_type)
    wanted = boot_uris_for(client_type)
    have = {node.uri: node for node in data.nodes}
    filled = sum(bool(node.content.strip()) for node in data.nodes)
    return BootAnswer(
        loaded=len(have),
        total=len(wanted),
        failed=[f"- {uri}: not found" for uri in wanted if uri not in have],
        core_memories=[_core_memory(SPECS[node.uri], node) for node in data.nodes],
        recent_memories=[
            Recent(
                uri=node.uri,
                priority=node.priority,
                disclosure=node.disclosure or None,
                created_at=node.content_at,
            )
            for node in data.recent
        ],
        nodes=[boot_node(SPECS[node.uri], node) for node in data.nodes],
        overall_state="complete" if filled == len(wanted) else "partial" if filled else "uninitialized",
        remaining_count=len(wanted) - filled,
        selected_client_type=client_type,
        includes_all_clients=client_type == "admin",
    )


@operation(operations, "PUT", "/browse/boot", "Write the contents of boot nodes")
async def write(call: Call, body: BootBody) -> BootResults:
    if not body.nodes:
        raise InvalidError("At least one fixed boot node must be provided.")
    contents = {str(uris.parse(text)): content for text, content in body.nodes.items()}
    for uri in contents:
        if uri not in SPECS:
            raise InvalidError(f"Unsupported boot URI: {uri}", hint=f"boot nodes are {', '.join(SPECS)}")
    origin = call.origin(body.session_id)
    return BootResults(results=[await _write_one(call, uri, contents[uri], origin) for uri in SPECS if uri in contents])


async def _write_one(call: Call, uri: str, content: str, origin: Origin) -> BootResult:
    before = call.parts.backend.store.require(uris.parse(uri))
    try:
        result = await call.parts.backend.update_node(uri, NodePatch(content=content), origin)
    except LoreError as error:
        return BootResult(uri=uri, status="failed", node_uuid=before.uuid, detail=str(error))
    if result.proposal is not None:
        detail = f"waits for the user's yes (proposal {result.proposal}, lore pending list)"
        return BootResult(uri=uri, status="pending", node_uuid=result.uuid, detail=detail)
    if not result.changes:
        return BootResult(uri=uri, status="unchanged", node_uuid=result.uuid, detail=None)
    status: Literal["created", "updated"] = "updated" if before.content.strip() else "created"
    return BootResult(uri=uri, status=status, node_uuid=result.uuid, detail=None)


def _core_memory(spec: BootSpec, node: Node) -> CoreMemory:
    return CoreMemory(
        **_spec(spec),
        content=node.content,
        priority=node.priority,
        disclosure=node.disclosure or None,
        node_uuid=node.uuid,
        boot_role=spec.role,
        boot_role_label=spec.role_label,
        boot_purpose=spec.purpose,
    )


def boot_node(spec: BootSpec, node: Node) -> BootNode:
    """A boot node as an editor shows it."""
    return BootNode(
        **_spec(spec),
        state="initialized" if node.content.strip() else "empty",
        content=node.content,
        content_length=len(node.content.strip()),
        priority=node.priority,
        disclosure=node.disclosure or None,
        node_uuid=node.uuid,
    )


def _spec(spec: BootSpec) -> dict[str, Any]:
    return {
        "id": spec.id,
        "uri": spec.uri,
        "role": spec.role,
        "role_label": spec.role_label,
        "purpose": spec.purpose,
        "scope": spec.scope,
        "client_type": spec.client_type,
        "setup_slug": spec.id,
        "setup_title": spec.setup_title,
        "setup_description": spec.setup_description,
    }
