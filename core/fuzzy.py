"""Words that a mistyped or shortened word may have meant: one edit away, or longer with the same beginning.

Two words are one edit apart when they agree after at most one letter is taken out of each (symmetric deletion);
that covers a letter too many, too few, wrong or swapped.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import Counter

MIN_LENGTH = 4
_MAX_PREFIXED = 4


class Spellings:
    """The words of glossaries and paths, with a count of how many memories use each."""

    def __init__(self) -> None:
        self._uses: Counter[str] = Counter()
        self._by_deletion: dict[str, list[str]] = {}
        self._sorted: list[str] = []

    def add(self, word: str) -> None:
        """Count a word in. Short words and words with other characters than letters and digits are left alone."""
        if not _fits(word):
            return
        self._uses[word] += 1
        if self._uses[word] == 1:
            insort(self._sorted, word)
            for variant in _deletions(word):
                self._by_deletion.setdefault(variant, []).append(word)

    def discard(self, word: str) -> None:
        """Count a word out."""
        if word not in self._uses:
            return
        self._uses[word] -= 1
        if self._uses[word]:
            return
        del self._uses[word]
        del self._sorted[bisect_left(self._sorted, word)]
        for variant in _deletions(word):
            near = self._by_deletion[variant]
            near.remove(word)
            if not near:
                del self._by_deletion[variant]

    def misspelt(self, word: str) -> list[str]:
        """Known words one slip away, in alphabetical order: a letter too many, too few or swapped.

        In words of seven letters and more also a wrong letter; in shorter ones that is mostly another word.
        """
        if not _fits(word):
            return []
        found: set[str] = set()
        for variant in _deletions(word):
            found.update(self._by_deletion.get(variant, ()))
        found.discard(word)
        return sorted(near for near in found if _is_slip(word, near))

    def beginning(self, word: str) -> list[str]:
        """Known words that a short form begins; none when there are so many that it means nothing."""
        if not _fits(word):
            return []
        found: list[str] = []
        for at in range(bisect_left(self._sorted, word), len(self._sorted)):
            if not self._sorted[at].startswith(word):
                break
            if self._sorted[at] != word:
                found.append(self._sorted[at])
            if len(found) > _MAX_PREFIXED:
                return []
        return found


def _fits(word: str) -> bool:
    return MIN_LENGTH <= len(word) <= 24 and word.isascii() and word.isalnum() and not word.isdigit()  # noqa: PLR2004


def _is_slip(word: str, near: str) -> bool:
    if word[0] != near[0] and sorted(word[:2]) != sorted(near[:2]):
        return False
    return len(word) != len(near) or sorted(word) == sorted(near) or len(word) >= 7  # noqa: PLR2004


def _deletions(word: str) -> set[str]:
    return {word, *(word[:i] + word[i + 1 :] for i in range(len(word)))}
