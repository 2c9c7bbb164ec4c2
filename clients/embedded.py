"""The memory in this process: the SQLite store with its recall index kept in step.

All methods run on the event loop. Reads and recall take a few milliseconds and run there; a write waits for the disk and
runs in a thread, and its changes reach the index when it is back on the loop, so that the index has one writer.
"""

from __future__ import annotations

import asyncio
import uuid
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from lorehooks.clients.backend import Recalled
from lorehooks.core import guidance as guidance_texts
from lorehooks.core import uri as uris
from lorehooks.core import writes
from lorehooks.core.boot import BootData
from lorehooks.core.clock import from_iso, to_iso
from lorehooks.core.history import rollback
from lorehooks.core.index import RecallIndex
from lorehooks.core.model import (
    Change,
    Node,
    NodeDraft,
    NodePatch,
    Origin,
    RecallQuery,
    View,
    WriteResult,
    boot_uris_for,
)
from lorehooks.core.proposals import accept, reject
from lorehooks.core.recall import recall
from lorehooks.core.runs import Opened, Recorder, Shown
from lorehooks.core.search import near_duplicate, search, snippet
from lorehooks.core.store import Store
from lorehooks.core.tool_backend import ChildLine, DomainLine, NodeView, SearchHit, SearchMode, UseKind
from lorehooks.core.vectors import SqliteVectorCache
from lorehooks.core.views import rule_views, signature

_SNIPPET = 100
_RECALLS_KEPT = 10_000
_SLICE = 32
"""Texts embedded in one go: a prompt that comes meanwhile waits a few milliseconds for them."""


