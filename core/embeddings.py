"""Vectors of texts: the static model that comes inside the `wordllama` wheel, and the shape any other model must have.

The model's two files are read directly (docs/decisions/0002-read-the-static-model-directly.md): a tokenizer and one
table of 32,000 float16 rows, mapped from disk, so that it costs a few megabytes and no download can happen.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from lorehooks.core import bilingual
from lorehooks.core.calibration import STATIC, Calibration
from lorehooks.core.salience import weight_of
from lorehooks.core.stopwords import CJK_FUNCTION_CHARS
from lorehooks.core.text import clean, is_cjk, pieces, spoken, tokens

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MAX_CHARS = 2000
"""Characters of one text that are embedded; views are shorter than that."""

_GRAMMAR, _EVERYDAY, _CHARACTER = 0.1, 0.1, 0.3
"""Share in the mean of a grammar word, what an everyday word gets on top, and of a character the model hardly knows."""

_PREPARATION = "1"
"""Number of the way texts are prepared; a change makes all vectors new."""
_WEIGHTS = "weights/l2_supercat_256.safetensors"
_TOKENIZER = "tokenizers/l2_supercat_tokenizer_config.json"
_TENSOR = "embedding.weight"


class Model(Protocol):
    """What recall needs of a model. `profile` names model and preparation: another profile, other vectors."""

    @property
    def profile(self) -> str: ...

    @property
    def dim(self) -> int: ...

    @property
    def coarse(self) -> int:
        """How many of a vector's first numbers tell roughly how near another one is."""
        ...

    def scale(self, questions: NDArray[np.float32], gists: NDArray[np.float32]) -> Calibration:
        """What its cosines are worth among the memories whose views these are, row by row; may be none."""
        ...

    def query(self, text: str) -> NDArray[np.float32] | None:
        """The L2-normalised vector of a prompt; None when it cannot be had right now. Never waits."""
        ...


@runtime_checkable
class Embedder(Model, Protocol):
    """A model in this process, which is quick enough to turn texts into vectors whenever they are wanted."""

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """One L2-normalised row of `dim` for each text; a text without content gives a row of zeros."""
        ...


class VectorCache(Protocol):
    """Where vectors are kept between runs. A key is `vector_key(text)`, a value float16 bytes."""

    def get_many(self, profile: str, keys: Sequence[bytes]) -> dict[bytes, bytes]: ...

    def put_many(self, profile: str, rows: Mapping[bytes, bytes]) -> None: ...


class NoCache:
    """A cache that keeps nothing, for indexes that do not outlive the process."""

    def get_many(self, profile: str, keys: Sequence[bytes]) -> dict[bytes, bytes]:
        del profile, keys
        return {}

    def put_many(self, profile: str, rows: Mapping[bytes, bytes]) -> None:
        del profile, rows


def vector_key(text: str) -> bytes:
    """The cache key of a text: the first 16 bytes of its SHA-256."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()[:16]


def load_builtin() -> Embedder | None:
    """The model of the installed wheel, or None where there is no wheel or its files are not as expected."""
    spec = importlib.util.find_spec("wordllama")
    if spec is None or not spec.origin:
        return None
    folder = Path(spec.origin).parent
    try:
        return StaticEmbedder(folder / _WEIGHTS, folder / _TOKENIZER)
    except (ImportError, OSError, ValueError, KeyError):
        return None  # the rest of recall works without vectors, and `lore doctor` names the reason


class StaticEmbedder:
    """Mean of token vectors. Chinese words of the bilingual table are read as English, since the model is English."""

    def __init__(self, weights: Path, tokenizer: Path) -> None:
        """Map the files. Raises OSError, ValueError or KeyError when they are not what they should be."""
        from tokenizers import Tokenizer

        self._table = _map_tensor(weights, _TENSOR)
        self._tokenizer = Tokenizer.from_file(str(tokenizer))
        self._tokenizer.no_padding()
        self._tokenizer.no_truncation()
        table = hashlib.sha256(repr(sorted(bilingual.english().items())).encode()).hexdigest()[:8]
        self.profile = f"wordllama/{weights.stem}/{_PREPARATION}-{table}"
        self.dim = int(self._table.shape[1])
        self.coarse = 64  # it puts most of the meaning first

    def scale(self, questions: NDArray[np.float32], gists: NDArray[np.float32]) -> Calibration:
        """Found by trying, whatever the memories are."""
        del questions, gists
        return STATIC

    def query(self, text: str) -> NDArray[np.float32] | None:
        """The row of one text."""
        row: NDArray[np.float32] = self.embed([text])[0]
        return row

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """One row for each text. The same text gives the same bytes whatever stands beside it."""
        import numpy as np

        rows = np.zeros((len(texts), self.dim), dtype=np.float32)
        for row, text in zip(rows, map(_words, texts), strict=True):
            # One by one: the tokenizer's batches start threads, which cost more than they save here.
            item = self._tokenizer.encode([word for word, _ in text], is_pretokenized=True, add_special_tokens=False)
            if not item.ids:
                continue
            ids = np.minimum(np.array(item.ids), len(self._table) - 1)
            weights = np.array([text[place or 0][1] for place in item.word_ids], dtype=np.float32)
            vector = (self._table[ids].astype(np.float32) * weights[:, None]).sum(axis=0)
            norm = float(np.sqrt((vector.astype(np.float64) ** 2).sum()))
            if norm > 0:
                row[:] = vector / norm
        return rows


def _words(text: str) -> list[tuple[str, float]]:
    """The words of a text with what each adds to the mean. Grammar would make all texts of a language look alike."""
    found: list[tuple[str, float]] = []
    for piece in pieces(pivot(text[:MAX_CHARS])):
        found += _weighted(piece)
    return found


@lru_cache(maxsize=4096)
def _weighted(piece: str) -> tuple[tuple[str, float], ...]:
    found: list[tuple[str, float]] = []
    for item in spoken(tokens(piece)):
        if item.kind == "char":
            weight = 0.0 if item.key in CJK_FUNCTION_CHARS else _CHARACTER
        else:
            weight = max(_GRAMMAR, min(1.0, weight_of(item) + _EVERYDAY))
        if weight > 0:
            found.append((item.surface, weight))
    return tuple(found)


def _map_tensor(path: Path, name: str) -> Any:
    """A float16 matrix of a safetensors file, mapped. The format: length of the header (8 bytes), JSON, raw data."""
    import numpy as np

    with path.open("rb") as file:
        size = int.from_bytes(file.read(8), "little")
        header = json.loads(file.read(size))
    entry = header[name]
    if entry["dtype"] != "F16" or len(entry["shape"]) != 2:  # noqa: PLR2004 (a matrix)
        raise ValueError(f"{path.name} holds {entry['dtype']} {entry['shape']}, not a float16 matrix")
    mapped = np.memmap(path, np.float16, "r", 8 + size + entry["data_offsets"][0], tuple(entry["shape"]))
    return np.asarray(mapped)  # the same memory without the cost of the subclass


def pivot(text: str) -> str:
    """The text with Chinese words that the bilingual table knows replaced by English, longest first."""
    text = clean(text)
    if text.isascii():
        return text
    return "".join(_pivot(text))


def _pivot(text: str) -> Iterable[str]:
    words = bilingual.english()
    longest = max(map(len, words))
    at = 0
    while at < len(text):
        if is_cjk(text[at]):
            for length in range(min(longest, len(text) - at), 1, -1):
                found = words.get(text[at : at + length])
                if found:
                    yield f" {found} "
                    at += length
                    break
            else:
                yield text[at]
                at += 1
        else:
            yield text[at]
            at += 1
