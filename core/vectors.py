"""The vectors of all views in memory, filled from a cache or in small slices.

Each text has a row of float16, as in the cache. To look through all of them, the first numbers (`Model.coarse`) are kept
again as a float32 unit row: with a quarter of the numbers it takes a quarter of the time. What looks near is then measured
exactly.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from itertools import islice
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from lorehooks.core.calibration import MOST_PAIRS, STATIC
from lorehooks.core.embeddings import Embedder, Model, NoCache, VectorCache, vector_key

_Number = TypeVar("_Number", np.float16, np.float32)

_BLOCK = 1024
"""Rows by which the tables grow."""


class VectorTable:
    """Rows of unit vectors. A row whose text is not embedded yet is all zeros and so is near to nothing."""

    def __init__(self) -> None:
        self.calibration = STATIC
        """What a cosine of the model is worth."""
        self._embedder: Model | None = None
        self._cache: VectorCache = NoCache()
        self._exact: NDArray[np.float16] = np.zeros((0, 0), dtype=np.float16)
        self._coarse: NDArray[np.float32] = np.zeros((0, 0), dtype=np.float32)
        self._rows = 0
        self._free: list[int] = []
        self._waiting: dict[int, str] = {}
        self._keys: list[bytes] = []
        """Of each row the key of its text, empty for a row that was given back."""

    @property
    def embedder(self) -> Model | None:
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
            self._keys.append(b"")
        self._keys[row] = vector_key(text)
        self._waiting[row] = text
        return row

    def is_of(self, row: int, text: str) -> bool:
        """Whether a row in use stands for this text."""
        return self._keys[row] == vector_key(text)

    def drop(self, row: int) -> None:
        """Give a row back."""
        self._waiting.pop(row, None)
        self._keys[row] = b""
        if row < len(self._exact):
            self._exact[row] = 0
            self._coarse[row] = 0
        self._free.append(row)

    def attach(self, embedder: Model, cache: VectorCache, *, fill: bool = True) -> None:
        """Use this model from now on and take from the cache what it has. Another model needs a new table.

        Without `fill` the cache is left to `embed_some` and `look_up_some`, for whoever cannot wait half a second.
        """
        self._embedder, self._cache = embedder, cache
        nothing = np.zeros((0, embedder.dim), dtype=np.float32)
        self.calibration = embedder.scale(nothing, nothing)
        self._reserve()
        rows = list(self._waiting) if fill else []
        for start in range(0, len(rows), _BLOCK):
            self._from_cache(rows[start : start + _BLOCK])

    def pending(self) -> int:
        """Texts that have no vector yet."""
        return len(self._waiting)

    def embed_some(self, limit: int) -> int:
        """Embed at most `limit` waiting texts, oldest first, and return how many.

        Nothing happens without a model, and with one that is elsewhere: `take` brings its vectors.
        """
        if not isinstance(self._embedder, Embedder) or limit <= 0 or not self._waiting:
            return 0
        self._reserve()
        batch = list(islice(self._waiting, limit))
        self._from_cache(batch)
        left = [(row, self._waiting[row]) for row in batch if row in self._waiting]
        if left:
            vectors = self._embedder.embed([text for _, text in left]).astype(np.float16)
            self._cache.put_many(
                self._embedder.profile,
                {vector_key(text): vector.tobytes() for (_, text), vector in zip(left, vectors, strict=True)},
            )
            for (row, _), vector in zip(left, vectors, strict=True):
                self._fill(row, vector)
        return len(batch)

    def look_up_some(self, limit: int) -> int:
        """Look at most `limit` waiting texts up in the cache; how many. Those it does not have go to the end of the line."""
        if self._embedder is None:
            return 0
        self._reserve()
        batch = list(islice(self._waiting, limit))
        self._from_cache(batch)
        for row in batch:
            if row in self._waiting:
                self._waiting[row] = self._waiting.pop(row)
        return len(batch)

    def waiting(self) -> list[str]:
        """Texts without a vector, each once, in the order of the line."""
        return list(dict.fromkeys(self._waiting.values()))

    def take(self, vectors: Mapping[str, NDArray[np.float16]]) -> None:
        """Fill the rows that wait for these texts."""
        self._reserve()
        for row in [row for row, text in self._waiting.items() if text in vectors]:
            self._fill(row, vectors[self._waiting[row]])

    def calibrate(self, rows: NDArray[np.int32]) -> None:
        """Find the model's scale among memories, given as the rows of their gist and question, -1 for none."""
        if self._embedder is None:
            return
        self._reserve()
        both = rows[(rows >= 0).all(axis=1)]
        some = both[np.linspace(0, len(both) - 1, min(len(both), MOST_PAIRS)).astype(int)] if len(both) else both
        gists, questions = self._exact[some[:, 0]].astype(np.float32), self._exact[some[:, 1]].astype(np.float32)
        there = gists.any(axis=1) & questions.any(axis=1)
        self.calibration = self._embedder.scale(questions[there], gists[there])

    def coarse(self, vector: NDArray[np.float32]) -> NDArray[np.float32]:
        """Roughly how near every row is to a vector, to choose what to measure; zeros before a model is attached."""
        if not len(self._coarse):
            return np.zeros(self._rows, dtype=np.float32)
        self._reserve()
        beginning = _unit(vector[: self._coarse.shape[1]])
        # Not `@`: the threads that a BLAS starts for it wait for each other longer than the sum takes.
        return np.asarray(np.einsum("ij,j->i", self._coarse[: self._rows], beginning))

    def cosines(self, rows: NDArray[np.int32], vector: NDArray[np.float32]) -> NDArray[np.float64]:
        """Cosine of a unit vector with some rows; row -1 gives 0. The same to the last bit wherever a row lies."""
        if not len(self._exact) or not len(rows):
            return np.zeros(len(rows))
        self._reserve()
        chosen = _single().take(self._exact.view(np.uint16).take(rows, axis=0))
        chosen *= vector  # in place: another such table would come from fresh pages each time
        found: NDArray[np.float64] = chosen.sum(axis=1).astype(np.float64)
        return np.where(rows < 0, 0.0, found)

    def _from_cache(self, rows: Sequence[int]) -> None:
        if self._embedder is None:
            return
        keys = {row: self._keys[row] for row in rows}
        known = self._cache.get_many(self._embedder.profile, list(dict.fromkeys(keys.values())))
        for row, key in keys.items():
            data = known.get(key)
            if data is not None and len(data) == 2 * self._embedder.dim:
                self._fill(row, np.frombuffer(data, dtype=np.float16))

    def _fill(self, row: int, vector: NDArray[np.float16]) -> None:
        self._exact[row] = vector
        self._coarse[row] = _unit(vector[: self._coarse.shape[1]].astype(np.float32))
        self._waiting.pop(row, None)

    def _reserve(self) -> None:
        """Make the tables as high as rows were handed out."""
        if self._embedder is None or len(self._exact) >= self._rows:
            return
        extra = -(-self._rows // _BLOCK) * _BLOCK - len(self._exact)
        width = min(self._embedder.coarse, self._embedder.dim)
        self._exact = _grown(self._exact, extra, self._embedder.dim)
        self._coarse = _grown(self._coarse, extra, width)


@cache
def _single() -> NDArray[np.float32]:
    """Each float16 as float32, by its bits: looking it up takes half of the time of a conversion."""
    return np.arange(1 << 16, dtype=np.uint16).view(np.float16).astype(np.float32)


def _grown(table: NDArray[_Number], extra: int, width: int) -> NDArray[_Number]:
    return np.concatenate([table.reshape(-1, width), np.zeros((extra, width), dtype=table.dtype)])


def _unit(vector: NDArray[np.float32]) -> NDArray[np.float32]:
    norm = float(np.sqrt((vector.astype(np.float64) ** 2).sum()))
    return vector / np.float32(norm) if norm > 0 else vector
