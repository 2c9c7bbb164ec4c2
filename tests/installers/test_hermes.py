"""Hermes: what its installer puts into which home, in which form, and what is left when it is gone."""

from __future__ import annotations

import shlex
import sys
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from lorehooks.core.home import Home
from lorehooks.installers import operations, receipt
from lorehooks.installers.catalog import INSTALLERS
from lorehooks.installers.hermesfiles import home_in_force, pinned, plugin_files
from lorehooks.installers.outcome import Outcome
from lorehooks.installers.plan import Context, Finding

SETTINGS = """\
# my Hermes
model:
  default: some-model   # the good one
  base_url: "http://127.0.0.1:9/v1"

agent: {max_turns: 40}
memory:
    # keep it short
    limit: 1.10
note: 'keep'
"""
PROGRAM = """
import os, pathlib, re, sys
import yaml
words = [word for word in sys.argv[1:] if word not in ("--profile", "default")]
home = pathlib.Path(os.environ["HERMES_HOME"])
with open(os.environ["HERMES_CALLS"], "a") as calls:
    calls.write(f"{home} {' '.join(words)}\\n")
path = home / "config.yaml"
settings = yaml.safe_load(path.read_text()) if path.exists() else {}
settings = settings or {}
if words == ["--version"]:
    home.joinpath("made").mkdir(parents=True)
    print("Hermes Agent v" + os.environ.get("HERMES_VERSION", "0.19.0") + " (2026.7.20)\\nPython: 3.12.1")
elif words[:2] == ["config", "set"]:
    if os.environ.get("HERMES_PINNED"):
        sys.exit("Cannot set 'memory.provider': it is managed by your administrator")
    key, name = words[2].split(".")
    settings.setdefault(key, {})
    settings[key] = {**(settings[key] or {}), name: words[3]}
    path.write_text(yaml.safe_dump(settings))
elif words == ["memory", "status"]:
    provider = (settings.get("memory") or {}).get("provider", "")
    there = home.joinpath("plugins", provider, "__init__.py").exists()
    print(f"Memory status\\n  Provider:  {provider}\\n\\n  Status:    {'available' if there else 'not available'}")
elif words[:2] == ["plugins", "list"]:
    enabled = (settings.get("plugins") or {}).get("enabled") or []
    import json
    print(json.dumps([{"name": name, "status": "enabled"} for name in enabled]))
"""


@dataclass
class User:
    """A user's machine with a Hermes that has been set up."""

    root: Path
    environment: dict[str, str]

    @property
    def home(self) -> Home:
        return Home(self.root / ".lore")

    @property
    def hermes(self) -> Path:
        return self.root / ".hermes"

    @property
    def context(self) -> Context:
        return Context(self.home, self.root, self.environment)

    def install(self, *, dry_run: bool = False) -> Outcome:
        return operations.install(self.context, "hermes", lambda *_: {}, dry_run=dry_run)

    def uninstall(self) -> Outcome:
        return operations.uninstall(self.context, "hermes")

    def findings(self) -> dict[str, Finding]:
        noted = receipt.load(self.home, "hermes")
        return {each.code: each for each in INSTALLERS["hermes"].check(replace(self.context, receipt=noted))}

    def calls(self) -> list[str]:
        path = self.root / "calls"
        return path.read_text().splitlines() if path.exists() else []

    def files(self) -> dict[str, bytes | str]:
        """All that is on the machine beside our own home."""
        found: dict[str, bytes | str] = {}
        for path in sorted(self.root.rglob("*")):
            name = path.relative_to(self.root)
            if name.parts[0] not in (".lore", "bin", "calls"):
                found[str(name)] = path.read_bytes() if path.is_file() else "folder"
        return found


@pytest.fixture
def user(tmp_path: Path) -> User:
    root = tmp_path / "zoë 김"
    (root / "bin").mkdir(parents=True)
    (root / "bin" / "hermes.py").write_text(PROGRAM)
    program = root / "bin" / "hermes"
    program.write_text(
        f'#!/bin/sh\nexec {shlex.quote(sys.executable)} {shlex.quote(str(root / "bin" / "hermes.py"))} "$@"\n'
    )
    program.chmod(0o755)
    (root / ".hermes").mkdir()
    (root / ".hermes" / "config.yaml").write_text(SETTINGS)
    environment = {"PATH": f"{root / 'bin'}:/usr/bin:/bin", "HOME": str(root), "HERMES_CALLS": str(root / "calls")}
    return User(root, environment)


def place_profile(user: User, name: str, settings: str = SETTINGS) -> Path:
    home = user.hermes / "profiles" / name
    home.mkdir(parents=True)
    (home / "config.yaml").write_text(settings)
    return home


