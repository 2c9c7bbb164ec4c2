"""OpenClaw's installer with a stand-in program, which writes settings anew in its own form as the real one does."""

from __future__ import annotations

import json
import re
import shlex
import sys
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from lorehooks.core.home import Home
from lorehooks.core.tools import tool_definitions
from lorehooks.installers import operations, receipt
from lorehooks.installers.catalog import INSTALLERS
from lorehooks.installers.openclawsettings import config_file, folder
from lorehooks.installers.outcome import Outcome
from lorehooks.installers.plan import Context, Finding
from lorehooks.installers.pluginfiles import plugin_file

MINE = """\
{
  // mine, with remarks
  agents: { defaults: { workspace: '~/ws' } },
  tools: { profile: "coding", },
}
"""
MARKED = '{\n  "tools": {"profile": "coding"},\n  "meta": {"lastTouchedVersion": "2026.9.6", "runs": 1.50}\n}'
PROGRAM = r"""
import json, os, re, shutil, sys
from pathlib import Path

state = os.environ.get("OPENCLAW_STATE_DIR")
config = Path(os.environ.get("OPENCLAW_CONFIG_PATH") or Path(state or Path(os.environ["HOME"]) / ".openclaw") / "openclaw.json")
copies = (Path(state) if state else config.parent) / "extensions"

def read():
    text = config.read_text() if config.exists() else "{}"
    text = re.sub(r"(?m)//.*$", "", text).replace("'", '"')
    text = re.sub(r"([{,]\s*)([A-Za-z_$][\w$-]*)(\s*:)", r'\1"\2"\3', text)
    return json.loads(re.sub(r",(\s*[}\]])", r"\1", text))

def write(data):
    data.setdefault("meta", {})["lastTouchedVersion"] = "2026.9.6"
    config.parent.mkdir(parents=True, exist_ok=True)
    config.with_name("swap").write_text(json.dumps(data, indent=2))
    config.with_name("swap").replace(config)

def merge(old, new):
    for key, value in new.items():
        old[key] = merge(old.get(key, {}), value) if isinstance(value, dict) else value
    return old

words = sys.argv[1:]
with open(Path(os.environ["HOME"]) / "asked", "a") as file:
    file.write(" ".join(words[:2]) + "\n")
if words == ["--version"]:
    print("OpenClaw 2026.9.6 (eb377ac)")
elif os.environ.get("OPENCLAW_CONFIG_READONLY") == "1":
    sys.exit("Config is managed externally (OPENCLAW_CONFIG_READONLY=1)")
elif words[:2] == ["config", "set"]:
    data = read()
    here = data
    for step in words[2].split("."):
        here = here.setdefault(step, {})
    merge(here, json.loads(words[3]))
    write(data)
elif words[:2] == ["config", "unset"]:
    data = read()
    data["plugins"]["entries"].pop("lorehooks")
    write(data)
elif words[:2] == ["config", "get"]:
    print(json.dumps({"enabled": True, "hooks": {"allowConversationAccess": True}}))
elif words[:2] == ["plugins", "install"]:
    manifest = json.loads((Path(words[2]) / "openclaw.plugin.json").read_text())
    shutil.copytree(words[2], copies / manifest["id"], dirs_exist_ok=True)
    data = read()
    plugins = data.setdefault("plugins", {})
    plugins.setdefault("entries", {}).setdefault(manifest["id"], {}).setdefault("enabled", True)
    if plugins.get("allow") and manifest["id"] not in plugins["allow"]:
        plugins["allow"].append(manifest["id"])
    write(data)
elif words[:2] == ["plugins", "uninstall"]:
    if not (copies / words[2]).is_dir():
        sys.exit("Plugin not found: lorehooks")
    shutil.rmtree(copies / words[2])
    data = read()
    data["plugins"]["entries"][words[2]] = {"enabled": False}
    if words[2] in data["plugins"].get("allow", []):
        data["plugins"]["allow"].remove(words[2])
    write(data)
elif words[:2] == ["plugins", "inspect"]:
    print(os.environ.get("INSPECTED", '{"plugin": {"status": "loaded"}, "typedHooks": [{"name": "before_prompt_build"}]}'))
else:
    sys.exit(f"unknown: {words}")
"""


@dataclass
class User:
    """A user's machine with OpenClaw."""

    root: Path
    environment: dict[str, str]

    @property
    def home(self) -> Home:
        return Home(self.root / ".lore")

    @property
    def context(self) -> Context:
        return Context(self.home, self.root, self.environment)

    @property
    def state(self) -> Path:
        return self.root / ".openclaw"

    @property
    def config(self) -> Path:
        return self.state / "openclaw.json"

    @property
    def copy(self) -> Path:
        return self.state / "extensions" / "lorehooks"

    @property
    def asked(self) -> list[str]:
        """What the program was asked for since the last time."""
        file = self.root / "asked"
        words = file.read_text().split("\n")[:-1] if file.exists() else []
        file.unlink(missing_ok=True)
        return words

    def install(self, *, dry_run: bool = False) -> Outcome:
        return operations.install(self.context, "openclaw", lambda *_: {}, dry_run=dry_run)

    def uninstall(self) -> Outcome:
        return operations.uninstall(self.context, "openclaw")

    def findings(self) -> dict[str, Finding]:
        noted = receipt.load(self.home, "openclaw")
        return {each.code: each for each in INSTALLERS["openclaw"].check(replace(self.context, receipt=noted))}

    def files(self) -> dict[str, bytes | str]:
        return {
            str(path.relative_to(self.state)): path.read_bytes() if path.is_file() else "folder"
            for path in self.state.rglob("*")
        }


