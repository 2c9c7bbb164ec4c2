"""`lore init` through the real service of a scratch home."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Iterator

import click
import pytest

from lorehooks.core.home import Home
from lorehooks.hooks import service
from lorehooks.installers import cli

RULES = "## Working rules\n\nTest first.\n\n## Tone\n\nBe brief.\n"
PROJECT = "# Shop\n\nSells things.\n\n## Deploy\n\nRun `make ship`.\n"


@pytest.fixture
def home(tmp_path) -> Iterator[Home]:
    home = Home(tmp_path / "lore")
    yield home
    service.stop(home)


@pytest.fixture
def files(own_world, tmp_path, monkeypatch):
    """A user with rules and a project, as the folder one stands in."""
    project = tmp_path / "shop"
    (project / ".git").mkdir(parents=True)
    (project / "CLAUDE.md").write_text(PROJECT)
    (own_world / ".claude").mkdir()
    (own_world / ".claude" / "CLAUDE.md").write_text(RULES)
    monkeypatch.chdir(project)
    return [project / "CLAUDE.md", own_world / ".claude" / "CLAUDE.md"]


@pytest.fixture
def lore(home, files, capfd, monkeypatch):
    monkeypatch.setenv("LORE_HOME", str(home.root))

    def run(*arguments: str) -> tuple[int, str, str]:
        with io.TextIOWrapper(io.BytesIO(b""), encoding="utf-8") as pipe:
            monkeypatch.setattr(sys, "stdin", pipe)
            code = cli.run(arguments)
        return code, *capfd.readouterr()

    return run


@pytest.fixture
def done(lore):
    def run(*arguments: str):
        code, out, err = lore(*arguments, "--json")
        assert code == 0, out + err
        return json.loads(out)

    return run


def test_everything_found_is_shown_then_taken_and_no_file_is_changed(lore, done, files):
    before = [path.read_bytes() for path in files]
    _, out, _ = lore("init", "--dry-run")
    assert "project://shop/deploy" in out
    assert done("node", "get", "core://agent")["content"] == ""
    assert done("init", "--yes")["taken"] == 4
    assert done("node", "get", "core://agent")["content"] == "## Working rules\n\nTest first."
    assert done("node", "get", "core://soul")["content"] == "## Tone\n\nBe brief."
    assert done("node", "get", "project://shop")["content"] == "Sells things."
    deploy = done("node", "get", "project://shop/deploy")
    assert (deploy["content"], deploy["source"]) == ("Run `make ship`.", "import")
    assert [path.read_bytes() for path in files] == before
    assert done("verify")["ok"] is True
    again = done("init", "--yes")
    assert (again["taken"], {piece["status"] for piece in again["pieces"]}) == (0, {"there"})


def test_rules_that_are_there_are_added_to(lore, done):
    done("node", "update", "core://agent", "Mine.", "--glossary", "kept")
    done("init", "--yes")
    node = done("node", "get", "core://agent")
    assert (node["content"], node["glossary"]) == ("Mine.\n\n## Working rules\n\nTest first.", ["kept"])


def test_a_secret_stays_out_unless_it_is_allowed(lore, done, files):
    files[0].write_text("## Key\n\nthe key is sk-proj-a8Fk29Lq0Zx7Vb3Nn5Tt1Pw\n")
    code, _, err = lore("init", "--yes")
    assert (code, "looks like a secret" in err) == (0, True)
    assert lore("node", "get", "project://shop/key")[0] == cli.NOT_FOUND
    done("init", "--yes", "--allow-secret")
    assert done("node", "get", "project://shop/key")["priority"] == 2


def test_without_a_terminal_it_says_what_to_pass(lore):
    code, _, err = lore("init")
    assert (code, "--dry-run" in err) == (cli.USAGE, True)


def test_a_person_decides_piece_by_piece(home, files, done, capfd, monkeypatch):
    monkeypatch.setenv("LORE_HOME", str(home.root))
    edited = '---\nuri: "project://shop/shipping"\nglossary: ["ship"]\n---\n\nShip it.\n'
    monkeypatch.setattr(click, "edit", lambda *_, **__: edited)

    class Terminal(io.TextIOWrapper):
        def isatty(self) -> bool:
            return True

    monkeypatch.setattr(sys, "stdin", Terminal(io.BytesIO(b"")))
    answers = ["n", "e", "y", "q"]
    monkeypatch.setattr(click, "prompt", lambda *_, **__: answers.pop(0))
    assert cli.run(["init"]) == 0
    out, _ = capfd.readouterr()
    assert "1 of 4" in out
    assert "Taken: 0 pieces into your standing rules, 1 memories." in out
    assert done("node", "get", "project://shop/shipping")["content"] == "Ship it."
    assert done("node", "get", "core://agent")["content"] == ""
