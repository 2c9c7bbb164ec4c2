"""The recall index of a running service: filled at start, kept in step with each write, made again in place.

Everything here runs on the event loop in slices of a few milliseconds that give way to prompts, so that one that comes
meanwhile waits for a slice and not for the whole; the index has one thread that reads and writes it. Only for the vectors
of another model a second index is built beside the first: it takes as much memory again.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager

from lorehooks.core.embeddings import Embedder, Model, vector_key
from lorehooks.core.index import RecallIndex, is_project, project_of
from lorehooks.core.model import Change, Node, View
from lorehooks.core.store import Store
from lorehooks.core.vector_cache import SqliteVectorCache
from lorehooks.core.views import rule_views, signature

_SLICE_SECONDS = 0.002
_GIVE_WAY_SECONDS, _LOOK_AGAIN_SECONDS = 0.02, 0.0005
"""How long a slice waits for prompts that are being answered, so that it comes to its turn all the same."""
_FLUSH_SECONDS = 1.0
_LOOK_UP_AT_ONCE = 256
_EMBED_AT_ONCE = 16
_PUT_AT_ONCE = 4
"""Texts embedded, and memories put in, between two looks at the clock."""

logger = logging.getLogger(__name__)
Progress = Callable[[int, int], None]
"""Called with how many memories are done, and of how many."""


def _no_progress(done: int, total: int) -> None:
    del done, total


class LiveIndex:
    """`index` answers at any time; `ready` is set once it holds every memory, `complete` once they have their vectors."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.index = RecallIndex()
        self.ready = asyncio.Event()
        self.complete = asyncio.Event()
        self.cache = _WriteBehind(SqliteVectorCache(store.database))
        self.wanting = asyncio.Event()
        """Set when texts wait for the vectors of a model that is elsewhere."""
        self.purges = 0
        """How often something was forgotten: vectors that were asked for before must not be kept."""
        self._embedder: Model | None = None
        self._calibrated_for = 0
        self.busy: Callable[[], bool] = lambda: False
        """Whether somebody waits for an answer, to whom slices give way."""
        self._building = asyncio.Lock()
        self._saving = asyncio.Lock()
        self._settling = False
        self._missed: list[Change] | None = None
        """Changes since a new index began to be built, which it gets before it takes over."""
        self._written: set[str] | None = None
        """Identities of what was written since the index began to be made again: it has newer words than were read."""
        self.memories = 0
        """How many memories there were to load, once that is known."""
        self._preferred: list[str] = []

    @property
    def embedder(self) -> Model | None:
        """The model in use; None before it is loaded, where there is none, and when it is switched off."""
        return self.index.vectors.embedder

    async def load(self) -> None:
        """Fill the index from the store. Words find memories from then on; `use` brings the vectors."""
        async with self._building:
            await self._make_again(_no_progress, _Slices())
        self.ready.set()

    def prefer(self, project: str) -> None:
        """Load the memories of a project before the others, since somebody who works in it waits."""
        if not self.ready.is_set():
            self._preferred.append(project)

    def progress(self) -> dict[str, object]:
        """What a record says of an answer that was given before all was loaded; nothing afterwards."""
        return {} if self.ready.is_set() else {"loaded": len(self.index), "memories": self.memories}

    async def use(self, model: Model | None) -> None:
        """Recall with this model's vectors. In place of another one a new index is built beside the old one.

        Only the model in this process is attached where there was none: its vectors come while words answer already.
        """
        self._embedder = model
        if model is self.embedder:
            return
        if self.embedder is None and isinstance(model, Embedder):
            self.index.attach_embedder(model, self.cache, fill=False)
            await self._embed(self.index)
            await self.flush()
        else:
            async with self._building:
                await self._build_beside()

    async def missing(self, profile: str) -> tuple[list[str], int]:
        """Texts of memories that have no vector of a model in the cache, and how many texts there are."""

        def read() -> tuple[list[str], int]:
            nodes, refined = self._read()
            views = (view for node in nodes for view in views_in_force(node, refined.get(node.uuid, [])))
            texts = {vector_key(view.text): view.text for view in views if view.text.strip()}
            known = self.cache.known(profile)
            return [text for key, text in texts.items() if key not in known], len(texts)

        return await asyncio.to_thread(read)

    async def rebuild(self, progress: Progress = _no_progress) -> int:
        """Hold every memory in the store against the index and make again what differs. Answers how many there are.

        Recall has all of them all the while. An index that contradicts itself is replaced by a new one.
        """
        async with self._building:
            try:
                await self._make_again(progress, _Slices(self.busy))
                sound = self.index.is_sound()
            except (LookupError, ValueError):
                sound = False
            if not sound:
                logger.warning("the index contradicts itself and is built anew")
                await self._build_beside()
            await self._embed(self.index)
            await self.flush()
            return len(self.index)

    async def _make_again(self, progress: Progress, clock: _Slices) -> None:
        """Put all that the store holds into the index in use, and take out what it does not; the last written first."""
        self._written = set()
        try:
            nodes, refined = await asyncio.to_thread(self._read)
            nodes.sort(key=lambda node: node.updated_at, reverse=True)
            total = self.memories = len(nodes)
            gone = set(self.index.uuids()) - {node.uuid for node in nodes}
            for start in range(0, total, _PUT_AT_ONCE):
                if self._preferred:
                    nodes[start:] = _first(self._preferred.pop(), nodes[start:])
                for node in nodes[start : start + _PUT_AT_ONCE]:
                    if node.uuid not in self._written:
                        self.index.put(node, views_in_force(node, refined.get(node.uuid, [])))
                if await clock.pause():
                    progress(min(start + _PUT_AT_ONCE, total), total)
            for uuid in gone - self._written:
                self.index.remove(uuid)
        finally:
            self._written = None
        progress(total, total)

    async def _build_beside(self) -> None:
        """Build an index with the vectors of the model that was chosen, and switch to it when it is complete."""
        fresh = RecallIndex()
        if self._embedder is not None:
            fresh.attach_embedder(self._embedder, self.cache)
        self._missed = []
        try:
            nodes, refined = await asyncio.to_thread(self._read)
            clock = _Slices(self.busy)
            for node in nodes:
                fresh.put(node, views_in_force(node, refined.get(node.uuid, [])))
                await clock.pause()
            await self._embed(fresh)
            await self.flush()
            for change in self._missed:
                self._apply_to(fresh, change)
            self.index = fresh
        finally:
            self._missed = None
        await self._embed(fresh)

    def apply(self, changes: Sequence[Change]) -> None:
        """Bring the index up to date with a write."""
        for change in changes:
            self._apply_to(self.index, change)
            if self._missed is not None:
                self._missed.append(change)
            if self._written is not None:
                self._written.update(node.uuid for node in (change.before, change.after) if node is not None)
        if changes:
            self.index.embed_some(_EMBED_AT_ONCE)

    def refresh(self, node: Node) -> None:
        """Make the views of one memory again."""
        self.apply([Change(node, node)])

    def views_of(self, node: Node) -> Sequence[View]:
        """The views a node is recalled by: a model's where they were written for it as it is now, else those by rule."""
        return views_in_force(node, self.store.refined_views_of(node.uuid))

    async def flush(self) -> None:
        """Write down vectors that were computed since the last time."""
        async with self._saving:
            await asyncio.to_thread(self.cache.flush)

    @asynccontextmanager
    async def forgetting(self) -> AsyncIterator[None]:
        """Hold still while memories are purged: no vector of theirs is computed or written down behind it."""
        async with self._building, self._saving:
            self.purges += 1
            try:
                yield
            finally:
                self.cache.drop()

    async def settle(self) -> None:
        """Give what was written its vectors, in slices, and write these down a moment later, once for several writes."""
        if self._settling:
            return
        self._settling = True
        try:
            await self._embed(self.index)
            await asyncio.sleep(_FLUSH_SECONDS)
        finally:
            self._settling = False
        await self._embed(self.index)
        await self.flush()

    def _read(self) -> tuple[list[Node], dict[str, list[tuple[View, str]]]]:
        return list(self.store.nodes()), self.store.refined_views()

    def _apply_to(self, index: RecallIndex, change: Change) -> None:
        if change.after is not None:
            index.put(change.after, self.views_of(change.after))
        elif change.before is not None:
            index.remove(change.before.uuid)

    async def _embed(self, index: RecallIndex) -> None:
        """Give texts their vectors; those of a model elsewhere as far as the cache has them."""
        clock = _Slices(self.busy)
        if isinstance(index.vectors.embedder, Embedder):
            while index.pending() and index.embed_some(_EMBED_AT_ONCE):
                await clock.pause()
            return
        for _ in range(0, index.pending(), _LOOK_UP_AT_ONCE):
            if not index.vectors.look_up_some(_LOOK_UP_AT_ONCE):
                return
            await clock.pause()
        self.calibrate(index)
        if index.pending():
            self.wanting.set()

    def calibrate(self, index: RecallIndex) -> None:
        """Find the scale of the model among the memories, again when there are twice as many."""
        if index is not self.index or len(index) >= 2 * self._calibrated_for:
            index.calibrate()
            self._calibrated_for = len(index)


