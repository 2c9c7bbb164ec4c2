"""From what recall found to the text of a prompt's answer. Pure: the dispatcher and replay run the same lines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from lorehooks.clients.backend import Recalled
from lorehooks.clients.runtimes import Runtime
from lorehooks.core import blocks
from lorehooks.core.budget import clip
from lorehooks.core.escape import visible
from lorehooks.core.model import Candidate, RecallQuery

MOST_DISPLAYED = 20
_GAP = "\n\n"


@dataclass(frozen=True, slots=True)
class Asked:
    """What decides a prompt's block beside the prompt, the memory and its settings; it stands in the record."""

    project: str | None = None
    """Key of the session's project."""
    shown_before: tuple[str, ...] = ()
    """What this epoch showed already; empty unless memories are shown once per epoch."""
    language: str = "en"

    def query(self, prompt: str, settings: Mapping[str, Any]) -> RecallQuery:
        """The question to recall. Room is asked for what will be withheld as a repeat."""
        room = int(settings["recall.display.max_display_items"])
        wanted = min(room + len(self.shown_before), MOST_DISPLAYED) if self.shown_before else room
        return RecallQuery(prompt, self.project, max_display_items=wanted)


@dataclass(frozen=True, slots=True)
class PromptBlock:
    """The text for the model, empty when nothing is shown, and every candidate with its fate."""

    text: str
    candidates: tuple[Candidate, ...]

    @property
    def shown(self) -> tuple[Candidate, ...]:
        return tuple(candidate for candidate in self.candidates if not candidate.withheld)


def prompt_block(
    recalled: Recalled, asked: Asked, settings: Mapping[str, Any], runtime: Runtime, session_id: str | None
) -> PromptBlock:
    """The block of a prompt, within what the runtime takes, after the person's own preamble if there is one."""
    candidates = _without_repeats(recalled.result.candidates, asked, settings)
    block = recall_block(
        [candidate for candidate in candidates if not candidate.withheld],
        recalled,
        runtime,
        session_id=session_id,
        phase="prompt",
        language=asked.language,
    )
    candidates = within_budget(candidates, block)
    room = runtime.boot_budget.less(
        block, _GAP
    )  # a person's own text may be of any length, and the host's cap is for both
    preamble = clip(visible(settings["lifecycle.prompt_recall.preamble"]).strip(), room)
    return PromptBlock(f"{preamble}{_GAP}{block}" if block and preamble else block, candidates)


def recall_block(
    shown: Sequence[Candidate],
    recalled: Recalled,
    runtime: Runtime,
    *,
    session_id: str | None,
    phase: str,
    language: str,
) -> str:
    """One `<recall>` block as this runtime takes it. Only a prompt is told that it was read in part."""
    return blocks.render_recall(
        shown,
        session_id=session_id,
        query_id=recalled.query_id,
        phase=phase if runtime.names_phase else None,
        truncated_at=recalled.result.truncated_at if phase == "prompt" else None,
        language=language,
        budget=runtime.recall_budget,
    )


def _without_repeats(
    candidates: tuple[Candidate, ...], asked: Asked, settings: Mapping[str, Any]
) -> tuple[Candidate, ...]:
    """Withhold what the epoch has shown already, and hold the rest to the limit."""
    if not asked.shown_before:
        return candidates
    room = int(settings["recall.display.max_display_items"])
    kept = []
    for candidate in candidates:
        now = candidate
        if not candidate.withheld and candidate.uri in asked.shown_before:
            now = replace(candidate, withheld="repeat")
        elif not candidate.withheld and room == 0:
            now = replace(candidate, withheld="limit")
        elif not candidate.withheld:
            room -= 1
        kept.append(now)
    return tuple(kept)


def within_budget(candidates: tuple[Candidate, ...], block: str) -> tuple[Candidate, ...]:
    """Withhold what the block had no room for: it leaves out the last ones."""
    read = blocks.parse_recall(block)
    room = len(read.lines) if read else 0
    kept = []
    for candidate in candidates:
        if candidate.withheld:
            kept.append(candidate)
        elif room:
            room -= 1
            kept.append(candidate)
        else:
            kept.append(replace(candidate, withheld="budget"))
    return tuple(kept)
