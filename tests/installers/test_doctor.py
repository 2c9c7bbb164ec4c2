"""`lore doctor` on homes that are well and homes that are not; faults of a running service are in `tests/hooks/test_faults.py`."""

from __future__ import annotations

import json
import shutil
import subprocess
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from lorehooks.clients.runtimes import RUNTIMES
from lorehooks.core import uri as uris
from lorehooks.core.home import Home
from lorehooks.core.model import SELF_TEST, NodeDraft, NodePatch, Origin
from lorehooks.core.runs import Recorder, Run
from lorehooks.core.store import Store
from lorehooks.core.writes import create, set_settings, update
from lorehooks.hooks import lease, place, service, serviceinfo
from lorehooks.hooks.misses import Misses
from lorehooks.installers import cli, operations
from lorehooks.installers import receipt as receipts
from lorehooks.installers.doctor import home_checks, machine_checks, memory_checks, program_checks
from lorehooks.installers.doctor.finding import Finding
from lorehooks.installers.doctor.selftest import try_runtime
from lorehooks.installers.doctor.subject import look
from lorehooks.installers.plan import Context
from lorehooks.installers.registered import registered_process

CLI = Origin("cli")


class Machine:
    """A user's machine with Claude Code's folder, whose commands are run in this process."""

    def __init__(self, root: Path, capfd, monkeypatch: pytest.MonkeyPatch) -> None:
        self.root = root
        self.home = Home(root / ".lore")
        self.claude = root / ".claude"
        self.claude.mkdir(parents=True)
        self._capfd = capfd
        self._monkeypatch = monkeypatch
        monkeypatch.setenv("HOME", str(root))
        monkeypatch.setenv("PATH", f"{root / 'bin'}:/usr/bin:/bin")
        monkeypatch.setattr(operations, "finish", lambda _: "")  # most tests need no running service

    def lore(self, *arguments: str) -> tuple[int, str]:
        self._capfd.readouterr()
        code = cli.run(arguments)
        out, err = self._capfd.readouterr()
        assert "Traceback" not in err
        return code, out

    def install(self) -> None:
        code, out = self.lore("install", "claudecode")
        assert code == 0, out

    def examine(self, *options: str) -> dict:
        code, out = self.lore("doctor", "--json", *options)
        report = json.loads(out)
        assert code == (1 if report["problems"] else 0)
        assert report["problems"] == sum(each["severity"] == "problem" for each in report["findings"])
        return report

    def found(self, *options: str) -> dict[tuple[str, str], dict]:
        """Findings without a self-test, by area and code."""
        report = self.examine("--no-self-test", *options)
        return {(each["area"], each["code"]): each for each in report["findings"]}

    def use_home(self, root: Path) -> Home:
        self._monkeypatch.setenv("LORE_HOME", str(root))
        return Home(root)

    def store(self) -> Store:
        return Store(self.home.database)

    def program(self, name: str, output: str) -> None:
        path = self.root / "bin" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"#!/bin/sh\necho '{output}'\n")
        path.chmod(0o755)


@pytest.fixture
def machine(tmp_path, capfd, monkeypatch):
    machine = Machine(tmp_path / "zoë 김", capfd, monkeypatch)
    yield machine
    if machine.home.run.is_dir():
        service.stop(machine.home)


@pytest.fixture
def installed(machine):
    machine.install()
    return machine


def problems(found: dict) -> set:
    return {key for key, each in found.items() if each["severity"] == "problem"}


# --- the whole ---


def test_a_machine_without_a_home_is_well_and_stays_as_it_is(machine):
    report = machine.examine()
    assert report["problems"] == 0
    assert [(each["code"], each["fix"]) for each in report["findings"] if each["area"] == "home"] == [
        ("no_home", "lore install")
    ]
    assert not machine.home.root.exists()


