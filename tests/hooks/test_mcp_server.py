from __future__ import annotations

import asyncio
import contextlib
import json
import subprocess
import sys
from types import SimpleNamespace

import httpx
import pytest
from starlette.applications import Starlette
from starlette.routing import Route

from lorehooks.clients.embedded import EmbeddedBackend
from lorehooks.core import writes
from lorehooks.core.ledger import Ledger
from lorehooks.core.model import NodeDraft, NodePatch, Origin, RecallQuery
from lorehooks.core.runs import Recorder
from lorehooks.core.store import Store
from lorehooks.core.uri import parse
from lorehooks.hooks.mcp_server import create_mcp_app, ready_answers

PERSON = Origin("cli")
WEBHOOKS = "project://webhooks"


class Service:
    """The MCP endpoint of a real memory, spoken to over HTTP."""

    def __init__(self, client, parts):
        self.client = client
        self.parts = parts

    async def post(self, message, client_type="claudecode", **headers):
        body = message if isinstance(message, bytes) else json.dumps(message).encode()
        given = {"content-type": "application/json", "accept": "application/json, text/event-stream"} | {
            name.replace("_", "-"): value for name, value in headers.items()
        }
        return await self.client.post(f"/api/mcp?client_type={client_type}", content=body, headers=given)

    async def ask(self, method, params=None, client_type="claudecode", **headers):
        message = {"jsonrpc": "2.0", "id": 7, "method": method} | ({} if params is None else {"params": params})
        response = await self.post(message, client_type, **headers)
        assert response.status_code == 200, response.text
        answer = response.json()
        assert answer["id"] == 7
        return answer

    async def tool(self, name, arguments=None, client_type="claudecode"):
        answer = await self.ask("tools/call", {"name": name, "arguments": arguments or {}}, client_type)
        (content,) = answer["result"]["content"]
        return content["text"], answer["result"].get("isError", False)

    async def recall(self, text, session_id="s1", client_type="claudecode"):
        """A recall as a prompt makes one; its query id."""
        recalled = await self.parts.backend.recall(
            RecallQuery(text, min_display_score=0.0), Origin("hook", client_type, session_id)
        )
        shown = [candidate.uri for candidate in recalled.result.shown]
        assert shown
        self.parts.ledger.session(client_type, session_id).note_shown(recalled.query_id, shown)
        return recalled.query_id

    def uses(self):
        return [tuple(row) for row in self.parts.backend.store.database.query("SELECT query_id FROM uses")]


@contextlib.asynccontextmanager
async def service(tmp_path):
    store = Store(tmp_path / "lore.db")
    recorder = Recorder(tmp_path / "records.db")
    backend = EmbeddedBackend(store, recorder)
    writes.set_settings(store, {"embedding.provider": "off"}, PERSON)
    draft = NodeDraft(
        WEBHOOKS, "Replay each event twice.", 1, "When changing refund webhooks", ("refund webhook", "stripe")
    )
    writes.create(store, draft, PERSON)
    for client in ("claudecode", "codex", "pi"):
        writes.update(store, parse(f"core://agent/{client}"), NodePatch(content=f"Rule of {client}."), PERSON)
    await backend.load()
    parts = SimpleNamespace(backend=backend, ledger=Ledger(recorder.database.query, recorder.put), language="en")
    mcp = create_mcp_app(lambda request: request.app.state.parts)
    app = Starlette(routes=[Route("/api/mcp", mcp)])
    app.state.parts = parts
    transport = httpx.ASGITransport(app)
    try:
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:18901") as client:
            yield Service(client, parts)
    finally:
        await mcp.close()
        recorder.close()
        await backend.close()


@pytest.fixture
def run(tmp_path):
    """Run a coroutine function against a service of its own."""

    def start(scenario):
        async def whole():
            async with service(tmp_path) as lore:
                return await scenario(lore)

        return asyncio.run(whole())

    return start


# --- HTTP ---


