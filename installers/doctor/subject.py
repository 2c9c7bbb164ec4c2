"""What several checks look at, read once."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from lorehooks.clients.config import Config, load_or_defaults
from lorehooks.clients.target import Target, resolve
from lorehooks.core.errors import LoreError
from lorehooks.core.home import Home
from lorehooks.hooks import service
from lorehooks.hooks.localhttp import local_answer
from lorehooks.hooks.misses import Miss, Misses
from lorehooks.hooks.replay_command import flush
from lorehooks.installers import receipt
from lorehooks.installers.plan import Context
from lorehooks.installers.receipt import Receipt

_STATE_SECONDS = 5.0
DAY_MS = 86_400_000


@dataclass(frozen=True, slots=True)
class Subject:
    """One home, as it is now. `state` is what the running service knows of itself, None when none answers."""

    context: Context
    service: service.Status
    config: Config
    target: Target
    misses: tuple[Miss, ...]
    """Of the last day, oldest first."""
    receipts: tuple[Receipt, ...] = ()
    state: Mapping[str, Any] | None = field(default=None)

    @property
    def home(self) -> Home:
        return self.context.home

    @property
    def is_there(self) -> bool:
        return self.home.root.is_dir()

    def missed_by(self, client_type: str) -> Sequence[Miss]:
        return [miss for miss in self.misses if miss.client_type == client_type]


def look(context: Context) -> Subject:
    """Read the home. Starts nothing; a service that hangs costs a few seconds."""
    home = context.home
    now = service.status(home)
    if now.answering:
        flush(home, seconds=1.0)
    config = load_or_defaults(home)
    since = time.time() * 1000 - DAY_MS
    return Subject(
        context,
        now,
        config,
        resolve(home, config, context.environment),
        tuple(miss for miss in Misses(home.misses).read() if miss.at_ms >= since),
        receipt.installed(home),
        _state(home) if now.answering else None,
    )


def _state(home: Home) -> Mapping[str, Any] | None:
    try:
        with local_answer(home, "GET", "/hooks/v1/state", seconds=_STATE_SECONDS) as answer:
            found = json.loads(answer.read())
    except (LoreError, ValueError):
        return None  # an older release has no such route; its version is a finding of its own
    return found if isinstance(found, dict) else None
