"""Which model's vectors recall uses. It follows the settings, and goes over to another model in one go.

A model behind an endpoint takes over once every memory has its vector: until then the model before stays in use, however
long that takes and however often the service is started anew. Vectors of earlier models stay in the cache, so that the way
back costs nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from lorehooks.clients.background import Pace, Trouble, Worker
from lorehooks.clients.live_index import LiveIndex
from lorehooks.core.embeddings import Embedder, load_builtin, vector_key
from lorehooks.core.errors import InvalidError, LoreError

if TYPE_CHECKING:
    from lorehooks.clients.embedding_endpoint import EmbeddingClient, EndpointModel, Row

_ELSEWHERE = "openai_compatible"
_AT_ONCE = 128
"""Texts between two moments at which vectors are written down."""
_FEW, _FEW_SHARE = 50, 0.05
"""So many texts may lack a vector, at a start, for a model to be used at once."""


class VectorSource:
    """The model of one memory. All of it runs on the event loop."""

    def __init__(
        self, live: LiveIndex, open_client: Callable[[], EmbeddingClient | None], pace: Pace | None = None
    ) -> None:
        """`open_client` gives the endpoint of the settings, None where none is set."""
        self._live = live
        self._open = open_client
        self._pace = pace or Pace()
        self._worker = Worker(self._work)
        self._trouble = Trouble()
        self._builtin: Embedder | None = None
        self._elsewhere: EndpointModel | None = None
        self._left = 0
        self._refused: set[str] = set()
        """Texts that the endpoint gives no vector for."""

    async def start(self) -> None:
        """Use what can be used without asking anybody: the built-in model, or vectors of the endpoint that are here."""
        if self._wanted == _ELSEWHERE and await self._use_kept():
            return
        await self._use_local()

    async def run(self) -> None:
        """Follow the settings until cancelled."""
        await self._worker.run()

    def wake(self) -> None:
        """The settings have changed."""
        self._worker.wake()

    async def prepare(self, text: str, seconds: float) -> str:
        """Have a prompt's vector ready for recall. Empty, or why recall must do without it."""
        model = self._live.embedder
        if model is None or model is not self._elsewhere or not text:
            return ""
        return await self._elsewhere.prepare(text, seconds)

    def state(self) -> dict[str, object]:
        """For people: the model in use, how many texts still lack a vector of the one that is wanted, and what is wrong."""
        model = self._live.embedder
        paused = self._elsewhere is not None and self._elsewhere.breaker.is_open
        return {
            "provider": self._wanted,
            "profile": model.profile if model else None,
            "waiting": self._left,
            "refused": len(self._refused),
            "prompts_paused": paused,
            "problem": self._trouble.problem,
            "retry_in": self._trouble.retry_in,
        }

    async def close(self) -> None:
        """End connections."""
        if self._elsewhere is not None:
            await self._elsewhere.close()

    @property
    def _wanted(self) -> str:
        provider: str = self._live.store.settings["embedding.provider"]
        return provider

    async def _work(self) -> None:
        self._trouble.over()
        self._left = 0
        if self._wanted != _ELSEWHERE:
            await self._use_local()
            return
        while True:
            try:
                client = self._open()
                if client is None:
                    raise InvalidError(
                        "embedding.base_url or embedding.model is not set",
                        hint="lore config set embedding.base_url URL",
                    )
                await self._serve(client)
            except LoreError as error:
                await self._trouble.wait(error, self._pace)

    async def _serve(self, client: EmbeddingClient) -> None:
        """Bring the endpoint's model into use and give each text its vector. Never returns; raises LoreError."""
        model = await self._model_of(client)
        try:
            await self._fill_cache(model)
            await self._use(model)
        except BaseException:
            if model is not self._elsewhere:
                await model.close()
            raise
        self._trouble.over()
        while True:
            self._live.wanting.clear()
            while texts := [text for text in self._live.index.vectors.waiting() if text not in self._refused]:
                self._left = len(texts)
                self._live.index.vectors.take(await self._embedded(model, texts[:_AT_ONCE]))
                self._trouble.over()
            self._left = 0
            self._live.calibrate(self._live.index)
            await self._live.wanting.wait()

    async def _model_of(self, client: EmbeddingClient) -> EndpointModel:
        """The endpoint's model, asked for its width and its scale; the one in use, if it is the same."""
        from lorehooks.clients.embedding_endpoint import EndpointModel, sample_texts

        try:
            vectors = await client.documents(sample_texts())
            model = EndpointModel.of_samples(client, vectors)
        except BaseException:
            await client.close()
            raise
        self._keep(model, vectors)
        known = self._elsewhere
        if known is not None and known is self._live.embedder and known.profile == model.profile:
            await known.renew(client)
            return known
        return model

    async def _fill_cache(self, model: EndpointModel) -> None:
        """Have vectors of all memories before the model is used."""
        while model is not self._live.embedder:
            texts, _ = await self._live.missing(model.profile)
            texts = [text for text in texts if text not in self._refused]
            if not texts:
                return
            for start in range(0, len(texts), _AT_ONCE):
                self._left = len(texts) - start
                await self._embedded(model, texts[start : start + _AT_ONCE])

    async def _embedded(self, model: EndpointModel, texts: Sequence[str]) -> dict[str, Row]:
        """Vectors of some texts, kept; none when something was forgotten meanwhile, since it may have been one of them."""
        purges = self._live.purges
        found = await model.documents(texts)
        if purges != self._live.purges:
            return {}
        self._refused.update(text for text in texts if text not in found)
        self._keep(model, found)
        await self._live.flush()
        return found

    def _keep(self, model: EndpointModel, vectors: Mapping[str, Row]) -> None:
        self._live.cache.put_many(model.profile, {vector_key(text): row.tobytes() for text, row in vectors.items()})

    async def _use(self, model: EndpointModel) -> None:
        """Change over, and end the connections of the one before."""
        await self._live.use(model)
        before, self._elsewhere = self._elsewhere, model
        if before is not None and before is not model:
            await before.close()

    async def _use_kept(self) -> bool:
        """Use the endpoint's model without asking it, when the cache has its vectors of nearly all memories."""
        from lorehooks.clients.embedding_endpoint import EndpointModel, known_dim, profile_of, sample_texts

        try:
            client = self._open()
        except LoreError:
            return False
        if client is None:
            return False
        cache = self._live.cache
        dim = known_dim(await asyncio.to_thread(cache.profiles), client.base_url, client.model)
        if dim is not None:
            profile = profile_of(client.base_url, client.model, dim)
            keys = {text: vector_key(text) for text in sample_texts()}
            kept = await asyncio.to_thread(cache.get_many, profile, list(keys.values()))
            missing, total = await self._live.missing(profile)
            if len(kept) == len(keys) and len(missing) <= max(_FEW, total * _FEW_SHARE):
                rows = {text: np.frombuffer(kept[key], dtype=np.float16) for text, key in keys.items()}
                try:
                    await self._use(EndpointModel.of_samples(client, rows))
                except BaseException:
                    await client.close()
                    raise
                return True
        await client.close()
        return False

    async def _use_local(self) -> None:
        """Use the built-in model, or none where it is switched off or has no wheel."""
        if self._wanted == "off":
            await self._live.use(None)
        else:
            self._builtin = self._builtin or await asyncio.to_thread(load_builtin)
            await self._live.use(self._builtin)
        if self._elsewhere is not None:
            before, self._elsewhere = self._elsewhere, None
            await before.close()
