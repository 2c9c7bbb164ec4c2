"""Codex with a stand-in for its program: what stands in whose file, whose word its hooks need, what stays untouched."""

from __future__ import annotations

import json
import shlex
import sys
import tomllib
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from lorehooks.core.errors import ConflictError, LoreError
from lorehooks.core.home import Home
from lorehooks.installers import codex, codexserver, codextrust, engine, hookentries, receipt, removal
from lorehooks.installers.codex import TRUST, Codex
from lorehooks.installers.codexserver import AppServer
from lorehooks.installers.codexstate import EVENTS, spoilers
from lorehooks.installers.jsontext import parse
from lorehooks.installers.outcome import Outcome
from lorehooks.installers.plan import Context
from lorehooks.installers.problem import RefusedError
from lorehooks.installers.registered import registered_bridge, registered_command

INSTALLER = Codex()
FAKE = Path(__file__).parents[1] / "support" / "fake_codex.py"
CONFIG = '# mine\nmodel = "x"  # kept\n\n[mcp_servers.other]\ncommand = "true"\nargs = ["a",   "b"]\n'
THEIRS = {"type": "command", "command": "echo theirs", "timeout": 5}


@dataclass
class User:
    """A user with Codex's home, and the program unless `without_program`."""

    root: Path
    environment: dict[str, str]

    @property
    def home(self) -> Home:
        return Home(self.root / ".lore")

    @property
    def hooks(self) -> Path:
        return self.root / ".codex" / "hooks.json"

    @property
    def config(self) -> Path:
        return self.root / ".codex" / "config.toml"

    @property
    def context(self) -> Context:
        return Context(self.home, self.root, self.environment, receipt.load(self.home, "codex"))

    def install(self, **answers: bool) -> Outcome:
        with receipt.exclusive(self.home):
            return engine.install(INSTALLER, replace(self.context, answers=answers))

    def uninstall(self) -> Outcome:
        with receipt.exclusive(self.home):
            return removal.uninstall(INSTALLER, self.context)

    def read(self) -> dict:
        return json.loads(self.hooks.read_bytes())["hooks"]

    def table(self) -> dict:
        return tomllib.loads(self.config.read_text())

    def findings(self) -> list[str]:
        return [finding.code for finding in INSTALLER.check(self.context)]

    def without_program(self) -> None:
        self.environment["PATH"] = "/usr/bin:/bin"

    def files(self) -> dict[str, bytes]:
        folder = self.root / ".codex"
        return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture
def user(tmp_path: Path) -> User:
    root = tmp_path / "zoë 김"
    (root / "bin").mkdir(parents=True)
    (root / ".codex").mkdir()
    program = root / "bin" / "codex"
    program.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} {shlex.quote(str(FAKE))} "$@"\n')
    program.chmod(0o755)
    return User(root, {"HOME": str(root), "PATH": f"{root / 'bin'}:/usr/bin:/bin"})


def own(user: User) -> dict[str, str]:
    return {name: registered_command(user.home, "codex", event) for name, event in EVENTS.items()}


# --- files of other people (bug cases A)


@pytest.mark.parametrize(
    "name", ["01_plain.json", "03_bom.json", "05_empty.json", "13_lookalike.json", "16_bigint_float.json", None]
)
@pytest.mark.parametrize("trust", [True, False])
def test_install_twice_and_uninstall_leave_the_bytes_of_before(user, case, name, trust):
    if name:
        user.hooks.write_bytes(case(name))
        user.hooks.chmod(0o640)
    user.config.write_text(CONFIG)
    before = user.files()
    trust = trust and name != "03_bom.json"  # Codex cannot read such a file, as the outcome says
    assert user.install(trust=trust).status == "installed"
    installed = user.files()
    assert user.install().status == "unchanged"
    assert user.files() == installed
    assert user.uninstall().stays == ()
    assert user.files() == before
    assert not name or user.hooks.stat().st_mode & 0o777 == 0o640
    assert user.uninstall().status == "absent"


