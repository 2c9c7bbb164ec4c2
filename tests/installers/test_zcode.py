"""ZCode, whose file is all there is of it here: what stands in it, whose it is, and what happens when the app rewrites it."""

from __future__ import annotations

import json
import shlex
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lorehooks.core.errors import ConflictError
from lorehooks.core.home import Home
from lorehooks.installers import engine, receipt, removal
from lorehooks.installers.outcome import Outcome
from lorehooks.installers.plan import Context
from lorehooks.installers.problem import RefusedError
from lorehooks.installers.registered import registered_bridge, registered_process
from lorehooks.installers.zcode import ENABLE, TOOL, ZCode

INSTALLER = ZCode()
THEIRS = {"hooks": [{"type": "process", "command": "echo", "args": ["theirs"], "timeoutMs": 5000}]}


@dataclass
class User:
    root: Path

    @property
    def home(self) -> Home:
        return Home(self.root / ".lore")

    @property
    def file(self) -> Path:
        return self.root / ".zcode" / "cli" / "config.json"

    @property
    def context(self) -> Context:
        environment = {"HOME": str(self.root), "PATH": "/usr/bin:/bin"}
        return Context(self.home, self.root, environment, receipt.load(self.home, "zcode"))

    def install(self, **answers: bool) -> Outcome:
        with receipt.exclusive(self.home):
            return engine.install(INSTALLER, replace(self.context, answers=answers))

    def uninstall(self) -> Outcome:
        with receipt.exclusive(self.home):
            return removal.uninstall(INSTALLER, self.context)

    def read(self) -> dict:
        return json.loads(self.file.read_bytes().decode("utf-8-sig"))

    def write(self, data: object) -> bytes:
        self.file.write_text(json.dumps(data, indent=2))
        return self.file.read_bytes()

    def findings(self) -> list[str]:
        return [finding.code for finding in INSTALLER.check(self.context)]


@pytest.fixture
def user(tmp_path: Path) -> User:
    root = tmp_path / "zoë 김"
    (root / ".zcode" / "cli").mkdir(parents=True)
    return User(root)


def test_what_is_registered_is_a_process_for_each_event_and_a_server(user):
    user.install()
    bridge = registered_bridge(user.home, "zcode")

    def process(event: str) -> dict:
        program, *arguments = registered_process(user.home, "zcode", event)
        return {"type": "process", "command": program, "args": arguments, "timeoutMs": 10_000}

    assert user.read() == {
        "hooks": {
            "events": {
                "SessionStart": [{"hooks": [process("session.start")]}],
                "UserPromptSubmit": [{"hooks": [process("prompt.submit")]}],
                "PreToolUse": [{"matcher": TOOL, "hooks": [process("tool.before")]}],
            },
            "enabled": True,
        },
        "mcp": {"servers": {"lore": {"type": "stdio", "command": bridge[0], "args": list(bridge[1:])}}},
    }
    assert user.file.stat().st_mode & 0o077 == 0
    assert user.findings() == []


# --- files of other people (bug cases A)


@pytest.mark.parametrize("name", ["01_plain.json", "03_bom.json", "05_empty.json", "16_bigint_float.json", None])
def test_install_twice_and_uninstall_leave_the_bytes_of_before(user, case, name):
    if name:
        user.file.write_bytes(case(name))
    assert user.install().status == "installed"
    installed = user.file.read_bytes()
    assert user.install().status == "unchanged"
    assert user.file.read_bytes() == installed
    assert user.findings() == []
    assert user.uninstall().stays == ()
    assert (user.file.read_bytes() if user.file.exists() else None) == (case(name) if name else None)
    assert user.uninstall().status == "absent"


