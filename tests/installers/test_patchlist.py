"""dsh's list of patches: our marked rows go in and come out, every other byte stays, and anything unusual is refused."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lorehooks.core.errors import InvalidError
from lorehooks.installers.edits import Append, Remove
from lorehooks.installers.patchlist import BEGIN, END, ROWS, PatchListFormat, inserted, plugin_row
from lorehooks.installers.problem import RefusedError

KIND = PatchListFormat()
NAME = Path("cordis.patch.yml")
ROW = plugin_row(Path("/home/user/.dsh/lorehooks.mjs"), "lorehooks")
MINE = b"# mine\n- id: web\n  disabled: true\n\n- insert:\n    - id: other\n      name: './other.mjs'\n"


def put(content: bytes, row: str = ROW) -> bytes:
    return KIND.apply(content, (Append(ROWS, row),), NAME).content


def take(content: bytes, row: str = ROW) -> bytes:
    return KIND.apply(content, (Remove(ROWS, row),), NAME).content


def test_a_row_follows_those_that_are_there_between_its_marks():
    assert put(MINE).decode() == f"{MINE.decode()}{BEGIN}\n{ROW}{END}\n"
    assert put(b"").decode() == f"{BEGIN}\n{ROW}{END}\n"


def test_a_row_is_put_once_and_another_one_beside_it():
    once = put(MINE)
    assert put(once) == once
    other = plugin_row(Path("/elsewhere/lorehooks.mjs"), "lorehooks")
    both = put(once, other)
    assert KIND.read(both, NAME)["lorehooks"] == [ROW, other]
    assert take(both) == put(MINE, other)


def test_the_way_back_is_given_and_leads_back():
    edited = KIND.apply(MINE, (Append(ROWS, ROW),), NAME)
    assert KIND.apply(edited.content, edited.undo, NAME).content == MINE
    assert KIND.apply(MINE, edited.undo, NAME).content == MINE


def test_an_empty_list_takes_a_row_and_is_one_again():
    template = b"# Your patch layer\n[]\n"
    with_row = put(template)
    assert with_row.decode() == f"# Your patch layer\n{BEGIN}\n{ROW}{END}\n"
    assert KIND.same(KIND.read(take(with_row), NAME), KIND.read(template, NAME))
    assert take(with_row).endswith(b"\n[]\n")


def test_a_list_that_lost_its_last_row_still_is_a_list():
    """dsh refuses to start with a file that holds remarks alone."""
    assert take(put(b"# only a remark\n")) == b"# only a remark\n[]\n"
    assert take(put(b"")) == b""


def test_line_ends_and_a_byte_order_mark_are_kept():
    windows = "\ufeff- id: web\r\n  disabled: true\r\n".encode()
    assert b"\n" not in put(windows).replace(b"\r\n", b"")
    assert KIND.read(put(windows), NAME)["lorehooks"] == [ROW]
    assert take(put(windows)) == windows


def test_a_last_line_without_an_end_gets_one_unless_it_may_count():
    assert put(b"- id: web").startswith(b"- id: web\n# >>>")
    with pytest.raises(RefusedError):
        put(b"- id: web\n  config: |\n    text")


@pytest.mark.parametrize(
    ("content", "line"),
    [
        ("id: web\n", 1),
        ("  - id: web\n", 1),
        ("\t- id: web\n", 1),
        ("[{id: web}]\n", 1),
        ("[\n]\n", 1),
        ("- id: web\n[]\n", 2),
        ("[]\n- id: web\n", 2),
        ("- id: web\n...\n", 2),
        ("- id: web\n---\n- id: other\n", 2),
        ("%YAML 1.2\n---\n- id: web\n", 1),
        ("- id: web\ndisabled: true\n", 2),
        ("- >\nfolded\n", 2),
        ("-id: web\n", 1),
        (f"- id: web\n{BEGIN}\n- insert: []\n", 2),
        (f"- id: web\n{END}\n", 2),
        (f"{BEGIN}\n{BEGIN}\n{END}\n", 2),
        ("- id: 'web\n  disabled: true\n", 3),
        ("- id: web\n  - id: other\n", 2),
        ("- {id: web\n", 2),
        (f"- id: web\n{BEGIN}\n{ROW}{END}\n  disabled: true\n", 7),
        (f"[]\n{BEGIN}\n{ROW}{END}\n", 3),
    ],
)
def test_what_is_not_plainly_one_list_is_refused_with_its_line(content, line):
    with pytest.raises(RefusedError) as refused:
        put(content.encode())
    assert refused.value.line == line


@pytest.mark.parametrize("content", [b"\xff- id: web\n", b"- id: web\r- id: other\r"])
def test_other_bytes_are_refused(content):
    with pytest.raises(RefusedError):
        put(content)


def test_rows_are_counted_by_what_they_put_in():
    nested = "- insert:\n    - id: group\n      group: true\n      config:\n        - {id: lorehooks}\n"
    assert inserted(put(nested.encode()), NAME, "lorehooks") == 2
    assert inserted(b"- id: lorehooks\n  disabled: true\n", NAME, "lorehooks") == 0
    assert inserted(b"- &a\n  insert: [{id: 'lorehooks', name: !!js x}]\n", NAME, "lorehooks") == 1


@pytest.mark.parametrize(
    "content",
    [
        "---\n- id: web\n",
        "--- # mine\n- id: web\n",
        "-\n  id: web\n",
        "- id: web # [] and ---\n  config: |\n    - text\n\n    # text\n# a remark\n- !!js x\n",
        "- id: 'it''s'\n  config: \"a\n    b\"\n",
    ],
)
def test_usual_lists_are_taken(content):
    assert put(content.encode()) == f"{content}{BEGIN}\n{ROW}{END}\n".encode()


LINES = st.sampled_from(
    [
        "- id: web",
        "  disabled: true",
        "- insert:",
        "    - id: other",
        "",
        "# a remark",
        "[]",
        "---",
        "...",
        "name: x",
        "  |",
    ]
)


@given(st.lists(LINES, max_size=8).map(lambda lines: "".join(f"{line}\n" for line in lines).encode()))
def test_every_list_that_is_taken_comes_back(content):
    try:
        edited = put(content)
    except RefusedError:
        return
    before, after = KIND.read(content, NAME), KIND.read(take(edited), NAME)
    assert KIND.same(before, after)
    assert KIND.read(edited, NAME)["lorehooks"] == [ROW]
    if b"[]" not in content and b"- " in content:
        assert take(edited) == content


def test_a_path_that_yaml_cannot_hold_is_refused():
    assert plugin_row(Path('/zoë 김/"it\'s"\\'), "x").endswith('name: "/zoë 김/\\"it\'s\\"\\\\"\n')
    with pytest.raises(InvalidError):
        plugin_row(Path("/a\nb"), "x")
