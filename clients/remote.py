"""The memory of a Lore server elsewhere, as the service here uses it: our adapters, budgets, records and blocks around it.

Works with the public server as with ours. What that server does not have is done here: refusing secrets, keeping agents
from rewriting standing rules, boot nodes of runtimes it does not know. When it does not answer, a session starts with what
it said last, marks wait on disk, and after repeated failures prompts do not wait for it at all.
"""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from lorehooks.clients import answers
from lorehooks.clients.abroad import UNKNOWN_ABROAD, boot_of, settings_of
from lorehooks.clients.backend import SESSION_START, Recalled
from lorehooks.clients.client import LoreClient
from lorehooks.clients.connect import kept_folder
from lorehooks.clients.errors import NeedsPersonError, ServerProblem, UnsupportedError
from lorehooks.clients.kept import KeptAnswers, age_note
from lorehooks.clients.link import Link
from lorehooks.clients.marks import SECONDS as MARK_SECONDS
from lorehooks.clients.marks import Courier, Mark, MarkQueue
from lorehooks.clients.recent import RecentRecalls, fits
from lorehooks.clients.target import Target
from lorehooks.clients.transport import Reply
from lorehooks.core import guidance as guidance_texts
from lorehooks.core import uri as uris
from lorehooks.core.boot import BootData
from lorehooks.core.clock import Clock, system_clock, to_iso
from lorehooks.core.errors import LoreError, NotFoundError
from lorehooks.core.home import Home
from lorehooks.core.model import BOOT_URIS, NodeDraft, NodePatch, Origin, RecallQuery, WriteResult
from lorehooks.core.policy import check_secrets
from lorehooks.core.runs import Opened, Recorder
from lorehooks.core.settings import Settings
from lorehooks.core.tool_backend import DomainLine, NodeView, SearchHit, SearchMode, UseKind

FRESH_SECONDS = 60.0
"""How long settings and guidance of the server are taken as they were."""
_FIRST_SETTINGS_SECONDS = 1.0
_BOOT_SHARE = 0.4
"""Part of a session start's time that asking for boot may take: the rest is for startup recall, or for the kept copy."""


