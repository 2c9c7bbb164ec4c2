"""Which files of other programs are found, once each, and never written."""

from __future__ import annotations

import json
import re

import pytest

from lorehooks.clients.found_notes import found_notes


@pytest.fixture
def place(own_world, tmp_path):
    """Write a file below HOME or the project; answers what is found from a folder of the project."""
    project = own_world / "work" / "checkout-api"
    (project / ".git").mkdir(parents=True)
    (project / "src").mkdir()

    class Place:
        home = own_world
        root = project

        def write(self, name, text="## Rule\nText.\n"):
            path = own_world / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
            return path

        def found(self, folder=project / "src", **options):
            return {note.name: note for note in found_notes(folder, {"HOME": str(own_world)}, **options)}

    return Place()


def test_files_of_the_project_and_of_the_user_are_found_with_what_they_are_about(place):
    for name in (
        "CLAUDE.md",
        "AGENTS.md",
        "GEMINI.md",
        ".cursor/rules/react-rules.mdc",
        ".cursorrules",
        "src/CLAUDE.local.md",
    ):
        place.write(f"work/checkout-api/{name}", f"{name} text")
    for name in (
        ".claude/CLAUDE.md",
        ".codex/AGENTS.md",
        ".gemini/GEMINI.md",
        ".config/opencode/AGENTS.md",
        "AGENTS.md",
    ):
        place.write(name, f"{name} of the user")
    place.write(".codex/memories/MEMORY.md", "noted")
    place.write(".codex/memories/raw_memories.md", "raw")
    place.write("work/README.md")
    found = place.found()
    assert len(found) == 12
    assert found["~/work/checkout-api/CLAUDE.md"].project == "checkout_api"
    assert found["~/.claude/CLAUDE.md"].scope == "user"
    assert found["~/.codex/AGENTS.md"].client_type == "codex"
    assert found["~/work/checkout-api/.cursor/rules/react-rules.mdc"].title == "react rules"
    assert found["~/.codex/memories/MEMORY.md"].is_memory


def test_what_claude_noted_of_this_project_is_found_and_of_others_on_demand(place):
    mine = re.sub(r"[^A-Za-z0-9]", "-", str(place.root))
    place.write(f".claude/projects/{mine}/memory/db.md", "---\ntype: feedback\n---\nx")
    place.write(f".claude/projects/{mine}/memory/MEMORY.md", "# Index\n- [Db](db.md) — mocks\n")
    place.write(".claude/projects/-far-other/memory/a.md", "x")
    place.write(".claude/projects/-far-other/s.jsonl", "no json\n" + json.dumps({"cwd": "/far/other-thing"}) + "\n")
    assert [note.project for note in place.found().values()] == ["checkout_api"]
    assert sorted(note.project for note in place.found(all_projects=True).values()) == ["checkout_api", "other_thing"]


def test_a_file_under_two_names_is_read_once_and_what_is_no_text_never(place):
    place.write("work/checkout-api/CLAUDE.md")
    (place.root / "AGENTS.md").symlink_to("CLAUDE.md")
    (place.root / "GEMINI.md").symlink_to("GEMINI.md")
    place.write("work/checkout-api/.cursorrules", "a\x00b")
    place.write(".claude/CLAUDE.md", "x" * 500_000)
    (place.home / ".codex").mkdir()
    (place.home / ".codex" / "AGENTS.md").mkdir()
    assert list(place.found()) == ["~/work/checkout-api/CLAUDE.md"]


def test_in_the_home_folder_itself_files_are_the_users(place):
    place.write("CLAUDE.md")
    (note,) = place.found(place.home).values()
    assert note.scope == "user"
