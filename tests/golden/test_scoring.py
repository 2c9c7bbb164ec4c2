"""Our score formula, order and display rules, held against recorded breakdowns of the public server."""

from __future__ import annotations

import math
from decimal import ROUND_HALF_UP, Decimal

import numpy as np
import pytest

from lorehooks.core.scoring import Traits, bonuses, damping, fates, weigh
from lorehooks.core.settings import Settings
from lorehooks.hooks.api.fields import display_score

RECORDED = {"exact": "exact_score", "glossary_semantic": "glossary_semantic_score", "dense": "dense_score", "lexical": "lexical_score"}  # fmt: skip
CLOSE = 1e-6
"""Recorded numbers have six digits behind the point."""


def scores_of(items, words, settings):
    """Our weighted signals and bonuses for recorded candidates. Which views matched stands in their bonuses only."""
    signals = {name: np.array([item[field] for item in items], dtype=float) for name, field in RECORDED.items()}
    parts = [item["score_breakdown"] for item in items]
    traits = Traits(
        priority=np.array([item["priority"] for item in items], dtype=np.int32),
        age_days=np.array([item.get("memory_age_days", 0.0) for item in items], dtype=float),
        hit_gist=np.array([part["view"] == 0.03 for part in parts]),
        hit_question=np.array([part["view"] == 0.02 or part["multi_view"] > 0 for part in parts]),
    )
    return weigh(signals, words, settings), bonuses(traits, settings)


def test_signals_give_the_recorded_breakdown_and_score(recorded_recalls):
    settings = Settings()
    seen = 0
    for recall in recorded_recalls:
        items = recall["merged_candidates"]
        words = recall["retrieval_meta"]["query_tokens"]
        weighted, extra = scores_of(items, words, settings)
        for place, item in enumerate(items):
            parts = item["score_breakdown"]
            assert damping(words) == pytest.approx(parts["lexical_damp"], abs=CLOSE)
            for ours, theirs in (("exact", "exact"), ("glossary_semantic", "glossary_semantic"), ("dense", "semantic"), ("lexical", "lexical")):  # fmt: skip
                assert weighted[ours][place] == pytest.approx(parts[theirs], abs=CLOSE), (recall["query"], item["uri"])
            for name in ("view", "priority", "multi_view", "recency"):
                assert extra[name][place] == pytest.approx(parts.get(name, 0.0), abs=CLOSE), (
                    recall["query"],
                    item["uri"],
                )
            total = sum(float(values[place]) for values in (*weighted.values(), *extra.values()))
            assert total == pytest.approx(item["score"], abs=CLOSE)
            seen += 1
    assert seen > 500


def test_candidates_stand_in_the_recorded_order(recorded_recalls):
    for recall in recorded_recalls:
        items = recall["merged_candidates"]
        ours = sorted(items, key=lambda item: (-item["score"], item["priority"], item["uri"]))
        assert [item["uri"] for item in ours] == [item["uri"] for item in items]


def test_the_same_candidates_are_shown(recorded_recalls):
    shown_somewhere = 0
    for recall in recorded_recalls:
        candidates = recall["candidates"]
        display = recall["runtime"]["display"]
        fate = fates(
            ((item["score"], item["boot"]) for item in candidates),
            threshold=display["min_display_score"],
            most=display["max_display_items"],
        )
        shown = [item["uri"] for item, why in zip(candidates, fate, strict=True) if not why]
        assert shown == [item["uri"] for item in recall["items"]]
        shown_somewhere += len(shown)
        if "limit" not in fate:  # the public server stops counting once it has enough
            assert fate.count("boot") == recall["suppressed"]["boot"]
            assert fate.count("score") == recall["suppressed"]["score"]
    assert shown_somewhere > 20


def test_scores_are_displayed_with_the_recorded_digits(recorded_recalls):
    for recall in recorded_recalls:
        for item in recall["merged_candidates"]:
            assert display_score(item["score"], 4) == item["score_display"]


def test_ties_round_up_as_in_javascript():
    assert [display_score(value) for value in (0.125, 0.375, 0.625, 0.994999, 1.005)] == [0.13, 0.38, 0.63, 0.99, 1.0]
    assert display_score(0.5) == float(Decimal("0.5").quantize(Decimal("0.01"), ROUND_HALF_UP))


def test_damping_has_the_values_of_the_contract():
    for words, left in ((1, 0.63093), (2, 0.5), (19, 0.22767)):
        assert math.isclose(damping(words), left, abs_tol=5e-6)
    assert damping(0) == damping(1)
