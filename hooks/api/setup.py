"""How far a memory is set up, for a console's first page (`lore-contract.md` 1.11)."""

from __future__ import annotations

from typing import Literal

from lorehooks.core import uri as uris
from lorehooks.core.model import BOOT_URIS, CLIENT_TYPES, GLOBAL_BOOT_URIS
from lorehooks.hooks.api.boot import BootNode, boot_node
from lorehooks.hooks.api.bootnodes import SPECS
from lorehooks.hooks.api.operation import Answer, Call, Operation, operation

operations: list[Operation] = []


class Step(Answer):
    """`optional` steps do not hold up `complete`. Ours."""

    id: str
    path: str
    label: str
    description: str
    complete: bool
    optional: bool = False
    role: str | None = None
    uri: str | None = None
    scope: str | None = None
    client_type: str | None = None
    setup_slug: str | None = None


class Configured(Answer):
    configured: bool
    runtime_ready: bool


class BootState(Answer):
    overall_state: Literal["uninitialized", "partial", "complete"]
    nodes: list[BootNode]
    loaded: int
    total: int
    remaining_count: int
    draft_generation_available: bool = False
    draft_generation_reason: str | None = "Drafts are not generated here."
    includes_all_clients: bool = True


class SetupAnswer(Answer):
    complete: bool
    next_step: str | None
    steps: list[Step]
    embedding: Configured
    llm: Configured
    boot: BootState


@operation(operations, "GET", "/setup/flow", "What is set up, and what is the next step")
async def flow(call: Call) -> SetupAnswer:
    backend = call.parts.backend
    settings = backend.store.settings
    nodes = [boot_node(SPECS[uri], backend.store.require(uris.parse(uri))) for uri in BOOT_URIS]
    filled = {node.uri for node in nodes if node.state == "initialized"}
    off = settings["embedding.provider"] == "off"
    embedding = Configured(configured=not off, runtime_ready=backend.live.embedder is not None)
    model = bool(settings["view_llm.base_url"] and settings["view_llm.model"])
    steps = [
        Step(
            id="embedding",
            path="/setup/embedding",
            label="Vectors",
            description="Where vectors for recall by meaning come from; the built-in model needs nothing.",
            complete=off or embedding.runtime_ready,
        ),
        Step(
            id="llm",
            path="/setup/llm",
            label="Views by a model",
            description="A chat endpoint that writes views; without one they are made by rule.",
            complete=model,
            optional=True,
        ),
        *(_boot_step(uri, done=uri in filled) for uri in GLOBAL_BOOT_URIS),
        Step(
            id="channel_agents",
            path="/setup/channels",
            label="Rules of single runtimes",
            description="What differs in one runtime; the working rules hold everywhere without them.",
            complete=all(f"core://agent/{client}" in filled for client in CLIENT_TYPES),
            optional=True,
            role="agent",
            scope="client",
            setup_slug="channel_agents",
        ),
    ]
    open_steps = [step for step in steps if not step.complete and not step.optional]
    return SetupAnswer(
        complete=not open_steps,
        next_step=open_steps[0].path if open_steps else None,
        steps=steps,
        embedding=embedding,
        llm=Configured(configured=model, runtime_ready=model),
        boot=BootState(
            overall_state="complete" if len(filled) == len(nodes) else "partial" if filled else "uninitialized",
            nodes=nodes,
            loaded=len(nodes),
            total=len(nodes),
            remaining_count=len(nodes) - len(filled),
        ),
    )


def _boot_step(uri: str, *, done: bool) -> Step:
    spec = SPECS[uri]
    return Step(
        id=f"boot:{spec.id}",
        path=f"/setup/boot/{spec.id}",
        label=spec.setup_title,
        description=spec.setup_description,
        complete=done,
        role=spec.role,
        uri=uri,
        scope=spec.scope,
        setup_slug=spec.id,
    )
