"""What installing a runtime means, as data: an installer only says what should be so, and the engine makes it so.

To add a runtime: write a class with the methods of `RuntimeInstaller` and name it in `catalog.py`. An installer never writes.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol

from lorehooks.core.home import Home
from lorehooks.installers import hosts
from lorehooks.installers.edits import Edit
from lorehooks.installers.edits import Path as Way
from lorehooks.installers.receipt import Receipt


@dataclass(frozen=True, slots=True)
class Context:
    """Where an installer looks. Everything about the machine comes from here, so that tests can give another one."""

    home: Home
    user_home: Path
    environment: Mapping[str, str]
    receipt: Receipt | None = None
    """What an earlier installation of this runtime noted."""
    answers: Mapping[str, bool] = field(default_factory=dict)
    """The user's word on what needs one (see `Question`): by flag, by a question, or from the receipt."""

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] | None = None) -> Context:
        environment = dict(os.environ) if environment is None else environment
        home = Home(Home.from_environment(environment).root.absolute())
        return cls(home, Path(environment.get("HOME") or Path.home()), environment)

    def which(self, program: str) -> Path | None:
        return hosts.which(program, self.environment)

    def granted(self, key: str) -> bool:
        """The user's word on a question; no word is no."""
        noted = self.receipt.answers if self.receipt else {}
        return self.answers.get(key, noted.get(key, False))


@dataclass(frozen=True, slots=True)
class Detection:
    """Whether a runtime is on this machine. `version` is as its program prints it."""

    program: Path | None
    folder: Path
    """Its home, which may be there without the program on the PATH."""
    version: str = ""
    problem: str = ""
    """Why we cannot serve it, such as a version that is too old, with the one needed."""

    @property
    def present(self) -> bool:
        return self.program is not None or self.folder.is_dir()


@dataclass(frozen=True, slots=True)
class Question:
    """Something only the user may decide. Without a terminal and without the flag the answer is no."""

    key: str
    """In `Context.answers`; with dashes also the flag, such as `--allow-reads` for `allow_reads`."""
    text: str
    """Ends with a question mark."""
    without: str
    """What to know when the answer is no, one sentence that names the flag."""
    arises: Callable[[Context], bool] = lambda _: True
    """Whether there is anything to decide on this machine; it may raise LoreError as `plan` would."""


@dataclass(frozen=True, slots=True)
class PlaceFile:
    """A file that is wholly ours, in our home or in a host's folder. Refused where a file of someone else's stands."""

    path: Path
    content: bytes
    mode: int = 0o644


@dataclass(frozen=True, slots=True)
class Touched:
    """A file that a host command may create or write anew.

    At the end of `uninstall` it gets its old bytes back when it means the same as before; when it was not there before, it goes
    if what it says is one of `blank`.
    """

    path: Path
    format: str = "json"
    blank: tuple[Any, ...] = ({},)


@dataclass(frozen=True, slots=True)
class HostCommand:
    """A command of the host's own. `needed` is False when its effect is there already; `undo` is run by uninstall."""

    argv: tuple[str, ...]
    undo: tuple[str, ...] = ()
    needed: bool = True
    touches: tuple[Touched, ...] = ()


@dataclass(frozen=True, slots=True)
class HostCall:
    """What a host does only in a conversation with its own interface. `words` follow "ask": `codex app-server to ...`.

    `act` raises LoreError when the host does not do it. No installation is taken back for that: the words become a note.
    """

    words: str
    act: Callable[[], None]
    needed: bool = True


@dataclass(frozen=True, slots=True)
class EditFile:
    """Entries of ours in someone else's file. `mode` is for a file that is not there yet.

    From `leftovers`, `stays` are members that uninstall must leave although the receipt knows their way back, with the reason.
    """

    path: Path
    edits: tuple[Edit, ...]
    format: str = "json"
    mode: int = 0o600
    stays: tuple[tuple[Way, str], ...] = ()
    hosts_own: tuple[Way, ...] = ()
    """Members that the host keeps there for itself, such as a mark of its release: carried over, and counted in no comparison."""


@dataclass(frozen=True, slots=True)
class Plan:
    """All that should be so after an installation, or, from `leftovers`, all that takes away what is still ours.

    The engine does what is not so yet, in this order: files, commands, edits, calls; when it takes away, calls come first. With
    the receipt it takes away what an earlier release put and this one does not.
    """

    files: tuple[PlaceFile, ...] = ()
    commands: tuple[HostCommand, ...] = ()
    edits: tuple[EditFile, ...] = ()
    calls: tuple[HostCall, ...] = ()
    folders: tuple[Path, ...] = ()
    """Folders of the host's that hold nothing but copies of ours; removed by uninstall."""
    notes: tuple[str, ...] = ()
    """What the user should do or know next, one sentence each."""


Level = Literal["error", "warning", "info"]


@dataclass(frozen=True, slots=True)
class Finding:
    """One fact that `doctor` tells, with the command that mends it. `error` means that memory does not work.

    `by_person` marks what is as the user or the host decided, and only they can change: no failed installation.
    """

    code: str
    level: Level
    text: str
    fix: str = ""
    by_person: bool = False


class RuntimeInstaller(Protocol):
    """Knows one host: its files, its commands, its words. Reads the disk and runs the host's listing commands, no more."""

    @property
    def name(self) -> str:
        """The client type, a key of `clients.runtimes.RUNTIMES`."""
        ...

    def detect(self, context: Context) -> Detection:
        """Tell whether it is here and whether we can serve it."""
        ...

    @property
    def questions(self) -> tuple[Question, ...]:
        """What to ask before `plan`; the answers arrive in `context.answers`."""
        ...

    def plan(self, context: Context) -> Plan:
        """What should be so. Raises LoreError when it must not be done, with the command that clears the way."""
        ...

    def leftovers(self, context: Context) -> Plan:
        """What takes away every entry, file and registration that is still ours, of any release, receipt or not.

        Asked after the receipt has been worked off. Recognise by exact path or name, never by likeness. Here `files` are those
        to remove, whatever they contain.
        """
        ...

    def check(self, context: Context) -> tuple[Finding, ...]:
        """What is really the case now, read anew. Used to verify an installation and by `doctor`."""
        ...
