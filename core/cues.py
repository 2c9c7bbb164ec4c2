"""Why a memory was recalled, in its own words: the terms of its glossary that the prompt touches, then plain words."""

from __future__ import annotations

from functools import lru_cache

from lorehooks.core.evidence import Evidence
from lorehooks.core.features import form_key
from lorehooks.core.index import Entry
from lorehooks.core.question import Question
from lorehooks.core.text import sequence

MAX_CUES = 3
_TOUCHED = 0.1
"""Least strength, times what the piece weighs, of a word that is worth naming."""
_SHORT = 3


def explain(entry: Entry, question: Question, evidence: Evidence, place: int) -> tuple[list[str], list[str]]:
    """(cues, matched_on) of one memory. Cues: at most three, best first, without repeats in another case."""
    verbatim: list[tuple[float, str]] = []
    near: list[tuple[float, str]] = []
    meant: set[str] = set()
    owns, others = evidence.verbatim[:, place].tolist(), evidence.near[:, place].tolist()
    for ask, own, other in zip(question.asks, owns, others, strict=True):
        if own * ask.mass >= _TOUCHED:
            verbatim.append((-own * ask.mass, ask.surface))
        elif other * ask.mass >= _TOUCHED:
            near.append((-other * ask.mass, ask.surface))
            meant.update(ask.near)
    whole, part = _terms(entry, question, meant)
    words = [surface for _, surface in (*sorted(verbatim), *sorted(near))]
    words.sort(key=lambda surface: surface.isascii() and len(surface) < _SHORT)  # a scrap of a name comes last
    on = {
        "exact": bool(verbatim),
        "glossary": bool(whole),
        "glossary_semantic": float(evidence.glossary_semantic[place]) > 0,
        "dense": float(evidence.dense[place]) > 0,
        "lexical": float(evidence.lexical[place]) > 0,
    }
    return _distinct([*whole, *part, *words])[:MAX_CUES], [name for name, holds in on.items() if holds]


def _terms(entry: Entry, question: Question, meant: set[str]) -> tuple[list[str], list[str]]:
    """The glossary terms the prompt names whole, and those of which it says or means at least half."""
    whole: list[str] = []
    part: list[tuple[float, int, str]] = []
    known = question.said | meant
    for place, term in enumerate(entry.glossary):
        form = _form(term)
        if question.named and form_key(form) in question.named:
            whole.append(term)
            continue
        share = sum(item in known for item in form) / len(form) if form and not known.isdisjoint(form) else 0.0
        if share >= 0.5:  # noqa: PLR2004 (half of its words)
            part.append((-share, place, term))
    return whole, [term for _, _, term in sorted(part)]


@lru_cache(maxsize=8192)
def _form(term: str) -> tuple[str, ...]:
    return sequence(term)


def _distinct(texts: list[str]) -> list[str]:
    kept: dict[str, str] = {}
    for text in texts:
        kept.setdefault(text.casefold(), text)
    return list(kept.values())
