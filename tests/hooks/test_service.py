"""One service per home: started by anyone, found by all, ended in order, and never where it must not run."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import stat
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from lorehooks.core.errors import ConflictError, StorageError
from lorehooks.core.home import Home
from lorehooks.hooks import bridge, claim, lease, service, serviceinfo
from lorehooks.hooks import place as places


def get(port: int, path: str = "/api/health") -> bytes:
    with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
        connection.sendall(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\n\r\n".encode())
        return b"".join(iter(lambda: connection.recv(65536), b""))


def test_start_returns_what_is_written_down_once_it_answers(place) -> None:
    info = service.start(place.home)
    assert json.loads(place.home.service_file.read_bytes()) == {
        "port": info.port,
        "token": info.token,
        "pid": info.pid,
        "version": serviceinfo.installed_version(),
        "started_at": info.started_at,
        "environment": sys.prefix,
        "mode": "background",
    }
    assert len(info.token) >= 40
    assert get(info.port).startswith(b"HTTP/1.1 200")
    assert service.status(place.home) == service.Status(running=True, answering=True, info=info)


def test_files_of_the_service_are_for_their_owner_only(running) -> None:
    modes = {path.name: stat.S_IMODE(path.lstat().st_mode) for path in running.home.run.iterdir()}
    assert {name: oct(mode) for name, mode in modes.items() if mode & 0o077} == {}
    assert stat.S_IMODE(running.home.run.stat().st_mode) == 0o700
    assert stat.S_ISSOCK(running.home.socket.stat().st_mode)


def test_starting_again_and_at_once_finds_the_running_one(running) -> None:
    with ThreadPoolExecutor(4) as pool:
        infos = list(pool.map(lambda _: service.start(running.home), range(4)))
    assert {info.pid for info in infos} == {running.pid()}


def test_starter_that_comes_second_leaves_at_once(running) -> None:
    done = subprocess.run([running.home.bin / "service"], capture_output=True, check=False, timeout=30)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert running.pid() == service.listener(running.home)


def test_stop_ends_it_and_leaves_nothing_but_its_port(running) -> None:
    info = serviceinfo.read_info(running.home)
    assert service.stop(running.home)
    assert service.status(running.home) == service.Status(running=False, answering=False, info=None)
    assert json.loads(running.home.service_file.read_bytes()) == {"port": info.port}
    assert not running.home.socket.exists()
    assert not lease.lease_file(running.home).exists()
    assert not service.stop(running.home)


def test_next_start_takes_the_same_port_with_a_new_token(running) -> None:
    before = serviceinfo.read_info(running.home)
    after = service.restart(running.home)
    assert (after.port, after.token == before.token, after.pid == before.pid) == (before.port, False, False)


def test_port_taken_by_a_stranger_is_left_to_it(running, wait_for) -> None:
    info = serviceinfo.read_info(running.home)
    os.kill(info.pid, signal.SIGKILL)
    heard = []
    with socket.socket() as stranger:
        stranger.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)

        def takes_port() -> bool:
            with contextlib.suppress(OSError):
                stranger.bind(("127.0.0.1", info.port))
            return stranger.getsockname()[1] == info.port

        wait_for(takes_port, "the killed service's port")
        stranger.listen()
        stranger.settimeout(0.2)
        running.limits(8000, 8000)
        answer = running.hook().answer
        with contextlib.suppress(TimeoutError):
            heard.append(stranger.accept())
    assert heard == []
    after = serviceinfo.read_info(running.home)
    assert answer["pid"] == after.pid
    assert after.port != info.port


def test_stop_ends_a_service_that_was_halted(running) -> None:
    pid = running.pid()
    os.kill(pid, signal.SIGSTOP)
    assert not service.answers(running.home, 0.2)
    assert service.stop(running.home)
    assert service.listener(running.home) == 0


def test_start_says_what_to_do_about_a_service_that_is_halted(running, monkeypatch: pytest.MonkeyPatch) -> None:
    # The starter is waited for, and only the answer is not: one that came late would find the lock free after the test.
    monkeypatch.setattr(service, "answers", lambda *_: False)
    os.kill(running.pid(), signal.SIGSTOP)
    with pytest.raises(StorageError, match=f"pid {running.pid()}") as caught:
        service.start(running.home)
    assert caught.value.hint == "lore service restart"


def test_end_waits_only_so_long_for_a_request_that_hangs(running) -> None:
    running.popen(running.command("hang"), stdin=subprocess.DEVNULL)
    with service.connect(running.home, 10) as hanging:
        hanging.sendall(b"POST /hooks/v1/a/hang HTTP/1.1\r\nHost: lore\r\nContent-Length: 0\r\n\r\n")
        began = time.monotonic()
        assert service.stop(running.home)
    assert time.monotonic() - began < service.STOP_SECONDS


def test_terminal_that_hangs_up_does_not_end_it(running) -> None:
    pid = running.pid()
    os.kill(pid, signal.SIGHUP)
    assert running.hook().answer["pid"] == pid


def test_start_says_why_the_service_does_not_come_up(place) -> None:
    place.home.log.write_text("an older line\n")
    place.start_by("echo boom at start >>run/service.log; exit 1")
    with pytest.raises(StorageError, match="boom at start") as caught:
        service.start(place.home)
    assert str(place.home.log) in caught.value.hint


def test_failing_app_is_said_in_the_log(place) -> None:
    broken = place.home.root.parent / "broken.py"
    broken.write_text(
        "import sys; sys.modules['lorehooks.hooks.app'] = None\n"
        "from lorehooks.hooks import service; sys.exit(service.main())\n"
    )
    place.start_by(f"exec '{sys.executable}' '{broken}' \"$@\"")
    with pytest.raises(StorageError, match="ModuleNotFoundError"):
        service.start(place.home)


def test_a_service_that_answers_is_used_without_starting_a_program(running, monkeypatch) -> None:
    monkeypatch.setattr(bridge, "start_service", lambda *_: pytest.fail("a command would wait for that each time"))
    assert service.start(running.home).pid == running.pid()


def test_idle_service_ends(place, wait_for) -> None:
    place.home.config.write_text("[service]\nidle_hours = 0.001\n")
    service.start(place.home)
    wait_for(lambda: not service.status(place.home).running, "an idle service to end")
    assert "not used for" in place.home.log.read_text()


def test_service_ends_when_its_home_is_removed(place, wait_for, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LORE_FAKE_PAUSE", "0.05")
    pid = service.start(place.home).pid
    place.home.root.rename(place.home.root.with_name("moved"))
    moved = Home(place.home.root.with_name("moved"))
    wait_for(lambda: not service.status(moved).running, f"process {pid} to notice")


def test_service_ends_when_another_release_was_installed(place, wait_for, monkeypatch: pytest.MonkeyPatch) -> None:
    release = place.home.root / "release"
    release.write_text("1.0")
    monkeypatch.setenv("LORE_FAKE_PAUSE", "0.05")
    monkeypatch.setenv("LORE_FAKE_RELEASE", str(release))
    assert service.start(place.home).version == "1.0"
    release.write_text("1.1")
    wait_for(lambda: not service.status(place.home).running, "the old release to end")
    assert service.start(place.home).version == "1.1"


@pytest.mark.parametrize(
    ("owner", "running_version", "replaced"),
    [("ours", "0.0.1", True), ("another's", "0.0.1", False), ("ours", "99.0", False)],
)
def test_start_replaces_an_older_release_of_the_owning_environment_only(
    place, monkeypatch: pytest.MonkeyPatch, owner: str, running_version: str, replaced: bool
) -> None:
    release = place.home.root / "release"
    release.write_text(running_version)
    monkeypatch.setenv("LORE_FAKE_RELEASE", str(release))
    before = service.start(place.home)
    monkeypatch.setattr("lorehooks.hooks.layout.environment_of", lambda _: sys.prefix if owner == "ours" else "/other")
    monkeypatch.setattr("lorehooks.hooks.layout.lay", lambda _: None)
    assert (service.start(place.home).pid != before.pid) is replaced


def serve_in_foreground(place, port: int) -> subprocess.Popen:
    code = (
        "import sys; sys.path.insert(0, sys.argv[1]); import fake_service, types; from pathlib import Path\n"
        "stand_in = types.ModuleType('lorehooks.hooks.app'); stand_in.create_app = fake_service.create_app\n"
        "sys.modules['lorehooks.hooks.app'] = stand_in\n"
        "from lorehooks.core.home import Home; from lorehooks.core.errors import LoreError\n"
        "from lorehooks.hooks import service\n"
        "try: service.serve(Home(Path(sys.argv[2])), int(sys.argv[3]), on_ready=lambda info: print(info.pid, flush=True))\n"
        "except LoreError as error: print(error, flush=True); sys.exit(3)\n"
    )
    command = [sys.executable, "-c", code, str(Path(__file__).parent), str(place.home.root), str(port)]
    return place.popen(command, stdout=subprocess.PIPE, text=True)


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return probe.getsockname()[1]


def test_serve_takes_over_with_a_fixed_port_and_a_token_that_stays(running) -> None:
    port, background = free_port(), running.pid()
    first = serve_in_foreground(running, port)
    assert int(first.stdout.readline()) == first.pid
    info = serviceinfo.read_info(running.home)
    assert (info.port, info.mode, info.pid) == (port, "foreground", first.pid)
    assert info.token == (running.home.root / "token").read_text().strip()
    assert stat.S_IMODE((running.home.root / "token").stat().st_mode) == 0o600
    assert running.hook().answer["pid"] == first.pid != background

    second = serve_in_foreground(running, port)
    assert "runs already" in second.stdout.read()
    assert second.wait() == 3

    first.send_signal(signal.SIGINT)
    assert first.wait(timeout=20) == 0
    assert service.persistent_token(running.home) == info.token


def test_serve_says_when_its_port_is_taken(place) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        refused = serve_in_foreground(place, other.getsockname()[1])
        assert "cannot be used" in refused.stdout.read()
        assert refused.wait() == 3
    assert not service.status(place.home).running
    assert not lease.lease_file(place.home).exists()


def test_home_of_another_user_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 4242)
    with pytest.raises(StorageError, match="another user") as caught:
        places.check_place(Home(tmp_path))
    assert "LORE_HOME" in caught.value.hint


def test_home_that_is_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError, match="cannot be used"):
        places.check_place(Home(tmp_path / "file"))


@pytest.mark.parametrize("kind", ["nfs4", "cifs", "9p", "fuse.sshfs"])
def test_network_file_system_is_refused_with_the_other_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.setattr(places, "mount_table", lambda: f"/dev/sda / ext4 rw 0 0\nserver:/x {tmp_path} {kind} rw 0 0\n")
    with pytest.raises(StorageError, match=kind) as caught:
        places.check_place(Home(tmp_path / ".lore"))
    assert "lore connect" in caught.value.hint


MOUNTS = """\
/dev/sda1 / ext4 rw,relatime 0 0
proc /proc proc rw 0 0
server:/home /home nfs4 rw 0 0
/dev/sdb1 /home/ann\\040lee ext4 rw 0 0
tmpfs /home/bo tmpfs rw 0 0
//nas/bo /home/bo cifs rw 0 0
"""
APPLE_MOUNTS = """\
/dev/disk3s1s1 on / (apfs, sealed, local, read-only, journaled)
/dev/disk3s5 on /System/Volumes/Data (apfs, local, journaled, nobrowse)
//ann@nas/share on /Volumes/my share (smbfs, nodev, nosuid, mounted by ann)
"""


@pytest.mark.parametrize(
    ("folder", "mounts", "kind"),
    [
        ("/srv/x", MOUNTS, "ext4"),
        ("/home/zoe/.lore", MOUNTS, "nfs4"),
        ("/homework", MOUNTS, "ext4"),
        ("/home/ann lee/.lore", MOUNTS, "ext4"),
        ("/home/bo/.lore", MOUNTS, "cifs"),
        ("/Users/ann/.lore", APPLE_MOUNTS, "apfs"),
        ("/Volumes/my share/.lore", APPLE_MOUNTS, "smbfs"),
        ("/anywhere", "", ""),
    ],
)
def test_file_system_is_that_of_the_nearest_mount(folder: str, mounts: str, kind: str) -> None:
    assert places.filesystem_of(Path(folder), mounts) == kind


def note_of(home: Home, **changes: object) -> None:
    fields = {"host": "other", "machine": "m-2", "boot": "b-2", "pid": 1, "heartbeat": time.time(), **changes}
    home.root.mkdir(parents=True, exist_ok=True)
    lease.lease_file(home).write_text(json.dumps(fields))


def test_home_in_use_on_another_machine_is_refused(place) -> None:
    note_of(place.home)
    with pytest.raises(StorageError, match="in use on other"):
        lease.check_lease(place.home)
    assert place.hook().is_silent
    assert place.misses() == ["start_failed"]
    assert "lore connect" in place.home.log.read_text()
    with pytest.raises(StorageError, match="in use on other"):
        service.start(place.home)


@pytest.mark.parametrize(
    "changes",
    [
        {"heartbeat": time.time() - lease.FRESH - 1},
        {"machine": lease.here().machine},
        pytest.param({"boot": lease.here().boot}, marks=pytest.mark.skipif(not lease.here().boot, reason="no boot id")),
        {"pid": None, "surplus": 1},
    ],
    ids=["stale", "same machine after a restart", "another container on this kernel", "unreadable"],
)
def test_note_that_binds_nobody_is_taken_over(place, changes: dict) -> None:
    note_of(place.home, **changes)
    info = service.start(place.home)
    assert lease.read_lease(place.home).pid == info.pid


def test_note_of_another_is_not_dropped(tmp_path: Path) -> None:
    home = Home(tmp_path)
    note_of(home)
    lease.drop_lease(home)
    assert lease.read_lease(home).host == "other"


def test_lease_is_renewed_while_the_service_runs(place, wait_for, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LORE_FAKE_PAUSE", "0.05")
    service.start(place.home)
    first = lease.read_lease(place.home).heartbeat
    wait_for(lambda: lease.read_lease(place.home).heartbeat > first, "a second heartbeat")


def test_unfit_service_file_counts_as_none(tmp_path: Path) -> None:
    home = Home(tmp_path)
    home.run.mkdir()
    for text in ("", "[]", "{}", '{"port": "x"}', '{"port": 70000}'):
        home.service_file.write_text(text)
        assert serviceinfo.read_info(home) is None
        assert serviceinfo.read_port(home) == 0


def test_starter_gives_up_on_a_holder_that_never_listens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = Home(tmp_path)
    monkeypatch.setattr(claim, "PATIENCE", 0.2)
    monkeypatch.chdir(tmp_path)
    home.run.mkdir()
    holder = subprocess.Popen(
        [
            sys.executable,
            "-c",
            "import fcntl,sys; f=open(sys.argv[1],'w'); fcntl.flock(f,2); print(1,flush=True); input()",
            home.lock,
        ],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    with holder:
        holder.stdout.readline()
        with pytest.raises(ConflictError, match="does not listen"), claim.claimed(home):
            pass
        holder.stdin.close()
