"""Takes an installation back: from its receipt, and from what the installer still recognises as ours."""

from __future__ import annotations

import contextlib
import shlex
import shutil
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from lorehooks.core.errors import LoreError
from lorehooks.installers import files, hosts
from lorehooks.installers import receipt as receipts
from lorehooks.installers.edits import describe
from lorehooks.installers.files import digest
from lorehooks.installers.formats import FORMATS, carried
from lorehooks.installers.jsondata import normal
from lorehooks.installers.outcome import Outcome
from lorehooks.installers.plan import Context, EditFile, Plan, RuntimeInstaller
from lorehooks.installers.problem import RefusedError
from lorehooks.installers.receipt import FileNote, PlacedNote, Receipt


def preview_removal(installer: RuntimeInstaller, context: Context) -> Outcome:
    """What `uninstall` would do; nothing is written. The effect of host commands on files is not foreseen."""
    receipt, rest = context.receipt or Receipt(installer.name), installer.leftovers(context)
    said = [f"ask {call.words}" for call in rest.calls]
    commands = dict.fromkeys((*receipt.undo_commands, *(command.argv for command in rest.commands)))
    said += [f"run {shlex.join(argv)}" for argv in commands if context.which(argv[0]) is not None]
    said += [f"take our entries out of {path}" for path, _ in _foreign_files(receipt, rest) if path.exists()]
    said += [f"remove {note.path}" for note in receipt.placed if note.path.exists()]
    said += [f"remove {folder}" for folder in (*receipt.folders, *rest.folders) if folder.is_dir()]
    return Outcome(installer.name, "planned" if said else "absent", tuple(said), notes=rest.notes)


def uninstall(installer: RuntimeInstaller, context: Context) -> Outcome:
    """Take a runtime out, from the receipt and from what the installer recognises.

    Raises LoreError when a foreign file must not be edited, before anything is done where that can be seen; the receipt then
    stays and the next run goes on.
    """
    receipt, rest = context.receipt, installer.leftovers(context)
    if receipt is None and not _words(rest):
        return Outcome(installer.name, "absent")
    receipt = receipt or Receipt(installer.name)
    for path, kind in _foreign_files(receipt, rest):
        files.persist(partial(_check, path, kind))
    if context.receipt is not None:
        receipts.save(context.home, replace(receipt, state="removing"))
    said, stays = _remove(installer, context, receipt)
    receipts.discard(context.home, installer.name)
    return Outcome(installer.name, "removed", tuple(said), stays=tuple(stays), notes=rest.notes)


def _foreign_files(receipt: Receipt, rest: Plan) -> list[tuple[Path, str]]:
    """(path, format) of the files that an uninstallation edits."""
    noted = [(note.path, note.format) for note in receipt.edited if note.undo]
    return list(dict.fromkeys((*noted, *((edit.path, edit.format) for edit in rest.edits))))


def _check(path: Path, kind: str) -> None:
    found = files.read(path)
    FORMATS[kind].read(found.content or b"", path)
    files.check_writable(found)


def take_back(installer: RuntimeInstaller, context: Context, receipt: Receipt) -> None:
    """Undo a first installation that failed. Raises LoreError; the receipt then stays."""
    _remove(installer, replace(context, receipt=receipt), receipt)
    receipts.discard(context.home, receipt.runtime)