def test_a_fresh_installation_is_well_and_its_hooks_answer_without_a_record(installed):
    report = installed.examine()
    assert report["problems"] == 0
    (tried,) = [each["what"] for each in report["findings"] if each["code"] == "self_test"]
    for what in ("session start", "prompt", "subagent", "tools"):
        assert what in tried
    (runs,) = [each["what"] for each in report["findings"] if (each["area"], each["code"]) == ("service", "stopped")]
    assert "the next hook starts it" in runs
    now = {(each["area"], each["code"]): each for each in installed.examine()["findings"]}
    info = serviceinfo.read_info(installed.home)
    assert str(info.pid) in now["service", "runs"]["what"]
    assert info.environment in now["service", "runs"]["what"]
    assert info.token not in json.dumps(list(now.values()))
    assert ("claudecode", "never_used") in now, "a self-test is no use"
    assert json.loads(installed.lore("replay", "--json")[1])["sessions"] == []
    assert Misses(installed.home.misses).read() == []


def test_without_a_self_test_nothing_is_started(installed):
    assert problems(installed.found()) == set()
    assert not installed.home.socket.exists()


def test_text_is_one_line_for_each_finding_with_the_command_that_mends_it(installed):
    code, out = installed.lore("doctor", "--no-self-test")
    assert code == 0
    assert (
        "  note     No standing rules are written, so sessions start without any (lore boot --edit core://agent)\n"
        in out
    )
    assert out.endswith("\nNothing is wrong.\n")
    (installed.home.bin / "python").unlink()
    code, out = installed.lore("doctor", "--no-self-test")
    assert code == 1
    assert out.endswith("\n1 problem; lore doctor --fix mends 1.\n")
    known = ("  ok       ", "  note     ", "  problem  ")
    assert all(line.startswith(known) for line in out.splitlines() if line.startswith(" "))


def test_a_check_that_fails_itself_hides_nothing_else(installed, monkeypatch):
    def fail(_):
        yield Finding("programs", "first", "ok", "found before")
        raise RuntimeError("ours")

    monkeypatch.setattr(program_checks, "check", fail)
    found = installed.found()
    assert "RuntimeError" in found["programs", "defect"]["what"]
    assert {("programs", "first"), ("home", "home"), ("claudecode", "registered")} <= set(found)


# --- home ---


def test_what_others_may_write_to_is_closed_by_fix(installed):
    installed.home.run.chmod(0o777)
    assert problems(installed.found()) == {("home", "run_open")}
    assert problems(installed.found("--fix")) == set()
    assert installed.home.run.stat().st_mode & 0o777 == 0o700


def test_a_home_that_is_a_file_is_a_problem(machine):
    machine.home.root.write_text("")
    assert ("home", "no_folder") in problems(machine.found())


@pytest.mark.parametrize(
    ("free", "code", "severity"), [(10_000_000, "disk_full", "problem"), (200_000_000, "disk_low", "note")]
)
def test_a_disk_that_fills_up_is_told(installed, monkeypatch, free, code, severity):
    usage = SimpleNamespace(total=10**12, free=free)
    monkeypatch.setattr(home_checks.shutil, "disk_usage", lambda _: usage)
    found = installed.found()["home", code]
    assert found["severity"] == severity
    assert f"{free // 1_000_000} MB" in found["what"]


def test_a_home_on_a_network_drive_is_a_problem(installed, monkeypatch):
    monkeypatch.setattr(
        place, "mount_table", lambda: f"server:/x {installed.root} nfs4 rw 0 0\n".replace(" 김", "\\040김")
    )
    assert "lore connect" in installed.found()["home", "network"]["fix"]


def test_a_home_in_use_on_another_machine_is_a_problem(installed):
    fields = {"host": "other", "machine": "m-2", "boot": "b-2", "pid": 1, "heartbeat": time.time()}
    lease.lease_file(installed.home).write_text(json.dumps(fields))
    assert "in use on other" in installed.found()["home", "elsewhere"]["what"]


def test_wrong_settings_of_the_machine_are_told(installed):
    installed.home.config.write_text("[hooks]\nprompt_timeout_ms = 5\n")
    assert "hooks.prompt_timeout_ms" in installed.found()["home", "config"]["what"]


def test_memory_that_is_switched_off_is_told_and_not_tried(installed, monkeypatch):
    monkeypatch.setenv("LORE_DISABLE", "1")
    report = installed.examine()
    codes = {each["code"] for each in report["findings"]}
    assert "disabled" in codes
    assert "self_test" not in codes


