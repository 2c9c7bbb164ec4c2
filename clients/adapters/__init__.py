"""One adapter per runtime: the host's JSON in, one event; a text out, the host's JSON."""

from __future__ import annotations

from lorehooks.clients.adapters.base import Adapter, HookEvent
from lorehooks.clients.adapters.generic import GenericAdapter
from lorehooks.clients.adapters.hook import HookAdapter
from lorehooks.clients.adapters.plugin import PluginAdapter
from lorehooks.clients.runtimes import RUNTIMES, runtime_of

__all__ = ["Adapter", "HookEvent", "adapter_for", "any_adapter"]


def adapter_for(client_type: str) -> Adapter | None:
    """The adapter of a runtime, or None for a client without hooks."""
    runtime = RUNTIMES.get(client_type)
    if runtime is None:
        return None
    return HookAdapter(runtime) if runtime.form == "hook" else PluginAdapter(runtime)


def any_adapter(name: str) -> Adapter:
    """The adapter of a runtime, or the generic one for a name that is not in the table."""
    return adapter_for(name) or GenericAdapter(runtime_of(name))