def _remove(installer: RuntimeInstaller, context: Context, receipt: Receipt) -> tuple[list[str], list[str]]:
    """(what was done, what stays and why)."""
    receipt.sweep()
    said = []
    for call in installer.leftovers(context).calls:  # first, while the entries they are about are still there
        with contextlib.suppress(LoreError):  # what is left then is told at the end
            call.act()
            said.append(f"asked {call.words}")
    forms = {note.path: files.read(note.path).content for note in receipt.edited}
    said += _undo_commands(receipt.undo_commands, context)
    stays: list[str] = []
    rest = installer.leftovers(context)
    if rest.commands:
        said += _undo_commands([command.argv for command in rest.commands], context)
        rest = installer.leftovers(context)
    notes = {note.path: note for note in receipt.edited}
    extra = {edit.path: edit for edit in rest.edits}
    for path in dict.fromkeys((*notes, *extra)):
        words, left = files.persist(partial(_revert, path, notes.get(path), extra.get(path), context, forms.get(path)))
        said += words
        stays += left
    for placed in receipt.placed:
        if unplace(placed, context):
            said.append(f"removed {placed.path}")
        elif placed.path.exists():
            stays.append(f"{placed.path} was changed since and stays")
    for file in rest.files:
        files.remove(files.read(file.path))
        said.append(f"removed {file.path}")
    for folder in (*receipt.folders, *rest.folders):
        if folder.is_dir() and not folder.is_symlink():
            shutil.rmtree(folder)
            said.append(f"removed {folder}")
    files.remove_folders(receipt.made)
    return said, stays + _words(installer.leftovers(context))


def _undo_commands(commands: Sequence[tuple[str, ...]], context: Context) -> list[str]:
    """Run the host's own way back. A failure is no end: what is then left is taken out by editing."""
    said = []
    for argv in commands:
        if context.which(argv[0]) is None:
            continue
        with contextlib.suppress(LoreError):
            if hosts.run(argv, context.environment).code == 0:
                said.append(f"ran {shlex.join(argv)}")
    return said


def _revert(
    path: Path, note: FileNote | None, extra: EditFile | None, context: Context, form: bytes | None
) -> tuple[list[str], list[str]]:
    """Take our entries out of one file; give it back its old bytes when it then means the same as before.

    `form` is the file as it was before the host's own commands, which may have written it anew: kept where that is all they did.
    """
    kind = FORMATS[note.format if note else extra.format if extra else "json"]
    edits = (*(note.undo if note else ()), *(extra.edits if extra else ()))
    kept = dict(extra.stays) if extra else {}
    left = [f"{describe(way)} in {path} stays: {why}" for way, why in kept.items()]
    edits = tuple(edit for edit in edits if edit.path not in kept)
    now = files.read(path)
    if now.content is None:
        return [], []
    try:
        edited = kind.apply(now.content, edits, path)
        plain = kind.read(edited.content, path)
    except RefusedError:
        if edits:
            raise
        return [], []  # it was only watched, and is the host's to worry about
    content, said = edited.content, f"took our entries out of {path}"
    if note is not None:
        if form is not None and form != now.content:
            in_form = carried(kind, note.hosts_own, plain, kind.apply(form, edits, path).content, path)
            content = in_form if kind.same(plain, kind.read(in_form, path)) else content
        bare = kind.read(carried(kind, note.hosts_own, {}, content, path), path)
        if note.original is None and any(kind.same(bare, normal(each)) for each in note.blank):
            files.remove(now)
            return [f"removed {path}, which was not there before"], list(edited.stays)
        original = receipts.original(context.home, note)
        same_form = None if original is None else carried(kind, note.hosts_own, plain, original, path)
        if same_form is not None and kind.same(plain, kind.read(same_form, path)):
            content, said = same_form, f"gave {path} its old bytes back"
            if same_form != original:
                said = f"gave {path} its old form back"
                left += [f"{describe(way)} in {path} stays: the program keeps it for itself" for way in note.hosts_own]
    if content == now.content:
        return [], [*left, *edited.stays]
    files.replace(now, content)
    return [said], [*left, *edited.stays]


def unplace(note: PlacedNote, context: Context) -> bool:
    """Remove a file of ours unless someone changed it; in our own home it goes anyway."""
    found = files.read(note.path)
    ours = note.path.is_relative_to(context.home.root) or digest(found.content) in note.hashes
    if not found.existed or not ours:
        return False
    files.remove(found)
    return True


def _words(rest: Plan) -> list[str]:
    """What an installer still recognises as ours, for people."""
    words = [f"{edit.path} still holds {describe(each.path)}" for edit in rest.edits for each in edit.edits]
    words += [f"{shlex.join(command.argv)} did not help" for command in rest.commands]
    words += [f"asking {call.words} did not help" for call in rest.calls]
    return words + [f"{path} is still there" for path in (*(file.path for file in rest.files), *rest.folders)]
