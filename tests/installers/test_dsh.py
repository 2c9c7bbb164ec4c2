"""dsh's installer with a stand-in program: one file, one row in a list of the user's, and dsh's own word on that list."""

from __future__ import annotations

import shlex
import sys
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from lorehooks.core.home import Home
from lorehooks.installers import operations, receipt
from lorehooks.installers.catalog import INSTALLERS
from lorehooks.installers.dsh import ROW_ID
from lorehooks.installers.outcome import Outcome
from lorehooks.installers.patchlist import BEGIN, END, plugin_row
from lorehooks.installers.plan import Context, Finding
from lorehooks.installers.pluginfiles import plugin_file

MINE = "# mine\n- id: web\n  disabled: true\n"
PROGRAM = """
import os, re, sys
from pathlib import Path
home = Path(os.environ.get("DSH_HOME", "").strip() or sys.exit("dsh: an explicit DSH_HOME is required"))
if sys.argv[1:] == ["--version"]:
    print("0.2.1-rc.2")
    sys.exit()
(home / "profiles").mkdir()  # as the real one does, whatever it is asked
file = home / "cordis.patch.yml"
text = file.read_text() if file.exists() else "[]"
if "BROKEN" in text or not re.search(r"(?m)^(-|\\[\\])", text):
    sys.exit(f"dsh: failed to parse patches {file}: bad indentation")
for name in re.findall(r'(?m)^      name: "(.*)"$', text):
    print("- id: lorehooks")
    print("  name: >-")
    print("    " + Path(name).as_uri())
    if "- id: lorehooks" in text.split("\\n"):
        print("  disabled: true")
"""


@dataclass
class User:
    """A user's machine with dsh."""

    root: Path
    environment: dict[str, str]

    @property
    def home(self) -> Home:
        return Home(self.root / ".lore")

    @property
    def context(self) -> Context:
        return Context(self.home, self.root, self.environment)

    @property
    def dsh(self) -> Path:
        return self.root / ".dsh"

    @property
    def plugin(self) -> Path:
        return self.dsh / "lorehooks.mjs"

    @property
    def patches(self) -> Path:
        return self.dsh / "cordis.patch.yml"

    def install(self, *, dry_run: bool = False) -> Outcome:
        return operations.install(self.context, "dsh", lambda *_: {}, dry_run=dry_run)

    def uninstall(self) -> Outcome:
        return operations.uninstall(self.context, "dsh")

    def findings(self) -> dict[str, Finding]:
        noted = receipt.load(self.home, "dsh")
        return {each.code: each for each in INSTALLERS["dsh"].check(replace(self.context, receipt=noted))}

    def files(self) -> dict[str, bytes]:
        return {str(path.relative_to(self.dsh)): path.read_bytes() for path in self.dsh.rglob("*") if path.is_file()}


@pytest.fixture
def user(tmp_path: Path) -> User:
    root = tmp_path / "zoë 김"
    (root / ".dsh").mkdir(parents=True)
    (root / "bin").mkdir()
    program = root / "bin" / "dsh"
    (root / "bin" / "dsh.py").write_text(PROGRAM)
    program.write_text(
        f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -I {shlex.quote(str(root / "bin" / "dsh.py"))} "$@"\n'
    )
    program.chmod(0o755)
    return User(root, {"PATH": f"{root / 'bin'}:/usr/bin:/bin", "HOME": str(root)})


@pytest.mark.parametrize("mine", [None, "", MINE, "# only a remark\n[]\n", "- id: web", MINE.replace("\n", "\r\n")])
def test_installing_twice_and_uninstalling_leaves_the_home_as_it_was(user, mine):
    if mine is not None:
        user.patches.write_bytes(mine.encode())
    before = user.files()
    assert user.install(dry_run=True).status == "planned"
    assert user.files() == before
    assert user.install().status == "installed"
    assert user.plugin.read_bytes() == plugin_file("dsh.mjs", user.home)
    assert plugin_row(user.plugin, ROW_ID) in user.patches.read_text().replace("\r\n", "\n")
    assert not user.findings()
    installed = user.files()
    assert user.install().status == "unchanged"
    assert user.files() == installed
    assert user.uninstall().stays == ()
    assert user.files() == before
    assert receipt.installed(user.home) == ()
    assert not (user.dsh / "profiles").exists()


