"""How the models behind endpoints do, as the running service tells it: for `lore status` and `lore doctor`."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from lorehooks.core.errors import LoreError
from lorehooks.core.home import Home
from lorehooks.hooks.localhttp import local_answer

_SECONDS = 3.0


@dataclass(frozen=True, slots=True)
class ModelStatus:
    """One endpoint in use. `section` is `view_llm` or `embedding`, `waiting` how many memories or texts it has yet to do."""

    section: str
    text: str
    waiting: int
    problem: str

    @property
    def label(self) -> str:
        return "Views" if self.section == "view_llm" else "Vectors"


def models_of(home: Home) -> tuple[ModelStatus, ...]:
    """The endpoints that the running service uses; none when it does not answer."""
    try:
        with local_answer(home, "GET", "/hooks/v1/state", seconds=_SECONDS) as answer:
            state = json.loads(answer.read())
    except (LoreError, ValueError):
        return ()
    return tuple(told(state)) if isinstance(state, dict) else ()


def told(state: Mapping[str, Any]) -> Iterator[ModelStatus]:
    """The same from the service's state. An older service says nothing of models."""
    memory = state.get("memory") or {}
    views, vectors = memory.get("views") or {}, memory.get("embedding") or {}
    if views.get("model") or views.get("problem"):
        count, unusable = views.get("waiting", 0), views.get("unusable", 0)
        text = f"{views.get('model') or 'no model'}, {_count(count, 'memory waits', 'memories wait')}"
        if unusable:
            text += f", {_count(unusable, 'has', 'have')} none that can be used"
        yield ModelStatus("view_llm", text, count, _problem(views))
    if vectors.get("provider") == "openai_compatible":
        count, refused = vectors.get("waiting", 0), vectors.get("refused", 0)
        text = f"{vectors.get('profile') or 'none yet'}, {_count(count, 'text waits', 'texts wait')}"
        if refused:
            text += f", {refused} refused"
        paused = "" if not vectors.get("prompts_paused") else "prompts go without it after repeated failures"
        yield ModelStatus("embedding", text, count, _problem(vectors) or paused)


def _problem(state: Mapping[str, Any]) -> str:
    problem, seconds = state.get("problem") or "", state.get("retry_in")
    return f"{problem}; tried again in {seconds} s" if problem and seconds is not None else str(problem)


def _count(number: int, one: str, many: str) -> str:
    return f"{number} {one if number == 1 else many}"
