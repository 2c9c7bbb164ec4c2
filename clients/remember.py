"""Keeping one sentence: a path for a memory that was given none."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lorehooks.core import uri as uris
from lorehooks.core.errors import ConflictError, NotFoundError
from lorehooks.core.model import DEFAULT_PRIORITY, NodeDraft, Origin, WriteResult
from lorehooks.core.repository import project_key
from lorehooks.core.stopwords import COMMON_WORDS, FUNCTION_WORDS

if TYPE_CHECKING:
    from lorehooks.clients.client import LoreClient

WITHOUT_PROJECT = "core://notes"
MAX_WORDS, MAX_SEGMENT = 4, 48
_SHORTEST = 3
_TRIES = 50


async def remember(
    client: LoreClient,
    text: str,
    *,
    at: str | None,
    project: str | None,
    disclosure: str,
    glossary: tuple[str, ...],
    origin: Origin,
    allow_secret: bool,
) -> WriteResult:
    """Store a text at `at`, else below its project (or `core://notes`) under its telling words; parents are made.

    Raises InvalidError, ConflictError (only for a path that was given), SecretError.
    """

    def draft(uri: uris.Uri) -> NodeDraft:
        return NodeDraft(str(uri), text, DEFAULT_PRIORITY, disclosure, glossary)

    if at is not None:
        uri = uris.parse_for_write(at)
        await _make_parents(client, uri, origin)
        return await client.create_node(draft(uri), origin, allow_secret=allow_secret)
    key = project_key(project) if project else ""
    parent = uris.parse_for_write(f"project://{key}" if key else WITHOUT_PROJECT)
    title = title_of(text)
    await _make_parents(client, parent.child(title), origin)
    for number in range(1, _TRIES):
        uri = parent.child(title if number == 1 else f"{title}_{number}")
        try:
            return await client.create_node(draft(uri), origin, allow_secret=allow_secret)
        except ConflictError:
            continue
    raise ConflictError(f"{parent.child(title)} and its numbers are taken", hint="name a path: --at URI")


def title_of(text: str) -> str:
    """A path segment from the first telling words of a text; `note` when it has none in Latin letters."""
    empty = FUNCTION_WORDS | COMMON_WORDS
    words = [word for word in project_key(text).split("_") if len(word) >= _SHORTEST and word not in empty]
    words = [word for word in words if not word.isdigit()][:MAX_WORDS]
    return "_".join(words)[:MAX_SEGMENT].strip("_") or "note"


async def _make_parents(client: LoreClient, uri: uris.Uri, origin: Origin) -> None:
    """Create what is missing above an address, from the top."""
    missing = []
    parent = uri.parent
    while parent is not None:
        try:
            await client.get_node(str(parent), nav_only=True)
        except NotFoundError:
            missing.append(parent)
            parent = parent.parent
        else:
            break
    for above in reversed(missing):
        await client.create_node(NodeDraft(str(above), ""), origin)
