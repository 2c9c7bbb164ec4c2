from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lorehooks.core.embeddings import NoCache, load_builtin
from lorehooks.core.index import RecallIndex
from lorehooks.core.model import Node
from lorehooks.core.search import Mode, near_duplicate, search, snippet
from lorehooks.core.settings import Settings
from lorehooks.core.views import rule_views

NOW = datetime(2026, 1, 1, tzinfo=UTC)
TODAY = "2026-01-01T00:00:00.000Z"
MODEL = load_builtin()


def node(uri: str, content: str, *glossary: str) -> Node:
    return Node(uri, uri, content, 2, "", glossary, TODAY, TODAY, TODAY)


KEYS = node(
    "project://shop/idempotency",
    "POST /v1/charges needs an Idempotency-Key. Keys live in Postgres for 72 hours; the same key with another body is "
    "answered with 409. Do not move them to Redis: an eviction charged 212 customers twice.",
    "Idempotency-Key", "duplicate charge",
)  # fmt: skip
NODES = [
    KEYS,
    node("project://shop/refunds", "Partial refunds reserve part of the amount that can still be paid back.", "refund"),
    node(
        "project://shop/webhooks", "Events are written to an outbox in the same transaction and sent later.", "webhook"
    ),
    node("project://depot/labels", "标签用热敏纸打印，宽 58 毫米，字体不小于 8 磅。", "热敏纸"),
    node("core://soul", "Be calm and say plainly when you do not know.", "persona"),
]


@pytest.fixture(scope="module")
def index() -> RecallIndex:
    built = RecallIndex()
    for one in NODES:
        built.put(one, rule_views(one))
    if MODEL is not None:
        built.attach_embedder(MODEL, NoCache())
        built.embed_some(built.pending())
    return built


def found(index: RecallIndex, text: str, mode: Mode = "both", domain: str | None = None, limit: int = 10) -> list[str]:
    ranked = search(index, text, mode=mode, domain=domain, limit=limit, settings=Settings(), now=NOW)
    return [candidate.uri for candidate in ranked]


def test_a_search_has_no_threshold(index: RecallIndex) -> None:
    assert found(index, "transaction")[0] == "project://shop/webhooks"


def test_boot_memories_are_found(index: RecallIndex) -> None:
    assert found(index, "persona")[0] == "core://soul"


@pytest.mark.parametrize("mode", ["keyword", "semantic", "both"])
def test_each_mode_finds_a_term(index: RecallIndex, mode: Mode) -> None:
    assert found(index, "duplicate charge", mode)[0] == KEYS.uri


def test_keyword_needs_a_word_in_common(index: RecallIndex) -> None:
    assert found(index, "thermal paper", "keyword") == []


def test_the_score_of_a_mode_is_that_of_its_signals(index: RecallIndex) -> None:
    (best,) = search(index, "webhook", mode="keyword", limit=1, settings=Settings(), now=NOW)
    parts = best.weighted
    bonuses = parts.view + parts.priority + parts.multi_view + parts.recency
    assert best.score == pytest.approx(parts.exact + parts.lexical + bonuses, abs=1e-6)


def test_domain_and_limit_narrow_a_search(index: RecallIndex) -> None:
    assert all(uri.startswith("project://") for uri in found(index, "paper calm refund", domain="project"))
    assert len(found(index, "refund webhook charge", limit=2)) == 2
    assert found(index, "refund", limit=0) == []
    assert found(index, "   ") == []


@pytest.mark.parametrize("text", ["纸", "the", "409", "/", "%", "why do not", "x" * 3_000_000, "\x00", "NEAR("])
def test_any_text_can_be_searched(index: RecallIndex, text: str) -> None:
    uris = found(index, text)
    assert len(uris) == len(set(uris))
    if text in ("纸", "the", "409", "/"):
        assert uris


def test_nearly_the_same_words_are_a_duplicate(index: RecallIndex) -> None:
    again = KEYS.content.replace("72 hours", "three days").replace("Do not move", "Never move")
    assert [uri for uri, _ in near_duplicate(index, again, KEYS.glossary)] == [KEYS.uri]
    assert near_duplicate(index, KEYS.content, KEYS.glossary)[0][1] > 0.9


def test_a_memory_is_no_duplicate_of_itself(index: RecallIndex) -> None:
    assert near_duplicate(index, KEYS.content, KEYS.glossary, exclude_uuid=KEYS.uuid) == []


@pytest.mark.parametrize(
    "content",
    [
        "Idempotency-Key is checked in the middleware before the handler runs.",
        "Partial refunds need the approval of a second person.",
        "字体用思源黑体，标签宽 60 毫米。",
        "",
        "the of and",
    ],
)
def test_the_same_subject_is_not_a_duplicate(index: RecallIndex, content: str) -> None:
    assert near_duplicate(index, content, ("refund",)) == []


def test_no_two_memories_of_a_kept_memory_are_called_duplicates(index: RecallIndex) -> None:
    for one in NODES:
        assert near_duplicate(index, one.content, one.glossary, exclude_uuid=one.uuid) == []


def test_a_duplicate_in_a_tiny_memory_is_seen_as_well() -> None:
    lone = RecallIndex()
    lone.put(KEYS, rule_views(KEYS))
    assert near_duplicate(lone, KEYS.content, KEYS.glossary)[0][0] == KEYS.uri
    other = replace(KEYS, uuid="other", content="Labels are printed on thermal paper.", glossary=())
    assert near_duplicate(lone, other.content, other.glossary) == []


def test_a_snippet_shows_the_words_asked_for() -> None:
    text = "filler words " * 40 + "the eviction charged customers twice " + "more words " * 40
    piece = snippet(text, "why was a customer charged after the eviction")
    assert "eviction charged" in piece
    assert piece.startswith("…")
    assert piece.endswith("…")
    assert "\n" not in snippet("two\nlines", "x")


@given(st.text(max_size=400), st.text(max_size=40), st.integers(10, 100))
def test_a_snippet_is_a_piece_of_the_content(content: str, query: str, limit: int) -> None:
    piece = snippet(content, query, limit)
    assert len(piece) <= limit + 2
    assert piece.strip("…").strip() in " ".join(content.split())
