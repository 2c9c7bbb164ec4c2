"""The shapes of a Lore server's answers (`lore-contract.md` 1), checked before anything of them is used.

Fields that the public server leaves out or sets to null in some cases have a default; what every server sends is required,
so that another program's JSON is not taken for an empty memory. Fields beyond these are ignored.
"""

from __future__ import annotations

from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, TypeAdapter, ValidationError

from lorehooks.clients.errors import BadAnswerError
from lorehooks.clients.transport import Reply, decode_json
from lorehooks.core.model import DEFAULT_PRIORITY

Text = Annotated[str, BeforeValidator(lambda value: "" if value is None else value)]
"""Text where null means none."""
Words = Annotated[tuple[str, ...], BeforeValidator(lambda value: () if value is None else value)]
Shape = TypeVar("Shape")


class Answer(BaseModel):
    """What all shapes share."""

    model_config = ConfigDict(frozen=True, extra="ignore", protected_namespaces=())


class Health(Answer):
    """`GET /health`. `status` is `ok` or `degraded`."""

    model_config = ConfigDict(frozen=True, extra="allow", protected_namespaces=())
    status: str
    database: Text = ""
    version: Text = ""


class Guidance(Answer):
    guidance: str


class BootMemory(Answer):
    uri: str
    content: Text = ""
    priority: int = 0
    disclosure: Text = ""
    node_uuid: Text = ""


class RecentMemory(Answer):
    uri: str
    priority: int = DEFAULT_PRIORITY
    disclosure: Text = ""
    created_at: Text = ""


class Boot(Answer):
    """`GET /browse/boot`. `core_memories` are the boot nodes that exist, `recent_memories` may name them again."""

    core_memories: tuple[BootMemory, ...]
    recent_memories: tuple[RecentMemory, ...]


class NodeFields(Answer):
    uri: str
    content: Text = ""
    priority: int = 0
    disclosure: Text = ""
    node_uuid: Text = ""
    aliases: Words = ()
    glossary_keywords: Words = ()
    is_virtual: bool = False
    created_at: Text = ""
    last_updated_at: Text = ""
    last_updated_client_type: str | None = None
    last_updated_source: str | None = None


class Child(Answer):
    uri: str
    priority: int = DEFAULT_PRIORITY
    disclosure: Text = ""
    content_snippet: Text = ""
    approx_children_count: int = 0


class NodePage(Answer):
    """`GET /browse/node`."""

    node: NodeFields
    children: tuple[Child, ...] = ()


class Hit(Answer):
    uri: str
    score: float
    priority: int = DEFAULT_PRIORITY
    cues: Words = ()
    matched_on: Words = ()
    snippet: Text = ""
    content: str | None = None


class SearchPage(Answer):
    """`GET|POST /browse/search`."""

    results: tuple[Hit, ...]


class Domain(Answer):
    domain: str
    root_count: int


class Written(Answer):
    """The answer of every write. `proposal` is set when the write waits for a person's yes."""

    uri: str
    success: bool
    node_uuid: Text = ""
    warnings: Words = ()
    policy_warnings: Words = ()
    proposal: int | None = None


class Item(Answer):
    """A recalled candidate; a notice has neither score nor signals."""

    uri: str
    score: float | None
    node_uuid: Text = ""
    exact_score: float = 0
    glossary_semantic_score: float = 0
    dense_score: float = 0
    lexical_score: float = 0
    score_breakdown: dict[str, float] = Field(default_factory=dict)
    cues: Words = ()
    matched_on: Words = ()
    views: Words = ()
    priority: int = DEFAULT_PRIORITY
    memory_age_days: float | None = None
    boot: bool = False
    withheld: Text = ""


class EventLog(Answer):
    query_id: Text = ""


class RecallPage(Answer):
    """`POST /browse/recall`. `items` are what is shown, notices first; `candidates` everything that was considered."""

    candidates: tuple[Item, ...]
    items: tuple[Item, ...]
    query: Text = ""
    retrieval_meta: dict[str, Any] = Field(default_factory=dict)
    event_log: EventLog = EventLog()


class Usage(Answer):
    updated_count: int


class HistoryEvent(Answer):
    """One event of a memory. Snapshots hold content, priority, disclosure and, where it is known, the glossary."""

    id: int
    event_type: str
    created_at: str
    source: Text = ""
    client_type: str | None = None
    session_id: str | None = None
    before_snapshot: dict[str, Any] | None = None
    after_snapshot: dict[str, Any] | None = None
    diffs: tuple[dict[str, Any], ...] = ()
    rollback_supported: bool = False
    is_rollback: bool = False
    summary: Text = ""


class History(Answer):
    """`GET /browse/history`, newest first."""

    uri: str
    events: tuple[HistoryEvent, ...]
    node_uuid: Text = ""


class SettingsPage(Answer):
    """`GET /settings`. `sources` says for each key whether it is set (`db`) or the default."""

    values: dict[str, Any]
    sources: dict[str, str] = Field(default_factory=dict)
    defaults: dict[str, Any] = Field(default_factory=dict)
    definitions: tuple[dict[str, Any], ...] = Field(default=(), alias="schema")


class Tried(Answer):
    """`POST /settings/test`: which model answered, and how."""

    section: str
    model: str
    detail: str = ""


class Proposal(Answer):
    """An agent's write to a boot node that waits for a person's yes. `before` and `after` are states of the node."""

    number: int
    uri: str
    before: dict[str, Any] = Field(default_factory=dict)
    after: dict[str, Any] = Field(default_factory=dict)
    at: Text = ""
    client_type: str | None = None
    source: Text = ""


class Pending(Answer):
    """`GET /pending`, oldest first."""

    proposals: tuple[Proposal, ...]


def checked(shape: type[Shape], reply: Reply, label: str) -> Shape:
    """The answer in that shape. Raises BadAnswerError that names the first field that does not fit."""
    try:
        return TypeAdapter(shape).validate_python(decode_json(reply, label))
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(str(part) for part in first["loc"]) or "the answer"
        raise BadAnswerError(
            f"{label} answers in another shape than a Lore server ({place}: {first['msg']})",
            hint="look whether the address is that of a Lore server, and whether its version is a current one",
        ) from None
