"""ZCode: process hooks and the memory tools in `~/.zcode/cli/config.json`, by edits of their own spans.

Written from reports, since ZCode cannot be run here: `docs/runtimes/zcode.md` says what rests on what. Its settings page writes
the whole file anew from the app's own memory and can drop our entries, so `check` looks at all of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from typing import Any

from lorehooks.clients.runtimes import RUNTIMES, EventKind
from lorehooks.core.errors import ConflictError
from lorehooks.core.home import Home
from lorehooks.installers import files, receipt
from lorehooks.installers.edits import Append, Delete, Edit, Prune, Put
from lorehooks.installers.edits import Path as Way
from lorehooks.installers.hookentries import Entry, prunes, take_out
from lorehooks.installers.jsondata import look_up
from lorehooks.installers.jsonedit import snippet
from lorehooks.installers.jsontext import Number, Plain, parse
from lorehooks.installers.ownership import Hooks, Owner, server_owner
from lorehooks.installers.plan import Context, Detection, EditFile, Finding, Plan, Question
from lorehooks.installers.problem import RefusedError
from lorehooks.installers.registered import registered_bridge, registered_command, registered_process

RUNTIME = RUNTIMES["zcode"]
EVENTS: Mapping[str, EventKind] = {
    RUNTIME.events[event]: event for event in ("session.start", "prompt.submit", "tool.before")
}
"""ZCode's name of each event that we register, and ours."""
HOOKS: Way = ("hooks", "events")
SWITCH: Way = ("hooks", "enabled")
SERVER: Way = ("mcp", "servers", "lore")
TOOL = "mcp__lore__lore_get_node"
LEAST_MS = 7_000
"""What a hook of ours needs before its host gives up on it: 5 s at a session start, and room."""
NEEDED_OUTPUT = 32_768
"""Bytes of an answer that ZCode takes when nothing is set: twice our largest block, since JSON doubles what it escapes."""
FIX = "lore install zcode"


@dataclass(frozen=True, slots=True)
class Found:
    """ZCode's file as it is now. `good` are our entries that work, by ZCode's name of the event."""

    home: Home
    path: Path
    plain: Plain
    hooks: Hooks
    good: Mapping[str, Entry]

    @property
    def stale(self) -> tuple[Entry, ...]:
        """Entries that must go."""
        return self.hooks.stale(self.good)

    @property
    def foreign(self) -> tuple[tuple[str, Plain], ...]:
        """(event, handler) of all hooks that are not ours."""
        ours = (*self.hooks.own, *self.stale)
        return tuple((entry.event, entry.value) for entry in self.hooks.all if entry not in ours)

    @property
    def switched_on(self) -> bool:
        return look_up(self.plain, SWITCH) == (True, True)

    @property
    def server(self) -> Owner:
        """Whose the MCP server `lore` is."""
        return server_owner(self.plain, SERVER, "zcode", self.home)

    def conflicts(self) -> Iterator[tuple[str, str]]:
        """(what would answer beside us or stand in our place, how to clear the way)."""
        for root in self.hooks.other_homes:
            yield (
                f"ZCode already has the memory of another home ({root})",
                f"LORE_HOME={quote(str(root))} lore uninstall zcode",
            )
        if self.server == "other":
            yield "ZCode has an MCP server named lore that is not ours", f"remove mcp.servers.lore from {self.path}"


def others_wake(context: Context) -> bool:
    """Whether switching ZCode's hooks on would start hooks that are not ours."""
    found = look(context)
    return not found.switched_on and bool(found.foreign)


ENABLE = Question(
    "enable_hooks",
    "ZCode's hooks are switched off. May lore switch them on, although this starts the other hooks there too?",
    "Switching ZCode's hooks on would start the other hooks there too; --enable-hooks does so.",
    others_wake,
)


