"""Types and small shapes that several routes share."""

from __future__ import annotations

from decimal import ROUND_HALF_UP, Decimal
from typing import Annotated

from pydantic import BeforeValidator, Field

from lorehooks.core.events import Event, State
from lorehooks.core.history import ROLLBACK_EVENTS, is_rollback
from lorehooks.core.model import WriteResult
from lorehooks.hooks.api.operation import Answer

MAX_INTEGER = 2**53 - 1
"""What JavaScript clients can read back exactly."""


Flag = Annotated[bool, BeforeValidator(lambda value: value in (True, "1", "true", "True"))]
"""True for `1` and `true`, false for everything else, as clients write it in an address."""

Count = Annotated[int, Field(ge=0, le=MAX_INTEGER)]
"""A number of things; the handler holds it to what it serves."""

Keywords = Annotated[list[str], Field(max_length=1000)]


class Snapshot(Answer):
    """The state of a memory at an event."""

    uri: str
    content: str
    priority: int
    disclosure: str | None
    glossary_keywords: list[str]


class Diff(Answer):
    """One field that an event changed. `kind` says how to show it."""

    field: str
    kind: str
    before: str | int | list[str] | None
    after: str | int | list[str] | None


class EventAnswer(Answer):
    """One event of a memory's history (`lore-contract.md` 1.10)."""

    id: int
    event_type: str
    node_uri: str | None
    node_uuid: str | None
    source: str
    session_id: str | None
    client_type: str | None
    before_snapshot: Snapshot | None
    after_snapshot: Snapshot | None
    details: dict[str, object]
    created_at: str
    diffs: list[Diff]
    rollback_supported: bool
    is_rollback: bool
    summary: str


def event_answer(event: Event) -> EventAnswer:
    """An event of the log as the API shows it."""
    before, after = event.data.get("before"), event.data.get("after")
    details = {name: value for name, value in event.data.items() if name not in ("before", "after")}
    if event.type == "move" and before and after:
        details |= {"operation": "move", "old_uri": before["uri"], "new_uri": after["uri"]}
    if event.type == "update" and before and after:
        details |= {f"{name}_changed": before[name] != after[name] for name in ("content", "priority", "disclosure")}
    if event.client_type:
        details["client_type"] = event.client_type
    return EventAnswer(
        id=event.seq,
        event_type=event.type,
        node_uri=event.uri,
        node_uuid=event.node_uuid,
        source=event.source,
        session_id=event.session_id,
        client_type=event.client_type,
        before_snapshot=snapshot(before) if before else None,
        after_snapshot=snapshot(after) if after else None,
        details=details,
        created_at=event.at,
        diffs=_diffs(event.type, before, after),
        rollback_supported=event.type in ROLLBACK_EVENTS,
        is_rollback=is_rollback(event),
        summary="rollback" if is_rollback(event) else event.type.replace("_", " "),
    )


def snapshot(state: State) -> Snapshot:
    """The state of a memory as the API shows it."""
    return Snapshot(
        uri=state["uri"],
        content=state["content"],
        priority=state["priority"],
        disclosure=state["disclosure"] or None,
        glossary_keywords=state["glossary"],
    )


_KINDS = (("uri", "value"), ("content", "text"), ("priority", "value"), ("disclosure", "text"))


def _diffs(event_type: str, before: State | None, after: State | None) -> list[Diff]:
    found = []
    for name, kind in _KINDS:
        old, new = (before or {}).get(name), (after or {}).get(name)
        if (old or None) != (new or None) and (name != "uri" or event_type == "move"):
            found.append(Diff(field=name, kind=kind, before=_shown(old), after=_shown(new)))
    old_words, new_words = (before or {}).get("glossary", []), (after or {}).get("glossary", [])
    if event_type == "glossary_add":
        found += [_word("keyword_add", None, word) for word in new_words if word not in old_words]
    elif event_type == "glossary_remove":
        found += [_word("keyword_remove", word, None) for word in old_words if word not in new_words]
    elif old_words != new_words:
        found.append(Diff(field="glossary_keywords", kind="keyword_list", before=old_words, after=new_words))
    return found


def _shown(value: str | int | None) -> str | int | None:
    return None if value == "" else value


def _word(kind: str, before: str | None, after: str | None) -> Diff:
    return Diff(field="glossary_keywords", kind=kind, before=before, after=after)


def warnings_of(result: WriteResult) -> list[str]:
    """What the writer should know, the wait for a person's yes first."""
    if result.proposal is None:
        return list(result.warnings)
    wait = f"Not changed yet: {result.uri} waits for the user's yes (proposal {result.proposal}, lore pending list)"
    return [wait, *result.warnings]


def display_score(score: float, precision: int = 2) -> float:
    """A score as it is shown: rounded half up like JavaScript's `toFixed` (`lore-contract.md` 4.4)."""
    return float(Decimal(score).quantize(Decimal(1).scaleb(-precision), ROUND_HALF_UP))
