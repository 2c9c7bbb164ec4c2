"""The data classes that travel between the rooms. No behaviour beyond what follows from their own fields."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

CLIENT_TYPES = ("claudecode", "codex", "opencode", "pi", "openclaw", "hermes", "zcode", "dsh")
"""Runtimes with a boot node and hooks of their own (seed "The fixed boot nodes")."""

GENERIC_CLIENTS = ("mcp", "admin")
"""Callers without hooks: any MCP client, and a person's console."""


def known_client(text: str | None) -> str | None:
    """A client type as it is stored, or None for one that is not known, which counts as nobody (`lore-contract.md` 1.1)."""
    name = (text or "").strip().lower()
    return name if name in CLIENT_TYPES or name in GENERIC_CLIENTS else None


GLOBAL_BOOT_URIS = ("core://agent", "core://soul", "preferences://user")
BOOT_URIS = (*GLOBAL_BOOT_URIS, *(f"core://agent/{client}" for client in CLIENT_TYPES))
"""The fixed boot nodes: they exist from the start, may be edited, and never be deleted or moved."""

REHEARSAL, SELF_TEST = "lore-rehearsal", "lore-selftest"
REHEARSALS = (REHEARSAL, SELF_TEST)
"""Sessions of `lore boot`, `lore recall` and the doctor's self-test: answered like any other, kept out of ledger, records and
statistics."""

Withheld = Literal["", "boot", "score", "limit", "project", "repeat", "budget"]
"""Why a memory that recall considered was not shown; empty when it was."""

ViewType = Literal["gist", "question"]
VIEW_TYPES: tuple[ViewType, ...] = ("gist", "question")


def boot_uris_for(client_type: str | None) -> tuple[str, ...]:
    """The boot nodes a client gets: the three global ones, a runtime's own; `admin` gets all."""
    if client_type == "admin":
        return BOOT_URIS
    if client_type in CLIENT_TYPES:
        return (*GLOBAL_BOOT_URIS, f"core://agent/{client_type}")
    return GLOBAL_BOOT_URIS


@dataclass(frozen=True, slots=True)
class Node:
    """One memory (seed "Anatomy of a node"). Times are ISO 8601 UTC with milliseconds and `Z`."""

    uuid: str
    uri: str
    content: str
    priority: int
    disclosure: str
    glossary: tuple[str, ...]
    created_at: str
    updated_at: str
    content_at: str
    """When the current content was written; equals `created_at` until the content changes."""
    client_type: str | None = None
    """Runtime of the last write."""
    source: str | None = None
    """Where the last write came from, such as `mcp:lore_update_node` or `cli`."""

    @property
    def domain(self) -> str:
        return self.uri.partition("://")[0]

    @property
    def path(self) -> str:
        return self.uri.partition("://")[2]

    @property
    def is_boot(self) -> bool:
        return self.uri in BOOT_URIS


@dataclass(frozen=True, slots=True)
class View:
    """A generated text of a memory that is embedded for semantic recall (seed "Generated views")."""

    type: ViewType
    text: str
    source: Literal["rule", "llm"] = "rule"
    model: str | None = None


@dataclass(frozen=True, slots=True)
class Origin:
    """Who writes: `source` is `mcp:<tool>`, `api:<route>`, `cli`, `console`, `dream`, `soul` or `import`."""

    source: str
    client_type: str | None = None
    session_id: str | None = None

    @property
    def is_agent(self) -> bool:
        """Whether a model wrote this, so that it may need a person's yes."""
        return self.source.startswith("mcp:") or self.client_type in CLIENT_TYPES or self.client_type == "mcp"


DEFAULT_PRIORITY = 2
"""A memory is general unless someone says otherwise (seed "Priority"; the public server's default of 0 is a trap)."""


@dataclass(frozen=True, slots=True)
class NodeDraft:
    """A memory to create. `uri` is a full address, held to the grammar by the store."""

    uri: str
    content: str
    priority: int = DEFAULT_PRIORITY
    disclosure: str = ""
    glossary: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class NodePatch:
    """Changes to a memory. None leaves a field as it is; `glossary` replaces, the other two add and remove."""

    content: str | None = None
    priority: int | None = None
    disclosure: str | None = None
    glossary: tuple[str, ...] | None = None
    glossary_add: tuple[str, ...] = ()
    glossary_remove: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Change:
    """What one write did to one node: before is None for a new node, after is None for a removed one."""

    before: Node | None
    after: Node | None


@dataclass(frozen=True, slots=True)
class WriteResult:
    """Outcome of a write verb. `proposal` is set when the write waits for a person's yes, and then nothing changed."""

    uri: str
    uuid: str
    changes: tuple[Change, ...] = ()
    warnings: tuple[str, ...] = ()
    proposal: int | None = None


@dataclass(frozen=True, slots=True)
class RecallQuery:
    """One question to recall. `project` is the session's repository name, or None."""

    text: str
    project: str | None = None
    domain: str | None = None
    limit: int = 12
    max_display_items: int | None = None
    min_display_score: float | None = None
    min_score: float = 0.0
    exclude_boot: bool = True


@dataclass(frozen=True, slots=True)
class Signals:
    """The parts of a score, each already rounded to 4 decimals and, where it has one, multiplied by its weight."""

    exact: float = 0.0
    glossary_semantic: float = 0.0
    dense: float = 0.0
    lexical: float = 0.0
    view: float = 0.0
    priority: float = 0.0
    multi_view: float = 0.0
    recency: float = 0.0

    @property
    def total(self) -> float:
        parts = (
            self.exact, self.glossary_semantic, self.dense, self.lexical,
            self.view, self.priority, self.multi_view, self.recency,
        )  # fmt: skip
        return round(sum(parts), 6)


@dataclass(frozen=True, slots=True)
class Candidate:
    """One memory that recall considered, with everything that decided its fate."""

    uri: str
    uuid: str
    priority: int
    score: float
    raw: Signals
    """Each signal in 0..1 before its weight (bonuses are the same in both)."""
    weighted: Signals
    cues: tuple[str, ...]
    """What of the prompt matched, best first, at most three."""
    matched_on: tuple[str, ...]
    views: tuple[ViewType, ...] = ()
    age_days: float | None = None
    withheld: Withheld = ""
    """Why it was not shown; empty when it was."""


@dataclass(frozen=True, slots=True)
class RecallResult:
    """Candidates best first. What was shown are those with `withheld == ""`, in that order."""

    query: str
    """The text that was used for retrieval, after cutting."""
    candidates: tuple[Candidate, ...] = ()
    truncated_at: int | None = None
    """The character limit, when the prompt was longer."""
    timed_out_ms: int | None = None
    """The limit that was passed, when recall was skipped."""
    query_words: int = 0
    """Pieces of the text that carry meaning: what lexical damping reckons with."""
    lexical_damp: float = 1.0
    """What was left of the lexical weight."""
    meta: dict[str, object] = field(default_factory=dict)

    @property
    def shown(self) -> tuple[Candidate, ...]:
        return tuple(c for c in self.candidates if not c.withheld)
