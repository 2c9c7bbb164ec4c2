"""Claude Code: the plugin `lore` in a marketplace folder of ours, which the program reads in place.

Installed by the program's own commands. The entries these leave in `settings.json` are also written as edits: where `claude`
is not on the PATH they are enough by themselves (seen with 2.1.332), and where it is they bring back the user's own form of
the file, which the program writes anew.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from lorehooks.clients.runtimes import RUNTIMES, EventKind
from lorehooks.core.errors import ConflictError, LoreError
from lorehooks.core.home import Home
from lorehooks.installers import files, hosts
from lorehooks.installers.edits import Append, Delete, Edit, Put
from lorehooks.installers.edits import Path as Way
from lorehooks.installers.hookentries import own_hooks
from lorehooks.installers.jsondata import look_up
from lorehooks.installers.jsonedit import snippet
from lorehooks.installers.jsontext import Plain, parse
from lorehooks.installers.plan import (
    Context,
    Detection,
    EditFile,
    Finding,
    HostCommand,
    PlaceFile,
    Plan,
    Question,
    Touched,
)
from lorehooks.installers.problem import RefusedError
from lorehooks.installers.registered import for_home, registered_bridge, registered_command

MARKETPLACE = "lorehooks"
PLUGIN = "lore@lorehooks"
PUBLIC_PLUGIN = "lore@lore"
SERVER = "lore"
PLUGIN_VERSION = "1.0.0"
"""Of the plugin's files, not of this package: the program reads them in place, so an upgrade need not touch them."""
NEEDED = (2, 1, 118)
"""Older ones drop a plugin's whole hooks file because of its `mcp_tool` hook (seen with 2.1.117)."""
TOOL = "mcp__plugin_lore_lore__{}"
READING_TOOLS = ("lore_guidance", "lore_status", "lore_boot", "lore_get_node", "lore_search", "lore_list_domains")
FILL_SECONDS = 5
ALLOW_READS = Question(
    "allow_reads",
    "May Claude Code read memory without asking each time?",
    "Claude Code asks before it reads memory; --allow-reads lets it read (never write) without asking.",
)
FIX = "lore install claudecode"


class ClaudeCode:
    """See the module."""

    name = "claudecode"
    questions = (ALLOW_READS,)

    def detect(self, context: Context) -> Detection:
        program = context.which(RUNTIMES[self.name].programs[0])
        version = ""
        if program is not None:
            try:
                version = hosts.run((str(program), "--version"), context.environment, seconds=20).output.strip()
            except LoreError as error:
                return Detection(program, folder(context), problem=error.message)
        problem = ""
        found = hosts.version_in(version)
        if found is not None and found < NEEDED:
            problem = f"Claude Code {version} is too old: {'.'.join(map(str, NEEDED))} or newer is needed"
        return Detection(program, folder(context), version, problem)

    def plan(self, context: Context) -> Plan:
        market = marketplace(context.home)
        stored = Put(("extraKnownMarketplaces", MARKETPLACE), {"source": {"source": "directory", "path": str(market)}})
        edits: list[Edit] = [stored, Put(("enabledPlugins", PLUGIN), True)]
        if context.granted(ALLOW_READS.key):
            edits += [Append(("permissions", "allow"), TOOL.format(tool)) for tool in READING_TOOLS]
        try:
            settings = _read(settings_file(context))
        except RefusedError as error:
            error.snippet = snippet(edits)
            raise
        _refuse_others(context, settings)
        if not _registered(settings, context.home)[0]:  # a home that is gone: not to be brought back by uninstall
            edits.insert(0, Delete(stored.path, look_up(settings, stored.path)[1]))
        edits = [*own_hooks(settings, context.home), *edits]
        notes = ["Claude Code gets its memory from the next session on."]
        if not context.granted(ALLOW_READS.key):
            notes.append(ALLOW_READS.without)
        return Plan(
            files=tuple(plugin_files(context.home)),
            commands=tuple(_commands(context, settings)),
            edits=(EditFile(settings_file(context), tuple(edits)),),
            folders=(folder(context) / "plugins" / "cache" / MARKETPLACE,),
            notes=tuple(notes),
        )

    def leftovers(self, context: Context) -> Plan:
        settings = _read(settings_file(context))
        edits: list[Edit] = list(own_hooks(settings, context.home))
        commands = []
        ours, _ = _registered(settings, context.home)
        ways: dict[Way, tuple[str, ...]] = {
            ("enabledPlugins", PLUGIN): ("uninstall", PLUGIN),
            ("extraKnownMarketplaces", MARKETPLACE): ("marketplace", "remove", MARKETPLACE),
        }
        for way, words in ways.items():
            found, value = look_up(settings, way)
            if ours and found:
                commands.append(HostCommand(("claude", "plugin", *words)))
                edits.append(Delete(way, value))
        copies = folder(context) / "plugins" / "cache" / MARKETPLACE
        return Plan(
            commands=tuple(commands),
            edits=(EditFile(settings_file(context), tuple(edits)),) if edits else (),
            folders=tuple(each for each in (marketplace(context.home), copies) if ours and each.is_dir()),
        )

    def check(self, context: Context) -> tuple[Finding, ...]:
        try:
            settings = _read(settings_file(context))
        except RefusedError as error:
            return (Finding("unreadable", "error", f"Claude Code's settings cannot be read: {error.message}"),)
        return tuple(_findings(context, settings))


