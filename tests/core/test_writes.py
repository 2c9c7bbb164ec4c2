from __future__ import annotations

import json
import threading
from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lorehooks.core.errors import ConflictError, InvalidError, NotFoundError
from lorehooks.core.history import history
from lorehooks.core.model import BOOT_URIS, Node, NodeDraft, NodePatch, Origin
from lorehooks.core.policy import MAX_KEYWORD
from lorehooks.core.rebuild import verify
from lorehooks.core.store import Store
from lorehooks.core.uri import MAX_LENGTH, parse
from lorehooks.core.writes import clean_keywords, create, delete, mark_used, move, update

Add = Callable[..., Node]


def addresses(store: Store) -> list[str]:
    return [node.uri for node in store.nodes() if node.uri not in BOOT_URIS]


def test_a_memory_is_stored_with_all_its_fields_and_who_wrote_it(store: Store) -> None:
    origin = Origin("mcp:lore_create_node", "codex", "s-9")
    draft = NodeDraft(
        "Project://Shop", "退款 webhooks", 3, " When changing refunds ", ("refund", " 退款 ", "Refund", "")
    )
    result = create(store, draft, origin)
    node = store.require(parse("project://shop"))
    assert (node.content, node.priority, node.disclosure) == ("退款 webhooks", 3, "When changing refunds")
    assert node.glossary == ("refund", "退款")
    assert (node.client_type, node.source, node.uuid) == ("codex", "mcp:lore_create_node", result.uuid)
    assert node.created_at == node.updated_at == node.content_at
    assert result.changes[0].before is None
    assert result.changes[0].after == node
    assert history(store, parse("project://shop"))[0].session_id == "s-9"


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=25)
@given(
    content=st.text(st.characters()),
    keyword=st.text(st.characters(), max_size=MAX_KEYWORD),
    session=st.text(st.characters()),
)
def test_any_text_is_stored_and_what_cannot_be_is_replaced_visibly(
    store: Store, content: str, keyword: str, session: str
) -> None:
    uri = parse("project://odd")
    if store.node(uri) is None:
        create(store, NodeDraft("project://odd", ""), Origin("cli"))
    patch = NodePatch(content=content, disclosure=keyword, glossary=(keyword,))
    update(store, uri, patch, Origin("api:PUT /browse/node", None, session), allow_secret=True)
    stored = store.require(uri).content
    assert len(stored) == len(content)
    assert stored == "".join("\ufffd" if char == "\0" or "\ud800" <= char <= "\udfff" else char for char in content)


def test_half_a_surrogate_pair_and_nul_from_a_host_are_replaced_everywhere(store: Store) -> None:
    odd = json.loads('"deploy \\ud83d \\u0000 key"')
    origin = Origin(f"api:{odd}", "pi", odd)
    create(store, NodeDraft("project://odd", odd, disclosure=odd, glossary=(odd,)), origin)
    node = store.require(parse("project://odd"))
    assert node.content == node.disclosure == node.glossary[0] == "deploy \ufffd \ufffd key"
    assert mark_used(store, odd, [node], "passed", origin) == 1
    assert mark_used(store, odd, [node], "passed", origin) == 0
    assert store.node(parse(f"project://{odd}")) is None
    assert store.node_by_uuid(odd) is None
    assert verify(store).problems == ()


def test_two_memories_cannot_have_one_address(store: Store, add: Add) -> None:
    add("project://shop")
    with pytest.raises(ConflictError) as refusal:
        add("project://shop")
    assert (refusal.value.status, refusal.value.code) == (409, "conflict")


def test_a_parent_must_exist_but_the_first_level_needs_none(store: Store, add: Add) -> None:
    with pytest.raises(InvalidError, match="Parent path not found: project://shop"):
        add("project://shop/api")
    add("project://shop")
    add("project://shop/api")


def test_a_field_larger_than_a_memory_should_be_is_refused(store: Store, person: Origin) -> None:
    for draft in (
        NodeDraft("project://a", "x" * 1_000_001),
        NodeDraft("project://a", "", disclosure="x" * 2_001),
        NodeDraft("project://a", "", glossary=tuple(f"k{n}" for n in range(65))),
        NodeDraft("project://a", "", glossary=("x" * 201,)),
    ):
        with pytest.raises(InvalidError):
            create(store, draft, person)
    assert addresses(store) == []


