"""Pages of memories: what `GET /browse/node` shows (`lore-contract.md` 1.7)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from lorehooks.clients.console import Child, Page
from lorehooks.core import uri as uris
from lorehooks.core.embeddings import Model
from lorehooks.core.footprints import Updater
from lorehooks.core.model import Node, View, ViewType
from lorehooks.hooks.api.operation import Answer

ROOT_UUID = "00000000-0000-0000-0000-000000000000"
GENERATOR = "lorehooks"
"""Who makes views here, as their metadata says."""
_SNIPPET = 100


class UpdaterAnswer(Answer):
    client_type: str | None
    source: str | None
    updated_at: str
    event_count: int


class ViewAnswer(Answer):
    """A text that stands for the memory in semantic recall. Ids are strings, as clients know them."""

    id: str
    uri: str
    node_uuid: str
    memory_id: str
    view_type: ViewType
    source: Literal["generated"] = "generated"
    status: Literal["active"] = "active"
    weight: float
    text_content: str
    embedding_model: str | None
    embedding_dim: int | None
    metadata: dict[str, object]
    created_at: str
    updated_at: str


class NodeAnswer(Answer):
    path: str
    domain: str
    uri: str
    content: str
    priority: int
    disclosure: str | None
    created_at: str | None
    """When the content as it is now was written."""
    is_virtual: bool
    """Whether this is the root of a domain, where there is no memory."""
    aliases: list[str]
    node_uuid: str
    glossary_keywords: list[str]
    glossary_matches: list[str]
    memory_views: list[ViewAnswer]
    last_updated_client_type: str | None
    last_updated_source: str | None
    last_updated_at: str | None
    updaters: list[UpdaterAnswer]


class ChildAnswer(Answer):
    node_uuid: str
    edge_id: int
    """A number that stays the same for this memory; there are no edges here."""
    domain: str
    path: str
    uri: str
    priority: int
    disclosure: str | None
    content_snippet: str
    approx_children_count: int
    last_updated_client_type: str | None
    last_updated_source: str | None
    last_updated_at: str | None
    updaters: list[UpdaterAnswer]


class Crumb(Answer):
    path: str
    label: str


class PageAnswer(Answer):
    node: NodeAnswer
    children: list[ChildAnswer]
    breadcrumbs: list[Crumb]


def page_answer(page: Page, settings: Mapping[str, Any], embedder: Model | None, *, nav_only: bool) -> PageAnswer:
    """A page in the contract's form; `nav_only` leaves keywords and views out."""
    return PageAnswer(
        node=_root(page.uri) if page.node is None else _node(page, page.node, settings, embedder, nav_only=nav_only),
        children=[_child(child) for child in page.children],
        breadcrumbs=_crumbs(page.uri),
    )


def _root(uri: uris.Uri) -> NodeAnswer:
    return NodeAnswer(
        path="",
        domain=uri.domain,
        uri=str(uri),
        content="",
        priority=0,
        disclosure=None,
        created_at=None,
        is_virtual=True,
        aliases=[],
        node_uuid=ROOT_UUID,
        glossary_keywords=[],
        glossary_matches=[],
        memory_views=[],
        last_updated_client_type=None,
        last_updated_source=None,
        last_updated_at=None,
        updaters=[],
    )


def _node(page: Page, node: Node, settings: Mapping[str, Any], embedder: Model | None, *, nav_only: bool) -> NodeAnswer:
    return NodeAnswer(
        path=node.path,
        domain=node.domain,
        uri=node.uri,
        content=node.content,
        priority=node.priority,
        disclosure=node.disclosure or None,
        created_at=node.content_at,
        is_virtual=False,
        aliases=[],
        node_uuid=node.uuid,
        glossary_keywords=[] if nav_only else list(node.glossary),
        glossary_matches=[],
        memory_views=[] if nav_only else [_view(node, view, settings, embedder) for view in page.views],
        last_updated_client_type=node.client_type,
        last_updated_source=node.source,
        last_updated_at=node.updated_at,
        updaters=_updaters(page.updaters),
    )


def _view(node: Node, view: View, settings: Mapping[str, Any], embedder: Model | None) -> ViewAnswer:
    return ViewAnswer(
        id=f"{node.uuid}:{view.type}",
        uri=node.uri,
        node_uuid=node.uuid,
        memory_id=node.uuid,
        view_type=view.type,
        weight=settings[f"views.weight.{view.type}"],
        text_content=view.text,
        embedding_model=embedder.profile if embedder else None,
        embedding_dim=embedder.dim if embedder else None,
        metadata={
            "generator_version": GENERATOR,
            "cue_terms": list(node.glossary),
            "glossary_terms": list(node.glossary),
            "disclosure": node.disclosure,
            "llm_refined": view.source == "llm",
            "llm_model": view.model,
        },
        created_at=node.updated_at,
        updated_at=node.updated_at,
    )


def _child(child: Child) -> ChildAnswer:
    node = child.node
    return ChildAnswer(
        node_uuid=node.uuid,
        edge_id=int(node.uuid.replace("-", "")[:12], 16),
        domain=node.domain,
        path=node.path,
        uri=node.uri,
        priority=node.priority,
        disclosure=node.disclosure or None,
        content_snippet=node.content if len(node.content) <= _SNIPPET else f"{node.content[:_SNIPPET]}...",
        approx_children_count=child.children,
        last_updated_client_type=node.client_type,
        last_updated_source=node.source,
        last_updated_at=node.updated_at,
        updaters=_updaters(child.updaters),
    )


def _updaters(found: Sequence[Updater]) -> list[UpdaterAnswer]:
    return [
        UpdaterAnswer(
            client_type=one.client_type, source=one.source, updated_at=one.updated_at, event_count=one.event_count
        )
        for one in found
    ]


def _crumbs(uri: uris.Uri) -> list[Crumb]:
    crumbs = [Crumb(path="", label="root")]
    for depth, segment in enumerate(uri.segments, start=1):
        crumbs.append(Crumb(path="/".join(uri.segments[:depth]), label=segment))
    return crumbs
