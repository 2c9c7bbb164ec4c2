"""What Codex's files say about us: which hooks stand there and work, whose the server `lore` is, what is wrong."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from typing import Any

from lorehooks.clients.runtimes import RUNTIMES, EventKind
from lorehooks.core.home import Home
from lorehooks.installers import codextrust, files, tomlformat
from lorehooks.installers.codextrust import Trust
from lorehooks.installers.edits import Path as Way
from lorehooks.installers.edits import describe
from lorehooks.installers.hookentries import Entry, entries, own_entries
from lorehooks.installers.jsondata import look_up, normal
from lorehooks.installers.jsontext import BOM, Number, Plain, parse
from lorehooks.installers.ownership import Hooks, Owner, server_owner
from lorehooks.installers.plan import Context, Finding
from lorehooks.installers.registered import registered_command

RUNTIME = RUNTIMES["codex"]
EVENTS: Mapping[str, EventKind] = {
    RUNTIME.events[event]: event for event in ("session.start", "prompt.submit", "subagent.start")
}
"""Codex's name of each event that we register, and ours."""
SOURCES = ("startup", "resume", "clear", "compact")
HOOKS: Way = ("hooks",)
SERVER = "lore"
FIX = "lore install codex"
LEAST_SECONDS = 7
"""What a hook of ours needs before its host gives up on it: 5 s at a session start, and room."""
_PUBLIC_PLUGIN = "lore@lore"
_PUBLIC_HOOKS = ("/hooks/lore/hooks/rules-inject.", "/hooks/lore/hooks/recall-inject.")
_KNOWN_TYPES = ("command", "prompt", "agent", "mcp_tool")
_KNOWN_EVENTS = (
    "PreModelRequest", "PostModelRequest", "PreToolUse", "PermissionRequest", "PostToolUse", "PreCompact", "PostCompact",
    "SessionStart", "SessionEnd", "UserPromptSubmit", "SubagentStart", "SubagentStop", "Stop", "Interrupt",
)  # fmt: skip
"""Events whose entries Codex reads; others it passes over."""


@dataclass(frozen=True, slots=True)
class Found:
    """Both files as they are now. `good` are our entries that work, by Codex's name of the event."""

    home: Home
    hooks_file: Path
    config_file: Path
    config: Mapping[str, Any]
    content: bytes
    """Of `hooks.json`."""
    hooks: Hooks
    good: Mapping[str, Entry]

    @property
    def stale(self) -> tuple[Entry, ...]:
        """Entries that must go."""
        return self.hooks.stale(self.good)

    @property
    def trust(self) -> tuple[Trust, ...]:
        """How Codex stands to each of our hooks that work."""
        return codextrust.states(self.config, self.hooks_file, tuple(self.good.values()))

    @property
    def recorded(self) -> tuple[str, ...]:
        """Keys of every trust that is recorded for our hooks, those that are gone from the file too."""
        ideal = entries(normal({"hooks": {name: [group] for name, group in wanted(self.home).items()}}), HOOKS)
        return codextrust.recorded(self.config, self.hooks_file, (*self.hooks.own, *ideal))

    @property
    def server(self) -> Owner:
        """Whose the MCP server `lore` is."""
        return server_owner(normal(self.config), ("mcp_servers", SERVER), "codex", self.home)

    def conflicts(self) -> Iterator[tuple[str, str]]:
        """(what would answer beside us or stand in our place, how to clear the way)."""
        plugins = self.config.get("plugins")
        public = plugins.get(_PUBLIC_PLUGIN) if isinstance(plugins, dict) else None
        if isinstance(public, dict) and public.get("enabled") is not False:
            yield (
                f"The public Lore plugin ({_PUBLIC_PLUGIN}) is enabled in Codex, and both would answer each prompt",
                f"codex plugin remove {_PUBLIC_PLUGIN}",
            )
        if any(part in entry.command for entry in self.hooks.all for part in _PUBLIC_HOOKS):
            text = f"{self.hooks_file} holds hooks of the public Lore, and both would answer each prompt"
            yield text, "npx @loremem/cli uninstall --channels codex"
        for root in self.hooks.other_homes:
            yield (
                f"Codex already has the memory of another home ({root})",
                f"LORE_HOME={quote(str(root))} lore uninstall codex",
            )
        for entry in own_entries(normal(_without_state(self.config)), HOOKS, self.home):
            text = f"{self.config_file} holds our hook for {entry.event} too, and it would run twice"
            yield text, f"remove [[hooks.{entry.event}]] from {self.config_file}"
        if self.server == "other":
            yield f"Codex has an MCP server named {SERVER} that is not ours", f"codex mcp remove {SERVER}"


def look(context: Context) -> Found:
    """Read both files. Raises RefusedError for one that cannot be read."""
    folder = RUNTIME.home(context.environment).absolute()
    hooks_file, config_file = folder / "hooks.json", folder / "config.toml"
    config = files.persist(lambda: tomlformat.read(files.read(config_file).content or b"", config_file))
    content, plain = files.persist(lambda: _read_hooks(hooks_file))
    hooks = Hooks(plain, HOOKS, "codex", EVENTS, context.home)
    good: dict[str, Entry] = {}
    for entry in hooks.own:
        if entry.event in EVENTS and _works(entry, context.home):
            good.setdefault(entry.event, entry)
    return Found(context.home, hooks_file, config_file, config, content, hooks, good)


