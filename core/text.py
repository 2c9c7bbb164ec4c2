# ruff: noqa: PLR2004 (the word lengths in the stemmer are its rules)
"""Text for retrieval: cutting, words of any language, stems. Any string is valid input; nothing here raises.

English words are lower-cased and stemmed, identifiers are kept whole and split at `_`, `-`, `.`, `/`, `:` and case,
and each run of Chinese (or Japanese, Korean) characters gives its single characters and its pairs.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Literal, NamedTuple

MAX_WORD = 64
"""Characters of one word that count: a three-megabyte token is as good as its beginning."""

_CJK = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff"
_UNUSABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff]")
_PIECE = re.compile(
    rf"([{_CJK}]+)"
    rf"|([^\W{_CJK}]+(?:[-./:][^\W{_CJK}]+)*(?:\+\+|\#(?!\w))?)"
    r"|([^\w\s])",
)
_CJK_RUN, _WORD = 1, 2
_IS_CJK = re.compile(f"[{_CJK}]")
_PARTS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+|[^\W\d_A-Za-z]+")
_VOWEL = re.compile("[aeiouy]")
_ENDS = frozenset("degnsty")
"""Last letters of the endings that a stem goes without."""
_NOT_WORD = re.compile(r"[^\w]+")
_NOT_WORD_OR_BAR = re.compile(r"[^\w]+|_+")
_METADATA = re.compile(
    r"\s*(?:(?:Conversation info|Sender|Channel info|Reply info)\s*\(untrusted metadata\)\s*:\s*"
    r"(?P<fence>`{3,}|~{3,})[^\n]*\n.*?\n[ \t]*(?P=fence)[ \t]*(?:\n|$)\s*)+",
    re.IGNORECASE | re.DOTALL,
)

Kind = Literal["word", "whole", "pair", "char", "symbol"]


class Token(NamedTuple):
    """One searchable piece. `key` is what is compared, `surface` what a person wrote.

    Kinds: `word` (a stem), `whole` (a compound identifier as it stands), `pair` and `char` (Chinese), `symbol`.
    `unit` numbers the written word or run, so that a compound and its parts are known to be one thing.
    """

    key: str
    surface: str
    kind: Kind
    unit: int


def clean(text: str) -> str:
    """NFKC without control characters and lone surrogates (both become spaces)."""
    if text.isascii():
        return _UNUSABLE.sub(" ", text)
    return unicodedata.normalize("NFKC", _UNUSABLE.sub(" ", text))


def strip_metadata(text: str) -> str:
    """Without the chat-metadata blocks that some hosts put before a prompt (`lore-contract.md` 4.1).

    If nothing is left, the text as it was.
    """
    found = _METADATA.match(text)
    rest = text[found.end() :] if found else text
    return rest if rest.strip() else text


def cut(text: str, limit: int) -> tuple[str, bool]:
    """The first `limit` code points, less what would break a character in two, and whether anything was cut.

    A character here is what a reader sees as one: accents, joined emoji, flags and surrogate pairs stay whole.
    """
    if len(text) <= limit:
        return text, False
    end = max(limit, 0)
    while end > 0 and _joins(text, end):
        end -= 1
    return text[: end or max(limit, 0)], True


def _joins(text: str, at: int) -> bool:
    """Whether the code points before and at `at` belong to one visible character."""
    before, after = text[at - 1], text[at]
    if unicodedata.combining(after) or unicodedata.category(after) in ("Mn", "Me"):
        return True
    if after == "\u200d" or before == "\u200d" or "\U0001f3fb" <= after <= "\U0001f3ff":
        return True
    if "\ud800" <= before <= "\udbff" and "\udc00" <= after <= "\udfff":
        return True
    if _is_flag(before) and _is_flag(after):
        start = at
        while start > 0 and _is_flag(text[start - 1]):
            start -= 1
        return (at - start) % 2 == 1
    return False


def _is_flag(char: str) -> bool:
    return "\U0001f1e6" <= char <= "\U0001f1ff"


def is_cjk(char: str) -> bool:
    """Whether a character is written without spaces between words."""
    return _IS_CJK.match(char) is not None


def cjk_letters(text: str) -> int:
    """How many letters of a text are written without spaces between words; marks of those scripts do not count."""
    return 0 if text.isascii() else sum(map(str.isalnum, _IS_CJK.findall(text)))


def tokens(text: str, limit: int | None = None) -> list[Token]:
    """All searchable pieces in reading order; at most `limit` written words and runs when given."""
    found: list[Token] = []
    for unit, match in enumerate(_PIECE.finditer(clean(text))):
        if unit == limit:
            break
        piece = match.group()
        if match.lastindex == _CJK_RUN:
            found += [Token(char, char, "char", unit) for char in piece]
            for at in range(len(piece) - 1):
                pair = piece[at : at + 2]
                found.append(Token(pair, pair, "pair", unit))
        elif match.lastindex == _WORD:
            found += _word(piece[: MAX_WORD * 4], unit)
        else:
            found.append(Token(piece, piece, "symbol", unit))
    return found


def _word(piece: str, unit: int) -> list[Token]:
    """A compound gives itself and its parts; a plain word gives its stem."""
    plain = _plain(piece)
    if plain:
        return [Token(stem(plain), piece[:MAX_WORD], "word", unit)]
    parts = split_identifier(piece)
    found = [Token(name, surface, "whole", unit) for name, surface in _wholes(piece, parts)]
    found += [Token(stem(part), part, "word", unit) for part in parts]
    return found


def _plain(piece: str) -> str:
    """A word that is no compound, lower-cased; empty for a compound."""
    one_case = piece.islower() or piece.isupper() or piece[1:].islower() or piece.isdigit()
    if one_case and piece.isascii() and piece.isalnum():  # most words, and quick to tell
        return piece.lower()[:MAX_WORD]
    lowered = _lowered(piece)
    return lowered if split_identifier(piece) == (lowered,) else ""


def _wholes(piece: str, parts: Sequence[str]) -> list[tuple[str, str]]:
    """(key, surface) of a compound as it stands, and of names inside it: `RefundService` in `RefundService.Partial`."""
    lowered = _lowered(piece)
    found = [(lowered, piece[:MAX_WORD])]
    if _NOT_WORD.search(piece):
        for chunk in _NOT_WORD.split(piece):
            name = chunk.strip("_").lower()[:MAX_WORD]
            if name not in (lowered, "") and name not in parts:
                found.append((name, chunk[:MAX_WORD]))
    return found


def _lowered(piece: str) -> str:
    return piece.strip("_").lower()[:MAX_WORD] or "_"


@lru_cache(maxsize=4096)
def split_identifier(piece: str) -> tuple[str, ...]:
    """The lower-cased words inside an identifier: `RefundService.partial_v2` is refund, service, partial, v2."""
    parts: list[str] = []
    for chunk in _NOT_WORD_OR_BAR.split(piece):
        if not chunk:
            continue
        if chunk.islower() or chunk.isupper() or not chunk.isascii() or chunk[1:].islower():
            parts.append(chunk.lower()[:MAX_WORD])
        else:
            parts += [part.lower()[:MAX_WORD] for part in _PARTS.findall(chunk)]
    return tuple(parts)


def pieces(text: str) -> list[str]:
    """The written words, runs and symbols of a text."""
    return [match.group() for match in _PIECE.finditer(clean(text))]


def keys(text: str) -> tuple[list[str], list[str]]:
    """(all keys, keys of words and single characters in order) of a text: what `tokens` gives, without the surfaces.

    Several times quicker, for texts of which there are many. Compounds come with their joined form as well.
    """
    found: list[str] = []
    order: list[str] = []
    for run, word, symbol in _PIECE.findall(clean(text)):
        if word:
            of_piece, of_order = _word_keys(word[: MAX_WORD * 4])
            found += of_piece
            order += of_order
        elif run:
            order += run
            found += run
            found += [run[at : at + 2] for at in range(len(run) - 1)]
        else:
            found.append(symbol)
    return found, order


@lru_cache(maxsize=8192)
def _word_keys(piece: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    plain = _plain(piece)
    if plain:
        key = (stem(plain),)
        return key, key
    parts = split_identifier(piece)
    wholes = [name for name, _ in _wholes(piece, parts)]
    order = tuple(map(stem, parts))
    return (*wholes, *order, *(key for whole in wholes for key in joined(whole))), order


def joined(whole: str) -> Iterator[str]:
    """Other spellings of a compound: `half-up` is also written `halfup`."""
    together = whole.replace("-", "").replace("_", "")
    if together != whole and together.isalnum():
        yield together


def spoken(found: list[Token]) -> list[Token]:
    """Of some tokens the words and single characters, in the order in which one would read them out."""
    return [token for token in found if token.kind in ("word", "char")]


def sequence(text: str) -> tuple[str, ...]:
    """The text as comparable items in order: stems of all words and parts, single characters of Chinese.

    Two spellings of one term (`clock.Fake`, `clock fake`) give the same sequence.
    """
    return tuple(keys(text)[1])


@lru_cache(maxsize=8192)
def stem(word: str) -> str:
    """A light English stem of a lower-case word: plural, -ing, -ed, -ment, -ation and -ly fall together.

    Only the ends of plain ASCII words of four letters and more change; the result is for comparing, not for reading.
    """
    if len(word) < 4 or word[-1] not in _ENDS or not word.isascii() or not word.isalpha():
        return word
    word = _singular(word)
    for ending in ("ment", "ness"):
        if word.endswith(ending) and len(word) - len(ending) >= 4:
            word = word[: -len(ending)]
            break
    if word.endswith("ing") and _has_vowel(word[:-3]) and len(word) > 5:
        word = _undouble(word[:-3])
    elif word.endswith("ed") and not word.endswith("eed") and _has_vowel(word[:-2]) and len(word) > 4:
        word = _undouble(word[:-2])
    if word.endswith("ion") and len(word) > 5 and word[-4] in "st":
        word = word[:-3]
    if word.endswith("ly") and len(word) > 5:
        word = word[:-2]
    if word.endswith("e") and len(word) > 3:
        word = word[:-1]
    if word.endswith("y") and len(word) > 3 and word[-2] not in "aeiou":
        word = word[:-1] + "i"
    return word


def _singular(word: str) -> str:
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    if word.endswith(("sses", "xes", "zes", "ches", "shes")):
        return word[:-2]
    if word.endswith("s") and not word.endswith(("ss", "us", "is")):
        return word[:-1]
    return word


def _has_vowel(part: str) -> bool:
    return _VOWEL.search(part) is not None


def _undouble(part: str) -> str:
    if len(part) > 3 and part[-1] == part[-2] and part[-1] not in "lsz":
        return part[:-1]
    return part
