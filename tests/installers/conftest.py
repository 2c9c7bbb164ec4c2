"""A made-up host with a settings file, a command of its own and a plugin folder, to try the machinery on."""

from __future__ import annotations

import json
import shlex
import stat
import sys
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import strategies as st

from lorehooks.core.home import Home
from lorehooks.installers import engine, files, receipt, removal
from lorehooks.installers.edits import Append, Delete, Edit, Put, Remove
from lorehooks.installers.jsondata import look_up
from lorehooks.installers.jsontext import BOM, Number, parse
from lorehooks.installers.outcome import Outcome
from lorehooks.installers.plan import (
    Context,
    Detection,
    EditFile,
    Finding,
    HostCommand,
    PlaceFile,
    Plan,
    Question,
    Touched,
)

CASES = Path(__file__).parents[1] / "cases" / "cfg"
ENTRY = {"hooks": [{"type": "command", "command": "lore hook", "timeout": 10}]}
EDITS: tuple[Edit, ...] = (
    Append(("hooks", "SessionStart"), ENTRY),
    Append(("hooks", "UserPromptSubmit"), ENTRY),
    Put(("servers", "lore"), {"command": "bridge", "args": ["-I", "-S"]}),
)


@dataclass
class Host:
    """Implements `RuntimeInstaller` for a host whose home is `root`."""

    root: Path
    edits: tuple[Edit, ...] = EDITS
    dialect: str = "json"
    plugin: bytes = b"export default {}\n"
    with_command: bool = False
    name: str = "codex"
    questions: tuple[Question, ...] = ()
    asked: list[str] = field(default_factory=list)

    @property
    def settings(self) -> Path:
        return self.root / "settings.json"

    @property
    def plugin_file(self) -> Path:
        return self.root / "plugins" / "lorehooks.js"

    @property
    def state(self) -> Path:
        return self.root / "state.json"

    def detect(self, context: Context) -> Detection:
        return Detection(context.which("host"), self.root)

    def plan(self, context: Context) -> Plan:
        command = HostCommand(
            ("host", "add"),
            undo=("host", "remove"),
            needed=not self._is_added(),
            touches=(Touched(self.settings), Touched(self.state)),
        )
        return Plan(
            files=(PlaceFile(self.plugin_file, self.plugin),),
            commands=(command,) if self.with_command else (),
            edits=(EditFile(self.settings, self.edits, self.dialect),),
        )

    def leftovers(self, context: Context) -> Plan:
        plain = self._plain()
        edits: list[Edit] = []
        for event in ("SessionStart", "UserPromptSubmit"):
            found, entries = look_up(plain, ("hooks", event))
            if found and isinstance(entries, list):
                ours = [each for each in entries if look_up(each, ("hooks", 0, "command")) == (True, "lore hook")]
                edits += [Remove(("hooks", event), each) for each in ours]
        found, server = look_up(plain, ("servers", "lore"))
        if found:
            edits.append(Delete(("servers", "lore"), server))
        commands = (HostCommand(("host", "remove")),) if self._is_added() else ()
        return Plan(commands=commands, edits=(EditFile(self.settings, tuple(edits), self.dialect),) if edits else ())

    def check(self, context: Context) -> tuple[Finding, ...]:
        plain = self._plain()
        if not all(look_up(plain, edit.path)[0] for edit in self.edits):
            return (Finding("not_registered", "error", "the host does not have us", "lore install codex"),)
        return ()

    def _plain(self):
        return parse(files.read(self.settings).content or b"", name=self.settings, dialect=self.dialect).plain

    def _is_added(self) -> bool:
        return self.state.exists() and json.loads(self.state.read_bytes()).get("added") is True


@dataclass
class Machine:
    """One user's machine: HOME, PATH, our home, and the made-up host."""

    root: Path
    host: Host
    context: Context

    def install(self, host: Host | None = None) -> Outcome:
        with receipt.exclusive(self.context.home):
            return engine.install(host or self.host, self.now)

    def uninstall(self, host: Host | None = None) -> Outcome:
        with receipt.exclusive(self.context.home):
            return removal.uninstall(host or self.host, self.now)

    @property
    def now(self) -> Context:
        return replace(self.context, receipt=receipt.load(self.context.home, self.host.name))

    def program(self, name: str, source: str) -> None:
        """Put a Python program on the PATH."""
        path = self.root / "bin" / name
        path.parent.mkdir(exist_ok=True)
        body = self.root / "bin" / f"{name}.py"
        body.write_text(source)
        path.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -I {shlex.quote(str(body))} "$@"\n')
        path.chmod(0o755)

    def files(self) -> dict[str, bytes | str]:
        """Everything below the host's home: contents, and where links lead."""
        found: dict[str, bytes | str] = {}
        for path in sorted(self.host.root.rglob("*")):
            name = str(path.relative_to(self.host.root))
            if path.is_symlink():
                found[name] = str(path.readlink())
            elif path.is_file():
                found[name] = path.read_bytes() + bytes([stat.S_IMODE(path.stat().st_mode) & 0o077])
            else:
                found[name] = "folder"
        return found


