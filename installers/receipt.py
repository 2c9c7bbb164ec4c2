"""The note of what an installation changed, from which `uninstall` works and an interrupted run is finished.

`H/receipts/<runtime>.json` is written before the first foreign byte changes, with `state` = `installing` and the way back for
all that is about to happen. So after Ctrl-C, a crash or `kill -9` the next run knows what may have been done: installing again
finishes (what is so already is left alone), uninstalling takes back (what is not there needs nothing).
Old contents lie beside it in `originals/`, named by their SHA-256; they may hold secrets, so all is for the owner only.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any, Literal

from filelock import FileLock, Timeout

from lorehooks.core.errors import LoreError
from lorehooks.core.home import Home
from lorehooks.installers import edits, files
from lorehooks.installers.edits import Edit
from lorehooks.installers.edits import Path as Way
from lorehooks.installers.problem import RefusedError

VERSION = 1
State = Literal["installing", "installed", "removing"]


@dataclass(frozen=True, slots=True)
class FileNote:
    """One file that is or may have been changed. `original` names its old content; None when there was no file."""

    path: Path
    original: str | None
    format: str
    undo: tuple[Edit, ...] = ()
    blank: tuple[Any, ...] = ()
    hosts_own: tuple[Way, ...] = ()


@dataclass(frozen=True, slots=True)
class PlacedNote:
    """A file of ours. `hashes` are of all we ever wrote to it (SHA-256): with another content it stays at uninstall."""

    path: Path
    hashes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Receipt:
    """See the module. `answers` are the user's decisions, kept so that an update does not ask again."""

    runtime: str
    state: State = "installing"
    complete: bool = False
    """Whether an installation ever came to its end; one that did not is taken back when it fails."""
    lorehooks: str = ""
    environment: str = ""
    """`sys.prefix` of the Python that installed."""
    installed_at: str = ""
    updated_at: str = ""
    edited: tuple[FileNote, ...] = ()
    placed: tuple[PlacedNote, ...] = ()
    undo_commands: tuple[tuple[str, ...], ...] = ()
    """In the order in which they are to be run."""
    folders: tuple[Path, ...] = ()
    """Folders of the host's with copies of ours."""
    made: tuple[Path, ...] = ()
    """Folders that were not there before; removed when empty."""
    answers: Mapping[str, bool] = field(default_factory=dict)

    def note(self, path: Path) -> FileNote | None:
        return next((note for note in self.edited if note.path == path), None)

    def placed_note(self, path: Path) -> PlacedNote | None:
        return next((note for note in self.placed if note.path == path), None)

    def sweep(self) -> None:
        """Clear away half files that a killed run may have left beside those it was to write."""
        for path in (*(note.path for note in self.edited), *(note.path for note in self.placed)):
            with contextlib.suppress(RefusedError):
                files.sweep(files.resolve(path))


def here() -> tuple[str, str]:
    """(version of this package, `sys.prefix`)."""
    try:
        version = metadata.version("lorehooks")
    except metadata.PackageNotFoundError:
        version = "0"
    return version, sys.prefix


