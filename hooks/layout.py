"""Fills a home with what runtimes start: `bin/python`, `bin/hook.py`, `bin/bridge.py`, `bin/service`, `bin/tools/`."""

from __future__ import annotations

import json
import logging
import os
import shlex
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path

from lorehooks.core.errors import StorageError
from lorehooks.core.files import write_whole
from lorehooks.core.home import Home
from lorehooks.hooks.place import check_place

README = """This folder is the memory that lorehooks gives to the coding agents of this machine.
lore.db holds the memories (every event since the start), records.db what hooks sent, config.toml the settings.
bin/ is what the agents run, run/ the state of the running service, receipts/ what was installed where.
`lore status` shows what is connected, `lore doctor` what is wrong, `lore uninstall` takes an agent's hooks out again.
Uninstalling never deletes memories: to do that, end the service (`lore service stop`) and remove this folder.
"""
_OWNER = "# environment: "


def lay(home: Home, environment: Path | None = None) -> None:
    """Make `H/bin` serve `environment` (default: the running one). Files that are right already stay untouched.

    Raises StorageError where the home must not be used, or when no interpreter of this machine can run the hook program.
    """
    environment = Path(sys.prefix) if environment is None else environment
    check_place(home)
    home.bin.mkdir(mode=0o700, exist_ok=True)
    ours = Path(__file__).parent
    hook_is_new = _put(home.bin / "hook.py", (ours / "hook.py").read_bytes(), 0o600)
    _put(home.bin / "bridge.py", (ours / "bridge.py").read_bytes(), 0o600)
    _put(home.bin / "service", service_script(environment).encode(), 0o700)
    _put(home.root / "README.txt", README.encode(), 0o600)
    _put_tools(home)
    link = home.bin / "python"
    if hook_is_new or not _leads_to(link, next(_candidates(), None)):
        _link(link, _interpreter(home))


def refresh(home: Home) -> None:
    """The same for a starting service, whose release may be newer than the files: only its own, and failing quietly."""
    if environment_of(home) == sys.prefix:
        try:
            lay(home)
        except (OSError, StorageError) as error:
            logging.getLogger(__name__).warning("bin not refreshed: %s", error)


def _put_tools(home: Home) -> None:
    """What the bridge answers as long as no service has written `run/tools`: hosts hold the first prompt for it."""
    from lorehooks.clients import config
    from lorehooks.core import guidance
    from lorehooks.core.model import CLIENT_TYPES, GENERIC_CLIENTS
    from lorehooks.core.settings import Settings
    from lorehooks.hooks.mcp_server import ready_answers

    language = guidance.resolve_language(config.load_or_defaults(home).settings["language"], os.environ)
    text = guidance.guidance_text(Settings(), language)
    folder = home.bin / "tools"
    folder.mkdir(mode=0o700, exist_ok=True)
    for client in (*CLIENT_TYPES, *GENERIC_CLIENTS):
        _put(folder / f"{client}.json", json.dumps(ready_answers(client, text), ensure_ascii=False).encode(), 0o600)


def service_script(environment: Path) -> str:
    """`bin/service`: finds the home by its own place, so that a moved home still starts its own service."""
    python = environment / "bin" / "python"
    return (
        "#!/bin/sh\n"
        f"{_OWNER}{environment}\n"
        'cd "${0%/*}/.." || exit 1\n'
        "LORE_HOME=$(pwd -P) && export LORE_HOME\n"
        f'exec {shlex.quote(str(python))} -P -m lorehooks.hooks.service "$@"\n'
    )


def environment_of(home: Home) -> str | None:
    """The environment that owns the home, None before the first `lay`."""
    try:
        lines = (home.bin / "service").read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    except OSError:
        return None
    return next((line.removeprefix(_OWNER) for line in lines if line.startswith(_OWNER)), None)


def _interpreter(home: Home) -> Path:
    """A real interpreter that can run the hook program without an environment: no shim, no script, no stub.

    Each candidate is tried on the real file: some run `-c` and yet may not open a file (`bug-cases.md` A30).
    """
    tried = []
    for candidate in _candidates():
        try:
            done = subprocess.run(
                [candidate, "-I", "-S", home.bin / "hook.py", "probe", "probe"],
                env={"LORE_DISABLE": "1"},
                stdin=subprocess.DEVNULL,
                capture_output=True,
                check=False,
                timeout=20,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            tried.append(f"{candidate}: {error}")
            continue
        if done.returncode == 0 and not done.stdout and not done.stderr:
            return candidate
        tried.append(f"{candidate}: exit code {done.returncode}")
    raise StorageError(
        f"No Python here can run the hook program ({'; '.join(tried)})", hint="install lorehooks with another Python"
    )


def _candidates() -> Iterator[Path]:
    """Interpreters to try, the base one first: a venv's link breaks when the venv goes, and `-I -S` needs none of it."""
    seen = set()
    base = getattr(sys, "_base_executable", None) or sys.executable
    name = f"python{sysconfig.get_python_version()}"
    for path in (Path(base), Path(sysconfig.get_config_var("BINDIR") or "/usr/bin") / name, Path(sys.executable)):
        # Links of the system are kept as they are: they go on leading somewhere after an upgrade of Python.
        if path not in seen and path.is_file() and not _is_script(path):
            seen.add(path)
            yield path


def _is_script(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(2) == b"#!"


def _put(path: Path, content: bytes, mode: int) -> bool:
    """Write a file unless it is right already; whether it was written."""
    try:
        if not path.is_symlink() and path.read_bytes() == content and path.stat().st_mode & 0o777 == mode:
            return False
    except OSError:
        pass
    write_whole(path, content, mode)
    return True


def _leads_to(link: Path, target: Path | None) -> bool:
    return target is not None and link.is_symlink() and link.readlink() == target


def _link(path: Path, target: Path) -> None:
    if _leads_to(path, target):
        return
    beside = path.with_name(f"{path.name}.{os.getpid()}.new")
    beside.unlink(missing_ok=True)
    beside.symlink_to(target)
    beside.replace(path)
