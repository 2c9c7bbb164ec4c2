"""Where OpenClaw keeps its settings and extensions, and what its settings say."""

from __future__ import annotations

from pathlib import Path

from lorehooks.core.errors import LoreError
from lorehooks.installers import files, hosts
from lorehooks.installers.edits import Path as Way
from lorehooks.installers.jsondata import look_up
from lorehooks.installers.jsontext import Plain, parse
from lorehooks.installers.plan import Context

PLUGIN = "lorehooks"
ENTRY: Way = ("plugins", "entries", PLUGIN)
ENTRY_NAME = "plugins.entries.lorehooks"


def folder(context: Context) -> Path:
    """Where OpenClaw keeps extensions: `OPENCLAW_STATE_DIR`, else beside `OPENCLAW_CONFIG_PATH`, else `~/.openclaw`."""
    state, config = (_variable(context, name) for name in ("OPENCLAW_STATE_DIR", "OPENCLAW_CONFIG_PATH"))
    return state or (config.parent if config else _user_home(context) / ".openclaw")


def config_file(context: Context) -> Path:
    """The settings in force."""
    state = _variable(context, "OPENCLAW_STATE_DIR") or _user_home(context) / ".openclaw"
    return _variable(context, "OPENCLAW_CONFIG_PATH") or state / "openclaw.json"


def extension(context: Context) -> Path:
    """OpenClaw's copy of the plugin."""
    return folder(context) / "extensions" / PLUGIN


def _user_home(context: Context) -> Path:
    moved = context.environment.get("OPENCLAW_HOME", "").strip()
    return _expanded(moved, context.user_home) if moved else context.user_home


def _variable(context: Context, name: str) -> Path | None:
    named = context.environment.get(name, "").strip()
    return _expanded(named, _user_home(context)) if named else None


def _expanded(named: str, home: Path) -> Path:
    return home / named[1:].lstrip("/") if named == "~" or named.startswith("~/") else Path(named).absolute()


def settings_of(config: Path) -> Plain:
    """The settings; an empty object where there are none. Raises RefusedError for what cannot be read."""
    return files.persist(lambda: parse(files.read(config).content or b"", name=config, dialect="json5").plain)


def is_included(settings: Plain) -> bool:
    """Whether other files hold, or may hold, what we would change."""
    return any(
        "$include" in part for part in (look_up(settings, ENTRY[:end])[1] for end in range(4)) if isinstance(part, dict)
    )


def entry_of(context: Context, settings: Plain) -> Plain:
    """Our entry, as the file has it, or, where other files are included, as OpenClaw sees it."""
    if not is_included(settings):
        return look_up(settings, ENTRY)[1]
    try:
        answer = hosts.run(("openclaw", "config", "get", ENTRY_NAME, "--json"), context.environment)
        return parse(answer.output.encode(), name="openclaw config get").plain if answer.code == 0 else None
    except LoreError:
        return None