def test_an_update_changes_only_what_it_names(store: Store, add: Add, person: Origin) -> None:
    before = add("project://shop", "old", priority=4, glossary=("a",))
    result = update(store, parse("project://shop"), NodePatch(disclosure="When shopping"), person)
    after = store.require(parse("project://shop"))
    assert (after.content, after.priority, after.glossary) == ("old", 4, ("a",))
    assert after.disclosure == "When shopping"
    assert after.content_at == before.content_at
    assert (result.changes[0].before, result.changes[0].after) == (before, after)


def test_an_update_that_changes_nothing_writes_nothing(store: Store, add: Add, person: Origin) -> None:
    node = add("project://shop", glossary=("a",))
    events = store.counts()["events"]
    patch = NodePatch(content=node.content, priority=node.priority, glossary_add=("A",), glossary_remove=("zz",))
    assert update(store, parse("project://shop"), patch, person).changes == ()
    assert store.counts()["events"] == events


def test_keywords_are_added_and_removed_whatever_their_case_and_logged_as_such(
    store: Store, add: Add, person: Origin
) -> None:
    add("project://shop", glossary=("Stripe", "refund"))
    update(store, parse("project://shop"), NodePatch(glossary_add=("退款", "STRIPE")), person)
    update(store, parse("project://shop"), NodePatch(glossary_remove=("stripe",)), person)
    assert store.require(parse("project://shop")).glossary == ("refund", "退款")
    removed, added, _ = history(store, parse("project://shop"))
    assert (added.type, added.data["keywords"]) == ("glossary_add", ["退款"])
    assert (removed.type, removed.data["keywords"]) == ("glossary_remove", ["Stripe"])


@given(st.lists(st.text()))
def test_keywords_are_trimmed_without_blanks_or_repeats(keywords: list[str]) -> None:
    cleaned = clean_keywords(keywords)
    assert clean_keywords(cleaned) == cleaned
    assert all(word == word.strip() and word for word in cleaned)
    assert len({word.casefold() for word in cleaned}) == len(cleaned)


def test_a_memory_that_is_not_there_cannot_be_changed(store: Store, person: Origin) -> None:
    for verb in (
        lambda: update(store, parse("project://a"), NodePatch(content="x"), person),
        lambda: delete(store, parse("project://a"), person),
        lambda: delete(store, parse("project://"), person),
        lambda: move(store, parse("project://a"), "project://b", person),
    ):
        with pytest.raises(NotFoundError):
            verb()


def test_deleting_takes_the_subtree_and_nothing_that_only_looks_alike(store: Store, add: Add, person: Origin) -> None:
    for address in ("w://a_b", "w://a_b/kid", "w://a_b/kid/deep", "w://a_b2", "w://axb", "w://axb/kid", "v://a_b"):
        add(address)
    result = delete(store, parse("w://a_b"), person)
    assert addresses(store) == ["v://a_b", "w://a_b2", "w://axb", "w://axb/kid"]
    assert sorted(change.before.uri for change in result.changes if change.before) == [
        "w://a_b", "w://a_b/kid", "w://a_b/kid/deep",
    ]  # fmt: skip


def test_what_a_model_wrote_about_a_memory_goes_with_it(store: Store, add: Add, person: Origin) -> None:
    node = add("w://a")
    view: dict[str, object] = {"type": "gist", "text": "refined", "model": "m", "signature": "s"}
    with store.transaction(person) as transaction:
        transaction.append("view", view, node_uuid=node.uuid, uri=node.uri)
    assert store.refined_views_of(node.uuid)[0][0].text == "refined"
    move(store, parse("w://a"), "w://b", person)
    assert store.refined_views().keys() == {node.uuid}
    delete(store, parse("w://b"), person)
    assert store.refined_views() == {}


def test_moving_takes_the_subtree_along_with_every_identity(store: Store, add: Add, person: Origin) -> None:
    for address in ("w://old", "w://old/v5", "w://old/v5/old", "w://old_5", "w://new", "w://oldx"):
        add(address)
    before = {node.uri: node.uuid for node in store.nodes()}
    result = move(store, parse("w://old"), "w://new/home5", person)
    assert addresses(store) == [
        "w://new", "w://new/home5", "w://new/home5/v5", "w://new/home5/v5/old", "w://old_5", "w://oldx",
    ]  # fmt: skip
    assert store.require(parse("w://new/home5/v5/old")).uuid == before["w://old/v5/old"]
    assert [node.uri for node in store.children(parse("w://new"))] == ["w://new/home5"]
    assert [node.uri for node in store.children(parse("w://"))] == ["w://new", "w://old_5", "w://oldx"]
    assert result.uri == "w://new/home5"
    assert len(result.changes) == 3


