"""What each tool does with its checked arguments: read or write through the backend, and answer as text."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from lorehooks.core import tool_texts as texts
from lorehooks.core import uri as uris
from lorehooks.core.boot import render_boot_view
from lorehooks.core.errors import InvalidError, LoreError
from lorehooks.core.escape import restore_tags
from lorehooks.core.model import NodeDraft, NodePatch, Origin
from lorehooks.core.tool_backend import NodeView, RecallIds, ToolBackend, UseKind
from lorehooks.core.writes import clean_keywords

Arguments = Mapping[str, Any]

_HINT_MISSING = "If a <recall> block listed this URI, pass its session_id and query_id as well, so that the use counts."
_HINT_WRONG = (
    "No recall with these ids showed this memory: pass session_id and query_id as they stand in its <recall> tag."
)


@dataclass(frozen=True, slots=True)
class ToolContext:
    """Who calls, and what is known of the session.

    `ids_for` gives the ids of the latest recall in the caller's session that showed an address; it is None when the
    session is not known. `filled` tells whether ids in the arguments were put there by a hook of ours.
    """

    origin: Origin
    ids_for: Callable[[str], RecallIds | None] | None = None
    language: str = "en"
    filled: Callable[[str, RecallIds], bool] = lambda _uri, _ids: False


async def guidance(backend: ToolBackend, _arguments: Arguments, _context: ToolContext) -> str:
    text = await backend.guidance()
    if not text:
        raise LoreError("switched off", hint="lore config set lifecycle.guidance.enabled true")
    return text


async def status(backend: ToolBackend, _arguments: Arguments, _context: ToolContext) -> str:
    return texts.status_text(await backend.status())


async def boot(backend: ToolBackend, _arguments: Arguments, context: ToolContext) -> str:
    client_type = context.origin.client_type
    data = await backend.boot(client_type)
    return render_boot_view(data, client_type=client_type, language=context.language)


async def get_node(backend: ToolBackend, arguments: Arguments, context: ToolContext) -> str:
    """The node first, whatever the ids are; a wrong or missing pair costs one line, never the memory."""
    uri = str(uris.parse(arguments["uri"]))
    view = await backend.get_node(uri, nav_only=arguments.get("nav_only", False))
    text = texts.node_text(view)
    note = "" if arguments.get("nav_only") else await _note_use(backend, view, arguments, context)
    return f"{text}\n\n{note}" if note else text


async def search(backend: ToolBackend, arguments: Arguments, context: ToolContext) -> str:  # noqa: ARG001
    query = arguments["query"].strip()
    domain = arguments.get("domain", "").strip().partition("://")[0].lower() or None
    if query in ("", "*"):
        if domain:
            root = await backend.get_node(f"{domain}://", nav_only=True)
            return f"Domain root: {domain}://\n\n{texts.node_text(root)}"
        return f"No matching memories found. Domains to browse:\n{texts.domains_text(await backend.domains())}"
    hits = await backend.search(
        query,
        mode=arguments.get("mode", "both"),
        domain=domain,
        limit=arguments.get("limit", 10),
        content_limit=arguments.get("content_limit", 5),
    )
    return texts.search_text(hits, domain)


async def list_domains(backend: ToolBackend, _arguments: Arguments, _context: ToolContext) -> str:
    return texts.domains_text(await backend.domains())


async def create_node(backend: ToolBackend, arguments: Arguments, context: ToolContext) -> str:
    glossary = clean_keywords(arguments["glossary"])
    draft = NodeDraft(
        uri=str(_address_to_create(arguments)),
        content=restore_tags(arguments["content"]),
        priority=arguments["priority"],
        disclosure=arguments.get("disclosure", ""),
        glossary=glossary,
    )
    return texts.created_text(await backend.create_node(draft, context.origin), glossary)


async def update_node(backend: ToolBackend, arguments: Arguments, context: ToolContext) -> str:
    content = arguments.get("content")
    patch = NodePatch(
        content=None if content is None else restore_tags(content),
        priority=arguments.get("priority"),
        disclosure=arguments.get("disclosure"),
        glossary_add=clean_keywords(arguments.get("glossary_add", ())),
        glossary_remove=clean_keywords(arguments.get("glossary_remove", ())),
    )
    if patch == NodePatch():
        raise InvalidError(
            "nothing to change", hint="pass content, priority, disclosure, glossary_add or glossary_remove"
        )
    result = await backend.update_node(str(uris.parse(arguments["uri"])), patch, context.origin)
    return texts.updated_text(result, patch.glossary_add, patch.glossary_remove)


async def delete_node(backend: ToolBackend, arguments: Arguments, context: ToolContext) -> str:
    uri = str(uris.parse(arguments["uri"]))
    return texts.deleted_text(await backend.delete_node(uri, context.origin), uri)


async def move_node(backend: ToolBackend, arguments: Arguments, context: ToolContext) -> str:
    old, new = str(uris.parse(arguments["old_uri"])), str(uris.parse(arguments["new_uri"]))
    return texts.moved_text(await backend.move_node(old, new, context.origin), old)


async def _note_use(backend: ToolBackend, view: NodeView, arguments: Arguments, context: ToolContext) -> str:
    """Mark the memory as used when the ids, passed or known from the session, fit; else say what to pass."""
    if not view.uuid:
        return ""  # the root of a domain is no memory
    session_id = arguments.get("session_id", "").strip() or None
    query_id = arguments.get("query_id", "").strip() or None
    known = context.ids_for(view.uri) if context.ids_for else None
    try:
        if query_id:
            ids = RecallIds(session_id or "", query_id)
            how: UseKind = "filled" if context.filled(view.uri, ids) else "passed"
            if await backend.mark_used(uri=view.uri, how=how, query_id=query_id, session_id=session_id):
                return ""
        elif known is None:
            own = session_id or context.origin.session_id
            await backend.mark_used(uri=view.uri, how="none", query_id=None, session_id=own)
        if known is not None:
            await backend.mark_used(uri=view.uri, how="filled", query_id=known.query_id, session_id=known.session_id)
    except LoreError:
        return ""  # the memory itself was read; that its use could not be noted is none of the agent's concern
    if query_id:
        right = f' They are session_id="{known.session_id}" query_id="{known.query_id}".' if known else ""
        return _HINT_WRONG + right
    return "" if known or context.ids_for else _HINT_MISSING


def _address_to_create(arguments: Arguments) -> uris.Uri:
    """The address from `uri`, or from `domain`, `parent_path` and `title`; both ways together must agree."""
    given: dict[str, str] = {
        name: arguments.get(name, "").strip() for name in ("uri", "domain", "parent_path", "title")
    }
    domain = given["domain"].partition("://")[0].lower()
    if not given["uri"]:
        if not given["title"].strip("/"):
            raise InvalidError(
                "the memory has no address", hint="pass uri, such as project://my_app/deploy, or a title"
            )
        parent = uris.parse(given["parent_path"], domain or uris.DEFAULT_DOMAIN)
        _agree("domain", domain, "parent_path", parent.domain)
        return parent.child(given["title"].strip("/"))
    uri = uris.parse(given["uri"], domain or uris.DEFAULT_DOMAIN)
    _agree("domain", domain, "uri", uri.domain)
    _agree("uri", uri.title, "title", given["title"].strip("/"))
    if given["parent_path"]:
        parent = uris.parse(given["parent_path"], uri.domain)
        _agree("uri", str(uri.parent or f"{uri.domain}://"), "parent_path", str(parent))
    return uri


def _agree(name: str, value: str, other: str, other_value: str) -> None:
    if value and other_value and value != other_value:
        raise InvalidError(f"Conflicting {name} and {other}: {value} vs {other_value}")
