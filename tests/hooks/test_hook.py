"""The hook program as hosts run it: the answer through, or silence, in time, whatever is wrong."""

from __future__ import annotations

import ast
import contextlib
import hashlib
import json
import os
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from lorehooks.core.home import Home
from lorehooks.hooks import bridge, service
from lorehooks.installers.registered import registered_command

REPOSITORY = Path(__file__).parents[2]
CASES = REPOSITORY / "tests" / "cases" / "in"
BOOT = b'{"hookSpecificOutput":{"hookEventName":"SessionStart","additionalContext":"standing rules"}}'
PROMPT_SECONDS = 2.0


def generated_cases() -> dict[str, bytes]:
    """The payloads that are too large to keep as files."""
    fields = {"session_id": "s-1", "cwd": "/tmp/p", "hook_event_name": "UserPromptSubmit"}
    return {
        "23_huge.json": json.dumps({**fields, "prompt": "部署方案 and more words " * 100_000}).encode(),
        "24_one_long_token.json": json.dumps({**fields, "prompt": "a" * 3_000_000}).encode(),
        "53_deep.json": b'{"session_id":"s-1","prompt":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    }


ALL_CASES = {path.name: path.read_bytes() for path in sorted(CASES.iterdir())} | generated_cases()


def test_cases_travel_whole_and_their_answers_come_back(running) -> None:
    assert len(ALL_CASES) > 40
    for name, data in ALL_CASES.items():
        ran = running.hook(data=data)
        assert (ran.code, ran.err) == (0, b""), name
        assert ran.answer["sha256"] == hashlib.sha256(data).hexdigest(), name
        assert ran.answer["text"] == "→ 김 🟡", name
    assert running.misses() == []


@pytest.mark.parametrize("variable", ["gbk", "cp1252"])
def test_bytes_do_not_depend_on_the_encoding_of_the_environment(running, variable: str) -> None:
    ran = running.hook(data=ALL_CASES["12_cjk.json"], env={"PYTHONIOENCODING": variable, "LC_ALL": "C"})
    assert ran.answer["sha256"] == hashlib.sha256(ALL_CASES["12_cjk.json"]).hexdigest()


def test_service_learns_event_client_and_time_left(running) -> None:
    running.limits(1500, 3000)
    prompt, start = running.hook("UserPromptSubmit").answer, running.hook("session.start", client="codex").answer
    assert prompt["event"] == "UserPromptSubmit"
    assert 500 < prompt["remaining"] <= 1400
    assert 1500 < start["remaining"] <= 2900
    assert running.seen()["calls"] == ["claudecode/UserPromptSubmit", "codex/session.start"]


@pytest.mark.parametrize("event", ["SessionStart", "session.start", "session_start", "session-start"])
def test_a_session_start_is_known_by_every_spelling(running, event: str) -> None:
    running.limits(1500, 3000)
    assert 1500 < running.hook(event).answer["remaining"] <= 2900


def test_only_what_is_built_in_is_imported(running) -> None:
    def modules(command: list[str]) -> set[str]:
        timed = [command[0], "-X", "importtime", *command[1:]]
        lines = subprocess.run(timed, input=b"{}", capture_output=True, check=True).stderr.decode().splitlines()
        return {line.rpartition("|")[2].strip() for line in lines[1:]}

    python = str(running.home.bin / "python")
    extra = modules(running.command("prompt.submit")) - modules([python, "-I", "-S", "-c", "pass"])
    assert extra <= {"_socket", "time", "_signal"}
    imported = {
        name.name
        for node in ast.walk(ast.parse((REPOSITORY / "hooks" / "hook.py").read_bytes()))
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in node.names
    }
    assert imported == {"_signal", "_socket", "posix", "sys", "time"}


def test_start_to_exit_stays_near_the_bare_interpreter(running) -> None:
    def milliseconds(command: list[str]) -> float:
        began = time.perf_counter()
        subprocess.run(command, input=b"{}", capture_output=True, check=True)
        return (time.perf_counter() - began) * 1000

    bare_command = [str(running.home.bin / "python"), "-I", "-S", "-c", "pass"]
    pairs = [(milliseconds(bare_command), milliseconds(running.command("prompt.submit"))) for _ in range(30)]
    bare, hook = (statistics.median(column) for column in zip(*pairs, strict=True))
    assert hook < 3 * bare, f"{hook:.1f} ms against {bare:.1f} ms"  # the benchmark holds it to 2


def test_first_prompt_on_a_cold_home_starts_the_service_and_gets_its_answer(place) -> None:
    place.limits(8000, 8000)
    ran = place.hook()
    assert (ran.code, ran.err) == (0, b"")
    assert ran.answer["pid"] == place.pid()


def test_eight_first_prompts_at_once_start_one_service(place) -> None:
    place.limits(8000, 8000)
    place.ready_boot(BOOT)
    with ThreadPoolExecutor(8) as pool:
        ran = list(pool.map(lambda _: place.hook("session.start"), range(8)))
    assert all((one.code, one.err) == (0, b"") for one in ran)
    answered = {one.answer["pid"] for one in ran if one.out != BOOT}
    assert answered <= {place.pid()}
    assert place.home.log.read_text().count("serves") == 1


def test_service_gets_nothing_of_the_host_but_the_allowed_variables(place) -> None:
    place.limits(8000, 8000)
    secret = {"ANTHROPIC_API_KEY": "k", "CLAUDECODE": "1", "AI_AGENT": "x", "SSH_AUTH_SOCK": "/tmp/s"}
    given = {"PATH": os.environ["PATH"], "HOME": os.environ["HOME"], "LC_CTYPE": "C.UTF-8", "LORE_LOCALE": "zh"}
    read, write = os.pipe()  # a descriptor that a careless host lets its children inherit
    os.set_inheritable(write, True)
    ran = place.hook(env=given | secret, close_fds=False)
    os.close(write)
    assert os.read(read, 1) == b"", "the service holds a descriptor of its host"
    os.close(read)
    seen = place.seen()
    assert seen["environment"].keys() & secret.keys() == set()
    assert seen["environment"].items() >= given.items()
    assert seen["session"] not in {os.getsid(0), ran.answer["pid"]}


def test_lists_of_allowed_variables_agree() -> None:
    for node in ast.walk(ast.parse((REPOSITORY / "hooks" / "hook.py").read_bytes())):
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "ALLOWED":
            names = eval(ast.unparse(node.value))  # our own source
            assert [name.decode() for name in names] == list(bridge.ALLOWED)
            return
    pytest.fail("hook.py has no such list")


def test_killed_service_is_started_again(running) -> None:
    running.limits(8000, 8000)
    before = running.pid()
    os.kill(before, signal.SIGKILL)
    ran = running.hook()
    assert ran.answer["pid"] == running.pid() != before


def test_stale_socket_of_nobody_is_replaced(place) -> None:
    place.limits(8000, 8000)
    with socket.socket(socket.AF_UNIX) as left_over, contextlib.chdir(place.home.run):
        left_over.bind("service.sock")
    assert place.hook().answer["pid"] == place.pid()


def test_stopped_service_costs_the_limit_then_nothing_until_it_is_back(running) -> None:
    running.limits(600, 600)
    os.kill(running.pid(), signal.SIGSTOP)
    for _ in range(3):
        ran = running.hook()
        assert ran.is_silent
        assert ran.seconds < PROMPT_SECONDS
    assert running.hook().is_silent
    assert running.misses() == ["timeout", "timeout", "timeout", "breaker"]

    os.kill(running.pid(), signal.SIGCONT)
    breaker = running.home.run / "breaker"
    os.utime(breaker, (time.time() - 61, time.time() - 61))
    running.limits(8000, 8000)
    assert running.hook().answer["pid"] == running.pid()
    assert not breaker.exists()


def test_stdin_that_never_closes_is_left_at_the_limit(running) -> None:
    running.limits(500, 500)
    running.ready_boot(BOOT)
    for event, expected in (("prompt.submit", b""), ("session.start", BOOT)):
        began = time.monotonic()
        process = running.popen(running.command(event), stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        process.stdin.write(b'{"prompt": "half')
        process.stdin.flush()
        assert process.stdout.read() == expected
        assert process.wait() == 0
        assert time.monotonic() - began < PROMPT_SECONDS
    assert running.misses() == ["stdin", "stdin"]
    assert not (running.home.run / "breaker").exists(), "a host's fault must not open the breaker for all"


def test_input_without_end_is_left_at_the_limit(running) -> None:
    running.limits(500, 500)
    with Path("/dev/zero").open("rb") as endless:
        process = running.popen(running.command("prompt.submit"), stdin=endless, stdout=subprocess.PIPE)
        assert process.communicate() == (b"", None)
    assert process.returncode == 0


@pytest.mark.parametrize("source", ["startup", "clear", "compact", "fork", "unknown-new"])
def test_session_start_without_service_gets_the_ready_boot_bytes(place, source: str) -> None:
    (place.home.bin / "service").unlink()
    place.ready_boot(BOOT)
    ran = place.hook("SessionStart", json.dumps({"source": source}).encode())
    assert (ran.code, ran.out, ran.err) == (0, BOOT, b"")


def test_resumed_session_is_not_sent_its_boot_again_without_service(place) -> None:
    (place.home.bin / "service").unlink()
    place.ready_boot(BOOT)
    assert place.hook("SessionStart", b'{"source": "resume"}').is_silent


def test_other_runtimes_and_other_events_get_no_boot_bytes(place) -> None:
    (place.home.bin / "service").unlink()
    place.ready_boot(BOOT)
    assert place.hook("session.start", client="codex").is_silent
    assert place.hook("prompt.submit").is_silent
    assert place.misses() == ["no_service", "no_service"]


@pytest.mark.parametrize("value", ["1", "true", "yes"])
def test_lore_disable_turns_it_off_without_a_trace(place, value: str) -> None:
    place.ready_boot(BOOT)
    assert place.hook("session.start", env={"LORE_DISABLE": value}).is_silent
    assert place.misses() == []
    assert not place.home.socket.exists()


@pytest.mark.parametrize("value", ["", "0"])
def test_lore_disable_set_to_nothing_does_not(running, value: str) -> None:
    assert running.hook(env={"LORE_DISABLE": value}).answer["pid"] == running.pid()


def test_removed_package_leaves_silence(place) -> None:
    (place.home.bin / "service").write_text(
        "#!/bin/sh\nexec '/nowhere/venv/bin/python' -P -m lorehooks.hooks.service\n"
    )
    ran = place.hook()
    assert ran.is_silent
    assert ran.seconds < PROMPT_SECONDS
    assert place.misses() == ["start_failed"]


def test_service_that_says_ready_and_dies_leaves_silence(place) -> None:
    (place.home.bin / "service").write_text('#!/bin/sh\neval "echo 1 >&$2"\n')
    assert place.hook().is_silent
    assert place.misses() == ["start_failed"]


def test_start_that_hangs_is_left_at_the_limit(place) -> None:
    place.limits(500, 500)
    place.ready_boot(BOOT)
    (place.home.bin / "service").write_text("#!/bin/sh\necho $$ >hanging\nexec sleep 60\n")
    ran = place.hook("session.start")
    os.kill(int((place.home.run / "hanging").read_text()), signal.SIGKILL)
    assert (ran.code, ran.out, ran.err) == (0, BOOT, b"")
    assert ran.seconds < PROMPT_SECONDS


def test_registered_command_is_silent_once_the_home_has_moved(running) -> None:
    home, registered = running.home.root, registered_command(running.home, "claudecode", "prompt.submit")

    def run() -> subprocess.CompletedProcess:
        return subprocess.run(["/bin/sh", "-c", registered], input=b"{}", capture_output=True, check=False)

    assert json.loads(run().stdout)["pid"] == running.pid()
    service.stop(running.home)
    home.rename(home.with_name("moved"))
    after = run()
    assert (after.returncode, after.stdout, after.stderr) == (0, b"", b"")


@pytest.mark.parametrize("missing", ["hook.py", "python"])
def test_registered_command_of_a_half_deleted_home_blocks_no_prompt(running, missing) -> None:
    """Python ends with 2 when its script is not there, and 2 blocks the prompt in every host that starts hooks."""
    (running.home.bin / missing).unlink()
    command = registered_command(running.home, "claudecode", "prompt.submit")
    after = subprocess.run(["/bin/sh", "-c", command], input=b"{}", capture_output=True, check=False)
    assert (after.returncode, after.stdout, after.stderr) == (0, b"", b"")


def test_moved_home_starts_a_service_of_its_own(place) -> None:
    moved = place.home.root.with_name("moved")
    place.home.root.rename(moved)
    place.home = Home(moved)
    place.limits(8000, 8000)
    assert place.hook().answer["pid"] == place.pid()
    assert place.seen()["environment"]["LORE_HOME"] == str(moved)


@pytest.mark.skipif(sys.platform != "linux", reason="drops root's privileges the Linux way")
def test_read_only_home_leaves_silence(place, unprivileged) -> None:
    for folder in (place.home.run, place.home.bin, place.home.root):
        folder.chmod(0o500)
    try:
        assert place.hook(preexec_fn=unprivileged).is_silent
        shutil.rmtree(place.home.run, ignore_errors=True)
        assert place.hook(preexec_fn=unprivileged).is_silent
    finally:
        place.home.root.chmod(0o700)
        if place.home.run.exists():
            place.home.run.chmod(0o700)
    assert not place.home.socket.exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_home_of_another_user_is_left_alone(running) -> None:
    os.chown(running.home.run, 65534, 65534)
    try:
        assert running.hook().is_silent
    finally:
        os.chown(running.home.run, 0, 0)
    assert running.misses() == []
    assert running.seen()["calls"] == []


def test_run_folder_that_others_may_write_to_is_not_trusted(running) -> None:
    running.home.run.chmod(0o777)
    try:
        assert running.hook().is_silent
    finally:
        running.home.run.chmod(0o700)


def test_lost_run_folder_is_made_again(place) -> None:
    shutil.rmtree(place.home.run)
    first = place.hook()
    place.limits(8000, 8000)
    assert first.code == 0
    assert place.hook().answer["pid"] == place.pid()


BAD_ANSWERS = {
    "another status": b"HTTP/1.1 500 Internal Server Error\r\nContent-Length: 2\r\n\r\n{}",
    "redirect": b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:9/\r\nContent-Length: 0\r\n\r\n",
    "page": b"HTTP/1.1 200 OK\r\nContent-Length: 15\r\n\r\n<!doctype html>",
    "list": b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n[]",
    "no length": b"HTTP/1.1 200 OK\r\n\r\n{}",
    "length is no number": b"HTTP/1.1 200 OK\r\nContent-Length: many\r\n\r\n{}",
    "no http": b"\x00\xff" * 50 + b"\r\n\r\n",
    "endless head": b"HTTP/1.1 200 OK\r\n" + b"X-Pad: aaaaaaaaaaaaaaaaaaaaa\r\n" * 200_000,
    "endless body": b"HTTP/1.1 200 OK\r\nContent-Length: 999999999\r\n\r\n{" + b" " * (5 << 20),
    "cut off": b"HTTP/1.1 200 OK\r\nContent-Length: 999\r\n\r\n{",
    "nothing": b"",
}


def listen(place, talk: Callable[[socket.socket], None]) -> None:
    """Put somebody who is no service behind the socket of a home."""
    server = socket.socket(socket.AF_UNIX)
    with contextlib.chdir(place.home.run):
        server.bind("service.sock")
    server.listen()

    def serve() -> None:
        with server:
            while True:
                connection, _ = server.accept()
                with connection:
                    if connection.recv(65536):
                        talk(connection)

    threading.Thread(target=serve, daemon=True).start()


@pytest.mark.parametrize("name", BAD_ANSWERS)
def test_answer_that_is_none_is_not_printed(place, name: str) -> None:
    def talk(connection: socket.socket) -> None:
        with contextlib.suppress(OSError):  # the hook may have seen enough
            connection.sendall(BAD_ANSWERS[name])

    (place.home.bin / "service").write_text("#!/bin/sh\nexit 1\n")
    listen(place, talk)
    ran = place.hook()
    assert ran.is_silent
    assert ran.seconds < PROMPT_SECONDS
    assert place.misses() in (["bad_answer"], ["start_failed"])


def test_answer_that_drips_is_left_at_the_limit(place) -> None:
    def talk(connection: socket.socket) -> None:
        with contextlib.suppress(OSError):
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n{")
            while True:
                connection.sendall(b" ")
                time.sleep(0.05)

    place.limits(500, 500)
    listen(place, talk)
    ran = place.hook()
    assert ran.is_silent
    assert ran.seconds < PROMPT_SECONDS
    assert place.misses() == ["timeout"]


def test_empty_answer_prints_nothing_and_is_no_miss(place) -> None:
    listen(place, lambda connection: connection.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n"))
    assert place.hook().is_silent
    assert place.misses() == []


def test_deadline_holds_in_a_host_that_blocks_signals(running) -> None:
    running.limits(500, 500)
    blocked = lambda: signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGALRM])  # noqa: E731
    ran = running.hook("hang", preexec_fn=blocked)
    assert ran.is_silent
    assert ran.seconds < PROMPT_SECONDS


@pytest.mark.parametrize("closed", [0, 1, 2])
def test_closed_stream_is_no_error(running, closed: int) -> None:
    command = [*running.command("prompt.submit")]
    done = subprocess.run(
        ["/bin/sh", "-c", f'exec "$0" "$@" {closed}>&-', *command], input=b"{}", capture_output=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout == b"" or json.loads(done.stdout)


def test_reader_that_left_is_no_error(running) -> None:
    read, write = os.pipe()
    os.close(read)
    process = running.popen(
        running.command("prompt.submit"), stdin=subprocess.DEVNULL, stdout=write, stderr=subprocess.PIPE
    )
    os.close(write)
    assert process.communicate() == (None, b"")
    assert process.returncode == 0


@pytest.mark.parametrize(
    "arguments", [[], ["claudecode"], ["../x", "prompt.submit"], ["claudecode", "a b"], ["a", "b", "c"]]
)
def test_wrong_arguments_are_no_error(running, arguments: list[str]) -> None:
    command = [*running.command("x")[:4], *arguments]
    done = subprocess.run(command, input=b"{}", capture_output=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_package_s_own_copy_finds_the_home_by_the_environment(running, tmp_path: Path) -> None:
    command = [
        running.command("x")[0],
        "-I",
        "-S",
        str(REPOSITORY / "hooks" / "hook.py"),
        "claudecode",
        "prompt.submit",
    ]
    for environment in ({"LORE_HOME": str(running.home.root)}, {"HOME": str(running.home.root.parent)}):
        done = subprocess.run(command, input=b"{}", env=environment, capture_output=True, check=False)
        assert json.loads(done.stdout)["pid"] == running.pid()
    for environment in ({}, {"HOME": str(tmp_path / "nowhere")}):
        done = subprocess.run(command, input=b"{}", env=environment, capture_output=True, check=False)
        assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_home_too_deep_for_a_socket_path_works(place) -> None:
    deep = place.home.root.with_name("d" * 120)
    place.home.root.rename(deep)
    place.home = Home(deep)
    place.limits(8000, 8000)
    assert place.hook().answer["pid"] == place.pid()
