"""`LoreClient`: the Lore API of one server as typed calls, with one deadline each (`lore-contract.md` 1).

Every call raises LoreError: UnreachableError, DeadlineError, UnauthorizedError, BadAnswerError, ServerError,
UnsupportedError for what went wrong on the way, NotFoundError, ConflictError, InvalidError, SecretError for what the
server says of the request itself. All of them name the server or the memory, and what mends it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from http import HTTPStatus
from types import TracebackType
from typing import Self, TypeVar

import httpx

from lorehooks.clients import answers
from lorehooks.clients.backend import Recalled
from lorehooks.clients.candidates import to_result
from lorehooks.clients.endpoint import Endpoint
from lorehooks.clients.errors import ServerError
from lorehooks.clients.replies import raise_for_status
from lorehooks.clients.transport import Reply, Transport, decode_json, encode_json
from lorehooks.core.model import NodeDraft, NodePatch, Origin, RecallQuery, WriteResult
from lorehooks.core.tool_backend import ChildLine, DomainLine, NodeView, SearchHit, SearchMode

SECONDS = 10.0
"""What a call may take, unless its caller says otherwise."""
_TRIAL_SECONDS = 30.0
"""A server takes at most 15 of them."""
LONG_SECONDS = 600.0
"""What maintenance of a large memory may take."""
SOURCE_HEADER = "X-Lore-Source"
"""Says where a write came from (`cli`, `mcp:<tool>`); a server that does not know it records its own route."""
_WAITS = "Not changed yet"
"""How our server begins the warning that says the same as `proposal`."""
_JSON_LINES = "application/x-ndjson"
HOPS_HEADER = "X-Lore-Hops"
MAX_HOPS = 3
"""A service that is told to use itself is found out when its own request comes back."""
_NOT_FOR_OTHERS = (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN)
"""The caller's own credentials are fine; it is the service whose token is refused."""
Shape = TypeVar("Shape")


