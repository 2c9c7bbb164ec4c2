"""Which memory holds which key, and how strongly: an inverted index that takes single puts and removals.

A posting is one 32-bit number: 24 bits slot, 4 bits strength as a term (glossary, path), 4 bits strength as text
(disclosure, content). Strengths run from 0 to 15.
"""

from __future__ import annotations

from array import array
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

FULL = 15
MAX_SLOTS = 1 << 24

_NONE = np.zeros(0, dtype=np.uint32)


class Postings:
    """Keys to slots. Slots are small numbers chosen by the caller."""

    def __init__(self) -> None:
        self._number: dict[str, int] = {}
        self._keys: list[str] = []
        self._lists: list[array[int]] = []
        self._of_slot: dict[int, array[int]] = {}

    def put(self, slot: int, strengths: Mapping[str, tuple[int, int]]) -> None:
        """Add a slot with its keys, each with (strength as term, strength as text). The slot must be empty."""
        numbers = array("I")
        for key, (as_term, as_text) in strengths.items():
            number = self._number.get(key)
            if number is None:
                number = self._number[key] = len(self._lists)
                self._keys.append(key)
                self._lists.append(array("I"))
            self._lists[number].append(slot << 8 | as_term << 4 | as_text)
            numbers.append(number)
        self._of_slot[slot] = numbers

    def remove(self, slot: int) -> None:
        """Take a slot out of all its lists. The order inside a list carries no meaning, so the last one fills the gap."""
        for number in self._of_slot.pop(slot, ()):
            entries = self._lists[number]
            slots = np.frombuffer(entries, dtype=np.uint32) >> 8
            at = int(np.flatnonzero(slots == slot)[0])
            del slots  # an array that is being looked at cannot change its size
            entries[at] = entries[-1]
            entries.pop()

    def get(self, key: str) -> NDArray[np.uint32]:
        """Packed postings of a key; a copy, so that the list may change meanwhile."""
        number = self._number.get(key)
        return _NONE if number is None else np.array(self._lists[number], dtype=np.uint32)

    def count(self, key: str) -> int:
        """How many slots hold the key."""
        number = self._number.get(key)
        return 0 if number is None else len(self._lists[number])

    def keys_of(self, slot: int) -> list[str]:
        """All keys of a slot."""
        return [self._keys[number] for number in self._of_slot.get(slot, ())]
