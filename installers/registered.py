"""The commands that runtimes hold for us. They never change between releases: hosts store them, and Codex hashes them."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path

from lorehooks.core.home import Home


def _guarded(home: Home, program: str, *arguments: str) -> str:
    """The script is asked for too: Python ends with 2 when it is missing, and 2 is how a hook blocks the user's prompt."""
    python, script = shlex.quote(str(home.bin / "python")), shlex.quote(str(home.bin / program))
    words = " ".join((python, "-I", "-S", script, *map(shlex.quote, arguments)))
    return f"[ -x {python} -a -r {script} ] && exec {words}; exit 0"


def registered_command(home: Home, client_type: str, event: str) -> str:
    """A hook for a host that runs `/bin/sh -c`. Silent and successful when our package or home is gone."""
    return _guarded(home, "hook.py", client_type, event)


def registered_bridge(home: Home, client_type: str) -> tuple[str, ...]:
    """Program and arguments of the stdio MCP server. Leaves at once when our package or home is gone."""
    return ("/bin/sh", "-c", _guarded(home, "bridge.py", client_type))


def registered_process(home: Home, client_type: str, event: str) -> tuple[str, ...]:
    """Program and arguments of a hook for a host that starts programs without a shell."""
    return ("/bin/sh", "-c", registered_command(home, client_type, event))


def home_of(command: str, client_type: str, event: str) -> Home | None:
    """The home whose hook a shell command is, letter for letter; None for every other command."""
    try:
        words = shlex.split(command)
    except ValueError:
        return None
    scripts = [Path(word) for word in words if word.endswith("/bin/hook.py")]
    homes = [Home(script.parent.parent) for script in scripts]
    return next((home for home in homes if registered_command(home, client_type, event) == command), None)


def bridge_home_of(program: str, arguments: Sequence[str], client_type: str) -> Home | None:
    """The home whose bridge a program and its arguments are, letter for letter; None for every other server."""
    try:
        words = shlex.split(arguments[-1]) if arguments else []
    except ValueError:
        return None
    homes = [Home(Path(word).parent.parent) for word in words if word.endswith("/bin/bridge.py")]
    return next((home for home in homes if registered_bridge(home, client_type) == (program, *arguments)), None)


def for_home(root: Path, command: str) -> str:
    """A `lore` command for another home than this one, to be pasted into a shell whatever signs are in the home's name."""
    return f"LORE_HOME={shlex.quote(str(root))} {command}"


def hook_script(home: Home) -> Path:
    """The file that tells our commands from others that look alike."""
    return home.bin / "hook.py"


def is_ours(command: str, home: Home) -> bool:
    """Whether a shell command runs the hook program of this home: the program's own path as a word, not as a part of one."""
    try:
        words = shlex.split(command)
    except ValueError:
        return False
    return str(hook_script(home)) in words
