"""Other programs' rule files, cut into notes: no word is lost, and each note goes where it belongs."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lorehooks.core.archive import read_state
from lorehooks.core.proposed_notes import Note, pieces_of, settled
from lorehooks.core.sections import LONG, sections, strip_head

PROJECT = """# Checkout API

Payments for the shop.

## Testing

Run `make test` before a commit. Never mock the `ledger`.

```sh
# not a heading
make test
```

## 部署

上线前先跑冒烟测试。

## Empty

<!-- a note to self
## Hidden
-->
@docs/more.md
"""


def test_a_file_is_cut_at_its_second_level_headings():
    found = sections(PROJECT)
    assert [section.headings for section in found] == [(), ("Testing",), ("部署",)]
    assert found[0].text == "Payments for the shop."
    assert "# not a heading" in found[1].text


def test_a_long_section_is_cut_at_its_own_headings():
    text = f"## Style\n\nIntro.\n\n### Python\n\n{'p ' * LONG}\n\n### SQL\n\nShort.\n"
    assert [section.headings for section in sections(text)] == [("Style",), ("Style", "Python"), ("Style", "SQL")]


def test_a_file_of_titles_only_is_cut_at_them():
    assert [section.headings for section in sections("# One\na\n# Two\nb\n")] == [("One",), ("Two",)]


@given(st.lists(st.tuples(st.integers(0, 4), st.booleans()), max_size=25))
def test_every_line_of_a_text_stands_in_exactly_one_note(parts):
    """Each part is a heading of some level (0 is none) with a line below it, sometimes too long to stay in one piece."""
    lines = [f"line{number}{' x' * LONG if is_long else ''}" for number, (_, is_long) in enumerate(parts)]
    text = "\n\n".join(
        f"{'#' * level} Heading {number}\n{line}" if level else line
        for number, ((level, _), line) in enumerate(zip(parts, lines, strict=True))
    )
    kept = [line for section in sections(text) for line in section.text.split("\n") if line.startswith("line")]
    assert kept == lines


@given(st.text(max_size=300))
def test_any_text_gives_pieces_that_memory_can_take(text):
    for scope, project in (("project", "shop"), ("user", "")):
        for piece in pieces_of(Note("~/x.md", text, scope, project, "claudecode")):
            assert read_state(piece.state, "it")["content"] == piece.state["content"]


def test_notes_of_a_project_become_memories_below_it():
    pieces = {
        piece.heading: piece.state for piece in pieces_of(Note("~/x/CLAUDE.md", PROJECT, "project", "checkout_api"))
    }
    assert pieces[""]["uri"] == "project://checkout_api"
    testing = pieces["Testing"]
    assert testing["uri"] == "project://checkout_api/testing"
    assert testing["disclosure"] == "When working on testing in checkout api"
    assert testing["glossary"][:3] == ["testing", "make test", "ledger"]
    assert testing["priority"] == 2
    assert pieces["部署"]["disclosure"] == "在 checkout api 里处理部署时"
    assert pieces["部署"]["uri"].startswith("project://checkout_api/")
    assert "部署" in pieces["部署"]["glossary"]


@pytest.mark.parametrize(
    ("heading", "text", "uri"),
    [
        ("Working rules", "Run the tests first.", "core://agent"),
        ("Tone", "Be brief.", "core://soul"),
        ("语气", "简洁。", "core://soul"),
        ("Code style and tone of commits", "Small.", "core://agent"),
        ("About me", "I live in Oslo.", "preferences://user"),
        ("Plan mode", "Use plan mode for big changes.", "core://agent/claudecode"),
    ],
)
def test_rules_of_the_user_go_to_the_fixed_boot_node_they_are_about(heading, text, uri):
    (piece,) = pieces_of(Note("~/.claude/CLAUDE.md", f"## {heading}\n{text}\n", "user", "", "claudecode"))
    assert (piece.state["uri"], piece.is_boot) == (uri, True)
    assert piece.state["content"] == f"## {heading}\n\n{text}"


def test_a_note_that_an_agent_made_is_one_memory_and_its_head_says_when_it_matters():
    text = "---\nname: db_mocks\ndescription: Integration tests hit a real database\ntype: feedback\n---\n\n# Rule\n\nNo mocks.\n"
    (piece,) = pieces_of(Note("~/m/db_mocks.md", text, "project", "shop", "claudecode", is_memory=True))
    assert piece.state["uri"] == "project://shop/db_mocks"
    assert piece.state["disclosure"] == "When it is about: Integration tests hit a real database"
    assert piece.state["content"] == "# Rule\n\nNo mocks."
    (about,) = pieces_of(Note("~/m/u.md", text.replace("feedback", "user"), "project", "shop", is_memory=True))
    assert about.state["uri"] == "preferences://user"


def test_a_rule_for_some_files_matters_when_those_change():
    text = "---\ndescription:\nglobs: src/**/*.tsx\nalwaysApply: false\n---\nUse hooks.\n"
    (piece,) = pieces_of(Note("x/.cursor/rules/react.mdc", text, "project", "shop", title="react"))
    assert (piece.state["uri"], piece.state["disclosure"]) == (
        "project://shop/react",
        "When changing files that match src/**/*.tsx",
    )


def test_heads_of_any_kind_are_stripped_and_never_refused():
    assert strip_head("---\na: [1, {b}]\n  c: 2\n---\nbody") == ({"a": "[1, {b}]", "c": "2"}, "body")
    assert strip_head("---\nno end") == ({}, "---\nno end")


def test_what_is_there_is_known_what_is_taken_gets_a_number_and_what_is_secret_is_marked():
    note = Note("x", PROJECT, "project", "checkout_api")
    there = {
        "project://checkout_api": "Other.",
        "core://y": "上线前先跑冒烟测试。\n",
        "project://checkout_api/testing": "Mine.",
    }
    found = settled([*pieces_of(note), *pieces_of(note)], there)
    assert [(piece.state["uri"].removeprefix("project://checkout_api"), piece.status) for piece in found[:2]] == [
        ("/notes", "new"),
        ("/testing_2", "new"),
    ]
    assert [piece.status for piece in found[2:]] == ["there"]
    secret = Note("x", "## Key\nthe key is sk-proj-a8Fk29Lq0Zx7Vb3Nn5Tt1Pw\n", "project", "shop")
    assert settled(pieces_of(secret), {})[0].status == "secret"
    rule = pieces_of(Note("~/.claude/CLAUDE.md", "## Rules\nTest first.\n", "user"))
    assert settled(rule, {"core://agent": "Before.\n\n## Rules\n\nTest first.\n\nAfter."})[0].status == "there"


def test_an_empty_memory_made_to_hold_others_is_free():
    (piece,) = settled(pieces_of(Note("x", "Intro.", "project", "shop")), {"project://shop": ""})
    assert piece.state["uri"] == "project://shop"
