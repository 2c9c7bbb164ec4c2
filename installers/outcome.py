"""What a command did to a runtime, for people and for `--json`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from lorehooks.core.errors import LoreError

Status = Literal["planned", "installed", "updated", "unchanged", "removed", "absent", "refused", "failed"]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What was done to one runtime, in sentences. `diffs` are (path, old, new) of a dry run."""

    runtime: str
    status: Status
    changes: tuple[str, ...] = ()
    diffs: tuple[tuple[Path, bytes, bytes], ...] = ()
    stays: tuple[str, ...] = ()
    """What was ours or ours to remove and is still there, and why."""
    notes: tuple[str, ...] = ()
    problem: LoreError | None = None

    @property
    def ok(self) -> bool:
        return self.problem is None
