"""dsh: one plugin file in its home, and one row in `cordis.patch.yml` there, which counts for every profile.

dsh refuses to start when that file is not plainly a list, and before 0.2 also when a plugin file is missing. So its own
`--dump-config` reads the list before and after in a home set aside, and the row goes before the file does.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote, urlsplit

from lorehooks.clients.runtimes import RUNTIMES
from lorehooks.core.errors import ConflictError, LoreError
from lorehooks.installers import files, hosts
from lorehooks.installers.edits import Append, Remove
from lorehooks.installers.formats import FORMATS
from lorehooks.installers.patchlist import ROWS, inserted, plugin_row
from lorehooks.installers.plan import Context, Detection, EditFile, Finding, PlaceFile, Plan
from lorehooks.installers.pluginfiles import plugin_file
from lorehooks.installers.pluginhost import age_findings, detect, file_findings, lost_files, refuse_other_home
from lorehooks.installers.problem import RefusedError

PLUGIN_NAME = "lorehooks.mjs"
PATCH_NAME = "cordis.patch.yml"
ROW_ID = "lorehooks"
FORMAT = "dsh"
FIX = "lore install dsh"
_MOUNTED = re.compile(rf"""^- id: {ROW_ID}\n(?P<row>(?:  .*\n)*)""", re.MULTILINE)
_NAME = re.compile(r"""^  name: (?:>-\n    )?["']?(?P<url>file:[^\s"']+)""", re.MULTILINE)


class Dsh:
    """See the module."""

    name = "dsh"
    questions = ()

    def detect(self, context: Context) -> Detection:
        return detect(context, self.name, folder(context))

    def plan(self, context: Context) -> Plan:
        plugin, patches = folder(context) / PLUGIN_NAME, folder(context) / PATCH_NAME
        refuse_other_home(self.name, plugin, context)
        row = plugin_row(plugin, ROW_ID)
        stale = tuple(Remove(ROWS, other) for other in own_rows(patches) if other != row)
        edit = EditFile(patches, (*stale, Append(ROWS, row)), FORMAT)
        _check(edit, context)
        return Plan(
            files=(PlaceFile(plugin, plugin_file("dsh.mjs", context.home)),),
            edits=(edit,),
            notes=("dsh gets its memory from its next start on.",),
        )

    def leftovers(self, context: Context) -> Plan:
        patches = folder(context) / PATCH_NAME
        try:
            rows = own_rows(patches)
        except RefusedError:
            rows = ()
        edits = tuple(Remove(ROWS, row) for row in rows)
        return Plan(
            files=tuple(lost_files((folder(context) / PLUGIN_NAME,), context)),
            edits=(EditFile(patches, edits, FORMAT),) if edits else (),
        )

    def check(self, context: Context) -> tuple[Finding, ...]:
        return tuple(_findings(context))


def folder(context: Context) -> Path:
    """The home of dsh: `DSH_HOME` or `~/.dsh`."""
    return RUNTIMES["dsh"].home(context.environment).absolute()


def own_rows(patches: Path) -> tuple[str, ...]:
    """The rows of ours in a list, of any release. Raises RefusedError for a file that cannot be read."""
    plain = FORMATS[FORMAT].read(files.read(patches).content or b"", patches)
    rows = plain.get("lorehooks") if isinstance(plain, dict) else None
    return tuple(row for row in rows if isinstance(row, str)) if isinstance(rows, list) else ()


def _check(edit: EditFile, context: Context) -> None:
    """Raise LoreError unless the list is one that dsh reads as it is and as it will be."""
    kind, path = FORMATS[edit.format], edit.path
    content = files.read(path).content or b""
    try:
        plain = kind.read(content, path)
        rest = str(plain.get("rest", "")) if isinstance(plain, dict) else ""
        if inserted(content, path, ROW_ID) > len(own_rows(path)):
            raise ConflictError(f"{path} has a row {ROW_ID!r} that is not ours", hint=f"remove it from {path}")
        after = kind.apply(content, edit.edits, path).content
    except RefusedError as error:
        error.snippet = kind.snippet(edit.edits)
        raise
    if after == content:
        return
    if re.search("^-", rest, re.MULTILINE):
        _let_dsh_read(content, path, context)
    listed = _let_dsh_read(after, path, context)
    if listed and _mounted(listed, folder(context) / PLUGIN_NAME) is None:
        raise RefusedError(path, "dsh would not mount a row at its end", snippet=kind.snippet(edit.edits))


def _let_dsh_read(content: bytes, path: Path, context: Context) -> str:
    """What dsh makes of a list, as `--dump-config` prints it; empty where it is not on the PATH. Raises RefusedError."""
    if context.which("dsh") is None:
        return ""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as scratch:
        (Path(scratch) / PATCH_NAME).write_bytes(content)
        environment = {**context.environment, "HOME": scratch, "DSH_HOME": scratch}
        answer = hosts.run(("dsh", "--profile", "headless", "--dump-config"), environment)
    if answer.code:
        reason = hosts.report(answer).replace(str(Path(scratch) / PATCH_NAME), path.name)
        raise RefusedError(path, f"dsh itself cannot read it ({reason})", hint=f"mend {path}")
    return answer.output


def _findings(context: Context) -> Iterator[Finding]:
    plugin, patches = folder(context) / PLUGIN_NAME, folder(context) / PATCH_NAME
    yield from file_findings("dsh", PlaceFile(plugin, plugin_file("dsh.mjs", context.home)))
    try:
        rows = own_rows(patches)
    except RefusedError as error:
        yield Finding(
            "unreadable", "error", f"dsh's list of plugins cannot be read: {error.message}", f"mend {patches}"
        )
        return
    if plugin_row(plugin, ROW_ID) not in rows:
        yield Finding("not_registered", "error", f"{patches} has no row for the memory plugin", FIX)
        return
    if len(rows) > 1:
        yield Finding("registered_twice", "error", f"{patches} mounts the memory plugin more than once", FIX)
    if context.receipt is not None and context.receipt.state == "installed":
        yield from _program_findings(context, plugin, patches)


def _program_findings(context: Context, plugin: Path, patches: Path) -> Iterator[Finding]:
    """What the program itself makes of the list."""
    if context.which("dsh") is None:
        return
    yield from age_findings("dsh", detect(context, "dsh", folder(context)).version)
    try:
        listed = _let_dsh_read(files.read(patches).content or b"", patches, context)
    except RefusedError as error:
        yield Finding("unreadable", "error", error.message, f"mend {patches}")
    except LoreError:
        return  # a program that does not answer says nothing about us
    else:
        row = _mounted(listed, plugin)
        if row is None:
            yield Finding("not_loaded", "error", f"dsh does not load {plugin} (dsh --dump-config)", FIX)
        elif re.search("^  disabled: true", row, re.MULTILINE):
            text = f"The plugin {ROW_ID!r} is switched off in {patches}"
            yield Finding("disabled", "warning", text, f"remove `disabled: true` of {ROW_ID} from {patches}")


def _mounted(listed: str, plugin: Path) -> str | None:
    """Our row in what `--dump-config` prints, if it mounts this file."""
    row = _MOUNTED.search(listed)
    named = _NAME.search(row["row"]) if row else None
    return row["row"] if row and named and unquote(urlsplit(named["url"]).path) == str(plugin) else None
