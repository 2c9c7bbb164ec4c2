"""The JavaScript files that go into a host's own folder: one file each, with the shared transport written into it.

Hosts load a single file that may import nothing but `node:` builtins, so the one source of the transport is copied between
two marks of each file. `python -m lorehooks.installers.pluginfiles` does that anew after `transport.mjs` was changed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

from lorehooks import hooks
from lorehooks.core.errors import InvalidError
from lorehooks.core.home import Home

FOLDER = Path(hooks.__file__).parent / "js"
BEGIN = "// >>> transport.mjs, copied by lorehooks.installers.pluginfiles: change it there\n"
END = "// <<< transport.mjs\n"
_HOME = '"@LORE_HOME@"'


def plugin_file(name: str, home: Home) -> bytes:
    """A plugin file as it is installed, such as `opencode.js`: with the home's absolute path in the place kept for it.

    Raises InvalidError for a home whose path JavaScript cannot hold.
    """
    path = str(home.root.absolute())
    try:
        path.encode()
    except UnicodeEncodeError:
        raise InvalidError(
            f"{path!a} is not valid UTF-8, so no plugin file can name it", hint="set LORE_HOME"
        ) from None
    source = (FOLDER / name).read_text(encoding="utf-8")
    before, found, after = source.partition(_HOME)
    if not found or _HOME in after:
        raise AssertionError(f"{name} must name {_HOME} once")
    return (before + json.dumps(path) + after).encode()


def home_named_in(content: bytes) -> Path | None:
    """The home that an installed plugin file speaks for, of any release; None for a file that is not ours."""
    found = re.search(rb'^const LORE_HOME = ("(?:[^"\\]|\\.)*")', content, re.MULTILINE)
    try:
        return Path(json.loads(found[1])) if found else None
    except ValueError:
        return None


def plugin_sources() -> Iterator[Path]:
    """The plugin files of this package that hold the transport."""
    for path in sorted(FOLDER.rglob("*")):
        if path.suffix in (".js", ".mjs") and BEGIN in path.read_text(encoding="utf-8"):
            yield path


def with_transport(source: str) -> str:
    """A plugin file with the transport as it is now between its marks."""
    before, begin, rest = source.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise AssertionError("the marks of the transport are missing")
    transport = (FOLDER / "transport.mjs").read_text(encoding="utf-8").replace("\nexport function ", "\nfunction ")
    return before + begin + transport + end + after


def write_transport() -> list[Path]:
    """Bring all plugin files up to date. Returns those that were not."""
    written = []
    for path in plugin_sources():
        old = path.read_text(encoding="utf-8")
        new = with_transport(old)
        if new != old:
            path.write_text(new, encoding="utf-8")
            written.append(path)
    return written


if __name__ == "__main__":
    for changed in write_transport():
        print(f"wrote {changed}")  # noqa: T201
