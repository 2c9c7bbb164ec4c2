"""What a record of a run says of vectors, and the model as it was then, for replay.

The static model can be asked again and gives the same bytes. A model behind an endpoint may be gone or changed, so the
record holds what recall had of it: the prompt's vector and the scale.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lorehooks.core.calibration import Calibration
from lorehooks.core.embeddings import Embedder
from lorehooks.core.index import RecallIndex


def vectors_meta(index: RecallIndex, text: str, without: str) -> dict[str, object]:
    """Which model's vectors recall had, and how many texts had none yet. `without` says why the prompt had none.

    Of a model elsewhere also `coarse`, `calibration` and `query_vector` (float16, base64, None for none).
    """
    model = index.vectors.embedder
    meta: dict[str, object] = {"profile": model.profile if model else None, "pending": index.pending()}
    if without:
        meta["without_vector"] = without
    if model is not None and not isinstance(model, Embedder):
        vector = model.query(text)
        found = index.vectors.calibration
        meta |= {
            "coarse": model.coarse,
            "calibration": [found.low, found.high],
            "query_vector": None
            if vector is None
            else base64.b64encode(vector.astype(np.float16).tobytes()).decode("ascii"),
        }
    return meta


class RecordedModel:
    """A model elsewhere as it was for one prompt. Texts of memories have their vectors from the cache, or none."""

    def __init__(self, meta: Mapping[str, Any]) -> None:
        """Take the `meta` of a record. Raises KeyError, TypeError or ValueError when it is of another form."""
        self.profile = str(meta["profile"])
        self.dim = int(self.profile.rpartition("|")[2])
        self.coarse = int(meta["coarse"])
        low, high = meta["calibration"]
        self._calibration = Calibration(float(low), float(high))
        self._vector: NDArray[np.float32] | None = None
        if meta["query_vector"] is not None:
            try:
                data = base64.b64decode(meta["query_vector"], validate=True)
            except binascii.Error as error:
                raise ValueError(str(error)) from None
            self._vector = np.frombuffer(data, dtype=np.float16).astype(np.float32)
            if len(self._vector) != self.dim:
                raise ValueError(f"a vector of {len(self._vector)} numbers for {self.profile}")

    def scale(self, questions: NDArray[np.float32], gists: NDArray[np.float32]) -> Calibration:
        """The scale that was in force, whatever the memories are."""
        del questions, gists
        return self._calibration

    def query(self, text: str) -> NDArray[np.float32] | None:
        """The vector of the recorded prompt."""
        del text
        return self._vector
