"""`lore export`, `lore import`, `lore backup` and `lore restore`, through the real service of a scratch home."""

from __future__ import annotations

import io
import json
import sqlite3
import stat
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from lorehooks.core.home import Home
from lorehooks.hooks import service
from lorehooks.installers import cli

SECRET = "the key is sk-proj-a8Fk29Lq0Zx7Vb3Nn5Tt1Pw"


@pytest.fixture
def homes(tmp_path: Path) -> Iterator[Callable[[str], Home]]:
    """Homes by name; their services end with the test."""
    made: dict[str, Home] = {}

    def home(name: str) -> Home:
        return made.setdefault(name, Home(tmp_path / name))

    yield home
    for one in made.values():
        service.stop(one)


@pytest.fixture
def lore(homes, capfdbinary, monkeypatch, tmp_path):
    """Run a command in a home; answers exit code, stdout and stderr."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str, home: str = "one", stdin: bytes = b"") -> tuple[int, str, str]:
        monkeypatch.setenv("LORE_HOME", str(homes(home).root))
        with io.TextIOWrapper(io.BytesIO(stdin), encoding="utf-8") as pipe:
            monkeypatch.setattr(sys, "stdin", pipe)
            code = cli.run([str(argument) for argument in arguments])
        out, err = capfdbinary.readouterr()
        return code, out.decode(), err.decode()

    return run


@pytest.fixture
def done(lore):
    """Run a command with --json that must succeed; answers its document."""

    def run(*arguments: object, home: str = "one", stdin: bytes = b""):
        code, out, err = lore(*arguments, "--json", home=home, stdin=stdin)
        assert code == 0, out + err
        return json.loads(out)

    return run


def fill(done) -> None:
    done("node", "create", "project://shop", "The shop.\r\n\n---\n中文 \u2028 end", "--disclosure", "When in the shop")
    done("node", "create", "project://shop/cart", "", "--glossary", "cart,购物车", "--priority", "1")
    done("node", "update", "project://shop", "The newer shop.\n")
    done("node", "create", "core://gone", "Deleted later.")
    done("node", "delete", "core://gone", "--yes")
    done("node", "update", "core://agent", "Ask first.")


def tree(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*.md")}


def test_a_tree_of_files_goes_out_and_comes_back_the_same(lore, done, tmp_path):
    fill(done)
    assert done("export", "out")["memories"] == 13
    files = tree(tmp_path / "out")
    assert set(files) == {"core/agent.md", "project/shop.md", "project/shop/cart.md"}
    assert all(stat.S_IMODE(path.stat().st_mode) == 0o600 for path in (tmp_path / "out").rglob("*.md"))
    code, out, _ = lore("import", "out", "--dry-run", home="two")
    assert code == 0
    assert "Would import: 2 new, 1 filled; 3 events." in out
    assert done("node", "ls", home="two")["domains"][-1]["domain"] != "project"
    lore("import", "out", home="two")
    done("export", "again", home="two")
    assert tree(tmp_path / "again") == files
    assert done("verify", home="two")["ok"] is True
    assert done("recall", "购物车", home="two")["candidates"][0]["uri"] == "project://shop/cart"


@pytest.mark.parametrize("form", ["jsonl", "lore-backup"])
def test_the_whole_history_comes_along(lore, done, tmp_path, form):
    fill(done)
    done("export", "file", "--format", form)
    summary = done("import", "file", home="two")
    assert summary["counts"] == {"new": 2, "filled": 1, "same": 10, "different": 0}
    for uri in ("project://shop", "core://gone"):
        events = done("node", "history", uri, home="two")["events"]
        assert events == done("node", "history", uri)["events"]
        assert len(events) == 2
    assert done("verify", home="two")["ok"] is True
    again = done("import", "file", home="two")
    assert (again["events"], again["counts"]["same"]) == (0, 13)


def test_lines_go_through_a_pipe(lore, done):
    fill(done)
    code, out, _ = lore("export", "-", "--format", "jsonl")
    assert code == 0
    kinds = [next(iter(json.loads(line))) for line in out.splitlines()]
    assert (kinds[0], {*kinds}) == ("lorehooks", {"lorehooks", "node", "event"})
    assert done("import", "-", home="two", stdin=out.encode())["counts"]["new"] == 2


def test_what_differs_stays_unless_the_person_says_otherwise(lore, done):
    fill(done)
    done("export", "out")
    done("node", "update", "project://shop", "Mine.")
    code, out, _ = lore("import", "out")
    assert (code, "stays as it is here" in out) == (0, True)
    assert done("node", "get", "project://shop")["content"] == "Mine."
    lore("import", "out", "--keep", "newer")
    assert done("node", "get", "project://shop")["content"] == "Mine."
    lore("import", "out", "--keep", "theirs")
    assert done("node", "get", "project://shop")["content"] == "The newer shop.\n"
    assert done("node", "history", "project://shop")["events"][0]["source"] == "import"


def test_a_file_by_hand_gets_its_parents_and_room_for_its_priority(lore, done, tmp_path):
    folder = tmp_path / "mine"
    folder.mkdir()
    for number in range(7):
        (folder / f"n{number}.md").write_text(f"---\nuri: w://deep/er/n{number}\npriority: 0\n---\nFact {number}.\n")
    (folder / "README.md").write_text("# Not a memory")
    summary = done("import", "mine")
    assert summary["parents"] == ["w://deep", "w://deep/er"]
    assert [one["note"] for one in summary["entries"] if one["note"]] == [
        "priority 0 becomes 1: there is room for 5"
    ] * 2
    assert summary["notes"] == ["README.md has no front matter and is passed over"]
    assert done("node", "get", "w://deep/er/n6")["priority"] == 1
    assert done("verify")["ok"] is True


def test_a_file_with_a_secret_is_refused_whole(lore, done, tmp_path):
    (tmp_path / "a.md").write_text(f"---\nuri: w://a\n---\n{SECRET}\n")
    assert done("import", "a.md", "--dry-run")["secrets"] == ["w://a: api key sk-p…"]
    code, _, err = lore("import", "a.md")
    assert (code, "--allow-secret" in err) == (cli.FAILED, True)
    assert lore("node", "get", "w://a")[0] == cli.NOT_FOUND
    assert done("import", "a.md", "--allow-secret")["counts"]["new"] == 1


def test_settings_of_a_file_are_shown_and_taken_on_demand_only(lore, done):
    fill(done)
    done("config", "set", "recall.display.max_display_items", "5")
    done("export", "file", "--format", "jsonl")
    code, out, err = lore("import", "file", home="two")
    assert (code, "recall.display.max_display_items" in out + err) == (0, True)
    assert done("config", "get", "recall.display.max_display_items", home="two")["value"] == 3
    lore("import", "file", "--settings", home="two")
    assert done("config", "get", "recall.display.max_display_items", home="two")["value"] == 5


def test_an_export_brings_its_folder_up_to_date_and_touches_nothing_else(lore, done, tmp_path):
    fill(done)
    done("export", "out")
    done("node", "delete", "project://shop/cart", "--yes")
    assert done("export", "out")["removed"] == 1
    assert set(tree(tmp_path / "out")) == {"core/agent.md", "project/shop.md"}
    assert not (tmp_path / "out" / "project" / "shop").exists()
    (tmp_path / "out" / "project" / "shop.md").write_text("changed by hand")
    code, _, err = lore("export", "out")
    assert (code, "changed since the last export" in err) == (cli.FAILED, True)
    (tmp_path / "theirs").mkdir()
    (tmp_path / "theirs" / "x").write_text("theirs")
    assert "no export of ours" in lore("export", "theirs")[2]
    assert "exists already" in lore("export", "theirs/x", "--format", "jsonl")[2]
    assert (tmp_path / "theirs" / "x").read_text() == "theirs"


def test_a_part_goes_out_alone(lore, done, tmp_path):
    fill(done)
    assert done("export", "part", "--below", "project://shop/cart")["memories"] == 1
    assert set(tree(tmp_path / "part")) == {"project/shop/cart.md"}
    assert done("import", "part", home="two")["parents"] == ["project://shop"]
    assert lore("export", "none", "--below", "w://none")[0] == cli.NOT_FOUND


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "neither Markdown"),
        (b"# Notes\n", "lore init"),
        (b"{", "no JSON"),
        (b'{"format": "other"}', "lore-backup-v1"),
        (b'{"lorehooks": "jsonl-9"}\n', "jsonl-1"),
        (b'{"lorehooks": "jsonl-1"}\n{"node": {"uri": "w://A b"}}\n', "line 2"),
        (b"[" * 100_000, "neither Markdown"),
        (b'{"a":' * 100_000, "no JSON"),
        (b"SQLite format 3\x00", "lore restore"),
    ],
)
def test_what_cannot_be_taken_is_refused_in_one_line(lore, tmp_path, data, said):
    (tmp_path / "file").write_bytes(data)
    code, _, err = lore("import", "file")
    assert code == cli.FAILED
    assert said in err
    assert err.count("\n") == 1


def test_a_backup_restores_the_memory_of_then_under_a_running_service(lore, done, homes, tmp_path):
    fill(done)
    before = done("node", "history", "project://shop")["events"]
    made = Path(done("backup")["file"])
    assert made.parent == homes("one").backups
    assert stat.S_IMODE(made.stat().st_mode) == 0o600
    done("node", "update", "project://shop", "After.")
    done("node", "create", "core://later", "After.")
    pid = service.status(homes("one")).info.pid
    code, _, err = lore("restore", made, "--json")
    assert (code, "--yes" in err) == (cli.USAGE, False)
    restored = done("restore", made, "--yes")
    now = service.status(homes("one"))
    assert (now.answering, now.info.pid != pid) == (True, True)
    assert done("node", "history", "project://shop")["events"] == before
    assert lore("node", "get", "core://later")[0] == cli.NOT_FOUND
    assert done("verify")["ok"] is True
    former = Path(restored["former"])
    with closing(sqlite3.connect(former)) as memory:
        assert memory.execute("SELECT count(*) FROM nodes WHERE uri = 'core://later'").fetchone() == (1,)
    assert not list(homes("one").root.glob("lore.db.restoring*"))
    last = done("node", "create", "core://next", "x") and done("node", "history", "core://next")["events"][0]["id"]
    with closing(sqlite3.connect(former)) as memory:
        assert last > memory.execute("SELECT max(seq) FROM events").fetchone()[0]
    assert {Path(one["path"]) for one in done("backup", "--list")["backups"]} == {made, former}


def test_a_damaged_or_foreign_backup_is_refused_and_the_memory_stays(lore, done, homes, tmp_path):
    fill(done)
    made = Path(done("backup", tmp_path / "copy.db")["file"])
    raw = bytearray(made.read_bytes())
    half = len(raw) // 2 // 4096 * 4096
    raw[half : half + 4096] = b"\xa5" * 4096
    (tmp_path / "damaged.db").write_bytes(raw)
    (tmp_path / "text.db").write_text("hello")
    for name in ("damaged.db", "text.db"):
        code, out, err = lore("restore", name, "--yes")
        assert (code, out, err.count("\n")) == (cli.FAILED, "", 1)
    assert done("node", "get", "project://shop")["content"] == "The newer shop.\n"
    assert not list(homes("one").root.glob("lore.db.restoring*"))
    assert done("backup", "--list")["backups"] == []


def test_a_backup_whose_tables_contradict_its_log_is_mended_by_the_log(lore, done, tmp_path):
    fill(done)
    made = Path(done("backup", tmp_path / "copy.db")["file"])
    with closing(sqlite3.connect(made)) as copy, copy:
        copy.execute("UPDATE nodes SET content = 'wrong' WHERE uri = 'project://shop'")
    done("restore", made, "--yes")
    assert done("node", "get", "project://shop")["content"] == "The newer shop.\n"
    with closing(sqlite3.connect(made)) as copy, copy:
        copy.execute("UPDATE events SET data = 'no json' WHERE uri = 'project://shop'")
    code, _, err = lore("restore", made, "--yes")
    assert (code, "damaged" in err) == (cli.FAILED, True)


def test_a_backup_restores_into_a_home_that_has_no_memory_and_over_a_damaged_one(lore, done, homes, tmp_path):
    fill(done)
    made = done("backup", tmp_path / "copy.db")["file"]
    assert done("restore", made, home="two")["former"] is None
    assert done("node", "get", "project://shop", home="two")["content"] == "The newer shop.\n"
    service.stop(homes("two"))
    homes("two").database.write_bytes(b"SQLite format 3\x00 and then nothing")
    (homes("two").root / "lore.db-wal").write_bytes(b"of the damaged one")
    restored = done("restore", made, "--yes", home="two")
    assert done("node", "get", "project://shop", home="two")["content"] == "The newer shop.\n"
    assert Path(restored["former"]).read_bytes().endswith(b"nothing")
