"""Search by hand: no display threshold, no cut, boot memories included; and the look for near duplicates before a write.

Unlike recall, which answers every prompt and must know when to be silent, a search was asked for (recall seed "On
demand"), so everything with any evidence is ranked.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Literal

import numpy as np

from lorehooks.core.evidence import specificity
from lorehooks.core.features import document, is_wording
from lorehooks.core.index import RecallIndex
from lorehooks.core.model import Candidate
from lorehooks.core.question import analyse
from lorehooks.core.recall import Scored, candidate, ranked, score
from lorehooks.core.salience import weight_of
from lorehooks.core.scoring import SIGNALS
from lorehooks.core.text import cut, strip_metadata, tokens

Mode = Literal["keyword", "semantic", "both"]

MAX_QUERY_CHARS = 2000
"""Characters of a search text that are read."""
SNIPPET_CHARS = 160
_DUPLICATE = 0.6
"""Share of the wording, rare words counting more, that two memories must have in common to be called the same."""
_LOOKED_AT = 8

_OF_MODE: dict[Mode, tuple[str, ...]] = {
    "keyword": ("exact", "lexical"),
    "semantic": ("glossary_semantic", "dense"),
    "both": SIGNALS,
}


def search(
    index: RecallIndex,
    query: str,
    *,
    mode: Mode = "both",
    domain: str | None = None,
    limit: int = 10,
    settings: Mapping[str, Any],
    now: datetime,
) -> list[Candidate]:
    """Memories for a search text, best first. `keyword` uses exact and lexical, `semantic` the two others."""
    text = search_text(query)
    if not text or limit <= 0:
        return []
    scored = _only(score(index, analyse(text, index), settings, now, project=None), _OF_MODE[mode])
    return [candidate(index, scored, place, now) for place in ranked(index, scored, limit, domain=domain)]


def search_text(query: str) -> str:
    """What of a query a search reads."""
    return strip_metadata(query).strip()[:MAX_QUERY_CHARS]


def _only(scored: Scored, names: Sequence[str]) -> Scored:
    """The scores with the signals of a mode alone; bonuses stay, since they order what is equal."""
    others = [name for name in SIGNALS if name not in names]
    nothing = np.zeros_like(scored.total)
    dropped = sum((scored.weighted[name] for name in others), start=nothing)
    none = dict.fromkeys(others, nothing)
    total = np.round(scored.total - dropped, 6)
    return Scored(scored.question, scored.evidence, {**scored.raw, **none}, {**scored.weighted, **none}, total)


def near_duplicate(
    index: RecallIndex, content: str, glossary: Sequence[str] = (), exclude_uuid: str | None = None
) -> list[tuple[str, float]]:
    """(uri, similarity 0..1) of memories that say nearly the same in nearly the same words, closest first.

    Similarity is the weighted share of common wording in all wording of both. Other words for the same thing, or
    another language, are not found: a warning that is often wrong is not read.
    """
    wording = {key: _telling(index, key) for key in document("", content, "", glossary).strengths if is_wording(key)}
    total = sum(wording.values())
    if total <= 0:
        return []
    common = np.zeros(index.size)
    for key, worth in wording.items():
        common[index.postings.get(key) >> 8] += worth
    if exclude_uuid is not None and (own := index.slot_of(exclude_uuid)) is not None:
        common[own] = 0
    found: list[tuple[str, float]] = []
    for slot in np.argsort(-common, kind="stable")[:_LOOKED_AT]:
        if common[slot] <= 0:
            break
        theirs = sum(_telling(index, key) for key in index.document_at(int(slot)).strengths if is_wording(key))
        similarity = float(common[slot]) / max(total + theirs - float(common[slot]), 1e-9)
        if similarity >= _DUPLICATE:
            found.append((index.entry(int(slot)).uri, round(min(similarity, 1.0), 4)))
    return sorted(found, key=lambda item: (-item[1], item[0]))


def _telling(index: RecallIndex, key: str) -> float:
    return specificity(index.postings.count(key), len(index))


def snippet(content: str, query: str, limit: int = SNIPPET_CHARS) -> str:
    """A piece of the content around the first words of the query, on one line, with `…` where it was cut."""
    flat = " ".join(content.split())
    if len(flat) <= limit:
        return flat
    lowered = flat.lower()
    wanted = [token.surface.lower() for token in tokens(query[:MAX_QUERY_CHARS]) if weight_of(token) > 0]
    places = [at for at in (lowered.find(word) for word in wanted) if at >= 0]
    start = max(0, min(places, default=0) - limit // 4)
    start = min(start, len(flat) - limit)
    piece, _ = cut(flat[start:], limit)
    return ("…" if start else "") + piece.strip() + ("…" if start + limit < len(flat) else "")