# --- programs ---


@pytest.mark.parametrize("name", ["hook.py", "bridge.py"])
def test_copies_of_another_release_are_renewed_by_fix(installed, name):
    (installed.home.bin / name).write_text("print(1)")
    found = installed.found()
    assert ("programs", "old_copy") in problems(found)
    assert found["programs", "old_copy"]["fix"] == "lore doctor --fix"
    assert problems(installed.found("--fix")) == set()


def test_a_dead_interpreter_link_is_renewed_by_fix(installed):
    link = installed.home.bin / "python"
    link.unlink()
    link.symlink_to("/opt/gone/python3")
    assert "/opt/gone/python3" in installed.found()["programs", "interpreter"]["what"]
    assert problems(installed.found("--fix")) == set()
    assert link.exists()


@pytest.mark.parametrize("body", ["echo Python was not found; exit 49", 'test "$1" = -c && exec python3 "$@"; exit 2'])
def test_an_interpreter_that_cannot_run_the_hook_is_a_problem(installed, body):
    link = installed.home.bin / "python"
    link.unlink()
    link.write_text(f"#!/bin/sh\n{body}\n")
    link.chmod(0o755)
    assert ("programs", "interpreter") in problems(installed.found())


def test_lost_programs_are_laid_out_again_by_fix(installed):
    shutil.rmtree(installed.home.bin)
    assert ("programs", "no_programs") in problems(installed.found())
    assert problems(installed.found("--fix")) == set()


def test_a_home_served_by_another_installation_is_told(installed, tmp_path):
    other = tmp_path / "venv"
    (other / "lib/python3.12/site-packages/lorehooks-0.1.0.dist-info").mkdir(parents=True)
    (other / "bin").mkdir()
    (other / "bin" / "python").write_text("")
    script = installed.home.bin / "service"
    owner = serviceinfo.sys.prefix
    script.write_text(script.read_text().replace(owner, str(other)))
    found = installed.found()["programs", "other_environment"]
    assert (found["severity"], str(other) in found["what"]) == ("note", True)


# --- service ---


def test_a_breaker_that_is_open_is_closed_by_fix(installed):
    (installed.home.run / "breaker").write_text("...")
    assert problems(installed.found()) == {("service", "breaker")}
    assert problems(installed.found("--fix")) == set()
    assert not (installed.home.run / "breaker").exists()


def test_a_service_that_cannot_start_is_told_in_its_own_words_and_counts_as_no_miss(installed):
    script = installed.home.bin / "service"
    keep = script.read_text().splitlines()[:-1]
    script.write_text("\n".join([*keep, "echo boom at start >>run/service.log; exit 1", ""]))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("lorehooks.hooks.layout.lay", lambda *_: None)
        report = installed.examine()
    (failed,) = [each for each in report["findings"] if each["code"] == "start_failed"]
    assert "boom at start" in failed["what"]
    assert Misses(installed.home.misses).read() == []


def test_another_release_of_service_and_installation_is_told(installed, monkeypatch):
    service.start(installed.home)
    monkeypatch.setattr(serviceinfo, "installed_version", lambda: "99.0")
    found = installed.found()
    assert "0.1.0" in found["service", "other_version"]["what"]
    assert found["service", "other_version"]["fixable"]


def test_ready_files_that_memory_has_overtaken_are_renewed_by_fix(installed):
    service.start(installed.home)
    installed.found()  # waits for the files
    (installed.home.boot / "claudecode").write_text("{}")
    found = installed.found()
    assert found["memory", "stale_files"]["severity"] == "problem"
    assert "run/boot/claudecode" in found["memory", "stale_files"]["what"]
    assert problems(installed.found("--fix")) == set()


# --- memory ---


