from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lorehooks.core.fuzzy import Spellings

WORDS = ["backfill", "playwright", "hardfault", "timeout", "allreduce", "push", "kubectl", "snapshot", "merchant"]


@pytest.fixture
def spellings() -> Spellings:
    known = Spellings()
    for word in WORDS:
        known.add(word)
    return known


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("bakcfill", "backfill"), ("paywright", "playwright"), ("hardfualt", "hardfault"), ("tiemout", "timeout"),
        ("psuh", "push"), ("kubctl", "kubectl"), ("snapshoot", "snapshot"), ("merchent", "merchant"),
    ],
)  # fmt: skip
def test_one_slip_is_understood(spellings: Spellings, typed: str, meant: str) -> None:
    assert spellings.misspelt(typed) == [meant]


@pytest.mark.parametrize("typed", ["pull", "posh", "time", "snapshot", "merchandise", "ok", "1234567"])
def test_another_word_is_not_taken_for_a_slip(spellings: Spellings, typed: str) -> None:
    assert spellings.misspelt(typed) == []


def test_a_beginning_stands_for_the_word_unless_it_begins_too_many(spellings: Spellings) -> None:
    assert spellings.beginning("kube") == ["kubectl"]
    for number in range(6):
        spellings.add(f"kubelet{number}")
    assert spellings.beginning("kube") == []


@given(st.lists(st.text("abc", min_size=4, max_size=6), max_size=12))
def test_counting_out_undoes_counting_in(words: list[str]) -> None:
    known = Spellings()
    for word in words:
        known.add(word)
    for word in words:
        known.discard(word)
    assert all(not known.misspelt(word) and not known.beginning(word[:4]) for word in words)


@given(st.text("abcdefgh", min_size=7, max_size=12), st.integers(0, 10), st.sampled_from(["drop", "double", "swap"]))
def test_every_kind_of_slip_is_found(word: str, at: int, slip: str) -> None:
    at = 1 + at % (len(word) - 2)
    typed = {
        "drop": word[:at] + word[at + 1 :],
        "double": word[:at] + word[at] + word[at:],
        "swap": word[:at] + word[at + 1] + word[at] + word[at + 2 :],
    }[slip]
    known = Spellings()
    known.add(word)
    assert known.misspelt(typed) == ([] if typed == word else [word])
