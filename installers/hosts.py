"""Finds and runs the programs of the hosts."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from lorehooks.core.errors import LoreError

LONGEST_REPORT = 300


@dataclass(frozen=True, slots=True)
class Answer:
    """What a host program said."""

    code: int
    output: str
    errors: str


def which(program: str, environment: Mapping[str, str]) -> Path | None:
    """Where a program is on the PATH of an environment."""
    found = shutil.which(program, path=environment.get("PATH", ""))
    return Path(found) if found else None


def run(argv: Sequence[str], environment: Mapping[str, str], *, seconds: float = 180) -> Answer:
    """Run a host program without a terminal, in the root folder so that no project of the user's plays a part.

    Raises LoreError when it cannot be started or does not end in time. A failing exit code is the caller's to judge.
    """
    try:
        done = subprocess.run(
            [*argv],
            env=dict(environment),
            cwd="/",
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=seconds,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise LoreError(f"{shlex.join(argv)} did not end within {seconds:g} s", code="host_failed") from error
    except OSError as error:
        raise LoreError(f"{argv[0]} cannot be started ({error.strerror})", code="host_failed") from error
    return Answer(done.returncode, done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace"))


def report(answer: Answer) -> str:
    """A host program's complaint on one line of bounded length."""
    text = " ".join((answer.errors.strip() or answer.output.strip() or f"exit code {answer.code}").split())
    return text if len(text) <= LONGEST_REPORT else text[: LONGEST_REPORT - 1] + "…"


def version_in(text: str) -> tuple[int, ...] | None:
    """The first dotted version number in a text, such as what `--version` prints."""
    found = re.search(r"\d+(?:\.\d+)+", text)
    return tuple(int(part) for part in found[0].split(".")) if found else None
