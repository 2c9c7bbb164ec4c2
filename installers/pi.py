"""Pi: one extension file in its agent folder, which it finds there by itself; its settings stay untouched."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from lorehooks.clients.runtimes import RUNTIMES
from lorehooks.core.errors import ConflictError
from lorehooks.installers import files
from lorehooks.installers.jsondata import look_up
from lorehooks.installers.jsontext import Plain, parse
from lorehooks.installers.plan import Context, Detection, Finding, PlaceFile, Plan
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

PUBLIC_NAME = "lore"
"""The folder of the public Lore product's extension."""


class Pi:
    """See the module."""

    name = "pi"
    questions = ()

    def detect(self, context: Context) -> Detection:
        return detect(context, self.name, folder(context))

    def plan(self, context: Context) -> Plan:
        public = public_extension(context)
        if public is not None:
            raise ConflictError(
                f"The public Lore extension ({public}) is in Pi, and both would answer each prompt",
                hint=f"rm -r '{public}'",
            )
        refuse_other_home(self.name, extension_path(context), context)
        return Plan(
            files=(PlaceFile(extension_path(context), plugin_file("pi.js", context.home)),),
            notes=("Pi gets its memory from its next start on.",),
        )

    def leftovers(self, context: Context) -> Plan:
        return Plan(files=tuple(lost_files((extension_path(context),), context)))

    def check(self, context: Context) -> tuple[Finding, ...]:
        return tuple(_findings(context))


def folder(context: Context) -> Path:
    """Pi's agent folder: `PI_CODING_AGENT_DIR` or `~/.pi/agent`."""
    return RUNTIMES["pi"].home(context.environment).absolute()


def extension_path(context: Context) -> Path:
    return folder(context) / "extensions" / FILE_NAME


def public_extension(context: Context) -> Path | None:
    """The public Lore product's extension, a folder or a link to one."""
    path = folder(context) / "extensions" / PUBLIC_NAME
    return path if (path / "index.ts").is_file() or (path / "package.json").is_file() else None


def _findings(context: Context) -> Iterator[Finding]:
    ours = extension_path(context)
    yield from file_findings("pi", PlaceFile(ours, plugin_file("pi.js", context.home)))
    public = public_extension(context)
    if public is not None:
        text = f"The public Lore extension ({public}) is there too: two memories answer each prompt"
        yield Finding("two_memories", "error", text, f"rm -r '{public}'")
    for other in _named_extensions(context):
        if other != ours and other.is_file() and is_ours(other, context.home):
            text = f"Pi's settings name {other}, a second copy of the extension"
            yield Finding("registered_twice", "error", text, f"remove it from {folder(context) / 'settings.json'}")
    if context.receipt is not None and context.receipt.state == "installed":
        yield from age_findings("pi", detect(context, "pi", folder(context)).version)


def _named_extensions(context: Context) -> Iterator[Path]:
    _, named = look_up(_settings(folder(context) / "settings.json"), ("extensions",))
    for each in named if isinstance(named, list) else ():
        if isinstance(each, str) and each:
            yield folder(context) / Path(each).expanduser()


def _settings(path: Path) -> Plain:
    """A file of Pi's settings; nothing when it is not there or cannot be read, which is Pi's own worry."""
    try:
        return parse(files.read(path).content or b"", name=path).plain
    except RefusedError:
        return {}
