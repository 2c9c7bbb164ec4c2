"""Makes so what an installer says should be so.

Order of an installation: look at everything and refuse early; write the receipt with the way back; our files; the host's own
commands; then read the foreign files again and edit them; the host's own calls; hold the result against the plan; close the
receipt.
Whoever calls holds `receipt.exclusive`.
"""

from __future__ import annotations

import contextlib
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

from lorehooks.core.clock import system_clock, to_iso
from lorehooks.core.errors import LoreError
from lorehooks.installers import files, hosts, removal
from lorehooks.installers import receipt as receipts
from lorehooks.installers.edits import Edit
from lorehooks.installers.files import Snapshot, digest
from lorehooks.installers.formats import FORMATS, carried
from lorehooks.installers.outcome import Outcome, Status
from lorehooks.installers.plan import Context, EditFile, HostCall, HostCommand, PlaceFile, Plan, RuntimeInstaller
from lorehooks.installers.problem import ChangedError, RefusedError
from lorehooks.installers.receipt import FileNote, PlacedNote, Receipt


@dataclass(frozen=True, slots=True)
class _Change:
    """A foreign file as it is and as it should be."""

    edit: EditFile
    before: Snapshot
    after: bytes
    undo: tuple[Edit, ...]

    @property
    def needed(self) -> bool:
        return self.after != (self.before.content or b"") or not self.before.existed


def preview(installer: RuntimeInstaller, context: Context) -> Outcome:
    """What `install` would do; nothing is written. Raises LoreError like it."""
    plan = installer.plan(context)
    changes = [_look(edit) for edit in plan.edits]
    said = [f"write {file.path}" for file in plan.files if not _is_placed(file, context)]
    said += [f"run {shlex.join(command.argv)}" for command in plan.commands if command.needed]
    said += [f"edit {change.edit.path}" for change in changes if change.needed]
    said += [f"ask {call.words}" for call in plan.calls if call.needed]
    if not said and context.receipt is not None and context.receipt.state == "installed":
        return Outcome(installer.name, "unchanged", notes=plan.notes)
    diffs = tuple((change.edit.path, change.before.content or b"", change.after) for change in changes if change.needed)
    return Outcome(installer.name, "planned", tuple(said), diffs, notes=plan.notes)


def install(installer: RuntimeInstaller, context: Context) -> Outcome:
    """Install or bring up to date.

    A first installation that fails takes back what it did; an update that fails is finished by the next run. Raises LoreError; a
    foreign file is then as it was or as it should be, never between.
    """
    old = context.receipt
    if old is not None and old.state != "installed":
        old.sweep()
    plan = installer.plan(context)
    changes = [_look(edit) for edit in plan.edits]  # refuses before anything is done
    placed = [_is_placed(file, context) for file in plan.files]
    receipt = _intend(installer.name, plan, changes, context)
    steps: tuple[HostCommand | HostCall | _Change, ...] = (*plan.commands, *changes, *plan.calls)
    idle = all(placed) and not any(step.needed for step in steps)
    if idle and old is not None and old.state == "installed":
        if replace(receipt, state="installed") != old:
            receipts.save(context.home, _closed(receipt))
        return Outcome(installer.name, "unchanged", notes=plan.notes)
    receipts.save(context.home, receipt)
    try:
        said = _place_files(plan, context)
        said += _run_commands(plan.commands, context)
        said += _edit_files(changes)
        asked, refused = _make_calls(plan.calls)
        _verify(installer, replace(context, receipt=receipt))
    except BaseException:
        if not receipt.complete:
            with contextlib.suppress(LoreError):  # what cannot be taken back stays in the receipt for the next run
                removal.take_back(installer, context, receipt)
        raise
    wanted = {file.path for file in plan.files}
    kept = tuple(note for note in receipt.placed if note.path in wanted)
    receipts.save(context.home, _closed(replace(receipt, placed=kept)))
    status: Status = "updated" if receipt.complete else "installed"
    return Outcome(installer.name, status, (*said, *asked), notes=(*plan.notes, *refused))


def _closed(receipt: Receipt) -> Receipt:
    now = to_iso(system_clock())
    return replace(receipt, state="installed", complete=True, installed_at=receipt.installed_at or now, updated_at=now)


# --- looking


def _look(edit: EditFile) -> _Change:
    """Read a file and work out its edits, waiting a little for a host that is just writing it."""

    def once() -> _Change:
        before = files.read(edit.path)
        edited = FORMATS[edit.format].apply(before.content or b"", edit.edits, edit.path)
        return _Change(edit, before, edited.content, edited.undo)

    change = files.persist(once)
    if change.needed:
        try:
            files.check_writable(change.before)
        except RefusedError as error:
            error.snippet = FORMATS[edit.format].snippet(edit.edits)
            raise
    return change


