"""How a person reads the records: a session as a timeline, a run with what it sent, and why each memory was shown or not."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, fields
from typing import Any

from lorehooks.core.blocks import score_text
from lorehooks.core.clock import from_iso
from lorehooks.core.model import Candidate, Signals
from lorehooks.core.settings import Settings
from lorehooks.hooks.records import RunRecord
from lorehooks.hooks.runrecord import STARTUP_RECALL

EVENTS = {
    "session.start": "session start",
    "prompt.submit": "prompt",
    "tool.before": "tool call",
    "subagent.start": "subagent start",
    "turn.end": "end of turn",
    "session.end": "session end",
    "none": "no question",
    "recall": "recall by a client",
    STARTUP_RECALL: "startup recall",
}
REASONS = {
    "no_match": "no memory reached the display threshold",
    "unchanged": "the session still has the same boot block",
    "blank": "the prompt was blank",
    "slash_command": "a slash command",
    "synthetic": "a message that the host wrote, no person's prompt",
    "subagent": "a subagent's task; the main prompt had its recall",
    "slow_recall": "recall was too slow and was skipped",
    "timeout": "the answer was not ready in time",
    "switched_off": "switched off by a setting",
    "ids_filled": "filled in the ids of the recall that showed this memory",
    "ids_passed": "the model passed the ids itself",
    "not_recalled": "no recall of this session showed this memory",
    "not_ours": "no call of lore_get_node",
    "other_tool": "no call of lore_get_node",
    "not_an_object": "the host sent no JSON object",
    "unknown_event": "an event we do nothing with",
    "noted": "noted; nothing is sent on this event",
}
SIGNALS = {
    "exact": "words and paths",
    "glossary_semantic": "terms by meaning",
    "dense": "views by meaning",
    "lexical": "full text",
    "view": "view matched",
    "priority": "priority",
    "multi_view": "several views",
    "recency": "recency",
}
assert set(SIGNALS) == {field.name for field in fields(Signals)}  # noqa: S101  (a new signal needs a name for people)


def as_json(run: RunRecord) -> dict[str, Any]:
    """A run for `--json`: the fields of the record, and the sent bytes as text."""
    record = asdict(run)
    record["sent"] = record.pop("output").decode("utf-8", "replace")
    return record


def reason_text(reason: str) -> str:
    """Why nothing was sent, in words."""
    return REASONS.get(reason, reason.replace("_", " "))


def clock(at: str) -> str:
    """A moment as a clock on the wall here shows it."""
    return from_iso(at).astimezone().strftime("%H:%M:%S")


def sent_text(output: bytes) -> str:
    """The text that an answer put before the model: the longest one in the host's JSON."""
    text = output.decode("utf-8", "replace")
    if not text:
        return ""
    try:
        found = list(_texts(json.loads(text)))
    except ValueError:
        return text
    return max(found, key=len, default="")


def timeline(runs: Sequence[RunRecord]) -> Iterator[str]:
    """A session, run by run: what was asked, shown, withheld and opened."""
    epoch = None
    for run in runs:
        if run.epoch is not None and run.epoch != epoch:
            if epoch is not None:
                yield f"--- epoch {run.epoch}: what was sent before is out of the model's sight"
            epoch = run.epoch
        asked = run.prompt or run.input.get("source") or run.input.get("tool_input", {}).get("uri") or ""
        yield f"{run.id:>5}  {clock(run.at)}  {EVENTS.get(run.event, run.event)}: {' '.join(str(asked).split())}".rstrip(
            ": "
        )
        for line in (*_sent(run), *_opened(run)):
            yield f"       {line}"


def explanation(run: RunRecord) -> Iterator[str]:
    """Each memory that recall considered: its score, the signals it is made of, what matched, and why it was withheld."""
    recall = run.recall
    if recall is None:
        yield (
            f"This run asked memory nothing: {reason_text(run.reason)}."
            if run.reason
            else "A boot block: no recall is scored."
        )
        return
    settings = Settings(recall["settings"])
    yield f"read      {recall['query']!r}" + (
        f", the first {recall['truncated_at']} characters" if recall["truncated_at"] else ""
    )
    yield f"shown     from {settings['recall.display.min_display_score']:.2f} up, at most {settings['recall.display.max_display_items']}"
    changed = ", ".join(f"{key} = {value}" for key, value in sorted(recall["settings"].items()))
    if changed:
        yield f"settings  {changed}"
    yield from explain_candidates(run.candidates, settings)


def explain_candidates(candidates: Sequence[Candidate], settings: Settings) -> Iterator[str]:
    """The part about the memories, also for a recall that was never recorded."""
    if not candidates:
        yield "No memory has a word, a term or a meaning in common with this prompt."
    for candidate in candidates:
        yield ""
        yield f"{score_text(candidate.score)}  {candidate.uri}  {fate(candidate, settings)}"
        for name, label in SIGNALS.items():
            weighted, raw = getattr(candidate.weighted, name), getattr(candidate.raw, name)
            if weighted or raw:
                strength = "" if weighted == raw else f" ({raw:.4f} before its weight)"
                yield f"      {weighted:.4f}  {label}{strength}"
        if candidate.cues:
            yield f"      matched: {' · '.join(candidate.cues)}"


def fate(candidate: Candidate, settings: Settings) -> str:
    """Whether a memory was shown, or why not."""
    match candidate.withheld:
        case "":
            return "shown"
        case "score":
            return f"withheld: below {settings['recall.display.min_display_score']:.2f}"
        case "limit":
            return f"withheld: {settings['recall.display.max_display_items']} are shown already"
        case "boot":
            return "withheld: a boot node, which the session has from its start"
        case "repeat":
            return "withheld: this epoch has seen it"
        case "budget":
            return "withheld: no room in what this runtime takes"
        case other:
            return f"withheld: {other}"


def _sent(run: RunRecord) -> Iterator[str]:
    if run.shown:
        for candidate in run.shown:
            cues = f"  ({' · '.join(candidate.cues)})" if candidate.cues else ""
            yield f"shown     {score_text(candidate.score)}  {candidate.uri}{cues}"
    elif not run.output:
        yield f"nothing   {reason_text(run.reason)}" if run.reason else "nothing   sent"
    elif run.event == "prompt.submit":
        yield f"sent      {' '.join(sent_text(run.output).split())}"
    elif run.reason:
        yield f"answered  {reason_text(run.reason)}"
    else:
        yield f"sent      a boot block of {len(run.output):,} bytes"
    withheld = [candidate for candidate in run.candidates if candidate.withheld]
    if withheld:
        best = withheld[0]
        yield f"withheld  {len(withheld)}, the best {score_text(best.score)}  {best.uri}"
    if run.ms:
        yield f"took      {run.ms:.1f} ms"


def _opened(run: RunRecord) -> Iterator[str]:
    ways = {"passed": "ids passed", "filled": "ids filled in", "none": "without ids"}
    for line in run.opened:
        yield f"opened    {line.uri}  {ways.get(line.how, line.how)}, {clock(line.at)}"


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from _texts(item)
    elif isinstance(value, list):
        for item in value:
            yield from _texts(item)
