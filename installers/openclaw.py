"""OpenClaw: a plugin folder that its own commands copy into its extensions, and the right to see conversations.

OpenClaw writes its settings anew as plain JSON, without remarks, and marks its release in them (`meta`). So its commands make
our entries, and the same entries as edits bring the user's own form back (`docs/decisions/0015-openclaw-settings.md`).
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from lorehooks.core.errors import ConflictError, LoreError
from lorehooks.core.tools import tool_definitions
from lorehooks.installers import files, hosts, pluginfiles
from lorehooks.installers.edits import Append, Delete, Edit, Put
from lorehooks.installers.edits import Path as Way
from lorehooks.installers.jsondata import look_up
from lorehooks.installers.jsontext import Plain, parse
from lorehooks.installers.openclawsettings import (
    ENTRY,
    ENTRY_NAME,
    PLUGIN,
    config_file,
    entry_of,
    extension,
    folder,
    is_included,
    settings_of,
)
from lorehooks.installers.plan import Context, Detection, EditFile, Finding, HostCommand, PlaceFile, Plan, Touched
from lorehooks.installers.pluginfiles import plugin_file
from lorehooks.installers.pluginhost import age_findings, detect
from lorehooks.installers.problem import RefusedError

PUBLIC_PLUGIN = "lore"
PLUGIN_VERSION = "1.0.0"
"""Of the folder's form; its content is compared byte by byte."""
ALLOW: Way = ("plugins", "allow")
HOSTS_OWN: tuple[Way, ...] = (("meta",),)
PROFILES = ["minimal", "coding", "messaging", "full"]
WANTED = {"enabled": True, "hooks": {"allowConversationAccess": True}}
GRANT = (
    "OpenClaw's plugin lorehooks may see conversations (plugins.entries.lorehooks.hooks.allowConversationAccess): without that "
    "OpenClaw lets no plugin recall memory for a prompt. `lore uninstall openclaw` takes it back."
)
FIX = "lore install openclaw"


class OpenClaw:
    """See the module."""

    name = "openclaw"
    questions = ()

    def detect(self, context: Context) -> Detection:
        return detect(context, self.name, folder(context))

    def plan(self, context: Context) -> Plan:
        if context.which("openclaw") is None:
            raise LoreError(
                "openclaw is not on the PATH, and only its own commands install a plugin", code="not_present"
            )
        config = config_file(context)
        if config.is_symlink():
            reason = f"it is a link, which OpenClaw would replace; its file is {config.resolve()}"
            raise RefusedError(config, reason, hint=f"OPENCLAW_CONFIG_PATH='{config.resolve()}' {FIX}")
        settings = settings_of(config)
        _refuse_others(context, settings)
        included = is_included(settings)
        edits = () if included else (EditFile(config, _edits(settings), "json5", hosts_own=HOSTS_OWN),)
        notes = ["OpenClaw gets its memory from its next run on; a Gateway that runs takes it over by itself.", GRANT]
        if included:
            notes.append(f"{config} includes other files: OpenClaw itself writes where its plugins are set.")
        return Plan(
            files=tuple(plugin_files(context)),
            commands=tuple(_commands(context, config, settings)),
            edits=edits,
            folders=(extension(context),),
            notes=tuple(notes),
        )

    def leftovers(self, context: Context) -> Plan:
        config = config_file(context)
        try:
            settings = settings_of(config)
        except RefusedError:
            settings = {}
        copy = extension(context)
        found, entry = look_up(settings, ENTRY)
        if copy.is_dir() and not _is_ours(context):
            return Plan()
        commands = []
        if copy.is_dir():
            commands.append(HostCommand(_UNINSTALL))
        if found:
            commands.append(HostCommand(_UNSET))
        edits: list[Edit] = [Delete(ENTRY, entry)] if found else []
        return Plan(
            commands=tuple(commands),
            edits=(EditFile(config, tuple(edits), "json5"),) if edits else (),
            folders=(copy,) if copy.is_dir() else (),
        )

    def check(self, context: Context) -> tuple[Finding, ...]:
        try:
            settings = settings_of(config_file(context))
        except RefusedError as error:
            return (Finding("unreadable", "error", f"OpenClaw's settings cannot be read: {error.message}"),)
        return tuple(_findings(context, settings))


