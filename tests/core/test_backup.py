"""Whole copies: as of one moment, complete or not there, and only those dropped that were made by themselves."""

from __future__ import annotations

import sqlite3
import stat
import threading
from contextlib import closing
from datetime import UTC, datetime, timedelta

import pytest

from lorehooks.core.backup import AUTOMATIC, automatic_backup, backups_of, check_form, free_name, write_backup
from lorehooks.core.errors import ConflictError, InvalidError, NotFoundError, StorageError
from lorehooks.core.home import Home
from lorehooks.core.model import NodeDraft, Origin
from lorehooks.core.rebuild import verify
from lorehooks.core.store import Store
from lorehooks.core.uri import parse
from lorehooks.core.writes import create, delete

NOON = datetime(2031, 5, 4, 12, tzinfo=UTC)


@pytest.fixture
def home(store: Store) -> Home:
    return Home(store.database.path.parent)


def test_a_copy_is_the_whole_memory_for_its_owner_only(store, home, add):
    add("w://a", "text", glossary=("word",))
    delete(store, parse("w://a"), Origin("cli"))
    add("w://b")
    made = write_backup(home.database, home.root / "elsewhere" / "copy.db")
    assert stat.S_IMODE(made.stat().st_mode) == 0o600
    assert [path.name for path in made.parent.iterdir()] == ["copy.db"]
    check_form(made)
    with closing(Store(made)) as copy:
        assert copy.counts() == store.counts()
        assert copy.events("ORDER BY seq") == store.events("ORDER BY seq")
        assert list(copy.nodes()) == list(store.nodes())
        assert verify(copy).problems == ()


def test_a_copy_is_as_of_one_moment_while_others_write(store, home, add, tmp_path):
    stop = threading.Event()
    wrote = threading.Event()

    def keep_writing() -> None:
        number = 0
        while not stop.is_set():
            create(store, NodeDraft(f"w://n{number}", "x"), Origin("cli"))
            number += 1
            wrote.set()

    writer = threading.Thread(target=keep_writing)
    writer.start()
    try:
        wrote.wait(20)
        made = [write_backup(home.database, tmp_path / f"{number}.db") for number in range(3)]
    finally:
        stop.set()
        writer.join()
    for path in made:
        with closing(Store(path)) as copy:
            assert verify(copy).problems == ()
            names = {node.uri for node in copy.nodes() if not node.is_boot}
            assert names == {f"w://n{number}" for number in range(len(names))}


def test_deleted_bytes_are_in_no_copy(store, home, add, tmp_path):
    with store.database.write() as connection:
        connection.execute("PRAGMA secure_delete = OFF")
        connection.execute("CREATE TABLE scratch (text TEXT)")
        connection.execute("INSERT INTO scratch VALUES (?)", ("zanzibar" * 1000,))
    with store.database.write() as connection:
        connection.execute("DROP TABLE scratch")
    assert b"zanzibar" not in write_backup(home.database, tmp_path / "copy.db").read_bytes()


def test_no_file_is_ever_replaced_and_nothing_half_is_left(store, home, tmp_path):
    taken = tmp_path / "taken.db"
    taken.write_text("mine")
    with pytest.raises(ConflictError):
        write_backup(home.database, taken)
    assert taken.read_text() == "mine"
    (tmp_path / "closed").mkdir(mode=0o500)
    with pytest.raises((StorageError, ConflictError)):
        write_backup(home.database, taken / "below.db")
    with pytest.raises(NotFoundError):
        write_backup(tmp_path / "none.db", tmp_path / "copy.db")
    assert {path.name for path in tmp_path.iterdir()} == {"taken.db", "closed", "home"}


def test_automatic_copies_are_made_when_due_and_only_they_give_way(store, home):
    by_hand = write_backup(home.database, free_name(home, NOON - timedelta(days=99)))
    before = write_backup(home.database, free_name(home, NOON - timedelta(days=98), "before-restore"))
    foreign = home.backups / "lore-mine-auto.db"
    foreign.write_text("mine")
    assert automatic_backup(home, every_hours=0, keep=2, now=NOON) is None
    made = [
        automatic_backup(home, every_hours=24, keep=2, now=NOON + timedelta(hours=hours))
        for hours in (0, 23, 24, 49, 80)
    ]
    assert [path is not None for path in made] == [True, False, True, True, True]
    kept = backups_of(home)
    assert [one.path for one in kept if one.kind == AUTOMATIC] == [made[4], made[3]]
    assert {by_hand, before} <= {one.path for one in kept}
    assert foreign.read_text() == "mine"


def test_copies_of_the_same_second_have_names_of_their_own(store, home):
    names = {write_backup(home.database, free_name(home, NOON)).name for _ in range(3)}
    assert len(names) == 3
    assert len(backups_of(home)) == 3


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "no backup"),
        (b'{"format": "lore-backup-v1"}', "lore import"),
        (b"---\nuri: w://a\n---\n", "lore import"),
        (b"SQLite format 3\x00" + b"\xff" * 5000, "damaged"),
    ],
)
def test_what_is_no_copy_is_refused_in_one_line(tmp_path, content, said):
    file = tmp_path / "file"
    file.write_bytes(content)
    with pytest.raises(InvalidError) as refused:
        check_form(file)
    assert said in str(refused.value)
    assert "\n" not in str(refused.value)


def test_other_and_newer_databases_are_refused(store, home, tmp_path):
    with closing(sqlite3.connect(tmp_path / "other.db")) as other:
        other.execute("CREATE TABLE things (x)")
    with pytest.raises(InvalidError, match="no memory"):
        check_form(tmp_path / "other.db")
    newer = write_backup(home.database, tmp_path / "newer.db")
    with closing(sqlite3.connect(newer)) as copy:
        copy.execute("PRAGMA user_version = 99")
    with pytest.raises(InvalidError, match="newer release"):
        check_form(newer)


@pytest.mark.parametrize("at", [0.3, 0.6, 0.9])
def test_a_damaged_copy_is_refused(store, home, add, tmp_path, at):
    for number in range(40):
        add(f"w://n{number}", "x" * 500)
    made = write_backup(home.database, tmp_path / "copy.db")
    raw = bytearray(made.read_bytes())
    start = int(len(raw) * at) // 4096 * 4096
    raw[start : start + 4096] = b"\xa5" * 4096
    made.write_bytes(raw)
    with pytest.raises(InvalidError, match="damaged"):
        check_form(made)
