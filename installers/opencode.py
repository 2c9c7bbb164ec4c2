"""OpenCode: one plugin file in its configuration folder, which it finds there by itself; its settings stay untouched.

With any plugin in place OpenCode waits at each start for `npm install` in all its configuration folders, which offline takes
70 seconds. A `package.json` and an `.npmrc` that forbids further tries make that 0 (seen with 1.18.33): they are put where
there is none, and are OpenCode's own once it has written to them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from lorehooks.clients.runtimes import RUNTIMES
from lorehooks.core.errors import ConflictError, LoreError
from lorehooks.installers import files, hosts
from lorehooks.installers.claudecode import PLUGIN as CLAUDE_PLUGIN
from lorehooks.installers.edits import Put
from lorehooks.installers.jsondata import look_up
from lorehooks.installers.jsontext import Plain, parse
from lorehooks.installers.plan import Context, Detection, EditFile, Finding, PlaceFile, Plan
from lorehooks.installers.pluginfiles import plugin_file
from lorehooks.installers.pluginhost import (
    FILE_NAME,
    age_findings,
    detect,
    file_findings,
    is_ours,
    lost_files,
    refuse_other_home,
)
from lorehooks.installers.problem import RefusedError

PACKAGE = b"{}\n"
NPM_SETTINGS = b"fetch-retries=0\n"
PUBLIC_MARK = b"@lore-managed-opencode-plugin"
COMPATIBILITY = ("oh-my-openagent.jsonc", "oh-my-openagent.json", "oh-my-opencode.jsonc", "oh-my-opencode.json")
"""Settings of the plugin that brings Claude Code's plugins into OpenCode. It reads the first of these that is there."""
OVERRIDE = ("claude_code", "plugins_override", CLAUDE_PLUGIN)
FIX = "lore install opencode"


class OpenCode:
    """See the module."""

    name = "opencode"
    questions = ()

    def detect(self, context: Context) -> Detection:
        return detect(context, self.name, folder(context))

    def plan(self, context: Context) -> Plan:
        for public in _public_plugins(context):
            raise ConflictError(
                f"The public Lore plugin ({public}) is in OpenCode, and both would answer each prompt",
                hint=f"rm '{public}'",
            )
        ours = plugin_path(context)
        refuse_other_home(self.name, ours, context)
        return Plan(
            files=(PlaceFile(ours, plugin_file("opencode.js", context.home)), *_offline_files(context)),
            edits=tuple(_compatibility_edits(context)),
            notes=("OpenCode gets its memory from its next start on.",),
        )

    def leftovers(self, context: Context) -> Plan:
        places = tuple(place / kind / FILE_NAME for place in folders(context) for kind in ("plugins", "plugin"))
        return Plan(files=tuple(lost_files(places, context)))

    def check(self, context: Context) -> tuple[Finding, ...]:
        return tuple(_findings(context))


def folder(context: Context) -> Path:
    """The configuration folder that OpenCode always reads: `$XDG_CONFIG_HOME/opencode` or `~/.config/opencode`."""
    return RUNTIMES["opencode"].home(context.environment).absolute()


def folders(context: Context) -> tuple[Path, ...]:
    """The same, and the one that `OPENCODE_CONFIG_DIR` adds to it (it takes the place of none)."""
    added = context.environment.get("OPENCODE_CONFIG_DIR", "").strip()
    return tuple(dict.fromkeys((folder(context), *((Path(added).expanduser().absolute(),) if added else ()))))


def plugin_path(context: Context) -> Path:
    """Where the plugin goes: a file in a second folder would run a second time."""
    return folder(context) / "plugins" / FILE_NAME


def _offline_files(context: Context) -> Iterator[PlaceFile]:
    for place in folders(context):
        if place != folder(context) and not place.is_dir():
            continue
        for name, content in (("package.json", PACKAGE), (".npmrc", NPM_SETTINGS)):
            path = place / name
            found = files.read(path).content
            noted = context.receipt is not None and context.receipt.placed_note(path) is not None
            if found is None or (noted and found == content):
                yield PlaceFile(path, content)


def _compatibility_edits(context: Context) -> Iterator[EditFile]:
    """Keep Claude Code's plugin of ours out of OpenCode, where a plugin imports those: one memory is enough."""
    path = _compatibility_file(context)
    if path is not None and isinstance(_settings(path), dict):
        yield EditFile(path, (Put(OVERRIDE, False),), "jsonc")


def _compatibility_file(context: Context) -> Path | None:
    paths = (folder(context) / name for name in COMPATIBILITY)
    return next((path for path in paths if path.is_file()), None)


