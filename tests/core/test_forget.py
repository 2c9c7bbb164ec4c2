from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from lorehooks.core.errors import InvalidError, NotFoundError
from lorehooks.core.forget import forget, plan_forget
from lorehooks.core.history import history
from lorehooks.core.model import Node, NodePatch, Origin
from lorehooks.core.proposals import pending
from lorehooks.core.rebuild import rebuild, verify
from lorehooks.core.store import Store
from lorehooks.core.uri import parse
from lorehooks.core.vector_cache import SqliteVectorCache
from lorehooks.core.writes import delete, mark_used, move, set_settings, update

Add = Callable[..., Node]
KEY = 'Zebra"Key\n7731'


def bytes_below(folder: Path) -> bytes:
    return b"".join(file.read_bytes() for file in folder.rglob("*") if file.is_file())


def traces(store: Store, *texts: str) -> list[str]:
    """Which of the texts, or of their longest parts without signs, are anywhere below the home, in either case."""
    everything = bytes_below(store.database.path.parent).lower()
    return [text for text in texts if text.lower().encode() in everything]


def addresses(store: Store) -> set[str]:
    return {node.uri for node in store.nodes() if not node.is_boot}


def test_forgetting_an_address_takes_the_memory_everything_below_and_its_whole_history(
    store: Store, add: Add, person: Origin
) -> None:
    add("w://a_b", "zebra one")
    add("w://a_b/kid", "zebra kid", glossary=("zebra_word",))
    add("w://axb", "stays")
    update(store, parse("w://a_b"), NodePatch(content="zebra two"), person)
    assert plan_forget(store, [parse("w://a_b")]).memories == ("w://a_b", "w://a_b/kid")
    result = forget(store, person, [parse("w://a_b")])
    assert result.removed == 3
    assert result.left == ""
    assert [change.after for change in result.changes] == [None, None]
    assert addresses(store) == {"w://axb"}
    assert traces(store, "zebra", "a_b") == []
    with pytest.raises(NotFoundError):
        history(store, parse("w://a_b"))
    assert verify(store).problems == ()


def test_the_file_gives_the_room_of_what_was_forgotten_back(store: Store, add: Add, person: Origin) -> None:
    add("w://a", "zebra " * 50_000)
    forget(store, person, [parse("w://a")])
    assert store.database.query("PRAGMA freelist_count")[0][0] == 0
    assert store.database.path.stat().st_size < 200_000


def test_the_tombstone_says_how_much_went_and_nothing_of_what(store: Store, add: Add, person: Origin) -> None:
    add("w://zebra", "zebra")
    forget(store, person, [parse("w://zebra")])
    (tombstone,) = store.events("WHERE type = 'purge'")
    assert tombstone.data == {"nodes": 1, "removed": 1, "changed": 0}
    assert tombstone.uri is None
    assert tombstone.source == "cli"


def test_numbers_of_forgotten_events_are_never_given_again(store: Store, add: Add, person: Origin) -> None:
    add("w://a")
    last = store.counts()["last_event"]
    forget(store, person, [parse("w://a")])
    add("w://b")
    assert min(event.seq for event in store.events("WHERE uri = 'w://b'")) > last


def test_a_memory_that_holds_the_text_now_goes_wherever_it_holds_it(store: Store, add: Add, person: Origin) -> None:
    add("w://content", f"see {KEY.upper()} there")
    add("w://disclosure", disclosure=f"When {KEY}")
    add("w://words", glossary=("other", " ".join(KEY.split())))
    add("w://zebra", "by its address")
    add("w://stays", "zeb ra")
    assert plan_forget(store, matching=KEY).memories == ("w://content", "w://disclosure")
    forget(store, person, matching=KEY)
    forget(store, person, matching="zebra")
    assert addresses(store) == {"w://stays"}
    assert traces(store, "zebra", "7731") == []
    assert verify(store).problems == ()


def test_a_memory_that_held_the_text_only_earlier_stays_and_loses_those_states(
    store: Store, add: Add, person: Origin
) -> None:
    before = add("w://a", "clean", glossary=("x",))
    update(store, parse("w://a"), NodePatch(content=f"with {KEY}"), person)
    update(store, parse("w://a"), NodePatch(glossary_add=("y",)), person)
    update(store, parse("w://a"), NodePatch(content="clean again"), person)
    update(store, parse("w://a"), NodePatch(priority=4), person)
    now = store.require(parse("w://a"))
    assert plan_forget(store, matching=KEY).earlier == ("w://a",)
    result = forget(store, person, matching=KEY)
    assert (result.removed, result.changed) == (2, 1)
    assert store.require(parse("w://a")) == now
    assert now.created_at == before.created_at
    newest, cleaned, created = history(store, parse("w://a"))
    assert [event.type for event in (newest, cleaned, created)] == ["update", "update", "create"]
    assert cleaned.data["before"] == created.data["after"]
    assert cleaned.data["after"]["content"] == "clean again"
    assert traces(store, "zebra") == []
    assert verify(store).problems == ()


def test_a_memory_that_was_created_with_the_text_keeps_its_age(store: Store, add: Add, person: Origin) -> None:
    before = add("w://a", KEY)
    update(store, parse("w://a"), NodePatch(content="clean"), person)
    for _ in range(2):
        forget(store, person, matching=KEY)
        (created,) = history(store, parse("w://a"))
        assert created.type == "create"
        assert store.require(parse("w://a")).created_at == before.created_at
    update(store, parse("w://a"), NodePatch(content=f"other {KEY}"), person)
    update(store, parse("w://a"), NodePatch(content="clean, too"), person)
    forget(store, person, matching="clean, too")
    assert store.node(parse("w://a")) is None


