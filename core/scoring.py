"""The arithmetic of recall: from signals in 0..1 to a score, and from scores to what is shown (recall seed "Scoring").

Pure and without rounding, so that it can be held against recorded breakdowns of the public server; `core.recall` rounds
signals and parts to 4 decimals, which makes a recorded run repeatable to the same bytes.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lorehooks.core.model import Withheld

Floats = NDArray[np.float64]

SIGNALS = ("exact", "glossary_semantic", "dense", "lexical")


@dataclass(frozen=True, slots=True)
class Traits:
    """What bonuses are reckoned from, one value for each memory."""

    priority: NDArray[np.int32]
    age_days: Floats
    hit_gist: NDArray[np.bool_]
    hit_question: NDArray[np.bool_]


def damping(words: int) -> float:
    """How much of the lexical weight is left in a prompt of so many words: a shared word says less in a long one."""
    return 1 / math.log2(2 + max(1, words))


def weigh(signals: Mapping[str, Floats], words: int, settings: Mapping[str, Any]) -> dict[str, Floats]:
    """Each signal times its weight; the lexical one is damped as well."""
    weights = {name: float(settings[f"recall.weights.w_{name}"]) for name in SIGNALS}
    weights["lexical"] *= damping(words)
    return {name: signals[name] * weight for name, weight in weights.items()}


def bonuses(traits: Traits, settings: Mapping[str, Any]) -> dict[str, Floats]:
    """What a memory gets beside its signals: for views that matched, its priority, and how new it is."""
    gist, question = float(settings["views.prior.gist"]), float(settings["views.prior.question"])
    base, step = float(settings["recall.bonus.priority_base"]), float(settings["recall.bonus.priority_step"])
    several = (traits.hit_gist & traits.hit_question) * float(settings["recall.bonus.multi_view_step"])
    return {
        "view": np.maximum(traits.hit_gist * gist, traits.hit_question * question),
        "priority": np.clip(base - np.maximum(traits.priority, 0) * step, 0, None),
        "multi_view": np.minimum(several, float(settings["recall.bonus.multi_view_cap"])),
        "recency": _recency(traits, settings),
    }


def fates(candidates: Iterable[tuple[float, bool]], *, threshold: float, most: int) -> list[Withheld]:
    """Which of these are shown (empty) and why the others are not. Each is `(score, is a boot node)`, best first."""
    found: list[Withheld] = []
    shown = 0
    for score, is_boot in candidates:
        if is_boot:
            found.append("boot")
        elif score < threshold:
            found.append("score")
        elif shown >= most:
            found.append("limit")
        else:
            found.append("")
            shown += 1
    return found


def _recency(traits: Traits, settings: Mapping[str, Any]) -> Floats:
    """Halves with each half-life since the last update; priorities up to `priority_exempt` keep all of it."""
    most = float(settings["recall.recency.max_bonus"])
    if not settings["recall.recency.enabled"]:
        return np.zeros(len(traits.age_days))
    fading = most * 0.5 ** (np.maximum(traits.age_days, 0.0) / float(settings["recall.recency.half_life_days"]))
    return np.where(traits.priority <= int(settings["recall.recency.priority_exempt"]), most, fading)
