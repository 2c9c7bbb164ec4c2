"""One runtime: registered and enabled as its installer sees it, used lately, and answering now."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime

from lorehooks.clients.runtimes import RUNTIMES, Runtime
from lorehooks.core.clock import system_clock, to_iso
from lorehooks.core.errors import LoreError
from lorehooks.hooks.misses import Miss, reason_text
from lorehooks.hooks.serviceinfo import installed_version
from lorehooks.installers import receipt as receipts
from lorehooks.installers.doctor.finding import Finding, Severity, note, ok, problem
from lorehooks.installers.doctor.selftest import WORDS, try_runtime
from lorehooks.installers.doctor.subject import Subject
from lorehooks.installers.doctor.usage import Used, usage
from lorehooks.installers.plan import Context, Detection, Plan, RuntimeInstaller
from lorehooks.installers.plan import Finding as Seen
from lorehooks.installers.receipt import Receipt
from lorehooks.installers.status import age

INSTALL = "lore install {}"
_SEVERITIES: Mapping[str, Severity] = {"error": "problem", "warning": "note", "info": "note"}
_CURES = {
    "timeout": "lore service restart",
    "slow_recall": "lore service restart",
    "start_failed": "lore service start",
    "no_service": "lore update",
    "breaker": "lore service restart",
    "bad_answer": "lore service restart",
    "unauthorized": "lore connect",
    "unreachable": "lore status",
    "database_locked": "end the program that holds lore.db",
}
"""What to try for a reason in `run/misses.log`; anything else is in the service's log."""


def check(subject: Subject, installer: RuntimeInstaller, *, self_test: bool) -> Iterator[Finding]:
    """All there is to say of one runtime, whether it is installed or not."""
    name = installer.name
    try:
        receipt = receipts.load(subject.home, name)
    except LoreError as error:
        yield problem(name, "receipt", error.message, error.hint)
        return
    context = replace(subject.context, receipt=receipt)
    detection = installer.detect(context)
    if receipt is None:
        yield from _absent(installer, context, detection)
        return
    yield from _program(name, detection)
    yield from _installation(subject, installer, context, receipt)
    yield from _use(subject, RUNTIMES[name], receipt)
    if self_test:
        yield from _self_test(subject, RUNTIMES[name])


def check_misses(subject: Subject, client_type: str) -> Iterator[Finding]:
    """What sessions of one client went without during the last day."""
    missed = subject.missed_by(client_type)
    if missed:
        yield _missed(missed, usage(subject.home))


def _absent(installer: RuntimeInstaller, context: Context, detection: Detection) -> Iterator[Finding]:
    name, label = installer.name, RUNTIMES[installer.name].label
    try:
        left = installer.leftovers(context)
    except LoreError as error:
        yield note(name, "unreadable", f"Whether {label} has entries of ours cannot be told: {error.message}")
        return
    if _holds(left):
        text = f"{label} has files or entries of ours and no installation that is whole"
        yield problem(name, "files_without_registration", text, f"{INSTALL.format(name)}, or lore uninstall {name}")
    elif detection.present:
        yield ok(name, "not_installed", f"{label} is here and has no memory from us", INSTALL.format(name))


def _holds(left: Plan) -> bool:
    files = any(file.path.exists() for file in left.files)
    edits = any(edit.edits for edit in left.edits)
    calls = any(call.needed for call in left.calls)
    return files or edits or calls or bool(left.commands) or any(folder.exists() for folder in left.folders)


def _program(name: str, detection: Detection) -> Iterator[Finding]:
    label = RUNTIMES[name].label
    if detection.problem:
        yield problem(name, "too_old", detection.problem, f"update {label}")
    elif detection.program is not None:
        yield ok(name, "program", f"{detection.program} is version {detection.version or 'unknown'}")
    elif detection.present:
        yield note(name, "no_program", f"{detection.folder} is there, and no {label} on the PATH")
    else:
        text = f"{label} is installed here no more: neither its program nor {detection.folder} is there"
        yield note(name, "gone", text, f"lore uninstall {name}")


