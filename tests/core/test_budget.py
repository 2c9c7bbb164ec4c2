from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lorehooks.core.budget import Budget, clip, fit, measure, shares

UNITS = st.sampled_from(["utf16", "bytes", "chars"])
TEXTS = st.text(
    alphabet=st.one_of(st.characters(exclude_categories=["Cs"]), st.sampled_from("日🟡é\u0301\u200d \n")), max_size=80
)


def test_each_host_counts_in_its_own_unit():
    assert [measure("a日🟡", unit) for unit in ("chars", "utf16", "bytes")] == [3, 4, 8]


@given(TEXTS, st.integers(-5, 100), UNITS)
def test_a_clipped_text_fits_and_is_a_beginning(text, limit, unit):
    short = clip(text, Budget(limit, unit))
    assert measure(short, unit) <= max(limit, 0)
    assert text.startswith(short)
    assert short == text or measure(text, unit) > limit


@pytest.mark.parametrize(
    ("text", "limit", "expected"),
    [
        ("👩\u200d👩\u200d👧", 3, ""),
        ("ae\u0301", 2, "a"),
        ("a👍🏽", 2, "a"),
        ("日本語", 2, "日本"),
    ],
)
def test_a_cut_never_goes_through_what_a_reader_sees_as_one_character(text, limit, expected):
    assert clip(text, Budget(limit)) == expected


def test_a_cut_prefers_the_end_of_a_line_or_word_when_one_is_near():
    assert clip("one two three four", Budget(16)) == "one two three"
    assert clip("first line here\nsecond", Budget(18)) == "first line here"


@given(st.lists(TEXTS, max_size=8), st.integers(0, 200), UNITS)
def test_only_whole_parts_are_kept_and_a_note_counts_the_rest(parts, limit, unit):
    budget = Budget(limit, unit)
    text = fit(parts, budget, lambda count: f"[{count} more]")
    assert budget.holds(text)
    if text and text != "\n".join(parts):
        kept = next(n for n in range(len(parts)) if text == "\n".join([*parts[:n], f"[{len(parts) - n} more]"]))
        fuller = [*parts[: kept + 1], f"[{len(parts) - kept - 1} more]"]
        assert kept + 1 == len(parts) or not budget.holds("\n".join(fuller))


@given(st.lists(st.integers(0, 50), max_size=8), st.integers(0, 200))
def test_short_ones_get_all_they_need_before_long_ones_are_cut(needs, total):
    given_out = shares(needs, total)
    assert sum(given_out) <= total
    assert all(got <= need for got, need in zip(given_out, needs, strict=True))
    if sum(needs) <= total:
        assert given_out == needs
    cut = [got for got, need in zip(given_out, needs, strict=True) if got < need]
    assert all(abs(a - b) <= 1 for a in cut for b in cut)
