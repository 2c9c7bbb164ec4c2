"""The vectors of all views in memory: one float32 row for each, filled from a cache or in small slices.

Rows are handed out by number and reused after removal, so the matrix is dense and a prompt costs one product.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lorehooks.core.embeddings import Embedder, NoCache, VectorCache, vector_key

_BLOCK = 1024
"""Rows by which the matrix grows."""


@dataclass(frozen=True, slots=True)
class _Waiting:
    row: int
    text: str


class VectorTable:
    """Rows of unit vectors. A row whose text is not embedded yet is all zeros and so is near to nothing."""

    def __init__(self) -> None:
        self._embedder: Embedder | None = None
        self._cache: VectorCache = NoCache()
        self._matrix: NDArray[np.float32] = np.zeros((0, 0), dtype=np.float32)
        self._rows = 0
        self._free: list[int] = []
        self._waiting: dict[int, str] = {}

    @property
    def embedder(self) -> Embedder | None:
        return self._embedder

    def __len__(self) -> int:
        return self._rows - len(self._free)

    def add(self, text: str) -> int:
        """Reserve a row for a text and return its number. It is filled by `embed_some`, or from the cache at `attach`."""
        if self._free:
            row = self._free.pop()
        else:
            row = self._rows
            self._rows += 1
        self._waiting[row] = text
        return row

    def drop(self, row: int) -> None:
        """Give a row back."""
        self._waiting.pop(row, None)
        if row < len(self._matrix):
            self._matrix[row] = 0
        self._free.append(row)

    def attach(self, embedder: Embedder, cache: VectorCache) -> None:
        """Use this model from now on and take from the cache what it has. Another model needs a new table."""
        self._embedder, self._cache = embedder, cache
        self._reserve()
        rows = sorted(self._waiting)
        for start in range(0, len(rows), _BLOCK):
            self._from_cache(rows[start : start + _BLOCK])

    def pending(self) -> int:
        """Texts that have no vector yet."""
        return len(self._waiting)

    def embed_some(self, limit: int) -> int:
        """Embed at most `limit` waiting texts, oldest first, and return how many. Nothing happens without a model."""
        if self._embedder is None or limit <= 0 or not self._waiting:
            return 0
        self._reserve()
        batch = [_Waiting(row, text) for row, text in _first(self._waiting, limit)]
        found = self._from_cache([item.row for item in batch])
        left = [item for item in batch if item.row in self._waiting]
        if left:
            vectors = self._embedder.embed([item.text for item in left]).astype(np.float16)
            self._cache.put_many(
                self._embedder.profile,
                {vector_key(item.text): vector.tobytes() for item, vector in zip(left, vectors, strict=True)},
            )
            for item, vector in zip(left, vectors, strict=True):
                self._fill(item.row, vector)
        return found + len(left)

    def near(self, vector: NDArray[np.float32]) -> NDArray[np.float32]:
        """Cosine of a unit vector with every row; zeros before a model is attached."""
        if not len(self._matrix):
            return np.zeros(self._rows, dtype=np.float32)
        self._reserve()
        return np.asarray(self._matrix[: self._rows] @ vector, dtype=np.float32)

    def exact(self, rows: Sequence[int] | NDArray[np.int32], vector: NDArray[np.float32]) -> NDArray[np.float64]:
        """Cosine with some rows, the same to the last bit wherever a row lies (a matrix product is not)."""
        if not len(self._matrix):
            return np.zeros(len(rows))
        chosen = self._matrix[np.asarray(rows, dtype=np.int64)].astype(np.float64)
        return np.asarray((chosen * vector.astype(np.float64)).sum(axis=1))

    def _from_cache(self, rows: Sequence[int]) -> int:
        if self._embedder is None:
            return 0
        keys = {row: vector_key(self._waiting[row]) for row in rows}
        known = self._cache.get_many(self._embedder.profile, list(dict.fromkeys(keys.values())))
        found = 0
        for row, key in keys.items():
            data = known.get(key)
            if data is not None and len(data) == 2 * self._embedder.dim:
                self._fill(row, np.frombuffer(data, dtype=np.float16))
                found += 1
        return found

    def _fill(self, row: int, vector: NDArray[np.float16]) -> None:
        self._matrix[row] = vector
        self._waiting.pop(row, None)

    def _reserve(self) -> None:
        """Make the matrix as high as rows were handed out."""
        if self._embedder is None or len(self._matrix) >= self._rows:
            return
        height = -(-self._rows // _BLOCK) * _BLOCK
        grown = np.zeros((height, self._embedder.dim), dtype=np.float32)
        grown[: len(self._matrix)] = self._matrix if len(self._matrix) else 0
        self._matrix = grown


def _first(waiting: dict[int, str], limit: int) -> list[tuple[int, str]]:
    items: list[tuple[int, str]] = []
    for item in waiting.items():
        items.append(item)
        if len(items) == limit:
            break
    return items
