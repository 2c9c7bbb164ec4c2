"""OpenCode and Pi: what their installers put where, what they refuse, and what is left when they are gone."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from lorehooks.core.home import Home
from lorehooks.installers import operations, receipt
from lorehooks.installers.catalog import INSTALLERS
from lorehooks.installers.outcome import Outcome
from lorehooks.installers.plan import Context, Finding
from lorehooks.installers.pluginfiles import plugin_file

BOTH = pytest.mark.parametrize("runtime", ["opencode", "pi"])


@dataclass
class User:
    """A user's machine with both programs, which say their version and make folders wherever they run."""

    root: Path
    environment: dict[str, str]

    @property
    def home(self) -> Home:
        return Home(self.root / ".lore")

    @property
    def context(self) -> Context:
        return Context(self.home, self.root, self.environment)

    @property
    def opencode(self) -> Path:
        return self.root / ".config" / "opencode"

    @property
    def pi(self) -> Path:
        return self.root / ".pi" / "agent"

    def file_of(self, runtime: str) -> Path:
        return {
            "opencode": self.opencode / "plugins" / "lorehooks.js",
            "pi": self.pi / "extensions" / "lorehooks.js",
        }[runtime]

    def install(self, runtime: str, *, dry_run: bool = False) -> Outcome:
        return operations.install(self.context, runtime, lambda *_: {}, dry_run=dry_run)

    def uninstall(self, runtime: str) -> Outcome:
        return operations.uninstall(self.context, runtime)

    def findings(self, runtime: str) -> dict[str, Finding]:
        noted = receipt.load(self.home, runtime)
        found = INSTALLERS[runtime].check(replace(self.context, receipt=noted))
        return {finding.code: finding for finding in found}

    def files(self) -> dict[str, bytes | str]:
        """All that is on the machine beside our own home."""
        found: dict[str, bytes | str] = {}
        for path in sorted(self.root.rglob("*")):
            name = path.relative_to(self.root)
            if name.parts[0] not in (".lore", "bin"):
                found[str(name)] = path.read_bytes() if path.is_file() else "folder"
        return found


@pytest.fixture
def user(tmp_path: Path) -> User:
    root = tmp_path / "zoë 김"
    (root / "bin").mkdir(parents=True)
    for name, version, lists in (("opencode", "1.18.33", "OPENCODE_LISTS"), ("pi", "0.74.2", "PI_LISTS")):
        program = root / "bin" / name
        told = f'mkdir -p "$HOME/.config/{name}"; if [ "$1" = --version ]; then echo {version}'
        program.write_text(f'#!/bin/sh\n{told}; else echo plugins:; echo "${lists}"; fi\n')
        program.chmod(0o755)
    (root / ".pi" / "agent").mkdir(parents=True)
    return User(root, {"PATH": f"{root / 'bin'}:/usr/bin:/bin", "HOME": str(root)})


@BOTH
def test_installing_twice_and_uninstalling_leaves_the_machine_as_it_was(user, runtime):
    before = user.files()
    assert user.install(runtime, dry_run=True).status == "planned"
    assert user.files() == before
    assert not user.home.root.exists()
    assert user.install(runtime).status == "installed"
    assert user.file_of(runtime).read_bytes() == plugin_file(f"{runtime}.js", user.home)
    assert not user.findings(runtime)
    installed = user.files()
    assert user.install(runtime).status == "unchanged"
    assert user.files() == installed
    assert user.uninstall(runtime).stays == ()
    assert user.files() == before
    assert receipt.installed(user.home) == ()


@BOTH
def test_an_update_brings_the_file_of_this_release_and_forgets_no_way_back(user, runtime):
    before = user.files()
    user.install(runtime)
    path = user.file_of(runtime)
    old = path.read_bytes().replace(b"lorehooks:", b"an older release:")
    noted = receipt.load(user.home, runtime)
    assert noted is not None
    place = noted.placed_note(path)
    assert place is not None
    older = replace(place, hashes=(receipt.files.digest(old),))
    receipt.save(user.home, replace(noted, placed=(older, *(note for note in noted.placed if note.path != path))))
    path.write_bytes(old)
    assert set(user.findings(runtime)) == {"plugin_file"}
    assert user.install(runtime).status == "updated"
    assert path.read_bytes() == plugin_file(f"{runtime}.js", user.home)
    user.uninstall(runtime)
    assert user.files() == before


