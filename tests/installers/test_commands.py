"""`lore install`, `update` and `uninstall` as people and scripts run them."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from lorehooks.core.home import Home
from lorehooks.hooks import service
from lorehooks.installers.claudecode import ALLOW_READS
from lorehooks.installers.operations import is_own_name
from lorehooks.installers.receipt import load

LORE = [sys.executable, "-m", "lorehooks.installers.cli"]


@dataclass
class User:
    """A person with `~/.claude` and no agent program on the PATH."""

    folder: Path

    @property
    def home(self) -> Home:
        return Home(self.folder / ".lore")

    @property
    def settings(self) -> Path:
        return self.folder / ".claude" / "settings.json"

    @property
    def environment(self) -> dict[str, str]:
        return {**os.environ, "HOME": str(self.folder), "PATH": "/usr/bin:/bin", "NO_COLOR": "1"}

    def lore(self, *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*LORE, *words],
            env=self.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )

    def json(self, *words: str, code: int = 0) -> dict:
        done = self.lore(*words, "--json")
        assert done.returncode == code, done.stdout + done.stderr
        return json.loads(done.stdout)

    def at_terminal(self, *words: str, typed: str) -> tuple[int, str]:
        """Run at a terminal where `typed` is entered; answers the exit code and all that was shown."""
        ours, theirs = pty.openpty()
        with subprocess.Popen([*LORE, *words], env=self.environment, stdin=theirs, stdout=theirs, stderr=theirs) as run:
            os.close(theirs)
            os.write(ours, typed.encode())
            shown = b""
            with contextlib.suppress(OSError):  # the terminal is gone when its last program is
                while part := os.read(ours, 4096):
                    shown += part
            os.close(ours)
            return run.wait(120), shown.decode()


@pytest.fixture
def user(own_world: Path) -> Iterator[User]:
    person = User(own_world)
    person.settings.parent.mkdir()
    yield person
    if person.home.run.is_dir():
        service.stop(person.home)


def listed(user: User) -> dict[str, str]:
    return {row["runtime"]: row["state"] for row in user.json("install")["runtimes"]}


def test_install_without_a_name_lists_and_changes_nothing(user):
    assert listed(user)["claudecode"] == "found"
    done = user.lore("install")
    assert "lore install claudecode" in done.stdout
    user.settings.parent.rmdir()
    assert listed(user)["claudecode"] == "absent"
    assert "None of them is on this machine" in user.lore("install").stdout
    assert list(user.folder.iterdir()) == []


def test_from_install_to_uninstall_the_service_runs_and_the_memory_stays(user):
    user.settings.write_bytes(b'{"model": "sonnet"}')
    (outcome,) = user.json("install", "claudecode")["outcomes"]
    assert outcome["status"] == "installed"
    assert listed(user)["claudecode"] == "installed"
    assert service.status(user.home).answering
    assert (user.home.bin / "python").exists()
    assert user.json("install", "claudecode")["outcomes"][0]["status"] == "unchanged"
    assert user.json("update")["outcomes"][0]["status"] == "unchanged"
    done = user.lore("uninstall", "claudecode")
    assert "The service was ended; the memory stays." in done.stderr
    assert user.settings.read_bytes() == b'{"model": "sonnet"}'
    assert user.home.database.exists()
    assert not service.status(user.home).running
    assert user.json("uninstall", "claudecode")["outcomes"][0]["status"] == "absent"


def test_a_dry_run_shows_the_diff_and_leaves_no_trace(user):
    user.settings.write_bytes(b'{\n  "model": "sonnet"\n}\n')
    done = user.lore("install", "claudecode", "--dry-run", "--allow-reads")
    assert done.returncode == 0
    assert f"--- {user.settings}\n" in done.stdout
    assert '\n+    "lore@lorehooks": true\n' in done.stdout
    assert '+      "mcp__plugin_lore_lore__lore_search",' in done.stdout
    assert "diff" in user.json("install", "claudecode", "--dry-run")["outcomes"][0]
    assert user.settings.read_bytes() == b'{\n  "model": "sonnet"\n}\n'
    assert sorted(each.name for each in user.folder.iterdir()) == [".claude"]


def test_without_a_terminal_nothing_is_asked_and_the_flag_is_named(user):
    done = user.lore("install", "claudecode")
    assert ALLOW_READS.without in done.stdout
    assert "permissions" not in json.loads(user.settings.read_bytes())


def test_a_person_is_asked_once(user):
    code, shown = user.at_terminal("install", "claudecode", typed="y\n")
    assert code == 0
    assert ALLOW_READS.text in shown
    assert len(json.loads(user.settings.read_bytes())["permissions"]["allow"]) == 6
    code, shown = user.at_terminal("install", "claudecode", typed="")
    assert ALLOW_READS.text not in shown
    assert "up to date" in shown


def test_yes_asks_nothing_and_allows_nothing(user):
    code, shown = user.at_terminal("install", "claudecode", "--yes", typed="")
    assert code == 0
    assert ALLOW_READS.text not in shown
    assert "permissions" not in json.loads(user.settings.read_bytes())


def test_a_refused_file_is_named_with_its_place_and_the_text_to_paste(user):
    user.settings.write_bytes(b'{\n  "x": [1,],\n}')
    done = user.lore("install", "claudecode")
    assert done.returncode == 1
    assert f"Error: {user.settings}:2:10: a trailing comma" in done.stderr
    assert '"lore@lorehooks": true' in done.stderr
    error = user.json("install", "claudecode", code=1)["outcomes"][0]["error"]
    assert (error["code"], error["path"], error["line"], error["column"]) == ("refused", str(user.settings), 2, 10)
    assert json.loads(error["snippet"])["enabledPlugins"] == {"lore@lorehooks": True}
    assert user.settings.read_bytes() == b'{\n  "x": [1,],\n}'
    assert not user.home.root.exists()


def test_a_runtime_that_is_not_here_or_not_known_is_an_error(user):
    user.settings.parent.rmdir()
    done = user.lore("install", "claudecode")
    assert done.returncode == 1
    assert "Claude Code is not on this machine: no claude on the PATH and no" in done.stderr
    assert user.lore("install", "emacs").returncode == 2
    assert user.lore("install", "--all").returncode == 1
    assert user.lore("update").returncode == 1
    assert user.lore("uninstall").returncode == 2


def test_a_run_that_was_killed_shows_as_interrupted_until_it_is_finished(user):
    user.json("install", "claudecode")
    path = user.home.receipts / "claudecode.json"
    path.write_text(path.read_text().replace('"state": "installed"', '"state": "installing"'))
    assert listed(user)["claudecode"] == "interrupted"
    assert "to finish" in user.lore("install").stdout
    user.json("install", "claudecode")
    assert listed(user)["claudecode"] == "installed"


def test_two_installs_at_once_register_once(user):
    runs = [
        subprocess.Popen([*LORE, "install", "claudecode", "--json"], env=user.environment, stdout=subprocess.PIPE)
        for _ in range(3)
    ]
    said = [json.loads(run.communicate(timeout=120)[0])["outcomes"][0]["status"] for run in runs]
    assert sorted(said) == ["installed", "unchanged", "unchanged"]
    receipt = load(user.home, "claudecode")
    assert receipt
    assert receipt.state == "installed"
    user.json("uninstall", "--all")
    assert not user.settings.exists()


def test_memory_is_deleted_only_on_its_folder_typed_at_a_terminal(user):
    user.json("install", "claudecode")
    error = user.json("uninstall", "claudecode", "--purge-memory", "--yes", code=1)
    assert str(user.home.root) in json.dumps(error)
    assert user.home.database.exists()
    code, shown = user.at_terminal("uninstall", "claudecode", "--purge-memory", typed="yes\n")
    assert code == 1
    assert f"{user.home.root} (" in shown
    assert user.home.database.exists()
    code, _ = user.at_terminal("uninstall", "claudecode", "--purge-memory", typed=f"{user.home.root}\n")
    assert code == 0
    assert not user.home.root.exists()


def test_only_what_is_ours_in_a_folder_is_purged(user):
    user.json("install", "claudecode")
    assert [path.name for path in user.home.root.iterdir() if not is_own_name(path.name)] == []
    (user.home.root / "config.json").write_text("of the public client")
    _, shown = user.at_terminal("uninstall", "claudecode", "--purge-memory", typed=f"{user.home.root}\n")
    assert f"stays: {user.home.root / 'config.json'}, which is not ours" in shown
    assert [path.name for path in user.home.root.iterdir()] == ["config.json"]


def test_a_folder_that_holds_no_memory_is_never_purged(user):
    (user.folder / "precious").mkdir()
    environment = {**user.environment, "LORE_HOME": str(user.folder / "precious")}
    argv = [*LORE, "uninstall", "claudecode", "--purge-memory"]
    done = subprocess.run(argv, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 4
    assert f"There is no memory in {user.folder / 'precious'}" in done.stderr
    assert (user.folder / "precious").is_dir()
