from __future__ import annotations

from collections.abc import Callable

import pytest

from lorehooks.core import uri as uris
from lorehooks.core.forget import forget
from lorehooks.core.history import history
from lorehooks.core.model import Node, NodePatch, Origin, ViewType
from lorehooks.core.rebuild import rebuild, verify
from lorehooks.core.refine import is_refined, keep_views, unrefined
from lorehooks.core.store import Store
from lorehooks.core.writes import delete, move, update

PERSON = Origin("cli")
VIEWS: dict[ViewType, str] = {"gist": "It says so.", "question": "What?\nWhen?\nWho?"}
Add = Callable[..., Node]


def now(store: Store, node: Node) -> Node:
    found = store.node_by_uuid(node.uuid)
    assert found is not None
    return found


def test_memories_wait_for_a_model_until_it_has_written_both_views(store: Store, add: Add) -> None:
    first, second = add("w://a"), add("w://b")
    add("w://empty", content="  ")
    assert unrefined(store) == [second.uuid, first.uuid]
    assert keep_views(store, second, VIEWS, "some-model")
    assert unrefined(store) == [first.uuid]
    assert is_refined(store, second)
    assert keep_views(store, first, {"gist": "Only this."}, "some-model")
    assert not is_refined(store, first)
    assert unrefined(store) == [first.uuid]


@pytest.mark.parametrize("patch", [NodePatch(content="new"), NodePatch(disclosure="new"), NodePatch(glossary=("n",))])
def test_a_changed_memory_waits_again_and_late_views_of_the_old_one_are_not_kept(
    store: Store, add: Add, patch: NodePatch
) -> None:
    old = add("w://a")
    keep_views(store, old, VIEWS, "some-model")
    update(store, uris.parse("w://a"), patch, PERSON)
    assert unrefined(store) == [old.uuid]
    assert not keep_views(store, old, VIEWS, "some-model")
    assert unrefined(store) == [old.uuid]
    assert keep_views(store, now(store, old), VIEWS, "some-model")
    assert unrefined(store) == []


def test_what_does_not_feed_the_views_asks_for_none(store: Store, add: Add) -> None:
    node = add("w://a")
    keep_views(store, node, VIEWS, "some-model")
    update(store, uris.parse("w://a"), NodePatch(priority=4), PERSON)
    assert unrefined(store) == []


def test_views_of_a_memory_that_is_gone_are_not_kept(store: Store, add: Add) -> None:
    gone, forgotten = add("w://a"), add("w://b")
    delete(store, uris.parse("w://a"), PERSON)
    forget(store, PERSON, [uris.parse("w://b")])
    events = store.last_event()
    assert not keep_views(store, gone, VIEWS, "some-model")
    assert not keep_views(store, forgotten, VIEWS, "some-model")
    assert store.last_event() == events


def test_views_follow_from_the_log_and_are_no_part_of_the_history(store: Store, add: Add) -> None:
    node = add("w://a")
    keep_views(store, node, VIEWS, "some-model")
    rebuild(store)
    assert {view.type: (view.text, view.model) for view, _ in store.refined_views_of(node.uuid)} == {
        "gist": ("It says so.", "some-model"),
        "question": ("What?\nWhen?\nWho?", "some-model"),
    }
    assert verify(store).problems == ()
    assert [event.type for event in history(store, uris.parse("w://a"))] == ["create"]


def test_a_moved_memory_waits_since_its_address_is_part_of_what_it_says(store: Store, add: Add) -> None:
    node = add("w://a")
    keep_views(store, node, VIEWS, "some-model")
    move(store, uris.parse("w://a"), "w://b", PERSON)
    assert unrefined(store) == [node.uuid]