def _is_placed(file: PlaceFile, context: Context) -> bool:
    """Whether a file of ours stands as planned. Raises RefusedError when someone else's stands in its place."""
    found = files.read(file.path)
    if not found.existed or found.content == file.content or file.path.is_relative_to(context.home.root):
        return found.content == file.content
    note = context.receipt.placed_note(file.path) if context.receipt else None
    if note is None or digest(found.content) not in note.hashes:
        why = "it was changed since we wrote it" if note else "there is a file already that is not ours"
        raise RefusedError(file.path, why, hint="move it away, then run the command again")
    return False


def _intend(name: str, plan: Plan, changes: Sequence[_Change], context: Context) -> Receipt:
    """The receipt of what is about to happen, with what earlier runs noted kept: theirs are the true originals."""
    old = context.receipt or Receipt(name)
    notes = {note.path: note for note in old.edited}
    for change in changes:
        note = notes.get(change.edit.path) or _first_note(change.before, change.edit.format, context)
        back = tuple(edit for edit in change.undo if edit not in note.undo)
        notes[change.edit.path] = replace(note, undo=(*back, *note.undo), hosts_own=change.edit.hosts_own)
    for touched in (touched for command in plan.commands for touched in command.touches):
        note = notes.get(touched.path) or _first_note(files.read(touched.path), touched.format, context)
        notes[touched.path] = replace(note, blank=touched.blank)
    placed = {note.path: note for note in old.placed}
    for file in plan.files:
        hashes = placed[file.path].hashes if file.path in placed else ()
        placed[file.path] = PlacedNote(file.path, tuple(dict.fromkeys((digest(file.content), *hashes))))
    made = [folder for path in (*notes, *placed, *plan.folders) for folder in files.missing_folders(path.parent)]
    undo = [command.undo for command in reversed(plan.commands) if command.undo]
    version, environment = receipts.here()
    return Receipt(
        runtime=name,
        state="installing",
        complete=old.complete,
        lorehooks=version,
        environment=environment,
        installed_at=old.installed_at,
        updated_at=old.updated_at,
        edited=tuple(notes.values()),
        placed=tuple(placed.values()),
        undo_commands=tuple(dict.fromkeys((*undo, *old.undo_commands))),
        folders=tuple(dict.fromkeys((*old.folders, *plan.folders))),
        made=tuple(dict.fromkeys((*old.made, *made))),
        answers={**old.answers, **context.answers},
    )


def _first_note(before: Snapshot, kind: str, context: Context) -> FileNote:
    kept = None if before.content is None else receipts.keep(context.home, before.content)
    return FileNote(before.path, kept, kind, blank=({},))


# --- doing


def _place_files(plan: Plan, context: Context) -> list[str]:
    said = []
    for file in plan.files:
        if not _is_placed(file, context):
            files.write_own(file.path, file.content, mode=file.mode)
            said.append(f"wrote {file.path}")
    wanted = {file.path for file in plan.files}
    stale = [note for note in (context.receipt.placed if context.receipt else ()) if note.path not in wanted]
    return said + [f"removed {note.path}" for note in stale if removal.unplace(note, context)]


def _run_commands(commands: Sequence[HostCommand], context: Context) -> list[str]:
    said = []
    for command in commands:
        if command.needed:
            answer = hosts.run(command.argv, context.environment)
            if answer.code:
                raise LoreError(f"{shlex.join(command.argv)} failed: {hosts.report(answer)}", code="host_failed")
            said.append(f"ran {shlex.join(command.argv)}")
    return said


def _edit_files(changes: Sequence[_Change]) -> list[str]:
    return [f"edited {change.edit.path}" for change in changes if files.persist(partial(_edit_once, change))]


def _edit_once(change: _Change) -> bool:
    """Bring a file to its planned content. Returns whether it differs from what it was before the run."""
    kind, path = FORMATS[change.edit.format], change.edit.path
    now = files.read(path)
    edited = kind.apply(now.content or b"", change.edit.edits, path).content
    if change.before.existed:
        wanted = carried(kind, change.edit.hosts_own, kind.read(edited, path), change.after, path)
        if kind.same(kind.read(edited, path), kind.read(wanted, path)):
            edited = wanted  # a host command may have written the file anew: the user's own form comes back
    if edited != now.content:
        files.replace(now, edited, mode=change.edit.mode)
    plain = kind.read(files.read(path).content or b"", path)
    missing = [edit for edit in change.edit.edits if not kind.contains(plain, edit)]
    if missing:
        raise ChangedError(path)
    return edited != change.before.content


def _make_calls(calls: Sequence[HostCall]) -> tuple[list[str], list[str]]:
    """(what hosts were asked for, what they did not do and why)."""
    said, refused = [], []
    for call in calls:
        if call.needed:
            try:
                call.act()
            except LoreError as error:
                refused.append(f"Asking {call.words} failed: {error}")
            else:
                said.append(f"asked {call.words}")
    return said, refused


def _verify(installer: RuntimeInstaller, context: Context) -> None:
    """Hold what stands on the disk against what was wanted."""
    for finding in installer.check(context):
        if finding.level == "error" and not finding.by_person:
            raise LoreError(finding.text, hint=finding.fix, code="not_registered")
