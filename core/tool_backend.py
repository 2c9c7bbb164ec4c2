"""What the ten tools need of a memory, whoever keeps it: the embedded store or a Lore server elsewhere.

`clients.backend.Backend` satisfies this protocol; it stands here because `core` imports nothing from above.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from lorehooks.core.boot import BootData
from lorehooks.core.model import NodeDraft, NodePatch, Origin, WriteResult

SearchMode = Literal["keyword", "semantic", "both"]
UseKind = Literal["passed", "filled", "none"]
"""How the ids of a recall came with an opened node: from the model, from an adapter, or not at all."""


@dataclass(frozen=True, slots=True)
class ChildLine:
    """One child in a node's view. `snippet` is the start of its content, on one line; may be empty."""

    uri: str
    priority: int
    snippet: str = ""


@dataclass(frozen=True, slots=True)
class NodeView:
    """A memory opened for reading, or the root of a domain (`domain://`, no uuid, no content, only children)."""

    uri: str
    uuid: str = ""
    content: str = ""
    priority: int = 0
    disclosure: str = ""
    glossary: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()
    children: tuple[ChildLine, ...] = ()


@dataclass(frozen=True, slots=True)
class SearchHit:
    """One found memory, best first in its list. `content` is filled for the first `content_limit` hits only."""

    uri: str
    priority: int
    score: float
    cues: tuple[str, ...] = ()
    snippet: str = ""
    content: str | None = None


@dataclass(frozen=True, slots=True)
class DomainLine:
    """A domain and how many memories stand at its first level."""

    domain: str
    count: int


@dataclass(frozen=True, slots=True)
class RecallIds:
    """The ids of one recall, as they stand in its tag."""

    session_id: str
    query_id: str


class ToolBackend(Protocol):
    """Every method raises LoreError when it cannot do its part; URIs are complete addresses (`domain://path`)."""

    async def status(self) -> Mapping[str, object]:
        """Health as the Lore API gives it, such as `{"status": "ok", "database": "connected"}`."""

    async def guidance(self) -> str:
        """The guidance text in force; empty when it is switched off."""

    async def boot(self, client_type: str | None) -> BootData:
        """What a session of that client starts with, startup recall left out."""

    async def get_node(self, uri: str, *, nav_only: bool = False) -> NodeView:
        """A memory with its children, or a domain's root. `nav_only` leaves the content out. Raises NotFoundError."""

    async def search(
        self, query: str, *, mode: SearchMode, domain: str | None, limit: int, content_limit: int
    ) -> Sequence[SearchHit]:
        """Memories that match, best first."""

    async def domains(self) -> Sequence[DomainLine]:
        """All domains that hold a memory."""

    async def create_node(self, draft: NodeDraft, origin: Origin) -> WriteResult:
        """Store a new memory. Raises InvalidError, ConflictError, SecretError."""

    async def update_node(self, uri: str, patch: NodePatch, origin: Origin) -> WriteResult:
        """Change a memory. Raises NotFoundError, InvalidError, SecretError."""

    async def delete_node(self, uri: str, origin: Origin) -> WriteResult:
        """Delete a memory with everything below it. Raises NotFoundError, ProtectedBootError."""

    async def move_node(self, old_uri: str, new_uri: str, origin: Origin) -> WriteResult:
        """Give a memory and everything below it a new address. Raises NotFoundError, ConflictError."""

    async def mark_used(self, *, uri: str, how: UseKind, query_id: str | None, session_id: str | None) -> bool:
        """Note that a memory was opened. True when the ids name a recall that showed this URI (always False for `none`)."""
