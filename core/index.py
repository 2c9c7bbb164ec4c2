"""Everything recall needs of the memory, in RAM: postings, glossary forms, vectors and a few columns.

Built once from the store and kept in step by single puts and removals; a changed index answers exactly as one that was
built afresh. Contents are not kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

import numpy as np
from numpy.typing import NDArray

from lorehooks.core.clock import from_iso
from lorehooks.core.embeddings import Embedder, VectorCache
from lorehooks.core.features import Document, document
from lorehooks.core.fuzzy import Spellings
from lorehooks.core.model import VIEW_TYPES, Node, View, ViewType
from lorehooks.core.postings import MAX_SLOTS, Postings
from lorehooks.core.text import spoken
from lorehooks.core.vectors import VectorTable

_GROW = 1024
_EPOCH = 0.0


@dataclass(frozen=True, slots=True)
class Entry:
    """What is known of one memory without looking at postings. `rows` are its view rows, -1 where it has none."""

    uuid: str
    uri: str
    priority: int
    glossary: tuple[str, ...]
    forms: tuple[tuple[str, ...], ...]
    words: tuple[str, ...]
    rows: tuple[int, int]
    is_boot: bool
    group: str
    """First path segment of a `project://` memory, else empty."""


class RecallIndex:
    """The memory as recall sees it. Not thread-safe: one thread reads and writes."""

    def __init__(self) -> None:
        self.postings = Postings()
        self.spellings = Spellings()
        self.vectors = VectorTable()
        self.forms: dict[tuple[str, ...], list[int]] = {}
        self.form_lengths: dict[str, dict[int, int]] = {}
        self.entries: list[Entry | None] = []
        self.groups: dict[str, int] = {"": 0}
        self._slot: dict[str, int] = {}
        self._free: list[int] = []
        self._columns = _Columns()

    def __len__(self) -> int:
        return len(self._slot)

    def put(self, node: Node, views: Sequence[View]) -> None:
        """Add a memory, or replace the one with its uuid."""
        self.remove(node.uuid)
        found = document(node)
        slot = self._take_slot()
        rows = self._view_rows(views)
        group = node.path.partition("/")[0] if node.domain == "project" else ""
        self.entries[slot] = Entry(
            node.uuid, node.uri, node.priority, node.glossary, found.forms, found.words, rows, node.is_boot, group
        )
        self._slot[node.uuid] = slot
        self.postings.put(slot, found.strengths)
        self._put_forms(slot, found)
        self._columns.put(slot, node, rows, self.groups.setdefault(group, len(self.groups)))

    def remove(self, uuid: str) -> None:
        """Take a memory out; an unknown uuid is fine."""
        slot = self._slot.pop(uuid, None)
        if slot is None:
            return
        entry = self.entries[slot]
        assert entry is not None  # noqa: S101 (a slot in use has an entry)
        self.postings.remove(slot)
        for form in entry.forms:
            slots = self.forms[form]
            slots.remove(slot)
            if not slots:
                del self.forms[form]
                lengths = self.form_lengths[form[0]]
                lengths[len(form)] -= 1
                if not lengths[len(form)]:
                    del lengths[len(form)]
        for word in entry.words:
            self.spellings.discard(word)
        for row in entry.rows:
            if row >= 0:
                self.vectors.drop(row)
        self.entries[slot] = None
        self._columns.clear(slot)
        self._free.append(slot)

    def attach_embedder(self, embedder: Embedder, vectors: VectorCache) -> None:
        """Use a model; what the cache holds is there at once, the rest is `pending`.

        For another model, or other views for all, build a new index beside this one and switch.
        """
        self.vectors.attach(embedder, vectors)

    def pending(self) -> int:
        """Texts without a vector."""
        return self.vectors.pending()

    def embed_some(self, limit: int) -> int:
        """Embed up to `limit` of them; how many were done. Small limits keep a running service quick."""
        return self.vectors.embed_some(limit)

    @property
    def size(self) -> int:
        """Slots handed out, used or free: the length of every column."""
        return len(self.entries)

    @property
    def columns(self) -> _Columns:
        return self._columns

    def entry(self, slot: int) -> Entry:
        """The memory at a slot in use."""
        found = self.entries[slot]
        if found is None:
            raise IndexError(f"slot {slot} is free")
        return found

    def slot_of(self, uuid: str) -> int | None:
        return self._slot.get(uuid)

    def group_of(self, project: str | None) -> int | None:
        """The number of a project by its repository name, as far as memories of it exist."""
        if not project:
            return None
        name = "_".join(item.surface for item in spoken(project))
        return self.groups.get(name) or self.groups.get(project.lower()) or None

    def _take_slot(self) -> int:
        if self._free:
            return self._free.pop()
        if len(self.entries) >= MAX_SLOTS:
            raise OverflowError("the index is full")
        self.entries.append(None)
        return len(self.entries) - 1

    def _view_rows(self, views: Iterable[View]) -> tuple[int, int]:
        rows: dict[ViewType, int] = {}
        for view in views:
            if view.type not in rows and view.text.strip():
                rows[view.type] = self.vectors.add(view.text)
        return rows.get(VIEW_TYPES[0], -1), rows.get(VIEW_TYPES[1], -1)

    def _put_forms(self, slot: int, found: Document) -> None:
        for form in found.forms:
            slots = self.forms.setdefault(form, [])
            if not slots:
                lengths = self.form_lengths.setdefault(form[0], {})
                lengths[len(form)] = lengths.get(len(form), 0) + 1
            slots.append(slot)
        for word in found.words:
            self.spellings.add(word)


class _Columns:
    """Numbers of all slots, ready for arithmetic. A free slot is not `used`."""

    def __init__(self) -> None:
        self.used: NDArray[np.bool_] = np.zeros(0, dtype=np.bool_)
        self.boot: NDArray[np.bool_] = np.zeros(0, dtype=np.bool_)
        self.priority: NDArray[np.int32] = np.zeros(0, dtype=np.int32)
        self.group: NDArray[np.int32] = np.zeros(0, dtype=np.int32)
        self.updated: NDArray[np.float64] = np.zeros(0, dtype=np.float64)
        self.rows: NDArray[np.int32] = np.zeros((0, 2), dtype=np.int32)

    def put(self, slot: int, node: Node, rows: tuple[int, int], group: int) -> None:
        if slot >= len(self.used):
            self._grow(slot + 1)
        self.used[slot] = True
        self.boot[slot] = node.is_boot
        self.priority[slot] = node.priority
        self.group[slot] = group
        self.updated[slot] = _seconds(node.updated_at)
        self.rows[slot] = rows

    def clear(self, slot: int) -> None:
        self.used[slot] = False
        self.rows[slot] = -1

    def _grow(self, needed: int) -> None:
        height = -(-needed // _GROW) * _GROW
        extra = height - len(self.used)
        self.used = np.concatenate([self.used, np.zeros(extra, dtype=np.bool_)])
        self.boot = np.concatenate([self.boot, np.zeros(extra, dtype=np.bool_)])
        self.priority = np.concatenate([self.priority, np.zeros(extra, dtype=np.int32)])
        self.group = np.concatenate([self.group, np.zeros(extra, dtype=np.int32)])
        self.updated = np.concatenate([self.updated, np.zeros(extra, dtype=np.float64)])
        self.rows = np.concatenate([self.rows, np.full((extra, 2), -1, dtype=np.int32)])


def _seconds(moment: str) -> float:
    """Epoch seconds; a moment that cannot be read counts as very old."""
    try:
        return from_iso(moment).timestamp()
    except (ValueError, OverflowError):
        return _EPOCH


def age_days(updated: float, now: datetime) -> float:
    """Days since an update, never negative."""
    return max(0.0, (now.timestamp() - updated) / 86400)
