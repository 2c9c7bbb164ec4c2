"""What `lore doctor --fix` does by itself: nothing that touches memories, asks something new of a host, or cannot be repeated."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from lorehooks.core.errors import LoreError
from lorehooks.hooks import layout, service
from lorehooks.installers import operations
from lorehooks.installers.catalog import INSTALLERS
from lorehooks.installers.doctor.finding import Finding
from lorehooks.installers.doctor.program_checks import AREA as PROGRAMS
from lorehooks.installers.plan import Context


@dataclass(frozen=True, slots=True)
class Mended:
    """One thing that was done, in a sentence. `problem` says why it did not work; empty when it did."""

    what: str
    problem: str = ""


def mend(context: Context, findings: Sequence[Finding]) -> tuple[Mended, ...]:
    """Mend what is fixable, in an order in which one step helps the next."""
    return tuple(_done(what, act) for what, act in _steps(context, [each for each in findings if each.fixable]))


def _steps(context: Context, findings: Sequence[Finding]) -> Iterator[tuple[str, Callable[[], None]]]:
    home = context.home
    codes = {each.code for each in findings}
    if "run_open" in codes:
        yield f"Closed {home.run} to others", lambda: home.run.chmod(0o700)
    if any(each.area == PROGRAMS for each in findings):
        yield f"Renewed {home.bin}", lambda: layout.lay(home)
    if "breaker" in codes:
        yield "Let hooks ask the service again", lambda: (home.run / "breaker").unlink(missing_ok=True)
    if any(each.area in ("service", "memory") and each.code != "breaker" for each in findings):
        yield "Restarted the service", partial(_restart, context)
    for name in dict.fromkeys(each.area for each in findings if each.area in INSTALLERS):
        yield f"Installed {name} again", partial(_install, context, name)


def _restart(context: Context) -> None:
    service.restart(context.home)


def _install(context: Context, name: str) -> None:
    """With the answers that were given before."""
    outcome = operations.install(context, name, lambda _, here: dict(here.receipt.answers) if here.receipt else {})
    if outcome.problem is not None:
        raise outcome.problem


def _done(what: str, act: Callable[[], None]) -> Mended:
    try:
        act()
    except (LoreError, OSError) as error:
        return Mended(what, str(error))
    return Mended(what)
