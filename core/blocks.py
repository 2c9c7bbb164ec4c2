"""The `<recall>` block: how recalled memories stand before a model (seed "How recall works"), and how to read one back."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal

from lorehooks.core.budget import Budget, clip, fit
from lorehooks.core.escape import attribute, inline, unescape, visible
from lorehooks.core.model import Candidate

MAX_CUES = 3
MAX_CUE = 60
"""Code points of one cue; a cue is a word to recognise, and a stored term may be of any length."""
MAX_URI = 500
MAX_ID = 200

_NOTES = {
    "en": {
        "truncated": "Note: recall read only the first {limit} characters of this prompt. lore_search finds more.",
        "timeout": "Lore: recall took longer than {seconds} s and was skipped for this prompt. lore_search still works.",
        "left_out": "Note: {count} more {memories} left out to fit. lore_search finds them.",
    },
    "zh": {
        "truncated": "注意：召回只读取了这条提示词的前 {limit} 个字符。需要更多请用 lore_search。",
        "timeout": "Lore：召回超过 {seconds} 秒，这条提示词已跳过召回。仍可使用 lore_search。",
        "left_out": "注意：为控制长度，另有 {count} 条记忆未列出。可用 lore_search 查找。",
    },
}

_BLOCK = re.compile(r"<recall(?P<attributes>(?: [a-z_]+=\"[^\"<>]*\")*)>\n(?P<body>.*?)\n</recall>", re.DOTALL)
_ATTRIBUTE = re.compile(r" ([a-z_]+)=\"([^\"<>]*)\"")
_LINE = re.compile(r"(?P<score>-?\d+\.\d\d) \| (?P<uri>[^|]+?)(?: \| (?P<cues>.*))?")


@dataclass(frozen=True, slots=True)
class RecallLine:
    """One memory of a block, unescaped. `score` is as printed."""

    score: str
    uri: str
    cues: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RecallBlock:
    """A `<recall>` block as it was read. Ids are empty where the tag had none."""

    session_id: str
    query_id: str
    phase: str
    lines: tuple[RecallLine, ...]
    notes: tuple[str, ...] = ()

    @property
    def uris(self) -> tuple[str, ...]:
        return tuple(line.uri for line in self.lines)


def render_recall(
    shown: Sequence[Candidate],
    *,
    session_id: str | None,
    query_id: str | None,
    phase: str | None = None,
    truncated_at: int | None = None,
    timed_out_ms: int | None = None,
    language: str = "en",
    budget: Budget | None = None,
) -> str:
    """The block for what recall shows, or the one-line note of a recall that was too slow, or nothing.

    `truncated_at` adds a last line, and only to a block that shows a memory. With a `budget` that does not hold all lines,
    the least relevant are left out and a line says how many; `parse_recall(...).uris` then tells what was shown.
    """
    notes = _NOTES.get(language, _NOTES["en"])
    if timed_out_ms is not None:
        note = notes["timeout"].format(seconds=seconds_of(timed_out_ms))
        return note if budget is None or budget.holds(note) else ""
    if not shown:
        return ""
    values = (("session_id", session_id), ("query_id", query_id), ("phase", phase))
    named = "".join(f' {name}="{text}"' for name, value in values if value and (text := attribute(value[:MAX_ID])))
    head, tail = f"<recall{named}>\n", "\n</recall>"
    if truncated_at is not None:
        tail = "\n" + notes["truncated"].format(limit=truncated_at) + tail
    lines = [_line(candidate) for candidate in shown]
    if budget is None:
        return head + "\n".join(lines) + tail

    def left_out(count: int) -> str:
        return notes["left_out"].format(count=count, memories="memory was" if count == 1 else "memories were")

    body = fit(lines, budget.less(head, tail), left_out)
    # A block of nothing but notes would say that there is something while showing nothing.
    return head + body + tail if body and _LINE.fullmatch(body.partition("\n")[0]) else ""


def parse_recall(text: str) -> RecallBlock | None:
    """The first `<recall>` block in a text, or None. Lines that are no memory are notes."""
    found = _BLOCK.search(text)
    if found is None:
        return None
    named = {name: unescape(value) for name, value in _ATTRIBUTE.findall(found["attributes"])}
    lines: list[RecallLine] = []
    notes: list[str] = []
    for row in found["body"].split("\n"):
        memory = _LINE.fullmatch(row)
        if memory is None:
            notes.append(row)
            continue
        cues = tuple(unescape(cue) for cue in memory["cues"].split(" · ")) if memory["cues"] else ()
        lines.append(RecallLine(memory["score"], unescape(memory["uri"]), cues))
    return RecallBlock(
        session_id=named.get("session_id", ""),
        query_id=named.get("query_id", ""),
        phase=named.get("phase", ""),
        lines=tuple(lines),
        notes=tuple(notes),
    )


def score_text(score: float) -> str:
    """Two decimals, half up on the value as it is held, like JavaScript's `toFixed(2)`."""
    if not math.isfinite(score):
        return "0.00"
    return str(Decimal(score or 0.0).quantize(Decimal("0.01"), ROUND_HALF_UP))


def seconds_of(milliseconds: int) -> int:
    """Whole seconds for a note: half up, at least one."""
    return max(1, (milliseconds + 500) // 1000)


def _line(candidate: Candidate) -> str:
    fields = [score_text(candidate.score), inline(candidate.uri[:MAX_URI], separator="|")]
    cues = [text for cue in candidate.cues if (text := _cue(cue))][:MAX_CUES]
    if cues:
        fields.append(" · ".join(cues))
    return " | ".join(fields)


def _cue(cue: str) -> str:
    words = " ".join(visible(cue[: 20 * MAX_CUE]).split())
    short = clip(words, Budget(MAX_CUE))
    return inline(short if short == words else f"{short}…", separator="·")
