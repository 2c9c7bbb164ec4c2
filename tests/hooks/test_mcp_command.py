"""`lore mcp`, as an MCP client starts it: with the official SDK's client, and by hand."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from lorehooks.core.home import Home
from lorehooks.core.tools import TOOLS
from lorehooks.hooks import service

LORE = Path(sys.executable).with_name("lore")


@pytest.fixture
def user(tmp_path: Path) -> Iterator[dict[str, str]]:
    """The environment of a user without a home of ours."""
    yield {"HOME": str(tmp_path), "PATH": "/usr/bin:/bin", "LANG": "C.UTF-8"}
    if home(tmp_path).run.is_dir():
        service.stop(home(tmp_path))


def home(user: Path | dict[str, str]) -> Home:
    return Home(Path(user["HOME"] if isinstance(user, dict) else user) / ".lore")


def run(user: dict[str, str], *messages: dict[str, object]) -> list[dict]:
    """Send lines, end the input, and read the lines of stdout."""
    lines = "".join(json.dumps({"jsonrpc": "2.0", **message}) + "\n" for message in messages)
    done = subprocess.run([LORE, "mcp"], input=lines, env=user, capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_the_official_client_finds_guidance_and_tools_and_writes_and_reads_a_memory(user):
    from mcp import ClientSession
    from mcp.client.stdio import StdioServerParameters, stdio_client

    async def talk() -> tuple[object, list[str], str]:
        parameters = StdioServerParameters(command=str(LORE), args=["mcp"], env=user)
        async with stdio_client(parameters) as (reading, writing), ClientSession(reading, writing) as session:
            hello = await session.initialize()
            tools = [tool.name for tool in (await session.list_tools()).tools]
            fact = {"content": "Deploys go on Tuesdays.", "priority": 2, "glossary": ["deploy"]}
            written = await session.call_tool("lore_create_node", {"uri": "project://deploys", **fact})
            assert not written.is_error
            found = await session.call_tool("lore_search", {"query": "deploy on which day"})
            return hello, tools, found.content[0].text

    hello, tools, found = asyncio.run(talk())
    assert "lore_search" in hello.instructions
    assert tools == list(TOOLS)
    assert "project://deploys" in found


def test_a_client_that_only_looks_starts_no_service(user):
    hello, tools, nothing = run(
        user,
        {"id": 1, "method": "initialize", "params": {"protocolVersion": "2025-06-18", "capabilities": {}}},
        {"method": "notifications/initialized"},
        {"id": 2, "method": "tools/list"},
        {"id": 3, "method": "resources/list"},
    )
    assert hello["result"]["protocolVersion"] == "2025-06-18"
    assert hello["result"]["instructions"]
    assert len(tools["result"]["tools"]) == len(TOOLS)
    assert nothing["error"]["code"] == -32601
    assert not service.status(home(user)).running


def test_nothing_of_a_boot_block_comes_by_itself(user):
    (hello,) = run(user, {"id": 1, "method": "initialize", "params": {}})
    assert "core://agent" not in json.dumps(hello)


def test_a_home_that_cannot_be_used_is_said_on_stderr_alone(user):
    home(user).root.write_text("a file")
    done = subprocess.run([LORE, "mcp"], input="", env=user, capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("Error: ")
    assert done.stderr.count("\n") == 1
