"""What runtimes start: the interpreter link, the hook program, the bridge, and the package behind the service."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from lorehooks import hooks
from lorehooks.hooks import layout
from lorehooks.hooks.serviceinfo import installed_version
from lorehooks.installers.doctor.finding import Finding, note, ok, problem
from lorehooks.installers.doctor.subject import Subject

AREA = "programs"
_PROBE_SECONDS = 20


def check(subject: Subject) -> Iterator[Finding]:
    """Whether the registered commands would run what this release means them to run."""
    home = subject.home
    if not subject.is_there:
        return
    if not home.bin.is_dir():
        if subject.receipts:
            yield problem(AREA, "no_programs", f"{home.bin} is gone, so all hooks stay silent", fixable=True)
        return
    owner = layout.environment_of(home)
    troubles = [*_interpreter(home.bin / "python", home.bin / "hook.py"), *_package(owner, home.bin / "service")]
    if owner == sys.prefix:
        troubles += _copies(home.bin)
    yield from troubles
    if not any(each.severity == "problem" for each in troubles):
        python = os.path.realpath(home.bin / "python")
        yield ok(AREA, "programs", f"Hooks run {home.bin}/hook.py with {python}; release {installed_version()}")


def _interpreter(link: Path, script: Path) -> Iterator[Finding]:
    """The link is tried on the real file: an interpreter may start and yet not be able to open it (bug case A30)."""
    if not link.exists():
        target = link.readlink() if link.is_symlink() else "nothing"
        text = f"{link} leads to {target}, which is gone, so all hooks stay silent"
        yield problem(AREA, "interpreter", text, fixable=True)
        return
    if not script.exists():
        return  # `_copies` says so
    try:
        done = subprocess.run(
            [link, "-I", "-S", script, "probe", "probe"],
            env={"LORE_DISABLE": "1"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
            timeout=_PROBE_SECONDS,
        )
        failed = f"exit code {done.returncode}" if done.returncode or done.stdout or done.stderr else ""
    except (OSError, subprocess.TimeoutExpired) as error:
        failed = str(error)
    if failed:
        yield problem(AREA, "interpreter", f"{link} cannot run the hook program ({failed})", fixable=True)


def _package(owner: str | None, script: Path) -> Iterator[Finding]:
    if owner is None:
        yield problem(AREA, "no_service_script", f"{script} is missing or not ours, so no service starts", fixable=True)
    elif not os.access(script, os.X_OK):
        yield problem(AREA, "no_service_script", f"{script} is not executable, so no service starts", fixable=True)
    elif not _has_package(Path(owner)):
        text = f"The package that serves this home is gone from {owner}, so no service starts"
        yield problem(AREA, "package_gone", text, fixable=True)
    elif owner != sys.prefix:
        text = f"This home is served by the installation in {owner}; this command is of {sys.prefix}"
        yield note(AREA, "other_environment", text, f"{owner}/bin/lore doctor, or lore update to take it over")


def _has_package(environment: Path) -> bool:
    """Whether an environment has our package, told from its files."""
    if str(environment) == sys.prefix:
        return True
    return (environment / "bin" / "python").exists() and any(
        environment.glob("lib*/python*/site-packages/*lorehooks*.dist-info")
    )


def _copies(folder: Path) -> Iterator[Finding]:
    ours = Path(hooks.__file__).parent
    for name in ("hook.py", "bridge.py"):
        try:
            same = (folder / name).read_bytes() == (ours / name).read_bytes()
        except OSError:
            same = False
        if not same:
            text = f"{folder / name} is missing or of another release than this one"
            yield problem(AREA, "old_copy", text, fixable=True)
