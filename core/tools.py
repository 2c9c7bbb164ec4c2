"""The ten tools, defined once: name, description, parameters, what they may do, and who answers.

MCP, the bridge's ready file, and the plugin files of runtimes without MCP all read this table.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from lorehooks.core import tool_handlers as handlers
from lorehooks.core import uri as uris
from lorehooks.core.errors import InvalidError, LoreError, PolicyError
from lorehooks.core.tool_arguments import check_arguments
from lorehooks.core.tool_backend import RecallIds, ToolBackend
from lorehooks.core.tool_handlers import Arguments, ToolContext

__all__ = ["TOOLS", "Tool", "ToolContext", "ToolResult", "call_tool", "fill_ids", "tool_definitions"]


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What the caller sees."""

    text: str
    is_error: bool = False


@dataclass(frozen=True, slots=True)
class Tool:
    """One tool. `failed` begins the text of an error; `effect` says what it may do to memory."""

    name: str
    title: str
    description: str
    properties: Mapping[str, Any]
    required: tuple[str, ...]
    effect: Literal["reads", "adds", "changes", "destroys"]
    failed: str
    handler: Callable[[ToolBackend, Arguments, ToolContext], Awaitable[str]]
    at_once: bool = False
    """Whether a host that loads tools on demand should load this one from the start."""

    @property
    def schema(self) -> dict[str, Any]:
        """JSON Schema of the arguments."""
        schema: dict[str, Any] = {"type": "object", "properties": dict(self.properties)}
        return schema | ({"required": list(self.required)} if self.required else {})

    @property
    def definition(self) -> dict[str, Any]:
        """The tool as `tools/list` of MCP gives it."""
        reads = self.effect == "reads"
        hints = {"title": self.title, "readOnlyHint": reads, "openWorldHint": False}
        if not reads:
            # None says that it destroys nothing: Codex would then write without asking the user (seen with 0.171).
            hints |= {"destructiveHint": True, "idempotentHint": self.effect == "changes"}
        definition: dict[str, Any] = {
            "name": self.name,
            "title": self.title,
            "description": self.description,
            "inputSchema": self.schema,
            "annotations": hints,
        }
        return definition | ({"_meta": {"anthropic/alwaysLoad": True}} if self.at_once else {})


def _text(about: str, **more: Any) -> dict[str, Any]:
    return {"type": "string", "description": about, **more}


def _number(about: str, minimum: int, maximum: int | None = None) -> dict[str, Any]:
    rule = {"type": "integer", "description": about, "minimum": minimum}
    return rule if maximum is None else rule | {"maximum": maximum}


def _words(about: str) -> dict[str, Any]:
    return {"type": "array", "items": {"type": "string"}, "description": about}


_URI = "Address of the memory, domain://path, such as project://checkout_api/webhooks"
_PRIORITY = "0 core identity (at most 5 memories), 1 key facts (at most 15), 2 and up everything else"
_DISCLOSURE = "The one future situation in which this memory should surface. No 'or'; not a summary of the content"

