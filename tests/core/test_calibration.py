from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

import numpy as np
import pytest

from lorehooks.core.calibration import SAMPLES, STATIC, Calibration, derive
from lorehooks.core.embeddings import Embedder, NoCache, load_builtin
from lorehooks.core.index import RecallIndex
from lorehooks.core.model import Node, RecallQuery
from lorehooks.core.recall import recall
from lorehooks.core.settings import Settings
from lorehooks.core.views import rule_views

MODEL = load_builtin()
needs_model = pytest.mark.skipif(MODEL is None, reason="no wordllama wheel for this platform")
NOW = datetime(2025, 7, 4, tzinfo=UTC)


class Crowded:
    """The static model with all texts pushed into one corner, as in models whose cosines all lie between 0.7 and 1."""

    profile, coarse = "crowded", 64

    def __init__(self, model: Embedder, calibration: Calibration) -> None:
        self.model, self.dim, self.calibration = model, model.dim + 1, calibration

    def scale(self, questions: np.ndarray, gists: np.ndarray) -> Calibration:
        return self.calibration

    def query(self, text: str) -> np.ndarray:
        return self.embed([text])[0]

    def embed(self, texts: Sequence[str]) -> np.ndarray:
        rows = np.hstack([self.model.embed(texts), np.full((len(texts), 1), 1.6, dtype=np.float32)])
        return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


def scale(model: Embedder) -> Calibration:
    return derive(model.embed([asked for asked, _ in SAMPLES]), model.embed([gist for _, gist in SAMPLES]))


@needs_model
def test_the_scale_of_the_static_model_is_found_again() -> None:
    assert MODEL is not None
    found = scale(MODEL)
    assert found.low == pytest.approx(STATIC.low, abs=0.05)
    assert found.high == pytest.approx(STATIC.high, abs=0.1)


@needs_model
def test_a_model_whose_cosines_are_all_high_weighs_meaning_like_any_other() -> None:
    assert MODEL is not None
    found = scale(Crowded(MODEL, STATIC))
    assert found.low > 0.7
    plain, pushed = dense_of(MODEL), dense_of(Crowded(MODEL, found))
    assert plain["project://mail/worker"] > 0.3
    assert pushed == pytest.approx(plain, abs=0.12)
    assert dense_of(Crowded(MODEL, STATIC))["project://mail/colours"] == pytest.approx(1, abs=0.05)


def dense_of(model: Embedder) -> dict[str, float]:
    index = RecallIndex()
    for place, (path, content) in enumerate(
        [("worker", "The mail worker retries refused messages."), ("colours", "Buttons take the accent colour.")]
    ):
        node = Node(f"u{place}", f"project://mail/{path}", content, 2, "", (), "t", "t", "t")
        index.put(node, rule_views(node))
    index.attach_embedder(model, NoCache())
    index.embed_some(100)
    found = recall(index, RecallQuery("Will the worker send a refused mail again?"), Settings(), NOW)
    return {each.uri: each.raw.dense for each in found.candidates}


def test_a_model_that_sees_no_difference_has_a_scale_all_the_same() -> None:
    same = np.ones((4, 3), dtype=np.float32) / np.sqrt(3, dtype=np.float32)
    found = derive(same, same)
    assert found.low < found.high
    assert found.closeness(np.array([found.low, found.high])).tolist() == [0.0, 1.0]
