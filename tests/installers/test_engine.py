"""Installing and uninstalling a made-up host: what changes, what stays, and what a crash leaves."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import threading
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lorehooks.core.errors import LoreError
from lorehooks.installers import engine, files, jsonedit, receipt, removal
from lorehooks.installers.edits import Append, Put
from lorehooks.installers.jsontext import parse
from lorehooks.installers.problem import RefusedError

FOREIGN = b'{\n\t"big": 12345678901234567890, "f": 1e400, "t": 1.10,\n\t"hooks": {"Stop": [{"mine": 1}]}\n}\n'


def test_what_was_there_before_is_back_to_the_byte_and_nothing_else_is_left(machine):
    machine.host.settings.write_bytes(FOREIGN)
    before = machine.files()
    done = machine.install()
    assert done.status == "installed"
    assert machine.host.plugin_file.read_bytes() == machine.host.plugin
    assert b'"big": 12345678901234567890, "f": 1e400, "t": 1.10,\n' in machine.host.settings.read_bytes()
    assert machine.uninstall().status == "removed"
    assert machine.files() == before
    assert receipt.load(machine.context.home, "codex") is None
    assert not list((machine.context.home.receipts / "originals").iterdir())


@pytest.mark.parametrize("content", [None, b"", b'{"permissions":{}}'])
def test_a_file_goes_only_when_we_made_it(machine, content):
    if content is not None:
        machine.host.settings.write_bytes(content)
    before = machine.files()
    machine.install()
    machine.uninstall()
    assert machine.files() == before


def test_a_second_run_changes_nothing_and_says_so(rewriting):
    rewriting.host.settings.write_bytes(FOREIGN)
    rewriting.install()
    before = rewriting.files(), (rewriting.context.home.receipts / "codex.json").read_bytes()
    again = rewriting.install()
    assert (again.status, again.changes) == ("unchanged", ())
    assert (rewriting.files(), (rewriting.context.home.receipts / "codex.json").read_bytes()) == before


def test_a_host_that_writes_its_file_anew_does_not_cost_the_user_its_form(rewriting):
    rewriting.host.settings.write_bytes(b'{\n    "t": 1.10, "big": 12345678901234567890,\n    "a": []\n}\n')
    before = rewriting.files()
    done = rewriting.install()
    assert "ran host add" in done.changes
    assert rewriting.host.settings.read_bytes().startswith(
        b'{\n    "t": 1.10, "big": 12345678901234567890,\n    "a": [],'
    )
    assert "ran host remove" in rewriting.uninstall().changes
    assert rewriting.files() == before


def test_the_users_later_changes_stay_and_only_our_entries_go(machine):
    machine.host.settings.write_bytes(FOREIGN)
    machine.install()
    theirs = Append(("hooks", "SessionStart"), {"mine": 2})
    edited = jsonedit.apply(machine.host.settings.read_bytes(), (theirs, Put(("new",), 1)), name="f").content
    machine.host.settings.write_bytes(edited)
    machine.uninstall()
    data = json.loads(machine.host.settings.read_bytes())
    assert data["hooks"] == {"Stop": [{"mine": 1}], "SessionStart": [{"mine": 2}]}
    assert data["new"] == 1
    assert "servers" not in data
    assert b'"f": 1e400, "t": 1.10,\n' in machine.host.settings.read_bytes()


def test_an_entry_of_ours_that_the_user_changed_stays_and_is_named(machine):
    machine.host.settings.write_bytes(b"{}")
    machine.install()
    machine.host.leftovers = lambda _: machine.host.__class__.leftovers(machine.host, _) and engine.Plan()
    machine.host.settings.write_bytes(machine.host.settings.read_bytes().replace(b"bridge", b"mine"))
    done = machine.uninstall()
    assert done.stays == ("servers.lore was changed since and stays",)
    assert json.loads(machine.host.settings.read_bytes())["servers"]["lore"]["command"] == "mine"


def test_an_update_brings_new_entries_in_and_old_ones_out(machine):
    machine.host.settings.write_bytes(FOREIGN)
    before = machine.files()
    machine.install()
    host = replace(
        machine.host, plugin=b"export default { newer: 1 }\n", edits=(Put(("servers", "lore"), {"new": True}),)
    )
    done = machine.install(host)
    assert done.status == "updated"
    assert json.loads(host.settings.read_bytes())["servers"]["lore"] == {"new": True}
    assert host.plugin_file.read_bytes() == host.plugin
    machine.uninstall(host)
    assert machine.files() == before


def test_a_plugin_file_of_someone_else_is_neither_overwritten_nor_removed(machine):
    machine.host.plugin_file.parent.mkdir()
    machine.host.plugin_file.write_bytes(b"theirs")
    with pytest.raises(RefusedError, match="not ours"):
        machine.install()
    assert receipt.load(machine.context.home, "codex") is None
    machine.host.plugin_file.unlink()
    machine.install()
    machine.host.plugin_file.write_bytes(b"changed by its user")
    assert f"{machine.host.plugin_file} was changed since and stays" in machine.uninstall().stays
    assert machine.host.plugin_file.read_bytes() == b"changed by its user"


def test_without_a_receipt_what_is_recognised_goes(machine):
    machine.host.settings.write_bytes(FOREIGN)
    machine.install()
    (machine.context.home.receipts / "codex.json").unlink()
    assert machine.uninstall().status == "removed"
    assert parse(machine.host.settings.read_bytes(), name="f").plain == {
        **parse(FOREIGN, name="f").plain,
        "hooks": {**parse(FOREIGN, name="f").plain["hooks"], "SessionStart": [], "UserPromptSubmit": []},
        "servers": {},
    }
    assert machine.uninstall().status == "absent" or machine.host.plugin_file.exists()


@pytest.mark.parametrize(
    "name", ["04_torn.json", "06_array_root.json", "07_hooks_null.json", "11_dup_keys.json", "14_utf16.json"]
)
def test_a_refused_file_means_that_nothing_at_all_is_done(rewriting, case, name):
    rewriting.host.settings.write_bytes(case(name))
    before = rewriting.files()
    with pytest.raises(RefusedError) as caught:
        rewriting.install()
    assert str(rewriting.host.settings) in caught.value.message
    assert caught.value.snippet
    assert rewriting.files() == before
    assert receipt.load(rewriting.context.home, "codex") is None


def test_a_file_that_becomes_whole_in_a_moment_is_waited_for(machine, case):
    machine.host.settings.write_bytes(case("04_torn.json"))
    timer = threading.Timer(0.15, lambda: machine.host.settings.write_bytes(case("01_plain.json")))
    timer.start()
    assert machine.install().status == "installed"
    timer.join()
    assert b"user-one" in machine.host.settings.read_bytes()


def test_a_host_command_that_fails_is_taken_back_with_its_reason(rewriting):
    rewriting.host.settings.write_bytes(FOREIGN)
    before = rewriting.files()
    rewriting.program("host", "import sys; sys.exit('no such market\\nreally')")
    with pytest.raises(LoreError, match="host add failed: no such market really"):
        rewriting.install()
    assert rewriting.files() == before
    assert receipt.load(rewriting.context.home, "codex") is None


def test_a_registration_that_did_not_take_is_no_success(machine):
    machine.host.settings.write_bytes(FOREIGN)
    before = machine.files()
    machine.host.check = lambda _: (engine_finding(),)
    with pytest.raises(LoreError, match="the host ignores us"):
        machine.install()
    assert machine.files() == before


def engine_finding():
    from lorehooks.installers.plan import Finding

    return Finding("not_registered", "error", "the host ignores us")


def test_ctrl_c_in_the_middle_takes_back(rewriting, monkeypatch):
    rewriting.host.settings.write_bytes(FOREIGN)
    before = rewriting.files()
    real = files.replace

    def interrupted(snapshot, content, **options):
        real(snapshot, content, **options)
        monkeypatch.setattr(files, "replace", real)
        raise KeyboardInterrupt

    monkeypatch.setattr(files, "replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        rewriting.install()
    assert rewriting.files() == before
    assert receipt.load(rewriting.context.home, "codex") is None


def test_a_preview_shows_the_change_and_does_nothing(rewriting):
    rewriting.host.settings.write_bytes(FOREIGN)
    before = rewriting.files()
    seen = engine.preview(rewriting.host, rewriting.context)
    assert seen.status == "planned"
    assert [change.split()[0] for change in seen.changes] == ["write", "run", "edit"]
    ((path, old, new),) = seen.diffs
    assert (path, old) == (rewriting.host.settings, FOREIGN)
    assert b'"lore hook"' in new
    assert rewriting.files() == before
    assert not rewriting.context.home.root.exists()
    rewriting.install()
    assert engine.preview(rewriting.host, rewriting.now).status == "unchanged"
    installed = rewriting.files()
    assert removal.preview_removal(rewriting.host, rewriting.now).status == "planned"
    assert rewriting.files() == installed


def test_two_installs_at_once_end_as_one(rewriting):
    rewriting.host.settings.write_bytes(FOREIGN)
    before = rewriting.files()
    outcomes = []
    threads = [threading.Thread(target=lambda: outcomes.append(rewriting.install().status)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(outcomes) == ["installed", "unchanged", "unchanged", "unchanged"]
    entries = json.loads(rewriting.host.settings.read_bytes())["hooks"]
    assert (len(entries["SessionStart"]), len(entries["UserPromptSubmit"])) == (1, 1)
    rewriting.uninstall()
    assert rewriting.files() == before


def test_an_install_waits_for_another_one_only_so_long(machine):
    second = receipt.exclusive(machine.context.home, seconds=0.05)
    with receipt.exclusive(machine.context.home), pytest.raises(LoreError, match="another lore install"), second:
        pytest.fail("two at once")


def test_a_receipt_of_a_newer_release_is_not_guessed_at(machine):
    machine.install()
    path = machine.context.home.receipts / "codex.json"
    path.write_text(path.read_text().replace('"version": 1', '"version": 2'))
    with pytest.raises(LoreError, match="another release"):
        machine.install()


def test_old_contents_are_kept_as_long_as_any_receipt_may_need_them(machine):
    machine.host.settings.write_bytes(FOREIGN)
    machine.install()
    newer = machine.context.home.receipts / "zcode.json"
    newer.write_text('{"version": 99}')
    machine.uninstall()
    originals = machine.context.home.receipts / "originals"
    assert [path.read_bytes() for path in originals.iterdir()] == [FOREIGN]
    newer.unlink()
    machine.install()
    machine.uninstall()
    assert list(originals.iterdir()) == []


def test_a_receipt_is_for_its_owner_only(machine):
    machine.host.settings.write_bytes(b'{"token": "secret"}')
    machine.install()
    modes = {path.stat().st_mode & 0o077 for path in machine.context.home.receipts.rglob("*") if path.name != ".lock"}
    assert modes == {0}


def killed_after(machine, act, count: int) -> bool:
    """Run something in a child that is killed at its `count`-th file operation. Whether it lived to the end."""
    child = os.fork()
    if child == 0:
        try:
            left = count

            def dying(name, real):
                def wrapped(*args, **kwargs):
                    nonlocal left
                    left -= 1
                    if left < 0:
                        os.kill(os.getpid(), signal.SIGKILL)
                    return real(*args, **kwargs)

                return name, wrapped

            for owner, names in (
                (os, ("fsync", "unlink", "mkdir", "rename", "replace", "rmdir")),
                (subprocess, ("run",)),
            ):
                for name in names:
                    setattr(owner, *dying(name, getattr(owner, name)))
            act()
        except BaseException:  # noqa: BLE001
            os._exit(9)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0, f"the child failed ({status})"
    return not os.WIFSIGNALED(status)


@pytest.mark.parametrize("with_file", [True, False])
def test_killed_at_any_moment_the_next_run_finishes_and_uninstall_restores(rewriting, with_file):
    if with_file:
        rewriting.host.settings.write_bytes(FOREIGN)
    before = rewriting.files()
    steps = 0
    while not killed_after(rewriting, rewriting.install, steps):
        steps += 1
        if with_file:
            parse(rewriting.host.settings.read_bytes(), name="never half written")
        if steps % 2:
            assert rewriting.install().status in {"installed", "updated", "unchanged"}
            assert not rewriting.host.check(rewriting.context)
        rewriting.uninstall()
        assert rewriting.files() == before, f"killed at step {steps}"
    assert steps > 10
    steps = 0
    while not killed_after(rewriting, rewriting.uninstall, steps):
        steps += 1
        rewriting.uninstall()
        assert rewriting.files() == before, f"uninstall killed at step {steps}"
        rewriting.install()
    assert steps > 8
    assert rewriting.files() == before


@given(data=st.data(), dialect=st.sampled_from(["json", "jsonc"]))
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_document_survives_install_and_uninstall_to_the_byte(rewriting, json_documents, data, dialect):
    content = data.draw(json_documents(dialect))
    machine = rewriting
    machine.host.dialect, machine.host.with_command = dialect, False
    machine.host.settings.write_bytes(content)
    before = machine.files()
    try:
        machine.install()
    except RefusedError:
        assert machine.files() == before
        return
    assert machine.host.settings.read_bytes() != content
    machine.uninstall()
    assert machine.files() == before
