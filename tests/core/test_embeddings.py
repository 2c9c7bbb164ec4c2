from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest

from lorehooks.core.calibration import STATIC, Calibration
from lorehooks.core.embeddings import Embedder, StaticEmbedder, load_builtin, pivot, vector_key
from lorehooks.core.vectors import VectorTable

MODEL = load_builtin()
needs_model = pytest.mark.skipif(MODEL is None, reason="no wordllama wheel for this platform")


class DictCache:
    def __init__(self) -> None:
        self.rows: dict[tuple[str, bytes], bytes] = {}

    def get_many(self, profile: str, keys: Sequence[bytes]) -> dict[bytes, bytes]:
        return {key: self.rows[profile, key] for key in keys if (profile, key) in self.rows}

    def put_many(self, profile: str, rows: Mapping[bytes, bytes]) -> None:
        self.rows.update({(profile, key): value for key, value in rows.items()})


class Counting:
    """A model of three dimensions that counts what it is asked."""

    profile, dim, coarse = "counting", 3, 3

    def __init__(self) -> None:
        self.asked: list[str] = []

    def query(self, text: str) -> np.ndarray:
        return self.embed([text])[0]

    def scale(self, questions: np.ndarray, gists: np.ndarray) -> Calibration:
        return STATIC

    def embed(self, texts: Sequence[str]) -> np.ndarray:
        self.asked += texts
        return np.array([[1, 0, 0] if "x" in text else [0, 1, 0] for text in texts], dtype=np.float32)


@needs_model
def test_rows_have_length_one_or_none() -> None:
    assert MODEL is not None
    rows = MODEL.embed(["deploy the gateway", "部署网关", "", "…", "\ud800", "x" * 100_000])
    lengths = np.linalg.norm(rows, axis=1)
    assert rows.dtype == np.float32
    assert np.all(np.isclose(lengths, 1, atol=1e-5) | (lengths == 0))
    assert np.all(lengths[[0, 1, 5]] > 0.99)


@needs_model
def test_a_text_has_the_same_bytes_in_any_company() -> None:
    assert MODEL is not None
    alone = MODEL.embed(["retry a failed webhook"])[0]
    assert MODEL.embed(["other", "retry a failed webhook", "words " * 50])[1].tobytes() == alone.tobytes()


@needs_model
def test_meaning_crosses_the_two_languages() -> None:
    assert MODEL is not None
    deploy, same, other = MODEL.embed(["deploy to production", "部署到生产环境", "退款手续费"])
    assert deploy @ same > deploy @ other + 0.2


def test_chinese_of_the_table_is_read_as_english() -> None:
    assert "deploy" in pivot("今天部署")
    assert pivot("plain English stays") == "plain English stays"


def test_a_file_that_is_no_model_is_refused(tmp_path: Path) -> None:
    header = json.dumps({"embedding.weight": {"dtype": "F32", "shape": [2, 2], "data_offsets": [0, 16]}}).encode()
    weights = tmp_path / "w.safetensors"
    weights.write_bytes(len(header).to_bytes(8, "little") + header + bytes(16))
    tokenizer = tmp_path / "t.json"
    tokenizer.write_text("{}", encoding="utf-8")
    with pytest.raises(ValueError, match="F32"):
        StaticEmbedder(weights, tokenizer)


def test_what_the_cache_has_is_not_embedded_again() -> None:
    cache, first, second = DictCache(), Counting(), Counting()
    for model in (first, second):
        table = VectorTable()
        rows = [table.add(text) for text in ("x one", "two", "three")]
        table.attach(model, cache)
        while table.embed_some(2):
            pass
        assert table.pending() == 0
        near = table.cosines(np.array(rows, dtype=np.int32), np.array([1, 0, 0], dtype=np.float32))
        assert near.tolist() == [1.0, 0.0, 0.0]
    assert sorted(first.asked) == ["three", "two", "x one"]
    assert second.asked == []


def test_a_row_given_back_is_empty_when_it_is_used_again() -> None:
    table = VectorTable()
    table.attach(Counting(), DictCache())
    row = table.add("x")
    table.embed_some(1)
    table.drop(row)
    assert table.add("waiting") == row
    assert table.cosines(np.array([row], dtype=np.int32), np.array([1, 0, 0], dtype=np.float32)).tolist() == [0.0]
    assert table.pending() == 1


def test_a_damaged_cache_row_is_made_again() -> None:
    cache, model = DictCache(), Counting()
    cache.rows["counting", vector_key("x")] = b"short"
    table = VectorTable()
    table.add("x")
    table.attach(model, cache)
    assert table.embed_some(5) == 1
    assert model.asked == ["x"]


def test_the_stand_in_is_a_model() -> None:
    model: Embedder = Counting()
    assert model.dim == 3