@pytest.mark.parametrize(
    "name",
    ["02_trailing_comma.json", "04_torn.json", "06_array_root.json", "07_hooks_null.json", "08_hooks_list.json",
     "11_dup_keys.json", "14_utf16.json", "15_latin1.json", "20_oc.jsonc"],
)  # fmt: skip
def test_a_file_that_zcode_would_not_read_is_refused_untouched(user, case, name):
    user.file.write_bytes(case(name))
    with pytest.raises(RefusedError, match=f"{user.file}:\\d+:\\d+: ") as caught:
        user.install()
    assert '"timeoutMs": 10000' in caught.value.snippet
    assert user.file.read_bytes() == case(name)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=12,
)
GROUPS = st.lists(st.just(THEIRS), max_size=2)
DOCUMENTS = st.dictionaries(st.text(), JSON, max_size=3).flatmap(
    lambda others: st.fixed_dictionaries(
        {key: st.just(value) for key, value in others.items() if key not in ("hooks", "mcp")},
        optional={
            "hooks": st.fixed_dictionaries(
                {},
                optional={
                    "enabled": st.booleans(),
                    "timeoutMs": st.just(60000),
                    "events": st.dictionaries(st.sampled_from(["SessionStart", "UserPromptSubmit", "Stop"]), GROUPS),
                },
            ),
            "mcp": st.fixed_dictionaries({}, optional={"servers": st.dictionaries(st.just("other"), JSON)}),
        },
    )
)


