"""Who calls a tool, for tools over MCP and over the plugin files' own route."""

from __future__ import annotations

from collections.abc import Callable

from lorehooks.core.ledger import Ledger
from lorehooks.core.model import Origin
from lorehooks.core.tool_backend import RecallIds
from lorehooks.core.tools import ToolContext

MAX_ID = 200
"""Characters of an id that a host may give a session, as in `clients.adapters`; a longer one names none."""


def tool_context(
    ledger: Ledger,
    language: str,
    *,
    tool: str,
    client_type: str | None,
    session_id: object,
    filled: Callable[[str, RecallIds], bool] = lambda _uri, _ids: False,
) -> ToolContext:
    """The context of one call. `session_id` is as it came: a model writes it, so it may be anything."""
    named = session_id_of(session_id)
    session = ledger.session(client_type, named) if client_type and named else None
    return ToolContext(
        Origin(f"mcp:{tool}", client_type, named), session.ids_for if session else None, language, filled
    )


def session_id_of(value: object) -> str | None:
    """A session's id, without outer white space; None for what is none."""
    text = value.strip() if isinstance(value, str) else ""
    return text if 0 < len(text) <= MAX_ID else None