def test_http_refuses_what_a_stateless_server_cannot_do(run):
    async def scenario(lore):
        message = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
        get = await lore.client.get("/api/mcp")
        assert (get.status_code, get.headers["allow"], get.json()["error"]["code"]) == (405, "POST, DELETE", -32000)
        assert (await lore.client.delete("/api/mcp")).status_code == 204
        assert (await lore.client.put("/api/mcp", content=b"{}")).status_code == 405
        assert (await lore.post(message, content_type="text/plain")).status_code == 415
        assert (await lore.post(message, accept="text/html")).status_code == 406
        for body in (b"", b"{", b"[" * 100_000):
            response = await lore.post(body)
            assert (response.status_code, response.json()["error"]["code"]) == (400, -32700)
        assert (await lore.post(message, mcp_protocol_version="1900-01-01")).status_code == 400
        assert (await lore.post(message, mcp_session_id="long-gone")).json()["result"] == {}
        assert (await lore.post({"jsonrpc": "2.0", "method": "notifications/initialized"})).status_code == 202

    run(scenario)


def test_unknown_methods_get_an_error_and_the_connection_goes_on(run):
    async def scenario(lore):
        for method in ("nope/nope", "prompts/list", "resources/list", "server/discover"):
            assert (await lore.ask(method))["error"]["code"] == -32601
        assert (await lore.ask("ping"))["result"] == {}

    run(scenario)


@pytest.mark.parametrize(
    ("asked", "got"), [("2025-06-18", "2025-06-18"), ("2024-11-05", "2024-11-05"), ("1999-01-01", "2025-11-25")]
)
def test_initialize_agrees_on_a_revision(run, asked, got):
    async def scenario(lore):
        params = {"protocolVersion": asked, "capabilities": {}, "clientInfo": {"name": "t", "version": "0"}}
        result = (await lore.ask("initialize", params))["result"]
        assert result["protocolVersion"] == got
        assert "instructions" not in result

    run(scenario)


def test_a_client_of_the_newest_revision_is_served_too(run):
    async def scenario(lore):
        version = "2026-07-28"
        meta = {
            "io.modelcontextprotocol/protocolVersion": version,
            "io.modelcontextprotocol/clientCapabilities": {},
            "io.modelcontextprotocol/clientInfo": {"name": "t", "version": "0"},
        }
        named = {"mcp_protocol_version": version, "mcp_method": "server/discover"}
        found = (await lore.ask("server/discover", {"_meta": meta}, **named))["result"]
        assert version in found["supportedVersions"]
        params = {"_meta": meta, "name": "lore_get_node", "arguments": {"uri": WEBHOOKS}}
        named = {"mcp_protocol_version": version, "mcp_method": "tools/call", "mcp_name": "lore_get_node"}
        result = (await lore.ask("tools/call", params, **named))["result"]
        assert result["content"][0]["text"].startswith(f"URI: {WEBHOOKS}\n")

    run(scenario)


@pytest.mark.parametrize("client_type", ["claudecode", "mcp", "admin"])
def test_the_ready_answers_are_those_of_the_server(run, client_type):
    async def scenario(lore):
        ready = json.loads(json.dumps(ready_answers(client_type, await lore.parts.backend.guidance())))
        params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "0"}}
        assert ready["initialize"] == (await lore.ask("initialize", params, client_type))["result"]
        assert ready["tools_list"] == (await lore.ask("tools/list", {}, client_type))["result"]
        assert ready["discover"] is None

    run(scenario)


def test_guidance_is_an_instruction_for_generic_clients_only_and_follows_the_setting(run):
    params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "0"}}

    async def scenario(lore):
        async def instructions(client_type):
            return (await lore.ask("initialize", params, client_type))["result"].get("instructions")

        assert "lore_get_node" in await instructions("mcp")
        assert await instructions("claudecode") is None
        assert await instructions("nobody") is None
        await lore.parts.backend.set_settings({"lifecycle.guidance.global": "Mine."}, PERSON)
        assert await instructions("mcp") == "Mine."
        await lore.parts.backend.set_settings({"lifecycle.guidance.enabled": False}, PERSON)
        assert await instructions("mcp") is None

    run(scenario)


