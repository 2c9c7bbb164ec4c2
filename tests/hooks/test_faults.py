"""What breaks on real machines, against the real hook program and service: the prompt goes through, and the doctor names it."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from lorehooks.core.errors import LoreError
from lorehooks.core.home import Home
from lorehooks.core.readonly import looking_into
from lorehooks.hooks import layout, service, serviceinfo
from lorehooks.hooks.localhttp import local_answer
from lorehooks.hooks.replay import sent_text
from lorehooks.installers import cli

QUESTION = "how does the refund webhook use the idempotency key?"
PROMPT = json.dumps({"session_id": "s-1", "hook_event_name": "UserPromptSubmit", "prompt": QUESTION}).encode()
START = json.dumps({"session_id": "s-1", "hook_event_name": "SessionStart", "source": "startup"}).encode()
URI = "project://refunds"
RULE = "Ask before you delete anything."
LONGEST = 4.0
"""Seconds within which everything is through: the limits that the tests set are far below, the machine may be busy."""
HOLD = """
import sqlite3, sys
held = [sqlite3.connect(path, isolation_level=None) for path in sys.argv[1:]]
for database in held:
    database.execute("BEGIN EXCLUSIVE")
print("held", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def remembering(real, wait_for):
    """The running service with a memory, a rule and ready boot bytes that hold it."""
    home = real.home
    write(home, "POST", "/api/browse/node", {**MEMORY})
    write(home, "PUT", "/api/browse/node?domain=core&path=agent", {"content": RULE})
    settle(home)
    wait_for(lambda: URI in sent_text(real.hook(data=PROMPT).out), "recall")
    return real


def settle(home: Home) -> None:
    """Let the service write its ready files, limits among them, which tests then change."""
    with local_answer(home, "GET", "/hooks/v1/state") as answer:
        assert json.loads(answer.read())["stale_files"] == []
    assert RULE in sent_text((home.boot / "claudecode").read_bytes())


MEMORY = {
    "domain": "project",
    "title": "refunds",
    "content": "Refund webhooks are idempotent by event.id.",
    "priority": 2,
    "disclosure": "When changing refund webhooks",
    "glossary": ["refund webhook", "idempotency key"],
}


def write(home: Home, method: str, path: str, body: object) -> dict:
    with local_answer(home, method, path, body=body) as answer:
        return json.loads(answer.read())


@pytest.fixture
def doctor(place, monkeypatch, capfd):
    """Run `lore doctor --json` and the commands that it names; answers its findings by area and code."""
    monkeypatch.setenv("LORE_HOME", str(place.home.root))
    monkeypatch.setenv("PATH", "/usr/bin:/bin")  # no agent program of the developer's

    def look(*options: str) -> dict[tuple[str, str], dict]:
        capfd.readouterr()
        code = cli.run(["doctor", "--json", *options])
        found = json.loads(capfd.readouterr().out)
        assert code == (1 if found["problems"] else 0)
        return {(each["area"], each["code"]): each for each in found["findings"]}

    return look


def goes_through(ran, event: str = "UserPromptSubmit") -> str:
    """No error, in time, nothing or one document; answers the text in it."""
    assert (ran.code, ran.err) == (0, b"")
    assert ran.seconds < LONGEST
    if ran.out:
        assert ran.answer["hookSpecificOutput"]["hookEventName"] == event
    return sent_text(ran.out)


def recorded(home: Home) -> int:
    with looking_into(home.records, missing="", hint="") as records:
        return records.execute("SELECT count(*) FROM runs WHERE event = 'prompt.submit'").fetchone()[0]


def test_a_killed_service_is_told_and_started_again_by_the_next_prompt(remembering, doctor, wait_for):
    pid = remembering.pid()
    os.kill(pid, signal.SIGKILL)
    wait_for(lambda: not service.status(remembering.home).running, "its end")
    found = doctor()
    assert str(pid) in found["service", "killed"]["what"]
    remembering.limits(1500, 3000)
    goes_through(remembering.hook(data=PROMPT))
    wait_for(lambda: URI in sent_text(remembering.hook(data=PROMPT).out), "the next service")
    assert ("service", "runs") in doctor()


def test_a_halted_service_costs_the_limit_and_is_mended_by_the_doctor_s_word(remembering, doctor, wait_for):
    remembering.limits(500, 500)
    os.kill(remembering.pid(), signal.SIGSTOP)
    assert goes_through(remembering.hook(data=PROMPT)) == ""
    assert RULE in goes_through(remembering.hook("session.start", START), "SessionStart")
    found = doctor()
    assert found["service", "hangs"]["severity"] == "problem"
    assert found["service", "hangs"]["fix"] == "lore service restart"
    assert "the service was too slow" in found["claudecode", "missed"]["what"]
    assert cli.run(found["service", "hangs"]["fix"].split()[1:]) == 0
    remembering.limits(8000, 8000)
    wait_for(lambda: URI in sent_text(remembering.hook(data=PROMPT).out), "recall")


def test_a_stale_socket_is_told_and_replaced(remembering, doctor):
    service.stop(remembering.home)
    with socket.socket(socket.AF_UNIX) as left_over, contextlib.chdir(remembering.home.run):
        left_over.bind("service.sock")
    assert ("service", "stale_socket") in doctor()
    remembering.limits(8000, 8000)
    assert URI in sent_text(remembering.hook(data=PROMPT).out)
    assert ("service", "stale_socket") not in doctor()


def test_a_stranger_on_the_port_gets_nothing_and_says_nothing(remembering, doctor, wait_for):
    info = serviceinfo.read_info(remembering.home)
    os.kill(info.pid, signal.SIGKILL)  # which leaves its token in the file
    heard = bytearray()
    with socket.socket() as stranger, ThreadPoolExecutor(1) as aside:
        stranger.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)

        def takes_port() -> bool:
            with contextlib.suppress(OSError):
                stranger.bind(("127.0.0.1", info.port))
            return stranger.getsockname()[1] == info.port

        wait_for(takes_port, "the killed service's port")
        stranger.listen()

        def listen() -> None:
            with contextlib.suppress(OSError):
                while True:
                    caller, _ = stranger.accept()
                    with caller:
                        caller.settimeout(0.5)
                        with contextlib.suppress(OSError):
                            caller.sendall(b'HTTP/1.1 200 OK\r\n\r\n{"evil": "evil"}')
                            heard.extend(caller.recv(65536))

        listening = aside.submit(listen)
        try:
            found = doctor()
            assert str(info.port) in found["service", "foreign_listener"]["what"]
            remembering.limits(8000, 8000)
            ran = remembering.hook(data=PROMPT)
            assert URI in goes_through_in_any_time(ran)
            assert b"evil" not in ran.out
            after = serviceinfo.read_info(remembering.home)
            assert after.port != info.port
            assert ("service", "runs") in doctor()
            assert "evil" not in json.dumps(list(found.values()))
        finally:
            stranger.shutdown(socket.SHUT_RDWR)
            listening.result(10)
    assert heard == b""


