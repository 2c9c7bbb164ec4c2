"""Backups of the public server as they come: other ids, partial history, addresses out of any grammar, broken ones."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lorehooks.core import archive_lines, archive_v1
from lorehooks.core.archive import archive_of
from lorehooks.core.errors import InvalidError
from lorehooks.core.history import history
from lorehooks.core.merge import Wishes
from lorehooks.core.merge_write import merge
from lorehooks.core.rebuild import verify
from lorehooks.core.store import Store, boot_uuid
from lorehooks.core.uri import parse

ROOT = "00000000-0000-0000-0000-000000000000"
AT = "2031-05-04T12:00:00.123456+00:00"


def uuid(number: int) -> str:
    return f"00000000-0000-4000-8000-{number:012d}"


def backup(*paths: tuple[str, str, int], **tables: list[dict[str, Any]]) -> dict[str, Any]:
    """A backup with memories at these `(domain, path, priority)`; ids are texts, as that server's driver writes them."""
    made: dict[str, list[dict[str, Any]]] = {"nodes": [], "memories": [], "edges": [], "paths": []}
    for number, (domain, path, priority) in enumerate(paths, start=1):
        made["nodes"].append({"uuid": uuid(number), "created_at": AT})
        made["memories"].append(
            {
                "id": str(number),
                "node_uuid": uuid(number),
                "content": f"text {number}",
                "deprecated": False,
                "created_at": AT,
            }
        )
        edge = {
            "id": str(number),
            "parent_uuid": ROOT,
            "child_uuid": uuid(number),
            "priority": priority,
            "disclosure": None,
        }
        made["edges"].append({**edge, "created_at": AT})
        made["paths"].append({"domain": domain, "path": path, "edge_id": str(number), "created_at": AT})
    return {"format": "lore-backup-v1", "created_at": AT, "tables": {**made, **tables}, "stats": {}}


def read(document: dict[str, Any]) -> Any:
    return archive_v1.archive_of_backup(json.dumps(document).encode())


def event(number: int, of: int, kind: str, after: dict | None = None, **details: Any) -> dict[str, Any]:
    return {
        "id": str(number), "event_type": kind, "node_uri": f"w://n{of}", "node_uuid": uuid(of), "source": "api:POST /browse/node",
        "session_id": None, "before_snapshot": None, "after_snapshot": after, "details": details,
        "created_at": f"2031-05-04T12:00:{number:02d}.000Z",
    }  # fmt: skip


def test_the_newest_content_counts_and_keywords_come_along():
    document = backup(
        ("w", "a", 3),
        glossary_keywords=[
            {"keyword": "zebra", "node_uuid": uuid(1), "created_at": AT},
            {"keyword": "斑马", "node_uuid": uuid(1)},
        ],
    )
    tables = document["tables"]
    tables["memories"][0] |= {"deprecated": True, "migrated_to": "10"}
    tables["memories"].append(
        {"id": "10", "node_uuid": uuid(1), "content": "newer", "deprecated": False, "created_at": AT}
    )
    tables["memories"].append(
        {"id": "9", "node_uuid": uuid(1), "content": "stale", "deprecated": False, "created_at": AT}
    )
    (node,) = read(document).nodes
    assert node.state == {
        "uri": "w://a",
        "content": "newer",
        "priority": 3,
        "disclosure": "",
        "glossary": ["zebra", "斑马"],
    }
    assert (node.uuid, node.created_at) == (uuid(1), "2031-05-04T12:00:00.123Z")


