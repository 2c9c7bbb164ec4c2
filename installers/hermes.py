"""Hermes: a folder of ours among its plugins, in the slot of the memory provider, or beside whoever holds that.

The provider is set by `hermes config set`, which knows what an administrator has pinned but writes the whole file anew; the
same entry is also an edit, which brings the user's own form back (`docs/decisions/0013-yaml.md`).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from lorehooks.core.errors import ConflictError, LoreError
from lorehooks.installers import files, hosts, pluginhost
from lorehooks.installers.edits import Append, Delete, Edit, Put, Remove
from lorehooks.installers.edits import Path as Way
from lorehooks.installers.hermesfiles import (
    NAME,
    NAMES,
    Form,
    folder,
    home_in_force,
    homes,
    named_home,
    pinned,
    plugin_files,
    settings_file,
)
from lorehooks.installers.jsondata import look_up
from lorehooks.installers.jsontext import Plain
from lorehooks.installers.plan import (
    Context,
    Detection,
    EditFile,
    Finding,
    HostCommand,
    PlaceFile,
    Plan,
    Touched,
)
from lorehooks.installers.problem import RefusedError
from lorehooks.installers.yamlformat import YamlFormat

FORMAT = "yaml"
SLOT: Way = ("memory", "provider")
ENABLED: Way = ("plugins", "enabled")
DISABLED: Way = ("plugins", "disabled")
FIX = "lore install hermes"
CACHE = "__pycache__"
DEAD_PROXY = "http://127.0.0.1:9"


class Hermes:
    """See the module."""

    name = "hermes"
    questions = ()

    def detect(self, context: Context) -> Detection:
        """Look for the program. Its `--version` asks the network for updates, which must neither delay us nor happen."""
        dead = dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"), DEAD_PROXY)
        quiet = replace(context, environment={**context.environment, **dead})
        found = pluginhost.detect(quiet, self.name, home_in_force(context))
        return replace(found, version=next(iter(found.version.splitlines()), ""))

    def plan(self, context: Context) -> Plan:
        places: list[PlaceFile] = []
        commands: list[HostCommand] = []
        edits: list[EditFile] = []
        notes = ["Hermes gets its memory from its next session on."]
        for home in homes(context):
            try:
                settings = _read(home)
            except RefusedError as error:
                error.snippet = YamlFormat().snippet((Put(SLOT, NAME),))
                raise
            holder = _holder(settings)
            form: Form = "beside" if holder else "provider"
            _refuse_others(context, home, holder)
            places += plugin_files(home, context.home, form)
            entry: Edit = Append(ENABLED, NAME) if holder else Put(SLOT, NAME)
            edits.append(EditFile(settings_file(home), (entry,), FORMAT))
            if holder:
                notes.append(
                    f"{holder} stays Hermes's memory provider ({settings_file(home)}), and lorehooks runs beside it. "
                    f"To give lorehooks the slot: hermes memory off, then {FIX}."
                )
            else:
                commands += _commands(context, home, settings)
        caches = tuple(folder(home) / CACHE for home in homes(context))
        return Plan(tuple(places), tuple(commands), tuple(edits), folders=caches, notes=tuple(notes))

    def leftovers(self, context: Context) -> Plan:
        edits: list[EditFile] = []
        folders: list[Path] = []
        for home in homes(context):
            named = named_home(home)
            if named not in (None, context.home.root):
                continue
            if named:
                folders += _lost_folders(context, folder(home))
            try:
                entries = tuple(_entries(_read(home)))
            except RefusedError:
                entries = ()
            if entries:
                edits.append(EditFile(settings_file(home), entries, FORMAT))
        return Plan(edits=tuple(edits), folders=tuple(folders))

    def check(self, context: Context) -> tuple[Finding, ...]:
        found = [finding for home in homes(context) for finding in _findings(context, home)]
        if _is_installed(context):
            found += pluginhost.age_findings(self.name, self.detect(context).version)
        return tuple(found)


def _lost_folders(context: Context, plugin: Path) -> Iterator[Path]:
    """A folder of ours of which no receipt knows any more, unless there is something else in it; otherwise its cache."""
    noted = context.receipt is not None and context.receipt.placed_note(plugin / NAMES[0]) is not None
    if not noted and {path.name for path in plugin.iterdir()} <= {*NAMES, CACHE}:
        yield plugin
    elif (plugin / CACHE).is_dir():
        yield plugin / CACHE


def _read(home: Path) -> Plain:
    """The settings of a home; one without any is an empty object. Raises RefusedError."""
    path = settings_file(home)
    return files.persist(lambda: YamlFormat().read(files.read(path).content or b"", path))


def _holder(settings: Plain) -> str:
    """The other provider that holds the slot; empty when it is free or ours."""
    _, provider = look_up(settings, SLOT)
    return provider.strip() if isinstance(provider, str) and provider.strip() != NAME else ""


def _lists(settings: Plain, way: Way) -> bool:
    """Whether a list of the settings names us."""
    _, names = look_up(settings, way)
    return isinstance(names, list) and NAME in names


def _entries(settings: Plain) -> Iterator[Edit]:
    """What takes our entries out of the settings."""
    if look_up(settings, SLOT) == (True, NAME):
        yield Delete(SLOT, NAME)
    if _lists(settings, ENABLED):
        yield Remove(ENABLED, NAME)


def _commands(context: Context, home: Path, settings: Plain) -> Iterator[HostCommand]:
    """Only where Hermes has been set up: it would make the folders of a new home for this."""
    if context.which("hermes") is not None and settings_file(home).is_file():
        yield HostCommand(
            (*pinned(home), "config", "set", ".".join(map(str, SLOT)), NAME),
            needed=look_up(settings, SLOT) != (True, NAME),
            touches=(Touched(settings_file(home), FORMAT),),
        )


def _refuse_others(context: Context, home: Path, holder: str) -> None:
    """Two memories must not answer one prompt. Raises ConflictError with the command that removes the other."""
    if holder and _is_public(home / "plugins" / holder):
        raise ConflictError(
            "The public Lore provider is active in Hermes, and both would answer each prompt",
            hint=f"{_shell(home)} memory off",
        )
    named = named_home(home)
    if named is None:
        return
    noted = context.receipt is not None and context.receipt.placed_note(folder(home) / NAMES[0]) is not None
    if named != context.home.root and named.is_dir():
        raise ConflictError(
            f"{folder(home)} gives Hermes the memory of another home ({named})",
            hint=f"LORE_HOME='{named}' lore uninstall hermes",
        )
    if not noted:
        raise ConflictError(f"{folder(home)} is left from an earlier installation", hint="lore uninstall hermes")


def _is_public(plugin: Path) -> bool:
    """Whether a provider's folder is the public Lore product's."""
    try:
        return "\nname: lore\n" in "\n" + (plugin / "plugin.yaml").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False


def _shell(home: Path) -> str:
    """How a person calls Hermes for a home."""
    return f"hermes --profile {home.name}" if home.parent.name == "profiles" else "hermes"


# --- what is the case


def _findings(context: Context, home: Path) -> Iterator[Finding]:
    try:
        settings = _read(home)
    except RefusedError as error:
        yield Finding("unreadable", "error", f"Hermes's settings cannot be read: {error.message}")
        return
    found = [*_file_findings(context, home), *_entry_findings(context, home, settings)]
    yield from found
    yield from _server_findings(context, home, settings)
    if _is_installed(context) and settings_file(home).is_file() and not any(each.level == "error" for each in found):
        yield from _program_findings(context, home)


def _is_installed(context: Context) -> bool:
    """Whether the program itself can tell something of an installation that is through."""
    installed = context.receipt is not None and context.receipt.state == "installed"
    return installed and context.which("hermes") is not None


def _form(context: Context, home: Path) -> Form:
    """The form of the files that are there."""
    main = next(plugin_files(home, context.home, "beside"))
    return "beside" if files.read(main.path).content == main.content else "provider"


def _file_findings(context: Context, home: Path) -> Iterator[Finding]:
    for file in plugin_files(home, context.home, _form(context, home)):
        content = files.read(file.path).content
        if content is None:
            yield Finding(
                "not_registered", "error", f"Hermes does not have all of the memory plugin ({file.path})", FIX
            )
        elif content != file.content:
            yield Finding("plugin_file", "error", f"{file.path} is not this release's, or was changed", FIX)


def _entry_findings(context: Context, home: Path, settings: Plain) -> Iterator[Finding]:
    holder, path = _holder(settings), settings_file(home)
    if holder and _is_public(home / "plugins" / holder):
        text = "The public Lore provider is active in Hermes: two memories answer each prompt"
        yield Finding("two_memories", "error", text, f"{_shell(home)} memory off")
    if _form(context, home) == "provider":
        if holder:
            text = f"{holder} holds Hermes's memory slot by now, so our provider is not loaded ({path})"
            yield Finding("slot_taken", "error", text, FIX)
        elif look_up(settings, SLOT) != (True, NAME):
            yield Finding("not_registered", "error", f"{path} does not name lorehooks as memory provider", FIX)
        return
    if not _lists(settings, ENABLED):
        yield Finding("not_registered", "error", f"{path} does not enable the plugin lorehooks", FIX)
    if _lists(settings, DISABLED):
        text = f"{path} has lorehooks among the disabled plugins"
        yield Finding("disabled", "error", text, f"{_shell(home)} plugins enable {NAME}", by_person=True)
    if not holder:
        text = "Hermes's memory slot is free by now, and lorehooks still runs as a plugin beside it"
        yield Finding("slot_free", "info", text, FIX)


def _server_findings(context: Context, home: Path, settings: Plain) -> Iterator[Finding]:
    """A Lore MCP server in Hermes's settings gives it the tools a second time, as words of a stranger."""
    _, servers = look_up(settings, ("mcp_servers",))
    for name, server in servers.items() if isinstance(servers, Mapping) else ():
        _, url = look_up(server, ("url",))
        remote = isinstance(url, str) and url.split("?")[0].rstrip("/").endswith("/api/mcp")
        if remote or str(context.home.bin / "bridge.py") in json.dumps(server, default=str):
            text = f"{settings_file(home)} also has the Lore MCP server {name!r}: Hermes offers each memory tool twice"
            yield Finding("registered_twice", "warning", text, f"{_shell(home)} mcp remove {name}")


def _program_findings(context: Context, home: Path) -> Iterator[Finding]:
    """What Hermes itself says it loads."""
    is_provider = _form(context, home) == "provider"
    words = ("memory", "status") if is_provider else ("plugins", "list", "--json", "--user")
    try:
        answer = hosts.run((*pinned(home), *words), context.environment)
    except LoreError:
        return  # a program that does not answer says nothing about us
    if answer.code:
        return
    if is_provider:
        said = " ".join(answer.output.split())
        loaded = f"Provider: {NAME}" in said and "Status: available" in said
    else:
        loaded = _is_enabled(answer.output)
    if not loaded:
        text = f"Hermes does not load {folder(home)} (hermes {' '.join(words)})"
        yield Finding("not_loaded", "error", text, FIX)


def _is_enabled(listed: str) -> bool:
    try:
        plugins = json.loads(listed)
    except ValueError:
        return True  # a form of a later release, which says nothing
    named = [each for each in plugins if isinstance(each, dict) and each.get("name") == NAME]
    return any(each.get("status") == "enabled" for each in named)
