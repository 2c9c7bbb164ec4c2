"""Files of other programs are exchanged whole, through their links, and never over someone else's change."""

from __future__ import annotations

import os
import stat
import threading
import time
from pathlib import Path

import pytest

from lorehooks.installers import files
from lorehooks.installers.problem import ChangedError, RefusedError


@pytest.fixture
def settings(tmp_path: Path) -> Path:
    path = tmp_path / "settings.json"
    path.write_bytes(b"old")
    return path


def exchange(path: Path, content: bytes = b"new") -> None:
    files.replace(files.read(path), content)


def test_a_chain_of_links_stays_and_its_end_is_written(tmp_path: Path):
    (tmp_path / "dot").mkdir()
    target = tmp_path / "dot" / "real.json"
    target.write_bytes(b"old")
    (tmp_path / "dot" / "middle.json").symlink_to("real.json")
    link = tmp_path / "settings.json"
    link.symlink_to("dot/middle.json")
    exchange(link)
    assert link.is_symlink()
    assert (tmp_path / "dot" / "middle.json").readlink() == Path("real.json")
    assert target.read_bytes() == b"new"


def test_a_link_to_nothing_is_refused_with_what_to_do(tmp_path: Path):
    link = tmp_path / "settings.json"
    link.symlink_to("dot/settings.json")
    with pytest.raises(RefusedError, match=r"a link to dot/settings\.json, which is not there") as caught:
        files.read(link)
    assert "remove the link" in caught.value.hint
    assert link.is_symlink()


def test_a_ring_of_links_is_refused(tmp_path: Path):
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    with pytest.raises(RefusedError):
        files.read(tmp_path / "a")


@pytest.mark.parametrize("mode", [0o600, 0o644, 0o664, 0o600 | stat.S_ISVTX])
def test_the_mode_is_kept_whatever_the_umask(settings: Path, mode: int):
    settings.chmod(mode)
    before = os.umask(0o077)
    try:
        exchange(settings)
    finally:
        os.umask(before)
    assert stat.S_IMODE(settings.stat().st_mode) == mode


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_the_owner_is_kept(settings: Path):
    os.chown(settings, 1234, 5678)
    exchange(settings)
    status = settings.stat()
    assert (status.st_uid, status.st_gid) == (1234, 5678)


def test_a_new_file_is_for_its_owner_only_unless_said_otherwise(tmp_path: Path):
    exchange(tmp_path / "deep" / "er" / "new.json")
    assert stat.S_IMODE((tmp_path / "deep" / "er" / "new.json").stat().st_mode) == 0o600


def test_a_read_only_file_is_refused_even_for_root(settings: Path):
    settings.chmod(0o444)
    with pytest.raises(RefusedError, match="read-only") as caught:
        exchange(settings)
    assert caught.value.hint == f"chmod u+w {settings}"
    assert settings.read_bytes() == b"old"


def test_a_file_of_a_package_store_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    store = tmp_path / "store"
    (store / "abc").mkdir(parents=True)
    (store / "abc" / "settings.json").write_bytes(b"old")
    monkeypatch.setattr(files, "STORES", (f"{store}/",))
    link = tmp_path / "settings.json"
    link.symlink_to(store / "abc" / "settings.json")
    with pytest.raises(RefusedError, match="package store"):
        exchange(link)
    assert (store / "abc" / "settings.json").read_bytes() == b"old"


def test_a_file_with_two_names_is_refused(settings: Path):
    settings.with_name("twin.json").hardlink_to(settings)
    with pytest.raises(RefusedError, match="hard link"):
        exchange(settings)


@pytest.mark.parametrize("kind", ["folder", "fifo"])
def test_what_is_no_regular_file_is_refused(tmp_path: Path, kind: str):
    path = tmp_path / "settings.json"
    path.mkdir() if kind == "folder" else os.mkfifo(path)
    with pytest.raises(RefusedError):
        files.read(path)


def test_a_change_between_reading_and_writing_is_not_overwritten(settings: Path):
    seen = files.read(settings)
    settings.write_bytes(b"theirs")
    with pytest.raises(ChangedError):
        files.replace(seen, b"ours")
    assert settings.read_bytes() == b"theirs"
    assert [each.name for each in settings.parent.iterdir()] == ["settings.json"]


def test_a_file_that_appeared_meanwhile_is_not_overwritten(tmp_path: Path):
    seen = files.read(tmp_path / "settings.json")
    (tmp_path / "settings.json").write_bytes(b"theirs")
    with pytest.raises(ChangedError):
        files.replace(seen, b"ours")
    with pytest.raises(ChangedError):
        files.remove(seen)
    assert (tmp_path / "settings.json").read_bytes() == b"theirs"


def test_what_a_killed_run_left_beside_a_file_is_swept_away(settings: Path):
    gone = 2**22 + 1  # above every process id
    left = settings.with_name(f".settings.json.{gone}{files.TEMPORARY}")
    alive = settings.with_name(f".settings.json.1{files.TEMPORARY}")
    left.write_bytes(b"half")
    alive.write_bytes(b"another run")
    exchange(settings)
    assert not left.exists()
    assert alive.exists()


def test_a_file_that_is_being_written_is_read_when_it_is_whole(settings: Path):
    settings.write_bytes(b'{"half')

    def finish() -> None:
        time.sleep(0.15)
        settings.write_bytes(b"{}")

    def act() -> bytes:
        content = files.read(settings).content or b""
        if content != b"{}":
            raise RefusedError(settings, "half written", passing=True)
        return content

    writer = threading.Thread(target=finish)
    writer.start()
    assert files.persist(act) == b"{}"
    writer.join()


def test_folders_that_were_made_go_only_when_empty(tmp_path: Path):
    made = files.make_folders(tmp_path / "a" / "b" / "c")
    (tmp_path / "a" / "theirs").write_bytes(b"")
    files.remove_folders(made)
    assert (tmp_path / "a").is_dir()
    assert not (tmp_path / "a" / "b").exists()
