"""Opens the memory that a home uses, whoever keeps it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from lorehooks.clients.embedded import EmbeddedBackend
from lorehooks.clients.target import Target
from lorehooks.core.home import Home
from lorehooks.core.runs import Recorder
from lorehooks.core.settings import Settings
from lorehooks.core.store import Store

if TYPE_CHECKING:
    from lorehooks.clients.credentials import Credential
    from lorehooks.clients.remote import RemoteBackend


def open_backend(
    target: Target,
    home: Home,
    recorder: Recorder,
    machine: Settings,
    *,
    language: str,
    on_change: Callable[[], None],
) -> EmbeddedBackend | RemoteBackend:
    """The embedded memory, or the server that `target.resolve` found. Raises StorageError for the embedded one only."""
    if target.endpoint is None:
        return EmbeddedBackend(
            Store(home.database),
            recorder,
            language=language,
            on_change=on_change,
            credential_of=lambda address: _credential(home, address),
        )
    from lorehooks.clients.remote import (
        RemoteBackend,
    )  # brings httpx and pydantic, which the embedded memory never needs

    return RemoteBackend(target, home, recorder, machine, language=language, on_change=on_change)


def _credential(home: Home, address: str) -> Credential:
    from lorehooks.clients.credentials import credential_for

    return credential_for(home, address)
