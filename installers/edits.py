"""What may be done to a file of settings, as data: it can be shown, stored in a receipt, and undone.

A path names keys and list positions from the root, such as `("hooks", "SessionStart")`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

Path = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Put:
    """Set a member of an object. Missing objects on the way are created."""

    path: Path
    value: Any


@dataclass(frozen=True, slots=True)
class Append:
    """Put an element at the end of a list, unless an equal one is in it. Missing objects and the list are created."""

    path: Path
    value: Any


@dataclass(frozen=True, slots=True)
class Remove:
    """Take out of a list the elements that equal a value."""

    path: Path
    value: Any


@dataclass(frozen=True, slots=True)
class Delete:
    """Take a member out of an object if it still has this value."""

    path: Path
    value: Any


@dataclass(frozen=True, slots=True)
class Restore:
    """Give a member its old text back, if it still has the value that we gave it."""

    path: Path
    value: Any
    raw: str


@dataclass(frozen=True, slots=True)
class Prune:
    """Take an object or list out of its object if it is empty: the way back from having created it."""

    path: Path


Edit = Put | Append | Remove | Delete | Restore | Prune

_KINDS: dict[str, type[Edit]] = {
    "put": Put,
    "append": Append,
    "remove": Remove,
    "delete": Delete,
    "restore": Restore,
    "prune": Prune,
}
_NAMES = {kind: name for name, kind in _KINDS.items()}


def to_json(edit: Edit) -> dict[str, Any]:
    """`{op, path, value?, raw?}`, the form of the receipt."""
    return {"op": _NAMES[type(edit)], **asdict(edit), "path": list(edit.path)}


def from_json(data: Mapping[str, Any]) -> Edit:
    """Read what `to_json` wrote. Raises KeyError or TypeError for what only a newer release knows."""
    fields = {key: value for key, value in data.items() if key != "op"}
    return _KINDS[data["op"]](**{**fields, "path": tuple(data["path"])})


def describe(path: Path) -> str:
    """`hooks.SessionStart[0]`, for people."""
    out = ""
    for step in path:
        out += f"[{step}]" if isinstance(step, int) else f".{step}" if out else str(step)
    return out or "the document"