class _WriteBehind:
    """A vector cache whose writes wait for `flush`, so that a locked database never holds up the event loop."""

    def __init__(self, cache: SqliteVectorCache) -> None:
        self._cache = cache
        self._unsaved: dict[str, dict[bytes, bytes]] = {}

    def get_many(self, profile: str, keys: Sequence[bytes]) -> dict[bytes, bytes]:
        unsaved = self._unsaved.get(profile, {})
        found = {key: unsaved[key] for key in keys if key in unsaved}
        return found | self._cache.get_many(profile, [key for key in keys if key not in found])

    def known(self, profile: str) -> set[bytes]:
        return self._cache.known(profile).union(list(self._unsaved.get(profile, {})))  # asked for in another thread

    def profiles(self) -> list[str]:
        return list(dict.fromkeys([*self._unsaved, *self._cache.profiles()]))

    def put_many(self, profile: str, rows: Mapping[bytes, bytes]) -> None:
        self._unsaved.setdefault(profile, {}).update(rows)

    def drop(self) -> None:
        """Forget what was put since the last time; it is computed again when it is needed."""
        self._unsaved.clear()

    def flush(self) -> None:
        """Write what was put since the last time. May run in another thread."""
        for profile in list(self._unsaved):
            self._cache.put_many(profile, self._unsaved.pop(profile))