def test_addresses_are_held_to_the_grammar_and_second_paths_dropped():
    document = backup(("We ird", "A b/Ünï", 1), ("w", "x", -4), ("w", "已", 2), ("w", "a-b", 2), ("w", "a_b", 2))
    document["tables"]["paths"].append({"domain": "z", "path": "alias", "edge_id": "2"})
    document["tables"]["paths"].append({"domain": "z", "path": "orphan", "edge_id": "77"})
    archive = read(document)
    assert [node.uri for node in archive.nodes] == ["w://a_b", "w://x", "we_ird://a_b/n"]
    assert sorted(archive.notes) == [
        "We ird://A b/Ünï becomes we_ird://a_b/n",
        "w://a-b becomes w://a_b",
        "w://a_b would stand at w://a_b, where w://a-b stands, and is passed over",
        "w://x has the priority -4, which becomes 2",
        "w://已 is no address that memory takes, and is passed over",
        "z://alias is a second path of w://x and is passed over",
        "z://orphan leads to no memory and is passed over",
    ]


def test_boot_nodes_fill_those_that_are_here(store: Store):
    document = backup(("core", "agent", 0), ("core", "agent/codex", 0), ("project", "shop", 0))
    done = merge(store, read(document), Wishes())
    assert done.plan.counts == {"new": 1, "filled": 2, "same": 0, "different": 0}
    node = store.require(parse("core://agent"))
    assert (node.uuid, node.content) == (boot_uuid("core://agent"), "text 1")
    assert verify(store).problems == ()


def test_what_its_events_say_becomes_history_and_the_tables_have_the_last_word(store: Store):
    document = backup(
        ("w", "n1", 2),
        ("w", "n2", 2),
        memory_events=[
            event(1, 1, "create", {"content": "first", "priority": 4, "disclosure": "When", "glossary_keywords": ["a"]}, client_type="codex"),
            event(2, 1, "glossary_add", {"keyword": "b"}),
            event(3, 1, "glossary_remove", None, keyword="a"),
            event(4, 1, "update", {"content": "second", "priority": 4, "disclosure": None}),
            event(5, 2, "update", {"content": "its creation was pruned"}),
            event(6, 9, "create", {"content": "of a deleted one"}),
            event(7, 1, "move", {"uri": "w://n1"}),
            event(8, 1, "delete"),
        ],
    )  # fmt: skip
    merge(store, read(document), Wishes())
    events = list(reversed(history(store, parse("w://n1"))))
    assert [one.type for one in events] == ["create", "glossary_add", "glossary_remove", "update", "update"]
    assert [one.data["after"]["glossary"] for one in events] == [["a"], ["a", "b"], ["b"], ["b"], []]
    assert [one.source for one in events][-2:] == ["api:POST /browse/node", "import"]
    assert events[0].client_type == "codex"
    assert store.require(parse("w://n1")).content == "text 1"
    assert [one.type for one in history(store, parse("w://n2"))] == ["update", "create"]
    assert verify(store).problems == ()


def test_its_settings_are_read_in_each_of_their_forms_and_foreign_ones_never_taken(store: Store):
    rows = [
        {"key": "recall.display.max_display_items", "value": {"value": 7}},
        {"key": "recall.display.min_display_score", "value": "0.5"},
        {"key": "backup.webdav.password", "value": {"value": "hunter2"}},
        {"key": "recall.weights.w_exact", "value": {"value": "much"}},
    ]
    archive = read(backup(("w", "a", 2), app_settings=rows))
    assert merge(store, archive, Wishes()).plan.settings[0].taken is False
    assert store.settings.changed == {}
    merge(store, archive, Wishes(settings=True))
    assert store.settings.changed == {"recall.display.max_display_items": 7, "recall.display.min_display_score": 0.5}
    assert b"hunter2" not in store.database.path.read_bytes()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"format": "lore-backup-v2"}, "lore-backup-v1"),
        ({"tables": None}, "no tables"),
        ({"tables": {"nodes": []}}, "no table memories"),
        ({"tables": {"nodes": [1], "memories": [], "edges": [], "paths": []}}, "nodes, row 1"),
    ],
)
def test_what_is_no_backup_is_refused_with_the_place(change, said):
    with pytest.raises(InvalidError, match=said):
        read(backup(("w", "a", 2)) | change)