@pytest.mark.parametrize(
    "name",
    [
        "02_trailing_comma.json", "04_torn.json", "06_array_root.json", "07_hooks_null.json", "08_hooks_list.json",
        "09_event_dict.json", "11_dup_keys.json", "14_utf16.json", "15_latin1.json", "20_oc.jsonc",
    ],
)  # fmt: skip
def test_a_file_that_codex_would_not_read_is_refused_before_anything_is_done(user, case, name):
    user.hooks.write_bytes(case(name))
    with pytest.raises(RefusedError, match=f"{user.hooks}:\\d+:\\d+: ") as caught:
        user.install()
    assert '"timeout": 10' in caught.value.snippet
    assert user.files() == {"hooks.json": case(name)}


def test_entries_of_others_keep_their_bytes_and_their_places(user):
    groups = [{"hooks": [THEIRS]}, {"matcher": "startup", "hooks": [THEIRS, THEIRS]}]
    user.hooks.write_text(json.dumps({"description": "mine", "hooks": {"SessionStart": groups, "Stop": groups}}))
    user.install()
    assert user.read()["SessionStart"][:2] == groups
    assert user.read()["Stop"] == groups
    assert user.read()["SessionStart"][2]["hooks"][0]["command"] == own(user)["SessionStart"]


def test_a_link_stays_a_link(user):
    (user.root / "dot").mkdir()
    (user.root / "dot" / "hooks.json").write_text("{}")
    user.hooks.symlink_to("../dot/hooks.json")
    user.install()
    assert user.hooks.is_symlink()
    assert user.uninstall().stays == ()
    assert user.hooks.is_symlink()
    assert user.hooks.read_text() == "{}"


def test_hooks_written_into_the_configuration_itself_stay_and_run_beside_ours(user, case):
    user.config.write_bytes(case("31_codex_inline.toml"))
    foreign = user.table()["hooks"]
    done = user.install()
    assert any("both run" in note for note in done.notes)
    assert user.table()["hooks"] == foreign
    assert user.findings() == ["two_files", "untrusted", "untrusted", "untrusted"]
    user.uninstall()
    assert user.config.read_bytes() == case("31_codex_inline.toml")


def test_ours_in_the_configuration_itself_would_run_twice_and_is_refused(user):
    handler = json.dumps(own(user)["UserPromptSubmit"])
    user.config.write_text(
        f'[[hooks.UserPromptSubmit]]\n[[hooks.UserPromptSubmit.hooks]]\ntype="command"\ncommand={handler}\n'
    )
    with pytest.raises(ConflictError, match="run twice"):
        user.install()
    assert "two_memories" in user.findings()


def test_a_server_of_that_name_that_is_not_ours_is_refused_with_the_command_that_clears_the_way(user, case):
    user.config.write_bytes(case("33_codex_markers.toml"))
    with pytest.raises(ConflictError) as caught:
        user.install()
    assert caught.value.hint == "codex mcp remove lore"
    assert user.files() == {"config.toml": case("33_codex_markers.toml")}


def test_our_server_is_known_without_comments_and_a_foreign_table_behind_it_stays(user):
    """Marks around what is ours get lost, and other tables get between them (bug cases A18 and A20)."""
    program, *arguments = registered_bridge(user.home, "codex")
    ours = f"[mcp_servers.lore]\ncommand = {json.dumps(program)}\nargs = {json.dumps(arguments)}\nenabled = true\n"
    user.config.write_text(f"{ours}[desktop]\nforeign = true\n")
    done = user.install()
    assert not [change for change in done.changes if change.startswith("ran ")]
    assert user.table()["mcp_servers"]["lore"]["enabled"] is True
    assert user.uninstall().stays == ()
    assert user.table() == {"desktop": {"foreign": True}}


def test_a_configuration_that_cannot_be_read_is_refused_with_its_place(user):
    user.config.write_text('model = "x"\nmodel = "y"\n')
    with pytest.raises(RefusedError, match=r"config\.toml:2:\d+: it is not valid TOML"):
        user.install()
    assert not user.hooks.exists()
    assert user.findings() == ["unreadable"]


# --- what is registered


