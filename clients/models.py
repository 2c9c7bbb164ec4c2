"""The models that an embedded memory may use: one for vectors, one that writes views. Both are optional and never waited for."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING

from lorehooks.clients.background import Pace
from lorehooks.clients.live_index import LiveIndex
from lorehooks.clients.refiner import Keep, Refiner
from lorehooks.clients.vector_source import VectorSource
from lorehooks.core.model import Change

if TYPE_CHECKING:
    from lorehooks.clients.credentials import Credential
    from lorehooks.clients.embedding_endpoint import EmbeddingClient
    from lorehooks.clients.model_endpoint import CredentialOf
    from lorehooks.clients.view_llm import ViewModel


class Models:
    """Both, following the settings of the memory. Endpoint clients are imported when one is set, and not before."""

    def __init__(
        self, live: LiveIndex, keep: Keep, credential_of: CredentialOf | None = None, pace: Pace | None = None
    ) -> None:
        """`keep` makes views part of the memory. `credential_of` gives what is kept for an address's origin."""
        self.credential_of = credential_of or _nothing_kept
        self.source = VectorSource(live, self._open_embedding, pace)
        self.refiner = Refiner(live.store, self._open_views, keep, pace)
        self._store = live.store

    async def run(self) -> None:
        """Run both until cancelled."""
        await asyncio.gather(self.source.run(), self.refiner.run())

    def follow(self, keys: Collection[str]) -> None:
        """Settings have changed."""
        if any(key.startswith("embedding.") for key in keys):
            self.source.wake()
        if any(key.startswith("view_llm.") for key in keys):
            self.refiner.wake()

    def note(self, changes: Iterable[Change]) -> None:
        """A write has changed memories."""
        self.refiner.note(changes)

    def state(self) -> dict[str, object]:
        """How both do: `{embedding, views}`."""
        return {"embedding": self.source.state(), "views": self.refiner.state()}

    def _open_views(self) -> ViewModel | None:
        if not self._store.settings["view_llm.base_url"]:
            return None
        from lorehooks.clients.view_llm import open_view_model

        return open_view_model(self._store.settings, self.credential_of)

    def _open_embedding(self) -> EmbeddingClient | None:
        from lorehooks.clients.embedding_endpoint import open_embedding_client

        return open_embedding_client(self._store.settings, self.credential_of)


def _nothing_kept(_address: str) -> Credential:
    from lorehooks.clients.credentials import Credential

    return Credential()