class _Slices:
    """Gives the event loop a turn whenever a slice is used up, and others precedence as long as they are `busy`."""

    def __init__(self, busy: Callable[[], bool] = lambda: False) -> None:
        self._busy = busy
        self._until = time.perf_counter() + _SLICE_SECONDS

    async def pause(self) -> bool:
        """Whether it was time to pause."""
        now = time.perf_counter()
        if now < self._until:
            return False
        await asyncio.sleep(0)
        while self._busy() and time.perf_counter() < now + _GIVE_WAY_SECONDS:  # noqa: ASYNC110  (they know nothing of us)
            await asyncio.sleep(_LOOK_AGAIN_SECONDS)
        self._until = time.perf_counter() + _SLICE_SECONDS
        return True


def _first(project: str, nodes: Sequence[Node]) -> list[Node]:
    """The memories of a project before the rest, otherwise in the order they had."""
    names = {name for name in set(map(project_of, nodes)) if is_project(name, project)}
    return sorted(nodes, key=lambda node: project_of(node) not in names)


def views_in_force(node: Node, refined: Sequence[tuple[View, str]]) -> Sequence[View]:
    """A model's views where they were written for the node as it is, else those by rule."""
    current = [view for view, written_for in refined if written_for == signature(node)]
    return current or rule_views(node)