def test_every_entry_has_whole_seconds_within_what_codex_allows_and_no_matcher(user):
    user.install()
    assert set(user.read()) == {"SessionStart", "UserPromptSubmit", "SubagentStart"}
    for name, groups in user.read().items():
        ((handler,),) = (group.pop("hooks") for group in groups)
        assert groups == [{}]  # a matcher would shut out a source of a later release
        assert handler == {"type": "command", "command": own(user)[name], "timeout": 10}
        assert isinstance(handler["timeout"], int)
    assert user.table()["mcp_servers"]["lore"] == {
        "command": "/bin/sh",
        "args": ["-c", registered_bridge(user.home, "codex")[2]],
    }


def test_another_release_changes_nothing_and_the_trust_holds(user, monkeypatch):
    user.install(trust=True)
    before = user.files()
    monkeypatch.setattr(receipt, "here", lambda: ("9.9.9", "/opt/other"))
    assert user.install().status == "unchanged"
    assert user.files() == before
    assert user.findings() == []
    noted = receipt.load(user.home, "codex")
    assert noted
    assert noted.lorehooks == "9.9.9"


@pytest.mark.parametrize(
    ("change", "kept"),
    [
        ({"timeout": 60}, True),
        ({"statusMessage": "remembering"}, True),
        ({"timeout": 1}, False),
        ({"timeout": 0}, False),
        ({"async": True}, False),
        ({"command": "true # "}, False),
    ],
)
def test_what_a_user_changed_in_our_entry_stays_as_long_as_it_works(user, change, kept):
    user.install()
    data = json.loads(user.hooks.read_bytes())
    handler = data["hooks"]["SessionStart"][0]["hooks"][0]
    handler.update({**change, "command": change.get("command", "") + handler["command"]})
    user.hooks.write_text(json.dumps(data))
    assert ("not_registered" in user.findings()) != kept
    assert user.install().status == ("unchanged" if kept else "updated")
    assert not {"not_registered", "registered_twice"} & set(user.findings())


def test_a_matcher_that_shuts_out_compaction_is_named_and_mended(user):
    user.install()
    data = json.loads(user.hooks.read_bytes())
    data["hooks"]["SessionStart"][0]["matcher"] = "startup|resume|clear"
    user.hooks.write_text(json.dumps(data))
    assert "not_registered" in user.findings()
    user.install()
    assert "matcher" not in user.read()["SessionStart"][0]
    data["hooks"]["SessionStart"][0]["matcher"] = "startup|resume|clear|compact"
    user.hooks.write_text(json.dumps(data))
    assert user.install().status == "unchanged"


def test_our_entries_twice_are_named_and_one_of_each_is_left(user):
    user.install()
    data = json.loads(user.hooks.read_bytes())
    ours = data["hooks"]["UserPromptSubmit"][0]
    data["hooks"]["UserPromptSubmit"] += [{"hooks": [THEIRS, ours["hooks"][0]]}, {"matcher": "*", **ours}]
    user.hooks.write_text(json.dumps(data))
    assert "registered_twice" in user.findings()
    user.install()
    assert user.read()["UserPromptSubmit"] == [ours, {"hooks": [THEIRS]}]
    user.uninstall()
    assert user.read() == {"UserPromptSubmit": [{"hooks": [THEIRS]}]}


def test_entries_of_a_home_that_is_gone_are_replaced_and_never_come_back(user):
    old = User(user.root, {**user.environment})
    moved = Home(user.root / "old" / ".lore")
    with receipt.exclusive(moved):
        engine.install(INSTALLER, replace(old.context, home=moved))
    (moved.bin).mkdir()
    with pytest.raises(ConflictError) as caught:
        user.install()
    assert caught.value.hint == f"LORE_HOME={shlex.quote(str(moved.root))} lore uninstall codex"
    moved.bin.rmdir()
    user.install()
    assert str(moved.root) not in user.hooks.read_text() + user.config.read_text()
    user.uninstall()
    assert user.read() == {"SessionStart": [], "UserPromptSubmit": [], "SubagentStart": []}


def test_without_a_receipt_ours_is_found_and_the_rest_stays(user):
    user.hooks.write_text(json.dumps({"hooks": {"Stop": [{"hooks": [THEIRS]}]}}))
    user.install(trust=True)
    (user.home.receipts / "codex.json").unlink()
    assert user.uninstall().stays == ()
    assert user.read() == {"Stop": [{"hooks": [THEIRS]}]}
    assert user.table() == {}


# --- others


