"""What lies in Hermes's plugins folder: the files of one of our two forms, and where Hermes keeps its homes.

A home is a profile's own folder with settings and plugins of its own. `hermes` without `--profile` takes the one that
`HERMES_HOME` names if that is a profile, else the one that the user has chosen (`active_profile` in the root), else the root.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from lorehooks import hooks
from lorehooks.clients.runtimes import RUNTIMES
from lorehooks.core.home import Home
from lorehooks.installers import files
from lorehooks.installers.plan import Context, PlaceFile
from lorehooks.installers.problem import RefusedError

NAME = "lorehooks"
"""Of the folder, which makes it the provider's name."""
SOURCES = Path(hooks.__file__).parent / "hermes"
Form = Literal["provider", "beside"]
"""In the one slot for a memory provider, or as a plugin with hooks beside the provider that holds it."""
MAIN = {"provider": "__init__.py", "beside": "beside.py"}
NAMES = ("__init__.py", "transport.py", "plugin.yaml")
_HOME = '"@LORE_HOME@"'
_PROFILE = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")


def homes(context: Context) -> tuple[Path, ...]:
    """The home in force, then those that an earlier installation noted and that are still there."""
    noted = context.receipt.placed if context.receipt else ()
    earlier = [note.path.parents[2] for note in noted if note.path.name == NAMES[0]]
    return tuple(dict.fromkeys((home_in_force(context), *(home for home in earlier if home.is_dir()))))


def home_in_force(context: Context) -> Path:
    """The home that `hermes` would take."""
    named = RUNTIMES["hermes"].home(context.environment).absolute()
    if named.parent.name == "profiles":
        return named
    usual = (context.user_home / ".hermes").absolute()
    root = usual if named.is_relative_to(usual) else named
    try:
        chosen = (root / "active_profile").read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError):
        chosen = ""
    profile = root / "profiles" / chosen
    return profile if chosen != "default" and _PROFILE.fullmatch(chosen) and profile.is_dir() else named


def pinned(home: Path) -> tuple[str, ...]:
    """The beginning of a command of Hermes's that is about this home, whatever the user's environment says then."""
    profile = () if home.parent.name == "profiles" else ("--profile", "default")
    return ("env", f"HERMES_HOME={home}", "hermes", *profile)


def folder(home: Path) -> Path:
    return home / "plugins" / NAME


def settings_file(home: Path) -> Path:
    return home / "config.yaml"


def plugin_files(home: Path, lore: Home, form: Form) -> Iterator[PlaceFile]:
    """All files of our folder in a home."""
    for name in NAMES:
        content = (SOURCES / (MAIN[form] if name == NAMES[0] else name)).read_text(encoding="utf-8")
        if name == "transport.py":
            content = content.replace(_HOME, ascii(str(lore.root.absolute())))
        yield PlaceFile(folder(home) / name, content.encode())


def named_home(home: Path) -> Path | None:
    """The home of ours that the folder there speaks for, of any release; None where there is no folder of ours."""
    try:
        content = files.read(folder(home) / "transport.py").content or b""
        found = re.search(r"^LORE_HOME = (.+?)(?:  #.*)?$", content.decode("utf-8", "replace"), re.MULTILINE)
        path = ast.literal_eval(found[1]) if found else None
    except (RefusedError, ValueError, SyntaxError):
        return None
    return Path(path) if isinstance(path, str) else None
