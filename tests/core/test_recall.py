from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lorehooks.core.embeddings import NoCache, load_builtin
from lorehooks.core.index import RecallIndex
from lorehooks.core.model import Node, RecallQuery, RecallResult
from lorehooks.core.recall import recall
from lorehooks.core.settings import Settings, Value
from lorehooks.core.views import rule_views

NOW = datetime(2026, 1, 1, tzinfo=UTC)
TODAY = "2026-01-01T00:00:00.000Z"
MODEL = load_builtin()


def node(uri: str, content: str = "", *glossary: str, **given: Any) -> Node:
    made = Node(uri, uri, content, 2, "", glossary, TODAY, TODAY, TODAY)
    return replace(made, **given)


FILLERS = [
    node("project://shop/cart", "The cart lives in the session for two hours.", "cart expiry"),
    node("project://shop/pricing", "Prices are integers in cents.", "cents", "price"),
    node("project://depot/labels", "标签用热敏纸打印，宽 58 毫米。", "热敏纸", disclosure="打印标签时。"),
    node("project://depot/robots", "A robot must not lift more than 30 kg.", "robot arm"),
    node("preferences://tone", "Be brief.", "answer length"),
]
WEBHOOKS = node(
    "project://shop/webhooks", "Every webhook carries an idempotency key; a refund is sent once.",
    "idempotency key", "refund", "webhook", disclosure="When an event is sent to a merchant.",
)  # fmt: skip

Ask = Callable[..., RecallResult]


def index_of(*nodes: Node, model: bool = True) -> RecallIndex:
    index = RecallIndex()
    for one in (*FILLERS, *nodes):
        index.put(one, rule_views(one))
    if model and MODEL is not None:
        index.attach_embedder(MODEL, NoCache())
        index.embed_some(index.pending())
    return index


def ask(index: RecallIndex, text: str, changed: dict[str, Value] | None = None, **query: Any) -> RecallResult:
    return recall(index, RecallQuery(text, **query), Settings(changed), NOW)


def shown(index: RecallIndex, text: str, **query: Any) -> list[str]:
    return [candidate.uri for candidate in ask(index, text, **query).shown]


def test_a_memory_is_recalled_by_its_terms_and_says_by_which() -> None:
    result = ask(index_of(WEBHOOKS), "should the refund webhook carry an idempotency key?")
    assert [candidate.uri for candidate in result.shown] == [WEBHOOKS.uri]
    assert set(result.shown[0].cues) == {"idempotency key", "refund", "webhook"}
    assert "exact" in result.shown[0].matched_on
    assert "glossary" in result.shown[0].matched_on


@pytest.mark.parametrize("text", ["", "   ", "\x00", "ok, go on", "谢谢", "why?", "???", "\ud800"])
def test_an_idle_prompt_is_answered_with_silence(text: str) -> None:
    assert shown(index_of(WEBHOOKS), text) == []


QUERIES = [
    "multi-agent", "don't", "why?", "C++ a/b 50% @me #1", '"', "(", "*", "AND", "NEAR(", "OR NOT", "^x", "%_", "a\x00b",
    "🙂", "x" * 3_000_000, "部署", "è", "--", "'; DROP TABLE nodes; --", "core://soul", "[]{}", "\\", "zażółć gęślą",
]  # fmt: skip


@pytest.mark.parametrize("text", QUERIES, ids=[repr(text[:20]) for text in QUERIES])
def test_any_prompt_finds_the_memory_that_has_it_as_a_term(text: str) -> None:
    planted = node("project://shop/planted", "Something of its own.", text)
    assert shown(index_of(WEBHOOKS, planted), text)[:1] == [planted.uri]


@pytest.mark.parametrize("text", QUERIES, ids=[repr(text[:20]) for text in QUERIES])
def test_any_prompt_ranks_the_memory_that_has_it_in_its_content(text: str) -> None:
    planted = node("project://shop/planted", f"before {text} after")
    ranked = ask(index_of(WEBHOOKS, planted), text).candidates
    assert planted.uri in [candidate.uri for candidate in ranked]


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("今天讨论了部署方案", "部署"),
        ("今天讨论了部署方案", "部署方案"),
        ("重跑gen-itgc后", "itgc"),
        ("用猫测试", "猫"),
    ],
)
def test_pieces_of_chinese_content_are_found(content: str, text: str) -> None:
    planted = node("project://shop/planted", content)
    assert ask(index_of(planted), text).candidates[0].uri == planted.uri