@pytest.mark.parametrize(
    ("config", "hooks", "hint"),
    [
        ('[plugins."lore@lore"]\nenabled = true\n', "{}", "codex plugin remove lore@lore"),
        (
            "",
            json.dumps({"hooks": {"SessionStart": [{"hooks": [{**THEIRS, "command": "node '/x/hooks/lore/hooks/rules-inject.mjs'"}]}]}}),
            "npx @loremem/cli uninstall --channels codex",
        ),
        ('[mcp_servers.lore]\nurl = "http://127.0.0.1:18901/api/mcp"\n', "{}", "codex mcp remove lore"),
    ],
)  # fmt: skip
def test_two_memories_are_refused_with_the_command_that_removes_the_other(user, config, hooks, hint):
    user.config.write_text(config)
    user.hooks.write_text(hooks)
    before = user.files()
    with pytest.raises(ConflictError) as caught:
        user.install()
    assert caught.value.hint == hint
    assert user.files() == before
    assert "two_memories" in user.findings()


def test_a_plugin_of_the_public_product_that_is_switched_off_is_no_hindrance(user):
    user.config.write_text('[plugins."lore@lore"]\nenabled = false\n')
    assert user.install().ok


@pytest.mark.parametrize("switch", ["hooks = false", "codex_hooks = false"])
def test_hooks_switched_off_as_a_whole_are_named_and_left(user, switch):
    user.config.write_text(f"[features]\n{switch}\n")
    assert user.install().ok
    assert "hooks_off" in user.findings()
    assert user.table()["features"] == tomllib.loads(switch)


@pytest.mark.parametrize(
    ("content", "word"),
    [
        ('{"hooks": {}, "x": 1}', "the key 'x'"),
        ('{"hooks": {"Stop": [{"hooks": [{"type": "http", "url": "x"}]}]}}', "type of hooks.Stop[0].hooks[0]"),
        ('{"hooks": {"Stop": [{"hooks": [{"command": "x"}]}]}}', "type of hooks.Stop[0].hooks[0]"),
        ('{"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "x", "timeout": 2.5}]}]}}', "timeout"),
        ('{"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "x", "timeout": "5"}]}]}}', "timeout"),
        ('{"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "x", "timeout": -1}]}]}}', "timeout"),
        ('{"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "x", "async": 1}]}]}}', "async"),
        ('{"hooks": {"Stop": [{"matcher": 1, "hooks": []}]}}', "matcher"),
        ('{"hooks": {"Stop": {}}}', "hooks.Stop is not a list"),
        ('\ufeff{"hooks": {}}', "byte order mark"),
    ],
)
def test_what_makes_codex_drop_the_whole_file_is_told(user, content, word):
    user.hooks.write_text(content)
    done = user.install()
    assert any(word in note for note in done.notes)
    (finding,) = (each for each in INSTALLER.check(user.context) if each.code == "file_dropped")
    assert word in finding.text


@pytest.mark.parametrize(
    "content",
    [
        "{}",
        '{"description": "x", "hooks": {"Later": {"x": 1}, "Stop": [{"hooks": [{"type": "mcp_tool", "server": "a", "tool": "b"}]}]}}',
        '{"hooks": {"Stop": [{"x": 1, "hooks": [{"type": "command", "command": "x", "timeout": null, "x": 1}]}, {}]}}',
    ],
)
def test_what_codex_reads_is_not_held_against_a_file(content):
    assert list(spoilers(content.encode(), parse(content.encode(), name="x").plain)) == []


# --- trust


