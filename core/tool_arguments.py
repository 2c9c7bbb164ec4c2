"""Checking a tool call's arguments against the tool's own JSON Schema.

The ten tools use strings, whole numbers, booleans and lists of strings, so the few rules of JSON Schema that they need
stand here instead of a validator package on the way of every call.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lorehooks.core.errors import InvalidError, short


def check_arguments(schema: Mapping[str, Any], arguments: Mapping[str, object]) -> dict[str, Any]:
    """The known arguments with a value, in their types. Unknown ones are dropped, null counts as left out.

    Raises InvalidError that names every argument that is wrong and what it takes.
    """
    properties: Mapping[str, Mapping[str, Any]] = schema["properties"]
    given = {name: value for name, value in arguments.items() if name in properties and value is not None}
    problems = [f"{name} is required" for name in schema.get("required", ()) if name not in given]
    checked = {}
    for name, value in given.items():
        rule = properties[name]
        fits, checked[name] = _fits(rule, value)
        if not fits:
            problems.append(f"{name} takes {_wanted(rule)}, not {short(value)}")
    if problems:
        raise InvalidError("; ".join(problems))
    return checked


def _fits(rule: Mapping[str, Any], value: object) -> tuple[bool, object]:
    """Whether a value keeps to a rule, and the value in its type (a whole `5.0` is the number 5)."""
    match rule["type"]:
        case "string":
            return isinstance(value, str) and value in rule.get("enum", (value,)), value
        case "boolean":
            return isinstance(value, bool), value
        case "integer":
            if isinstance(value, bool) or not isinstance(value, int | float) or value != value // 1:
                return False, value
            return rule.get("minimum", value) <= value <= rule.get("maximum", value), int(value)
        case _:
            return isinstance(value, list) and all(isinstance(item, str) for item in value), value


def _wanted(rule: Mapping[str, Any]) -> str:
    match rule["type"]:
        case "string":
            return f"one of {', '.join(rule['enum'])}" if "enum" in rule else "a string"
        case "boolean":
            return "true or false"
        case "integer":
            low, high = rule.get("minimum"), rule.get("maximum")
            return f"a whole number from {low} to {high}" if high is not None else f"a whole number from {low} up"
        case _:
            return "a list of strings"