@pytest.fixture
def user(tmp_path: Path) -> User:
    root = tmp_path / "zoë 김"
    (root / ".openclaw").mkdir(parents=True)
    (root / "bin").mkdir()
    body = root / "bin" / "openclaw.py"
    body.write_text(PROGRAM)
    program = root / "bin" / "openclaw"
    program.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -I {shlex.quote(str(body))} "$@"\n')
    program.chmod(0o755)
    return User(root, {"PATH": f"{root / 'bin'}:/usr/bin:/bin", "HOME": str(root)})


@pytest.mark.parametrize("mine", [None, MARKED, MARKED.replace('"meta"', '"plugins": {"allow": ["other"]}, "meta"')])
def test_installing_twice_and_uninstalling_leaves_the_state_as_it_was(user, mine):
    if mine is not None:
        user.config.write_text(mine)
    before = user.files()
    assert user.install(dry_run=True).status == "planned"
    assert user.files() == before
    outcome = user.install()
    assert outcome.status == "installed"
    assert any("may see conversations" in note for note in outcome.notes)
    assert not user.findings()
    installed = user.files()
    assert user.install().status == "unchanged"
    assert user.files() == installed
    assert user.uninstall().stays == ()
    assert user.files() == before
    assert receipt.installed(user.home) == ()


def test_only_its_own_commands_make_the_entries_and_the_users_form_comes_back(user):
    user.config.write_text(MINE)
    user.install()
    assert user.asked == ["config set", "plugins install"]
    text = user.config.read_text()
    assert text.startswith(MINE.removesuffix("}\n"))
    assert re.search(r'"allowConversationAccess"\s*:\s*true', text)
    assert '"lastTouchedVersion": "2026.9.6"' in text
    assert user.asked == []


def test_what_openclaw_keeps_for_itself_stays_and_the_rest_is_as_it_was(user):
    user.config.write_text(MINE)
    user.install()
    outcome = user.uninstall()
    assert any("meta" in each for each in outcome.stays)
    assert re.sub(r'  "meta": \{[^}]*\},\n', "", user.config.read_text()) == MINE


def test_remarks_and_settings_of_later_stay_when_we_go(user):
    user.config.write_text(MINE)
    user.install()
    user.config.write_text(user.config.read_text().replace("tools:", "logging: {}, // new\n  tools:"))
    assert not user.findings()
    user.uninstall()
    assert "logging: {}, // new\n" in user.config.read_text()
    assert "// mine" in user.config.read_text()
    assert "lorehooks" not in user.config.read_text()


def test_the_plugin_has_no_kind_and_names_all_tools_for_every_profile(user):
    user.install()
    manifest = json.loads((user.copy / "openclaw.plugin.json").read_text())
    names = [tool["name"] for tool in tool_definitions()]
    assert "kind" not in manifest
    assert manifest["id"] == "lorehooks"
    assert manifest["contracts"]["tools"] == names
    assert list(manifest["toolMetadata"]) == names
    assert {tuple(each["profiles"]) for each in manifest["toolMetadata"].values()} == {
        ("minimal", "coding", "messaging", "full")
    }
    assert json.loads((user.copy / "package.json").read_text())["openclaw"]["extensions"] == ["./index.js"]
    assert (user.copy / "index.js").read_bytes() == plugin_file("openclaw.js", user.home)


def test_a_changed_copy_is_copied_again_and_a_plugin_that_was_switched_off_is_switched_on(user):
    user.install()
    (user.copy / "index.js").write_text("changed")
    assert user.findings()["plugin_file"].level == "error"
    data = json.loads(user.config.read_text())
    data["plugins"]["entries"]["lorehooks"] = {"enabled": False, "hooks": {"timeouts": {"before_prompt_build": 9000}}}
    user.config.write_text(json.dumps(data))
    assert {"disabled", "not_granted"} <= set(user.findings())
    assert user.install().status == "updated"
    assert not user.findings()
    entry = json.loads(user.config.read_text())["plugins"]["entries"]["lorehooks"]
    assert entry["hooks"] == {"timeouts": {"before_prompt_build": 9000}, "allowConversationAccess": True}