def test_the_hash_is_what_codex_computes():
    """Recorded from `hooks/list` of 0.171.0."""
    line = "[ -x '/h/o me/python' ] && exec '/h/o me/python' -I -S '/h/hook.py' codex session.start; exit 0"
    handler = {"type": "command", "command": line}
    events = {
        "SessionStart": [{"matcher": "startup|resume|clear|compact", "hooks": [{**handler, "timeout": 10}]}],
        "UserPromptSubmit": [{"hooks": [{**handler, "timeout": 10, "statusMessage": "lore"}]}],
        "SubagentStart": [{"hooks": [handler]}],
    }
    seen = {
        "/h/hooks.json:session_start:0:0": "e70c1fda75fd69138f625a642c813982f352e8220ffb99b5e8ef56502e3d351b",
        "/h/hooks.json:user_prompt_submit:0:0": "92572340b252b3188586710191a613a92a4e25b7d9502682ff568d8fd6e9d745",
        "/h/hooks.json:subagent_start:0:0": "e72e2a93eb51d21b66afe342a14d0c9115ad33c5da3519bc9aa0231a6f1ef1d3",
    }
    plain = parse(json.dumps({"hooks": events}).encode(), name="x").plain
    config = {"hooks": {"state": {key: {"trusted_hash": f"sha256:{value}"} for key, value in seen.items()}}}
    states = codextrust.states(config, Path("/h/hooks.json"), tuple(hookentries.entries(plain, ("hooks",))))
    assert [(each.key, each.state) for each in states] == [(key, "trusted") for key in seen]


def test_trust_is_recorded_only_on_the_users_word_and_only_for_ours(user):
    user.hooks.write_text(json.dumps({"hooks": {"SessionStart": [{"hooks": [THEIRS]}]}}))
    done = user.install()
    assert TRUST.without in done.notes
    assert "--trust" in TRUST.without
    assert "hooks" not in user.table()
    assert user.findings() == ["untrusted"] * 3
    done = user.install(trust=True)
    assert done.changes == ("asked codex app-server to record your trust in the hooks",)
    keys = [key.partition("hooks.json:")[2] for key in user.table()["hooks"]["state"]]
    assert keys == ["session_start:1:0", "user_prompt_submit:0:0", "subagent_start:0:0"]
    assert user.findings() == []
    assert TRUST.without not in user.install().notes


@pytest.mark.parametrize("trust", [True, False])
def test_a_question_arises_only_while_there_is_something_to_trust(user, trust):
    assert TRUST.arises(user.context)
    user.install(trust=trust)
    assert TRUST.arises(user.context) != trust
    user.without_program()
    assert not TRUST.arises(user.context)


def test_each_state_of_trust_is_told_by_hook(user):
    user.install(trust=True)
    keys = {each.event: each.key for each in codex.trust_states(user.context)}
    with AppServer(user.root / "bin" / "codex", user.environment) as server:
        server.write(
            [
                (f"hooks.state.{json.dumps(keys['SessionStart'])}.trusted_hash", "sha256:0"),
                (f"hooks.state.{json.dumps(keys['UserPromptSubmit'])}.enabled", False),
                (f"hooks.state.{json.dumps(keys['SubagentStart'])}", None),
            ]
        )
    assert [(each.event, each.state) for each in codex.trust_states(user.context)] == [
        ("SessionStart", "modified"),
        ("UserPromptSubmit", "disabled"),
        ("SubagentStart", "untrusted"),
    ]
    told = {finding.code: finding for finding in INSTALLER.check(user.context)}
    assert "SessionStart" in told["modified"].text
    assert "UserPromptSubmit" in told["disabled"].text
    assert "SubagentStart" in told["untrusted"].text
    assert all(finding.level == "error" and finding.by_person and finding.fix for finding in told.values())


def test_codex_has_the_last_word_where_the_recorded_hash_is_not_the_one_we_expect(user, monkeypatch):
    user.install(trust=True)
    monkeypatch.setattr(codextrust, "_hash", lambda _: "sha256:of another release")
    assert {each.state for each in codex.trust_states(user.context)} == {"trusted"}
    user.environment["FAKE_CODEX"] = "app-server"
    assert {each.state for each in codex.trust_states(user.context)} == {"modified"}


@pytest.mark.parametrize("fails", ["app-server", "deaf"])
def test_a_trust_that_cannot_be_recorded_does_not_take_the_installation_back(user, fails, monkeypatch):
    monkeypatch.setattr(AppServer.__init__, "__defaults__", (1.0,))
    user.environment["FAKE_CODEX"] = fails
    done = user.install(trust=True)
    assert done.status == "installed"
    assert "record your trust in the hooks failed: codex app-server" in done.notes[-1]
    assert user.findings() == ["untrusted"] * 3
    del user.environment["FAKE_CODEX"]
    assert user.install().status == "updated"  # the word once given holds
    assert user.findings() == []


