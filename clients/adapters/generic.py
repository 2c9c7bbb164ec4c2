"""A program that we know nothing of, over the Lore API: the text under one key, to be put before the model as it is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from lorehooks.clients.adapters.base import HookEvent, document, read_common
from lorehooks.clients.runtimes import Runtime


@dataclass(frozen=True, slots=True)
class GenericAdapter:
    """For runtimes without a row of their own; `runtime` comes from `clients.runtimes.runtime_of`."""

    runtime: Runtime

    def parse(self, event_name: str, payload: object) -> HookEvent:
        return read_common(self.runtime, event_name, payload)

    def render(self, event: HookEvent, text: str) -> bytes:
        if event.kind not in self.runtime.contexts or not text.strip():
            return b"{}"
        return document({"context": text})

    def render_tool_input(self, event: HookEvent, arguments: Mapping[str, object]) -> bytes:  # noqa: ARG002
        """Nothing: its tools are called over the API, where no call can be rewritten."""
        return b"{}"
