"""The memory in this process: the SQLite store with its recall index kept in step.

All methods run on the event loop. Reads and recall take a few milliseconds and run there; a write waits for the disk and
runs in a thread, and its changes reach the index when it is back on the loop, so that the index has one writer. What the
Lore API and a person's console ask for beyond hooks and tools is in `clients.console`.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
import uuid
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

from lorehooks.clients.backend import Recalled
from lorehooks.clients.background import Pace
from lorehooks.clients.live_index import LiveIndex
from lorehooks.clients.models import Models
from lorehooks.clients.recent import RecentRecalls, fits
from lorehooks.core import guidance as guidance_texts
from lorehooks.core import uri as uris
from lorehooks.core import writes
from lorehooks.core.boot import BootData
from lorehooks.core.clock import from_iso, to_iso
from lorehooks.core.errors import StorageError
from lorehooks.core.history import rollback
from lorehooks.core.index import RecallIndex
from lorehooks.core.model import (
    Candidate,
    Change,
    Node,
    NodeDraft,
    NodePatch,
    Origin,
    RecallQuery,
    ViewType,
    WriteResult,
    boot_uris_for,
)
from lorehooks.core.proposals import accept, reject
from lorehooks.core.recall import recall, retrieval_text
from lorehooks.core.recorded_model import vectors_meta
from lorehooks.core.refine import keep_views
from lorehooks.core.runs import Opened, Recorder
from lorehooks.core.search import near_duplicate, search, search_text, snippet
from lorehooks.core.store import Store
from lorehooks.core.tool_backend import ChildLine, DomainLine, NodeView, SearchHit, SearchMode, UseKind

if TYPE_CHECKING:
    from lorehooks.clients.model_endpoint import CredentialOf

Result = TypeVar("Result")
_SNIPPET = 100
_LOAD_SHARE = 0.5
"""How much of what a caller has left may go by until all memories are loaded, before some of them answer."""
_PROMPT_SHARE, _PROMPT_SECONDS = 0.6, 1.0
"""Part of a prompt's time, and most of it, that may go by until its vector is there."""


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
        credential_of: CredentialOf | None = None,
        pace: Pace | None = None,
    ) -> None:
        """Take an open store and the records beside it. `on_change` is called on the loop after each write.

        `credential_of` gives what is kept for the origin of an endpoint of models; without it, endpoints get no key.
        `pace` says how patiently they are tried again.
        """
        self.store = store
        self.recorder = recorder
        self.language = language
        self.live = LiveIndex(store)
        self.models = Models(self.live, self._keep_views, credential_of, pace)
        self.last_seq = store.last_event()
        self.write_error = ""
        """Why the latest write failed; empty when the disk took it."""
        self._on_change = on_change
        self._writing = asyncio.Lock()
        """Held until a write has reached the index: `last_seq` never names an event that recall has not seen."""
        self._background: set[asyncio.Task[None]] = set()
        self._writes: set[asyncio.Task[Any]] = set()
        self._recalls = RecentRecalls(recorder)

    @property
    def index(self) -> RecallIndex:
        """The index as it is now; a rebuild replaces it."""
        return self.live.index

    @property
    def ready(self) -> asyncio.Event:
        """Set once the index holds every memory."""
        return self.live.ready

    async def load(self) -> None:
        """Fill the index from the store, then give it vectors. Answers become complete as this goes on.

        What takes endpoints of models goes on in the background afterwards.
        """
        await self.live.load()
        await self.models.source.start()
        self.live.complete.set()
        self._in_background(self.models.run())

    # --- reading ---

    async def status(self) -> Mapping[str, object]:
        self.store.database.query("SELECT seq FROM events LIMIT 1")
        return {"status": "ok", "database": "connected"}

    def state(self) -> dict[str, object]:
        """How it does, as the doctor wants to know it: whether it takes writes, whether recall is complete and has vectors."""
        return {
            "read_only": self.store.database.read_only,
            "write_error": self.write_error,
            "index_ready": self.live.complete.is_set(),
            "vectors": self.live.embedder.profile if self.live.embedder else None,
            **self.models.state(),
        }

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
            ChildLine(child.uri, child.priority, snippet(child.content, "", _SNIPPET))
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
        hits = []
        for rank, (candidate, node) in enumerate(await self.find(query, mode=mode, domain=domain, limit=limit)):
            content = node.content if rank < content_limit else None
            piece = snippet(node.content, query)
            hits.append(SearchHit(node.uri, node.priority, candidate.score, candidate.cues, piece, content))
        return hits

    async def find(
        self, query: str, *, mode: SearchMode, domain: str | None, limit: int
    ) -> list[tuple[Candidate, Node]]:
        """What `search` finds, with every signal and the whole memory."""
        await self.ready.wait()
        settings = self.store.settings
        await self.models.source.prepare(search_text(query), _PROMPT_SECONDS)
        found = search(
            self.index, query, mode=mode, domain=domain, limit=limit, settings=settings, now=self.store.clock()
        )
        with_nodes = ((candidate, self.store.node_by_uuid(candidate.uuid)) for candidate in found)
        return [(candidate, node) for candidate, node in with_nodes if node is not None]

    async def domains(self) -> Sequence[DomainLine]:
        return [DomainLine(name, count) for name, count in self.store.domains()]

    async def recall(self, query: RecallQuery, origin: Origin, *, seconds: float | None = None) -> Recalled:
        """Candidates for a prompt. `seconds` is what the caller has left: a part of it may go by for the prompt's vector."""
        due = time.monotonic() + (
            self.store.settings["recall.safety.timeout_ms"] / 1000 if seconds is None else seconds
        )
        if query.project:
            self.live.prefer(query.project)
        await self._loaded(max(0.0, due - time.monotonic()) * _LOAD_SHARE)
        settings = self.store.settings
        text, _ = retrieval_text(query.text, settings)
        without = await self.models.source.prepare(
            text, min(max(0.0, due - time.monotonic()) * _PROMPT_SHARE, _PROMPT_SECONDS)
        )
        at = to_iso(self.store.clock())
        index = self.index
        result = recall(index, query, settings, from_iso(at))
        if not self.ready.is_set() and not result.shown:
            await self.ready.wait()  # what is asked for may be among the others; the caller ends it when it cannot wait
            result = recall(self.index, query, settings, from_iso(at))
        result = replace(result, meta=vectors_meta(index, text, without) | self.live.progress())
        recalled = Recalled(str(uuid.uuid4()), result, settings.changed, self.last_seq, at)
        self._recalls.remember(recalled, origin)
        return recalled

    async def _loaded(self, seconds: float) -> None:
        """Wait for all memories to be loaded, at most so long: a prompt is better answered from some than from none."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(None if self.ready.is_set() else seconds):
                await self.ready.wait()

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

        async def write() -> None:
            async with self._writing:
                await self._in_thread(lambda: writes.set_settings(self.store, values, origin))
                self.last_seq = self.store.last_event()
            self.models.follow(values)
            self._on_change()

        await self._to_its_end(write())

    async def mark_used(self, *, uri: str, how: UseKind, query_id: str | None, session_id: str | None) -> bool:
        at = to_iso(self.store.clock())
        shown = self._recalls.shown(query_id)
        client_type = shown.client_type if shown else None
        self.recorder.opened(Opened(at, client_type, session_id, query_id, uri, how))
        node = self.store.node(uris.parse(uri))
        if node is None or query_id is None or shown is None or how == "none" or not fits(shown, node.uri, session_id):
            return False
        origin = Origin("use", client_type, shown.session_id)
        await asyncio.to_thread(writes.mark_used, self.store, query_id, [node], how, origin)
        return True

    async def mark_many(self, query_id: str, addresses: Sequence[str], origin: Origin) -> int:
        """Note that memories of one recall were used; without addresses, all that it showed. Answers the new marks.

        An unknown query, and an address that it did not show, count for nothing.
        """
        shown = self._recalls.shown(query_id)
        if shown is None:
            return 0
        wanted = dict.fromkeys(str(uris.parse(text)) for text in addresses) if addresses else shown.uris
        found = (self.store.node(uris.parse(uri)) for uri in wanted if uri in shown.uris)
        nodes = [node for node in found if node is not None]
        at = to_iso(self.store.clock())
        for node in nodes:
            self.recorder.opened(Opened(at, origin.client_type, origin.session_id, query_id, node.uri, "passed"))
        return await asyncio.to_thread(writes.mark_used, self.store, query_id, nodes, "passed", origin)

    async def close(self) -> None:
        for task in self._background:
            task.cancel()
        await asyncio.gather(*self._background, return_exceptions=True)
        await asyncio.gather(*self._writes, return_exceptions=True)
        await self.models.source.close()
        await self.live.flush()
        self.store.close()

    def changed(self, changes: Sequence[Change]) -> None:
        """Tell the index, and whoever listens, what a write did. On the event loop."""
        self.live.apply(changes)
        self.models.note(changes)
        self.last_seq = self.store.last_event()
        self._in_background(self.live.settle())
        self._on_change()

    def _in_background(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._background.add(task)
        task.add_done_callback(self._background.discard)

    async def _keep_views(self, node: Node, texts: Mapping[ViewType, str], model: str) -> bool:
        """Make a model's views part of the memory and of recall. Raises StorageError."""

        async def write() -> bool:
            async with self._writing:
                kept = await asyncio.to_thread(keep_views, self.store, node, texts, model)
                if kept:
                    self.live.refresh(node)
                    self.last_seq = self.store.last_event()
                    self._in_background(self.live.settle())
            return kept

        return await self._to_its_end(write())

    async def change_many(self, work: Callable[[], Sequence[Change]], *, purge: bool = False) -> None:
        """Run work that writes to the store in a thread, then bring the index up to date. Raises what the work raises.

        With `purge`, no vector of what went is computed or written down behind it.
        """

        async def write() -> None:
            async with self._writing, self.live.forgetting() if purge else contextlib.nullcontext():
                self.changed(await asyncio.to_thread(work))

        await self._to_its_end(write())

    async def _write(self, verb: Callable[[], WriteResult]) -> WriteResult:
        async def write() -> WriteResult:
            async with self._writing:
                result = await self._in_thread(verb)
                self.changed(result.changes)
            return result

        return await self._to_its_end(write())

    async def _in_thread(self, verb: Callable[[], Result]) -> Result:
        """Write aside, and note whether the disk took it."""
        try:
            result = await asyncio.to_thread(verb)
        except StorageError as error:
            self.write_error = str(error)
            raise
        self.write_error = ""
        return result

    async def _to_its_end(self, write: Coroutine[Any, Any, Result]) -> Result:
        """Go on with a write although whoever asked is gone: no thread can be called back, and what it commits must be recalled."""
        task = asyncio.create_task(write)
        self._writes.add(task)
        task.add_done_callback(self._ended)
        return await asyncio.shield(task)

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._writes.discard(task)
        if not task.cancelled():
            task.exception()  # told to whoever waits; nobody may

    async def _close_nodes(self, draft: NodeDraft) -> list[str]:
        if not self.ready.is_set():
            return []
        near = near_duplicate(self.index, draft.content, draft.glossary, None)
        return [f"{uri} says nearly the same: update it instead of keeping two memories" for uri, _ in near[:1]]


def _with_warnings(result: WriteResult, warnings: Sequence[str]) -> WriteResult:
    return WriteResult(result.uri, result.uuid, result.changes, (*result.warnings, *warnings), result.proposal)