def test_installing_twice_and_uninstalling_leaves_the_machine_as_it_was(user):
    before = user.files()
    assert user.install(dry_run=True).status == "planned"
    assert user.files() == before
    assert not user.home.root.exists()
    assert user.install().status == "installed"
    text = SETTINGS.replace("    # keep it short\n", "    # keep it short\n    provider: lorehooks\n")
    assert (user.hermes / "config.yaml").read_text() == text
    assert f"{user.hermes} config set memory.provider lorehooks" in user.calls()
    for file in plugin_files(user.hermes, user.home, "provider"):
        assert file.path.read_bytes() == file.content
    assert not user.findings()
    cache = user.hermes / "plugins" / "lorehooks" / "__pycache__"
    cache.mkdir()  # as Hermes leaves it
    (cache / "transport.cpython-312.pyc").touch()
    assert user.install().status == "unchanged"
    assert user.uninstall().stays == ()
    assert user.files() == before
    assert receipt.installed(user.home) == ()


def test_settings_changed_since_keep_the_change(user):
    user.install()
    path = user.hermes / "config.yaml"
    path.write_text(path.read_text() + "later: true # mine\n")
    user.uninstall()
    assert path.read_text() == SETTINGS + "later: true # mine\n"


@pytest.mark.parametrize("old", ["''", '""', "null", ""])
def test_the_setting_gets_its_old_value_back(user, old):
    path = user.hermes / "config.yaml"
    path.write_text(f"memory:\n  provider: {old}\n  limit: 1\n")
    before = path.read_bytes()
    user.install()
    assert "provider: lorehooks" in path.read_text()
    user.uninstall()
    assert path.read_bytes() == before


def test_without_the_program_the_entry_alone_is_written(user):
    (user.root / "bin" / "hermes").unlink()
    before = user.files()
    user.install()
    assert "provider: lorehooks" in (user.hermes / "config.yaml").read_text()
    assert not user.findings()
    user.uninstall()
    assert user.files() == before


def test_a_hermes_that_was_never_started_gets_no_folders_of_its_own_from_us(user):
    (user.hermes / "config.yaml").unlink()
    user.hermes.rmdir()
    user.install()
    assert sorted(path.name for path in user.hermes.iterdir()) == ["config.yaml", "plugins"]
    assert all("config set" not in call for call in user.calls())
    user.uninstall()
    assert not user.hermes.exists()


def test_what_an_administrator_has_pinned_is_said_and_nothing_stays(user):
    before = user.files()
    user.environment["HERMES_PINNED"] = "1"
    outcome = user.install()
    assert outcome.status == "failed"
    assert "managed by your administrator" in outcome.problem.message
    assert user.files() == before


def test_beside_another_provider_the_plugin_is_enabled_and_the_provider_stays(user):
    path = user.hermes / "config.yaml"
    settings = "memory:\n  provider: mem0 # mine\nplugins:\n  enabled: [zeta]\n"
    path.write_text(settings)
    before = user.files()
    outcome = user.install()
    assert outcome.status == "installed"
    assert any(note.startswith("mem0 stays Hermes's memory provider") for note in outcome.notes)
    assert path.read_text() == "memory:\n  provider: mem0 # mine\nplugins:\n  enabled: [zeta, lorehooks]\n"
    main = user.hermes / "plugins" / "lorehooks" / "__init__.py"
    assert main.read_bytes() == next(plugin_files(user.hermes, user.home, "beside")).content
    assert not user.findings()
    assert user.uninstall().stays == ()
    assert user.files() == before


def test_the_form_follows_the_slot(user):
    path = user.hermes / "config.yaml"
    main = user.hermes / "plugins" / "lorehooks" / "__init__.py"
    user.install()
    path.write_text(path.read_text().replace("provider: lorehooks", "provider: honcho"))
    assert user.findings()["slot_taken"].fix == "lore install hermes"
    assert user.install().status == "updated"
    assert main.read_bytes() == next(plugin_files(user.hermes, user.home, "beside")).content
    assert not user.findings()
    path.write_text(path.read_text().replace("provider: honcho", "provider: ''"))
    assert user.findings()["slot_free"].level == "info"
    assert user.install().status == "updated"
    assert main.read_bytes() == next(plugin_files(user.hermes, user.home, "provider")).content
    user.uninstall()
    assert "lorehooks" not in path.read_text()
    assert not main.parent.exists()


# --- homes


def test_the_profile_in_force_gets_its_memory(user):
    coder = place_profile(user, "coder")
    (user.hermes / "active_profile").write_text("coder\n")
    user.install()
    assert "provider: lorehooks" in (coder / "config.yaml").read_text()
    assert (user.hermes / "config.yaml").read_text() == SETTINGS
    assert f"{coder} config set memory.provider lorehooks" in user.calls()


def test_a_second_profile_is_added_to_the_first_and_both_are_taken_out(user):
    coder = place_profile(user, "coder")
    before = user.files()
    user.install()
    user.environment["HERMES_HOME"] = str(coder)
    assert user.install().status == "updated"
    del user.environment["HERMES_HOME"]
    for home in (user.hermes, coder):
        assert "provider: lorehooks" in (home / "config.yaml").read_text()
        assert (home / "plugins" / "lorehooks" / "transport.py").is_file()
    assert not user.findings()
    user.uninstall()
    assert user.files() == before


