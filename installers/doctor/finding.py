"""One fact that the doctor tells."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Severity = Literal["ok", "note", "problem"]
FIX = "lore doctor --fix"


@dataclass(frozen=True, slots=True)
class Finding:
    """A fact in one sentence without its full stop, and the command or step that mends it.

    `area` is a part of the machine (`home`, `programs`, `service`, `memory`, `records`, `machine`) or a runtime's name. `code`
    tells findings apart for programs. `fixable` ones are mended by `lore doctor --fix`. A `problem` means that memory does not
    work as it should, a `note` is worth knowing.
    """

    area: str
    code: str
    severity: Severity
    what: str
    fix: str = ""
    fixable: bool = False


def ok(area: str, code: str, what: str, fix: str = "") -> Finding:
    return Finding(area, code, "ok", what, fix)


def note(area: str, code: str, what: str, fix: str = "", *, fixable: bool = False) -> Finding:
    return Finding(area, code, "note", what, fix or (FIX if fixable else ""), fixable)


def problem(area: str, code: str, what: str, fix: str = "", *, fixable: bool = False) -> Finding:
    return Finding(area, code, "problem", what, fix or (FIX if fixable else ""), fixable)
