"""The memory as it was after an event, which replay asks again."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from lorehooks.core.errors import NotFoundError
from lorehooks.core.model import Node, Origin
from lorehooks.core.past import memory_at
from lorehooks.core.readonly import looking_into
from lorehooks.core.store import Store
from lorehooks.core.uri import parse
from lorehooks.core.writes import delete, set_settings


def test_each_moment_has_its_own_memories_and_settings(store: Store, add: Callable[..., Node], person: Origin) -> None:
    add("w://a", "first")
    first = store.last_event()
    set_settings(store, {"recall.display.max_display_items": 7}, person)
    delete(store, parse("w://a"), person)
    with looking_into(store.database.path, missing="", hint="") as log:
        then, now = memory_at(log, first), memory_at(log, store.last_event())
        with pytest.raises(NotFoundError, match="ends before"):
            memory_at(log, store.last_event() + 1)
    assert [node.content for node in then.nodes if node.uri == "w://a"] == ["first"]
    assert [node for node in now.nodes if node.uri == "w://a"] == []
    assert (then.settings.changed, now.settings.changed) == ({}, {"recall.display.max_display_items": 7})
    assert {node.uri for node in now.nodes} == {node.uri for node in store.nodes()}


def test_a_value_that_this_release_does_not_allow_counts_as_not_set_then_as_now(store: Store, person: Origin) -> None:
    """A later release may know wider bounds; recall of today passes such a value over, and so must the recall of then."""
    set_settings(store, {"recall.display.max_display_items": 7}, person)
    with store.database.write() as connection:
        for table, column in (("settings", "value"), ("events", "data")):
            connection.execute(
                f"UPDATE {table} SET {column} = replace({column}, '7', '7000') WHERE {column} LIKE '%7%'"
            )
    store.reload_settings()
    with looking_into(store.database.path, missing="", hint="") as log:
        then = memory_at(log, store.last_event())
    assert then.settings.changed == store.settings.changed == {}