def _installation(
    subject: Subject, installer: RuntimeInstaller, context: Context, receipt: Receipt
) -> Iterator[Finding]:
    name, label = installer.name, RUNTIMES[installer.name].label
    if receipt.state != "installed":
        doing = "Uninstalling" if receipt.state == "removing" else "Installing"
        yield problem(name, "interrupted", f"{doing} was interrupted", INSTALL.format(name), fixable=True)
    moved = _moved_from(subject, receipt)
    if moved:
        text = f"It was installed from {moved}, and this home is {subject.home.root}: its hooks run there or not at all"
        yield problem(name, "moved", text, INSTALL.format(name), fixable=True)
    seen = [_seen(name, each) for each in installer.check(context)]
    yield from seen
    if not any(each.severity == "problem" for each in seen):
        yield ok(name, "registered", f"{label} has our hooks and tools, registered and enabled")
    if receipt.lorehooks and receipt.lorehooks != installed_version():
        text = f"It was installed by release {receipt.lorehooks}, and {installed_version()} is here"
        yield note(name, "other_release", text, f"lore update {name}")


def _seen(name: str, seen: Seen) -> Finding:
    """What the installer found. Only what a plain repetition of the installation mends is mended without asking."""
    fixable = seen.level == "error" and seen.fix == INSTALL.format(name)
    return Finding(name, seen.code, _SEVERITIES[seen.level], seen.text, seen.fix, fixable)


def _moved_from(subject: Subject, receipt: Receipt) -> str:
    """The home that was another one when this runtime was installed; empty when it is this one."""
    for placed in receipt.placed:
        for folder in placed.path.parents:
            if folder.name == "plugins" and placed.path.is_relative_to(folder / receipt.runtime):
                if folder != subject.home.plugins:
                    return str(folder.parent)
                break
    return ""


def _use(subject: Subject, runtime: Runtime, receipt: Receipt) -> Iterator[Finding]:
    used, name = usage(subject.home), runtime.client_type
    told = []
    for event in WORDS:
        found = used.get((name, event))
        if found is not None:
            latency = f", p50 {found.p50:.0f} ms, p95 {found.p95:.0f} ms in the service"
            told.append(f"{WORDS[event]} {age(found.last_at, system_clock())}{latency}")
    if told:
        yield ok(name, "used", f"Last hooks: {'; '.join(told)}")
        starts = used.get((name, "session.start"))
        if (name, "prompt.submit") not in used and starts is not None and starts.count > 1:
            text = "Sessions began, and no prompt ever came by: is the prompt's hook switched off?"
            yield note(name, "no_prompts", text, INSTALL.format(name))
    else:
        since = f" since it was installed {age(receipt.installed_at, system_clock())}" if receipt.installed_at else ""
        yield note(
            name, "never_used", f"No hook of {runtime.label} has run{since}", f"start a session of {runtime.label}"
        )
    missed = subject.missed_by(name)
    if missed:
        yield _missed(missed, used)


def _missed(missed: Sequence[Miss], used: Mapping[tuple[str, str], Used]) -> Finding:
    """A problem as long as nothing came through since."""
    last = missed[-1]
    at = to_iso(datetime.fromtimestamp(last.at_ms / 1000, UTC))
    since = [found.fine_at for (client, _), found in used.items() if client == last.client_type]
    count = "Once" if len(missed) == 1 else f"{len(missed)} times"
    event = WORDS.get(last.event, last.event)
    text = f"{count} without memory since yesterday, last {age(at, system_clock())} at a {event}: {reason_text(last.reason)}"
    tell = note if since and max(since) > at else problem
    return tell(last.client_type, "missed", text, _CURES.get(last.reason, "lore service status"))


def _self_test(subject: Subject, runtime: Runtime) -> Iterator[Finding]:
    name = runtime.client_type
    subagents = bool(subject.config.settings["hooks.subagent_boot"])
    tried = list(try_runtime(subject.context, runtime, subagents=subagents))
    for each in tried:
        if each.wrong:
            text = f"Self-test: {each.what} failed: {each.wrong}"
            yield problem(name, "self_test", text, "lore service restart")
    fine = [f"{each.what} {each.ms:.0f} ms" for each in tried if not each.wrong]
    if fine:
        yield ok(name, "self_test", f"Self-test answered: {', '.join(fine)}")
