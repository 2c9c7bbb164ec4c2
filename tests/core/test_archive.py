"""Memories out of one database and into another: nothing is lost on the way, and nothing that comes in is believed blindly."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from lorehooks.core import archive_lines, archive_markdown, archive_v1, backup_v1, frontmatter
from lorehooks.core import uri as uris
from lorehooks.core.archive import Archive, archive_of, as_json
from lorehooks.core.errors import InvalidError, LoreError
from lorehooks.core.events import state_of
from lorehooks.core.history import NODE_EVENTS, rollback
from lorehooks.core.merge import Wishes
from lorehooks.core.merge_write import merge
from lorehooks.core.model import BOOT_URIS, NodeDraft, NodePatch, Origin
from lorehooks.core.policy import PRIORITY_CAPS
from lorehooks.core.proposals import accept, pending, reject
from lorehooks.core.rebuild import verify
from lorehooks.core.store import Store
from lorehooks.core.writes import create, delete, mark_used, move, update

MEMORY_DISK = "/dev/shm" if Path("/dev/shm").is_dir() else None
ODD = [
    "", "\n", "\n\n", "---\n", "a\r\nb\r\n", "\ufeffx", "- x: [y", "中文：冒号\u3000", "\u2028\x85", "\t tab ", "'\"\\", "x\n",
    "---\nuri: other://x\n---\n", "#", "null", "true", "12", "\x01", "😀", " lead and trail ", "<recall>", "\r",
]  # fmt: skip
odd_text = st.sampled_from(ODD) | st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=12
)
PERSON = Origin("cli")
AGENT = Origin("mcp:lore_update_node", "claudecode", "s-1")
quick = settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)


@contextmanager
def scratch_store() -> Iterator[Store]:
    with tempfile.TemporaryDirectory(dir=MEMORY_DISK) as folder, closing(Store(Path(folder) / "lore.db")) as store:
        yield store


def exported(store: Store) -> Archive:
    return archive_v1.archive_of_backup(backup_v1.export(store, created_at="2031-05-04T12:00:00.000Z", release="1"))


def through_lines(archive: Archive) -> Archive:
    return archive_lines.archive_of_lines(b"".join(archive_lines.lines_of(archive, created_at="now", release="1")))


def through_markdown(archive: Archive) -> Archive:
    return archive_markdown.archive_of_files(archive_markdown.files_of(archive))


def through_json(archive: Archive) -> Archive:
    return archive_of(json.loads(json.dumps(as_json(archive))))


def states(store: Store) -> dict[str, dict]:
    return {node.uri: state_of(node) for node in store.nodes()}


def histories(store: Store) -> dict[str, list[tuple]]:
    """Everything the log says of memories, deleted ones too, but for the moment at which boot nodes were born."""
    found: dict[str, list[tuple]] = {}
    for event in store.events(f"WHERE type IN {NODE_EVENTS} ORDER BY seq"):
        if event.type == "create" and event.uri in BOOT_URIS:
            continue
        found.setdefault(event.node_uuid or "", []).append(
            (event.seq, event.type, event.at, event.source, event.client_type, event.session_id, event.uri, event.data)
        )
    return found


segments = st.sampled_from(["a", "b", "c1", "a_b", "x" * 150])
addresses = st.lists(segments, min_size=1, max_size=3).map(lambda parts: uris.Uri("w", "/".join(parts)))
anywhere = addresses | st.sampled_from([uris.parse(text) for text in BOOT_URIS[:5]])
words = st.lists(odd_text.map(lambda text: text[:40]), max_size=3).map(tuple)
verbs = st.one_of(
    st.tuples(st.just("create"), addresses, odd_text, st.integers(0, 3), odd_text, words),
    st.tuples(st.just("update"), anywhere, odd_text, odd_text, words),
    st.tuples(st.just("propose"), anywhere, odd_text),
    st.tuples(st.just("decide"), st.booleans()),
    st.tuples(st.just("move"), addresses, addresses),
    st.tuples(st.just("delete"), addresses),
    st.tuples(st.just("rollback"), anywhere, st.integers(1, 30)),
    st.tuples(st.just("use"), addresses),
)


def perform(store: Store, steps: list[tuple]) -> None:
    """Run verbs; what the memory refuses is refused."""
    for name, *values in steps:
        try:
            match name:
                case "create":
                    uri, content, priority, disclosure, glossary = values
                    create(
                        store, NodeDraft(str(uri), content, priority, disclosure, glossary), PERSON, allow_secret=True
                    )
                case "update":
                    uri, content, disclosure, glossary = values
                    update(store, uri, NodePatch(content, None, disclosure, glossary), PERSON, allow_secret=True)
                case "propose":
                    update(store, values[0], NodePatch(content=values[1]), AGENT, allow_secret=True)
                case "decide":
                    for proposal in pending(store)[:1]:
                        (accept if values[0] else reject)(store, proposal.number, PERSON)
                case "move":
                    move(store, values[0], str(values[1]), PERSON)
                case "delete":
                    delete(store, values[0], PERSON)
                case "rollback":
                    rollback(store, values[0], values[1], PERSON)
                case "use":
                    mark_used(store, "q-1", [store.require(values[0])], "passed", AGENT)
        except LoreError:
            continue


@quick
@given(st.lists(verbs, max_size=14), st.sampled_from([through_lines, through_json, lambda archive: archive]))
def test_a_memory_comes_back_with_its_whole_history(steps, way):
    with scratch_store() as one, scratch_store() as other:
        perform(one, steps)
        waiting = [(proposal.uri, proposal.after) for proposal in pending(one)]
        merge(other, way(exported(one)), Wishes(allow_secret=True))
        assert states(other) == states(one)
        assert histories(other) == histories(one)
        assert [node for node in other.nodes() if not node.is_boot] == [
            node for node in one.nodes() if not node.is_boot
        ]
        assert [(proposal.uri, proposal.after) for proposal in pending(other)] == waiting
        assert verify(other).problems == ()
        again = merge(other, way(exported(one)), Wishes(allow_secret=True))
        assert again.plan.drafts == ()
        assert {entry.kind for entry in again.plan.entries} == {"same"}


@quick
@given(st.lists(verbs, max_size=10))
def test_a_tree_of_markdown_files_comes_back_exactly(steps):
    with scratch_store() as one, scratch_store() as other:
        perform(one, steps)
        files = archive_markdown.files_of(exported(one))
        merge(other, archive_markdown.archive_of_files(files), Wishes(allow_secret=True))
        assert states(other) == states(one)
        assert archive_markdown.files_of(exported(other)) == files
        assert verify(other).problems == ()


@quick
@given(
    st.lists(verbs, max_size=10),
    st.lists(verbs, max_size=10),
    st.sampled_from(["ours", "theirs", "newer"]),
    st.booleans(),
)
def test_any_two_memories_merge_into_a_sound_one_and_lose_nothing(steps, more, keep, with_history):
    with scratch_store() as one, scratch_store() as other:
        perform(one, steps)
        perform(other, more)
        archive = exported(one) if with_history else through_markdown(exported(one))
        before, past = states(other), histories(other)
        done = merge(other, archive, Wishes(keep=keep, allow_secret=True))
        after = states(other)
        assert verify(other).problems == ()
        assert before.keys() <= after.keys() | {change.before.uri for change in done.changes if change.before}
        assert all(list(histories(other)[uuid])[: len(log)] == log for uuid, log in past.items())
        assert all(uris.parse(uri).parent is None or str(uris.parse(uri).parent) in after for uri in after)
        for level, cap in PRIORITY_CAPS.items():
            assert sum(s["priority"] == level and u not in BOOT_URIS for u, s in after.items()) <= cap
        if keep == "ours":
            assert {uri: state for uri, state in before.items() if state["content"]}.items() <= after.items()


@quick
@given(
    st.dictionaries(
        st.from_regex(r"[A-Za-z_][A-Za-z0-9_-]{0,10}", fullmatch=True),
        odd_text | st.lists(odd_text, max_size=3),
        max_size=4,
    ),
    odd_text,
)
def test_what_is_written_in_a_front_matter_is_read_back(fields, body):
    head = frontmatter.read(frontmatter.write(fields, body).encode().decode("utf-8-sig"))
    assert dict(head.fields) == {
        key: value or (value if isinstance(value, str) else []) for key, value in fields.items()
    }
    assert head.body == body


yaml_like = st.lists(
    st.sampled_from(
        ["---", "---\r", "uri: ", "a:", "- ", "  - x", "[", "]", '"', "'", "\\", "#", ": ", "|", ">", "{", "}", "&a", "!!x", "\n", "\r\n", "\ufeff", "x"]
    )
    | st.text(max_size=3),
    max_size=40,
).map("".join)  # fmt: skip


@settings(max_examples=150, deadline=None)
@given(yaml_like)
@example("---\na: " + "[" * 5000 + "\n---\n")
@example("---\na: " + '"' + "\\" * 5001 + "\n---\n")
def test_a_front_matter_is_read_or_refused_with_its_line(text):
    for case in (text, f"---\n{text}\n---\nbody"):
        refusal = None
        try:
            head = frontmatter.read(case)
        except InvalidError as error:
            refusal = error
        if refusal:
            assert refusal.message.startswith("line ")
        else:
            assert all(isinstance(value, str | list) for value in head.fields.values())


@pytest.mark.parametrize(
    ("line", "value"),
    [
        ("a: plain words here", "plain words here"),
        ("a: it's 3:30 # a note", "it's 3:30"),
        ("a: 'it''s: # fine'", "it's: # fine"),
        ('a: "tab \\t \\u4e2d"', "tab \t 中"),
        ("a: [退款, 'b, c', \"d\"]  # list", ["退款", "b, c", "d"]),
        ("a: []", []),
        ("a:\n  - one two\n  # between\n\n  - 'x: y'", ["one two", "x: y"]),
        ("a: -5", "-5"),
        ("a:", ""),
        ("a: ~", ""),
        ("a: 2031-05-04T12:00:00Z", "2031-05-04T12:00:00Z"),
    ],
)
def test_heads_as_people_write_them_are_read(line, value):
    assert frontmatter.read(f"---\n{line}\n---\n").fields["a"] == value


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("a: 1\n---\n", 1),
        ("---\na: 1\n", 1),
        ("---\na: b: c\n---\n", 2),
        ("---\nx: 1\na: |\n  text\n---\n", 3),
        ("---\nx: 1\n\nx: 2\n---\n", 4),
        ("---\na: [x\n---\n", 2),
        ("---\na: {b: c}\n---\n", 2),
        ("---\na: &anchor x\n---\n", 2),
        ("---\na:\n  - [x]\n---\n", 3),
        ("---\nnonsense\n---\n", 2),
    ],
)
def test_what_else_yaml_has_is_refused_with_its_line(text, line):
    with pytest.raises(InvalidError, match=rf"^line {line}: "):
        frontmatter.read(text)


def test_a_file_whose_line_ends_an_editor_changed_is_the_same_memory():
    text = "---\nuri: w://a\n---\n\none\ntwo\n"
    assert archive_markdown.node_of(text.replace("\n", "\r\n"))[0] == archive_markdown.node_of(text)[0]


def test_a_file_by_hand_needs_no_more_than_its_place():
    archive = archive_markdown.archive_of_files(
        {
            "project/shop/cart.md": b"---\nglossary: basket, \xe8\xb4\xad\xe7\x89\xa9\xe8\xbd\xa6\ntags: [x]\n---\nText",
            "README.md": b"# About",
        }
    )
    (node,) = archive.nodes
    assert (node.uri, node.state["content"], node.state["priority"]) == ("project://shop/cart", "Text", 2)
    assert node.state["glossary"] == ["basket", "购物车"]
    assert archive.notes == (
        "README.md has no front matter and is passed over",
        "project/shop/cart.md: tags is no field of a memory and is passed over",
    )


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ({"w/a.md": b"---\npriority: high\n---\n"}, "w/a.md, priority is a whole number"),
        ({"a.md": b"---\npriority: 2\n---\n"}, "a.md, there is no uri"),
        ({"w/A b.md": b"---\n---\n"}, "'A b'|'a b'"),
        ({"w/a.md": b"---\n\xff\n---\n"}, "byte 4 is no UTF-8"),
        ({"w/a.md": b"---\n---\n", "w/b.md": b"---\nuri: w://a\n---\n"}, "address w://a"),
        ({"w/a.md": b"---\ncreated: yesterday\n---\n"}, "no moment"),
    ],
)
def test_a_tree_that_cannot_be_taken_is_refused_with_its_file(files, said):
    with pytest.raises(InvalidError, match=said):
        archive_markdown.archive_of_files(files)


def test_files_of_long_paths_have_names_that_every_disk_takes():
    uri = "w://" + "x" * 390
    assert max(map(len, archive_markdown.path_of(uri).split("/"))) < 200
    assert archive_markdown.path_of(uri) != archive_markdown.path_of(uri + "y")
