"""Claude Code without its program: the settings file alone, and what must not be touched in it."""

from __future__ import annotations

import json
import shlex
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from lorehooks.core.errors import ConflictError, LoreError
from lorehooks.core.home import Home
from lorehooks.installers import claudecode, engine, receipt, removal
from lorehooks.installers.claudecode import ALLOW_READS, MARKETPLACE, PLUGIN, READING_TOOLS, ClaudeCode
from lorehooks.installers.plan import Context
from lorehooks.installers.problem import RefusedError
from lorehooks.installers.registered import registered_bridge, registered_command

INSTALLER = ClaudeCode()


@pytest.fixture
def context(tmp_path: Path) -> Context:
    """A user who has `~/.claude` and no `claude` on the PATH."""
    user = tmp_path / "user"
    (user / ".claude").mkdir(parents=True)
    return Context(Home(user / ".lore"), user, {"HOME": str(user), "PATH": "/usr/bin:/bin"})


def current(context: Context) -> Context:
    return replace(context, receipt=receipt.load(context.home, "claudecode"))


def install(context: Context, **answers: bool):
    with receipt.exclusive(context.home):
        return engine.install(INSTALLER, replace(current(context), answers=answers))


def uninstall(context: Context):
    with receipt.exclusive(context.home):
        return removal.uninstall(INSTALLER, current(context))


def settings(context: Context) -> Path:
    return claudecode.settings_file(context)


def read(context: Context) -> dict:
    return json.loads(settings(context).read_bytes())


def plugin(context: Context) -> Path:
    return claudecode.marketplace(context.home) / "plugins" / "lore"


@pytest.mark.parametrize(
    "name", ["01_plain.json", "03_bom.json", "05_empty.json", "13_lookalike.json", "16_bigint_float.json"]
)
def test_install_twice_and_uninstall_leave_the_bytes_of_before(context, case, name):
    settings(context).write_bytes(case(name))
    settings(context).chmod(0o640)
    assert install(context, allow_reads=True).status == "installed"
    installed = settings(context).read_bytes()
    assert install(context).status == "unchanged"
    assert settings(context).read_bytes() == installed
    assert not [finding for finding in INSTALLER.check(current(context)) if finding.level != "info"]
    assert uninstall(context).stays == ()
    assert settings(context).read_bytes() == case(name)
    assert settings(context).stat().st_mode & 0o777 == 0o640
    assert [each.name for each in (context.user_home / ".claude").iterdir()] == ["settings.json"]
    assert not context.home.plugins.exists()
    assert uninstall(context).status == "absent"


@pytest.mark.parametrize(
    "name",
    ["02_trailing_comma.json", "04_torn.json", "06_array_root.json", "14_utf16.json", "15_latin1.json", "20_oc.jsonc"],
)
def test_a_file_that_claude_code_would_not_read_is_refused_untouched(context, case, name):
    settings(context).write_bytes(case(name))
    with pytest.raises(RefusedError, match=f"{settings(context)}:\\d+:\\d+: "):
        install(context)
    assert settings(context).read_bytes() == case(name)
    assert not context.home.plugins.exists()


def test_what_the_program_writes_is_what_we_write(context):
    """As seen in a settings file that `claude plugin install` 2.1.332 wrote."""
    install(context)
    assert read(context) == {
        "extraKnownMarketplaces": {
            "lorehooks": {"source": {"source": "directory", "path": str(context.home.plugins / "claudecode")}}
        },
        "enabledPlugins": {"lore@lorehooks": True},
    }


def test_reading_is_allowed_only_on_the_users_word_and_writing_never(context):
    settings(context).write_text('{"permissions": {"allow": ["mcp__plugin_lore_lore__lore_search", "Bash(ls)"]}}')
    before = settings(context).read_bytes()
    done = install(context)
    assert ALLOW_READS.without in done.notes
    assert "allow-reads" in ALLOW_READS.without
    assert len(read(context)["permissions"]["allow"]) == 2
    install(context, allow_reads=True)
    allowed = read(context)["permissions"]["allow"]
    assert set(allowed) == {"Bash(ls)", *(f"mcp__plugin_lore_lore__{tool}" for tool in READING_TOOLS)}
    assert not [rule for rule in allowed if any(word in rule for word in ("create", "update", "delete", "move", "*"))]
    assert install(context).status == "unchanged"  # an update keeps the answer
    uninstall(context)
    assert settings(context).read_bytes() == before


