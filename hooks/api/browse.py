"""Looking around: domains, pages of memories, search, the glossary (`lore-contract.md` 1.7)."""

from __future__ import annotations

from lorehooks.clients.console import Console
from lorehooks.core import uri as uris
from lorehooks.core.model import Candidate, Node
from lorehooks.core.search import snippet
from lorehooks.core.tool_backend import SearchMode
from lorehooks.hooks.api.fields import Count, Flag, display_score
from lorehooks.hooks.api.operation import Answer, Body, Call, Operation, Query, operation
from lorehooks.hooks.api.pages import PageAnswer, page_answer

operations: list[Operation] = []

STRATEGY = "raw_plus_lex_damp"
"""The public server's name for adding weighted signals and damping words of long prompts."""
_SEARCH_LIMIT, _CONTENT_LIMIT = 10, 5
_MAX_RESULTS = 100
_SNIPPET = 250


class NodeQuery(Query):
    domain: str = uris.DEFAULT_DOMAIN
    path: str = ""
    nav_only: Flag = False


class SearchBody(Body):
    """`limit` 0 takes the default. `content_limit` is how many of the best hits bring their whole content."""

    query: str = ""
    domain: str | None = None
    limit: Count = 0
    content_limit: Count = _CONTENT_LIMIT
    mode: SearchMode = "both"


class SearchQuery(Query):
    """The same in an address; `q` is `query`."""

    q: str | None = None
    query: str | None = None
    domain: str | None = None
    limit: Count = 0
    content_limit: Count = _CONTENT_LIMIT
    mode: SearchMode = "both"


class Domain(Answer):
    domain: str
    root_count: int


class Hit(Answer):
    uri: str
    domain: str
    path: str
    priority: int
    disclosure: str | None
    score: float
    score_display: float
    content: str | None
    snippet: str | None
    matched_on: list[str]
    cues: list[str]


class SearchCounts(Answer):
    """How many of the results each signal found."""

    exact: int = 0
    glossary_semantic: int = 0
    dense: int = 0
    view_lexical: int = 0
    content_lexical: int = 0


class SearchMeta(Answer):
    query: str
    domain: str | None
    limit: int
    content_limit: int
    mode: SearchMode
    strategy: str = STRATEGY
    candidates: SearchCounts


class Found(Answer):
    results: list[Hit]
    meta: SearchMeta


class Keyword(Answer):
    keyword: str
    node_uuid: str


class Glossary(Answer):
    glossary: list[Keyword]


@operation(operations, "GET", "/browse/domains", "Domains with the number of their first-level memories")
async def domains(call: Call) -> list[Domain]:
    return [Domain(domain=line.domain, root_count=line.count) for line in await call.parts.backend.domains()]


@operation(operations, "GET", "/browse/node", "A memory with its children, or the root of a domain")
async def node(call: Call, query: NodeQuery) -> PageAnswer:
    backend = call.parts.backend
    page = Console(backend).page(uris.parse(f"{query.domain}://{query.path}"), with_views=not query.nav_only)
    return page_answer(page, backend.store.settings, backend.live.embedder, nav_only=query.nav_only)


@operation(operations, "GET", "/browse/search", "Search memories")
async def search_get(call: Call, query: SearchQuery) -> Found:
    return await _search(call, query.q or query.query or "", query)


@operation(operations, "POST", "/browse/search", "Search memories")
async def search_post(call: Call, body: SearchBody) -> Found:
    return await _search(call, body.query, body)


@operation(operations, "GET", "/browse/glossary", "Every keyword with its memory")
async def glossary(call: Call) -> Glossary:
    pairs = await Console(call.parts.backend).glossary()
    return Glossary(glossary=[Keyword(keyword=keyword, node_uuid=uuid) for keyword, uuid in pairs])


async def _search(call: Call, text: str, options: SearchBody | SearchQuery) -> Found:
    text = text.strip()
    domain = (options.domain or "").strip().lower() or None
    limit = min(options.limit or _SEARCH_LIMIT, _MAX_RESULTS) if text else 0
    content_limit = min(options.content_limit, limit)
    found: list[tuple[Candidate, Node]] = []
    if text:
        found = await call.parts.backend.find(text, mode=options.mode, domain=domain, limit=limit)
    hits = [_hit(one, node, text, whole=rank < content_limit) for rank, (one, node) in enumerate(found)]
    meta = SearchMeta(
        query=text,
        domain=domain,
        limit=limit,
        content_limit=content_limit,
        mode=options.mode,
        candidates=_counts([candidate for candidate, _ in found]),
    )
    return Found(results=hits, meta=meta)


def _hit(candidate: Candidate, node: Node, text: str, *, whole: bool) -> Hit:
    return Hit(
        uri=node.uri,
        domain=node.domain,
        path=node.path,
        priority=node.priority,
        disclosure=node.disclosure or None,
        score=candidate.score,
        score_display=display_score(candidate.score),
        content=node.content if whole else None,
        snippet=snippet(node.content, text, _SNIPPET) or None,
        matched_on=sorted(candidate.matched_on),
        cues=list(candidate.cues),
    )


def _counts(candidates: list[Candidate]) -> SearchCounts:
    return SearchCounts(
        exact=sum(one.raw.exact > 0 for one in candidates),
        glossary_semantic=sum(one.raw.glossary_semantic > 0 for one in candidates),
        dense=sum(one.raw.dense > 0 for one in candidates),
        view_lexical=sum(one.raw.lexical > 0 for one in candidates),
        content_lexical=sum(one.raw.lexical > 0 for one in candidates),
    )
