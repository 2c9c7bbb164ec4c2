"""All checks in their order. One that fails itself is a finding, and the others go on."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial

from lorehooks.clients.runtimes import RUNTIMES
from lorehooks.core.errors import LoreError
from lorehooks.hooks import service
from lorehooks.installers.catalog import INSTALLERS
from lorehooks.installers.doctor import (
    database_checks,
    endpoint_checks,
    home_checks,
    machine_checks,
    memory_checks,
    program_checks,
    runtime_checks,
    service_checks,
)
from lorehooks.installers.doctor.finding import Finding, problem
from lorehooks.installers.doctor.subject import Subject, look
from lorehooks.installers.plan import Context

_NO_OBSTACLE = ("config", "disk_full", "old_copy", "port")
"""Problems with which hooks still answer."""


def examine(context: Context, *, self_test: bool = True) -> tuple[Finding, ...]:
    """Look at everything. Nothing is changed; with `self_test` the service is started for it, as a hook would."""
    subject = look(context)
    found = [
        *_guarded("home", partial(home_checks.check, subject)),
        *_guarded("programs", partial(program_checks.check, subject)),
        *_guarded("service", partial(service_checks.check, subject)),
    ]
    may_test = self_test and _may_test(subject, found)
    if may_test and not subject.service.running:
        failed = _start(subject)
        found += failed
        may_test = not failed
        subject = look(context)
    found += _guarded("memory", partial(memory_checks.check, subject))
    found += _guarded("memory", partial(endpoint_checks.check, subject))
    found += _guarded("records", partial(database_checks.check, subject))
    for name, installer in INSTALLERS.items():
        found += _guarded(name, partial(runtime_checks.check, subject, installer, self_test=may_test))
    for name in dict.fromkeys(miss.client_type for miss in subject.misses):
        if name not in INSTALLERS or name not in {each.runtime for each in subject.receipts}:
            found += _guarded(name, partial(runtime_checks.check_misses, subject, name))
    found += _guarded("machine", partial(machine_checks.check, subject))
    return tuple(found)


def label(area: str) -> str:
    """The heading of an area."""
    return RUNTIMES[area].label if area in RUNTIMES else area.capitalize()


def _may_test(subject: Subject, found: Iterable[Finding]) -> bool:
    """Whether a self-test can tell something new: hooks are installed, and nothing found so far keeps them silent."""
    environment = subject.context.environment
    off = environment.get("LORE_DISABLE", "0") not in ("", "0")
    broken = any(each.severity == "problem" and each.code not in _NO_OBSTACLE for each in found)
    return bool(subject.receipts) and not off and not broken


def _start(subject: Subject) -> list[Finding]:
    try:
        service.start(subject.home)
    except (LoreError, OSError) as error:
        fix = error.hint if isinstance(error, LoreError) else ""
        text = error.message if isinstance(error, LoreError) else str(error)
        return [problem("service", "start_failed", text, fix)]
    return []


def _guarded(area: str, check: Callable[[], Iterable[Finding]]) -> list[Finding]:
    found: list[Finding] = []
    try:
        for each in check():
            found.append(each)  # noqa: PERF402  (what was found before a failure stays)
    except (LoreError, OSError) as error:
        hint = error.hint if isinstance(error, LoreError) else ""
        text = error.message if isinstance(error, LoreError) else str(error)
        found.append(problem(area, "unreadable", f"This could not be looked at: {text}", hint))
    except Exception as error:  # noqa: BLE001  (a defect in one check must not hide what the others find)
        found.append(problem(area, "defect", f"This check failed itself: {error!r}", "please report this"))
    return found
