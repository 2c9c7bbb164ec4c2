"""What `lore install mcp --print` says, and that it installs nothing."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from lorehooks.core.home import Home
from lorehooks.installers import mcpsnippets
from lorehooks.installers.plan import Context

LORE = Path(sys.executable).with_name("lore")
OWN = str(Path(sys.prefix) / "bin" / "lore")


def context(root: Path, path: str = "/usr/bin:/bin", lore: Path | None = None) -> Context:
    return Context(Home(lore or root / ".lore"), root, {"HOME": str(root), "PATH": path})


def run(root: Path, *words: str) -> subprocess.CompletedProcess[str]:
    environment = {"HOME": str(root), "PATH": "/usr/bin:/bin", "NO_COLOR": "1"}
    return subprocess.run([LORE, *words], env=environment, capture_output=True, text=True, check=False, timeout=60)


def test_the_command_is_absolute_and_the_one_on_the_path_when_that_leads_here(tmp_path):
    assert mcpsnippets.server(context(tmp_path)) == mcpsnippets.Server(OWN, ("mcp",), {})
    (tmp_path / "lore").symlink_to(OWN)
    assert mcpsnippets.server(context(tmp_path, str(tmp_path))).command == str(tmp_path / "lore")
    (tmp_path / "lore").unlink()
    (tmp_path / "lore").write_text("#!/bin/sh\n")
    (tmp_path / "lore").chmod(0o755)
    assert mcpsnippets.server(context(tmp_path, str(tmp_path))).command == OWN


def test_a_moved_home_is_named(tmp_path):
    server = mcpsnippets.server(context(tmp_path, lore=tmp_path / "zoë 김"))
    assert server.entry["env"] == {"LORE_HOME": str(tmp_path / "zoë 김")}
    gemini, code = (shlex.split(command) for _, command in mcpsnippets.commands(server))
    assert gemini[gemini.index("-e") + 1] == f"LORE_HOME={tmp_path / 'zoë 김'}"
    assert json.loads(code[-1])["env"] == server.env


@pytest.mark.parametrize(
    ("platform", "place"), [("darwin", "~/Library/Application Support/Claude"), ("linux", "~/.config/Claude")]
)
def test_every_client_has_its_place_and_its_form(platform, place):
    found = mcpsnippets.snippets(mcpsnippets.Server("/bin/lore", ("mcp",), {}), platform)
    places = {client: where for snippet in found for client, where in snippet.clients}
    assert set(places) == {"Claude Desktop", "Cursor", "Windsurf", "Gemini CLI", "VS Code", "most others"}
    assert places["Claude Desktop"] == f"{place}/claude_desktop_config.json"
    shared, code = (json.loads(snippet.text) for snippet in found)
    assert shared == {"mcpServers": {"lore": {"command": "/bin/lore", "args": ["mcp"]}}}
    assert code == {"servers": {"lore": {"type": "stdio", "command": "/bin/lore", "args": ["mcp"]}}}


def test_printing_writes_nothing_and_what_it_prints_can_be_pasted(tmp_path):
    done = run(tmp_path, "install", "mcp", "--print")
    assert done.returncode == 0
    block = done.stdout[done.stdout.index("{") : done.stdout.index("}\n\n") + 1]
    assert json.loads(block)["mcpServers"]["lore"]["command"] == OWN
    said = json.loads(run(tmp_path, "install", "mcp", "--print", "--json").stdout)
    assert said["server"] == {"command": OWN, "args": ["mcp"]}
    assert list(tmp_path.iterdir()) == []


def test_an_mcp_client_is_not_installed_and_a_runtime_is_not_printed(tmp_path):
    done = run(tmp_path, "install", "mcp")
    assert done.returncode == 1
    assert done.stderr.endswith("(lore install mcp --print)\n")
    assert run(tmp_path, "install", "pi", "--print").returncode == 2
    assert run(tmp_path, "install", "--print").returncode == 2
    assert run(tmp_path, "uninstall", "mcp").returncode == 2
    assert list(tmp_path.iterdir()) == []
