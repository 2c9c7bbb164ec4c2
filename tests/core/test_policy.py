from __future__ import annotations

from collections.abc import Callable

import pytest

from lorehooks.core import uri as uris
from lorehooks.core.errors import InvalidError, ProtectedBootError, SecretError
from lorehooks.core.model import BOOT_URIS, Node, NodeDraft, NodePatch, Origin
from lorehooks.core.policy import PRIORITY_CAPS, disclosure_warnings
from lorehooks.core.settings import Settings
from lorehooks.core.store import Store
from lorehooks.core.writes import create, delete, move, set_settings, update

Add = Callable[..., Node]
KEY = "AKIAAAAAAAAAAAAAAAAA"


@pytest.mark.parametrize("priority", [0, 1])
def test_a_full_priority_takes_no_further_memory_and_boot_nodes_do_not_count(
    store: Store, add: Add, person: Origin, priority: int
) -> None:
    for number in range(PRIORITY_CAPS[priority]):
        add(f"project://p{number}", priority=priority)
    add("project://other", priority=2)
    with pytest.raises(InvalidError, match="limit"):
        add("project://one_more", priority=priority)
    with pytest.raises(InvalidError, match="limit"):
        update(store, uris.parse("project://other"), NodePatch(priority=priority), person)
    update(store, uris.parse("project://p0"), NodePatch(content="new", priority=priority), person)
    update(store, uris.parse("project://p0"), NodePatch(priority=3), person)
    update(store, uris.parse("project://other"), NodePatch(priority=priority), person)


def test_the_priority_budget_can_be_switched_off(store: Store, add: Add, person: Origin) -> None:
    set_settings(store, {"policy.priority_budget_enabled": False}, person)
    for number in range(PRIORITY_CAPS[0] + 1):
        add(f"project://p{number}", priority=0)


@pytest.mark.parametrize("priority", [-1, True, 1.5, "2", None, 2**70, 10**100])
@pytest.mark.parametrize("address", ["project://shop", "core://agent"])
def test_what_is_no_priority_is_refused_even_for_boot_nodes(
    store: Store, add: Add, person: Origin, address: str, priority: object
) -> None:
    add("project://shop")
    patch = NodePatch(content="x", priority=priority)  # type: ignore[arg-type]
    if priority is not None:
        with pytest.raises(InvalidError, match="priority"):
            update(store, uris.parse(address), patch, person)
    with pytest.raises(InvalidError, match="priority"):
        create(store, NodeDraft("project://other", "x", priority), person)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "disclosure",
    ["When deploying or rolling back", "deploy OR test", "and/or", "部署或者回滚时", "部署或回滚时", "发布以及回滚时",
     "用 A 还是 B 时", "要么部署要么回滚", "deploy或rollback"],
)  # fmt: skip
def test_or_wording_in_a_disclosure_is_warned_about(disclosure: str) -> None:
    assert "OR wording" in disclosure_warnings(disclosure, Settings())[0]


@pytest.mark.parametrize(
    "disclosure",
    ["When working on the order form", "For Oracle and more", "Python 3.11 or later", "whether or not", "coordinator",
     "用户或许需要回滚时", "或多或少相关时", "用户还是想用旧接口时", "修改退款接口时"],
)  # fmt: skip
def test_words_that_only_look_like_or_pass(disclosure: str) -> None:
    assert disclosure_warnings(disclosure, Settings()) == []


def test_a_missing_disclosure_is_warned_about_unless_switched_off(store: Store, person: Origin) -> None:
    assert "No disclosure" in create(store, NodeDraft("project://a", "x", disclosure=" \n"), person).warnings[0]
    set_settings(store, {"policy.disclosure_warning_enabled": False}, person)
    assert create(store, NodeDraft("project://b", "x", glossary=("b",)), person).warnings == ()


def test_an_empty_glossary_is_warned_about(store: Store, person: Origin) -> None:
    assert "No glossary" in create(store, NodeDraft("project://a", "x", disclosure="d"), person).warnings[0]


def test_a_date_in_a_path_is_warned_about_on_create_and_move(store: Store, add: Add, person: Origin) -> None:
    assert (
        "date"
        in create(
            store, NodeDraft("project://fix_2024_05_13", "x", disclosure="d", glossary=("fix",)), person
        ).warnings[0]
    )
    add("project://fix")
    assert "date" in move(store, uris.parse("project://fix"), "project://fix_2023", person).warnings[0]


@pytest.mark.parametrize(
    "draft",
    [NodeDraft("project://a", f"key {KEY}"), NodeDraft("project://a", "x", disclosure=KEY),
     NodeDraft("project://a", "x", glossary=("aws", KEY))],
    ids=["content", "disclosure", "glossary"],
)  # fmt: skip
def test_a_secret_is_refused_with_its_beginning_shown_until_allowed(
    store: Store, person: Origin, draft: NodeDraft
) -> None:
    with pytest.raises(SecretError, match="AKIA…") as refusal:
        create(store, draft, person)
    assert KEY not in str(refusal.value)
    assert store.node(uris.parse("project://a")) is None
    create(store, draft, person, allow_secret=True)


def test_a_secret_that_stands_there_already_does_not_block_another_change(store: Store, person: Origin) -> None:
    create(store, NodeDraft("project://a", f"key {KEY}"), person, allow_secret=True)
    update(store, uris.parse("project://a"), NodePatch(content=f"the key is still {KEY}"), person)
    with pytest.raises(SecretError):
        update(store, uris.parse("project://a"), NodePatch(content=f"{KEY} and password: Tr0ub4dor&3"), person)


@pytest.mark.parametrize("address", BOOT_URIS)
def test_a_boot_node_can_be_edited_but_not_deleted_moved_or_replaced(
    store: Store, add: Add, person: Origin, address: str
) -> None:
    uri = uris.parse(address)
    add("project://shop")
    with pytest.raises(ProtectedBootError):
        delete(store, uri, person)
    with pytest.raises(ProtectedBootError):
        move(store, uri, "project://elsewhere", person)
    with pytest.raises(ProtectedBootError):
        move(store, uris.parse("project://shop"), address, person)
    assert update(store, uri, NodePatch(content="rules"), person).changes[0].after is not None
    assert store.require(uri).content == "rules"


def test_a_memory_below_a_boot_node_is_an_ordinary_one(store: Store, add: Add, person: Origin) -> None:
    add("core://agent/notes")
    move(store, uris.parse("core://agent/notes"), "core://agent/other", person)
    delete(store, uris.parse("core://agent/other"), person)