def test_what_memory_lacks_is_told_with_the_command_for_it(installed):
    store = installed.store()
    create(store, NodeDraft("project://bare", "No words.", 2, "", ()), CLI)
    create(store, NodeDraft("project://worded", "Words.", 2, "", ("words",)), CLI)
    update(store, uris.parse("core://agent"), NodePatch(content="x"), Origin("mcp:lore_update_node", "codex", "s"))
    set_settings(store, {"embedding.provider": "off"}, CLI)
    store.close()
    found = installed.found()
    assert found["memory", "no_rules"]["fix"] == "lore boot --edit core://agent"
    assert found["memory", "no_glossary"]["what"].startswith("1 memory has no glossary")
    assert "project://bare" in found["memory", "no_glossary"]["fix"]
    assert found["memory", "pending"]["fix"] == "lore pending list"
    assert found["memory", "vectors_off"]["fix"] == "lore config reset embedding.provider"
    assert problems(found) == set()


def test_a_python_without_the_model_is_told(installed, monkeypatch):
    installed.store().close()
    monkeypatch.setattr(memory_checks.importlib.util, "find_spec", lambda _: None)
    assert "no wheel of wordllama" in installed.found()["memory", "vectors_off"]["what"]


def test_a_server_that_cannot_be_reached_is_a_problem(installed):
    installed.home.config.write_text('[server]\nurl = "http://127.0.0.1:9"\n')
    found = installed.found()["memory", "server"]
    assert (found["severity"], found["fix"]) == ("problem", "lore connect http://127.0.0.1:9")


def test_a_server_that_answers_is_told_with_its_version(installed):
    service.start(installed.home)
    info = serviceinfo.read_info(installed.home)
    other = installed.use_home(installed.root / "other")
    other.root.mkdir()
    other.config.write_text(f'[server]\nurl = "http://127.0.0.1:{info.port}"\n')
    found = installed.found()["memory", "server"]
    assert found["severity"] == "problem", "it has no token for it"
    (other.root / "config.json").write_text(
        json.dumps({"base_url": f"http://127.0.0.1:{info.port}", "api_token": info.token})
    )
    other.config.unlink()
    found = installed.found()["memory", "server"]
    assert (found["severity"], info.version in found["what"]) == ("ok", True)


# --- runtimes ---


def test_a_registration_that_was_lost_is_restored_by_fix(installed):
    (installed.claude / "settings.json").write_text("{}")
    found = installed.found()
    assert problems(found) == {("claudecode", "not_registered")}
    assert found["claudecode", "not_registered"]["fix"] == "lore install claudecode"
    assert problems(installed.found("--fix")) == set()
    assert "lore@lorehooks" in (installed.claude / "settings.json").read_text()


def test_files_without_a_registration_are_a_problem(installed):
    receipts.discard(installed.home, "claudecode")
    (installed.claude / "settings.json").unlink()
    found = installed.found()["claudecode", "files_without_registration"]
    assert found["severity"] == "problem"
    assert "lore uninstall claudecode" in found["fix"]


def test_a_runtime_that_is_here_without_memory_is_no_problem(machine):
    machine.home.root.mkdir()
    found = machine.found()["claudecode", "not_installed"]
    assert (found["severity"], found["fix"]) == ("ok", "lore install claudecode")


def test_an_interrupted_installation_is_finished_by_fix(installed):
    path = installed.home.receipts / "claudecode.json"
    path.write_text(path.read_text().replace('"state": "installed"', '"state": "installing"'))
    assert ("claudecode", "interrupted") in problems(installed.found())
    assert problems(installed.found("--fix")) == set()


def test_a_damaged_receipt_is_a_problem(installed):
    (installed.home.receipts / "claudecode.json").write_text("{")
    assert ("claudecode", "receipt") in problems(installed.found())


def test_a_home_that_was_moved_is_told_and_hooks_are_registered_anew_by_fix(installed):
    moved = installed.root / "moved"
    installed.home.root.rename(moved)
    for event in ("session.start", "prompt.submit"):
        command = registered_process(installed.home, "claudecode", event)
        done = subprocess.run(command, input=b"{}", capture_output=True, check=False)
        assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    installed.use_home(moved)
    found = installed.found()
    assert str(installed.root / ".lore") in found["claudecode", "moved"]["what"]
    assert problems(installed.found("--fix")) == set()
    assert str(moved) in (installed.claude / "settings.json").read_text()


