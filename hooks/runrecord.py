"""What stands in the record of a hook run, so that replay can tell and repeat it. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

from lorehooks.clients.adapters import HookEvent
from lorehooks.clients.backend import Recalled
from lorehooks.core.model import Candidate
from lorehooks.core.runs import Run, candidate_record
from lorehooks.hooks.hookanswer import HookAnswer
from lorehooks.hooks.promptblock import Asked

STARTUP_RECALL = "startup.recall"
"""The event of a recall that a session start makes: a run of its own, since its ids stand in the block like a prompt's."""
_MOST_INPUT = 2_000
"""Characters of a tool argument that are kept. Prompts are cut before recall (`core.secrets.masked_prompt`)."""


def runs_of(
    event: HookEvent, answer: HookAnswer, output: bytes, *, at: str, ms: float, backend: str, release: str
) -> list[Run]:
    """The records of one event: its own, then one for each recall that a session start made. `at` is when it was answered."""
    recalled = answer.recalled
    run = Run(
        at=at,
        client_type=event.client_type,
        event=event.kind,
        session_id=event.session_id,
        epoch=answer.epoch,
        query_id=recalled.query_id if recalled else None,
        reason=answer.reason,
        ms=round(ms, 3),
        input=input_record(event),
        recall=recall_record(backend, release, recalled, answer.asked, answer.candidates) if recalled else None,
        output=output,
    )
    startup = [
        replace(
            run,
            event=STARTUP_RECALL,
            query_id=each.recalled.query_id,
            reason="" if each.block else "no_match",
            ms=0.0,
            input={"prompt": each.text},
            recall=recall_record(backend, release, each.recalled, each.asked, each.candidates),
            output=b"",
        )
        for each in answer.startup
    ]
    return [run, *startup]


def input_record(event: HookEvent) -> dict[str, Any]:
    """The facts of an event that replay needs; what the host sent beyond them is not kept."""
    facts = {
        "native_event": event.native_event,
        "source": event.source,
        "prompt": event.prompt,
        "cwd": event.cwd,
        "agent_id": event.agent_id,
        "turn_id": event.turn_id,
        "tool_name": event.tool_name,
        "tool_input": _short(event.tool_input),
    }
    return {name: value for name, value in facts.items() if value}


def recall_record(
    backend: str, release: str, recalled: Recalled, asked: Asked, candidates: Sequence[Candidate]
) -> dict[str, Any]:
    """What makes a recall repeatable, and what came out of it."""
    return {
        "backend": backend,
        "release": release,
        "query": recalled.result.query,
        "truncated_at": recalled.result.truncated_at,
        "at": recalled.at,
        "memory_seq": recalled.memory_seq,
        "settings": dict(recalled.settings),
        "asked": asdict(asked),
        "candidates": [candidate_record(candidate) for candidate in candidates],
        "meta": recalled.result.meta,
    }


def _short(arguments: Mapping[str, object]) -> dict[str, object]:
    return {
        name: value if not isinstance(value, str) else value[:_MOST_INPUT]
        for name, value in arguments.items()
        if isinstance(value, str | int | float | bool | None)
    }
