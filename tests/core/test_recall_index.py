from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from synthetic import synthetic_nodes, synthetic_prompts

from lorehooks.core.embeddings import NoCache, load_builtin
from lorehooks.core.index import RecallIndex
from lorehooks.core.model import Node, RecallQuery, RecallResult
from lorehooks.core.postings import Postings
from lorehooks.core.recall import recall
from lorehooks.core.settings import Settings
from lorehooks.core.views import rule_views

NOW = datetime(2026, 1, 1, tzinfo=UTC)
MODEL = load_builtin()
NODES = synthetic_nodes(14, seed=3)
OTHERS = [replace(new, uuid=old.uuid) for old, new in zip(NODES, synthetic_nodes(14, seed=4), strict=True)]
PROMPTS = [*synthetic_prompts(6, seed=3), NODES[0].glossary[0], NODES[5].disclosure]


def answers(index: RecallIndex) -> list[RecallResult]:
    index.embed_some(index.pending())
    return [recall(index, RecallQuery(prompt, limit=50), Settings(), NOW) for prompt in PROMPTS]


def built(nodes: list[Node]) -> RecallIndex:
    index = RecallIndex()
    if MODEL is not None:
        index.attach_embedder(MODEL, NoCache())
    for node in nodes:
        index.put(node, rule_views(node))
    return index


@settings(max_examples=25, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 13), st.sampled_from(["old", "new", "gone"])), max_size=30))
def test_a_changed_index_answers_as_one_built_afresh(steps: list[tuple[int, str]]) -> None:
    index = built([])
    held: dict[str, Node] = {}
    for which, step in steps:
        node = OTHERS[which] if step == "new" else NODES[which]
        if step == "gone":
            index.remove(node.uuid)
            held.pop(node.uuid, None)
        else:
            index.put(node, rule_views(node))
            held[node.uuid] = node
    assert len(index) == len(held)
    assert answers(index) == answers(built(sorted(held.values(), key=lambda node: node.uri)))


def test_the_same_question_gets_the_same_answer() -> None:
    index = built(NODES)
    assert answers(index) == answers(index) == answers(built(NODES[::-1]))


def test_a_large_index_answers_as_one_built_in_another_order() -> None:
    nodes = synthetic_nodes(900, seed=8)
    index = built(nodes)
    for node in nodes[::3]:
        index.remove(node.uuid)
        index.put(node, rule_views(node))
    assert answers(index) == answers(built(nodes[::-1]))


def test_removal_leaves_nothing_behind() -> None:
    index = built(NODES)
    for node in NODES:
        index.remove(node.uuid)
    index.remove("never there")
    assert len(index) == 0
    assert all(not answer.candidates for answer in answers(index))
    assert index.pending() == 0


@pytest.mark.skipif(MODEL is None, reason="no wordllama wheel for this platform")
def test_recall_answers_before_the_model_comes_and_better_after() -> None:
    assert MODEL is not None
    index = RecallIndex()
    for node in NODES:
        index.put(node, rule_views(node))
    term = RecallQuery(NODES[0].glossary[0])
    before = recall(index, term, Settings(), NOW)
    assert before.shown[0].uri == NODES[0].uri
    assert before.shown[0].raw.dense == 0
    assert index.pending() == 0 or index.embed_some(3) == 0
    index.attach_embedder(MODEL, NoCache())
    assert index.pending() == 2 * len(NODES)
    assert index.embed_some(5) == 5
    assert index.pending() == 2 * len(NODES) - 5
    index.embed_some(index.pending())
    after = recall(index, term, Settings(), NOW)
    assert after.shown[0].raw.dense > 0
    assert after.shown[0].score > before.shown[0].score


@pytest.mark.skipif(MODEL is None, reason="no wordllama wheel for this platform")
def test_a_memory_written_anew_keeps_the_vectors_of_what_it_still_says() -> None:
    index = built(NODES)
    index.embed_some(index.pending())
    index.put(replace(NODES[0], priority=4), rule_views(NODES[0]))
    assert index.pending() == 0
    assert answers(index) == answers(built([replace(NODES[0], priority=4), *NODES[1:]]))
    gist, question = rule_views(NODES[0])
    index.put(NODES[0], [gist, replace(question, text="What else?")])
    assert index.pending() == 1
    index.put(NODES[0], [gist])
    assert index.pending() == 0
    index.put(NODES[0], [gist, question])
    assert answers(index) == answers(built(NODES))


@given(st.lists(st.integers(0, 199), unique=True), st.integers(1, 200))
def test_a_long_list_of_holders_loses_exactly_what_is_taken_out(gone: list[int], holders: int) -> None:
    postings = Postings()
    for slot in range(holders):
        postings.put(slot, {"key": slot % 15 + 1})
    for slot in gone:
        if slot < holders:
            postings.remove(slot, {"key": slot % 15 + 1})
    left = set(range(holders)) - set(gone)
    assert sorted(postings.get("key").tolist()) == sorted(slot << 8 | slot % 15 + 1 for slot in left)
    if len(left) > 1:
        with pytest.raises(ValueError):
            postings.remove(300, {"key": 1})