@settings(max_examples=60, deadline=None)
@given(st.text(st.characters(exclude_categories=()), max_size=250))
def test_no_prompt_raises_and_each_has_one_answer(text: str) -> None:
    first, second = ask(SHARED, text), ask(SHARED, text)
    assert first == second
    for candidate in first.candidates:
        parts = candidate.weighted
        assert candidate.score == pytest.approx(parts.total, abs=1e-6)
        assert len(candidate.cues) <= 3
        for value in (candidate.raw.exact, candidate.raw.glossary_semantic, candidate.raw.dense, candidate.raw.lexical):
            assert 0 <= value <= 1
            assert value == round(value, 4)


SHARED = index_of(WEBHOOKS)


def test_a_slip_of_the_fingers_and_a_short_form_are_understood() -> None:
    index = index_of(node("project://shop/firmware", "Flash over the air.", "firmware update", "watchdog"))
    assert ask(index, "the watchdgo resets the board").candidates[0].uri == "project://shop/firmware"
    assert ask(index, "new fw for the board").candidates[0].uri == "project://shop/firmware"


def test_a_question_in_the_other_language_finds_the_memory() -> None:
    english = node("project://shop/rollback", "Never roll back the schema.", "rollback", "deployment")
    chinese = node("project://shop/refunds", "退款必须走退款服务。", "退款", "手续费")
    index = index_of(english, chinese)
    assert ask(index, "部署失败要回滚吗").candidates[0].uri == english.uri
    assert ask(index, "who pays the fee of a refund?").candidates[0].uri == chinese.uri


def test_a_term_that_every_memory_has_says_little() -> None:
    everywhere = [node(f"project://shop/part{n}", f"Part {n} of it.", "gadget", f"piece{n}") for n in range(40)]
    index = index_of(*everywhere)
    assert shown(index, "does the gadget need paint?") == []
    assert shown(index, "can the piece7 gadget be painted?") == ["project://shop/part7"]


def test_a_shared_term_belongs_to_the_project_of_the_session_first() -> None:
    ours = node("project://shop/testing", "Run make itest.", "integration test")
    theirs = node("project://depot/testing", "Run the rig.", "integration test")
    index = index_of(ours, theirs)
    assert shown(index, "how do I run the integration test?", project="shop") == [ours.uri]
    assert shown(index, "how do I run the integration test?", project="depot") == [theirs.uri]
    assert shown(index, "how do I run the integration test of depot?", project="shop")[0] == theirs.uri
    assert set(shown(index, "how do I run the integration test?")) == {ours.uri, theirs.uri}


def test_another_projects_memory_is_found_when_no_other_has_the_term() -> None:
    assert shown(index_of(), "can the robot arm lift 40 kg?", project="shop") == ["project://depot/robots"]


def test_boot_memories_are_never_shown() -> None:
    boot = node("core://soul", "Be calm.", "persona")
    result = ask(index_of(boot), "persona")
    assert result.shown == ()
    assert [(candidate.uri, candidate.withheld) for candidate in result.candidates][:1] == [("core://soul", "boot")]


def test_at_most_three_are_shown_and_the_rest_is_withheld_for_the_limit() -> None:
    many = [node(f"project://shop/copy{n}", "The same.", "flux capacitor") for n in range(5)]
    result = ask(index_of(*many), "flux capacitor")
    assert len(result.shown) == 3
    assert [candidate.withheld for candidate in result.candidates[:5]] == ["", "", "", "limit", "limit"]
    assert len(ask(index_of(*many), "flux capacitor", max_display_items=1).shown) == 1


def test_ties_go_to_priority_and_then_to_the_address() -> None:
    equal = [node(f"project://shop/{name}", "The same.", "flux capacitor", priority=6) for name in ("b", "a", "c")]
    urgent = node("project://shop/z", "The same.", "flux capacitor", priority=5)
    found = shown(index_of(*equal, urgent), "flux capacitor", max_display_items=4)
    assert found == ["project://shop/z", "project://shop/a", "project://shop/b", "project://shop/c"]


def test_priority_breaks_ties_and_never_forces() -> None:
    urgent = node("project://shop/urgent", "Never drop the ledger.", "ledger", priority=0)
    assert shown(index_of(WEBHOOKS, urgent), "is the refund webhook sent once?") == [WEBHOOKS.uri]


