"""Fitting text into what a host takes, in the host's own unit, without ever cutting through a character."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

Unit = Literal["utf16", "bytes", "chars"]
"""UTF-16 code units (JavaScript's `length`), UTF-8 bytes, or code points."""

_JOINER = "\u200d"


@dataclass(frozen=True, slots=True)
class Budget:
    """At most `limit` of `unit`."""

    limit: int
    unit: Unit = "chars"

    def holds(self, text: str) -> bool:
        # No unit counts less than one for a code point, so a huge text needs no counting.
        return len(text) <= self.limit and measure(text, self.unit) <= self.limit

    def less(self, *texts: str) -> Budget:
        """What is left beside these texts; may be negative, and then holds nothing."""
        return Budget(self.limit - sum(measure(text, self.unit) for text in texts), self.unit)


def measure(text: str, unit: Unit) -> int:
    """How long a text is to a host that counts in that unit."""
    if unit == "chars":
        return len(text)
    if unit == "bytes":
        return len(text.encode("utf-8", "surrogatepass"))
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def clip(text: str, budget: Budget) -> str:
    """The longest beginning that fits, ending at a line or word where one is near, and never inside a character.

    A character is what a reader sees as one: combining marks, variation selectors and joined emoji stay with their base.
    """
    if budget.limit <= 0:
        return ""
    if budget.holds(text):
        return text
    low, high = 0, min(len(text), budget.limit)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if budget.holds(text[:middle]) else (low, middle - 1)
    end = low
    while end and _continues(text, end):
        end -= 1
    for mark in ("\n", " "):
        near = text.rfind(mark, end - end // 5, end)
        if near > 0:
            return text[:near].rstrip()
    return text[:end]


def fit(parts: Sequence[str], budget: Budget, note: Callable[[int], str], separator: str = "\n") -> str:
    """As many leading parts as fit, whole; when some do not, `note(how many)` stands in their place and fits too.

    Empty when not even the note fits: half a sentence about missing memories helps nobody.
    """
    whole = separator.join(parts)
    if budget.holds(whole):
        return whole
    for kept in range(len(parts) - 1, -1, -1):
        text = separator.join([*parts[:kept], note(len(parts) - kept)])
        if budget.holds(text):
            return text
    return ""


def shares(needs: Sequence[int], total: int) -> list[int]:
    """Divide `total` so that short ones get all they need and long ones get equal parts of the rest."""
    given = [0] * len(needs)
    rest = max(total, 0)
    waiting = sorted(range(len(needs)), key=lambda index: needs[index])
    while waiting:
        index = waiting.pop(0)
        given[index] = min(needs[index], rest // (len(waiting) + 1))
        rest -= given[index]
    return given


def _continues(text: str, end: int) -> bool:
    """Whether cutting at `end` would tear a character apart."""
    after = text[end] if end < len(text) else ""
    return bool(after) and (
        unicodedata.combining(after) != 0
        or unicodedata.category(after) in ("Mn", "Me", "Mc")
        or after in (_JOINER, "\u200c")
        or text[end - 1] == _JOINER
        or "\U0001f3fb" <= after <= "\U0001f3ff"
    )
