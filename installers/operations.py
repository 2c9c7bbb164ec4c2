"""Installing, updating and uninstalling as a person asks for them: who is there, one at a time, service ready afterwards."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from lorehooks.clients.runtimes import RUNTIMES
from lorehooks.core.errors import ConflictError, LoreError
from lorehooks.core.home import Home
from lorehooks.installers import engine, receipt, removal
from lorehooks.installers.catalog import INSTALLERS
from lorehooks.installers.outcome import Outcome
from lorehooks.installers.plan import Context, Detection, RuntimeInstaller
from lorehooks.installers.problem import RefusedError
from lorehooks.installers.receipt import Receipt

Ask = Callable[[RuntimeInstaller, Context], Mapping[str, bool]]
"""Gets the user's word on an installer's questions; the receipt in the context holds what was said before."""

OWN_FILES = (
    "lore.db", "records.db", "config.toml", "credentials.toml", "queue.jsonl", "token", "lease.json", "README.txt", "defect.md",
)  # fmt: skip
OWN_NAMES = (*OWN_FILES, "bin", "run", "receipts", "plugins", "backups")
"""All that a home of ours has at its top."""


@dataclass(frozen=True, slots=True)
class Runtime:
    """A runtime as `lore install` lists it."""

    name: str
    title: str
    detection: Detection
    receipt: Receipt | None

    @property
    def state(self) -> str:
        """`installed`, `interrupted`, `found`, `too old` or `absent`."""
        if self.receipt is not None:
            return "installed" if self.receipt.state == "installed" else "interrupted"
        if self.detection.problem:
            return "too old"
        return "found" if self.detection.present else "absent"


def survey(context: Context) -> tuple[Runtime, ...]:
    """Every runtime we can serve, whether it is here or not."""
    return tuple(
        Runtime(name, RUNTIMES[name].label, installer.detect(context), receipt.load(context.home, name))
        for name, installer in INSTALLERS.items()
    )


def install(context: Context, name: str, ask: Ask, *, dry_run: bool = False) -> Outcome:
    """Install one runtime or bring it up to date. What goes wrong stands in the outcome; only Ctrl-C and defects are raised."""
    installer = INSTALLERS[name]

    def act() -> Outcome:
        _check_present(installer, context)
        here = _with_receipt(context, name)
        here = replace(here, answers=ask(installer, here))
        foreseen = engine.preview(installer, here)  # refuses before even our own home is made
        if dry_run:
            return foreseen
        from lorehooks.hooks import layout

        layout.lay(context.home)
        with receipt.exclusive(context.home):
            return engine.install(installer, replace(_with_receipt(context, name), answers=here.answers))

    return _reported(name, act)


def uninstall(context: Context, name: str, *, dry_run: bool = False) -> Outcome:
    """Take one runtime out. What goes wrong stands in the outcome."""
    installer = INSTALLERS[name]

    def act() -> Outcome:
        if dry_run:
            return removal.preview_removal(installer, _with_receipt(context, name))
        if not context.home.receipts.is_dir():  # nothing of this home was ever installed: leave no folder behind
            return removal.uninstall(installer, context)
        with receipt.exclusive(context.home):
            return removal.uninstall(installer, _with_receipt(context, name))

    return _reported(name, act)


def finish(home: Home) -> str:
    """After installing: start the service, so that the first session finds its boot block ready. Answers what went wrong."""
    from lorehooks.hooks import service

    try:
        service.start(home)
    except (LoreError, OSError) as error:
        return f"The service did not start: {error}. Hooks start it by themselves when they need it"
    return ""


def finish_removal(home: Home) -> bool:
    """After uninstalling: end the service when no runtime uses it any more. Answers whether it was ended."""
    from lorehooks.hooks import service

    return not receipt.installed(home) and service.stop(home)


@dataclass(frozen=True, slots=True)
class Memory:
    """What `--purge-memory` would delete."""

    folder: Path
    entries: tuple[Path, ...]
    """What of the folder is ours: it may be shared, with the public client's files among others."""
    size: int
    """Bytes."""

    @property
    def megabytes(self) -> float:
        return self.size / 1e6


def memory_of(home: Home) -> Memory:
    """The folder and size of a home. Raises LoreError when there is no memory in it."""
    if not home.database.is_file():
        raise LoreError(f"There is no memory in {home.root}", code="not_found")
    entries = tuple(path for path in sorted(home.root.iterdir()) if is_own_name(path.name))
    inside = (file for entry in entries for file in (entry.rglob("*") if entry.is_dir() else (entry,)))
    return Memory(home.root, entries, sum(file.lstat().st_size for file in inside))


def is_own_name(name: str) -> bool:
    """Whether something at the top of a home is ours, a database's companions and half-written files included."""
    return name in OWN_NAMES or name.lstrip(".").startswith(
        tuple(f"{each}{sign}" for each in OWN_FILES for sign in "-.")
    )


def check_unused(home: Home) -> None:
    """Raise ConflictError while a runtime is installed: its hooks would start an empty memory."""
    if receipt.installed(home):
        raise ConflictError("A runtime still uses this memory", hint="lore uninstall --all --purge-memory")


def purge(memory: Memory) -> tuple[Path, ...]:
    """Delete a memory for good; answers what is not ours and stays. The caller has the user's word, typed."""
    for entry in memory.entries:
        if entry.is_dir() and not entry.is_symlink():
            shutil.rmtree(entry)
        else:
            entry.unlink()
    rest = tuple(sorted(memory.folder.iterdir()))
    if not rest:
        memory.folder.rmdir()
    return rest


def _check_present(installer: RuntimeInstaller, context: Context) -> None:
    found, runtime = installer.detect(context), RUNTIMES[installer.name]
    if found.problem:
        raise LoreError(found.problem, code="too_old")
    if not found.present:
        programs = " or ".join(runtime.programs)
        looked = f"no {programs} on the PATH and no {found.folder}" if programs else f"no {found.folder}"
        raise LoreError(
            f"{runtime.label} is not on this machine: {looked}",
            hint=f"install {runtime.label} first",
            code="not_present",
        )


def _with_receipt(context: Context, name: str) -> Context:
    return replace(context, receipt=receipt.load(context.home, name))


def _reported(name: str, act: Callable[[], Outcome]) -> Outcome:
    try:
        return act()
    except LoreError as error:
        refused = isinstance(error, ConflictError | RefusedError)
        return Outcome(name, "refused" if refused else "failed", problem=error)
    except OSError as error:
        problem = LoreError(f"{error.filename or name}: {error.strerror}", code="storage_error")
        return Outcome(name, "failed", problem=problem)