@BOTH
def test_a_file_that_somebody_changed_is_neither_overwritten_nor_removed(user, runtime):
    user.install(runtime)
    path = user.file_of(runtime)
    path.write_bytes(path.read_bytes() + b"// mine\n")
    assert user.install(runtime).status == "refused"
    outcome = user.uninstall(runtime)
    assert any(str(path) in each for each in outcome.stays)
    assert path.read_bytes().endswith(b"// mine\n")


@BOTH
def test_a_file_of_somebody_elses_in_our_place_is_left_alone(user, runtime):
    path = user.file_of(runtime)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"export default {}\n")
    assert user.install(runtime).status == "refused"
    assert path.read_bytes() == b"export default {}\n"


@BOTH
def test_the_memory_of_another_home_is_not_taken_over(user, runtime):
    other = Home(user.root / "other")
    other.root.mkdir()
    path = user.file_of(runtime)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(plugin_file(f"{runtime}.js", other))
    outcome = user.install(runtime)
    assert outcome.status == "refused"
    assert outcome.problem is not None
    assert outcome.problem.hint == f"LORE_HOME='{other.root}' lore uninstall {runtime}"
    assert user.uninstall(runtime).status == "absent"
    assert path.exists()


@BOTH
def test_without_its_receipt_our_file_is_still_known_and_goes(user, runtime):
    before = user.files()
    user.install(runtime)
    for noted in user.home.receipts.glob("*.json"):
        noted.unlink()
    assert user.install(runtime).problem.hint == f"lore uninstall {runtime}"
    assert user.uninstall(runtime).status == "removed"
    assert not user.file_of(runtime).exists()
    assert user.files().keys() - before.keys() <= {
        *(f".config/{name}" for name in ("opencode", "opencode/plugins", "opencode/package.json", "opencode/.npmrc")),
        *(".config", ".pi/agent/extensions"),
    }


@BOTH
def test_the_public_product_beside_ours_is_refused_with_the_way_out(user, runtime):
    if runtime == "opencode":
        public = user.opencode / "plugins" / "lore-memory.js"
        content = "// @lore-managed-opencode-plugin version=1.3.22\nexport default async () => ({})\n"
    else:
        public = user.pi / "extensions" / "lore"
        content = "export default () => {}\n"
    file = public if runtime == "opencode" else public / "index.ts"
    file.parent.mkdir(parents=True)
    file.write_text(content)
    outcome = user.install(runtime)
    assert outcome.status == "refused"
    assert str(public) in outcome.problem.hint
    assert not user.file_of(runtime).exists()


@BOTH
def test_doctor_sees_a_file_that_is_gone_or_not_ours_any_more(user, runtime):
    user.install(runtime)
    user.file_of(runtime).unlink()
    assert user.findings(runtime)["not_registered"].level == "error"
    user.install(runtime)
    user.file_of(runtime).write_bytes(b"")
    assert user.findings(runtime)["plugin_file"].level == "error"


@pytest.mark.parametrize(
    ("runtime", "variable", "below"),
    [("opencode", "XDG_CONFIG_HOME", "opencode/plugins"), ("pi", "PI_CODING_AGENT_DIR", "extensions")],
)
def test_a_home_that_was_moved_is_followed(user, runtime, variable, below):
    moved = user.root / "moved"
    moved.mkdir()
    user.environment[variable] = str(moved)
    user.install(runtime)
    assert (moved / below / "lorehooks.js").is_file()
    assert not user.file_of(runtime).exists()
    user.uninstall(runtime)
    assert list(moved.rglob("*")) == []


# --- OpenCode alone


def test_files_against_the_slow_offline_start_are_put_only_where_there_are_none(user):
    user.opencode.mkdir(parents=True)
    (user.opencode / "package.json").write_text('{"dependencies": {"demo": "1"}}')
    user.install("opencode")
    assert (user.opencode / "package.json").read_text() == '{"dependencies": {"demo": "1"}}'
    assert (user.opencode / ".npmrc").read_text() == "fetch-retries=0\n"
    user.uninstall("opencode")
    assert [path.name for path in user.opencode.iterdir()] == ["package.json"]


def test_a_package_file_that_opencode_has_written_to_is_its_own_from_then_on(user):
    user.install("opencode")
    package = user.opencode / "package.json"
    package.write_text('{"dependencies": {"@opencode-ai/plugin": "1.18.33"}}')
    assert user.install("opencode").status in ("unchanged", "updated")
    assert not user.findings("opencode")
    user.uninstall("opencode")
    assert "1.18.33" in package.read_text()
    assert not (user.opencode / ".npmrc").exists()