def test_a_profile_that_is_gone_stands_in_nobodys_way(user):
    import shutil

    coder = place_profile(user, "coder")
    user.environment["HERMES_HOME"] = str(coder)
    user.install()
    del user.environment["HERMES_HOME"]
    shutil.rmtree(coder)
    assert user.install().status == "updated"
    assert not coder.exists()
    assert user.uninstall().status == "removed"


@pytest.mark.parametrize(
    ("variable", "chosen", "expected"),
    [
        ("", "", ".hermes"),
        ("", "default", ".hermes"),
        ("", "coder", ".hermes/profiles/coder"),
        ("", "gone", ".hermes"),
        ("", "../x", ".hermes"),
        (".hermes", "coder", ".hermes/profiles/coder"),
        (".hermes/profiles/other", "coder", ".hermes/profiles/other"),
        ("elsewhere", "coder", "elsewhere"),
    ],
)
def test_the_home_is_the_one_that_hermes_takes(user, variable, chosen, expected):
    place_profile(user, "coder")
    if chosen:
        (user.hermes / "active_profile").write_text(chosen)
    if variable:
        user.environment["HERMES_HOME"] = str(user.root / variable)
    assert home_in_force(user.context) == user.root / expected


def test_a_command_says_which_home_it_is_about():
    assert pinned(Path("/h/.hermes"))[1:] == ("HERMES_HOME=/h/.hermes", "hermes", "--profile", "default")
    assert pinned(Path("/h/.hermes/profiles/a"))[1:] == ("HERMES_HOME=/h/.hermes/profiles/a", "hermes")


# --- refused and found


def test_settings_that_cannot_be_read_are_refused_with_their_place_and_what_to_paste(user):
    (user.hermes / "config.yaml").write_text("model: [1\n")
    before = user.files()
    outcome = user.install()
    assert outcome.status == "refused"
    assert (outcome.problem.line, outcome.problem.snippet) == (2, "memory:\n  provider: lorehooks\n")
    assert user.files() == before
    assert user.findings()["unreadable"].level == "error"


def test_the_public_provider_is_refused_beside_ours(user):
    (user.hermes / "plugins" / "lore").mkdir(parents=True)
    (user.hermes / "plugins" / "lore" / "plugin.yaml").write_text("name: lore\nversion: 1\n")
    (user.hermes / "config.yaml").write_text("memory:\n  provider: lore\n")
    outcome = user.install()
    assert (outcome.status, outcome.problem.hint) == ("refused", "hermes memory off")
    assert user.findings()["two_memories"].level == "error"


def test_a_folder_of_another_home_is_refused_with_the_way_to_remove_it(user):
    user.install()
    other = User(user.root, {**user.environment, "HOME": str(user.root)})
    second = replace(other.context, home=Home(user.root / "second"))
    outcome = operations.install(second, "hermes", lambda *_: {})
    assert outcome.status == "refused"
    assert outcome.problem.hint == f"LORE_HOME='{user.home.root}' lore uninstall hermes"


def test_a_receipt_that_was_lost_is_no_hindrance_to_uninstalling(user):
    before = user.files()
    user.install()
    (user.home.receipts / "hermes.json").unlink()
    assert user.install().problem.hint == "lore uninstall hermes"
    assert user.uninstall().status == "removed"
    assert user.files() == {**before, ".hermes/plugins": "folder"}


def test_a_file_that_somebody_changed_is_neither_overwritten_nor_removed(user):
    user.install()
    path = user.hermes / "plugins" / "lorehooks" / "transport.py"
    path.write_bytes(path.read_bytes() + b"# mine\n")
    assert user.findings()["plugin_file"].level == "error"
    assert user.install().status == "refused"
    assert any(str(path) in each for each in user.uninstall().stays)
    assert path.exists()


def test_doctor_sees_what_is_missing_disabled_twice_or_not_loaded(user):
    user.install()
    path = user.hermes / "config.yaml"
    installed = path.read_text()
    (user.hermes / "plugins" / "lorehooks" / "transport.py").unlink()
    assert user.findings()["not_registered"].level == "error"
    user.install()
    path.write_text(SETTINGS)
    assert user.findings()["not_registered"].level == "error"
    path.write_text(installed + "mcp_servers:\n  lore: {url: 'http://127.0.0.1:18901/api/mcp?client_type=hermes'}\n")
    assert user.findings()["registered_twice"].fix == "hermes mcp remove lore"
    path.write_text("memory: {provider: mem0}\nplugins: {disabled: [lorehooks]}\n")
    user.install()
    assert user.findings()["disabled"].by_person
    path.write_text(installed)
    user.install()
    program = user.root / "bin" / "hermes.py"
    program.write_text(program.read_text().replace("'available'", "'not available'"))
    user.environment["HERMES_VERSION"] = "0.18.2"
    assert {"not_loaded", "untried_version"} == set(user.findings())


def test_looking_for_the_program_makes_no_folder_in_the_users_home(user):
    before = user.files()
    found = INSTALLERS["hermes"].detect(user.context)
    assert found.version == "Hermes Agent v0.19.0 (2026.7.20)"
    assert found.folder == user.hermes
    assert user.files() == before
