"""What the service needs of a memory, whoever keeps it: the embedded store here, or a Lore server elsewhere.

`EmbeddedBackend` and `RemoteBackend` satisfy this protocol and pass one contract suite. All methods raise LoreError.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from lorehooks.core.model import Origin, RecallQuery, RecallResult
from lorehooks.core.tool_backend import ToolBackend

SESSION_START = "hook:session.start"
"""Source of a recall that a session starts with: a remote memory keeps its answer for when the server does not answer."""


@dataclass(frozen=True, slots=True)
class Recalled:
    """One recall that was asked for: its id, what came out, and the inputs that make it repeatable."""

    query_id: str
    result: RecallResult
    settings: Mapping[str, Any] = field(default_factory=dict)
    """The memory's changed settings in force."""
    memory_seq: int | None = None
    """The last event the memory had seen; None for a remote server."""
    at: str = ""
    """The moment that recency was reckoned from."""


class Backend(ToolBackend, Protocol):
    """A memory: the tools' methods, and what hooks need beyond them."""

    @property
    def name(self) -> str:
        """`embedded`, or the address of the server."""

    async def recall(self, query: RecallQuery, origin: Origin, *, seconds: float | None = None) -> Recalled:
        """Candidates for a prompt; what was shown is remembered under the query id for `mark_used`.

        `seconds` is what the caller has left, for a memory that can do with less when there is little.
        """

    async def settings(self) -> Mapping[str, Any]:
        """The memory's settings in force."""

    async def load(self) -> None:
        """Run beside the service until done or cancelled: fill an index, deliver what waits."""

    async def close(self) -> None:
        """Let go of files and connections."""
