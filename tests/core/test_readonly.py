"""Looking into a database that somebody else owns: never a stale state, never a changed byte."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from lorehooks.core.errors import NotFoundError, StorageError
from lorehooks.core.model import NodeDraft, Origin
from lorehooks.core.readonly import looking_into
from lorehooks.core.store import Store
from lorehooks.core.writes import create


def uris_in(path: Path) -> list[str]:
    with looking_into(path, missing="no memory yet", hint="lore status") as memory:
        return [row["uri"] for row in memory.execute("SELECT uri FROM nodes WHERE uri LIKE 'w:%'")]


def test_what_a_running_service_has_just_written_is_seen_and_nothing_can_be_changed(store: Store) -> None:
    create(store, NodeDraft("w://a", "in the WAL only"), Origin("cli"))
    assert uris_in(store.database.path) == ["w://a"]
    with (
        pytest.raises(StorageError, match="readonly"),
        looking_into(store.database.path, missing="", hint="") as memory,
    ):
        memory.execute("DELETE FROM nodes")


def test_a_log_that_cannot_be_read_is_an_error_and_not_the_state_before_it(
    readable_folder: Path, without_rights: Callable[[], AbstractContextManager[None]]
) -> None:
    """Opened as a file that never changes, it would show a memory without its last writes."""
    path = readable_folder / "lore.db"
    writer = Store(path)
    create(writer, NodeDraft("w://a", "in the WAL only"), Origin("cli"))
    for file in readable_folder.iterdir():
        file.chmod(0o444)
    Path(f"{path}-wal").chmod(0)
    readable_folder.chmod(0o555)
    with without_rights(), pytest.raises(StorageError, match="cannot be read"):
        uris_in(path)
    readable_folder.chmod(0o755)
    writer.close()


def test_a_file_without_a_log_is_read_where_none_can_be_made(store: Store) -> None:
    create(store, NodeDraft("w://a", "folded into the file"), Origin("cli"))
    path = store.database.path
    store.close()
    assert not Path(f"{path}-wal").exists()
    Path(f"{path}-shm").mkdir()
    assert uris_in(path) == ["w://a"]


def test_no_file_and_no_database_are_told_apart(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match="no memory yet"):
        uris_in(tmp_path / "none.db")
    (tmp_path / "text.db").write_text("no database " * 100)
    with pytest.raises(StorageError, match="cannot be read"):
        uris_in(tmp_path / "text.db")


def test_signs_that_mean_something_in_an_address_are_part_of_the_name(tmp_path: Path) -> None:
    path = tmp_path / "50% off? #1 記憶.db"
    sqlite3.connect(os.fspath(path)).execute("CREATE TABLE nodes (uri TEXT)").connection.close()
    assert uris_in(path) == []
