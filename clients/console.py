"""What a person's console and the Lore API ask of the embedded memory, beyond what hooks and tools need.

Short reads run on the event loop; what looks at the whole memory runs in a thread or in slices, so that prompts go on.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta

from lorehooks.clients.embedded import EmbeddedBackend
from lorehooks.core import backup_v1, footprints, proposals, rebuild
from lorehooks.core import uri as uris
from lorehooks.core.archive import Archive
from lorehooks.core.backup_forget import forget_in_backups, plan_backups
from lorehooks.core.clock import to_iso
from lorehooks.core.errors import ConflictError, NotFoundError, StorageError
from lorehooks.core.events import Event
from lorehooks.core.footprints import Updater
from lorehooks.core.forget import ForgetPlan, ForgetResult, forget, holds, plan_forget, text_pattern, uuids_at
from lorehooks.core.history import history
from lorehooks.core.home import Home
from lorehooks.core.merge import MergePlan, Wishes
from lorehooks.core.merge_write import merge, preview
from lorehooks.core.model import BOOT_URIS, Change, Node, NodeDraft, Origin, View, WriteResult
from lorehooks.core.run_forget import count_records, forget_records
from lorehooks.core.store import not_found

_NUMBERING_TRIES = 5
_YIELD_EVERY = 50
"""Events between two moments in which a rebuild in a thread lets the event loop go first."""


@dataclass(frozen=True, slots=True)
class Child:
    """A memory in a listing. `children` is how many lie directly below it."""

    node: Node
    children: int
    updaters: Sequence[Updater]


@dataclass(frozen=True, slots=True)
class Page:
    """A memory with its surroundings. `node` is None for the root of a domain."""

    uri: uris.Uri
    node: Node | None
    views: Sequence[View]
    updaters: Sequence[Updater]
    children: Sequence[Child]


@dataclass(frozen=True, slots=True)
class Past:
    """The history of a memory, newest first. `node` is None when it was deleted."""

    uri: uris.Uri
    node: Node | None
    events: Sequence[Event]


@dataclass(frozen=True, slots=True)
class ForgetOutlook:
    """What a purge would take: from the memory, from which of our backups, and how many records."""

    memory: ForgetPlan
    backups: Sequence[str]
    records: int
    only_in_backups: Sequence[str]
    """Addresses that the memory itself has never heard of, or has forgotten."""


@dataclass(frozen=True, slots=True)
class Forgotten:
    """What a purge took: from the memory, how many records, from which backups. `gone` are addresses that nothing has now.

    `left` says why old bytes may still be in a file.
    """

    memory: ForgetResult
    records: int
    backups: Sequence[str]
    gone: Sequence[str]
    left: str


async def _nothing() -> None:
    """What happens when nobody wants to be told."""


class Console:
    """A view on one backend; cheap to make."""

    def __init__(self, backend: EmbeddedBackend) -> None:
        self.backend = backend
        self.store = backend.store

    def page(self, uri: uris.Uri, *, with_views: bool) -> Page:
        """A memory, or the root of a domain, for looking around. Raises NotFoundError."""
        node = self.store.require(uri) if uri.path else None
        children = self.store.children(uri)
        counts = self.store.child_counts([child.uri for child in children])
        wrote = footprints.updaters(self.store, [*([node.uuid] if node else []), *(child.uuid for child in children)])
        return Page(
            uri=uri,
            node=node,
            views=self.backend.live.views_of(node) if node and with_views else (),
            updaters=wrote[node.uuid] if node else (),
            children=[Child(child, counts.get(child.uri, 0), wrote[child.uuid]) for child in children],
        )

    def by_uuid(self, node_uuid: str) -> Node:
        """The memory with that identity. Raises NotFoundError."""
        node = self.store.node_by_uuid(node_uuid)
        if node is None:
            raise NotFoundError(f"There is no memory with uuid {node_uuid}")
        return node

    async def glossary(self) -> list[tuple[str, str]]:
        """Every keyword with the uuid of its memory, by keyword."""

        def read() -> list[tuple[str, str]]:
            return sorted((keyword, node.uuid) for node in self.store.nodes() for keyword in node.glossary)

        return await asyncio.to_thread(read)

    async def create_numbered(
        self, parent: uris.Uri, draft: NodeDraft, origin: Origin, *, allow_secret: bool
    ) -> WriteResult:
        """Create a memory without a title: it gets the next number among its siblings."""
        for attempt in range(_NUMBERING_TRIES):
            taken = [int(child.title) for child in map(_uri_of, self.store.children(parent)) if child.title.isdecimal()]
            uri = str(parent.child(str(max(taken, default=0) + 1)))
            named = NodeDraft(uri, draft.content, draft.priority, draft.disclosure, draft.glossary)
            try:
                return await self.backend.create_node(named, origin, allow_secret=allow_secret)
            except ConflictError:  # someone else was quicker with that number
                if attempt == _NUMBERING_TRIES - 1:
                    raise
        raise AssertionError  # the loop returns or raises

    def history(self, uri: uris.Uri, limit: int) -> Past:
        """What happened to a memory, a deleted one too. Raises NotFoundError."""
        return Past(uri, self.store.node(uri), history(self.store, uri, limit))

    async def overview(
        self, *, days: int, event_type: str | None, uri: str | None, source: str | None, limit: int
    ) -> footprints.Overview:
        """What happened in the last days; see `core.footprints`."""
        since = to_iso(self.store.clock() - timedelta(days=days))
        return await asyncio.to_thread(
            footprints.overview, self.store, since, event_type=event_type, uri=uri, source=source, limit=limit
        )

    async def writes_by_client(self, since: str) -> dict[str | None, tuple[int, int, int]]:
        """How many memories each client created, updated and deleted from a moment on."""
        return await asyncio.to_thread(footprints.writes_by_client, self.store, since)

    def timeline(self, *, uuid: str | None, uri: str | None, limit: int) -> list[Event]:
        """Events of one memory, oldest first."""
        return footprints.timeline(self.store, uuid=uuid, uri=uri, limit=limit)

    def pending(self) -> list[proposals.Proposal]:
        """Writes to boot nodes that wait for a person."""
        return proposals.pending(self.store)

    async def verify(self) -> rebuild.Verification:
        """Compare the projections with the log."""
        return await asyncio.to_thread(rebuild.verify, self.store)

    async def rebuild(self, progress: Callable[[str, int, int], None]) -> Mapping[str, int]:
        """Build projections and index again. `progress` gets the phase, how much is done, and of how much.

        Called in another thread during `projections`, on the loop during `index`.
        """
        total = self.store.counts()["events"]

        def replayed(count: int) -> None:
            if count % _YIELD_EVERY == 0:
                progress("projections", count, total)
                time.sleep(0)

        events = await asyncio.to_thread(rebuild.rebuild, self.store, replayed)
        nodes = await self.backend.live.rebuild(lambda done, of: progress("index", done, of))
        self.backend.changed(())
        return {"events": events, "nodes": nodes}

    async def export(self, release: str) -> tuple[bytes, str]:
        """The whole memory as a `lore-backup-v1` document, and a name for its file."""
        moment = self.store.clock()
        content = await asyncio.to_thread(backup_v1.export, self.store, created_at=to_iso(moment), release=release)
        return content, f"lore-backup-{moment:%Y-%m-%d-%H-%M-%S}.json"

    async def preview_import(self, archive: Archive, wishes: Wishes) -> MergePlan:
        """What an import would do; see `core.merge`."""
        return await asyncio.to_thread(preview, self.store, archive, wishes)

    async def import_archive(self, archive: Archive, wishes: Wishes) -> MergePlan:
        """Bring an archive in, in one transaction. Raises SecretError, StorageError."""
        results: list[MergePlan] = []

        def work() -> Sequence[Change]:
            done = merge(self.store, archive, wishes)
            results.append(done.plan)
            return done.changes

        await self.backend.change_many(work)
        self.backend.models.follow([entry.key for entry in results[0].settings if entry.taken])
        return results[0]

    async def plan_forget(self, addresses: Sequence[uris.Uri], matching: str) -> ForgetOutlook:
        """What `forget` would take. Raises NotFoundError for an address that neither memory nor backup knows."""
        return await asyncio.to_thread(self._outlook, addresses, matching)

    async def forget(
        self,
        addresses: Sequence[uris.Uri],
        matching: str,
        origin: Origin,
        *,
        purged: Callable[[], Awaitable[None]] = _nothing,
    ) -> Forgotten:
        """Purge memories, every record that names them or holds the text, and both from our own backups.

        `purged` is awaited when the memory itself has forgotten, before records are looked through: whatever still has
        old text at hand lets go of it there, so that nobody is sent it again.
        """
        outlook = await self.plan_forget(addresses, matching)
        known = [address for address in addresses if str(address) not in outlook.only_in_backups]
        results: list[ForgetResult] = []

        def work() -> Sequence[Change]:
            results.append(forget(self.store, origin, known, matching))
            return results[0].changes

        await self.backend.change_many(work, purge=True)
        await purged()
        memory = results[0]
        gone = (*memory.plan.memories, *memory.plan.deleted, *outlook.only_in_backups)
        boot = any(uri in BOOT_URIS for uri in (*gone, *memory.plan.earlier))
        left = [memory.left]
        records = 0
        try:
            records = await asyncio.to_thread(forget_records, self.backend.recorder, (*gone, matching), boot=boot)
        except StorageError as error:
            left.append(str(error))
        backups = await asyncio.to_thread(forget_in_backups, self._home, origin, addresses, matching, memory.uuids)
        return Forgotten(memory, records, backups.changed, gone, "; ".join(filter(None, (*left, *backups.left))))

    @property
    def _home(self) -> Home:
        return Home(self.store.database.path.parent)

    def _outlook(self, addresses: Sequence[uris.Uri], matching: str) -> ForgetOutlook:
        text_pattern(matching)  # refuses a text too short before anything is looked through
        with self.store.database.snapshot() as connection:
            known = [address for address in addresses if holds(connection, address)]
        memory = plan_forget(self.store, known, matching)
        backups = plan_backups(self._home, addresses, matching, uuids_at(self.store, known))
        elsewhere = {text for texts in backups.values() for text in texts}
        unknown = [address for address in addresses if address not in known]
        for address in unknown:
            if str(address) not in elsewhere:
                raise not_found(address)
        texts = (*memory.memories, *memory.deleted, *map(str, unknown), matching)
        records = count_records(self.backend.recorder, texts)
        return ForgetOutlook(memory, tuple(backups), records, tuple(map(str, unknown)))


def _uri_of(node: Node) -> uris.Uri:
    return uris.parse(node.uri)
