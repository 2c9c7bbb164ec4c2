"""`lore config`: settings of the memory, which travel with it, and of this machine, in `config.toml`."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import click

from lorehooks.clients import config as machine
from lorehooks.clients import output
from lorehooks.clients.command import Group, Invocation, json_option, pass_invocation
from lorehooks.clients.endpoint_commands import key as key_command
from lorehooks.clients.endpoint_commands import reload_service
from lorehooks.clients.endpoint_commands import test as test_command
from lorehooks.clients.output import Column
from lorehooks.core.errors import InvalidError, NotFoundError
from lorehooks.core.settings import SETTINGS, find

_TABLE = (Column("setting"), Column("value", elastic=True), Column(""), Column("about", elastic=True))
_SERVER = "server.url"


@dataclass(frozen=True, slots=True)
class Line:
    """One setting in the list. `scope` is `memory` or `machine`; `changed` when it is not the default by being set."""

    key: str
    value: Any
    default: Any
    changed: bool
    scope: str
    about: str


@click.group(cls=Group)
def config() -> None:
    """Read and change settings."""


@config.command("list")
@click.argument("prefix", required=False, default="")
@click.option("--changed", is_flag=True, help="Only what is not at its default.")
@json_option
@pass_invocation
def list_(invocation: Invocation, prefix: str, *, changed: bool) -> None:
    """Every setting with its value; with PREFIX only those that begin with it."""
    every = [line for line in _all(invocation) if line.key.startswith(prefix)]
    if not every:
        raise NotFoundError(f"No setting begins with {prefix!r}", hint="lore config list")
    lines = [line for line in every if line.changed or not changed]
    if invocation.as_json:
        output.say_json({"settings": lines})
        return
    rows = [(line.key, _shown(line.value), "set" if line.changed else "", line.about) for line in lines]
    output.say_table(_TABLE, rows, empty="Every setting is at its default.")


@config.command()
@click.argument("key")
@json_option
@pass_invocation
def get(invocation: Invocation, key: str) -> None:
    """One setting's value."""
    line = _one(invocation, key)
    if invocation.as_json:
        output.say_json(line)
    else:
        output.say(_shown(line.value))


@config.command("set")
@click.argument("key")
@click.argument("value")
@json_option
@pass_invocation
def set_(invocation: Invocation, key: str, value: str) -> None:
    """Set KEY to VALUE."""
    _check_not_server(key)
    if key in SETTINGS and SETTINGS[key].scope == "machine":
        machine.save(invocation.home, {key: value})
        reload_service(invocation)
    else:
        checked = find(key).check(value) if key in SETTINGS else _foreign(invocation, key, value)
        invocation.ask(lambda client: client.put_settings({key: checked}))
    _tell(invocation, key)


@config.command()
@click.argument("keys", nargs=-1, required=True)
@json_option
@pass_invocation
def reset(invocation: Invocation, keys: tuple[str, ...]) -> None:
    """Put settings back to their defaults."""
    for key in keys:
        _check_not_server(key)
        if key not in SETTINGS:
            _one(invocation, key)
    mine = [key for key in keys if key in SETTINGS and SETTINGS[key].scope == "machine"]
    theirs = [key for key in keys if key not in mine]
    if mine:
        machine.save(invocation.home, dict.fromkeys(mine))
        reload_service(invocation)
    if theirs:
        invocation.ask(lambda client: client.reset_settings(theirs))
    _tell(invocation, *keys)


config.add_command(key_command)
config.add_command(test_command)


def _all(invocation: Invocation) -> list[Line]:
    page = invocation.ask(lambda client: client.settings())
    about = {entry.get("key"): entry.get("label", "") for entry in page.definitions}
    lines = [
        Line(
            key,
            value,
            page.defaults.get(key),
            page.sources.get(key) == "db",
            "memory",
            SETTINGS[key].about if key in SETTINGS else str(about.get(key, "")),
        )
        for key, value in page.values.items()
    ]
    settings = machine.load(invocation.home).settings
    lines += [
        Line(key, settings[key], setting.default, key in settings.changed, "machine", setting.about)
        for key, setting in SETTINGS.items()
        if setting.scope == "machine"
    ]
    return lines


def _one(invocation: Invocation, key: str) -> Line:
    if key in SETTINGS and SETTINGS[key].scope == "machine":
        settings = machine.load(invocation.home).settings
        return Line(key, settings[key], SETTINGS[key].default, key in settings.changed, "machine", SETTINGS[key].about)
    for line in _all(invocation):
        if line.key == key:
            return line
    find(key)
    raise InvalidError(f"The server of this memory has no setting {key}", hint="lore config list")


def _tell(invocation: Invocation, *keys: str) -> None:
    lines = [_one(invocation, key) for key in keys]
    if invocation.as_json:
        output.say_json({"settings": lines})
        return
    for line in lines:
        output.say(f"{line.key} = {_shown(line.value)}{'' if line.changed else ' (default)'}")


def _check_not_server(key: str) -> None:
    if key == _SERVER:
        raise InvalidError(f"{key} is changed once the new server has answered", hint="lore connect URL")


def _foreign(invocation: Invocation, key: str, value: str) -> Any:
    """A value for a setting that only the server knows, in the type that it has there."""
    if isinstance(_one(invocation, key).value, str):
        return value
    try:
        return json.loads(value)
    except ValueError:
        return value


def _shown(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return f"{value:g}" if isinstance(value, float) else str(value)