def test_an_answer_that_is_an_error_or_no_json_is_told_as_such(user):
    program = user.root / "bin" / "other"
    program.write_text(
        '#!/bin/sh\nread line; echo nonsense; echo \'{"id":1,"error":{"message":"not like that"}}\'\ncat\n'
    )
    program.chmod(0o755)
    with pytest.raises(LoreError, match="refused initialize: not like that"), AppServer(program, user.environment):
        pass
    with pytest.raises(LoreError, match="cannot be started"), AppServer(user.root / "nothing", user.environment):
        pass
    assert codexserver.SECONDS <= 60


def test_uninstall_forgets_the_trust_and_says_whose_hooks_codex_will_ask_about_again(user):
    user.install(trust=True)
    data = json.loads(user.hooks.read_bytes())
    data["hooks"]["SessionStart"].append({"hooks": [THEIRS]})
    data["hooks"]["Stop"] = [{"hooks": [THEIRS]}]
    user.hooks.write_text(json.dumps(data))
    with AppServer(user.root / "bin" / "codex", user.environment) as server:
        value = {f"{user.hooks}:stop:0:0": {"trusted_hash": "sha256:theirs"}}
        server.write([("hooks.state", value)])
    done = user.uninstall()
    assert done.stays == ()
    (note,) = done.notes
    assert "SessionStart" in note
    assert "Stop" not in note
    assert user.table() == {"hooks": {"state": value}}


# --- without the program, and when it fails


def test_without_the_program_hooks_are_put_and_the_rest_is_said(user):
    user.without_program()
    user.config.write_text(CONFIG)
    done = user.install(trust=True)
    assert done.status == "installed"
    assert TRUST.without in done.notes
    pasted = "\n".join(done.notes).partition("config.toml:\n")[2]
    assert tomllib.loads(pasted)["mcp_servers"]["lore"]["args"] == list(registered_bridge(user.home, "codex"))[1:]
    assert user.config.read_text() == CONFIG
    assert user.findings() == ["no_tools", "untrusted", "untrusted", "untrusted"]
    assert user.uninstall().stays == ()
    assert user.files() == {"config.toml": CONFIG.encode()}


def test_what_only_codex_can_take_out_is_named_when_it_is_gone(user):
    user.install(trust=True)
    user.without_program()
    done = user.uninstall()
    assert not user.hooks.exists()
    assert done.stays == (
        "codex mcp remove lore did not help",
        "asking codex app-server to forget the trust in them did not help",
    )


def test_a_first_installation_that_fails_leaves_nothing(user):
    user.config.write_text(CONFIG)
    before = user.files()
    user.environment["FAKE_CODEX"] = "mcp"
    with pytest.raises(LoreError, match="mcp fails"):
        user.install()
    assert user.files() == before
    assert receipt.load(user.home, "codex") is None


def test_a_release_that_is_too_old_is_named_with_the_one_needed(user):
    user.environment["FAKE_CODEX_VERSION"] = "codex-cli 0.98.0"
    assert "0.160.0 or newer is needed" in INSTALLER.detect(user.context).problem
    user.environment["FAKE_CODEX_VERSION"] = "codex-cli 0.200.0-alpha.3"
    assert INSTALLER.detect(user.context).problem == ""


def test_looking_for_codex_leaves_no_trace_in_its_home(user):
    user.environment["CODEX_HOME"] = str(user.root / "moved")
    found = INSTALLER.detect(user.context)
    assert (found.version, found.folder) == ("codex-cli 0.171.0", user.root / "moved")
    assert not (user.root / "moved").exists()
    with pytest.raises(LoreError, match="which is not there"):
        user.install()


def test_a_moved_home_gets_the_hooks_and_its_trust_is_known_by_either_name(user):
    real = user.root / "real"
    (user.root / ".codex").rename(real)
    (user.root / "link").symlink_to(real)
    user.environment["CODEX_HOME"] = str(user.root / "link")
    user.install(trust=True)
    assert (real / "hooks.json").exists()
    assert user.findings() == []
    config = (real / "config.toml").read_text()
    (real / "config.toml").write_text(config.replace(f"{user.root}/link/", f"{real}/"))
    assert user.findings() == []
