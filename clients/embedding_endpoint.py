"""Vectors from an OpenAI-compatible embedding endpoint, as a model that recall can use.

A prompt never waits for the network longer than it is told to: its vector is asked for beforehand (`prepare`), kept for
when the same text comes again, and when it does not come in time recall goes on with words alone.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, Field, TypeAdapter, ValidationError

from lorehooks.clients.breaker import Breaker
from lorehooks.clients.endpoint import Endpoint
from lorehooks.clients.errors import BadAnswerError, ServerError
from lorehooks.clients.model_endpoint import CredentialOf, ModelCalls, model_endpoint
from lorehooks.core.calibration import ENOUGH_PAIRS, SAMPLES, Calibration, derive
from lorehooks.core.embeddings import MAX_CHARS
from lorehooks.core.errors import LoreError
from lorehooks.core.secrets import mask

SECTION = "embedding"
PROVIDER = "openai_compatible"
_BATCH = 32
"""Texts in one call; less once an endpoint has refused so many."""
_BATCH_SECONDS = 60.0
_PROMPT_SECONDS = 10.0
"""What a prompt's vector may take; nobody waits so long, but a model that was just being loaded is warm afterwards."""
_PAUSE_SECONDS = 600.0
"""Longest time that prompts leave an endpoint alone after failures."""
_COARSE = 256
_KEPT = 256
_MOST_DIMENSIONS = 8_192
_REFUSED = (HTTPStatus.BAD_REQUEST, HTTPStatus.REQUEST_ENTITY_TOO_LARGE, HTTPStatus.UNPROCESSABLE_ENTITY)
_SEPARATOR = "|"

Row = NDArray[np.float16]


class _Datum(BaseModel):
    index: int
    embedding: list[float] = Field(min_length=1, max_length=_MOST_DIMENSIONS)


class _Answer(BaseModel):
    data: list[_Datum]


_ANSWER = TypeAdapter(_Answer)


