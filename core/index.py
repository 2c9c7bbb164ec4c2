"""Everything recall needs of the memory, in RAM: postings, spellings, vectors and a few columns of numbers.

Built once from the store and kept in step by single puts and removals; a changed index answers exactly as one that was
built afresh. The words of a memory are kept as well, only to find its keys again when it is taken out.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lorehooks.core.clock import from_iso
from lorehooks.core.embeddings import Model, VectorCache
from lorehooks.core.features import MAX_CONTENT_CHARS, Document, document
from lorehooks.core.fuzzy import Spellings
from lorehooks.core.model import VIEW_TYPES, Node, View, ViewType
from lorehooks.core.postings import MAX_SLOTS, Postings
from lorehooks.core.text import sequence
from lorehooks.core.vectors import VectorTable

_GROW = 1024
_NO_ROWS = (-1, -1)


class Entry(NamedTuple):
    """What is known of one memory without looking at postings.

    `rows` are its view rows, -1 where it has none, `keys` the number of its keys.
    """

    uuid: str
    uri: str
    priority: int
    glossary: tuple[str, ...]
    rows: tuple[int, int]
    packed: bytes
    keys: int


class RecallIndex:
    """The memory as recall sees it. Not thread-safe: one thread reads and writes."""

    def __init__(self) -> None:
        self.postings = Postings()
        self.spellings = Spellings()
        self.vectors = VectorTable()
        self.columns = Columns()
        self.groups: dict[str, int] = {"": 0}
        """Number of each project, that is of each first path segment below `project://`."""
        self.group_names: dict[str, int] = {}
        """The same by the words of the name, as they would be said: `checkout api`."""
        self._entries: list[Entry | None] = []
        self._slot: dict[str, int] = {}
        self._free: list[int] = []

    def __len__(self) -> int:
        return len(self._slot)

    def put(self, node: Node, views: Sequence[View]) -> None:
        """Add a memory, or replace the one with its uuid. Words that are as they were keep their keys, a view its vector."""
        source = (node.uri, node.content[:MAX_CONTENT_CHARS], node.disclosure, node.glossary)
        packed = json.dumps(source, ensure_ascii=False).encode("utf-8", "surrogatepass")
        slot = self._slot.get(node.uuid)
        before = _NO_ROWS if slot is None else self.entry(slot).rows
        if slot is None or self.entry(slot).packed != packed:
            self._take_out(node.uuid)
            slot = self._take_slot()
            found = document(*source)
            self.postings.put(slot, found.strengths)
            for word in found.words:
                self.spellings.add(word)
            keys = len(found.strengths)
        else:
            keys = self.entry(slot).keys
        rows = self._view_rows(views, before)
        self._entries[slot] = Entry(node.uuid, node.uri, node.priority, node.glossary, rows, packed, keys)
        self._slot[node.uuid] = slot
        self.columns.put(slot, node, rows, self._group(node))

    def is_sound(self) -> bool:
        """Whether the postings hold as many keys as the memories have."""
        return len(self.postings) == sum(entry.keys for entry in self._entries if entry is not None)

    def remove(self, uuid: str) -> None:
        """Take a memory out; an unknown uuid is fine."""
        for row in self._take_out(uuid):
            if row >= 0:
                self.vectors.drop(row)

    def uuids(self) -> list[str]:
        """Identities of all memories."""
        return list(self._slot)

    def _take_out(self, uuid: str) -> tuple[int, int]:
        """Take a memory out and leave its view rows, which it answers, to the caller."""
        slot = self._slot.get(uuid)
        if slot is None:
            return _NO_ROWS
        found = self.document_at(slot)
        self.postings.remove(slot, found.strengths)
        for word in found.words:
            self.spellings.discard(word)
        rows = self.entry(slot).rows
        del self._slot[uuid]
        self._entries[slot] = None
        self.columns.clear(slot)
        self._free.append(slot)
        return rows

    def attach_embedder(self, embedder: Model, vectors: VectorCache, *, fill: bool = True) -> None:
        """Use a model; what the cache holds is there at once, the rest is `pending`; without `fill`, all of it is.

        For another model, or other views for all, build a new index beside this one and switch.
        """
        self.vectors.attach(embedder, vectors, fill=fill)

    def pending(self) -> int:
        """Texts without a vector."""
        return self.vectors.pending()

    def embed_some(self, limit: int) -> int:
        """Embed up to `limit` of them; how many were done. Small limits keep a running service quick."""
        return self.vectors.embed_some(limit)

    def calibrate(self) -> None:
        """Find the scale of the model's cosines among these memories."""
        self.vectors.calibrate(self.columns.rows[: self.size][self.columns.used[: self.size]])

    @property
    def size(self) -> int:
        """Slots handed out, used or free: the length of every column."""
        return len(self._entries)

    def entry(self, slot: int) -> Entry:
        """The memory at a slot in use. Raises IndexError for a free one."""
        found = self._entries[slot]
        if found is None:
            raise IndexError(f"slot {slot} is free")
        return found

    def document_at(self, slot: int) -> Document:
        """The keys of the memory at a slot, found again from its words."""
        return document(*json.loads(self.entry(slot).packed.decode("utf-8", "surrogatepass")))

    def slot_of(self, uuid: str) -> int | None:
        return self._slot.get(uuid)

    def group_of(self, project: str | None) -> int | None:
        """The number of a project by its repository name, as far as memories of it exist."""
        if not project:
            return None
        return self.groups.get(project.lower()) or self.group_names.get(" ".join(sequence(project)))

    def _group(self, node: Node) -> int:
        name = project_of(node)
        number = self.groups.get(name)
        if number is None:
            number = self.groups[name] = len(self.groups)
            self.group_names.setdefault(" ".join(sequence(name)), number)
        return number

    def _take_slot(self) -> int:
        if self._free:
            return self._free.pop()
        if len(self._entries) >= MAX_SLOTS:
            raise OverflowError("the index is full")
        self._entries.append(None)
        return len(self._entries) - 1

    def _view_rows(self, views: Iterable[View], before: tuple[int, int]) -> tuple[int, int]:
        """Rows of a gist and a question; those of `before` are used again where the text is the same, else given back."""
        texts: dict[ViewType, str] = {}
        for view in views:
            if view.text.strip():
                texts.setdefault(view.type, view.text)
        gist, question = (self._row(texts.get(kind), row) for kind, row in zip(VIEW_TYPES, before, strict=True))
        return gist, question

    def _row(self, text: str | None, before: int) -> int:
        if before >= 0:
            if text is not None and self.vectors.is_of(before, text):
                return before
            self.vectors.drop(before)
        return -1 if text is None else self.vectors.add(text)


def project_of(node: Node) -> str:
    """The project a memory belongs to, by the first part of its path; empty for one of none."""
    return node.path.partition("/")[0] if node.domain == "project" else ""


def is_project(name: str, project: str) -> bool:
    """Whether a project of the memory is the one that a session calls by this name."""
    return bool(name) and (name == project.lower() or sequence(name) == sequence(project))


class Columns:
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
        extra = -(-needed // _GROW) * _GROW - len(self.used)
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
        return 0.0


def age_days(updated: float, now: datetime) -> float:
    """Days since an update, never negative."""
    return max(0.0, (now.timestamp() - updated) / 86400)