def test_a_program_that_is_too_old_is_a_problem(installed):
    installed.program("claude", "2.0.1 (Claude Code)")
    assert "2.0.1" in installed.found()["claudecode", "too_old"]["what"]


def test_a_program_that_was_removed_is_told(installed):
    shutil.rmtree(installed.claude)
    assert installed.found()["claudecode", "gone"]["fix"] == "lore uninstall claudecode"


def run_of(event: str, at: str, ms: float = 1.0, reason: str = "") -> Run:
    return Run(at, "claudecode", event, "s-1", 1, None, reason, ms)


def record(machine: Machine, *runs: Run) -> None:
    recorder = Recorder(machine.home.records)
    recorder.add(lambda: runs)
    assert recorder.flush()
    recorder.close()


def test_last_hooks_and_their_latency_are_told(installed):
    prompts = [run_of("prompt.submit", "2026-01-01T10:00:00.000Z", float(ms)) for ms in range(1, 101)]
    record(installed, run_of("session.start", "2026-01-01T09:00:00.000Z", 7.0), *prompts)
    told = installed.found()["claudecode", "used"]["what"]
    assert "session start" in told
    assert "p50 51 ms, p95 96 ms" in told


def test_sessions_without_a_single_prompt_are_told(installed):
    record(installed, *[run_of("session.start", f"2026-01-0{day}T09:00:00.000Z") for day in (1, 2)])
    assert ("claudecode", "no_prompts") in installed.found()


@pytest.mark.parametrize(
    ("later", "reason", "severity"), [(False, "", "problem"), (True, "", "note"), (True, "slow_recall", "problem")]
)
def test_a_miss_is_a_problem_until_something_came_through(installed, later, reason, severity):
    Misses(installed.home.misses).add("claudecode", "prompt.submit", "timeout")
    now = time.time() + (60 if later else -60)
    record(installed, run_of("prompt.submit", time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime(now)), reason=reason))
    found = installed.found()["claudecode", "missed"]
    assert found["what"].startswith(
        "Once without memory since yesterday, last just now at a prompt: the service was too slow"
    )
    assert (found["severity"], found["fix"]) == (severity, "lore service restart")


def test_misses_of_a_client_that_is_not_installed_are_told_too(installed):
    Misses(installed.home.misses).add("hermes", "prompt.submit", "no_service")
    assert installed.found()["hermes", "missed"]["fix"] == "lore update"


# --- self-test ---


def test_a_self_test_without_a_service_sees_silence_and_leaves_no_trace(installed):
    (installed.home.bin / "service").unlink()
    installed.home.boot.mkdir(parents=True)
    (installed.home.boot / "claudecode").write_text('{"hookSpecificOutput":{"additionalContext":"rules"}}')
    tried = {each.what: each.wrong for each in try_runtime(Context.from_environment(), RUNTIMES["claudecode"])}
    assert tried["session start"] == tried["prompt"] == tried["subagent"] == "it stayed silent"
    assert tried["tools"]
    assert Misses(installed.home.misses).read() == []
    assert not (installed.home.run / "breaker").exists()


@pytest.mark.parametrize(
    ("body", "wrong"),
    [
        ("exit 1", "exit code 1"),
        ("echo oops >&2", "it wrote to stderr: oops"),
        ("echo oops", "it answered what is no JSON"),
        ("echo '{}'", "its answer holds no text"),
    ],
)
def test_a_self_test_sees_what_a_host_would(installed, body, wrong):
    python = installed.home.bin / "python"
    python.unlink()
    python.write_text(f"#!/bin/sh\n{body}\n")
    python.chmod(0o755)
    tried = {each.what: each.wrong for each in try_runtime(Context.from_environment(), RUNTIMES["claudecode"])}
    assert tried["prompt"].startswith(wrong)


def test_a_plugin_s_events_are_tried_over_its_socket(installed):
    service.start(installed.home)
    tried = list(try_runtime(Context.from_environment(), RUNTIMES["opencode"]))
    assert [(each.what, each.wrong) for each in tried] == [("session start", ""), ("prompt", ""), ("tools", "")]