def folder(context: Context) -> Path:
    """Claude Code's home: `CLAUDE_CONFIG_DIR` or `~/.claude`."""
    return RUNTIMES["claudecode"].home(context.environment).absolute()


def settings_file(context: Context) -> Path:
    return folder(context) / "settings.json"


def marketplace(home: Home) -> Path:
    return home.plugins / "claudecode"


def plugin_files(home: Home) -> Iterator[PlaceFile]:
    """All files of the marketplace folder."""
    about = {"name": "lore", "description": "Long-term memory: boot block, recall on each prompt, memory tools"}
    owner = {"name": "lorehooks"}
    market = {"name": MARKETPLACE, "owner": owner, "plugins": [{**about, "source": "./plugins/lore"}]}
    plugin = marketplace(home) / "plugins" / "lore"
    # No "hooks" and no "mcpServers" in the manifest: both files are found by their place, and named they would load twice.
    manifest = {**about, "version": PLUGIN_VERSION, "author": owner}
    yield _file(marketplace(home) / ".claude-plugin" / "marketplace.json", market)
    yield _file(plugin / ".claude-plugin" / "plugin.json", manifest)
    yield _file(plugin / "hooks" / "hooks.json", {"hooks": _hooks(home)})
    program, *arguments = registered_bridge(home, "claudecode")
    yield _file(plugin / ".mcp.json", {"mcpServers": {SERVER: {"command": program, "args": arguments}}})


def _file(path: Path, data: Any) -> PlaceFile:
    return PlaceFile(path, (json.dumps(data, indent=2, ensure_ascii=False) + "\n").encode())


