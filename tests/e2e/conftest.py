"""Real agent programs, pinned, from their registries, on a machine of their own that reaches nothing but itself.

A program is fetched once into `.e2e/` (npm, PyPI) and never again; every run has `env -i`, a HOME of its own, a dead proxy, a
private project folder and the fake model of `tests/support`. Services that hooks started are ended by their own home.
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock

from lorehooks.core.home import Home
from lorehooks.hooks import service

ROOT = Path(__file__).parents[2]
PROGRAMS = ROOT / ".e2e"
LORE = Path(sys.executable).with_name("lore")
OWN_ENVIRONMENT = dict(os.environ)
"""As it is before any test gets a HOME of its own: settings of npm and pip, such as registries, lie in the user's."""
SECONDS = 120
"""A run that takes longer hangs, on the slowest machine too."""
DEAD_PROXY = "http://127.0.0.1:9"
OFFLINE = {
    **dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"), DEAD_PROXY),
    **dict.fromkeys(("NO_PROXY", "no_proxy"), "127.0.0.1,localhost"),
}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """All that lies here runs a real program."""
    for item in items:
        if Path(item.path).is_relative_to(Path(__file__).parent):
            item.add_marker(pytest.mark.e2e)


@pytest.fixture(scope="session")
def npm_program() -> Callable[..., Path]:
    """`npm_program(package, version, program, *flags)`: the folder to put on the PATH. The network is used only the first time."""

    def fetch(package: str, version: str, program: str, *flags: str) -> Path:
        prefix = PROGRAMS / f"{package.rpartition('/')[2]}-{version}"
        binaries = prefix / "node_modules" / ".bin"
        prefix.mkdir(parents=True, exist_ok=True)
        with FileLock(prefix / ".lock"):
            if not (prefix / ".complete").exists():
                npm = shutil.which("npm")
                if npm is None:
                    pytest.skip(f"npm is needed to fetch {package}")
                wanted = ["--no-audit", "--no-fund", *flags, f"{package}@{version}"]
                command = [npm, "install", "--prefix", str(prefix), *wanted]
                done = subprocess.run(command, env=OWN_ENVIRONMENT, capture_output=True, text=True, check=False)
                if done.returncode:
                    pytest.skip(f"{package} {version} cannot be fetched here: {done.stderr.strip()[-500:]}")
                (prefix / ".complete").touch()
        assert (binaries / program).exists()
        return binaries

    return fetch


@pytest.fixture(scope="session")
def wheel_program() -> Callable[[str, str, str], Path]:
    """`wheel_program(package, version, program)`: the same for a program that comes as a wheel without dependencies."""

    def fetch(package: str, version: str, program: str) -> Path:
        prefix = PROGRAMS / f"{package}-{version}"
        prefix.mkdir(parents=True, exist_ok=True)
        with FileLock(prefix / ".lock"):
            if not (prefix / ".complete").exists():
                python, quiet = prefix / "bin" / "python", ["--quiet", "--disable-pip-version-check"]
                subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(prefix)], check=True)
                command = [sys.executable, "-m", "pip", "--python", str(python), "install", *quiet, "--no-deps"]
                command.append(f"{package}=={version}")
                done = subprocess.run(command, env=OWN_ENVIRONMENT, capture_output=True, text=True, check=False)
                if done.returncode:
                    pytest.skip(f"{package} {version} cannot be installed here: {done.stderr.strip().splitlines()[-1]}")
                (prefix / ".complete").touch()
        assert (prefix / "bin" / program).exists()
        return prefix / "bin"

    return fetch


@pytest.fixture(scope="session")
def python_program() -> Callable[[str, str, str], Path]:
    """`python_program(package, version, program)`: the same for one with dependencies, run by another Python than ours if any."""

    def fetch(package: str, version: str, program: str) -> Path:
        prefix = PROGRAMS / f"{package}-{version}"
        prefix.mkdir(parents=True, exist_ok=True)
        with FileLock(prefix / ".lock"):
            if not (prefix / ".complete").exists():
                pip = (str(prefix / "bin" / "python"), "-m", "pip", "install", "--quiet", f"{package}=={version}")
                for command in ((_another_python(), "-m", "venv", str(prefix)), pip):
                    done = subprocess.run(command, env=OWN_ENVIRONMENT, capture_output=True, text=True, check=False)
                    if done.returncode:
                        pytest.skip(f"{package} {version} cannot be fetched here: {done.stderr.strip()[-500:]}")
                (prefix / ".complete").touch()
        assert (prefix / "bin" / program).exists()
        return prefix / "bin"

    return fetch