class ZCode:
    """See the module."""

    name = "zcode"
    questions = (ENABLE,)

    def detect(self, context: Context) -> Detection:
        """Its program is not asked for a version: a desktop app might open."""
        program = next(filter(None, map(context.which, RUNTIME.programs)), None)
        return Detection(program, RUNTIME.home(context.environment).absolute())

    def plan(self, context: Context) -> Plan:
        ours = {name: Append((*HOOKS, name), group) for name, group in wanted(context.home).items()}
        on, served = Put(SWITCH, value=True), Put(SERVER, server(context.home))
        try:
            found = look(context)
        except RefusedError as error:
            error.snippet = snippet((*ours.values(), on, served))
            raise
        for text, hint in found.conflicts():
            raise ConflictError(text, hint=hint)
        if others_wake(context) and not context.granted(ENABLE.key):
            count = len(found.foreign)
            text = f"ZCode's hooks are switched off, and switching them on would start {count} that are not ours too"
            raise ConflictError(text, hint=f"{FIX} --enable-hooks")
        edits: list[Edit] = [*take_out(found.stale)]
        edits += [edit for name, edit in ours.items() if name not in found.good]
        edits += [] if found.switched_on else [on]
        if found.server == "gone":  # of a home that is gone: not to be brought back by uninstall
            edits.append(Delete(SERVER, look_up(found.plain, SERVER)[1]))
        edits += [] if found.server == "ours" else [served]
        notes = [
            "ZCode gets its memory from the next session on; when its settings page drops our entries: lore doctor."
        ]
        if not found.switched_on:
            notes.append("ZCode's hooks were switched off as a whole; they are on now, until lore uninstall zcode.")
        return Plan(edits=(EditFile(found.path, tuple(edits)),) if edits else (), notes=tuple(notes))

    def leftovers(self, context: Context) -> Plan:
        found = look(context)
        note = context.receipt.note(found.path) if context.receipt else None
        edits: list[Edit] = [*take_out(found.hooks.own)]
        if found.server == "ours":
            edits.append(Delete(SERVER, look_up(found.plain, SERVER)[1]))
        if note is None and edits:
            edits += [*prunes(found.hooks.own, HOOKS), Prune(SERVER[:2]), Prune(SERVER[:1])]
        before = (receipt.original(context.home, note) if note else None) or b""
        were = _found(context.home, found.path, parse(before, name=found.path).plain).foreign
        came = [each for each in found.foreign if each not in were]
        ways_back = {edit.path for edit in note.undo} if note else set()
        stays = ((SWITCH, f"{len(came)} hooks that came later need it"),) if came and SWITCH in ways_back else ()
        return Plan(edits=(EditFile(found.path, tuple(edits), stays=stays),) if edits or stays else ())

    def check(self, context: Context) -> tuple[Finding, ...]:
        try:
            return tuple(findings(look(context)))
        except RefusedError as error:
            return (Finding("unreadable", "error", f"ZCode's settings cannot be read: {error.message}", error.hint),)


def look(context: Context) -> Found:
    """Read the file. Raises RefusedError when it cannot be read."""
    path = RUNTIME.home(context.environment).absolute() / "cli" / "config.json"
    return _found(context.home, path, files.persist(lambda: parse(files.read(path).content or b"", name=path).plain))


def hook_states(context: Context) -> dict[str, str]:
    """Each event that we register: `registered`, `missing` or `switched off`. Raises RefusedError where it cannot be told."""
    found = look(context)
    there = "registered" if found.switched_on else "switched off"
    return {name: there if name in found.good else "missing" for name in EVENTS}


def _found(home: Home, path: Path, plain: Plain) -> Found:
    hooks = Hooks(plain, HOOKS, "zcode", EVENTS, home)
    good: dict[str, Entry] = {}
    for entry in hooks.own:
        if entry.event in EVENTS and _works(entry, home):
            good.setdefault(entry.event, entry)
    return Found(home, path, plain, hooks, good)


def _works(entry: Entry, home: Home) -> bool:
    """Whether an entry does what ours should. A longer timeout may be the user's wish."""
    event = EVENTS[entry.event]
    _, timeout = look_up(entry.value, ("timeoutMs",))
    taken = {"tool.before": (TOOL,), "session.start": ("startup", "resume", "clear", "compact")}.get(event, ())
    return (
        entry.command == registered_command(home, "zcode", event)
        and look_up(entry.value, ("type",)) == (True, "process")
        and isinstance(timeout, Number)
        and timeout.raw.isdigit()
        and int(timeout.raw) >= LEAST_MS
        and all(map(entry.takes, taken))
    )


def wanted(home: Home) -> dict[str, dict[str, Any]]:
    """Our group for each event. A process through `/bin/sh`, which stays silent when our home is gone."""
    groups: dict[str, dict[str, Any]] = {}
    for name, event in EVENTS.items():
        program, *arguments = registered_process(home, "zcode", event)
        handler = {
            "type": "process",
            "command": program,
            "args": arguments,
            "timeoutMs": RUNTIME.host_timeout_ms[event],
        }
        groups[name] = {"matcher": TOOL, "hooks": [handler]} if event == "tool.before" else {"hooks": [handler]}
    return groups


def server(home: Home) -> dict[str, Any]:
    """The entry of our MCP server."""
    program, *arguments = registered_bridge(home, "zcode")
    return {"type": "stdio", "command": program, "args": arguments}


def findings(found: Found) -> Iterator[Finding]:
    """What is wrong; the app may have dropped any part of what we put."""
    for name in EVENTS:
        if name not in found.good:
            yield Finding("not_registered", "error", f"ZCode does not have our hook for {name}", FIX)
    if found.stale:
        yield Finding("registered_twice", "error", f"{found.path} holds old entries of ours", FIX)
    if not found.switched_on:
        text = "ZCode's settings switch all hooks off (hooks.enabled), so no memory is injected"
        yield Finding("hooks_off", "error", text, FIX)
    if found.server in ("none", "gone"):
        yield Finding("no_tools", "error", "ZCode does not have the memory tools", FIX)
    for text, fix in found.conflicts():
        yield Finding("two_memories", "error", text, fix)
    _, limit = look_up(found.plain, ("hooks", "maxOutputBytes"))
    if isinstance(limit, Number) and limit.raw.isdigit() and int(limit.raw) < NEEDED_OUTPUT:
        text = f"ZCode drops answers of hooks above {limit.raw} bytes (hooks.maxOutputBytes), and boot blocks can be longer"
        yield Finding("small_output", "warning", text, f"set it to {NEEDED_OUTPUT} in {found.path}", by_person=True)
