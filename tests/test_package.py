"""The house rules of the package itself: what it installs, how it is imported, what a room may see."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parent.parent
ROOMS = ("core", "clients", "hooks", "installers")


def tracked(*folders: str) -> set[str]:
    listed = subprocess.run(["git", "ls-files", "-z", *folders], cwd=REPOSITORY, capture_output=True, check=True)
    return {name for name in listed.stdout.decode().split("\0") if name and (REPOSITORY / name).exists()}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if not (REPOSITORY / ".git").exists():
        pytest.skip("needs the git checkout, to know which files are ours")
    source = tmp_path_factory.mktemp("source")
    for name in tracked():
        target = source / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if not (REPOSITORY / name).is_symlink():
            target.write_bytes((REPOSITORY / name).read_bytes())
    built = tmp_path_factory.mktemp("wheel")
    subprocess.run(
        [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(built), str(source)],
        check=True,
        capture_output=True,
    )
    return next(built.glob("*.whl"))


def test_wheel_holds_every_tracked_file_of_the_rooms(wheel: Path) -> None:
    inside = set(zipfile.ZipFile(wheel).namelist())
    assert {f"lorehooks/{name}" for name in tracked(*ROOMS)} <= inside


def test_wheel_puts_nothing_but_lorehooks_into_site_packages(wheel: Path) -> None:
    tops = {name.split("/")[0] for name in zipfile.ZipFile(wheel).namelist()}
    assert {top for top in tops if not top.endswith(".dist-info")} == {"lorehooks"}


def test_wheel_works_with_no_repository_around(wheel: Path, tmp_path: Path) -> None:
    zipfile.ZipFile(wheel).extractall(tmp_path)
    script = "import lorehooks.core.uri as u; print(u.__file__, u.parse('project://a'))"
    ran = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path.insert(0, {str(tmp_path)!r}); {script}"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
        env={"PATH": "/usr/bin:/bin"},
    )
    assert ran.stdout.split() == [str(tmp_path / "lorehooks/core/uri.py"), "project://a"]


@pytest.mark.parametrize("room", ROOMS)
def test_no_room_is_importable_by_its_bare_name(room: str) -> None:
    ran = subprocess.run([sys.executable, "-c", f"import {room}"], cwd="/", capture_output=True, text=True, check=False)
    assert "ModuleNotFoundError" in ran.stderr


def test_no_file_imports_a_room_by_its_bare_name() -> None:
    bare = tuple(f"{verb} {room}{end}" for verb in ("from", "import") for room in ROOMS for end in (".", " "))
    offenders = [
        f"{path}: {line.strip()}"
        for folder in (*ROOMS, "tests")  # a walk from the top would read every installed program too
        for path in sorted((REPOSITORY / folder).rglob("*.py"))
        for line in path.read_text(encoding="utf-8").splitlines()
        if line.startswith(bare)
    ]
    assert offenders == []


def test_core_imports_neither_http_nor_a_runtime() -> None:
    modules = ("httpx", "starlette", "uvicorn", "mcp", "click")
    script = (
        "import importlib, pkgutil, sys, lorehooks.core\n"
        "[importlib.import_module(f'lorehooks.core.{m.name}') for m in pkgutil.iter_modules(lorehooks.core.__path__)]\n"
        f"print([name for name in {modules!r} if name in sys.modules])"
    )
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "[]"
