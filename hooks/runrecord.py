"""What stands in the record of a hook run, so that replay can tell and repeat it. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from lorehooks.clients.adapters import HookEvent
from lorehooks.clients.backend import Recalled
from lorehooks.core.model import Candidate
from lorehooks.core.runs import candidate_record
from lorehooks.hooks.promptblock import Asked

STARTUP_RECALL = "startup.recall"
"""The event of a recall that a session start makes: a run of its own, since its ids stand in the block like a prompt's."""
_MOST_INPUT = 2_000
"""Characters of a tool argument that are kept. Prompts are cut before recall (`core.secrets.masked_prompt`)."""


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
