"""Codex's trust in hooks: read from its files, and changed only through Codex itself.

Codex runs a hook only when the user's `config.toml` holds its hash (`[hooks.state."<file>:<event>:<group>:<handler>"]`).
The hash was computed here as Codex does and held against releases 0.160, 0.169 and 0.171. Where it disagrees with what is
recorded, Codex is asked: a later release may count otherwise.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from lorehooks.core.errors import LoreError
from lorehooks.installers.codexserver import AppServer
from lorehooks.installers.hookentries import Entry
from lorehooks.installers.jsontext import Number

State = Literal["trusted", "modified", "untrusted", "disabled"]
DEFAULT_TIMEOUT = 600
NO_MATCHER = ("UserPromptSubmit", "Stop")
"""Events for which Codex takes no notice of a matcher, in the hash neither."""
_PLAIN_HANDLER = {"type", "command", "timeout", "async", "statusMessage"}


@dataclass(frozen=True, slots=True)
class Trust:
    """How Codex stands to one hook. Only `trusted` is run."""

    event: str
    """Codex's name, such as `SessionStart`."""
    key: str
    state: State


def states(config: Mapping[str, Any], hooks_file: Path, own: Sequence[Entry]) -> tuple[Trust, ...]:
    """The state of each entry, from what is recorded."""
    return tuple(_state(config, hooks_file, entry) for entry in own)


def recorded(config: Mapping[str, Any], hooks_file: Path, own: Sequence[Entry]) -> tuple[str, ...]:
    """Keys of what is recorded for these entries: at their places, and with their hashes anywhere in the same file."""
    places = {key for entry in own for key in _keys(hooks_file, entry)}
    hashes = {_hash(entry) for entry in own}
    files = tuple(f"{name}:" for name in _names(hooks_file))
    return tuple(
        key
        for key, value in _recorded(config).items()
        if key in places or (key.startswith(files) and value.get("trusted_hash") in hashes)
    )


def ask(codex: Path, environment: Mapping[str, str], own: Sequence[Entry]) -> dict[str, State]:
    """What Codex itself says about these entries, by command and event. Raises LoreError."""
    with AppServer(codex, environment) as server:
        return {key: state for key, (_, state) in _listed(server, own).items()}


def trust(codex: Path, environment: Mapping[str, str], own: Sequence[Entry]) -> None:
    """Record the user's trust as Codex's own review does. Raises LoreError when it does not take."""
    with AppServer(codex, environment) as server:
        found = _listed(server, own)
        if len(found) < len(own):
            raise LoreError("Codex does not list the hooks", hint="start codex and look at /hooks")
        value = {key: {"trusted_hash": current} for key, (current, state) in found.items() if state != "trusted"}
        server.write([("hooks.state", value)])
        if any(state not in ("trusted", "disabled") for _, state in _listed(server, own).values()):
            raise LoreError("Codex did not take the trust", hint="start codex and choose to trust the hooks")


def forget(codex: Path, environment: Mapping[str, str], keys: Sequence[str], empty: Sequence[str]) -> None:
    """Take records out of Codex's configuration, and then the tables named in `empty`. Raises LoreError."""
    edits: list[tuple[str, Any]] = [(f"hooks.state.{json.dumps(key, ensure_ascii=False)}", None) for key in keys]
    with AppServer(codex, environment) as server:
        server.write([*edits, *((name, None) for name in empty)])


def _listed(server: AppServer, own: Sequence[Entry]) -> dict[str, tuple[str, State]]:
    """{key: (hash, state)} of our entries as Codex lists them."""
    wanted = {(snake(entry.event), entry.command) for entry in own}
    found: dict[str, tuple[str, State]] = {}
    for hook in server.hooks():
        if (snake(hook["eventName"]), hook.get("command")) in wanted:
            said: State = "trusted" if hook["trustStatus"] == "managed" else hook["trustStatus"]
            found[hook["key"]] = (hook["currentHash"], "disabled" if hook.get("enabled") is False else said)
    return found


def _state(config: Mapping[str, Any], hooks_file: Path, entry: Entry) -> Trust:
    records, keys = _recorded(config), _keys(hooks_file, entry)
    key = next((each for each in keys if each in records), keys[0])
    noted = records.get(key, {})
    state: State = "untrusted"
    if "trusted_hash" in noted:
        state = "trusted" if noted["trusted_hash"] == _hash(entry) else "modified"
    if noted.get("enabled") is False:
        state = "disabled"
    return Trust(entry.event, key, state)


def _recorded(config: Mapping[str, Any]) -> Mapping[str, Mapping[str, Any]]:
    hooks = config.get("hooks")
    state = hooks.get("state") if isinstance(hooks, dict) else None
    return {key: value for key, value in state.items() if isinstance(value, dict)} if isinstance(state, dict) else {}


def _keys(hooks_file: Path, entry: Entry) -> list[str]:
    return [f"{name}:{snake(entry.event)}:{entry.group}:{entry.handler}" for name in _names(hooks_file)]


def _names(hooks_file: Path) -> list[str]:
    """How Codex may call the file: a home named by CODEX_HOME without its links, `~/.codex` as it is; never those of the file."""
    return list(dict.fromkeys((str(hooks_file), str(hooks_file.parent.resolve() / hooks_file.name))))


def _hash(entry: Entry) -> str:
    """Codex's hash of a handler; empty for one with keys whose part in it is not known."""
    handler = entry.value
    if not isinstance(handler, dict) or set(handler) - _PLAIN_HANDLER or handler.get("type") != "command":
        return ""
    normal: dict[str, Any] = {
        "type": "command",
        "command": handler.get("command"),
        "async": handler.get("async") is True,
        "timeout": _seconds(handler.get("timeout")),
    }
    if handler.get("statusMessage") is not None:
        normal["statusMessage"] = handler["statusMessage"]
    whole: dict[str, Any] = {"event_name": snake(entry.event), "hooks": [normal]}
    matcher = entry.whole.get("matcher") if isinstance(entry.whole, dict) else None
    if isinstance(matcher, str) and entry.event not in NO_MATCHER:
        whole["matcher"] = matcher
    text = json.dumps(whole, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"


def _seconds(timeout: object) -> int:
    if not isinstance(timeout, Number):
        return DEFAULT_TIMEOUT
    return max(1, int(timeout.raw)) if timeout.raw.isdigit() else DEFAULT_TIMEOUT


def snake(event: str) -> str:
    """`SessionStart` and `sessionStart` as `session_start`."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", event).lower()