def load(home: Home, runtime: str) -> Receipt | None:
    """The receipt of a runtime, or None. Raises LoreError when it is damaged or of a newer release."""
    path = home.receipts / f"{runtime}.json"
    try:
        data = json.loads(path.read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise LoreError(f"{path} cannot be read: {error}", hint=f"move it away, then lore install {runtime}") from error
    try:
        return _from_json(data)
    except (KeyError, TypeError, ValueError) as error:
        raise LoreError(
            f"{path} was written by another release ({data.get('lorehooks', 'unknown')})",
            hint="pip install --upgrade lorehooks",
        ) from error


def save(home: Home, receipt: Receipt) -> None:
    """Write a receipt so that it survives a power loss."""
    data = json.dumps(_to_json(receipt), indent=2)  # ASCII: a path may hold bytes that are not UTF-8
    files.write_own(home.receipts / f"{receipt.runtime}.json", data.encode())


def discard(home: Home, runtime: str) -> None:
    """Remove a receipt, and the old contents that no other one names (none while another cannot be read)."""
    (home.receipts / f"{runtime}.json").unlink(missing_ok=True)
    rest, folder = installed(home), home.receipts / "originals"
    if folder.is_dir() and len(rest) == len(list(home.receipts.glob("*.json"))):
        named = {note.original for each in rest for note in each.edited}
        for kept in folder.iterdir():
            if kept.name not in named:
                kept.unlink()


def installed(home: Home) -> tuple[Receipt, ...]:
    """All receipts that can be read, by name of runtime."""
    found = []
    for path in sorted(home.receipts.glob("*.json")):
        try:
            receipt = load(home, path.stem)
        except LoreError:
            continue
        if receipt is not None:
            found.append(receipt)
    return tuple(found)


def keep(home: Home, content: bytes) -> str:
    """Put an old content aside. Returns its name."""
    name = hashlib.sha256(content).hexdigest()
    path = home.receipts / "originals" / name
    if not path.exists():
        files.write_own(path, content)
    return name


def original(home: Home, note: FileNote) -> bytes | None:
    """The old content of a file; None when there was none, or when it is lost."""
    if note.original is None:
        return None
    try:
        return (home.receipts / "originals" / note.original).read_bytes()
    except OSError:
        return None


@contextmanager
def exclusive(home: Home, seconds: float = 60) -> Iterator[None]:
    """Let one installation at a time work on a home. Raises LoreError when another one does not end."""
    files.make_folders(home.receipts)
    lock = FileLock(home.receipts / ".lock", timeout=seconds)
    try:
        lock.acquire()
    except Timeout as error:
        raise LoreError("another lore install or uninstall is running", hint="wait for it to end") from error
    try:
        yield
    finally:
        lock.release()


def _to_json(receipt: Receipt) -> dict[str, Any]:
    return {
        "version": VERSION,
        "runtime": receipt.runtime,
        "state": receipt.state,
        "complete": receipt.complete,
        "lorehooks": receipt.lorehooks,
        "environment": receipt.environment,
        "installed_at": receipt.installed_at,
        "updated_at": receipt.updated_at,
        "answers": dict(receipt.answers),
        "undo_commands": [list(argv) for argv in receipt.undo_commands],
        "folders": [str(folder) for folder in receipt.folders],
        "made": [str(folder) for folder in receipt.made],
        "edited": [
            {
                "path": str(note.path),
                "original": note.original,
                "format": note.format,
                "undo": [edits.to_json(edit) for edit in note.undo],
                "blank": list(note.blank),
                "hosts_own": [list(way) for way in note.hosts_own],
            }
            for note in receipt.edited
        ],
        "placed": [{"path": str(note.path), "hashes": list(note.hashes)} for note in receipt.placed],
    }


def _from_json(data: Mapping[str, Any]) -> Receipt:
    if data["version"] != VERSION:
        raise ValueError(data["version"])
    return Receipt(
        runtime=data["runtime"],
        state=data["state"],
        complete=data["complete"],
        lorehooks=data["lorehooks"],
        environment=data["environment"],
        installed_at=data["installed_at"],
        updated_at=data["updated_at"],
        answers=dict(data["answers"]),
        undo_commands=tuple(tuple(argv) for argv in data["undo_commands"]),
        folders=_paths(data["folders"]),
        made=_paths(data["made"]),
        edited=tuple(
            FileNote(
                path=Path(note["path"]),
                original=note["original"],
                format=note["format"],
                undo=tuple(edits.from_json(edit) for edit in note["undo"]),
                blank=tuple(note["blank"]),
                hosts_own=tuple(tuple(way) for way in note.get("hosts_own", ())),
            )
            for note in data["edited"]
        ),
        placed=tuple(PlacedNote(Path(note["path"]), tuple(note["hashes"])) for note in data["placed"]),
    )


def _paths(names: list[str]) -> tuple[Path, ...]:
    return tuple(Path(name) for name in names)
