"""Which memory holds which key, and how strongly: an inverted index that takes single puts and removals.

A posting is one 32-bit number: 24 bits slot, 4 bits strength as a term (glossary, path), 4 bits strength as text
(disclosure, content). Strengths run from 0 to 15. Most keys belong to one memory, and then no list is made.
"""

from __future__ import annotations

from array import array
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

FULL = 15
MAX_SLOTS = 1 << 24
_LONG = 32

_NONE = np.zeros(0, dtype=np.uint32)


class Postings:
    """Keys to slots. Slots are small numbers chosen by the caller."""

    def __init__(self) -> None:
        self._lists: dict[str, int | array[int]] = {}

    def __len__(self) -> int:
        """Keys of all slots together."""
        return sum(1 if isinstance(known, int) else len(known) for known in self._lists.values())

    def put(self, slot: int, strengths: Mapping[str, int]) -> None:
        """Add a slot with its keys and their strengths, each `term << 4 | text`. The slot must not hold them yet."""
        lists = self._lists
        high = slot << 8
        for key, strength in strengths.items():
            known = lists.get(key)
            if known is None:
                lists[key] = high | strength
            elif isinstance(known, int):
                lists[key] = array("I", (known, high | strength))
            else:
                known.append(high | strength)

    def remove(self, slot: int, strengths: Mapping[str, int]) -> None:
        """Take a slot out of the lists of these keys. The order inside a list carries no meaning."""
        for key, strength in strengths.items():
            known = self._lists[key]
            if isinstance(known, int):
                del self._lists[key]
                continue
            _take_out(known, slot << 8 | strength)
            if len(known) == 1:
                self._lists[key] = known[0]

    def get(self, key: str) -> NDArray[np.uint32]:
        """Packed postings of a key; a copy, so that the list may change meanwhile."""
        known = self._lists.get(key)
        if known is None:
            return _NONE
        return np.array([known] if isinstance(known, int) else known, dtype=np.uint32)

    def count(self, key: str) -> int:
        """How many slots hold the key."""
        known = self._lists.get(key)
        return 0 if known is None else 1 if isinstance(known, int) else len(known)


def _take_out(known: array[int], value: int) -> None:
    """Remove a value that is there. Long lists are searched as numbers, not as objects, and the last one fills the gap."""
    if len(known) < _LONG:
        known.remove(value)
        return
    at = int(np.argmax(np.frombuffer(known, dtype=np.uint32) == value))
    if known[at] != value:
        raise ValueError(f"{value} is not in the list")
    known[at] = known[-1]
    known.pop()