def test_earlier_addresses_are_forgotten_with_the_use_marks_that_named_them(
    store: Store, add: Add, person: Origin
) -> None:
    node = add("w://zebra")
    add("w://zebra/kid")
    mark_used(store, "q-1", [node], "passed", person)
    move(store, parse("w://zebra"), "w://horse", person)
    forget(store, person, matching="zebra")
    assert addresses(store) == {"w://horse", "w://horse/kid"}
    assert traces(store, "zebra") == []
    assert len(store.database.query("SELECT * FROM uses")) == 1
    assert verify(store).problems == ()


def test_a_deleted_memory_is_forgotten_by_its_last_address_or_by_any_text_it_held(
    store: Store, add: Add, person: Origin
) -> None:
    for name in ("a", "b"):
        add(f"w://{name}", "zebra")
        update(store, parse(f"w://{name}"), NodePatch(content="clean"), person)
        delete(store, parse(f"w://{name}"), person)
    add("w://a", "written again")
    assert plan_forget(store, matching="zebra").deleted == ("w://a", "w://b")
    forget(store, person, [parse("w://b")])
    forget(store, person, matching="zebra")
    assert traces(store, "zebra") == []
    assert store.require(parse("w://a")).content == "written again"
    with pytest.raises(NotFoundError):
        history(store, parse("w://b"))


def test_a_boot_node_is_left_behind_empty_with_its_identity(store: Store, person: Origin, agent: Origin) -> None:
    uri = parse("core://soul")
    identity = store.require(uri).uuid
    update(store, uri, NodePatch(content="zebra"), person)
    update(store, uri, NodePatch(content="zebra proposed"), agent)
    result = forget(store, person, [uri])
    node = store.require(uri)
    assert (node.uuid, node.content) == (identity, "")
    assert result.changes[0].after == node
    assert pending(store) == []
    assert traces(store, "zebra") == []
    assert verify(store).problems == ()


def test_a_parent_of_memories_that_stay_is_left_behind_empty(store: Store, add: Add, person: Origin) -> None:
    add("w://top", "zebra")
    add("w://top/middle", "zebra")
    add("w://top/middle/leaf", "stays")
    add("w://alone", "zebra")
    forget(store, person, matching="zebra")
    assert addresses(store) == {"w://top", "w://top/middle", "w://top/middle/leaf"}
    assert store.require(parse("w://top/middle")).content == ""
    assert [node.uri for node in store.children(parse("w://top/middle"))] == ["w://top/middle/leaf"]
    rebuild(store)
    assert verify(store).problems == ()


def test_proposals_views_settings_sessions_and_vectors_are_purged_as_well(
    store: Store, add: Add, person: Origin, agent: Origin
) -> None:
    node = add("w://a", "clean")
    update(store, parse("core://agent"), NodePatch(content="zebra rules"), agent)
    update(store, parse("core://agent"), NodePatch(content="good rules"), agent)
    set_settings(store, {"embedding.base_url": "https://good.example"}, person)
    set_settings(store, {"embedding.base_url": "https://zebra.example"}, person)
    with store.transaction(Origin("system")) as transaction:
        view: dict[str, object] = {"type": "gist", "text": "about a zebra", "model": "m", "signature": "s"}
        transaction.append("view", view, node_uuid=node.uuid, uri=node.uri)
    mark_used(store, "q", [node], "passed", Origin("use", "codex", "session-zebra"))
    SqliteVectorCache(store.database).put_many("p", {b"k": b"zebra"})
    plan = plan_forget(store, matching="zebra")
    assert (plan.memories, plan.earlier, plan.settings) == ((), ("core://agent", "w://a"), ("embedding.base_url",))
    forget(store, person, matching="zebra")
    assert [proposal.after["content"] for proposal in pending(store)] == ["good rules"]
    assert store.settings["embedding.base_url"] == "https://good.example"
    assert store.refined_views() == {}
    assert len(store.database.query("SELECT * FROM uses")) == 1
    assert traces(store, "zebra") == []
    assert verify(store).problems == ()


def test_words_of_our_own_in_the_log_are_no_reason_to_forget(store: Store, add: Add, person: Origin) -> None:
    node = add("w://a")
    mark_used(store, "q-1", [node], "passed", person)
    set_settings(store, {"recall.weights.w_exact": 0.5}, person)
    for ours in ("recall.weights", "passed", "create", "cli"):
        assert not plan_forget(store, matching=ours)
        assert forget(store, person, matching=ours).removed == 0
    assert store.events("WHERE type = 'purge'") == []


@pytest.mark.parametrize("matching", [" ", "a", "\n x \n"])
def test_a_text_too_short_to_mean_anything_is_refused(store: Store, person: Origin, matching: str) -> None:
    with pytest.raises(InvalidError):
        forget(store, person, matching=matching)


def test_an_address_without_a_trace_is_named_and_nothing_goes(store: Store, add: Add, person: Origin) -> None:
    add("w://a")
    with pytest.raises(NotFoundError, match="w://b"):
        forget(store, person, [parse("w://a"), parse("w://b")])
    assert addresses(store) == {"w://a"}


def test_while_another_program_reads_the_old_state_the_answer_says_that_bytes_are_left(
    database_path: Path, add: Add, store: Store, person: Origin
) -> None:
    add("w://zebra", "zebra")
    reader = sqlite3.connect(database_path)
    reader.execute("BEGIN")
    reader.execute("SELECT count(*) FROM events").fetchone()
    result = forget(store, person, matching="zebra")
    assert store.node(parse("w://zebra")) is None
    assert "repeat" in result.left
    reader.close()
    assert forget(store, person, matching="zebra").left == ""
    assert traces(store, "zebra") == []
