"""MCP over streamable HTTP at `/api/mcp?client_type=`: stateless, JSON answers, the ten tools (`lore-contract.md` 2).

The official SDK speaks the protocol. It takes most of a second to import, so it is loaded aside with the first request
that needs it; what hosts wait for (`initialize`, `tools/list`, filling in ids) is answered without it, by the bridge's
ready file or right here.
"""

from __future__ import annotations

import asyncio
import json
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Protocol

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.types import Message, Receive, Scope, Send

from lorehooks.clients.adapters import HookEvent, adapter_for
from lorehooks.clients.adapters.payload import decode
from lorehooks.core.ledger import Ledger
from lorehooks.core.model import known_client
from lorehooks.core.tool_backend import RecallIds, ToolBackend
from lorehooks.core.tools import ToolResult, call_tool, fill_ids, tool_definitions
from lorehooks.hooks.serviceinfo import installed_version
from lorehooks.hooks.toolcall import session_id_of, tool_context

if TYPE_CHECKING:
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

SERVER_NAME = "lore"
PROTOCOL_VERSION = "2025-11-25"
"""The newest revision that begins with `initialize`."""
FILL_TOOL = "hook_fill_ids"
"""Claude Code's PreToolUse hook calls it as a tool of ours; it is no tool for a model, and in no list."""

_MOST_BYTES = 16 << 20
_FILLED_KEPT = 1_000


class McpParts(Protocol):
    """What the service lends: the memory, the sessions, the language of our own texts."""

    @property
    def backend(self) -> ToolBackend: ...
    @property
    def ledger(self) -> Ledger: ...
    @property
    def language(self) -> str: ...


def ready_answers(client_type: str, guidance: str) -> dict[str, Any]:
    """What the bridge answers without the service: `{initialize, discover, tools_list}`, each a result of MCP.

    Guidance is an instruction for generic MCP clients only: the runtimes get it with their boot block. `discover` is None,
    since a host that gets an error for it goes on with `initialize`, the way in that was measured.
    """
    initialize: dict[str, Any] = {
        "protocolVersion": PROTOCOL_VERSION,
        "capabilities": {"tools": {"listChanged": False}},
        "serverInfo": {"name": SERVER_NAME, "version": installed_version()},
    }
    if client_type == "mcp" and guidance:
        initialize["instructions"] = guidance
    return {"initialize": initialize, "discover": None, "tools_list": {"tools": tool_definitions()}}


def create_mcp_app(parts_of: Callable[[Request], McpParts]) -> McpApp:
    """The ASGI application for one route, `/api/mcp`; `parts_of` is asked once for each request."""
    return McpApp(parts_of)