def _hooks(home: Home) -> dict[str, Any]:
    """One form per event. No matcher where all sources are meant: a matcher would shut out a source of a later release."""
    runtime = RUNTIMES["claudecode"]
    events: tuple[EventKind, ...] = ("session.start", "prompt.submit", "subagent.start")
    hooks: dict[str, Any] = {}
    for event in events:
        command = registered_command(home, "claudecode", event)
        entry = {"type": "command", "command": command, "timeout": runtime.host_timeout_ms[event] // 1000}
        hooks[runtime.events[event]] = [{"hooks": [entry]}]
    # Missing ids of a recall are filled in by the bridge, which runs anyway: a process for each call would cost more.
    fill = {
        "type": "mcp_tool",
        "server": f"plugin:lore:{SERVER}",
        "tool": "hook_fill_ids",
        "input": {"session_id": "${session_id}", "tool_name": "${tool_name}", "tool_input": "${tool_input}"},
        "timeout": FILL_SECONDS,
    }
    hooks[runtime.events["tool.before"]] = [{"matcher": TOOL.format("lore_get_node"), "hooks": [fill]}]
    return hooks


def _commands(context: Context, settings: Plain) -> Iterator[HostCommand]:
    if context.which("claude") is None:
        return
    plugins = folder(context) / "plugins"
    known, installed = plugins / "known_marketplaces.json", plugins / "installed_plugins.json"
    touches = (
        Touched(known),
        Touched(installed, blank=({}, {"version": 2, "plugins": {}})),
        Touched(settings_file(context)),
    )
    ours, stored = _registered(settings, context.home)
    has_market = ours and stored and look_up(_read(known), (MARKETPLACE,))[0]
    if not ours:  # a home that was moved away: the program refuses a second place under the same name
        yield HostCommand(("claude", "plugin", "marketplace", "remove", MARKETPLACE), touches=touches)
    yield HostCommand(
        ("claude", "plugin", "marketplace", "add", str(marketplace(context.home))),
        undo=("claude", "plugin", "marketplace", "remove", MARKETPLACE),
        needed=not has_market,
        touches=touches,
    )
    enabled = look_up(settings, ("enabledPlugins", PLUGIN)) == (True, True)
    yield HostCommand(
        ("claude", "plugin", "install", PLUGIN),
        undo=("claude", "plugin", "uninstall", PLUGIN),
        needed=not (has_market and enabled and look_up(_read(installed), ("plugins", PLUGIN))[0]),
        touches=touches,
    )


def _registered(settings: Plain, home: Home) -> tuple[bool, bool]:
    """(whether the marketplace is ours or free, whether it is registered)."""
    found, path = look_up(settings, ("extraKnownMarketplaces", MARKETPLACE, "source", "path"))
    if not found:
        return True, look_up(settings, ("extraKnownMarketplaces", MARKETPLACE))[0]
    return path == str(marketplace(home)), True


def _refuse_others(context: Context, settings: Plain) -> None:
    """Two memories must not answer one prompt. Raises ConflictError with the command that removes the other."""
    if look_up(settings, ("enabledPlugins", PUBLIC_PLUGIN)) == (True, True):
        raise ConflictError(
            "The public Lore plugin (lore@lore) is enabled in Claude Code, and both would answer each prompt",
            hint=f"claude plugin uninstall {PUBLIC_PLUGIN}",
        )
    ours, _ = _registered(settings, context.home)
    _, other = look_up(settings, ("extraKnownMarketplaces", MARKETPLACE, "source", "path"))
    if not ours and isinstance(other, str) and Path(other).is_dir():
        raise ConflictError(
            f"Claude Code already has the memory of another home ({other})",
            hint=for_home(Path(other).parent.parent, "lore uninstall claudecode"),
        )


def _findings(context: Context, settings: Plain) -> Iterator[Finding]:
    ours, stored = _registered(settings, context.home)
    found, enabled = look_up(settings, ("enabledPlugins", PLUGIN))
    if not ours or not stored or not found:
        yield Finding("not_registered", "error", "Claude Code does not have the lore plugin", FIX)
    elif enabled is not True:
        yield Finding(
            "disabled", "error", "The lore plugin is switched off in Claude Code", f"claude plugin enable {PLUGIN}"
        )
    for file in plugin_files(context.home):
        if files.read(file.path).content != file.content:
            yield Finding("plugin_files", "error", f"{file.path} is missing or changed", FIX)
    if any(own_hooks(settings, context.home)):
        yield Finding("registered_twice", "error", "Claude Code's settings hold our hooks beside the plugin's", FIX)
    if look_up(settings, ("enabledPlugins", PUBLIC_PLUGIN)) == (True, True):
        text = "The public Lore plugin (lore@lore) is enabled too: two memories answer each prompt"
        yield Finding("two_memories", "error", text, f"claude plugin uninstall {PUBLIC_PLUGIN}")
    if look_up(settings, ("disableAllHooks",)) == (True, True):
        text = "Claude Code's settings switch all hooks off (disableAllHooks), so no memory is injected"
        yield Finding("hooks_off", "warning", text, f"remove disableAllHooks from {settings_file(context)}")
    _, rules = look_up(settings, ("permissions", "allow"))
    allowed = rules if isinstance(rules, list) else []
    if any(TOOL.format(tool) not in allowed for tool in READING_TOOLS):
        yield Finding("reads_ask", "info", "Claude Code asks before it reads memory", f"{FIX} --allow-reads")


def _read(path: Path) -> Plain:
    """A JSON file of the program's; one that is not there is an empty object. Raises RefusedError."""
    return files.persist(lambda: parse(files.read(path).content or b"", name=path).plain)