def goes_through_in_any_time(ran) -> str:
    assert (ran.code, ran.err) == (0, b"")
    return sent_text(ran.out)


def test_a_lock_held_for_long_delays_no_prompt_and_loses_no_record(remembering, doctor, wait_for):
    home = remembering.home
    wait_for(lambda: recorded(home) > 0, "the first records")
    before = recorded(home)
    holder = remembering.popen(
        [sys.executable, "-c", HOLD, home.database, home.records],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert holder.stdout.readline() == b"held\n"
    for _ in range(3):
        assert URI in goes_through(remembering.hook(data=PROMPT))
        assert RULE in goes_through(remembering.hook("session.start", START), "SessionStart")
    with pytest.raises(LoreError, match="locked") as refused:
        write(home, "PUT", "/api/browse/node?domain=core&path=agent", {"content": "Changed."})
    assert refused.value.code == "database_locked"
    found = doctor()
    assert str(holder.pid) in found["memory", "locked"]["what"]
    assert found["memory", "locked"]["fix"] == f"kill {holder.pid}"
    assert "locked" in found["memory", "write_refused"]["what"]
    assert found["records", "locked"]["severity"] == "problem"
    assert "wait" in found["records", "waiting"]["what"]
    assert recorded(home) == before

    holder.communicate()
    wait_for(lambda: recorded(home) >= before + 3, "the records that waited")
    write(home, "PUT", "/api/browse/node?domain=core&path=agent", {"content": "Changed."})
    after = doctor()
    assert {code for area, code in after if area == "records"} == {"database"}
    assert ("memory", "write_refused") not in after


@pytest.mark.skipif(sys.platform != "linux", reason="sets another process's limit the Linux way")
def test_a_refusing_disk_is_told_to_the_writer_and_recall_goes_on(remembering, doctor, wait_for):
    import resource

    home, pid = remembering.home, remembering.pid()
    wait_for(lambda: recorded(home) > 0, "the first records")
    before = recorded(home)
    _, hard = resource.prlimit(pid, resource.RLIMIT_FSIZE)
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (4096, hard))
    assert URI in goes_through(remembering.hook(data=PROMPT))
    assert RULE in goes_through(remembering.hook("session.start", START), "SessionStart")
    with pytest.raises(LoreError, match="could not be written") as refused:
        write(home, "PUT", "/api/browse/node?domain=core&path=agent", {"content": "Changed."})
    assert refused.value.code == "disk_refused"
    found = doctor()
    assert found["memory", "write_refused"]["severity"] == "problem"
    assert found["records", "waiting"]["severity"] == "problem"
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (hard, hard))
    wait_for(lambda: recorded(home) > before, "the records that waited")
    write(home, "PUT", "/api/browse/node?domain=core&path=agent", {"content": "Changed."})
    after = doctor()
    assert ("memory", "write_refused") not in after
    assert ("records", "waiting") not in after