class McpApp:
    """Answers what HTTP alone decides, fills in ids, and hands the rest to the SDK."""

    def __init__(self, parts_of: Callable[[Request], McpParts]) -> None:
        self._parts_of = parts_of
        self._filled: OrderedDict[tuple[str, RecallIds], None] = OrderedDict()
        self._managers: dict[bool, StreamableHTTPSessionManager] = {}
        self._running: list[asyncio.Task[None]] = []
        self._loading = asyncio.Lock()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        answer = _answer_by_method(request)
        if answer is None:
            body = await request.body()
            answer = self._hook_answer(request, body)
            if answer is None:
                manager = await self._manager(request)
                await manager.handle_request(scope, _again(body, receive), send)
                return
        await answer(scope, receive, send)

    async def close(self) -> None:
        """End what the SDK keeps running."""
        for task in self._running:
            task.cancel()
        await asyncio.gather(*self._running, return_exceptions=True)

    async def call(self, request: Request, name: str, arguments: Mapping[str, object]) -> ToolResult:
        """Run one tool for the client and session that the request and its arguments name."""
        parts = self._parts_of(request)
        context = tool_context(
            parts.ledger,
            parts.language,
            tool=name,
            client_type=_client_type(request),
            session_id=arguments.get("session_id"),
            filled=lambda uri, ids: (uri, ids) in self._filled,
        )
        return await call_tool(parts.backend, name, arguments, context)

    def _hook_answer(self, request: Request, body: bytes) -> Response | None:
        """The answer to a call of `hook_fill_ids`: the host's JSON with all arguments, or an empty text."""
        if FILL_TOOL.encode() not in body:
            return None
        message = decode(body)
        if not isinstance(message, dict) or message.get("method") != "tools/call":
            return None
        params = message.get("params")
        if not isinstance(params, dict) or params.get("name") != FILL_TOOL:
            return None
        text = self._fill(request, params.get("arguments"))
        result = {"content": [{"type": "text", "text": text}], "isError": False}
        return JSONResponse({"jsonrpc": "2.0", "id": message.get("id"), "result": result})

    def _fill(self, request: Request, arguments: object) -> str:
        client_type = _client_type(request)
        adapter = adapter_for(client_type) if client_type else None
        if adapter is None or client_type is None or not isinstance(arguments, dict):
            return ""
        session_id = session_id_of(arguments.get("session_id"))
        tool_input = arguments.get("tool_input")
        if isinstance(tool_input, str):  # a host that fills in a template may write the object as JSON
            tool_input = decode(tool_input.encode("utf-8", "replace"))
        if session_id is None or not isinstance(tool_input, dict):
            return ""
        ledger = self._parts_of(request).ledger
        filled = fill_ids(tool_input, ledger.session(client_type, session_id).ids_for)
        if filled is None:
            return ""
        new_input, uri, ids = filled
        self._filled[uri, ids] = None
        if len(self._filled) > _FILLED_KEPT:
            self._filled.popitem(last=False)
        return adapter.render_tool_input(HookEvent("tool.before", client_type), new_input).decode()

    async def _manager(self, request: Request) -> StreamableHTTPSessionManager:
        """The SDK's side for this client; generic clients have one of their own, whose instructions are the guidance."""
        generic = _client_type(request) == "mcp"
        async with self._loading:
            if generic not in self._managers:
                await asyncio.to_thread(_load_sdk)
                self._managers[generic] = await self._start()
        manager = self._managers[generic]
        if generic:
            manager.app.instructions = await self._parts_of(request).backend.guidance() or None
        return manager

    async def _start(self) -> StreamableHTTPSessionManager:
        from mcp.server.lowlevel import Server
        from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
        from mcp_types import CallToolResult, ListToolsResult, TextContent, Tool

        tools = [Tool.model_validate(definition) for definition in tool_definitions()]

        async def list_tools(_context: Any, _params: Any) -> ListToolsResult:
            return ListToolsResult(tools=tools)

        async def run_tool(context: Any, params: Any) -> CallToolResult:
            result = await self.call(context.request, params.name, params.arguments or {})
            return CallToolResult(content=[TextContent(type="text", text=result.text)], is_error=result.is_error)

        server: Server[Any] = Server(
            SERVER_NAME, version=installed_version(), on_list_tools=list_tools, on_call_tool=run_tool
        )
        manager = StreamableHTTPSessionManager(
            server, json_response=True, stateless=True, max_request_body_size=_MOST_BYTES
        )
        started = asyncio.Event()

        async def keep_running() -> None:
            async with manager.run():
                started.set()
                await asyncio.Event().wait()  # until cancelled

        self._running.append(asyncio.create_task(keep_running()))
        await started.wait()
        return manager


def _load_sdk() -> None:
    """Import the SDK in a thread, so that hooks are answered meanwhile."""
    import mcp.server.lowlevel
    import mcp.server.streamable_http_manager  # noqa: F401


def _answer_by_method(request: Request) -> Response | None:
    """What a stateless server says to anything but a POST of JSON."""
    if request.method == "GET":
        return _refusal(405, "Method not allowed in stateless JSON response mode.", {"Allow": "POST, DELETE"})
    if request.method == "DELETE":
        return Response(status_code=204)
    if request.method != "POST":
        return _refusal(405, "Method not allowed.", {"Allow": "POST, DELETE"})
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        return _refusal(415, "Unsupported Media Type: Content-Type must be application/json")
    return None


def _refusal(status: int, message: str, headers: Mapping[str, str] | None = None) -> Response:
    body = {"jsonrpc": "2.0", "error": {"code": -32000, "message": message}, "id": None}
    return Response(json.dumps(body), status, headers, media_type="application/json")


def _client_type(request: Request) -> str | None:
    """Who calls, by the `client_type` of the address."""
    return known_client(request.query_params.get("client_type"))


def _again(body: bytes, receive: Receive) -> Receive:
    """A receive channel that gives a body that was read already once more, then goes on."""
    waiting: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def replay() -> Message:
        return waiting.pop() if waiting else await receive()

    return replay