def _another_python() -> str:
    """A Python that can make environments, of another version than ours where there is one."""
    names = [f"python3.{minor}" for minor in (12, 13, 11) if minor != sys.version_info.minor]
    kept = Path(OWN_ENVIRONMENT.get("HOME", "/"), ".pyenv", "versions")
    on_path = [shutil.which(name, path=OWN_ENVIRONMENT.get("PATH")) for name in names]
    for found in filter(None, [*on_path, *(str(each) for name in names for each in kept.glob(f"*/bin/{name}"))]):
        tried = subprocess.run(
            [found, "-c", "import ensurepip, venv"], env=OWN_ENVIRONMENT, capture_output=True, check=False
        )
        if not tried.returncode:
            return found
    return sys.executable


@pytest.fixture(scope="session")
def fake_model_module() -> Any:
    """`tests/support/fake_model.py`, which is no package's."""
    spec = importlib.util.spec_from_file_location("fake_model", ROOT / "tests" / "support" / "fake_model.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@dataclass
class Machine:
    """One user's machine: HOME, project folder, PATH with one agent program, and the model it talks to."""

    user: Path
    model: Any
    script_class: Any
    environment: dict[str, str]
    project: Path
    said: list[str] = field(default_factory=list)
    """stderr of every run, for a failing test to show."""

    @property
    def home(self) -> Home:
        return Home(self.user / ".lore")

    def run(self, *argv: str, code: int | None = 0, **extra: str) -> str:
        """Run a program in the project folder; answers its stdout. `extra` adds to its environment."""
        done = subprocess.run(
            argv,
            cwd=self.project,
            env={**self.environment, **extra},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
        self.said.append(done.stderr)
        assert code is None or done.returncode == code, f"{argv}: {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    def lore(self, *words: str, code: int | None = 0) -> Any:
        """Run our command with `--json`; answers what it printed."""
        return json.loads(self.run(str(LORE), *words, "--json", code=code) or "null")

    def remember(self, uri: str, content: str, **options: str) -> None:
        """Write a memory by our command; `options` such as `disclosure` and `glossary`."""
        flags = [word for name, value in options.items() for word in (f"--{name}", value)]
        self.lore("node", "create", uri, content, *flags)

    def script(self, *rules: dict[str, Any]) -> None:
        """Give the model new rules, and forget what it was asked so far."""
        self.model.script = self.script_class({"rules": list(rules)})
        self.model.requests.clear()

    @property
    def turns(self) -> list[dict[str, Any]]:
        """The requests of the main conversation: side requests offer no tools."""
        return [request for request in self.model.requests if request["tools"]]

    def limit(self, prompt_ms: int, start_ms: int) -> None:
        """Set the time limits of hooks and plugins, and return when they can read them."""
        self.lore("config", "set", "hooks.prompt_timeout_ms", str(prompt_ms))
        self.lore("config", "set", "hooks.start_timeout_ms", str(start_ms))
        self.lore("service", "restart")
        end = time.monotonic() + SECONDS
        while (self.home.run / "limits").read_text().split() != [str(prompt_ms), str(start_ms)]:
            assert time.monotonic() < end
            time.sleep(0.02)

    def handler_ms(self, *names: str) -> list[float]:
        """How long handlers of a plugin file took, as it measured them itself; of all names when none is given."""
        file = self.user / "times"
        lines = file.read_text().splitlines() if file.exists() else []
        return [float(ms) for _, name, ms in map(str.split, lines) if not names or name in names]

    def slow_handlers_ms(self, turn: Callable[[int], object], *names: str) -> float:
        """The 95th percentile of what handlers of these names take: the best of up to 5 rounds of 30 turns.

        A machine that does other work lengthens every measure; one quiet round shows what our own part is. Turns come with
        the pause that a person makes at least, in which a host ends what it does after an answer.
        """
        best = float("inf")
        for start in range(0, 150, 30):
            before = len(self.handler_ms(*names))
            for number in range(start, start + 30):
                time.sleep(0.15)
                turn(number)
            end = time.monotonic() + SECONDS
            while len(self.handler_ms(*names)) < before + 30 * len(names):  # written a moment later
                assert time.monotonic() < end
                time.sleep(0.05)
            measured = sorted(self.handler_ms(*names)[before:])
            best = min(best, measured[int(len(measured) * 0.95)])
            if best < 30:
                break
        return best

    def misses(self) -> set[str]:
        """The reasons for which sessions got no memory."""
        with contextlib.suppress(FileNotFoundError):
            return {line.split()[-1] for line in self.home.misses.read_text().splitlines()}
        return set()

    def files(self, folder: Path) -> dict[str, bytes]:
        return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture
def new_machine(tmp_path: Path, fake_model_module: Any) -> Iterator[Callable[..., Machine]]:
    """`new_machine(binaries, name="user", **environment)`: a fresh machine; `{url}` in a value is the model's address."""
    made: list[Machine] = []

    def make(binaries: Path, name: str = "user", **environment: str) -> Machine:
        user = tmp_path / name
        project, temporary = user / "project", user / "tmp"
        for folder in (project, temporary):
            folder.mkdir(parents=True)
        model = fake_model_module.FakeModel().start()
        base = {
            "PATH": f"{binaries}:/usr/local/bin:/usr/bin:/bin",
            "HOME": str(user),
            "TMPDIR": str(temporary),
            "LANG": "C.UTF-8",
            "TERM": "xterm",
            "LORE_PLUGIN_TIMES": str(user / "times"),
            **OFFLINE,
        }
        values = {key: value.replace("{url}", model.url) for key, value in environment.items()}
        made.append(Machine(user, model, fake_model_module.Script, base | values, project))
        return made[-1]

    yield make
    for machine in made:
        machine.model.stop()
        if machine.home.run.is_dir():
            service.stop(machine.home)


TROUBLES = ("stopped", "dripping", "package", "home")


@pytest.fixture(params=TROUBLES)
def trouble(request: pytest.FixtureRequest) -> Iterator[Callable[[Machine], str]]:
    """`trouble(machine)` brings a running service or its home into one kind of trouble, and answers which."""
    with contextlib.ExitStack() as undo:

        def make(machine: Machine) -> str:
            match request.param:
                case "stopped":
                    pid = machine.lore("service", "status")["pid"]
                    os.kill(pid, signal.SIGSTOP)
                    undo.callback(os.kill, pid, signal.SIGCONT)
                case "dripping":
                    machine.lore("service", "stop")
                    undo.enter_context(dripping(machine.home.socket))
                case "package":
                    machine.lore("service", "stop")
                    script = machine.home.bin / "service"
                    script.write_text(script.read_text().replace("lorehooks.hooks.service", "gone.service"))
                case "home":
                    machine.lore("service", "stop")
                    shutil.rmtree(machine.home.root)
            return str(request.param)

        yield make


@contextlib.contextmanager
def dripping(path: Path) -> Iterator[None]:
    """A service that answers one byte at a time, without end."""
    ended = threading.Event()

    def feed(connection: socket.socket) -> None:
        with contextlib.suppress(OSError), connection:
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n")
            while not ended.wait(0.05):
                connection.sendall(b" ")

    def listen() -> None:
        with contextlib.suppress(OSError):
            while True:
                threading.Thread(target=feed, args=(listener.accept()[0],), daemon=True).start()

    with socket.socket(socket.AF_UNIX) as listener:
        path.unlink(missing_ok=True)
        with contextlib.chdir(path.parent):
            listener.bind(path.name)
        listener.listen()
        thread = threading.Thread(target=listen)
        thread.start()
        yield
        ended.set()
        listener.shutdown(socket.SHUT_RDWR)
        thread.join()
        path.unlink(missing_ok=True)
