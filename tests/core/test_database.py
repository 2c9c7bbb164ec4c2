"""Faults of the file below the memory: held, full, foreign, read-only, newer, opened by many at once."""

from __future__ import annotations

import contextlib
import gc
import json
import os
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from lorehooks.core.database import BUSY_TIMEOUT_MS, Database, Migration
from lorehooks.core.errors import StorageError
from lorehooks.core.model import BOOT_URIS, Node, NodeDraft, NodePatch, Origin
from lorehooks.core.rebuild import verify
from lorehooks.core.store import Store
from lorehooks.core.uri import parse
from lorehooks.core.writes import create, update

Add = Callable[..., Node]
Rights = Callable[[], contextlib.AbstractContextManager[None]]
TABLE = Migration("one table", "CREATE TABLE notes (text TEXT)")


@contextlib.contextmanager
def held_by_another_process(path: Path, lock: str) -> Iterator[None]:
    script = (
        "import sqlite3, sys\n"
        "connection = sqlite3.connect(sys.argv[1], isolation_level=None)\n"
        "connection.execute(f'BEGIN {sys.argv[2]}')\n"
        "print('held', flush=True)\n"
        "sys.stdin.read()\n"
    )
    holder = subprocess.Popen(
        [sys.executable, "-c", script, str(path), lock], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    with holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        yield
        holder.communicate()


@pytest.mark.parametrize("lock", ["IMMEDIATE", "EXCLUSIVE"])
def test_a_locked_file_costs_a_write_its_short_wait_and_reading_nothing(
    store: Store, add: Add, person: Origin, lock: str
) -> None:
    add("w://a", "readable")
    with held_by_another_process(store.database.path, lock):
        started = time.monotonic()
        assert store.require(parse("w://a")).content == "readable"
        assert [node.uri for node in store.recent()] == ["w://a"]
        assert time.monotonic() - started < BUSY_TIMEOUT_MS / 1000
        with pytest.raises(StorageError) as refusal:
            update(store, parse("w://a"), NodePatch(content="new"), person)
        assert refusal.value.code == "database_locked"
        assert BUSY_TIMEOUT_MS / 1000 * 0.8 < time.monotonic() - started < 10
        cold = Store(store.database.path)
        assert cold.require(parse("w://a")).content == "readable"
        cold.close()
    update(store, parse("w://a"), NodePatch(content="new"), person)


def test_a_lock_that_is_let_go_in_time_is_not_noticed(store: Store, add: Add, person: Origin) -> None:
    add("w://a")
    other = sqlite3.connect(store.database.path, isolation_level=None, check_same_thread=False)
    other.execute("BEGIN IMMEDIATE")
    threading.Timer(0.2, lambda: other.execute("COMMIT")).start()
    update(store, parse("w://a"), NodePatch(content="new"), person)
    other.close()


def test_refused_disk_writes_reach_the_writer_as_an_error_and_reading_goes_on(database_path: Path) -> None:
    script = """
import json, resource, sys
from pathlib import Path
from lorehooks.core.errors import StorageError
from lorehooks.core.model import NodeDraft, Origin
from lorehooks.core.rebuild import verify
from lorehooks.core.store import Store
from lorehooks.core.uri import parse
from lorehooks.core.writes import create

store = Store(Path(sys.argv[1]))
limit = store.database.path.with_name("lore.db-wal").stat().st_size + 100_000
resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
written, refusals = [], []
for number in range(200):
    uri = f"w://n{number}"
    try:
        create(store, NodeDraft(uri, "word " * 1000), Origin("cli"))
    except StorageError as error:
        refusals.append(error.code)
        assert store.node(parse(uri)) is None
    else:
        written.append(uri)
        assert store.node(parse(uri)) is not None
readable = [node.uri for node in store.nodes() if node.uri in written]
print(json.dumps({"written": written, "refusals": refusals, "readable": len(readable), "problems": verify(store).problems}))
"""
    child = subprocess.run(
        [sys.executable, "-c", script, str(database_path)], capture_output=True, text=True, check=True, timeout=120
    )
    outcome = json.loads(child.stdout)
    assert set(outcome["refusals"]) == {"disk_refused"}
    assert outcome["written"]
    assert outcome["readable"] == len(outcome["written"])
    assert outcome["problems"] == []
    store = Store(database_path)
    assert {node.uri for node in store.children(parse("w://"))} == set(outcome["written"])
    assert verify(store).problems == ()
    create(store, NodeDraft("w://after", "room again"), Origin("cli"))
    store.close()


@pytest.mark.parametrize(
    "content", [b"not a database at all, only some text" * 100, b"SQLite format 3\0" + b"\xff" * 5000]
)
def test_a_file_that_is_no_database_is_named_and_left_as_it_is(database_path: Path, content: bytes) -> None:
    database_path.parent.mkdir()
    database_path.write_bytes(content)
    with pytest.raises(StorageError, match="damaged") as refusal:
        Store(database_path)
    assert str(database_path) in refusal.value.message
    assert database_path.read_bytes() == content


def test_a_page_that_was_overwritten_is_reported_and_never_a_traceback(
    database_path: Path, store: Store, add: Add
) -> None:
    for number in range(50):
        add(f"w://n{number}", "word " * 300)
    store.close()
    size = database_path.stat().st_size
    with database_path.open("r+b") as file:
        file.seek(size // 2 // 4096 * 4096)
        file.write(b"\xa5" * 4096 * 3)
    try:
        damaged = Store(database_path)
    except StorageError as refusal:
        assert "damaged" in refusal.message  # noqa: PT017  either is right
        return
    assert verify(damaged).problems
    damaged.close()


def test_a_folder_in_place_of_the_file_and_a_file_in_place_of_the_folder_are_plain_errors(tmp_path: Path) -> None:
    (tmp_path / "lore.db").mkdir()
    (tmp_path / "file").write_text("x")
    for path in (tmp_path / "lore.db", tmp_path / "file" / "lore.db"):
        with pytest.raises(StorageError):
            Store(path)


@pytest.mark.parametrize("folder_mode", [0o555, 0o777], ids=["folder read-only", "folder writable"])
@pytest.mark.parametrize("left_by", ["closed", "open", "killed"])
def test_a_file_this_user_may_not_write_is_read_and_a_write_says_so(
    readable_folder: Path, without_rights: Rights, folder_mode: int, left_by: str
) -> None:
    path = readable_folder / "lore.db"
    writer = Store(path)
    create(writer, NodeDraft("w://a", "readable"), Origin("cli"))
    if left_by == "closed":
        writer.close()
    elif left_by == "killed":
        for name in ("lore.db", "lore.db-wal", "lore.db-shm"):
            (readable_folder / f"copy-{name}").write_bytes((readable_folder / name).read_bytes())
        writer.close()
        for name in ("lore.db", "lore.db-wal", "lore.db-shm"):
            (readable_folder / f"copy-{name}").replace(readable_folder / name)
    for file in readable_folder.iterdir():
        file.chmod(0o444)
    readable_folder.chmod(folder_mode)
    with without_rights():
        store = Store(path)
        assert store.database.read_only
        assert store.require(parse("w://a")).content == "readable"
        with pytest.raises(StorageError, match="reading only") as refusal:
            create(store, NodeDraft("w://b", "x"), Origin("cli"))
        assert refusal.value.code == "database_read_only"
        assert verify(store).problems == ()
        store.close()
    readable_folder.chmod(0o755)
    writer.close()


def test_a_file_whose_log_cannot_be_read_is_an_error_and_not_an_old_state(
    readable_folder: Path, without_rights: Rights
) -> None:
    path = readable_folder / "lore.db"
    writer = Store(path)
    path.chmod(0o444)
    readable_folder.chmod(0o555)
    with without_rights():
        if os.access(f"{path}-wal", os.R_OK, effective_ids=True):
            path.with_name("lore.db-wal").chmod(0)
        with pytest.raises(StorageError):
            Store(path)
    readable_folder.chmod(0o755)
    writer.close()


def test_a_file_this_user_may_not_even_read_is_a_plain_error(readable_folder: Path, without_rights: Rights) -> None:
    path = readable_folder / "lore.db"
    Store(path).close()
    path.chmod(0)
    with without_rights(), pytest.raises(StorageError):
        Store(path)


def test_a_database_of_a_newer_release_is_read_and_kept_from_writes(
    database_path: Path, store: Store, add: Add, person: Origin
) -> None:
    add("w://a", "readable")
    store.close()
    with contextlib.closing(sqlite3.connect(database_path)) as newer:
        newer.execute("ALTER TABLE nodes ADD COLUMN mood TEXT")
        newer.execute("PRAGMA user_version = 99")
    old = Store(database_path)
    assert old.database.read_only
    assert old.require(parse("w://a")).content == "readable"
    assert len(list(old.nodes())) == len(BOOT_URIS) + 1
    with pytest.raises(StorageError, match="newer release") as refusal:
        create(old, NodeDraft("w://b", "x"), person)
    assert (refusal.value.code, refusal.value.hint) == ("database_newer", "pip install --upgrade lorehooks")
    old.close()
    with contextlib.closing(sqlite3.connect(database_path)) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (99,)


def test_a_migration_that_fails_halfway_leaves_no_trace(tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    Database(path, [TABLE]).close()
    broken = Migration("broken", "CREATE TABLE more (x); INSERT INTO nowhere VALUES (1)")
    with pytest.raises(StorageError):
        Database(path, [TABLE, Migration("good", "CREATE TABLE good (x)"), broken])
    database = Database(path, [TABLE])
    assert not database.read_only
    assert [row["name"] for row in database.query("SELECT name FROM migrations")] == ["one table"]
    assert {row["name"] for row in database.query("SELECT name FROM sqlite_master")} == {"notes", "migrations"}
    database.close()


def test_migrations_are_applied_in_order_once_and_recorded(tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    Database(path, [TABLE]).close()
    trigger = Migration(
        "a trigger; with semicolons",
        """
        CREATE TABLE log (text TEXT DEFAULT 'a;b');
        CREATE TRIGGER copy AFTER INSERT ON notes BEGIN INSERT INTO log VALUES (new.text); END;
        """,
    )
    for _ in range(2):
        database = Database(path, [TABLE, trigger])
        with database.write() as connection:
            connection.execute("INSERT INTO notes VALUES ('x')")
        database.close()
    database = Database(path, [TABLE, trigger])
    assert [tuple(row) for row in database.query("SELECT version, name FROM migrations")] == [
        (1, "one table"), (2, "a trigger; with semicolons"),
    ]  # fmt: skip
    assert len(database.query("SELECT * FROM log")) == 2
    database.close()


def test_many_programs_may_create_one_memory_at_once(tmp_path: Path) -> None:
    script = (
        "import sys\n"
        "from pathlib import Path\n"
        "from lorehooks.core.store import Store\n"
        "for line in sys.stdin:\n"
        "    Store(Path(line.rstrip())).close()\n"
        "    print('opened', flush=True)\n"
    )
    starters = [
        subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for _ in range(6)
    ]
    paths = [tmp_path / f"home{number}" / "lore.db" for number in range(5)]
    for path in paths:
        for starter in starters:
            assert starter.stdin is not None
            starter.stdin.write(f"{path}\n")
            starter.stdin.flush()
        assert [starter.stdout and starter.stdout.readline() for starter in starters] == ["opened\n"] * len(starters)
    for starter in starters:
        starter.communicate()
    for path in paths:
        store = Store(path)
        assert store.counts() == {"nodes": len(BOOT_URIS), "events": len(BOOT_URIS), "last_event": len(BOOT_URIS)}
        assert verify(store).problems == ()
        store.close()


def test_the_files_are_for_their_owner_only(store: Store) -> None:
    for file in store.database.path.parent.iterdir():
        assert file.stat().st_mode & 0o077 == 0, file
    assert store.database.path.parent.stat().st_mode & 0o077 == 0


def test_an_acknowledged_write_is_on_disk_and_deleted_bytes_are_overwritten(store: Store, add: Add) -> None:
    with store.database.write() as connection:
        pragmas = {name: connection.execute(f"PRAGMA {name}").fetchone()[0] for name in
                   ("journal_mode", "synchronous", "secure_delete", "fullfsync")}  # fmt: skip
    assert pragmas == {"journal_mode": "wal", "synchronous": 2, "secure_delete": 1, "fullfsync": 1}


def test_an_exception_inside_a_write_takes_everything_back(store: Store) -> None:
    before = store.counts()

    def interrupted() -> None:
        with store.transaction(Origin("cli")) as transaction:
            transaction.append("setting", {"key": "x", "value": 1}, node_uuid=None, uri=None)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert store.counts() == before


def test_a_write_inside_a_write_fails_at_once_and_does_not_wait_for_itself(store: Store, person: Origin) -> None:
    with pytest.raises(RuntimeError), store.transaction(person):
        create(store, NodeDraft("w://a", "x"), person)
    create(store, NodeDraft("w://a", "x"), person)


def test_a_reading_connection_cannot_write_by_mistake(store: Store) -> None:
    with pytest.raises(StorageError):
        store.database.query("DELETE FROM events")


def test_threads_that_end_leave_no_connection_open(store: Store) -> None:
    before = _open_files(store)
    for _ in range(20):
        thread = threading.Thread(target=store.counts)
        thread.start()
        thread.join()
    gc.collect()
    assert _open_files(store) <= before + 3  # what one reading thread may hold


def _open_files(store: Store) -> int:
    if not Path("/proc/self/fd").is_dir():
        pytest.skip("open files are counted by /proc")
    prefix = str(store.database.path)
    links = [link for link in Path("/proc/self/fd").iterdir() if link.is_symlink()]
    return sum(str(link.readlink()).startswith(prefix) for link in links)


def test_a_closed_memory_says_so(store: Store, person: Origin) -> None:
    store.close()
    store.close()
    with pytest.raises(StorageError, match="closed"):
        store.counts()
    with pytest.raises(StorageError, match="closed"):
        create(store, NodeDraft("w://a", "x"), person)


def test_a_home_with_spaces_and_signs_of_any_language_works(tmp_path: Path) -> None:
    path = tmp_path / "zoë 金?mode=memory#%41" / "lore.db"
    Store(path).close()
    assert path.stat().st_size > 0
    store = Store(path)
    assert store.counts()["nodes"] == len(BOOT_URIS)
    store.close()


def test_closing_breaks_off_reads_in_other_threads_without_crashing(tmp_path: Path) -> None:
    script = """if True:
        import sys, threading
        from pathlib import Path
        from lorehooks.core.database import Database, Migration
        from lorehooks.core.errors import StorageError

        STEP = Migration("numbers", "CREATE TABLE numbers (n INTEGER)")
        LONG = "SELECT count(*) FROM numbers a, numbers b, numbers c"

        def read(database, started):
            try:
                while True:
                    with database.snapshot() as connection:
                        connection.execute("SELECT n FROM numbers").fetchmany(3)
                    started.release()
                    database.query(LONG)
            except StorageError:
                pass

        for round in range(10):
            database = Database(Path(sys.argv[1]), [STEP])
            with database.write() as connection:
                connection.executemany("INSERT INTO numbers VALUES (?)", [(n,) for n in range(60)])
            started = threading.Semaphore(0)
            threads = [threading.Thread(target=read, args=(database, started)) for _ in range(4)]
            for thread in threads:
                thread.start()
            for _ in threads:
                started.acquire()
            database.close()
            for thread in threads:
                thread.join(30)
                assert not thread.is_alive()
        print("done")
    """
    done = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path / "x.db")], capture_output=True, text=True, check=False, timeout=120
    )
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr
