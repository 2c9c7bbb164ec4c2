from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lorehooks.core.text import cut, keys, sequence, stem, strip_metadata, tokens

ANY_TEXT = st.text(st.characters(exclude_categories=()), max_size=300)
FAMILY = "\U0001f468\u200d\U0001f469\u200d\U0001f467"


@given(ANY_TEXT)
def test_any_string_has_tokens_without_an_error(text: str) -> None:
    for token in tokens(text):
        assert token.key
        assert not any("\ud800" <= char <= "\udfff" for char in token.key)


@given(ANY_TEXT)
def test_quick_keys_are_those_of_the_tokens(text: str) -> None:
    found, order = keys(text)
    assert {token.key for token in tokens(text)} <= set(found)
    assert tuple(order) == sequence(text)


@given(ANY_TEXT, st.integers(1, 60))
def test_a_cut_keeps_the_beginning_and_at_most_the_limit(text: str, limit: int) -> None:
    kept, was_cut = cut(text, limit)
    assert text.startswith(kept)
    assert len(kept) <= limit
    assert was_cut == (len(text) > limit)
    assert kept or not text


@given(
    st.lists(st.sampled_from(["a", "é", "e\u0301", FAMILY, "👍🏽", "🇩🇪", "字", "\ud83d\ude00"]), max_size=12),
    st.integers(12, 40),
)
def test_a_cut_falls_between_characters(parts: list[str], limit: int) -> None:
    text = "".join(parts)
    kept, _ = cut(text, limit)
    ends, at = {0}, 0
    for part in parts:
        at += len(part)
        ends.add(at)
    assert len(kept) in ends


def test_a_cut_leaves_no_accent_behind() -> None:
    kept, _ = cut("cafe\u0301", 4)
    assert kept == "caf"
    assert not any(unicodedata.combining(char) for char in kept)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("retries", "retry"), ("caching", "cache"), ("migrations", "migrate"), ("deployment", "deploys"),
        ("running", "run"), ("rotation", "rotating"), ("classes", "class"), ("settlement", "settled"),
    ],
)  # fmt: skip
def test_forms_of_a_word_have_one_stem(one: str, other: str) -> None:
    assert stem(one) == stem(other)


@pytest.mark.parametrize("word", ["string", "process", "status", "this", "thing", "need", "news2", "été"])
def test_what_only_looks_like_an_ending_stays(word: str) -> None:
    assert len(stem(word)) >= len(word) - 1


def test_an_identifier_is_found_whole_and_by_its_parts() -> None:
    found = {token.key for token in tokens("RefundService.Partial uses idempotency_keys and LL-Signature")}
    assert {
        "refundservice.partial",
        "refundservice",
        "refund",
        "idempotency_keys",
        "idempotenci",
        "ll-signature",
    } <= found


def test_chinese_is_found_by_one_and_by_two_characters() -> None:
    found = {token.key for token in tokens("今天讨论了部署方案")}
    assert {"部", "署", "部署", "方案"} <= found


def test_a_latin_word_inside_chinese_is_a_word() -> None:
    assert "itgc" in {token.key for token in tokens("重跑gen-itgc后")}


def test_two_spellings_of_a_term_have_one_sequence() -> None:
    assert sequence("clock.Fake") == sequence("clock fake") == sequence("ClockFake")


def test_full_width_letters_are_the_same_letters() -> None:
    assert sequence("ＡＰＩ　Ｋｅｙ") == sequence("API Key")


def test_an_endless_word_is_as_good_as_its_beginning() -> None:
    assert {token.key for token in tokens("x" * 3_000_000)} == {"x" * 64}


BLOCK = 'Conversation info (untrusted metadata):\n```json\n{"chat": 1}\n```\n'


def test_metadata_blocks_at_the_start_go() -> None:
    sender = "sender (UNTRUSTED metadata):\n```\nLin\n```\n\n"
    assert strip_metadata(f"{BLOCK}{sender}deploy now?") == "deploy now?"


@pytest.mark.parametrize("text", [BLOCK, f"see {BLOCK}", "Sender (untrusted metadata): none", "plain"])
def test_what_is_not_a_leading_block_with_something_after_it_stays(text: str) -> None:
    assert strip_metadata(text) == text