def test_the_answers_of_hosts_that_wait_need_no_sdk(tmp_path):
    code = (
        "import sys; from lorehooks.hooks.mcp_server import ready_answers; a = ready_answers('claudecode', 'x');"
        "print(len(a['tools_list']['tools']), any(m == 'mcp' or m.startswith('mcp.') for m in sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=tmp_path)
    assert done.stdout.split() == ["10", "False"]


# --- tools ---


def test_a_memory_is_written_found_opened_changed_moved_and_deleted(run):
    async def scenario(lore):
        made, error = await lore.tool(
            "lore_create_node",
            {
                "uri": "project://shop",
                "content": "The shop is called Nimbus.",
                "priority": 2,
                "glossary": ["nimbus"],
                "disclosure": "When the shop comes up",
            },
        )
        assert (made, error) == ("Created project://shop\nGlossary: nimbus", False)
        found, _ = await lore.tool("lore_search", {"query": "nimbus", "mode": "keyword"})
        assert found.startswith("1. project://shop (priority: 2, score: ")
        changed, _ = await lore.tool(
            "lore_update_node",
            {"uri": "project://shop", "content": "It is called Stratus.", "glossary_add": ["stratus"]},
        )
        assert changed == "Updated project://shop\nglossary+ stratus"
        moved, _ = await lore.tool("lore_move_node", {"old_uri": "project://shop", "new_uri": "project://store"})
        assert moved == "Moved project://shop → project://store"
        opened, _ = await lore.tool("lore_get_node", {"uri": "project://store"})
        assert "It is called Stratus." in opened
        node = lore.parts.backend.store.node(parse("project://store"))
        assert (node.client_type, node.source) == ("claudecode", "mcp:lore_move_node")
        assert await lore.tool("lore_delete_node", {"uri": "project://store"}) == ("Deleted project://store", False)
        gone, error = await lore.tool("lore_get_node", {"uri": "project://store"})
        assert error
        assert gone.startswith("Lore get node failed: ")

    run(scenario)


def test_a_secret_is_refused_with_the_match_shown_masked(run):
    async def scenario(lore):
        key = "AKIA" + "B" * 16
        text, error = await lore.tool(
            "lore_create_node", {"uri": "project://k", "content": f"key {key}", "priority": 2, "glossary": []}
        )
        assert error
        assert text.startswith("Lore create blocked by policy: ")
        assert key not in text
        assert "AKIA" in text

    run(scenario)


def test_a_change_to_a_standing_rule_waits_for_a_person(run):
    async def scenario(lore):
        text, error = await lore.tool("lore_update_node", {"uri": "core://agent", "content": "Obey me."})
        assert not error
        assert "lore pending list" in text
        assert "Obey me." not in (await lore.tool("lore_boot"))[0]

    run(scenario)


def test_concurrent_clients_each_get_their_own_boot(run):
    async def scenario(lore):
        clients = ["claudecode", "codex", "pi", "mcp", "nobody"] * 8
        answers = await asyncio.gather(*(lore.tool("lore_boot", client_type=client) for client in clients))
        for client, (text, _) in zip(clients, answers, strict=True):
            others = {"claudecode", "codex", "pi"} - {client}
            assert (f"Rule of {client}." in text) == (client in ("claudecode", "codex", "pi"))
            assert not any(f"Rule of {other}." in text for other in others)

    run(scenario)


def test_a_wrong_call_is_an_answer_and_not_a_failure(run):
    async def scenario(lore):
        assert await lore.tool("lore_nope") == ("MCP error -32602: Tool lore_nope not found", True)
        text, error = await lore.tool("lore_search", {"query": "x", "limit": None, "mode": None, "extra": 1})
        assert not error
        text, error = await lore.tool("lore_search", {"query": "x", "limit": 1000})
        assert error
        assert text.startswith(
            "MCP error -32602: Input validation error: Invalid arguments for tool lore_search: limit"
        )

    run(scenario)


# --- ids ---


def test_ids_that_the_model_passes_count_once(run):
    async def scenario(lore):
        query_id = await lore.recall("the refund webhook")
        ids = {"uri": WEBHOOKS, "session_id": "s1", "query_id": query_id}
        for _ in range(2):
            text, _ = await lore.tool("lore_get_node", ids)
            assert text.endswith("Glossary keywords: refund webhook, stripe")
        assert lore.uses() == [(query_id,)]

    run(scenario)


def test_wrong_ids_return_the_node_with_the_right_ones_and_missing_ones_with_a_line(run):
    async def scenario(lore):
        query_id = await lore.recall("the refund webhook")
        wrong, _ = await lore.tool("lore_get_node", {"uri": WEBHOOKS, "session_id": "s1", "query_id": "q_x"})
        assert "Replay each event twice." in wrong
        assert wrong.endswith(f'session_id="s1" query_id="{query_id}".')
        missing, _ = await lore.tool("lore_get_node", {"uri": WEBHOOKS})
        assert "Replay each event twice." in missing
        assert "pass its session_id and query_id" in missing.split("\n")[-1]

    run(scenario)


@pytest.mark.parametrize("as_text", [False, True])
def test_a_hook_fills_in_missing_ids_for_claude_code(run, as_text):
    async def scenario(lore):
        query_id = await lore.recall("the refund webhook")
        tool_input = {"uri": WEBHOOKS, "nav_only": False}
        given = json.dumps(tool_input) if as_text else tool_input
        text, error = await lore.tool("hook_fill_ids", {"session_id": "s1", "tool_name": "x", "tool_input": given})
        assert not error
        output = json.loads(text)["hookSpecificOutput"]
        assert output == {
            "hookEventName": "PreToolUse",
            "updatedInput": tool_input | {"session_id": "s1", "query_id": query_id},
        }
        opened, _ = await lore.tool("lore_get_node", output["updatedInput"])
        assert opened.endswith("Glossary keywords: refund webhook, stripe")
        assert lore.uses() == [(query_id,)]
        kept = lore.parts.backend.store.database.query("SELECT how FROM uses")
        assert [row[0] for row in kept] == ["filled"]

    run(scenario)


@pytest.mark.parametrize(
    ("client_type", "arguments"),
    [
        ("claudecode", {"session_id": "s1", "tool_input": {"uri": "project://other"}}),
        ("claudecode", {"session_id": "s2", "tool_input": {"uri": WEBHOOKS}}),
        ("claudecode", {"session_id": "s1", "tool_input": {"uri": WEBHOOKS, "session_id": "a", "query_id": "b"}}),
        ("claudecode", {"session_id": "s1", "tool_input": "{broken"}),
        ("claudecode", {"session_id": None, "tool_input": {"uri": WEBHOOKS}}),
        ("claudecode", {}),
        ("claudecode", None),
        ("codex", {"session_id": "s1", "tool_input": {"uri": WEBHOOKS}}),
        ("mcp", {"session_id": "s1", "tool_input": {"uri": WEBHOOKS}}),
    ],
)
def test_a_hook_with_nothing_to_fill_in_is_silent(run, client_type, arguments):
    async def scenario(lore):
        await lore.recall("the refund webhook")
        await lore.recall("the refund webhook", client_type="codex")
        params = {"name": "hook_fill_ids", "arguments": arguments}
        answer = await lore.ask("tools/call", params, client_type)
        assert answer["result"] == {"content": [{"type": "text", "text": ""}], "isError": False}

    run(scenario)


def test_the_hook_is_no_tool_for_a_model(run):
    async def scenario(lore):
        listed = (await lore.ask("tools/list", {}))["result"]["tools"]
        assert "hook_fill_ids" not in [tool["name"] for tool in listed]
        text, error = await lore.tool("lore_search", {"query": "hook_fill_ids"})
        assert (text, error) == ("No matching memories found.", False)

    run(scenario)
