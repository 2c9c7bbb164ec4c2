"""Settings of this machine in `H/config.toml`: which server, which limits, which language.

Tables mirror the dots of a key: `hooks.prompt_timeout_ms` is `prompt_timeout_ms` in `[hooks]`. Keys that this release
does not know are kept. Tokens never stand here (`credentials`).
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import tomli_w

from lorehooks.core.errors import InvalidError, LoreError
from lorehooks.core.files import write_whole
from lorehooks.core.home import Home
from lorehooks.core.settings import SETTINGS, Settings, Value, find

EMBEDDED = "embedded"


class ConfigError(LoreError):
    """`config.toml` cannot be read."""

    code = "config_error"


@dataclass(frozen=True, slots=True)
class Config:
    """What `config.toml` says, checked. `problems` names what was left out because it is wrong."""

    server: str | None = None
    """`server.url`: an address or `embedded`; None when the file says nothing (`target` says what then holds)."""
    settings: Settings = field(default_factory=Settings)
    problems: tuple[str, ...] = ()


def load(home: Home) -> Config:
    """Read the file; a missing one is empty. A wrong value is left out and named. Raises ConfigError for broken TOML."""
    table = _read(home)
    values: dict[str, Value] = {}
    problems: list[str] = []
    for key, setting in SETTINGS.items():
        given = _get(table, key)
        if setting.scope != "machine" or given is None:
            continue
        try:
            values[key] = setting.check(given)
        except LoreError as error:
            problems.append(f"{home.config}: {error.message}")
    server = _get(table, "server.url")
    return Config(
        server.strip() if isinstance(server, str) and server.strip() else None, Settings(values), tuple(problems)
    )


def load_or_defaults(home: Home) -> Config:
    """The same for the hook path, where a broken file must not cost the session its memory."""
    try:
        return load(home)
    except LoreError as error:
        return Config(problems=(str(error),))


def save(home: Home, changes: Mapping[str, object | None]) -> None:
    """Set several keys, or none when one is wrong; None resets. `server.url` is one of them.

    Raises NotFoundError, InvalidError, ConfigError.
    """
    table = _read(home)
    for key, value in changes.items():
        if key == "server.url":
            _put(table, key, value)
            continue
        setting = find(key)
        if setting.scope != "machine":
            raise InvalidError(f"{key} is a setting of the memory, not of this machine")
        _put(table, key, None if value is None else setting.check(value))
    home.root.mkdir(mode=0o700, parents=True, exist_ok=True)
    write_whole(home.config, tomli_w.dumps(table).encode())


def _read(home: Home) -> dict[str, Any]:
    try:
        return tomllib.loads(home.config.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigError(
            f"{home.config} cannot be read: {error}", hint="mend that line, or move the file away"
        ) from error


def _get(table: Mapping[str, Any], key: str) -> object | None:
    here: object = table
    for part in key.split("."):
        if not isinstance(here, Mapping) or part not in here:
            return None
        here = here[part]
    return here


def _put(table: dict[str, Any], key: str, value: object | None) -> None:
    *folders, name = key.split(".")
    for part in folders:
        below = table.setdefault(part, {})
        if not isinstance(below, dict):
            raise InvalidError(f"{part} in config.toml is no table, so {key} cannot be set")
        table = below
    if value is None:
        table.pop(name, None)
    else:
        table[name] = value