@given(DOCUMENTS, st.sampled_from([None, 1, "\t"]))
@settings(deadline=None, max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_document_survives_install_and_uninstall_byte_for_byte(user, document, indent):
    user.file.write_text(json.dumps(document, indent=indent, ensure_ascii=False), encoding="utf-8", errors="replace")
    before = user.file.read_bytes()
    user.install(enable_hooks=True)
    assert user.findings() == []
    assert user.uninstall().stays == ()
    assert user.file.read_bytes() == before


# --- the switch for all hooks (bug case A28)


@pytest.mark.parametrize("before", [{}, {"enabled": False}, {"enabled": True}, {"enabled": None}])
def test_the_switch_has_its_old_value_again_afterwards(user, before):
    content = user.write({"hooks": before})
    done = user.install()
    assert user.read()["hooks"]["enabled"] is True
    assert any("switched off" in note for note in done.notes) == (before.get("enabled") is not True)
    assert user.uninstall().stays == ()
    assert user.file.read_bytes() == content


@pytest.mark.parametrize("before", [{}, {"enabled": False}])
def test_hooks_of_others_that_were_off_are_switched_on_only_on_the_users_word(user, before):
    content = user.write({"hooks": {**before, "events": {"Stop": [THEIRS]}}})
    assert ENABLE.arises(user.context)
    with pytest.raises(ConflictError, match="would start 1 that are not ours") as caught:
        user.install()
    assert caught.value.hint == "lore install zcode --enable-hooks"
    assert user.file.read_bytes() == content
    user.install(enable_hooks=True)
    assert user.install().status == "unchanged"  # the word is kept
    assert user.uninstall().stays == ()
    assert user.file.read_bytes() == content


def test_hooks_of_others_that_are_on_raise_no_question(user):
    user.write({"hooks": {"enabled": True, "events": {"Stop": [THEIRS]}}})
    assert not ENABLE.arises(user.context)
    assert user.install().ok


def test_the_switch_stays_on_for_those_who_came_later_and_the_outcome_says_so(user):
    user.write({"hooks": {"enabled": False}})
    user.install()
    data = user.read()
    data["hooks"]["events"]["Stop"] = [THEIRS]
    user.write(data)
    (stays,) = user.uninstall().stays
    assert "hooks.enabled" in stays
    assert "came later" in stays
    assert user.read() == {"hooks": {"enabled": True, "events": {"Stop": [THEIRS]}}}


# --- the app writes the file anew


@pytest.mark.parametrize(
    ("drop", "code"),
    [
        (("hooks", "events", "UserPromptSubmit"), "not_registered"),
        (("hooks", "events"), "not_registered"),
        (("hooks", "enabled"), "hooks_off"),
        (("hooks",), "hooks_off"),
        (("mcp", "servers", "lore"), "no_tools"),
        (("mcp",), "no_tools"),
    ],
)
def test_what_the_app_drops_is_named_and_installing_again_puts_it_back(user, drop, code):
    user.write({"model": "glm-5", "hooks": {"timeoutMs": 60000}})
    user.install()
    whole, data = user.read(), user.read()
    here = data
    for step in drop[:-1]:
        here = here[step]
    del here[drop[-1]]
    user.file.write_text(json.dumps(data))
    assert code in user.findings()
    assert user.install().status == "updated"
    assert user.findings() == []
    assert user.read()["mcp"] == whole["mcp"]
    assert user.read()["hooks"]["events"] == whole["hooks"]["events"]
    assert user.uninstall().stays == ()
    left = user.read()
    assert not [text for text in (str(user.home.bin), "enabled", "lore") if text in json.dumps(left)]
    assert left["model"] == "glm-5"


def test_our_entry_in_a_form_that_does_not_work_is_replaced_and_a_longer_time_is_kept(user):
    user.install()
    data = user.read()
    data["hooks"]["events"]["SessionStart"][0]["hooks"][0]["timeoutMs"] = 90_000
    data["hooks"]["events"]["UserPromptSubmit"][0]["hooks"][0]["timeoutMs"] = 0
    data["hooks"]["events"]["PreToolUse"][0]["matcher"] = "Bash"
    user.write(data)
    assert user.findings() == ["not_registered", "not_registered", "registered_twice"]
    user.install()
    assert user.findings() == []
    assert user.read()["hooks"]["events"]["SessionStart"][0]["hooks"][0]["timeoutMs"] == 90_000
    assert len(user.read()["hooks"]["events"]["UserPromptSubmit"]) == 1


def test_a_limit_of_output_below_our_blocks_is_told(user):
    user.write({"hooks": {"maxOutputBytes": 8192}})
    assert user.install().ok
    assert user.findings() == ["small_output"]
    user.write({"hooks": {**user.read()["hooks"], "maxOutputBytes": 40_000}, "mcp": user.read()["mcp"]})
    assert user.findings() == []


# --- others


def test_a_server_of_that_name_that_is_not_ours_is_refused(user):
    before = user.write({"mcp": {"servers": {"lore": {"type": "http", "url": "http://127.0.0.1:18901/api/mcp"}}}})
    with pytest.raises(ConflictError, match="not ours"):
        user.install()
    assert user.file.read_bytes() == before
    assert "two_memories" in user.findings()


def test_another_home_that_is_there_is_refused_and_one_that_is_gone_is_replaced_for_good(user):
    other = User(user.root)
    moved = Home(user.root / "old" / ".lore")
    with receipt.exclusive(moved):
        engine.install(INSTALLER, replace(other.context, home=moved))
    moved.bin.mkdir()
    with pytest.raises(ConflictError) as caught:
        user.install()
    assert caught.value.hint == f"LORE_HOME={shlex.quote(str(moved.root))} lore uninstall zcode"
    moved.bin.rmdir()
    user.install()
    assert str(moved.root) not in user.file.read_text()
    user.uninstall()
    assert str(moved.root) not in user.file.read_text()


def test_without_a_receipt_ours_is_found_and_the_rest_stays(user):
    user.write({"model": "glm-5"})
    user.install()
    (user.home.receipts / "zcode.json").unlink()
    assert user.uninstall().stays == ()
    assert user.read() == {"model": "glm-5", "hooks": {"enabled": True}}


def test_zcode_is_found_by_its_folder_and_its_program_is_never_started(user):
    program = user.root / "bin" / "zcode"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\ntouch {shlex.quote(str(user.root / 'started'))}\n")
    program.chmod(0o755)
    assert INSTALLER.detect(user.context).present
    found = INSTALLER.detect(replace(user.context, environment={"HOME": str(user.root), "PATH": str(program.parent)}))
    assert (found.program, found.version) == (program, "")
    assert not (user.root / "started").exists()