_UNINSTALL = ("openclaw", "plugins", "uninstall", PLUGIN, "--force")
_UNSET = ("openclaw", "config", "unset", ENTRY_NAME)


def plugin_files(context: Context) -> Iterator[PlaceFile]:
    """The folder that OpenClaw copies, in our home. No `kind`: the memory slot stays with whatever has it."""
    source = context.home.plugins / "openclaw"
    about = {"name": "Lore memory", "description": "Long-term memory: boot block, recall on each prompt, memory tools"}
    names = [tool["name"] for tool in tool_definitions()]
    manifest = {
        "id": PLUGIN,
        **about,
        "version": PLUGIN_VERSION,
        "activation": {"onStartup": True},
        "contracts": {"tools": names},
        "toolMetadata": {name: {"profiles": PROFILES} for name in names},
        "configSchema": {"type": "object", "additionalProperties": False, "properties": {}},
    }
    package = {
        "name": PLUGIN,
        "version": PLUGIN_VERSION,
        "private": True,
        "type": "module",
        "openclaw": {"extensions": ["./index.js"]},
    }
    yield _file(source / "openclaw.plugin.json", manifest)
    yield _file(source / "package.json", package)
    yield PlaceFile(source / "index.js", plugin_file("openclaw.js", context.home))


def _file(path: Path, data: Any) -> PlaceFile:
    return PlaceFile(path, (json.dumps(data, indent=2) + "\n").encode())


def _edits(settings: Plain) -> tuple[Edit, ...]:
    """What the commands do, as edits. Where plugins are listed one by one, OpenClaw adds ours to the list."""
    edits: list[Edit] = [
        Put((*ENTRY, "enabled"), WANTED["enabled"]),
        Put((*ENTRY, "hooks", "allowConversationAccess"), True),
    ]
    _, allowed = look_up(settings, ALLOW)
    return (*edits, Append(ALLOW, PLUGIN)) if isinstance(allowed, list) and allowed else tuple(edits)


def _commands(context: Context, config: Path, settings: Plain) -> Iterator[HostCommand]:
    """The right first, so that a running Gateway has it when it takes up the plugin; each is taken back in the other order."""
    touches = (Touched(config, "json5"),)
    entry = entry_of(context, settings)
    granted = look_up(entry, ("hooks", "allowConversationAccess")) == (True, True)
    yield HostCommand(
        ("openclaw", "config", "set", ENTRY_NAME, json.dumps(WANTED), "--strict-json", "--merge"),
        undo=_UNSET,
        needed=not (granted and look_up(entry, ("enabled",)) == (True, True)),
        touches=touches,
    )
    yield HostCommand(
        ("openclaw", "plugins", "install", str(context.home.plugins / "openclaw"), "--force", "--accept-capabilities"),
        undo=_UNINSTALL,
        needed=any(True for _ in _stale_copies(context)),
        touches=touches,
    )


def _stale_copies(context: Context) -> Iterator[Path]:
    """Files of OpenClaw's copy that are not as planned."""
    for file in plugin_files(context):
        copy = extension(context) / file.path.name
        if files.read(copy).content != file.content:
            yield copy


def _is_ours(context: Context) -> bool:
    """Whether OpenClaw's copy is of this home: it says so, or the receipt does of one that was changed."""
    owner = _home_of(extension(context))
    noted = context.receipt is not None and extension(context) in context.receipt.folders
    return owner == context.home.root or (owner is None and noted)


def _home_of(copy: Path) -> Path | None:
    """The home that a copy speaks for."""
    return pluginfiles.home_named_in(files.read(copy / "index.js").content or b"")


def _refuse_others(context: Context, settings: Plain) -> None:
    """Two memories must not answer one prompt. Raises ConflictError with the command that removes the other."""
    if _public_is_on(context, settings):
        raise ConflictError(
            "The public Lore plugin (lore) is in OpenClaw, and both would answer each prompt",
            hint=f"openclaw plugins uninstall {PUBLIC_PLUGIN} --force",
        )
    copy = extension(context)
    owner = _home_of(copy)
    if copy.is_dir() and owner is None and not _is_ours(context):
        raise ConflictError(f"{copy} is a plugin of the same name that is not ours", hint=f"rm -r '{copy}'")
    if owner is not None and owner != context.home.root and owner.is_dir():
        raise ConflictError(
            f"OpenClaw already has the memory of another home ({owner})",
            hint=f"LORE_HOME='{owner}' lore uninstall openclaw",
        )


