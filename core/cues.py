"""Why a memory was recalled, in its own words: the terms of its glossary that the prompt touches, then plain words."""

from __future__ import annotations

from lorehooks.core.evidence import Evidence
from lorehooks.core.index import Entry, RecallIndex
from lorehooks.core.question import Question
from lorehooks.core.text import sequence

MAX_CUES = 3
_TOUCHED = 0.05


def explain(index: RecallIndex, question: Question, evidence: Evidence, slot: int) -> tuple[list[str], list[str]]:
    """(cues, matched_on) of one memory. Cues: at most three, best first, without repeats in another case."""
    entry = index.entry(slot)
    said = set(question.sequence)
    verbatim: list[tuple[float, str]] = []
    near: list[tuple[float, str]] = []
    touched_near: set[str] = set()
    for row, ask in enumerate(question.asks):
        own, other = float(evidence.verbatim[row, slot]), float(evidence.near[row, slot])
        if own >= _TOUCHED:
            verbatim.append((own * ask.mass, ask.surface))
        elif other >= _TOUCHED:
            near.append((other * ask.mass, ask.surface))
            touched_near.update(ask.near)
    named = {found.form for found in question.named}
    terms = _terms(entry, named, said, touched_near)
    words = [surface for _, surface in sorted(verbatim, key=lambda item: (-item[0], item[1]))]
    words += [surface for _, surface in sorted(near, key=lambda item: (-item[0], item[1]))]
    cues = _distinct([*terms, *words])[:MAX_CUES]
    on = [
        ("exact", bool(verbatim)),
        ("glossary", any(form in named for form in entry.forms)),
        ("glossary_semantic", float(evidence.glossary_semantic[slot]) > 0),
        ("dense", float(evidence.dense[slot]) > 0),
        ("lexical", float(evidence.lexical[slot]) > 0),
    ]
    return cues, [name for name, holds in on if holds]


def _terms(entry: Entry, named: set[tuple[str, ...]], said: set[str], touched: set[str]) -> list[str]:
    """The glossary terms the prompt names whole, then those it says in part or means."""
    whole: list[str] = []
    part: list[tuple[float, int, str]] = []
    for place, term in enumerate(entry.glossary):
        form = sequence(term)
        if form in named:
            whole.append(term)
            continue
        share = sum(item in said or item in touched for item in form) / len(form) if form else 0.0
        if share >= 0.5:  # noqa: PLR2004 (half of its words)
            part.append((-share, place, term))
    return whole + [term for _, _, term in sorted(part)]


def _distinct(texts: list[str]) -> list[str]:
    kept: dict[str, str] = {}
    for text in texts:
        kept.setdefault(text.casefold(), text)
    return list(kept.values())
