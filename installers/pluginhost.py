"""What the hosts that load one plugin file of ours have in common: looking for the program, and for whose file is there."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

from lorehooks.clients.runtimes import RUNTIMES
from lorehooks.core.errors import ConflictError, LoreError
from lorehooks.core.home import Home
from lorehooks.installers import files, hosts, pluginfiles
from lorehooks.installers.plan import Context, Detection, Finding, PlaceFile
from lorehooks.installers.registered import for_home

FILE_NAME = "lorehooks.js"
"""Not the public Lore product's name, so that neither takes the other's file for its own."""


def detect(context: Context, name: str, folder: Path) -> Detection:
    """Look for a runtime. Its `--version` runs in a home of its own: some programs make folders even for that."""
    program = next(filter(None, map(context.which, RUNTIMES[name].programs)), None)
    if program is None:
        return Detection(None, folder)
    kept = {key: value for key, value in context.environment.items() if not key.startswith("XDG_")}
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as scratch:
        try:
            moved = {"HOME": scratch, RUNTIMES[name].home_variable: scratch}
            answer = hosts.run((str(program), "--version"), {**kept, **moved}, seconds=20)
        except LoreError as error:
            return Detection(program, folder, problem=error.message)
    if answer.code:
        return Detection(program, folder, problem=f"{program.name} --version failed: {hosts.report(answer)}")
    return Detection(program, folder, version=answer.output.strip() or answer.errors.strip())


def refuse_other_home(name: str, path: Path, context: Context) -> None:
    """Raise ConflictError when the file at our place speaks for another home, or for this one without a receipt."""
    content = files.read(path).content
    named = pluginfiles.home_named_in(content or b"")
    if named is None or (context.receipt is not None and context.receipt.placed_note(path) is not None):
        return
    if named != context.home.root and named.is_dir():
        raise ConflictError(
            f"{path} gives this runtime the memory of another home ({named})",
            hint=for_home(named, f"lore uninstall {name}"),
        )
    raise ConflictError(f"{path} is left from an earlier installation", hint=f"lore uninstall {name}")


def lost_files(paths: tuple[Path, ...], context: Context) -> Iterator[PlaceFile]:
    """Our files of which no receipt knows any more."""
    for path in paths:
        noted = context.receipt is not None and context.receipt.placed_note(path) is not None
        if not noted and path.is_file() and is_ours(path, context.home):
            yield PlaceFile(path, b"")


def is_ours(path: Path, home: Home) -> bool:
    """Whether a plugin file speaks for this home."""
    try:
        return pluginfiles.home_named_in(path.read_bytes()) == home.root
    except OSError:
        return False


def file_findings(name: str, wanted: PlaceFile) -> Iterator[Finding]:
    """What is wrong with the plugin file itself."""
    label, fix = RUNTIMES[name].label, f"lore install {name}"
    content = files.read(wanted.path).content
    if content is None:
        yield Finding("not_registered", "error", f"{label} does not have the memory plugin ({wanted.path})", fix)
    elif content != wanted.content:
        yield Finding("plugin_file", "error", f"{wanted.path} is not this release's, or was changed", fix)


def age_findings(name: str, version: str) -> Iterator[Finding]:
    """A word about a release older than any that was tried."""
    runtime = RUNTIMES[name]
    here, seen = hosts.version_in(version), hosts.version_in(runtime.oldest_seen)
    if here is not None and seen is not None and here < seen:
        text = f"{runtime.label} {version} is older than {runtime.oldest_seen}, the oldest that was tried"
        yield Finding("untried_version", "warning", text)