TOOLS: Mapping[str, Tool] = {
    tool.name: tool
    for tool in (
        Tool(
            "lore_guidance",
            "How to use memory",
            "How to read and write this long-term memory. Call it when your context holds no Lore guidance yet.",
            {},
            (),
            "reads",
            "Guidance",
            handlers.guidance,
        ),
        Tool(
            "lore_status",
            "Memory status",
            "Whether the memory answers. For when another lore tool failed.",
            {},
            (),
            "reads",
            "Lore offline",
            handlers.status,
        ),
        Tool(
            "lore_boot",
            "Standing rules",
            "The user's standing rules (boot nodes) and the latest memories. Call it once at the start of a session, unless "
            "the rules are in your context already.",
            {},
            (),
            "reads",
            "Lore boot failed",
            handlers.boot,
        ),
        Tool(
            "lore_get_node",
            "Open a memory",
            "Open one memory: content, children, keywords. Do this before you rely on a line of a <recall> block. For a URI "
            "from a <recall> block, session_id and query_id of that block are REQUIRED: copy both unchanged. For a URI from "
            "search, browsing or boot, leave them out. domain:// opens the root of a domain.",
            {
                "uri": _text(_URI),
                "nav_only": {"type": "boolean", "description": "Only the children, without the content"},
                "session_id": _text("REQUIRED for a recalled URI: session_id of the <recall> tag, unchanged"),
                "query_id": _text("REQUIRED for a recalled URI: query_id of the <recall> tag, unchanged"),
            },
            ("uri",),
            "reads",
            "Lore get node failed",
            handlers.get_node,
            at_once=True,
        ),
        Tool(
            "lore_search",
            "Search memory",
            "Search the long-term memory. Use it when no <recall> block came, when it misses something, and before you write. "
            "Concrete words work best: names, error texts, terms. query '*' with a domain browses that domain.",
            {
                "query": _text("What to look for; '*' with a domain lists the domain's root"),
                "domain": _text("Only this domain, such as project"),
                "limit": _number("Most results (default 10)", 1, 100),
                "content_limit": _number(
                    "How many results come with full content, the rest with a snippet (default 5)", 0, 20
                ),
                "mode": _text("By words, by meaning, or both (default)", enum=["keyword", "semantic", "both"]),
            },
            ("query",),
            "reads",
            "Lore search failed",
            handlers.search,
            at_once=True,
        ),
        Tool(
            "lore_list_domains",
            "List domains",
            "The domains of the memory with how many memories stand at their first level. A place to start browsing.",
            {},
            (),
            "reads",
            "Lore list domains failed",
            handlers.list_domains,
        ),
        Tool(
            "lore_create_node",
            "Write a new memory",
            "Write a new memory. Search first: when one on the subject exists, lore_update_node it instead. One concept per "
            "path, named as a concept and not by a date, in lowercase snake_case; parents must exist. No secrets.",
            {
                "content": _text("The fact or rule, why it is so, and what to do about it; specific enough to act on"),
                "priority": _number(_PRIORITY, 0),
                "glossary": _words(
                    "Words people type when they mean this: names, abbreviations, error texts, other languages"
                ),
                "uri": _text(f"{_URI}. The last segment is the title, what stands before it must exist"),
                "domain": _text("Instead of uri: the domain (default core)"),
                "parent_path": _text("Instead of uri: the existing parent's path; empty for the first level"),
                "title": _text("Instead of uri: the last path segment"),
                "disclosure": _text(_DISCLOSURE),
            },
            ("content", "priority", "glossary"),
            "adds",
            "Lore create",
            handlers.create_node,
        ),
        Tool(
            "lore_update_node",
            "Change a memory",
            "Change a memory. Open it first: content replaces the whole content. Fields that you leave out stay as they are. "
            "A change to a standing rule (boot node) waits for the user's yes.",
            {
                "uri": _text(_URI),
                "content": _text("The whole new content"),
                "priority": _number(_PRIORITY, 0),
                "disclosure": _text(_DISCLOSURE),
                "glossary_add": _words("Keywords to add"),
                "glossary_remove": _words("Keywords to take away"),
            },
            ("uri",),
            "changes",
            "Lore update",
            handlers.update_node,
        ),
        Tool(
            "lore_delete_node",
            "Delete a memory",
            "Delete a memory and everything below it. For what is wrong or obsolete; the history keeps it. To correct one, "
            "update it. Boot nodes cannot be deleted.",
            {"uri": _text(_URI)},
            ("uri",),
            "destroys",
            "Lore delete",
            handlers.delete_node,
        ),
        Tool(
            "lore_move_node",
            "Move a memory",
            "Give a memory another address; everything below it goes along. The new parent must exist, the new path must be "
            "free. Boot nodes cannot be moved.",
            {"old_uri": _text(_URI), "new_uri": _text("Its new address")},
            ("old_uri", "new_uri"),
            "changes",
            "Lore move",
            handlers.move_node,
        ),
    )
}


def tool_definitions() -> list[dict[str, Any]]:
    """All ten, as `tools/list` of MCP gives them."""
    return [tool.definition for tool in TOOLS.values()]


async def call_tool(
    backend: ToolBackend, name: str, arguments: Mapping[str, object], context: ToolContext
) -> ToolResult:
    """Run a tool. What goes wrong with the call or the memory becomes an error text; nothing of that raises."""
    tool = TOOLS.get(name)
    if tool is None:
        return ToolResult(f"MCP error -32602: Tool {name} not found", is_error=True)
    try:
        checked = check_arguments(tool.schema, arguments)
    except InvalidError as error:
        return ToolResult(
            f"MCP error -32602: Input validation error: Invalid arguments for tool {name}: {error}", is_error=True
        )
    try:
        return ToolResult(await tool.handler(backend, checked, context))
    except LoreError as error:
        writes = tool.effect != "reads"
        how = (" blocked by policy" if isinstance(error, PolicyError) else " failed") if writes else ""
        return ToolResult(f"{tool.failed}{how}: {error}", is_error=True)


def fill_ids(
    tool_input: Mapping[str, object], ids_for: Callable[[str], RecallIds | None]
) -> tuple[dict[str, object], str, RecallIds] | None:
    """The arguments of `lore_get_node` with the ids that the model left out, then its address and ids in full.

    None when there is nothing to do: both are there, or the session was not shown this address.
    """
    uri = tool_input.get("uri")
    given = {name: tool_input[name] for name in ("session_id", "query_id") if tool_input.get(name)}
    if not isinstance(uri, str) or len(given) == 2:  # noqa: PLR2004  both ids
        return None
    try:
        address = str(uris.parse(uri))
    except InvalidError:
        return None
    known = ids_for(address)
    if known is None:
        return None
    ids = {"session_id": known.session_id, "query_id": known.query_id} | given
    return {**tool_input, **ids}, address, RecallIds(str(ids["session_id"]), str(ids["query_id"]))