def test_the_users_own_rows_of_later_stay(user):
    user.install()
    user.patches.write_text(user.patches.read_text() + MINE)
    assert user.install().status == "unchanged"
    user.uninstall()
    assert user.patches.read_text() == MINE


def test_a_remark_of_later_leaves_a_list_that_dsh_can_start_with(user):
    user.install()
    user.patches.write_text(f"# a remark\n{user.patches.read_text()}")
    user.uninstall()
    assert user.patches.read_text() == "# a remark\n[]\n"


def test_the_row_goes_although_the_receipt_is_lost(user):
    user.patches.write_text(MINE)
    user.install()
    (user.home.receipts / "dsh.json").unlink()
    user.uninstall()
    assert user.patches.read_text() == MINE
    assert not user.plugin.exists()


def test_the_row_of_a_home_that_was_moved_is_replaced(user):
    user.patches.write_text(f"{BEGIN}\n{plugin_row(Path('/gone/lorehooks.mjs'), ROW_ID)}{END}\n{MINE}")
    user.install()
    text = user.patches.read_text()
    assert "/gone/" not in text
    assert text.startswith(MINE)
    assert not user.findings()


@pytest.mark.parametrize(
    ("mine", "reason"),
    [
        ("id: web\n", "cordis.patch.yml:1:1: it is not plainly a list"),
        ("- id: web\n  BROKEN: 1\n", "bad indentation"),
        ("- insert:\n    - id: 'lorehooks'\n      name: ./x.mjs\n", "has a row 'lorehooks' that is not ours"),
    ],
)
def test_a_list_that_dsh_or_we_cannot_read_is_left_alone(user, mine, reason):
    user.patches.write_text(mine)
    outcome = user.install()
    assert outcome.status == "refused"
    assert outcome.problem is not None
    assert reason in str(outcome.problem)
    assert user.files() == {"cordis.patch.yml": mine.encode()}


def test_without_the_program_the_lines_alone_are_looked_at(user):
    user.environment["PATH"] = "/usr/bin:/bin"
    user.patches.write_text("- id: web\n  BROKEN: 1\n")
    assert user.install().status == "installed"
    assert not user.findings()


def test_the_home_is_followed_where_it_was_moved_to(user):
    moved = user.root / "moved"
    moved.mkdir()
    user.environment["DSH_HOME"] = str(moved)
    user.install()
    assert (moved / "lorehooks.mjs").is_file()
    assert user.files() == {}
    user.uninstall()
    assert list(moved.iterdir()) == []


def test_doctor_sees_what_is_missing_changed_doubled_or_switched_off(user):
    user.install()
    text = user.patches.read_text()
    user.patches.write_text("[]\n")
    assert user.findings()["not_registered"].level == "error"
    user.patches.write_text(text + text)
    assert user.findings()["registered_twice"].level == "error"
    assert user.install().status == "updated"
    assert user.patches.read_text() == text
    user.patches.write_text(f"{text}- id: lorehooks\n  disabled: true\n")
    assert user.findings()["disabled"].level == "warning"
    user.patches.write_text(f"{text}- BROKEN\n")
    assert "bad indentation" in user.findings()["unreadable"].text
    user.patches.write_text(f"{text}nonsense\n")
    assert ":6:1" in user.findings()["unreadable"].text
    user.patches.write_text(text)
    user.plugin.write_text("changed")
    assert user.findings()["plugin_file"].level == "error"
    user.plugin.unlink()
    assert user.findings()["not_registered"].level == "error"


def test_doctor_names_a_release_older_than_any_that_was_tried(user):
    user.install()
    program = user.root / "bin" / "dsh.py"
    program.write_text(program.read_text().replace("0.2.1-rc.2", "0.1.1-rc.2"))
    assert set(user.findings()) == {"untried_version"}
