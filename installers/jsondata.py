"""Edits worked out on the data alone, without any text: what is so already, and what should come out."""

from __future__ import annotations

import copy
import json
from typing import Any

from lorehooks.installers.edits import Append, Delete, Edit, Path, Prune, Put, Remove, Restore
from lorehooks.installers.jsontext import Number, Plain, parse, same


def normal(value: Any) -> Plain:
    """A Python value in the form that parsed files have; what has that form already stays."""
    if isinstance(value, dict):
        return {key: normal(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [normal(each) for each in value]
    if isinstance(value, int | float) and not isinstance(value, bool):
        return Number(json.dumps(value))
    return value  # type: ignore[no-any-return]


def contains(plain: Plain, edit: Edit) -> bool:
    """Whether an edit has nothing left to do."""
    found, value = look_up(plain, edit.path)
    match edit:
        case Put():
            return found and same(value, normal(edit.value))
        case Delete() | Restore():
            return not found or not same(value, normal(edit.value))
        case Prune():
            return not found or value not in ({}, [])
        case Append() | Remove():
            there = isinstance(value, list) and any(same(element, normal(edit.value)) for element in value)
            return there == isinstance(edit, Append)


def look_up(plain: Plain, path: Path) -> tuple[bool, Plain]:
    """(whether something is at a path, what it is)."""
    for step in path:
        match plain, step:
            case dict(), str() if step in plain:
                plain = plain[step]
            case list(), int() if 0 <= step < len(plain):
                plain = plain[step]
            case _:
                return False, None
    return True, plain


def intended(plain: Plain, edit: Edit) -> Plain:
    """The data after an edit that `contains` does not hold for."""
    root: Any = copy.deepcopy(plain)
    here = root
    for step, after in zip(edit.path[:-1], edit.path[1:], strict=True):
        if isinstance(here, dict) and step not in here and isinstance(after, str):
            here[step] = {}
        here = here[step]
    last = edit.path[-1]
    match edit:
        case Put():
            here[last] = normal(edit.value)
        case Restore():
            here[last] = parse(edit.raw.encode(), name="value", dialect="json5").plain
        case Append():
            here.setdefault(last, []).append(normal(edit.value)) if isinstance(here, dict) else here[last].append(
                normal(edit.value)
            )
        case Remove():
            unwanted = normal(edit.value)
            here[last] = [element for element in here[last] if not same(element, unwanted)]
        case Delete() | Prune():
            del here[last]
    return root  # type: ignore[no-any-return]