def _public_is_on(context: Context, settings: Plain) -> bool:
    found, entry = look_up(settings, ("plugins", "entries", PUBLIC_PLUGIN))
    is_off = look_up(entry, ("enabled",)) == (True, False)
    is_there = (folder(context) / "extensions" / PUBLIC_PLUGIN / "openclaw.plugin.json").is_file()
    return (found or is_there) and not is_off


def _findings(context: Context, settings: Plain) -> Iterator[Finding]:
    found = [*_file_findings(context), *_entry_findings(entry_of(context, settings)), *_rule_findings(settings)]
    yield from found
    if _public_is_on(context, settings):
        text = "The public Lore plugin (lore) is in OpenClaw too: two memories answer each prompt"
        yield Finding("two_memories", "error", text, f"openclaw plugins uninstall {PUBLIC_PLUGIN} --force")
    if not found and context.receipt is not None and context.receipt.state == "installed":
        yield from _program_findings(context)


def _file_findings(context: Context) -> Iterator[Finding]:
    if not extension(context).is_dir():
        yield Finding("not_registered", "error", "OpenClaw does not have the memory plugin", FIX)
        return
    for path in _stale_copies(context):
        yield Finding("plugin_file", "error", f"{path} is not this release's, or was changed", FIX)


def _entry_findings(entry: Plain) -> Iterator[Finding]:
    if look_up(entry, ("enabled",)) != (True, True):
        yield Finding("disabled", "error", f"The plugin {PLUGIN} is not enabled in OpenClaw", FIX)
    if look_up(entry, ("hooks", "allowConversationAccess")) != (True, True):
        text = f"OpenClaw lets the plugin {PLUGIN} see no conversation (hooks.allowConversationAccess), so nothing is recalled"
        yield Finding("not_granted", "error", text, FIX)
    if look_up(entry, ("hooks", "allowPromptInjection")) == (True, False):
        text = f"OpenClaw's settings forbid the plugin {PLUGIN} to add to prompts (hooks.allowPromptInjection)"
        fix = f"openclaw config unset {ENTRY_NAME}.hooks.allowPromptInjection"
        yield Finding("injection_off", "warning", text, fix, by_person=True)


def _rule_findings(settings: Plain) -> Iterator[Finding]:
    """What the user's rules for all plugins and tools do to ours."""
    plugins = {name: look_up(settings, ("plugins", name))[1] for name in ("enabled", "allow", "deny")}
    allow, deny = plugins["allow"], plugins["deny"]
    shut_out = isinstance(allow, list) and allow and PLUGIN not in allow
    if plugins["enabled"] is False or shut_out or (isinstance(deny, list) and PLUGIN in deny):
        text = f"OpenClaw's rules for plugins (plugins.enabled, allow, deny) leave {PLUGIN} out"
        yield Finding("plugins_off", "error", text, "openclaw config get plugins", by_person=True)
    _, tools = look_up(settings, ("tools", "allow"))
    if isinstance(tools, list) and tools and not {PLUGIN, "*", "group:plugins"} & set(map(str, tools)):
        text = "OpenClaw's list of allowed tools (tools.allow) has none of memory's"
        yield Finding("tools_off", "warning", text, f"add {PLUGIN!r} to tools.allow", by_person=True)


def _program_findings(context: Context) -> Iterator[Finding]:
    """What the program itself says of the plugin, which it loads for that."""
    if context.which("openclaw") is None:
        return
    yield from age_findings("openclaw", detect(context, "openclaw", folder(context)).version)
    try:
        answer = hosts.run(("openclaw", "plugins", "inspect", PLUGIN, "--runtime", "--json"), context.environment)
        seen = parse(answer.output.encode(), name="openclaw plugins inspect").plain
    except LoreError:
        return  # a program that does not answer says nothing about us
    _, status = look_up(seen, ("plugin", "status"))
    _, hooks = look_up(seen, ("typedHooks",))
    names = [look_up(each, ("name",))[1] for each in hooks] if isinstance(hooks, list) else []
    if answer.code == 0 and (status != "loaded" or "before_prompt_build" not in names):
        text = "OpenClaw does not run the memory plugin's hooks (openclaw plugins inspect lorehooks --runtime)"
        yield Finding("not_loaded", "error", text, FIX)