def test_input_that_never_ends_is_left_at_the_limit_and_told(remembering, doctor):
    remembering.limits(500, 500)
    for event, expected in (("prompt.submit", ""), ("session.start", RULE)):
        process = remembering.popen(
            remembering.command(event), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        process.stdin.write(PROMPT[:20])
        process.stdin.flush()
        assert expected in sent_text(process.stdout.read())
        assert (process.wait(LONGEST), process.stderr.read()) == (0, b"")
    found = doctor()["claudecode", "missed"]
    assert "the host did not finish its message" in found["what"]
    assert found["what"].startswith("2 times")


def test_eight_first_sessions_at_once_all_get_their_rules_from_one_service(remembering, doctor, wait_for):
    service.stop(remembering.home)
    began = remembering.home.log.stat().st_size
    remembering.limits(1500, 1500)
    with ThreadPoolExecutor(8) as pool:
        ran = list(pool.map(lambda _: remembering.hook("session.start", START), range(8)))
    for one in ran:
        assert RULE in goes_through_in_any_time(one)
    wait_for(lambda: service.answers(remembering.home, 1), "the service")
    assert remembering.home.log.read_text()[began:].count("serves") == 1
    assert (("claudecode", "missed") in doctor()) is bool(remembering.misses())


def write_much(home: Home) -> None:
    """More than the room that the files may have left inside."""
    for number in range(200):
        write(home, "PUT", "/api/browse/node?domain=core&path=soul", {"content": f"{number} " * 2000})


@pytest.fixture
def small_disk(place):
    """The home on a file system of 24 MB."""
    home = place.home
    shutil.rmtree(home.root)
    home.root.mkdir()
    mounting = ["mount", "-t", "tmpfs", "-o", "size=24m,mode=0700", "tmpfs", str(home.root)]
    if sys.platform != "linux" or subprocess.run(mounting, capture_output=True, check=False).returncode:
        pytest.skip("cannot mount a small file system here")
    try:
        layout.lay(home)
        service.start(home)
        yield place
    finally:
        place.end()
        subprocess.run(["umount", "--lazy", str(home.root)], check=True)


def test_a_full_disk_costs_records_and_writes_and_no_prompt(small_disk, doctor, wait_for):
    home = small_disk.home
    write(home, "POST", "/api/browse/node", MEMORY)
    write(home, "PUT", "/api/browse/node?domain=core&path=agent", {"content": RULE})
    wait_for(lambda: URI in sent_text(small_disk.hook(data=PROMPT).out), "recall")
    wait_for(lambda: recorded(home) > 0, "the first records")
    before = recorded(home)
    filling = home.root / "filling"
    with filling.open("wb") as file, contextlib.suppress(OSError):
        while True:
            os.write(file.fileno(), b"x" * 4096)
    for _ in range(3):
        assert URI in goes_through(small_disk.hook(data=PROMPT))
        assert RULE in goes_through(small_disk.hook("session.start", START), "SessionStart")
    with pytest.raises(LoreError, match="could not be written"):
        write_much(home)
    found = doctor()
    assert "(0 MB free)" in found["home", "disk_full"]["what"]
    assert found["memory", "write_refused"]["severity"] == "problem"
    filling.unlink()
    wait_for(lambda: recorded(home) >= before + 3, "the records that waited")
    write(home, "PUT", "/api/browse/node?domain=core&path=soul", {"content": "Be brief."})
    assert ("memory", "write_refused") not in doctor()


def test_a_session_on_a_full_disk_without_service_has_its_rules(small_disk, doctor):
    home = small_disk.home
    write(home, "PUT", "/api/browse/node?domain=core&path=agent", {"content": RULE})
    settle(home)
    service.stop(home)
    with (home.root / "filling").open("wb") as file, contextlib.suppress(OSError):
        while True:
            os.write(file.fileno(), b"x" * 4096)
    assert RULE in goes_through(small_disk.hook("session.start", START), "SessionStart")
    goes_through(small_disk.hook(data=PROMPT))
    assert ("home", "disk_full") in doctor()


@pytest.mark.skipif(sys.platform != "linux", reason="drops root's privileges the Linux way")
def test_a_home_made_read_only_is_silence_and_a_line(remembering, unprivileged):
    home = remembering.home
    service.stop(home)
    folders = [home.run, home.bin, home.root]
    for folder in folders:
        folder.chmod(0o500)
    try:
        goes_through(remembering.hook(data=PROMPT, preexec_fn=unprivileged))
        command = [sys.executable, "-m", "lorehooks.installers.cli", "doctor", "--json"]
        environment = {**os.environ, "LORE_HOME": str(home.root)}
        done = subprocess.run(command, capture_output=True, env=environment, check=False, preexec_fn=unprivileged)
    finally:
        for folder in folders:
            folder.chmod(0o700)
    assert (done.returncode, done.stderr) == (1, b"")
    found = {(each["area"], each["code"]) for each in json.loads(done.stdout)["findings"]}
    assert ("home", "read_only") in found
    assert {code for area, code in found if code in ("unreadable", "defect")} == set()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away")
def test_a_home_given_to_another_user_is_silence_and_a_line(remembering, doctor):
    os.chown(remembering.home.run, 65534, 65534)
    try:
        assert remembering.hook(data=PROMPT).is_silent
        found = doctor()["home", "foreign"]
    finally:
        os.chown(remembering.home.run, 0, 0)
    assert "uid 65534" in found["what"]
    assert "chown" in found["fix"]


def test_a_removed_package_is_silence_and_a_line_and_doctor_takes_over(remembering, doctor):
    home = remembering.home
    service.stop(home)
    script = home.bin / "service"
    script.write_text(script.read_text().replace(sys.prefix, "/nowhere/venv"))
    assert remembering.hook(data=PROMPT).is_silent
    assert RULE in goes_through(remembering.hook("session.start", START), "SessionStart")
    found = doctor()
    assert "/nowhere/venv" in found["programs", "package_gone"]["what"]
    assert "did not start" in found["claudecode", "missed"]["what"]
    mended = doctor("--fix")
    assert ("programs", "programs") in mended
    remembering.limits(8000, 8000)
    assert URI in sent_text(remembering.hook(data=PROMPT).out)


def test_a_damaged_memory_is_silence_with_rules_and_a_line(remembering, doctor, wait_for):
    home = remembering.home
    service.stop(home)
    home.database.write_bytes(b"no database at all" * 1000)
    remembering.limits(3000, 3000)
    assert goes_through(remembering.hook(data=PROMPT)) == ""
    assert RULE in goes_through(remembering.hook("session.start", START), "SessionStart")
    wait_for(lambda: not service.status(home).running, "the last attempt to end")
    found = doctor()
    assert found["memory", "damaged"]["severity"] == "problem"
    assert "lore.db is damaged" in found["service", "last_error"]["what"]


def test_a_database_of_a_newer_release_is_read_and_told(remembering, doctor):
    home = remembering.home
    service.stop(home)
    with contextlib.closing(sqlite3.connect(home.database)) as database:
        database.execute("PRAGMA user_version = 999")
    remembering.limits(8000, 8000)
    assert URI in sent_text(remembering.hook(data=PROMPT).out)
    assert doctor()["memory", "newer"]["fix"] == "pip install --upgrade lorehooks"
