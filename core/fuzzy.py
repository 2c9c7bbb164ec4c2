"""Words that a mistyped or shortened word may have meant: one slip away, or longer with the same beginning.

A slip leaves the first or the last letters of a word as they were, or swaps two neighbours and leaves the set of
letters; so three small sorted or keyed lists find every candidate, and a short check decides.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Iterator

MIN_LENGTH = 4
_MAX_LENGTH = 24
_LONG = 7
"""From this length a wrong letter is taken for a slip; in shorter words it mostly makes another word."""
_MAX_PREFIXED = 4


class Spellings:
    """The words of glossaries and paths, with a count of how many memories use each."""

    def __init__(self) -> None:
        self._uses: Counter[str] = Counter()
        self._forward: list[str] = []
        self._backward: list[str] = []
        self._by_letters: dict[str, list[str]] = {}

    def add(self, word: str) -> None:
        """Count a word in. Short words and words with other characters than letters and digits are left alone."""
        if not _fits(word):
            return
        self._uses[word] += 1
        if self._uses[word] == 1:
            insort(self._forward, word)
            insort(self._backward, word[::-1])
            self._by_letters.setdefault(_letters(word), []).append(word)

    def discard(self, word: str) -> None:
        """Count a word out."""
        if word not in self._uses:
            return
        self._uses[word] -= 1
        if self._uses[word]:
            return
        del self._uses[word]
        del self._forward[bisect_left(self._forward, word)]
        del self._backward[bisect_left(self._backward, word[::-1])]
        same = self._by_letters[_letters(word)]
        same.remove(word)
        if not same:
            del self._by_letters[_letters(word)]

    def misspelt(self, word: str) -> list[str]:
        """Known words one slip away, in alphabetical order: a letter too many, too few, swapped or (if long) wrong."""
        if not _fits(word):
            return []
        kept = len(word) // 2
        near = set(_starting(self._forward, word[:kept]))
        near.update(found[::-1] for found in _starting(self._backward, word[::-1][:kept]))
        near.update(self._by_letters.get(_letters(word), ()))
        near.discard(word)
        lengths = (len(word) - 1, len(word), len(word) + 1)
        return sorted(found for found in near if len(found) in lengths and _is_slip(word, found))

    def beginning(self, word: str) -> list[str]:
        """Known words that a short form begins; none when there are so many that it means nothing."""
        if not _fits(word):
            return []
        found: list[str] = []
        for longer in _starting(self._forward, word):
            if longer != word:
                found.append(longer)
            if len(found) > _MAX_PREFIXED:
                return []
        return found


def _starting(words: list[str], beginning: str) -> Iterator[str]:
    for at in range(bisect_left(words, beginning), len(words)):
        if not words[at].startswith(beginning):
            return
        yield words[at]


def _is_slip(word: str, other: str) -> bool:
    """Whether two different words, at most one letter longer, are one slip apart. The first letters must agree, or be the two that were swapped."""
    short, long = (word, other) if len(word) <= len(other) else (other, word)
    start = 0
    while start < len(short) and short[start] == long[start]:
        start += 1
    if start == 0 and word[:2] != other[1::-1]:
        return False
    if len(short) < len(long):
        return short[start:] == long[start + 1 :]
    if word[start : start + 2] == other[start : start + 2][::-1] and word[start + 2 :] == other[start + 2 :]:
        return True
    return len(word) >= _LONG and word[start + 1 :] == other[start + 1 :]


def _letters(word: str) -> str:
    return "".join(sorted(word))


def _fits(word: str) -> bool:
    return MIN_LENGTH <= len(word) <= _MAX_LENGTH and word.isascii() and word.isalnum() and not word.isdigit()