def test_the_public_plugin_is_refused_with_the_command_that_removes_it(context):
    settings(context).write_text('{"enabledPlugins": {"lore@lore": true}}')
    with pytest.raises(ConflictError) as caught:
        install(context)
    assert caught.value.hint == "claude plugin uninstall lore@lore"
    settings(context).write_text('{"enabledPlugins": {"lore@lore": false}}')
    assert install(context).status == "installed"
    settings(context).write_text(settings(context).read_text().replace('"lore@lore": false', '"lore@lore": true'))
    assert "two_memories" in {finding.code for finding in INSTALLER.check(context)}


def test_another_living_home_is_refused_and_a_home_that_is_gone_replaced(context, tmp_path):
    other = replace(context, home=Home(tmp_path / "other home"))
    install(other)
    with pytest.raises(ConflictError, match="another home") as caught:
        install(context)
    assert caught.value.hint == f"LORE_HOME='{tmp_path / 'other home'}' lore uninstall claudecode"
    (tmp_path / "other home").rename(tmp_path / "moved home")
    install(context)
    assert read(context)["extraKnownMarketplaces"][MARKETPLACE]["source"]["path"].startswith(str(context.home.root))
    uninstall(context)
    assert MARKETPLACE not in json.dumps(read(context))


def test_our_hooks_in_the_settings_move_into_the_plugin_and_leave_others_alone(context):
    ours = {
        "type": "command",
        "command": registered_command(context.home, "claudecode", "prompt.submit"),
        "timeout": 10,
    }
    theirs = {"type": "command", "command": f"/opt/other.sh {context.home.bin / 'hook.py'}x claudecode"}
    hooks = {"UserPromptSubmit": [{"hooks": [ours]}, {"hooks": [theirs, ours]}], "Stop": [{"hooks": [theirs]}]}
    settings(context).write_text(json.dumps({"hooks": hooks}, indent=2))
    assert "registered_twice" in {finding.code for finding in INSTALLER.check(context)}
    install(context)
    assert read(context)["hooks"] == {"UserPromptSubmit": [{"hooks": [theirs]}], "Stop": [{"hooks": [theirs]}]}
    assert "registered_twice" not in {finding.code for finding in INSTALLER.check(context)}


def test_a_switched_off_plugin_or_missing_file_is_found(context):
    install(context)
    settings(context).write_text(settings(context).read_text().replace("true", "false"))
    assert {"disabled"} <= {finding.code for finding in INSTALLER.check(context)}
    (plugin(context) / "hooks" / "hooks.json").unlink()
    found = {finding.code: finding for finding in INSTALLER.check(context)}
    assert found["plugin_files"].fix == "lore install claudecode"
    settings(context).write_text('{"disableAllHooks": true}')
    assert {"hooks_off", "not_registered"} <= {finding.code for finding in INSTALLER.check(context)}
    settings(context).write_text("{")
    assert [finding.code for finding in INSTALLER.check(context)] == ["unreadable"]


def test_the_manifest_names_neither_hooks_nor_servers_that_are_found_by_their_place(context):
    install(context)
    manifest = json.loads((plugin(context) / ".claude-plugin" / "plugin.json").read_bytes())
    assert {"hooks", "mcpServers"}.isdisjoint(manifest)
    market = json.loads((claudecode.marketplace(context.home) / ".claude-plugin" / "marketplace.json").read_bytes())
    assert market["name"] == "lorehooks"
    assert [each["name"] for each in market["plugins"]] == ["lore"]
    assert PLUGIN == "lore@lorehooks"


def test_every_hook_has_a_whole_timeout_above_our_own_and_within_the_hosts(context):
    install(context)
    hooks = json.loads((plugin(context) / "hooks" / "hooks.json").read_bytes())["hooks"]
    assert set(hooks) == {"SessionStart", "UserPromptSubmit", "SubagentStart", "PreToolUse"}
    for event, groups in hooks.items():
        for handler in (handler for group in groups for handler in group["hooks"]):
            assert isinstance(handler["timeout"], int)
            own_limit = 5 if event == "SessionStart" else 2
            assert own_limit + 2 <= handler["timeout"] <= 30
            assert handler["type"] == ("mcp_tool" if event == "PreToolUse" else "command")