class EmbeddingClient:
    """The calls of one embedding endpoint. `close` it."""

    def __init__(self, calls: ModelCalls, model: str) -> None:
        self.model = model
        self.base_url = calls.endpoint.url
        self._calls = calls
        self._batch = _BATCH

    @property
    def endpoint(self) -> Endpoint:
        """The way there, with its key."""
        return self._calls.endpoint

    async def embed(self, texts: Sequence[str], *, seconds: float) -> NDArray[np.float16]:
        """One unit row for each text, in one call. Raises BadAnswerError for anything else, and what `post` raises."""
        body = {"model": self.model, "input": [mask(text)[:MAX_CHARS] for text in texts]}
        reply = await self._calls.post("/embeddings", body, seconds=seconds)
        return await asyncio.to_thread(_rows, reply.content, len(texts), self._calls.endpoint.label)

    async def documents(self, texts: Sequence[str]) -> dict[str, Row]:
        """Vectors of many texts, in as many calls as the endpoint wants. One that it refuses even alone is left out."""
        found: dict[str, Row] = {}
        at = 0
        while at < len(texts):
            part = texts[at : at + self._batch]
            try:
                rows = await self.embed(part, seconds=_BATCH_SECONDS)
            except ServerError as error:
                if error.answered not in _REFUSED:
                    raise
                if len(part) > 1:
                    self._batch = max(1, len(part) // 2)
                    continue
                row = await self._shortened(part[0])
                if row is not None:
                    found[part[0]] = row
            else:
                found.update(zip(part, rows, strict=True))
            at += len(part)
        return found

    async def _shortened(self, text: str) -> Row | None:
        """The vector of a text's first half, for a model that reads less than the whole."""
        try:
            rows = await self.embed([text[: max(1, len(text) // 2)]], seconds=_BATCH_SECONDS)
        except ServerError as error:
            if error.answered not in _REFUSED:
                raise
            return None
        row: Row = rows[0]
        return row

    async def close(self) -> None:
        """End the connections."""
        await self._calls.close()


class EndpointModel:
    """A model behind an endpoint, as the index knows it. Its rows come through `documents`, prompts through `prepare`."""

    def __init__(self, client: EmbeddingClient, dim: int, samples: NDArray[np.float16]) -> None:
        """`samples` are the vectors of `sample_texts()`."""
        self.client = client
        self.profile = profile_of(client.base_url, client.model, dim)
        self.dim = dim
        self.coarse = _COARSE
        self.breaker = Breaker(client.base_url, most_seconds=_PAUSE_SECONDS, any_error=True)
        self._samples = samples.astype(np.float32)
        self._known: OrderedDict[str, Row] = OrderedDict()
        self._asking: dict[str, asyncio.Task[str]] = {}
        self._overdue: set[str] = set()

    @classmethod
    def of_samples(cls, client: EmbeddingClient, vectors: Mapping[str, Row]) -> EndpointModel:
        """The model that gave these vectors of `sample_texts()`. Raises BadAnswerError when they are not all there."""
        rows = [vectors.get(text) for text in sample_texts()]
        there = [row for row in rows if row is not None]
        widths = {len(row) for row in there}
        if len(there) < len(rows) or len(widths) != 1:
            raise BadAnswerError(
                f"{client.model} at {client.base_url} has no vectors of one width for short texts",
                hint=f"lore config test {SECTION}",
            )
        return cls(client, widths.pop(), np.stack(there))

    def scale(self, questions: NDArray[np.float32], gists: NDArray[np.float32]) -> Calibration:
        """Read off the memories, and off invented ones as long as there are few."""
        if len(questions) < ENOUGH_PAIRS:
            half = len(self._samples) // 2
            questions = np.concatenate([questions, self._samples[:half]])
            gists = np.concatenate([gists, self._samples[half:]])
        return derive(questions, gists)

    def query(self, text: str) -> NDArray[np.float32] | None:
        """The vector that `prepare` brought. Through float16, as records of runs keep it."""
        row = self._known.get(text)
        return None if row is None else row.astype(np.float32)

    async def prepare(self, text: str, seconds: float) -> str:
        """Have the vector of a prompt ready for `query`, within that time. Empty, or why recall must do without it.

        While a request is overdue no other prompt waits: `slow`. After several failures none is made: `paused`.
        """
        if text in self._known:
            self._known.move_to_end(text)
            return ""
        if text not in self._asking:
            if self._overdue:
                return "slow"
            if self.breaker.is_open:
                return "paused"
            self._asking[text] = asyncio.create_task(self._ask(text))
        task = self._asking[text]
        done, _ = await asyncio.wait([task], timeout=seconds)
        if done:
            return "slow" if task.cancelled() else task.result()
        self._overdue.add(text)
        return "slow"

    async def documents(self, texts: Sequence[str]) -> dict[str, Row]:
        """Vectors of texts; see `EmbeddingClient.documents`. Raises BadAnswerError for those of another width as well."""
        found = await self.client.documents(texts)
        for row in found.values():
            self._check(row)
        return found

    async def renew(self, client: EmbeddingClient) -> None:
        """Ask through another client from now on, should its way or its key be another one."""
        if client.endpoint == self.client.endpoint:
            await client.close()
            return
        await self.close()
        self.client = client

    async def close(self) -> None:
        """Give up what is being asked, and end the connections."""
        asking = list(self._asking.values())
        for task in asking:
            task.cancel()
        await asyncio.gather(*asking, return_exceptions=True)
        await self.client.close()

    async def _ask(self, text: str) -> str:
        try:
            async with self.breaker.attempt():
                rows = await self.client.embed([text], seconds=_PROMPT_SECONDS)
                self._check(rows[0])
        except LoreError as error:
            return error.code
        finally:
            del self._asking[text]
            self._overdue.discard(text)
        self._known[text] = rows[0]
        if len(self._known) > _KEPT:
            self._known.popitem(last=False)
        return ""

    def _check(self, row: Row) -> None:
        """Raise BadAnswerError when the endpoint has changed its model under the same name."""
        if len(row) != self.dim:
            raise BadAnswerError(
                f"{self.client.model} at {self.client.base_url} gives vectors of {len(row)} numbers now, not {self.dim}"
            )


def open_embedding_client(settings: Mapping[str, Any], credential_of: CredentialOf) -> EmbeddingClient | None:
    """The client of the settings, None where none is set. Asks nobody. Raises LoreError for what cannot be used."""
    base_url, model = settings["embedding.base_url"], settings["embedding.model"].strip()
    if not base_url or not model:
        return None
    return EmbeddingClient(ModelCalls(model_endpoint(base_url, credential_of(base_url), SECTION), SECTION), model)


def sample_texts() -> list[str]:
    """What a model is tried with: the questions of invented memories, then their gists."""
    return [*(question for question, _ in SAMPLES), *(gist for _, gist in SAMPLES)]


def profile_of(base_url: str, model: str, dim: int) -> str:
    """What vectors are kept under: the same name with another width, or elsewhere, is another model."""
    return _SEPARATOR.join((base_url, model, str(dim)))


def known_dim(profiles: Sequence[str], base_url: str, model: str) -> int | None:
    """The width of an endpoint's model, from the profiles that vectors are kept under; None when there is not one."""
    start = profile_of(base_url, model, 0).removesuffix("0")
    found = [
        int(tail) for each in profiles if each.startswith(start) and (tail := each.removeprefix(start)).isdecimal()
    ]
    return found[0] if len(found) == 1 else None


def _rows(content: bytes, count: int, label: str) -> NDArray[np.float16]:
    try:
        data = _ANSWER.validate_json(content).data
    except ValidationError:
        raise BadAnswerError(
            f"{label} answers, but not as an embedding endpoint does",
            hint=f"look at {SECTION}.base_url, which mostly ends with /v1, and at {SECTION}.model",
        ) from None
    ordered = {datum.index: datum.embedding for datum in data}
    widths = {len(row) for row in ordered.values()}
    if sorted(ordered) != list(range(count)) or len(data) != count or len(widths) != 1:
        raise BadAnswerError(f"{label} answers with {len(data)} vectors of {sorted(widths)} numbers for {count} texts")
    rows = np.array([ordered[place] for place in range(count)], dtype=np.float64)
    lengths = np.sqrt((rows**2).sum(axis=1, keepdims=True))
    if not np.isfinite(lengths).all() or (lengths == 0).any():
        raise BadAnswerError(f"{label} answers with vectors that have no direction")
    unit: NDArray[np.float16] = (rows / lengths).astype(np.float16)
    return unit