class RemoteBackend:
    """A Lore server. `load` runs beside the service and takes marks to it."""

    def __init__(
        self,
        target: Target,
        home: Home,
        recorder: Recorder,
        machine: Settings,
        *,
        language: str = "en",
        on_change: Callable[[], None] = lambda: None,
        clock: Clock = system_clock,
        client: LoreClient | None = None,
        mark_seconds: float = MARK_SECONDS,
    ) -> None:
        """`on_change` is called on the loop when a boot differs from the one before. `client` replaces the target's."""
        self.name = target.address
        self.language = language
        self.recorder = recorder
        self.clock = clock
        self.link = Link(target, home, client)
        self.kept = KeptAnswers(kept_folder(home), target.address)
        self.courier = Courier(MarkQueue(home.root / "queue.jsonl", clock), self.name, self._send_marks, mark_seconds)
        self._boot_seconds = machine["hooks.start_timeout_ms"] / 1000 * _BOOT_SHARE
        self._on_change = on_change
        self._settings = Settings()
        self._settings_at: float | None = None
        self._reading: asyncio.Task[None] | None = None
        self._reviews = False
        self._guidance: tuple[float, str] | None = None
        self._recalls = RecentRecalls(recorder)

    async def load(self) -> None:
        """Run until cancelled: read the settings, then take marks to the server as they come."""
        await self.settings()
        await self.courier.run()

    async def close(self) -> None:
        if self._reading is not None:
            self._reading.cancel()
            await asyncio.gather(self._reading, return_exceptions=True)
        await self.link.close()

    # --- reading ---

    async def status(self) -> Mapping[str, object]:
        health = await self.link.ask(lambda client: client.health())
        return {**health.model_dump(), "server": self.name}

    async def settings(self) -> Mapping[str, Any]:
        """The server's settings as they were about a minute ago; the defaults where it does not show them.

        A prompt does not wait for them: what is known is used while newer ones are on their way.
        """
        if self._settings_at is None or time.monotonic() - self._settings_at > FRESH_SECONDS:
            if self._reading is None:
                self._reading = asyncio.create_task(self._read_settings())
            if self._settings_at is None:
                await asyncio.wait([self._reading], timeout=_FIRST_SETTINGS_SECONDS)
                self._settings_at = time.monotonic()
        return self._settings

    def forget_settings(self) -> None:
        """Read settings and guidance anew at the next use, since someone changed them."""
        self._guidance = None
        self._settings_at = None

    async def guidance(self) -> str:
        """The server's guidance; what it said last, or our own text, when it has none to give."""
        if self._guidance is not None and time.monotonic() - self._guidance[0] < FRESH_SECONDS:
            return self._guidance[1]
        try:
            text = await self.link.ask(lambda client: client.guidance(seconds=self._boot_seconds), self._boot_seconds)
        except UnsupportedError:
            text = guidance_texts.guidance_text(self._settings, self.language)
        except LoreError:
            return self._guidance[1] if self._guidance else guidance_texts.guidance_text(Settings(), self.language)
        self._guidance = (time.monotonic(), text)
        return text

    async def boot(self, client_type: str | None) -> BootData:
        """What a session starts with; while the server does not answer, what it said last, with its age as `notice`."""
        try:
            (found, own), guidance = await asyncio.gather(
                self.link.ask(lambda client: self._read_boot(client, client_type), self._boot_seconds), self.guidance()
            )
        except LoreError:
            kept = await asyncio.to_thread(self.kept.boot, client_type)
            if kept is None:
                raise
            return replace(kept.data, notice=age_note(self.name, kept.at, self.clock(), self.language))
        data = boot_of(client_type, found, own, guidance=guidance, settings=self._settings)
        if await asyncio.to_thread(self.kept.keep_boot, client_type, to_iso(self.clock()), data):
            self._on_change()
        return data

    async def get_node(self, uri: str, *, nav_only: bool = False) -> NodeView:
        return await self.link.ask(lambda client: client.get_node(uri, nav_only=nav_only))

    async def search(
        self, query: str, *, mode: SearchMode, domain: str | None, limit: int, content_limit: int
    ) -> Sequence[SearchHit]:
        return await self.link.ask(
            lambda client: client.search(query, mode=mode, domain=domain, limit=limit, content_limit=content_limit)
        )

    async def domains(self) -> Sequence[DomainLine]:
        return await self.link.ask(lambda client: client.domains())

    async def recall(self, query: RecallQuery, origin: Origin, *, seconds: float | None = None) -> Recalled:
        """Candidates for a prompt. At a session start, what the same question brought last stands in for a dead server."""
        del seconds  # the caller's own limit ends the call
        at = to_iso(self.clock())
        is_start = origin.source == SESSION_START
        try:
            found = await self.link.ask(lambda client: client.recall(query, origin))
        except ServerProblem:
            kept = await asyncio.to_thread(self.kept.recall, query, origin) if is_start else None
            if kept is None:
                raise
            self._recalls.remember(kept.recalled, origin)
            return kept.recalled
        query_id = found.query_id or str(uuid.uuid4())
        recalled = replace(found, query_id=query_id, settings=self._settings.changed, at=at)
        self._recalls.remember(recalled, origin)
        if is_start:
            await asyncio.to_thread(self.kept.keep_recall, query, origin, at, recalled)
        return recalled

    # --- writing ---

    async def create_node(self, draft: NodeDraft, origin: Origin, *, allow_secret: bool = False) -> WriteResult:
        named = replace(draft, uri=str(uris.parse_for_write(draft.uri)))
        texts = (draft.content, draft.disclosure, *draft.glossary)
        await self.check_write(named.uri, texts, origin, allow_secret=allow_secret)
        return self._written(
            await self.link.ask(lambda client: client.create_node(named, origin, allow_secret=allow_secret))
        )

    async def update_node(
        self, uri: str, patch: NodePatch, origin: Origin, *, allow_secret: bool = False
    ) -> WriteResult:
        texts = (patch.content or "", patch.disclosure or "", *(patch.glossary or ()), *patch.glossary_add)
        await self.check_write(uri, texts, origin, allow_secret=allow_secret)
        return self._written(
            await self.link.ask(lambda client: client.update_node(uri, patch, origin, allow_secret=allow_secret))
        )

    async def delete_node(self, uri: str, origin: Origin) -> WriteResult:
        return await self.link.ask(lambda client: client.delete_node(uri, origin))

    async def move_node(self, old_uri: str, new_uri: str, origin: Origin) -> WriteResult:
        new = str(uris.parse_for_write(new_uri))
        return await self.link.ask(lambda client: client.move_node(old_uri, new, origin))

    async def check_write(self, uri: str, texts: Iterable[str], origin: Origin, *, allow_secret: bool = False) -> None:
        """Hold a write to what our own server would hold it to. Raises SecretError, NeedsPersonError."""
        if not allow_secret:
            check_secrets(texts)
        if uri in BOOT_URIS and origin.is_agent:
            await self.settings()
            if not self._reviews:
                raise NeedsPersonError(
                    f"{uri} is a standing rule of the user, and {self.name} has no way to ask the user first",
                    hint=f"tell the user what to change, and to do it with: lore boot --edit {uri}",
                )

    async def mark_used(self, *, uri: str, how: UseKind, query_id: str | None, session_id: str | None) -> bool:
        """Queue the mark for the server. Whether the ids fit is told from what was recalled here."""
        at = to_iso(self.clock())
        shown = self._recalls.shown(query_id)
        client_type = shown.client_type if shown else None
        self.recorder.opened(Opened(at, client_type, session_id, query_id, uri, how))
        if query_id is None or how == "none":
            return False
        session_id = session_id or (shown.session_id if shown else None)
        self.courier.add(Mark(self.name, query_id, uri, session_id, client_type, at))
        return fits(shown, uri, session_id)

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
        """Pass someone's request below `/api` on; see `LoreClient.pass_on`."""
        return await self.link.ask(
            lambda client: client.pass_on(
                method, path, params=params, content=content, headers=headers, hops=hops, seconds=seconds
            )
        )

    # --- behind it ---

    async def _send_marks(self, mark: Mark, opened: Sequence[str]) -> None:
        await self.link.ask(
            lambda client: client.mark_used(
                mark.query_id, opened, session_id=mark.session_id, client_type=mark.client_type
            )
        )

    async def _read_boot(self, client: LoreClient, client_type: str | None) -> tuple[answers.Boot, NodeView | None]:
        found, own = await asyncio.gather(
            client.boot(client_type, seconds=self._boot_seconds), self._read_own(client, client_type)
        )
        return found, own

    async def _read_own(self, client: LoreClient, client_type: str | None) -> NodeView | None:
        if client_type not in UNKNOWN_ABROAD:
            return None
        try:
            return await client.get_node(f"core://agent/{client_type}", seconds=self._boot_seconds)
        except NotFoundError:
            return None

    async def _read_settings(self) -> None:
        try:
            page = await self.link.ask(lambda client: client.settings())
        except LoreError:
            pass  # a token without the right to them, a server without them: the last known, or the defaults
        else:
            self._settings = settings_of(page)
            self._reviews = "policy.boot_write" in page.values
        finally:
            self._settings_at = time.monotonic()
            self._reading = None

    def _written(self, result: WriteResult) -> WriteResult:
        if result.uri in BOOT_URIS:
            self._on_change()
        return result