def _read_hooks(path: Path) -> tuple[bytes, Plain]:
    content = files.read(path).content or b""
    return content, parse(content, name=path).plain


def hook_states(context: Context) -> dict[str, str]:
    """Each event that we register: `trusted`, `modified`, `untrusted`, `disabled` or `missing`, from Codex's files alone.

    Raises RefusedError where they cannot be read.
    """
    states = {each.event: each.state for each in look(context).trust}
    return {name: states.get(name, "missing") for name in EVENTS}


def wanted(home: Home) -> dict[str, dict[str, Any]]:
    """Our group for each event. No matcher: it would shut out a source of a later release."""
    groups = {}
    for name, event in EVENTS.items():
        seconds = RUNTIME.host_timeout_ms[event] // 1000  # whole: a fraction spoils the file for Codex
        handler = {"type": "command", "command": registered_command(home, "codex", event), "timeout": seconds}
        groups[name] = {"hooks": [handler]}
    return groups


def findings(found: Found, *, program: bool) -> Iterator[Finding]:
    """What is wrong, without trust. `program` tells whether `codex` is on the PATH."""
    for name in EVENTS:
        if name not in found.good:
            yield Finding("not_registered", "error", f"Codex does not have our hook for {name}", FIX)
    if found.stale:
        yield Finding("registered_twice", "error", f"{found.hooks_file} holds old entries of ours", FIX)
    for text, fix in found.conflicts():
        yield Finding("two_memories", "error", text, fix)
    features = found.config.get("features")
    if isinstance(features, dict) and features.get("hooks", features.get("codex_hooks")) is False:
        text = "Codex's settings switch all hooks off, so no memory is injected"
        yield Finding("hooks_off", "error", text, "codex features enable hooks", by_person=True)
    for reason in spoilers(found.content, found.hooks.plain):
        text = f"Codex drops {found.hooks_file} as a whole, and our hooks with it: {reason}"
        yield Finding("file_dropped", "error", text, f"mend that entry in {found.hooks_file}", by_person=True)
    if found.server in ("none", "gone"):
        yield Finding("no_tools", "error" if program else "warning", "Codex does not have the memory tools", FIX)
    elif look_up(normal(found.config), ("mcp_servers", SERVER, "enabled")) == (True, False):
        text = "The memory tools are switched off in Codex"
        yield Finding("tools_off", "warning", text, f"remove enabled = false from [mcp_servers.{SERVER}]")
    if has_inline(found):
        text = "Codex warns at its start that hooks stand both in config.toml and in hooks.json; both run"
        yield Finding("two_files", "info", text)


def has_inline(found: Found) -> bool:
    """Whether `config.toml` holds hooks of its own."""
    return any(entries(normal(_without_state(found.config)), HOOKS))


def spoilers(content: bytes, hooks: Plain) -> Iterator[str]:
    """What makes Codex drop the whole file, in words (each seen with 0.171)."""
    if content.startswith(BOM):
        yield "it begins with a byte order mark"
    if not isinstance(hooks, dict):
        return
    yield from (f"it does not know the key {key!r}" for key in hooks if key not in ("description", "hooks"))
    events = hooks.get("hooks", {})
    if not isinstance(events, dict):
        yield "hooks is not an object"
        return
    for name in sorted(set(events) & set(_KNOWN_EVENTS)):
        groups = events[name]
        if not isinstance(groups, list):
            yield f"hooks.{name} is not a list"
            continue
        for index, group in enumerate(groups):
            place = f"hooks.{name}[{index}]"
            if not isinstance(group, dict) or not isinstance(group.get("hooks", []), list):
                yield f"{place} is not a group of hooks"
            elif not isinstance(group.get("matcher"), str | None):
                yield f"the matcher of {place} is not a text"
    for entry in entries(hooks, HOOKS):
        if entry.event in _KNOWN_EVENTS:
            place = describe((*entry.way, entry.group, "hooks", entry.handler))
            yield from (f"{what} of {place} {why}" for what, why in _handler_faults(entry.value))


def _handler_faults(handler: Plain) -> Iterator[tuple[str, str]]:
    given = handler if isinstance(handler, dict) else {}
    timeout = given.get("timeout")
    if given.get("type") not in _KNOWN_TYPES:
        yield "the type", "is none that it knows"
    if timeout is not None and not (isinstance(timeout, Number) and timeout.raw.isdigit()):
        yield "the timeout", "is not a whole number of seconds"
    if not isinstance(given.get("async"), bool | None):
        yield "async", "is neither true nor false"


def _works(entry: Entry, home: Home) -> bool:
    """Whether an entry does what ours should. A longer timeout or another word for the screen may be the user's wish."""
    event = EVENTS[entry.event]
    timeout, started_aside = (look_up(entry.value, (key,))[1] for key in ("timeout", "async"))
    return (
        entry.command == registered_command(home, "codex", event)
        and look_up(entry.value, ("type",)) == (True, "command")
        and started_aside is not True
        and isinstance(timeout, Number)
        and re.fullmatch(r"\d{1,6}", timeout.raw) is not None
        and int(timeout.raw) >= LEAST_SECONDS
        and (event != "session.start" or all(entry.takes(source) for source in SOURCES))
    )


def _without_state(config: Mapping[str, Any]) -> dict[str, Any]:
    hooks = config.get("hooks")
    return {"hooks": {key: value for key, value in hooks.items() if key != "state"}} if isinstance(hooks, dict) else {}