def _public_plugins(context: Context) -> Iterator[Path]:
    for place in folders(context):
        for kind in ("plugins", "plugin"):
            for path in sorted((place / kind).glob("*.[jt]s")):
                try:
                    with path.open("rb") as file:
                        if PUBLIC_MARK in file.read(4096):
                            yield path
                except OSError:
                    continue


def _findings(context: Context) -> Iterator[Finding]:
    ours = plugin_path(context)
    found = list(file_findings("opencode", PlaceFile(ours, plugin_file("opencode.js", context.home))))
    found += [finding for place in folders(context) for finding in _offline_findings(place)]
    yield from found
    for place in folders(context):
        for other in (place / kind / FILE_NAME for kind in ("plugins", "plugin")):
            if other != ours and other.is_file() and is_ours(other, context.home):
                yield Finding("registered_twice", "warning", f"{other} is a second copy of the plugin", f"rm '{other}'")
    for public in _public_plugins(context):
        text = f"The public Lore plugin ({public}) is there too: two memories answer each prompt"
        yield Finding("two_memories", "error", text, f"rm '{public}'")
    if context.environment.get("OPENCODE_PURE", "") not in ("", "0", "false"):
        text = "OPENCODE_PURE is set: OpenCode loads no plugin, so no memory is injected"
        yield Finding("plugins_off", "warning", text, "unset OPENCODE_PURE")
    yield from _compatibility_findings(context)
    yield from _server_findings(context)
    if not found and context.receipt is not None and context.receipt.state == "installed":
        yield from _program_findings(context, ours)


def _offline_findings(place: Path) -> Iterator[Finding]:
    if not place.is_dir():
        return
    try:
        settings = (place / ".npmrc").read_text(encoding="utf-8", errors="replace")
    except OSError:
        settings = ""
    if not (place / "package.json").is_file() or not re.search(r"(?m)^\s*fetch-retries\s*=\s*0\s*$", settings):
        text = f"Without network OpenCode takes a minute to start: npm tries again and again in {place}"
        fix = FIX if not settings else f"echo fetch-retries=0 >> '{place / '.npmrc'}'"
        yield Finding("slow_offline", "info", text, fix)


def _compatibility_findings(context: Context) -> Iterator[Finding]:
    path = _compatibility_file(context)
    if path is None:
        return
    settings = _settings(path)
    if settings is None:
        text = f"{path} cannot be read, so Claude Code's plugins may run in OpenCode as well"
        yield Finding("unreadable", "warning", text, f"mend {path}")
    elif look_up(settings, OVERRIDE) != (True, False):
        text = f"{path} lets Claude Code's memory tools into OpenCode beside its own"
        yield Finding("registered_twice", "warning", text, FIX)


def _server_findings(context: Context) -> Iterator[Finding]:
    """A Lore MCP server in OpenCode's settings gives it the tools a second time."""
    for path in (place / f"opencode.{kind}" for place in folders(context) for kind in ("json", "jsonc")):
        _, servers = look_up(_settings(path) or {}, ("mcp",))
        for name, server in servers.items() if isinstance(servers, dict) else ():
            _, url = look_up(server, ("url",))
            _, command = look_up(server, ("command",))
            words = " ".join(map(str, command)) if isinstance(command, list) else ""
            remote = isinstance(url, str) and url.split("?")[0].rstrip("/").endswith("/api/mcp")
            if remote or str(context.home.bin / "bridge.py") in words:
                text = f"{path} also has the Lore MCP server {name!r}: OpenCode offers each memory tool twice"
                yield Finding("registered_twice", "warning", text, f"remove mcp.{name} from {path}")


def _program_findings(context: Context, ours: Path) -> Iterator[Finding]:
    """What the program itself says it loads.

    Only asked where it has run before, since it then makes no new folders, and where it need not wait for npm: stopped while
    it waits, it would leave a lock that its next start waits for.
    """
    detection = detect(context, "opencode", folder(context))
    if detection.program is None or not (folder(context) / ".gitignore").is_file():
        return
    yield from age_findings("opencode", detection.version)
    try:
        answer = hosts.run((str(detection.program), "debug", "info"), context.environment, seconds=90)
    except LoreError:
        return  # a program that does not answer says nothing about us
    listed = any(name in answer.output for name in (str(ours), ours.as_uri()))
    if answer.code == 0 and "plugins:" in answer.output and not listed:
        yield Finding("not_loaded", "error", f"OpenCode does not load {ours} (opencode debug info)", FIX)


def _settings(path: Path) -> Plain | None:
    """A JSONC file of the host's; empty when it is not there, None when it cannot be read."""
    try:
        return parse(files.read(path).content or b"", name=path, dialect="jsonc").plain
    except RefusedError:
        return None
