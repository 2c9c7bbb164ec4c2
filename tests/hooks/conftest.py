"""Homes with the real hook program, bridge and service process; what they start is ended by its process id."""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from lorehooks.core.home import Home
from lorehooks.hooks import layout, service

FAKE_SERVICE = Path(__file__).with_name("fake_service.py")
PATIENCE = 30.0


@pytest.fixture(scope="session")
def wait_for() -> Callable[[Callable[[], object], str], None]:
    """Poll until a condition holds; a slow machine gets half a minute."""

    def wait(condition: Callable[[], object], what: str) -> None:
        end = time.monotonic() + PATIENCE
        while not condition():
            if time.monotonic() > end:
                pytest.fail(f"waited in vain for {what}")
            time.sleep(0.01)

    return wait


@pytest.fixture(scope="session")
def unprivileged() -> Callable[[], None]:
    """For `preexec_fn`: take root's right to write where it may not, from a child about to run a program (Linux)."""

    def give_up() -> None:
        cap_dac_override, drop_from_bounding_set = 1, 24
        if os.geteuid() == 0:
            ctypes.CDLL(None).prctl(drop_from_bounding_set, cap_dac_override, 0, 0, 0)

    return give_up


@dataclass
class Ran:
    """What one hook run did."""

    code: int
    out: bytes
    err: bytes
    seconds: float

    @property
    def answer(self) -> dict:
        """The one document on stdout."""
        return json.loads(self.out)

    @property
    def is_silent(self) -> bool:
        return (self.code, self.out, self.err) == (0, b"", b"")


@dataclass
class Place:
    """A home in use by tests."""

    home: Home
    started: list[subprocess.Popen] = field(default_factory=list)

    def command(self, event: str, client: str = "claudecode") -> list[str]:
        return [str(self.home.bin / "python"), "-I", "-S", str(self.home.bin / "hook.py"), client, event]

    def hook(self, event: str = "prompt.submit", data: bytes = b"{}", client: str = "claudecode", **options) -> Ran:
        """Run the hook program as a host does."""
        began = time.perf_counter()
        options.setdefault("timeout", PATIENCE)
        done = subprocess.run(self.command(event, client), input=data, capture_output=True, check=False, **options)
        return Ran(done.returncode, done.stdout, done.stderr, time.perf_counter() - began)

    def popen(self, command: list[str], **options) -> subprocess.Popen:
        process = subprocess.Popen(command, **options)
        self.started.append(process)
        return process

    def pid(self) -> int:
        """The process id of the running service."""
        return json.loads(self.home.service_file.read_bytes())["pid"]

    def seen(self) -> dict:
        """What the stand-in service has seen so far."""
        with service.connect(self.home, 10) as connection:
            connection.sendall(b"GET /seen HTTP/1.1\r\nHost: lore\r\nConnection: close\r\n\r\n")
            answer = b"".join(iter(lambda: connection.recv(65536), b""))
        return json.loads(answer.partition(b"\r\n\r\n")[2])

    def start_by(self, command: str) -> None:
        """Let `bin/service` run something else."""
        script = self.home.bin / "service"
        script.write_text("\n".join([*script.read_text().splitlines()[:-1], f"{command}\n"]))

    def use_stand_in(self) -> None:
        """Serve the stand-in app. The owner line names nobody, so that no service or command lays the home out again."""
        script = self.home.bin / "service"
        owner = layout.environment_of(self.home)
        script.write_text(script.read_text().replace(f"# environment: {owner}", "# environment: the tests"))
        self.start_by(f"exec '{sys.executable}' '{FAKE_SERVICE}' \"$@\"")

    def misses(self) -> list[str]:
        """The reasons that hooks left behind."""
        with contextlib.suppress(FileNotFoundError):
            return [line.split()[-1] for line in self.home.misses.read_text().splitlines()]
        return []

    def limits(self, prompt_ms: int, start_ms: int) -> None:
        (self.home.run / "limits").write_text(f"{prompt_ms} {start_ms}\n")

    def ready_boot(self, data: bytes, client: str = "claudecode") -> None:
        self.home.boot.mkdir(exist_ok=True)
        (self.home.boot / client).write_bytes(data)

    def end(self) -> None:
        for process in self.started:
            if process.poll() is None:
                process.kill()
            process.wait()
            for stream in (process.stdin, process.stdout, process.stderr):
                if stream is not None:
                    stream.close()
        with contextlib.suppress(OSError):
            self.home.run.chmod(0o700)
        listening = service.listener(self.home)
        if listening not in {0, os.getpid()}:  # some tests listen themselves
            os.kill(listening, signal.SIGKILL)  # quicker than asking it to end, which tests of their own do
        service.stop(self.home)


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    """A laid-out home, with a space and other letters in its path, whose service is not running."""
    home = Home(tmp_path / "zoë 김" / ".lore")
    layout.lay(home)
    place = Place(home)
    place.use_stand_in()
    yield place
    place.end()


@pytest.fixture
def running(place: Place) -> Place:
    """The same with its service running and loaded."""
    service.start(place.home)
    return place


@pytest.fixture
def real(place: Place) -> Place:
    """The home of `place` with the real service in it, running."""
    layout.lay(place.home)
    service.start(place.home)
    return place