@pytest.mark.parametrize("folder", ["Ann Lee", "zoë 김", 'it\'s $HOME `x` \\ "q"', "-rf", "a;b&c"])
def test_commands_work_below_any_folder_name(tmp_path, folder):
    home = Home(tmp_path / folder / ".lore")
    home.bin.mkdir(parents=True)
    (home.bin / "hook.py").touch()
    (home.bin / "python").symlink_to("/bin/sh")  # prints the script's path and arguments in place of running it
    command = registered_command(home, "claudecode", "prompt.submit").replace(
        "-I -S", '-c \'printf %s\\\\n "$0" "$@"\''
    )
    done = subprocess.run(["/bin/sh", "-c", command], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [str(home.bin / "hook.py"), "claudecode", "prompt.submit"]


def test_commands_are_silent_when_the_home_is_gone(tmp_path):
    home = Home(tmp_path / "gone")
    for argv in (
        ["/bin/sh", "-c", registered_command(home, "codex", "prompt.submit")],
        registered_bridge(home, "codex"),
    ):
        done = subprocess.run(argv, input=b"{}", capture_output=True, check=False)
        assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_commands_never_change_between_releases():
    """Hosts store them, and Codex hashes them: a change here needs a migration, not an update of this test."""
    home = Home(Path("/home/ann lee/.lore"))
    assert registered_command(home, "claudecode", "session.start") == (
        "[ -x '/home/ann lee/.lore/bin/python' -a -r '/home/ann lee/.lore/bin/hook.py' ] && "
        "exec '/home/ann lee/.lore/bin/python' -I -S '/home/ann lee/.lore/bin/hook.py' claudecode session.start; exit 0"
    )
    assert shlex.join(registered_bridge(Home(Path("/h/.lore")), "claudecode")) == (
        "/bin/sh -c '[ -x /h/.lore/bin/python -a -r /h/.lore/bin/bridge.py ] && "
        "exec /h/.lore/bin/python -I -S /h/.lore/bin/bridge.py claudecode; exit 0'"
    )


def test_the_program_is_asked_from_its_own_configured_folder(context, tmp_path):
    moved = replace(context, environment={**context.environment, "CLAUDE_CONFIG_DIR": str(tmp_path / "cfg")})
    install(moved)
    assert json.loads((tmp_path / "cfg" / "settings.json").read_bytes())["enabledPlugins"] == {PLUGIN: True}
    assert not settings(context).exists()
    uninstall(moved)
    assert not (tmp_path / "cfg").exists()


@pytest.mark.parametrize(
    ("version", "problem"),
    [("2.1.332 (Claude Code)", False), ("2.1.118", False), ("2.1.117", True), ("1.0.9", True), ("unknown", False)],
)
def test_a_program_that_is_too_old_is_said_with_the_version_needed(context, tmp_path, version, problem):
    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin" / "claude"
    program.write_text(f"#!/bin/sh\necho '{version}'\n")
    program.chmod(0o755)
    found = INSTALLER.detect(replace(context, environment={**context.environment, "PATH": f"{tmp_path / 'bin'}:/bin"}))
    assert bool(found.problem) is problem
    if problem:
        assert "2.1.118 or newer is needed" in found.problem


def test_a_program_that_refuses_its_own_command_leaves_nothing_behind(context, tmp_path):
    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin" / "claude"
    program.write_text("#!/bin/sh\necho 'plugins are switched off by policy' >&2\nexit 1\n")
    program.chmod(0o755)
    settings(context).write_text("{}")
    broken = replace(context, environment={**context.environment, "PATH": f"{tmp_path / 'bin'}:/usr/bin:/bin"})
    with pytest.raises(LoreError, match="plugins are switched off by policy"):
        install(broken)
    assert settings(context).read_text() == "{}"
    assert not context.home.plugins.exists()