class LoreClient:
    """One Lore server. Keeps connections between calls; `close` it, or use it as an async context manager."""

    def __init__(
        self,
        endpoint: Endpoint,
        *,
        seconds: float = SECONDS,
        hops: int = 0,
        inner: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        """`seconds` is the deadline of a call. `hops`: how many services pass it on, this one included.

        `inner` answers in place of the network.
        """
        self.endpoint = endpoint
        self.seconds = seconds
        self.hops = hops
        self._transport = Transport(endpoint, inner=inner)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """End the connections."""
        await self._transport.close()

    # --- what a session starts with ---

    async def health(self, *, seconds: float | None = None) -> answers.Health:
        """The server's health, of a degraded one (503) too. Needs no token."""
        reply = await self.send("GET", "/health", seconds=seconds)
        if reply.status != 503:  # noqa: PLR2004  (degraded: the answer says what is wrong)
            raise_for_status(reply, self.endpoint.label)
        return answers.checked(answers.Health, reply, self.endpoint.label)

    async def guidance(self, *, client_type: str | None = None, seconds: float | None = None) -> str:
        """The server's guidance text, empty when it is switched off."""
        found = await self._get(answers.Guidance, "/lifecycle/guidance", _client(client_type), seconds)
        return found.guidance

    async def boot(self, client_type: str | None, *, seconds: float | None = None) -> answers.Boot:
        """The boot nodes of a client and the latest memories."""
        return await self._get(answers.Boot, "/browse/boot", _client(client_type), seconds)

    # --- reading ---

    async def get_node(self, uri: str, *, nav_only: bool = False, seconds: float | None = None) -> NodeView:
        """A memory with its children, or the root of a domain. Raises NotFoundError."""
        page = await self.node_page(uri, nav_only=nav_only, seconds=seconds)
        node = page.node
        return NodeView(
            uri=node.uri,
            uuid="" if node.is_virtual else node.node_uuid,
            content="" if nav_only else node.content,
            priority=node.priority,
            disclosure=node.disclosure,
            glossary=node.glossary_keywords,
            aliases=node.aliases,
            children=tuple(
                ChildLine(child.uri, child.priority, " ".join(child.content_snippet.split())) for child in page.children
            ),
        )

    async def node_page(self, uri: str, *, nav_only: bool = False, seconds: float | None = None) -> answers.NodePage:
        """The same with everything the server says, such as the moment of the last write."""
        params = {**_address(uri), **({"nav_only": "true"} if nav_only else {})}
        return await self._get(answers.NodePage, "/browse/node", params, seconds)

    async def search(
        self,
        query: str,
        *,
        mode: SearchMode = "both",
        domain: str | None = None,
        limit: int = 10,
        content_limit: int = 5,
        client_type: str | None = None,
    ) -> Sequence[SearchHit]:
        """Memories that match, best first. The public server knows one mode, which is `both`."""
        body = {"query": query, "mode": mode, "limit": limit, "content_limit": content_limit}
        if domain:
            body["domain"] = domain
        page = await self._post(answers.SearchPage, "/browse/search", body, _client(client_type), repeatable=True)
        return [
            SearchHit(hit.uri, hit.priority, hit.score, hit.cues, _unmarked(hit.snippet), hit.content)
            for hit in page.results
        ]

    async def domains(self) -> Sequence[DomainLine]:
        """All domains that hold a memory."""
        found = await self._get(tuple[answers.Domain, ...], "/browse/domains", {})
        return [DomainLine(line.domain, line.root_count) for line in found]

    async def recall(self, query: RecallQuery, origin: Origin, *, seconds: float | None = None) -> Recalled:
        """Candidates for a prompt, with the signals that decided. The query id is empty when the server logs nothing."""
        body: dict[str, object] = {
            "query": query.text,
            "session_id": origin.session_id,
            "project": query.project,
            "domain": query.domain,
            "limit": query.limit,
            "max_display_items": query.max_display_items,
            "min_display_score": query.min_display_score,
            "min_score": query.min_score,
            "exclude_boot_from_results": query.exclude_boot,
        }
        body = {key: value for key, value in body.items() if value is not None}
        page = await self._post(
            answers.RecallPage, "/browse/recall", body, _client(origin.client_type), seconds, repeatable=True
        )
        return Recalled(page.event_log.query_id, to_result(page))

    async def mark_used(
        self,
        query_id: str,
        uris: Sequence[str],
        *,
        session_id: str | None = None,
        client_type: str | None = None,
        source: str = "tool:lore_get_node",
    ) -> int:
        """Note that recalled memories were opened. Returns how many marks are new; an unknown id gives 0."""
        body = {"query_id": query_id, "node_uris": list(uris), "source": source}
        if session_id:
            body["session_id"] = session_id
        done = await self._post(answers.Usage, "/browse/recall/usage", body, _client(client_type), repeatable=True)
        return done.updated_count

    # --- writing ---

    async def create_node(self, draft: NodeDraft, origin: Origin, *, allow_secret: bool = False) -> WriteResult:
        """Store a new memory. Raises InvalidError, ConflictError, SecretError."""
        address = _address(draft.uri)
        parent, _, title = address["path"].rpartition("/")
        body: dict[str, object] = {
            "domain": address["domain"],
            "parent_path": parent,
            "title": title,
            "content": draft.content,
            "priority": draft.priority,
            "disclosure": draft.disclosure,
            "glossary": list(draft.glossary),
        }
        return await self._write("POST", "/browse/node", {}, body, origin, allow_secret)

    async def update_node(
        self, uri: str, patch: NodePatch, origin: Origin, *, allow_secret: bool = False
    ) -> WriteResult:
        """Change a memory; what the patch leaves out stays. Raises NotFoundError, InvalidError, SecretError."""
        fields = {"content": patch.content, "priority": patch.priority, "disclosure": patch.disclosure}
        body: dict[str, object] = {name: value for name, value in fields.items() if value is not None}
        if patch.glossary is not None:
            body["glossary"] = list(patch.glossary)
        if patch.glossary_add:
            body["glossary_add"] = list(patch.glossary_add)
        if patch.glossary_remove:
            body["glossary_remove"] = list(patch.glossary_remove)
        return await self._write("PUT", "/browse/node", _address(uri), body, origin, allow_secret)

    async def delete_node(self, uri: str, origin: Origin) -> WriteResult:
        """Delete a memory with everything below it. Raises NotFoundError, ProtectedBootError."""
        params = _address(uri)
        if origin.session_id:
            params["session_id"] = origin.session_id
        return await self._write("DELETE", "/browse/node", params, None, origin)

    async def move_node(self, old_uri: str, new_uri: str, origin: Origin) -> WriteResult:
        """Give a memory another address. Raises NotFoundError (the public server: InvalidError), ConflictError."""
        return await self._write("POST", "/browse/move", {}, {"old_uri": old_uri, "new_uri": new_uri}, origin)

    async def history(self, uri: str, *, limit: int = 50) -> answers.History:
        """What happened to a memory, newest first."""
        params = {**_address(uri), "limit": str(limit)}
        return await self._get(answers.History, "/browse/history", params)

    async def rollback(self, uri: str, event_id: int, origin: Origin) -> WriteResult:
        """Restore a memory as it was after an event. Raises NotFoundError, InvalidError."""
        return await self._write("POST", "/browse/history", _address(uri), {"event_id": event_id}, origin)

    # --- settings and proposals ---

    async def settings(self, *, seconds: float | None = None) -> answers.SettingsPage:
        """All settings of the memory."""
        return await self._get(answers.SettingsPage, "/settings", {}, seconds)

    async def put_settings(self, patch: Mapping[str, object]) -> answers.SettingsPage:
        """Set several at once. Raises InvalidError for an unknown key or a wrong value."""
        reply = await self.send("PUT", "/settings", body={"patch": dict(patch)})
        return self._checked(answers.SettingsPage, reply)

    async def test_settings(self, section: str) -> answers.Tried:
        """Have the server call its endpoint of `embedding` or `view_llm` once. Raises InvalidError, ServerError."""
        return await self._post(
            answers.Tried, "/settings/test", {"section": section}, seconds=_TRIAL_SECONDS, repeatable=True
        )

    async def reset_settings(self, keys: Sequence[str]) -> answers.SettingsPage:
        """Take several back to their defaults. Raises InvalidError for an unknown key."""
        return await self._post(answers.SettingsPage, "/settings/reset", {"keys": list(keys)})

    async def pending(self) -> Sequence[answers.Proposal]:
        """Writes of agents to boot nodes that wait for a person, oldest first. The public server has none of this."""
        return (await self._get(answers.Pending, "/pending", {})).proposals

    async def decide(self, number: int, *, accepted: bool) -> WriteResult:
        """Accept or reject one of them. Raises NotFoundError, ConflictError."""
        return await self._write("POST", f"/pending/{number}", {}, {"accept": accepted}, Origin("cli"))

    # --- the wire ---

    async def ask(
        self,
        shape: type[Shape],
        method: str,
        path: str,
        *,
        params: Mapping[str, str] | None = None,
        body: object | None = None,
        seconds: float | None = None,
    ) -> Shape:
        """Any other route of the server, its answer checked against a shape."""
        return self._checked(shape, await self.send(method, path, params=params, body=body, seconds=seconds))

    async def send(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, str] | None = None,
        body: object | None = None,
        seconds: float | None = None,
        headers: Mapping[str, str] | None = None,
        repeatable: bool | None = None,
    ) -> Reply:
        """One request below `/api`; the answer as it came, whatever its status."""
        sent = {**self._passing_on, **(headers or {})}
        content = None
        if body is not None:
            content = encode_json(body)
            sent["Content-Type"] = "application/json"
        return await self._transport.call(
            method,
            f"/api{path}",
            seconds=self.seconds if seconds is None else seconds,
            params=params,
            content=content,
            headers=sent,
            repeatable=repeatable,
        )

    async def pass_on(
        self,
        method: str,
        path: str,
        *,
        params: Sequence[tuple[str, str]],
        content: bytes | None,
        headers: Mapping[str, str],
        hops: int,
        seconds: float,
    ) -> Reply:
        """Pass someone's request on as it is, and give back what answers, as long as a Lore server does.

        Its refusals of the request are given back too; raises for refusals of the token, redirects and web pages.
        """
        if hops >= MAX_HOPS:
            raise ServerError(f"{self.endpoint.label} leads back here", answered=508, hint="lore connect")
        reply = await self._transport.call(
            method,
            f"/api{path}",
            seconds=seconds,
            params=params,
            content=content,
            headers={**headers, HOPS_HEADER: str(hops + 1)},
        )
        if reply.status in _NOT_FOR_OTHERS or HTTPStatus.MULTIPLE_CHOICES <= reply.status < HTTPStatus.BAD_REQUEST:
            raise_for_status(reply, self.endpoint.label)
        if reply.content and reply.content_type != _JSON_LINES:
            decode_json(reply, self.endpoint.label)
        return reply

    @property
    def _passing_on(self) -> dict[str, str]:
        return {HOPS_HEADER: str(self.hops)} if self.hops else {}

    async def _get(
        self, shape: type[Shape], path: str, params: Mapping[str, str], seconds: float | None = None
    ) -> Shape:
        return self._checked(shape, await self.send("GET", path, params=params, seconds=seconds))

    async def _post(
        self,
        shape: type[Shape],
        path: str,
        body: object,
        params: Mapping[str, str] | None = None,
        seconds: float | None = None,
        *,
        repeatable: bool = False,
    ) -> Shape:
        reply = await self.send("POST", path, params=params, body=body, seconds=seconds, repeatable=repeatable)
        return self._checked(shape, reply)

    async def _write(
        self,
        method: str,
        path: str,
        params: Mapping[str, str],
        body: dict[str, object] | None,
        origin: Origin,
        allow_secret: bool = False,
    ) -> WriteResult:
        if body is not None and origin.session_id:
            body["session_id"] = origin.session_id
        if body is not None and allow_secret:
            body["allow_secret"] = True
        reply = await self.send(
            method,
            path,
            params={**params, **_client(origin.client_type)},
            body=body,
            headers={SOURCE_HEADER: origin.source} if origin.source.isascii() else None,
        )
        done = self._checked(answers.Written, reply)
        told = dict.fromkeys((*done.warnings, *done.policy_warnings))
        warnings = tuple(text for text in told if done.proposal is None or not text.startswith(_WAITS))
        return WriteResult(done.uri, done.node_uuid, warnings=warnings, proposal=done.proposal)

    def _checked(self, shape: type[Shape], reply: Reply) -> Shape:
        raise_for_status(reply, self.endpoint.label)
        return answers.checked(shape, reply, self.endpoint.label)


def _client(client_type: str | None) -> dict[str, str]:
    return {"client_type": client_type} if client_type else {}


def _address(uri: str) -> dict[str, str]:
    """`domain` and `path` as the API takes them. Case is kept: how strictly an address is read is the server's matter."""
    domain, scheme, path = uri.strip().partition("://")
    if not scheme:
        domain, path = "core", domain
    return {"domain": domain or "core", "path": path.strip("/")}


def _unmarked(snippet: str) -> str:
    """A snippet on one line, without the public server's marks around what matched."""
    return " ".join(snippet.replace("<b>", "").replace("</b>", "").split())
