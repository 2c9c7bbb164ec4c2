"""Bringing an archive into the memory: `lore import` sends what it has read, and the plan or the outcome comes back."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Literal

from lorehooks.clients.console import Console
from lorehooks.core.archive import archive_of, loads
from lorehooks.core.merge import Kind, MergePlan, Wishes
from lorehooks.hooks.api.fields import Flag
from lorehooks.hooks.api.operation import Answer, Call, Operation, Query, operation
from lorehooks.hooks.api.person import require_person

operations: list[Operation] = []


class ImportQuery(Query):
    """The body is `{nodes, events, settings}`, read off the event loop. Without `confirm`, only the plan."""

    keep: Literal["ours", "theirs", "newer"] = "ours"
    settings: Flag = False
    allow_secret: Flag = False
    confirm: Flag = False


class ImportEntry(Answer):
    """One memory of the archive: where it stands, and whether the archive's state is what counts."""

    uri: str
    kind: Kind
    taken: bool
    note: str


class ImportSetting(Answer):
    key: str
    kind: Kind
    taken: bool


class ImportAnswer(Answer):
    """`secrets` name what looks like a key; an import with any is refused unless it is allowed."""

    success: bool
    """Whether it was done; false for a plan."""
    entries: list[ImportEntry]
    settings: list[ImportSetting]
    parents: list[str]
    secrets: list[str]
    notes: list[str]
    counts: dict[str, int]
    events: int


@operation(operations, "POST", "/maintenance/import", "Bring an archive into the memory, all of it or nothing")
async def import_archive(call: Call, query: ImportQuery) -> ImportAnswer:
    require_person(call)
    raw = await call.request.body()
    archive = await asyncio.to_thread(lambda: archive_of(loads(raw, "the body")))
    wishes = Wishes(query.keep, query.settings, query.allow_secret)
    console = Console(call.parts.backend)
    if not query.confirm:
        return _answer(await console.preview_import(archive, wishes), done=False)
    return _answer(await console.import_archive(archive, wishes), done=True)


def _answer(plan: MergePlan, *, done: bool) -> ImportAnswer:
    return ImportAnswer(
        success=done,
        entries=[ImportEntry(uri=one.uri, kind=one.kind, taken=one.taken, note=one.note) for one in plan.entries],
        settings=[ImportSetting(key=one.key, kind=one.kind, taken=one.taken) for one in plan.settings],
        parents=_texts(plan.parents),
        secrets=_texts(plan.secrets),
        notes=_texts(plan.notes),
        counts=plan.counts,
        events=len(plan.drafts),
    )


def _texts(found: Sequence[str]) -> list[str]:
    return list(found)