def test_an_event_that_could_break_the_memory_is_refused(store: Store):
    boot, other = boot_uuid("core://agent"), uuid(1)
    state = {"uri": "core://agent", "content": "x", "priority": 0, "disclosure": "", "glossary": []}
    base = {"seq": 12, "at": AT, "source": "cli", "node_uuid": boot, "uri": "core://agent"}
    elsewhere = {**state, "uri": "w://a"}
    for wrong in (
        {"type": "delete", "data": {"before": state}},
        {"type": "move", "data": {"before": state, "after": elsewhere}},
        {"type": "update", "data": {"before": state, "after": elsewhere}},
        {"type": "create", "data": {}},
        {"type": "explode", "data": {}},
        {"type": "create", "data": {"after": state}, "seq": 0},
        {"type": "create", "data": {"after": state}, "seq": 2**60},
        {"type": "create", "data": {"after": {**state, "uri": "W W"}}},
        {"type": "create", "data": {"after": elsewhere}},
        {"type": "view", "data": {"type": "gist", "text": 5}, "node_uuid": other},
        {"type": "use", "data": {"query_id": 5, "how": "passed"}},
        {"type": "setting", "data": {"key": 1, "value": 2}},
        {"type": "create", "data": {"after": state}, "at": "yesterday"},
    ):
        with pytest.raises(InvalidError):
            archive_of({"events": [base | wrong]})
    with pytest.raises(InvalidError, match="same number"):
        archive_of({"events": [base | {"type": "create", "data": {"after": state}}] * 2})


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.sampled_from([uuid(1), ROOT, "w", "w://a", AT, "create"]),
    lambda below: st.lists(below, max_size=3) | st.dictionaries(st.text(max_size=5), below, max_size=3),
    max_leaves=8,
)  # fmt: skip
spoiled = st.tuples(
    st.sampled_from(["nodes", "memories", "edges", "paths", "glossary_keywords", "memory_events", "app_settings"]),
    st.sampled_from(
        ["id", "uuid", "node_uuid", "child_uuid", "edge_id", "domain", "path", "content", "priority", "disclosure", "keyword",
         "event_type", "after_snapshot", "details", "created_at", "deprecated", "key", "value"]
    ),
    json_values,
)  # fmt: skip


@settings(max_examples=150, deadline=None)
@given(st.lists(spoiled, min_size=1, max_size=4))
def test_a_backup_with_anything_in_it_is_read_or_refused(changes):
    document = backup(
        ("w", "n1", 2),
        ("w", "n2", 2),
        glossary_keywords=[{"keyword": "a", "node_uuid": uuid(1)}],
        memory_events=[event(1, 1, "create", {"content": "x"}), event(2, 1, "update", {"content": "y"})],
        app_settings=[{"key": "recall.display.max_display_items", "value": {"value": 7}}],
    )
    for table, field, value in changes:
        document["tables"][table][0][field] = value
    refusal = None
    try:
        archive = read(document)
    except InvalidError as error:
        refusal = error
    if refusal is None:
        assert archive_of(json.loads(json.dumps({"nodes": [node.state for node in archive.nodes]}))).nodes


@settings(max_examples=150, deadline=None)
@given(st.binary(max_size=60) | json_values.map(lambda value: json.dumps(value).encode()), st.booleans())
def test_any_bytes_are_read_or_refused(data, with_head):
    for reader, head in (
        (archive_lines.archive_of_lines, b'{"lorehooks": "jsonl-1"}\n'),
        (archive_v1.archive_of_backup, b""),
    ):
        try:
            reader(head + data if with_head else data)
        except InvalidError:
            continue


@settings(max_examples=150, deadline=None)
@given(
    st.dictionaries(
        st.sampled_from(["nodes", "events", "settings", "x"]), json_values | st.lists(json_values, max_size=2)
    )
)
def test_any_body_of_an_import_is_read_or_refused(body):
    try:
        archive_of(body)
    except InvalidError:
        return