class EmbeddedBackend:
    """The embedded Lore memory. `ready` is set once the index holds every node."""

    name = "embedded"

    def __init__(
        self,
        store: Store,
        recorder: Recorder,
        *,
        language: str = "en",
        on_change: Callable[[], None] = lambda: None,
    ) -> None:
        """Take an open store and the records beside it. `on_change` is called on the loop after each write."""
        self.store = store
        self.recorder = recorder
        self.language = language
        self.index = RecallIndex()
        self.ready = asyncio.Event()
        self.last_seq = 0
        self._on_change = on_change
        self._waiting: list[Change] = []
        self._recalls: OrderedDict[str, Shown] = OrderedDict()

    async def load(self) -> None:
        """Fill the index from the store, then give it vectors. Answers become complete as this goes on."""
        self.index = await asyncio.to_thread(self._build_index)
        for change in self._waiting:
            self._apply(change)
        self._waiting.clear()
        self.last_seq = self.store.counts()["last_event"]
        self.ready.set()
        if self.store.settings["embedding.provider"] == "builtin":
            from lorehooks.core.embeddings import load_builtin  # takes a while, and memory

            embedder = await asyncio.to_thread(load_builtin)
            if embedder is not None:
                self.index.attach_embedder(embedder, SqliteVectorCache(self.store.database))
                await self.embed_pending()

    def _build_index(self) -> RecallIndex:
        index = RecallIndex()
        refined = self.store.refined_views()
        for node in self.store.nodes():
            index.put(node, _views(node, refined.get(node.uuid, [])))
        return index

    async def embed_pending(self) -> None:
        """Compute missing vectors in small slices, so that recall goes on in between."""
        while self.index.pending():
            self.index.embed_some(_SLICE)
            await asyncio.sleep(0)

    # --- reading ---

    async def status(self) -> Mapping[str, object]:
        return {"status": "ok", "database": "connected"}

    async def settings(self) -> Mapping[str, Any]:
        return self.store.settings

    async def guidance(self) -> str:
        return guidance_texts.guidance_text(self.store.settings, self.language)

    async def boot(self, client_type: str | None) -> BootData:
        settings = self.store.settings
        nodes = [self.store.node(uris.parse(text)) for text in boot_uris_for(client_type)]
        return BootData(
            guidance=await self.guidance(),
            nodes=tuple(node for node in nodes if node is not None),
            recent=tuple(self.store.recent()),
            preamble=settings["lifecycle.boot.preamble"],
            startup_preamble=settings["lifecycle.startup_recall.preamble"],
        )

    async def get_node(self, uri: str, *, nav_only: bool = False) -> NodeView:
        parsed = uris.parse(uri)
        children = tuple(
            ChildLine(child.uri, child.priority, snippet(child.content, _SNIPPET))
            for child in self.store.children(parsed)
        )
        if not parsed.path:
            return NodeView(uri=str(parsed), children=children)
        node = self.store.require(parsed)
        return NodeView(
            uri=node.uri,
            uuid=node.uuid,
            content="" if nav_only else node.content,
            priority=node.priority,
            disclosure=node.disclosure,
            glossary=node.glossary,
            children=children,
        )

    async def search(
        self, query: str, *, mode: SearchMode, domain: str | None, limit: int, content_limit: int
    ) -> Sequence[SearchHit]:
        await self.ready.wait()
        found = search(
            self.index,
            query,
            mode=mode,
            domain=domain,
            limit=limit,
            settings=self.store.settings,
            now=self.store.clock(),
        )
        hits = []
        for rank, candidate in enumerate(found):
            node = self.store.node_by_uuid(candidate.uuid)
            if node is None:
                continue
            content = node.content if rank < content_limit else None
            hits.append(
                SearchHit(node.uri, node.priority, candidate.score, candidate.cues, snippet(node.content), content)
            )
        return hits

    async def domains(self) -> Sequence[DomainLine]:
        return [DomainLine(name, count) for name, count in self.store.domains()]

    async def recall(self, query: RecallQuery, origin: Origin) -> Recalled:
        await self.ready.wait()
        settings = self.store.settings
        at = to_iso(self.store.clock())
        result = recall(self.index, query, settings, from_iso(at))
        query_id = str(uuid.uuid4())
        shown = tuple(candidate.uri for candidate in result.shown)
        self._recalls[query_id] = Shown(origin.client_type, origin.session_id, shown)
        if len(self._recalls) > _RECALLS_KEPT:
            self._recalls.popitem(last=False)
        return Recalled(query_id, result, settings.changed, self.last_seq, at)

    # --- writing ---

    async def create_node(self, draft: NodeDraft, origin: Origin, *, allow_secret: bool = False) -> WriteResult:
        close = await self._close_nodes(draft)
        result = await self._write(lambda: writes.create(self.store, draft, origin, allow_secret=allow_secret))
        return _with_warnings(result, close)

    async def update_node(
        self, uri: str, patch: NodePatch, origin: Origin, *, allow_secret: bool = False
    ) -> WriteResult:
        parsed = uris.parse(uri)
        return await self._write(lambda: writes.update(self.store, parsed, patch, origin, allow_secret=allow_secret))

    async def delete_node(self, uri: str, origin: Origin) -> WriteResult:
        return await self._write(lambda: writes.delete(self.store, uris.parse(uri), origin))

    async def move_node(self, old_uri: str, new_uri: str, origin: Origin) -> WriteResult:
        return await self._write(lambda: writes.move(self.store, uris.parse(old_uri), new_uri, origin))

    async def rollback(self, uri: str, seq: int, origin: Origin) -> WriteResult:
        """Restore a memory as it was after an event; see `core.history`."""
        return await self._write(lambda: rollback(self.store, uris.parse(uri), seq, origin))

    async def decide(self, number: int, *, accepted: bool, origin: Origin) -> WriteResult:
        """Accept or reject a proposal; see `core.proposals`."""
        return await self._write(lambda: (accept if accepted else reject)(self.store, number, origin))

    async def set_settings(self, values: Mapping[str, object | None], origin: Origin) -> None:
        """Set or reset several settings of the memory at once; see `core.writes`."""
        await asyncio.to_thread(writes.set_settings, self.store, values, origin)
        self._on_change()

    async def mark_used(self, *, uri: str, how: UseKind, query_id: str | None, session_id: str | None) -> bool:
        at = to_iso(self.store.clock())
        shown = (self._recalls.get(query_id) or self.recorder.shown(query_id)) if query_id else None
        client_type = shown.client_type if shown else None
        self.recorder.opened(Opened(at, client_type, session_id, query_id, uri, how))
        node = self.store.node(uris.parse(uri))
        if node is None or query_id is None or shown is None or how == "none":
            return False
        if node.uri not in shown.uris or (session_id and shown.session_id and session_id != shown.session_id):
            return False
        origin = Origin("use", client_type, shown.session_id)
        await asyncio.to_thread(writes.mark_used, self.store, query_id, [node], how, origin)
        return True

    async def close(self) -> None:
        self.store.close()

    async def _write(self, verb: Callable[[], WriteResult]) -> WriteResult:
        result = await asyncio.to_thread(verb)
        for change in result.changes:
            if self.ready.is_set():
                self._apply(change)
            else:
                self._waiting.append(change)
        self.last_seq = self.store.counts()["last_event"]
        if self.ready.is_set():
            self.index.embed_some(_SLICE)
        self._on_change()
        return result

    def _apply(self, change: Change) -> None:
        if change.after is None:
            if change.before is not None:
                self.index.remove(change.before.uuid)
        else:
            refined = self.store.refined_views_of(change.after.uuid)
            self.index.put(change.after, _views(change.after, refined))

    async def _close_nodes(self, draft: NodeDraft) -> list[str]:
        if not self.ready.is_set():
            return []
        near = near_duplicate(self.index, draft.content, draft.glossary, None)
        return [f"{uri} says nearly the same: update it instead of keeping two memories" for uri, _ in near[:1]]


def _views(node: Node, refined: Sequence[tuple[View, str]]) -> Sequence[View]:
    """A model's views where they were written for the node as it is now, else those by rule."""
    current = [view for view, written_for in refined if written_for == signature(node)]
    return current or rule_views(node)


def _with_warnings(result: WriteResult, warnings: Sequence[str]) -> WriteResult:
    return WriteResult(result.uri, result.uuid, result.changes, (*result.warnings, *warnings), result.proposal)