def test_the_priority_bonus_is_that_of_the_seed() -> None:
    for priority, bonus in ((0, 0.05), (1, 0.04), (4, 0.01), (5, 0.0), (9, 0.0)):
        found = ask(index_of(node("project://shop/x", "y", "flux", priority=priority)), "flux").candidates[0]
        assert found.weighted.priority == pytest.approx(bonus)


def test_recency_halves_with_the_half_life_and_spares_the_first_priorities() -> None:
    def bonus(updated: str, priority: int, **changed: Value) -> float:
        aged = node("project://shop/x", "y", "flux", priority=priority, updated_at=updated)
        keys = {f"recall.recency.{name}": value for name, value in changed.items()}
        return ask(index_of(aged), "flux", keys).candidates[0].weighted.recency

    assert bonus(TODAY, 2) == pytest.approx(0.04)
    assert bonus("2025-07-05T00:00:00.000Z", 2) == pytest.approx(0.02, abs=1e-4)
    assert bonus("2020-01-01T00:00:00.000Z", 1) == pytest.approx(0.04)
    assert bonus("2020-01-01T00:00:00.000Z", 1, priority_exempt=-1) < 0.001
    assert bonus(TODAY, 2, enabled=False) == 0
    assert bonus("not a time", 2) == 0
    assert bonus("2030-01-01T00:00:00.000Z", 2) == pytest.approx(0.04)


def test_weights_and_threshold_are_those_of_the_settings() -> None:
    index = index_of(WEBHOOKS)
    text = "refund webhook idempotency key"
    found = ask(index, text).candidates[0]
    assert found.weighted.exact == pytest.approx(0.30 * found.raw.exact, abs=1e-4)
    assert found.weighted.glossary_semantic == pytest.approx(0.25 * found.raw.glossary_semantic, abs=1e-4)
    assert found.weighted.dense == pytest.approx(0.30 * found.raw.dense, abs=1e-4)
    assert found.weighted.lexical < 0.03 * found.raw.lexical
    off = ask(index, text, {"recall.weights.w_exact": 0.0}).candidates[0]
    assert off.score == pytest.approx(found.score - found.weighted.exact, abs=1e-6)
    assert ask(index, text, {"recall.display.min_display_score": 0.999}).shown == ()
    assert ask(index, text, min_display_score=0.999).shown == ()


def test_a_longer_prompt_damps_the_words() -> None:
    index = index_of(WEBHOOKS)
    short = ask(index, "refund").candidates[0]
    long = ask(index, "refund for the purple elephant beside an ancient wooden bridge over calm water").candidates[0]
    assert long.weighted.lexical / long.raw.lexical < short.weighted.lexical / short.raw.lexical


def test_only_the_beginning_of_a_long_prompt_is_read_and_that_is_noted() -> None:
    index = index_of(WEBHOOKS)
    late = "z" * 250 + " refund webhook"
    result = ask(index, late)
    assert result.truncated_at == 200
    assert len(result.query) == 200
    assert result.candidates == ()
    assert ask(index, late, {"recall.safety.max_query_chars": 300}).candidates[0].uri == WEBHOOKS.uri
    assert ask(index, "refund").truncated_at is None


def test_metadata_in_front_of_a_prompt_is_not_read() -> None:
    block = 'Sender (untrusted metadata):\n```json\n{"name": "refund webhook idempotency key"}\n```\n'
    assert shown(index_of(WEBHOOKS), f"{block}how is the weather") == []


def test_domain_and_minimum_score_narrow_the_candidates() -> None:
    index = index_of(WEBHOOKS, node("preferences://refunds", "Ask first.", "refund"))
    found = ask(index, "refund", domain="preferences").candidates
    assert [candidate.uri for candidate in found] == ["preferences://refunds"]
    assert all(candidate.score >= 0.5 for candidate in ask(index, "refund", min_score=0.5).candidates)


def test_without_a_model_recall_works_on_words() -> None:
    result = ask(index_of(WEBHOOKS, model=False), "should the refund webhook carry an idempotency key?")
    assert result.shown[0].uri == WEBHOOKS.uri
    assert result.shown[0].raw.dense == 0


@pytest.mark.skipif(MODEL is None, reason="no wordllama wheel for this platform")
def test_meaning_alone_never_reaches_the_threshold() -> None:
    bare = node("project://shop/a1", "Money goes back to the customer through the refund service only.")
    found = ask(index_of(bare), "how do shoppers get reimbursed").candidates
    assert all(candidate.withheld for candidate in found)
