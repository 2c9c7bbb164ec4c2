"""What a person pastes into the settings of an MCP client that we have no installer for.

Such a client gets the memory tools and the guidance as `instructions`; it has no hooks, so nothing is injected by itself.
"""

from __future__ import annotations

import json
import shlex
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lorehooks.core.home import Home
from lorehooks.installers.plan import Context

SERVER = "lore"
_DESKTOP = {"darwin": "~/Library/Application Support/Claude"}


@dataclass(frozen=True, slots=True)
class Server:
    """How a client starts `lore mcp`. Absolute, since a program of the desktop knows no PATH of a shell's."""

    command: str
    args: tuple[str, ...]
    env: dict[str, str]

    @property
    def entry(self) -> dict[str, Any]:
        """The form that all clients share."""
        entry: dict[str, Any] = {"command": self.command, "args": list(self.args)}
        return entry | ({"env": self.env} if self.env else {})


@dataclass(frozen=True, slots=True)
class Snippet:
    """JSON for some clients. `clients` are (name, where it goes)."""

    clients: tuple[tuple[str, str], ...]
    data: dict[str, Any]

    @property
    def text(self) -> str:
        return json.dumps(self.data, indent=2, ensure_ascii=False)


def server(context: Context) -> Server:
    """The command of this installation, under the name on the PATH if that leads here: upgrades keep it."""
    own = Path(sys.prefix) / "bin" / "lore"
    on_path = context.which("lore")
    if on_path is not None and own.exists() and on_path.resolve() == own.resolve():
        own = on_path
    usual = Home(context.user_home / ".lore").root.absolute()
    moved = {} if context.home.root == usual else {"LORE_HOME": str(context.home.root)}
    if own.exists():
        return Server(str(own), ("mcp",), moved)
    return Server(sys.executable, ("-m", "lorehooks.installers.cli", "mcp"), moved)


def snippets(server: Server, platform: str = sys.platform) -> tuple[Snippet, ...]:
    """What goes into which client's settings."""
    desktop = _DESKTOP.get(platform, "~/.config/Claude")
    return (
        Snippet(
            (
                ("Claude Desktop", f"{desktop}/claude_desktop_config.json"),
                ("Cursor", "~/.cursor/mcp.json"),
                ("Windsurf", "~/.codeium/windsurf/mcp_config.json"),
                ("Gemini CLI", "~/.gemini/settings.json"),
                ("most others", "wherever they keep mcpServers"),
            ),
            {"mcpServers": {SERVER: server.entry}},
        ),
        Snippet(
            (("VS Code", "mcp.json (MCP: Open User Configuration), or .vscode/mcp.json of one project"),),
            {"servers": {SERVER: {"type": "stdio", **server.entry}}},
        ),
    )


def commands(server: Server) -> tuple[tuple[str, str], ...]:
    """(client, shell command) for clients that take a server from their own command line."""
    env = [word for name, value in server.env.items() for word in ("-e", f"{name}={value}")]
    gemini = ("gemini", "mcp", "add", "--scope", "user", *env, SERVER, server.command, *server.args)
    code = ("code", "--add-mcp", json.dumps({"name": SERVER, **server.entry}, ensure_ascii=False))
    return (("Gemini CLI", shlex.join(gemini)), ("VS Code", shlex.join(code)))