def test_the_users_npm_settings_stay_and_doctor_says_what_they_cost(user):
    user.opencode.mkdir(parents=True)
    (user.opencode / ".npmrc").write_text("save-exact=true\n")
    user.install("opencode")
    assert (user.opencode / ".npmrc").read_text() == "save-exact=true\n"
    assert user.findings("opencode")["slow_offline"].fix.startswith("echo fetch-retries=0 >>")


def test_a_further_configuration_folder_gets_the_offline_files_and_no_second_plugin(user):
    added = user.root / "added"
    added.mkdir()
    user.environment["OPENCODE_CONFIG_DIR"] = str(added)
    user.install("opencode")
    assert sorted(path.name for path in added.iterdir()) == [".npmrc", "package.json"]
    copy = added / "plugin" / "lorehooks.js"
    copy.parent.mkdir()
    copy.write_bytes(user.file_of("opencode").read_bytes())
    assert user.findings("opencode")["registered_twice"].fix == f"rm '{copy}'"


@pytest.mark.parametrize("name", ["oh-my-openagent.jsonc", "oh-my-opencode.json"])
def test_claude_code_s_plugin_is_kept_out_where_opencode_imports_those(user, name):
    user.opencode.mkdir(parents=True)
    text = '{\n  // mine\n  "claude_code": { "mcp": true, },\n}\n' if name.endswith("c") else '{"theme": "x"}'
    path = user.opencode / name
    path.write_text(text)
    user.install("opencode")
    assert '"lore@lorehooks": false' in path.read_text()
    assert "// mine" in path.read_text() or name.endswith("n")
    assert not user.findings("opencode")
    user.uninstall("opencode")
    assert path.read_text() == text


def test_a_broken_file_of_that_layer_stops_nothing_and_is_not_touched(user):
    user.opencode.mkdir(parents=True)
    path = user.opencode / "oh-my-opencode.json"
    path.write_text('{"claude_code": ')
    assert user.install("opencode").status == "installed"
    assert path.read_text() == '{"claude_code": '
    assert user.findings("opencode")["unreadable"].level == "warning"


def test_doctor_sees_plugins_switched_off_a_second_server_and_an_older_release(user):
    user.install("opencode")
    settings = {"mcp": {"lore": {"type": "remote", "url": "http://127.0.0.1:18901/api/mcp?client_type=opencode"}}}
    (user.opencode / "opencode.json").write_text(json.dumps(settings))
    (user.opencode / ".gitignore").touch()
    program = user.root / "bin" / "opencode"
    program.write_text(program.read_text().replace("1.18.33", "1.2.3"))
    user.environment |= {"OPENCODE_PURE": "1", "OPENCODE_LISTS": f"- {user.file_of('opencode').as_uri()}"}
    assert set(user.findings("opencode")) == {"registered_twice", "plugins_off", "untried_version"}


def test_doctor_asks_the_program_itself_whether_it_loads_the_plugin(user):
    user.install("opencode")
    (user.opencode / ".gitignore").touch()  # it has run before
    user.environment["OPENCODE_LISTS"] = "none"
    assert user.findings("opencode")["not_loaded"].level == "error"
    user.environment["OPENCODE_LISTS"] = f"- file://{user.file_of('opencode')}"
    assert not user.findings("opencode")


# --- Pi alone


def test_doctor_sees_the_extension_named_a_second_time_in_pi_s_settings(user):
    user.install("pi")
    copy = user.root / "copy.js"
    copy.write_bytes(user.file_of("pi").read_bytes())
    (user.pi / "settings.json").write_text(json.dumps({"extensions": [str(copy)]}))
    assert str(copy) in user.findings("pi")["registered_twice"].text


@BOTH
def test_looking_for_a_program_makes_no_folder_in_the_users_home(user, runtime):
    before = user.files()
    found = INSTALLERS[runtime].detect(user.context)
    assert found.version in ("1.18.33", "0.74.2")
    assert user.files() == before


@BOTH
def test_a_program_that_cannot_say_its_version_is_named_with_what_it_said(user, runtime):
    program = user.root / "bin" / runtime
    program.write_text("#!/bin/sh\necho no such engine >&2\nexit 3\n")
    outcome = user.install(runtime)
    assert outcome.status == "failed"
    assert "no such engine" in outcome.problem.message
