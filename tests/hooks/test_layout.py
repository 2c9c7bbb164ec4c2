"""What a home is filled with, and that doing it again changes nothing."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from lorehooks.core.errors import StorageError
from lorehooks.core.home import Home
from lorehooks.hooks import layout

HOOKS = Path(layout.__file__).parent


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "Ann Lee's 家" / ".lore")


def snapshot(home: Home) -> dict[str, tuple[int, int]]:
    return {
        str(path.relative_to(home.root)): (path.lstat().st_mtime_ns, path.lstat().st_ino)
        for path in home.root.rglob("*")
        if not path.is_dir()
    }


def test_home_holds_what_runtimes_start(home: Home) -> None:
    layout.lay(home)
    assert (home.bin / "hook.py").read_bytes() == (HOOKS / "hook.py").read_bytes()
    assert (home.bin / "bridge.py").read_bytes() == (HOOKS / "bridge.py").read_bytes()
    assert os.access(home.bin / "service", os.X_OK)
    assert layout.environment_of(home) == sys.prefix
    assert len((home.root / "README.txt").read_text().splitlines()) == 5
    assert (home.bin / "tools" / "claudecode.json").exists()


def test_nothing_in_it_is_for_others(home: Home) -> None:
    layout.lay(home)
    open_to_others = [
        path
        for path in (home.root, *home.root.rglob("*"))
        if not path.is_symlink() and stat.S_IMODE(path.stat().st_mode) & 0o077
    ]
    assert open_to_others == []


def test_python_is_the_base_interpreter_and_no_script(home: Home) -> None:
    layout.lay(home)
    link = home.bin / "python"
    assert link.is_symlink()
    assert Path(sys.prefix) not in link.readlink().parents, "it would break when the environment goes"
    assert link.resolve().read_bytes()[:2] != b"#!"
    assert subprocess.run([link, "-I", "-S", "-c", "import _socket"], check=False).returncode == 0


def test_laying_twice_touches_nothing(home: Home) -> None:
    layout.lay(home)
    before = snapshot(home)
    layout.lay(home)
    assert snapshot(home) == before


def test_changed_files_are_put_right(home: Home) -> None:
    layout.lay(home)
    (home.bin / "hook.py").write_text("broken")
    (home.bin / "service").chmod(0o600)
    (home.bin / "python").unlink()
    (home.bin / "bridge.py").unlink()
    (home.bin / "bridge.py").symlink_to("/nowhere")
    layout.lay(home)
    assert (home.bin / "hook.py").read_bytes() == (HOOKS / "hook.py").read_bytes()
    assert os.access(home.bin / "service", os.X_OK)
    assert (home.bin / "python").exists()
    assert not (home.bin / "bridge.py").is_symlink()


def test_upgrade_points_to_the_other_environment(home: Home, tmp_path: Path) -> None:
    layout.lay(home)
    hook = snapshot(home)["bin/hook.py"]
    other = tmp_path / "it's another"
    layout.lay(home, other)
    assert layout.environment_of(home) == str(other)
    assert snapshot(home)["bin/hook.py"] == hook


def test_service_script_finds_home_and_environment_whatever_their_names(home: Home, tmp_path: Path) -> None:
    environment = tmp_path / "it's $HOME `x` 家"
    (environment / "bin").mkdir(parents=True)
    (environment / "bin" / "python").write_text('#!/bin/sh\necho "$LORE_HOME|$*|$PWD"\n')
    (environment / "bin" / "python").chmod(0o700)
    layout.lay(home, environment)
    for cwd, command in ((home.run, "../bin/service"), (tmp_path, str(home.bin / "service"))):
        done = subprocess.run([command, "--ready-fd", "3"], cwd=cwd, capture_output=True, text=True, check=True)
        root = home.root.resolve()
        assert done.stdout == f"{root}|-P -m lorehooks.hooks.service --ready-fd 3|{root}\n"


def fake_interpreter(path: Path, text: str) -> Path:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o700)
    return path


def test_shims_and_stubs_are_passed_over(home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shim = fake_interpreter(tmp_path / "python3", 'exec "$REAL" "$@"')
    real = sys._base_executable
    monkeypatch.setattr(sys, "_base_executable", str(shim))
    layout.lay(home)
    assert (home.bin / "python").readlink() != shim
    assert (home.bin / "python").resolve() == Path(real).resolve()


def test_interpreter_that_cannot_read_the_hook_file_is_passed_over(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        layout, "_candidates", lambda: iter([Path("/bin/false"), Path("/bin/echo"), Path(sys.executable)])
    )
    layout.lay(home)
    assert (home.bin / "python").readlink() == Path(sys.executable)


def test_machine_without_a_fit_interpreter_is_told(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layout, "_candidates", lambda: iter([Path("/bin/false"), Path("/nowhere/python")]))
    with pytest.raises(StorageError, match="/bin/false: exit code 1"):
        layout.lay(home)


def test_service_refreshes_its_own_home_only(home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    layout.lay(home, tmp_path / "other")
    (home.bin / "hook.py").write_text("older")
    layout.refresh(home)
    assert (home.bin / "hook.py").read_text() == "older"
    layout.lay(home)
    (home.bin / "hook.py").write_text("older")
    layout.refresh(home)
    assert (home.bin / "hook.py").read_text() != "older"
    monkeypatch.setattr(layout, "check_place", lambda _: (_ for _ in ()).throw(StorageError("read-only")))
    layout.refresh(home)


def test_environment_of_an_empty_home_is_none(home: Home) -> None:
    assert layout.environment_of(home) is None
