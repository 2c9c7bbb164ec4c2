from __future__ import annotations

from collections.abc import Callable

import pytest

from lorehooks.core.errors import InvalidError, NotFoundError
from lorehooks.core.events import Event
from lorehooks.core.history import history, is_rollback, rollback
from lorehooks.core.model import Node, NodePatch, Origin
from lorehooks.core.store import Store
from lorehooks.core.uri import parse
from lorehooks.core.writes import delete, mark_used, move, update

Add = Callable[..., Node]
SHOP = parse("project://shop")


def kinds(events: list[Event]) -> list[str]:
    return [event.type for event in events]


def test_every_change_is_kept_with_its_state_newest_first(store: Store, add: Add, person: Origin) -> None:
    node = add("project://shop", "one")
    update(store, SHOP, NodePatch(content="two"), person)
    update(store, SHOP, NodePatch(glossary_add=("cart",)), person)
    mark_used(store, "q", [node], "passed", person)
    move(store, SHOP, "project://store", person)
    events = history(store, parse("project://store"))
    assert kinds(events) == ["move", "glossary_add", "update", "create"]
    assert [event.data["after"]["content"] for event in events] == ["two", "two", "two", "one"]
    assert events[2].data["before"]["content"] == "one"


def test_a_limit_keeps_the_newest_events(store: Store, add: Add, person: Origin) -> None:
    add("project://shop", "0")
    for number in range(1, 6):
        update(store, SHOP, NodePatch(content=str(number)), person)
    assert [event.data["after"]["content"] for event in history(store, SHOP, limit=2)] == ["5", "4"]
    assert history(store, SHOP, limit=0) == history(store, SHOP, limit=-1) == []
    assert len(history(store, SHOP, limit=10**30)) == 6


def test_a_deleted_memory_still_has_its_history_at_its_last_address(store: Store, add: Add, person: Origin) -> None:
    add("project://shop", "kept")
    add("project://shop/kid", "kid")
    move(store, SHOP, "project://store", person)
    delete(store, parse("project://store"), person)
    assert kinds(history(store, parse("project://store"))) == ["delete", "move", "create"]
    assert history(store, parse("project://store/kid"))[0].data["before"]["content"] == "kid"
    assert kinds(history(store, SHOP)) == ["delete", "move", "create"]


def test_a_path_that_was_written_again_is_a_new_memory_with_its_own_history(
    store: Store, add: Add, person: Origin
) -> None:
    first = add("project://shop", "first")
    created = history(store, SHOP)[0].seq
    delete(store, SHOP, person)
    second = add("project://shop", "second")
    assert first.uuid != second.uuid
    assert kinds(history(store, SHOP)) == ["create"]
    with pytest.raises(InvalidError, match="another memory"):
        rollback(store, SHOP, created, person)


def test_there_is_no_history_where_nothing_ever_was(store: Store) -> None:
    with pytest.raises(NotFoundError):
        history(store, parse("project://never"))


def test_a_rollback_restores_every_field_but_the_address_as_a_new_update(
    store: Store, add: Add, person: Origin
) -> None:
    add("project://shop", "one", priority=3, disclosure="When one", glossary=("a", "b"))
    target = history(store, SHOP)[0].seq
    update(store, SHOP, NodePatch(content="two", priority=4, disclosure="", glossary=("c",)), person)
    move(store, SHOP, "project://store", person)
    result = rollback(store, parse("project://store"), target, person)
    node = store.require(parse("project://store"))
    assert (node.content, node.priority, node.disclosure, node.glossary) == ("one", 3, "When one", ("a", "b"))
    newest = history(store, parse("project://store"))[0]
    assert (newest.type, newest.data["rollback_from"]) == ("update", target)
    assert is_rollback(newest)
    assert len(result.changes) == 1


def test_rolling_back_an_added_keyword_is_an_update_that_can_be_returned_to(
    store: Store, add: Add, person: Origin
) -> None:
    add("project://shop", glossary=("a",))
    created = history(store, SHOP)[0].seq
    update(store, SHOP, NodePatch(glossary_add=("b",)), person)
    added = history(store, SHOP)[0].seq
    rollback(store, SHOP, created, person)
    undone = history(store, SHOP)[0]
    assert (undone.type, store.require(SHOP).glossary) == ("update", ("a",))
    update(store, SHOP, NodePatch(glossary_add=("c",)), person)
    rollback(store, SHOP, undone.seq, person)
    assert store.require(SHOP).glossary == ("a",)
    with pytest.raises(InvalidError, match="only a create or an update"):
        rollback(store, SHOP, added, person)


def test_a_move_a_delete_and_unknown_events_cannot_be_rolled_back_to(store: Store, add: Add, person: Origin) -> None:
    node = add("project://shop")
    move(store, SHOP, "project://store", person)
    store_uri = parse("project://store")
    moved = history(store, store_uri)[0].seq
    with pytest.raises(InvalidError):
        rollback(store, store_uri, moved, person)
    mark_used(store, "q", [node], "passed", person)
    for seq in (0, -1, 10**6, 10**30, store.counts()["last_event"]):
        with pytest.raises(NotFoundError):
            rollback(store, store_uri, seq, person)
    delete(store, store_uri, person)
    with pytest.raises(NotFoundError):
        rollback(store, store_uri, 1, person)


def test_a_rollback_to_the_present_state_writes_nothing(store: Store, add: Add, person: Origin) -> None:
    add("project://shop")
    seq = history(store, SHOP)[0].seq
    assert rollback(store, SHOP, seq, person).changes == ()
    assert len(history(store, SHOP)) == 1