@pytest.mark.parametrize(
    ("variables", "config", "state"),
    [
        ({"OPENCLAW_CONFIG_PATH": "~/conf/my.json5"}, "conf/my.json5", "conf"),
        ({"OPENCLAW_STATE_DIR": "{root}/state"}, "state/openclaw.json", "state"),
        ({"OPENCLAW_STATE_DIR": "{root}/state", "OPENCLAW_CONFIG_PATH": "{root}/my.json"}, "my.json", "state"),
        ({"OPENCLAW_HOME": "~/other"}, "other/.openclaw/openclaw.json", "other/.openclaw"),
    ],
)
def test_moved_settings_and_state_are_found(user, variables, config, state):
    user.environment |= {name: value.replace("{root}", str(user.root)) for name, value in variables.items()}
    assert config_file(user.context) == user.root / config
    assert folder(user.context) == user.root / state


def test_settings_elsewhere_are_used_and_left_as_they_were(user):
    moved = user.root / "conf" / "my.json5"
    moved.parent.mkdir()
    moved.write_text(MARKED)
    user.environment["OPENCLAW_CONFIG_PATH"] = str(moved)
    assert user.install().status == "installed"
    assert "allowConversationAccess" in moved.read_text()
    assert user.files() == {}
    user.uninstall()
    assert moved.read_text() == MARKED
    assert [path.name for path in moved.parent.iterdir()] == ["my.json5"]


def test_included_files_are_openclaws_to_write(user):
    text = '{ plugins: { $include: "./plugins.json5" } }'
    user.config.write_text(text)
    user.install(dry_run=True)
    outcome = user.install(dry_run=True)
    assert not any(each.startswith("edit ") for each in outcome.changes)
    assert any("includes other files" in note for note in outcome.notes)


def test_settings_that_are_a_link_are_refused_before_anything_is_done(user):
    target = user.root / "dotfiles.json"
    target.write_text(MINE)
    user.config.symlink_to(target)
    outcome = user.install()
    assert outcome.status == "refused"
    assert outcome.problem is not None
    assert outcome.problem.hint == f"OPENCLAW_CONFIG_PATH='{target}' lore install openclaw"
    assert user.config.is_symlink()
    assert not user.copy.exists()


def test_settings_that_openclaw_must_not_write_are_its_own_refusal(user):
    user.config.write_text(MINE)
    user.environment["OPENCLAW_CONFIG_READONLY"] = "1"
    outcome = user.install()
    assert outcome.status == "failed"
    assert "managed externally" in str(outcome.problem)
    assert user.config.read_text() == MINE
    assert receipt.installed(user.home) == ()


def test_without_the_program_nothing_is_installed(user):
    user.environment["PATH"] = "/usr/bin:/bin"
    assert "not on the PATH" in str(user.install().problem)


def test_without_the_program_it_can_still_be_taken_out(user):
    user.config.write_text(MARKED)
    user.install()
    user.environment["PATH"] = "/usr/bin:/bin"
    user.uninstall()
    assert user.config.read_text() == MARKED
    assert not user.copy.exists()


def test_the_public_plugin_and_another_home_are_refused_with_what_clears_the_way(user):
    user.config.write_text('{"plugins": {"entries": {"lore": {"enabled": true}}}}')
    assert user.install().problem.hint == "openclaw plugins uninstall lore --force"
    user.config.write_text('{"plugins": {"entries": {"lore": {"enabled": false}}}}')
    other = Home(user.root / "other")
    other.root.mkdir()
    user.copy.mkdir(parents=True)
    (user.copy / "index.js").write_bytes(plugin_file("openclaw.js", other))
    assert user.install().problem.hint == f"LORE_HOME='{other.root}' lore uninstall openclaw"
    assert user.uninstall().status == "absent"
    assert user.copy.is_dir()
    (user.copy / "index.js").write_text("export default {}")
    assert "not ours" in str(user.install().problem)


def test_doctor_asks_the_program_whether_it_runs_our_hooks(user):
    user.install()
    user.environment["INSPECTED"] = '{"plugin": {"status": "loaded"}, "typedHooks": [{"name": "session_start"}]}'
    assert user.findings()["not_loaded"].level == "error"
    user.environment["INSPECTED"] = "nonsense"
    assert not user.findings()


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"plugins": {"deny": ["lorehooks"]}}, "plugins_off"),
        ({"plugins": {"allow": ["other"]}}, "plugins_off"),
        ({"plugins": {"enabled": False}}, "plugins_off"),
        ({"plugins": {"entries": {"lorehooks": {"hooks": {"allowPromptInjection": False}}}}}, "injection_off"),
        ({"plugins": {"entries": {"lore": {"enabled": True}}}}, "two_memories"),
        ({"tools": {"allow": ["read"]}}, "tools_off"),
    ],
)
def test_doctor_sees_rules_that_keep_memory_out(user, change, code):
    def merged(old, new):
        return {**old, **{k: merged(old.get(k, {}), v) if isinstance(v, dict) else v for k, v in new.items()}}

    user.install()
    user.config.write_text(json.dumps(merged(json.loads(user.config.read_text()), change)))
    assert set(user.findings()) == {code}


def test_settings_that_cannot_be_read_are_named(user):
    user.install()
    user.config.write_text("{ nonsense")
    assert user.findings()["unreadable"].level == "error"