def test_a_move_to_a_taken_missing_or_inner_address_is_refused(store: Store, add: Add, person: Origin) -> None:
    add("w://a")
    add("w://b")
    with pytest.raises(ConflictError):
        move(store, parse("w://a"), "w://b", person)
    with pytest.raises(InvalidError, match="Parent path not found"):
        move(store, parse("w://a"), "w://c/d", person)
    for inner in ("w://a", "w://a/b"):
        with pytest.raises(InvalidError, match="inside"):
            move(store, parse("w://a"), inner, person)
    assert addresses(store) == ["w://a", "w://b"]


def test_a_move_that_would_make_an_address_below_too_long_moves_nothing(store: Store, add: Add, person: Origin) -> None:
    add("w://a")
    add("w://a/" + "b" * (MAX_LENGTH - 20))
    with pytest.raises(InvalidError, match="longer"):
        move(store, parse("w://a"), "w://" + "c" * 30, person)
    assert addresses(store)[0] == "w://a"


def test_a_memory_can_move_to_another_domain(store: Store, add: Add, person: Origin) -> None:
    add("w://a")
    add("w://a/b")
    move(store, parse("w://a"), "v://a", person)
    assert store.domains() == [("core", 2), ("preferences", 1), ("v", 1)]


def test_children_come_by_priority_then_address_and_the_recent_ones_by_when_they_were_written(
    store: Store, add: Add, person: Origin
) -> None:
    for name, priority in (("c", 1), ("b", 3), ("a", 3)):
        add(f"w://{name}", priority=priority)
    assert [node.uri for node in store.children(parse("w://"))] == ["w://c", "w://a", "w://b"]
    update(store, parse("w://c"), NodePatch(content="newer"), person)
    update(store, parse("core://agent"), NodePatch(content="newest, but a boot node"), person)
    assert [node.uri for node in store.recent(2)] == ["w://c", "w://a"]
    assert store.child_counts(["w://", "w://a", *(f"x://{n}" for n in range(2000))]) == {"w://": 3}


def test_a_use_counts_once_for_each_query_and_memory(store: Store, add: Add) -> None:
    node, other = add("w://a"), add("w://b")
    origin = Origin("use", "codex", "s-1")
    assert mark_used(store, "q-1", [node, node, other], "filled", origin) == 2
    assert mark_used(store, "q-1", [node], "passed", origin) == 0
    assert mark_used(store, "q-2", [node], "passed", origin) == 1
    rows = store.database.query("SELECT query_id, node_uuid, how, client_type FROM uses ORDER BY 1, 2")
    assert {tuple(row) for row in rows} == {
        ("q-1", node.uuid, "filled", "codex"), ("q-1", other.uuid, "filled", "codex"),
        ("q-2", node.uuid, "passed", "codex"),
    }  # fmt: skip


def test_writers_in_many_threads_lose_nothing_and_readers_see_whole_states(store: Store, person: Origin) -> None:
    wrong: list[object] = []
    done = threading.Event()

    def write(name: str) -> None:
        create(store, NodeDraft(f"w://{name}", "0"), person)
        for number in range(10):
            update(store, parse(f"w://{name}"), NodePatch(content=str(number + 1), disclosure=str(number + 1)), person)

    def read() -> None:
        while not done.is_set():
            wrong.extend(node for node in store.nodes() if node.disclosure and node.content != node.disclosure)

    writers = [threading.Thread(target=write, args=(f"t{n}",)) for n in range(6)]
    readers = [threading.Thread(target=read) for _ in range(2)]
    for thread in (*readers, *writers):
        thread.start()
    for thread in writers:
        thread.join()
    done.set()
    for thread in readers:
        thread.join()
    assert wrong == []
    assert [node.content for node in store.children(parse("w://"))] == ["10"] * 6
    assert verify(store).problems == ()