REWRITING_HOST = """
import json, sys
from pathlib import Path
root = Path({root!r})
settings, state = root / "settings.json", root / "state.json"
number = lambda text: None if float(text) in (float("inf"), float("-inf")) else float(text)  # as JavaScript holds them
data = json.loads(settings.read_text(), parse_int=number, parse_float=number) if settings.exists() else {{}}
added = sys.argv[1] == "add"
if added:
    data.setdefault("servers", {{}})["lore"] = {{"command": "bridge", "args": ["-I", "-S"]}}
else:
    data.get("servers", {{}}).pop("lore", None)
settings.write_text(json.dumps(dict(reversed(data.items())), indent=1))
state.write_text(json.dumps({{"added": True}} if added else {{}}))
"""


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    """A machine without the host's program; `settings.json` is the test's to write."""
    root = tmp_path / "machine"
    host = Host(root / ".host")
    host.root.mkdir(parents=True)
    environment = {"PATH": f"{root / 'bin'}:/usr/bin:/bin", "HOME": str(root)}
    return Machine(root, host, Context(Home(root / ".lore"), root, environment))


@pytest.fixture
def rewriting(machine: Machine) -> Machine:
    """The same with a program that writes the settings anew in its own form, as real ones do."""
    machine.host.with_command = True
    machine.program("host", REWRITING_HOST.format(root=str(machine.host.root)))
    return machine


@pytest.fixture
def case() -> Callable[[str], bytes]:
    """The content of a broken or odd settings file."""
    return lambda name: (CASES / name).read_bytes()


KEYS = st.sampled_from(["hooks", "SessionStart", "servers", "lore", "allow", "", "naïve", "日"])
NUMBERS = st.sampled_from([Number("1.10"), Number("1e400"), Number("12345678901234567890"), Number("-0")])
SCALARS = st.none() | st.booleans() | NUMBERS | st.text(max_size=6) | st.just(ENTRY)
TREES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4), max_leaves=12
)


class Form:
    """Writes plain data with the white space, comments and commas that a test draws."""

    def __init__(self, draw: Any, dialect: str) -> None:
        self.draw = draw
        gaps = ["", " ", "  ", "\n", "\n    ", "\t", "\r\n  "]
        if dialect == "jsonc":
            gaps += [' /* it\'s, "quoted" } */ ', " // to the end ]\n", "/**/"]
        self.gaps = st.sampled_from(gaps)
        self.trailing = dialect == "jsonc"

    def gap(self) -> str:
        return self.draw(self.gaps)

    def write(self, value: Any) -> str:
        if isinstance(value, dict):
            members = [f"{json.dumps(key)}{self.gap()}:{self.gap()}{self.write(each)}" for key, each in value.items()]
            return self.enclose("{", members, "}")
        if isinstance(value, list):
            return self.enclose("[", [self.write(each) for each in value], "]")
        return value.raw if hasattr(value, "raw") else json.dumps(value, ensure_ascii=False)

    def enclose(self, opening: str, parts: list[str], closing: str) -> str:
        comma = "," if parts and self.trailing and self.draw(st.booleans()) else ""
        inner = ",".join(f"{self.gap()}{part}{self.gap()}" for part in parts)
        return f"{opening}{inner}{comma}{self.gap()}{closing}"


@st.composite
def documents(draw: Any, dialect: str) -> bytes:
    form = Form(draw, dialect)
    text = form.gap() + form.write(draw(st.dictionaries(KEYS, TREES, max_size=5))) + form.gap()
    return (BOM if draw(st.booleans()) else b"") + text.encode()


@pytest.fixture(scope="session")
def json_documents() -> Callable[[str], st.SearchStrategy[bytes]]:
    """Documents in any form that a dialect allows, with keys that often collide with ours."""
    return documents