def test_subagents_are_not_tried_when_they_get_nothing(installed):
    service.start(installed.home)
    tried = try_runtime(Context.from_environment(), RUNTIMES["claudecode"], subagents=False)
    assert [each.what for each in tried] == ["session start", "prompt", "tools"]
    assert SELF_TEST not in (installed.home.misses.read_text() if installed.home.misses.exists() else "")


# --- other memories ---


def test_a_second_home_is_told_and_hooks_of_both_are_a_problem(installed):
    installed.store().close()
    installed.use_home(installed.root / "second")
    assert "claudecode uses it" in installed.found()["machine", "second_home"]["what"]
    shutil.copytree(installed.home.receipts, installed.root / "second" / "receipts")
    found = installed.found()["machine", "two_homes"]
    assert found["severity"] == "problem"
    assert str(installed.home.root) in found["fix"]


def test_a_home_under_windows_is_told(installed, tmp_path):
    users = tmp_path / "Users"
    (users / "Ann Lee" / ".lore").mkdir(parents=True)
    (users / "Ann Lee" / ".lore" / "lore.db").write_bytes(b"")
    (users / "Public").mkdir()
    subject = look(Context.from_environment())
    codes = [each.code for each in machine_checks.check(subject, windows_users=users)]
    assert codes == ["windows_home"]
    assert list(machine_checks.check(subject, windows_users=tmp_path / "none")) == []


HOOK = {"hooks": {"SessionStart": [{"hooks": [{"type": "command", "command": "npx claude-mem hook"}]}]}}


@pytest.mark.parametrize(
    ("file", "content", "name"),
    [
        (".claude/settings.json", HOOK, "claude-mem"),
        (".claude/settings.json", {"enabledPlugins": {"claude-supermemory@x": True}}, "claude-supermemory"),
        (".claude.json", {"mcpServers": {"m": {"command": "uvx", "args": ["mem0-mcp"]}}}, "mem0"),
        (".claude/settings.json", {"enabledPlugins": {"claude-mem@x": False}}, None),
        (".claude/settings.json", {"mcpServers": {"hindsight": {"enabled": False, "command": "x"}}}, None),
        (".claude/settings.json", {"env": {"NOTE": "claude-mem was here"}}, None),
        (".claude.json", {"history": ["remove claude-mem please"]}, None),
        (".claude/settings.json", {"hooks": {"Stop": [{"hooks": [{"command": "/opt/mem0ry/x"}]}]}}, None),
    ],
)
def test_other_memories_are_told_where_they_are_switched_on(installed, file, content, name):
    path = installed.root / file
    settings = json.loads(path.read_text()) if path.exists() else {}
    for key, value in content.items():
        settings[key] = {**settings.get(key, {}), **value} if isinstance(value, dict) else value
    path.write_text(json.dumps(settings))
    before = path.read_bytes()
    found = installed.found("--fix").get(("machine", "other_memory"))
    assert (found["what"].split()[0] if found else None) == name
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    ("runtime", "file", "text"),
    [
        ("codex", ".codex/config.toml", '[mcp_servers.memsearch]\ncommand = "memsearch"\n'),
        ("opencode", ".config/opencode/opencode.jsonc", '{"plugin": ["opencode-mem0"], // mine\n}'),
        ("opencode", ".config/opencode/plugin/cavemem.js", "x"),
        ("hermes", ".hermes/config.yaml", "memory:\n  provider: hindsight\n"),
    ],
)
def test_other_memories_are_found_in_every_runtime_s_own_files(installed, monkeypatch, runtime, file, text):
    path = installed.root / file
    path.parent.mkdir(parents=True)
    path.write_text(text)
    receipt = installed.home.receipts / "claudecode.json"
    (installed.home.receipts / f"{runtime}.json").write_text(
        receipt.read_text().replace('"runtime": "claudecode"', f'"runtime": "{runtime}"')
    )
    monkeypatch.delenv("XDG_CONFIG_HOME")
    subject = look(Context.from_environment())
    assert [each.code for each in machine_checks.check(subject)] == ["other_memory"]
