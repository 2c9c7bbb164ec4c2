"""The way of a prompt through the service: parse, ledger, recall or boot, budget, render, record.

Adapters know their host, the backend knows the memory; what stands here is the same for all of them. Nothing raises: a
hook gets its bytes or none, and the reason goes to the record and to `run/misses.log`.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from hashlib import sha256
from typing import Any

from lorehooks.clients.adapters import Adapter, HookEvent, adapter_for
from lorehooks.clients.adapters.payload import decode
from lorehooks.clients.backend import Backend, Recalled
from lorehooks.clients.runtimes import Runtime, runtime_of
from lorehooks.core import blocks
from lorehooks.core.boot import BootData, render_boot, render_subagent_boot
from lorehooks.core.clock import to_iso
from lorehooks.core.errors import LoreError
from lorehooks.core.ledger import Ledger, Session
from lorehooks.core.model import Candidate, Origin, RecallQuery
from lorehooks.core.repository import project_key, repository_of
from lorehooks.core.runs import Recorder, Run, candidate_record
from lorehooks.core.secrets import mask
from lorehooks.core.settings import Settings
from lorehooks.hooks.misses import Misses
from lorehooks.hooks.promptblock import Asked, prompt_block, recall_block
from lorehooks.hooks.serviceinfo import installed_version

ANSWER_MARGIN_MS = 200
"""What is left to the caller to receive and print the answer."""

REHEARSAL = "lore-rehearsal"
"""The session of `lore boot` and of the doctor's self-test: answered like any other, kept out of ledger and records."""

NEW_EPOCH_SOURCES = ("startup", "clear", "compact", "fork")
KEEPS_CONTEXT = ("resume",)
"""Sources after which the model still sees what it was sent; anything unknown counts as a new start (bug case B18)."""


@dataclass(slots=True)
class Answer:
    """What a hook gets, and what the record says about it."""

    text: str = ""
    reason: str = ""
    recalled: Recalled | None = None
    candidates: tuple[Candidate, ...] = ()
    asked: Asked = field(default_factory=Asked)
    epoch: int | None = None
    tells_misses: bool = False
    """Whether the text was made now, and so says what was missed since the last one."""
    raw: bytes | None = None
    """Bytes that are no context text, such as changed tool arguments."""


class Dispatcher:
    """Answers every hook event of every runtime."""

    def __init__(
        self, backend: Backend, ledger: Ledger, recorder: Recorder, misses: Misses, machine: Settings, language: str
    ) -> None:
        self.backend = backend
        self.ledger = ledger
        self.recorder = recorder
        self.misses = misses
        self.machine = machine
        self.language = language
        self.release = installed_version()

    async def handle(self, client_type: str, event_name: str, body: bytes, remaining_ms: float) -> bytes:
        """The bytes that the host gets on stdout, or as the answer to its plugin; empty for nothing."""
        adapter = adapter_for(client_type)
        if adapter is None:
            return b""
        _, output = await self.run(adapter, adapter.parse(event_name, decode(body)), remaining_ms)
        return output

    async def run(self, adapter: Adapter, event: HookEvent, remaining_ms: float) -> tuple[Answer, bytes]:
        """The answer to an event, and its bytes as the adapter renders them; both are recorded."""
        began = time.perf_counter()
        rehearsal = event.session_id == REHEARSAL
        if rehearsal:
            event = replace(event, session_id=None)
        answer = await self._answer(event, remaining_ms)
        output = adapter.render(event, answer.text) if answer.raw is None else answer.raw
        if not rehearsal:
            if answer.tells_misses:
                self.misses.seen(event.client_type)
            self._record(event, answer, output, (time.perf_counter() - began) * 1000)
        return answer, output

    async def _answer(self, event: HookEvent, remaining_ms: float) -> Answer:
        try:
            async with asyncio.timeout(max(remaining_ms - ANSWER_MARGIN_MS, 50) / 1000):
                match event.kind:
                    case "session.start":
                        return await self._session_start(event)
                    case "prompt.submit":
                        return await self._prompt(event, remaining_ms)
                    case "subagent.start":
                        return await self._subagent_start(event)
                    case "tool.before":
                        return self._tool_before(event)
                    case _:
                        return Answer(reason=event.reason or "noted")
        except TimeoutError:
            self.misses.add(event.client_type, event.kind, "timeout")
            return Answer(reason="timeout")
        except LoreError as error:
            self.misses.add(event.client_type, event.kind, error.code)
            return Answer(reason=error.code)
        except Exception as error:  # noqa: BLE001  a defect of ours must not reach the user's prompt
            self.misses.add(event.client_type, event.kind, f"defect_{type(error).__name__}")
            return Answer(reason=f"defect: {type(error).__name__}: {error}")

    # --- session start ---

    async def _session_start(self, event: HookEvent) -> Answer:
        runtime = runtime_of(event.client_type)
        session = self._session(event)
        if session is None:
            return Answer(text=await self._boot_text(event, runtime), tells_misses=True)
        if event.source not in KEEPS_CONTEXT and event.source != "ask":
            session.begin_epoch()
        elif session.boot is not None and (event.source == "ask" or not runtime.keeps_transcript):
            return Answer(text=session.boot, epoch=session.epoch)  # the same bytes, so that prompt caches hold
        data = await self.backend.boot(event.client_type)
        key = _boot_key(data)
        if event.source in KEEPS_CONTEXT and session.boot is not None and session.boot_key == key:
            return Answer(reason="unchanged", epoch=session.epoch)
        session.boot = await self._boot_text(event, runtime, data)
        session.boot_key = key
        self._keep(session)
        return Answer(text=session.boot, epoch=session.epoch, tells_misses=True)

    async def _boot_text(self, event: HookEvent, runtime: Runtime, data: BootData | None = None) -> str:
        data = data or await self.backend.boot(event.client_type)
        startup = await self._startup_recall(event, runtime)
        notices = (data.notice, self.misses.notice(event.client_type, self.language))
        return render_boot(
            replace(data, startup=startup, notice=" ".join(filter(None, notices))),
            client_type=event.client_type,
            language=self.language,
            budget=runtime.boot_budget,
        )

    async def _startup_recall(self, event: HookEvent, runtime: Runtime) -> tuple[str, ...]:
        """One block for each of runtime, folder and repository that recalls something; a memory is named once."""
        _, repository = _place(event)
        project = project_key(repository) if repository else None
        found: list[str] = []
        named: set[str] = set()
        for text in startup_queries(event):
            try:
                recalled = await self._recall(event, RecallQuery(text, project))
            except (LoreError, TimeoutError):
                break
            shown = [candidate for candidate in recalled.result.shown if candidate.uri not in named]
            named.update(candidate.uri for candidate in shown)
            if shown:
                found.append(
                    recall_block(
                        shown,
                        recalled,
                        runtime,
                        session_id=event.session_id,
                        phase="startup",
                        language=self.language,
                    )
                )
                self._note_shown(event, recalled, shown)
        return tuple(found)

    async def _subagent_start(self, event: HookEvent) -> Answer:
        if not self.machine["hooks.subagent_boot"]:
            return Answer(reason="switched_off")
        runtime = runtime_of(event.client_type)
        data = await self.backend.boot(event.client_type)
        text = render_subagent_boot(
            data, client_type=event.client_type, language=self.language, budget=runtime.recall_budget
        )
        return Answer(text=text)

    # --- prompt ---

    async def _prompt(self, event: HookEvent, remaining_ms: float) -> Answer:
        session = self._session(event)
        settings = await self.backend.settings()
        limit_ms = min(settings["recall.safety.timeout_ms"], max(remaining_ms - ANSWER_MARGIN_MS, 50))
        asked = self._asked(session, settings)
        try:
            async with asyncio.timeout(limit_ms / 1000):
                recalled = await self._recall(event, asked.query(mask(event.prompt), settings))
            if recalled.result.timed_out_ms is not None:
                raise TimeoutError  # noqa: TRY301  (a server's own limit was shorter: the user is told the same)
        except TimeoutError:
            self.misses.add(event.client_type, event.kind, "slow_recall")
            note = blocks.render_recall(
                (), session_id=None, query_id=None, timed_out_ms=round(limit_ms), language=self.language
            )
            return Answer(text=note, reason="slow_recall", epoch=session.epoch if session else None)
        block = prompt_block(recalled, asked, settings, runtime_of(event.client_type), event.session_id)
        if block.shown:
            self._note_shown(event, recalled, block.shown)
        return Answer(
            text=block.text,
            reason="" if block.shown else "no_match",
            recalled=recalled,
            candidates=block.candidates,
            asked=asked,
            epoch=session.epoch if session else None,
        )

    def _asked(self, session: Session | None, settings: Mapping[str, Any]) -> Asked:
        if session is None:
            return Asked(language=self.language)
        once = settings["recall.display.repeat"] == "once"
        return Asked(
            project=project_key(session.project) if session.project else None,
            shown_before=tuple(sorted(session.shown_in_epoch)) if once else (),
            language=self.language,
        )

    async def _recall(self, event: HookEvent, query: RecallQuery) -> Recalled:
        return await self.backend.recall(query, Origin(f"hook:{event.kind}", event.client_type, event.session_id))

    # --- ids ---

    def _tool_before(self, event: HookEvent) -> Answer:
        """Fill in the ids of a recalled address that the model left out."""
        adapter = adapter_for(event.client_type)
        session = self._session(event)
        uri = event.tool_input.get("uri")
        if adapter is None or session is None or not isinstance(uri, str):
            return Answer(reason="not_ours", raw=b"")
        if event.tool_input.get("session_id") and event.tool_input.get("query_id"):
            return Answer(reason="ids_passed", raw=b"")
        ids = session.ids_for(uri)
        if ids is None:
            return Answer(reason="not_recalled", raw=b"")
        filled = {**event.tool_input, "session_id": ids.session_id, "query_id": ids.query_id}
        return Answer(reason="ids_filled", raw=adapter.render_tool_input(event, filled))

    # --- ledger and record ---

    def _session(self, event: HookEvent) -> Session | None:
        """The ledger's session, with the project it works in; None when the host named no session."""
        if event.session_id is None:
            return None
        session = self.ledger.session(event.client_type, event.session_id)
        folder, repository = _place(event)
        if folder or repository:
            session.project = repository or folder
        return session

    def _note_shown(self, event: HookEvent, recalled: Recalled, shown: Sequence[Candidate]) -> None:
        session = self._session(event)
        if session is not None:
            session.note_shown(recalled.query_id, [candidate.uri for candidate in shown])
            self._keep(session)

    def _keep(self, session: Session) -> None:
        self.ledger.keep(session, to_iso(self.recorder.clock()))

    def _record(self, event: HookEvent, answer: Answer, output: bytes, ms: float) -> None:
        recalled = answer.recalled
        self.recorder.add(
            Run(
                at=to_iso(self.recorder.clock()),
                client_type=event.client_type,
                event=event.kind,
                session_id=event.session_id,
                epoch=answer.epoch,
                query_id=recalled.query_id if recalled else None,
                reason=answer.reason,
                ms=round(ms, 3),
                input=_input(event),
                recall=_recall_record(self.backend.name, self.release, recalled, answer) if recalled else None,
                output=output,
            )
        )


def startup_queries(event: HookEvent) -> list[str]:
    """What startup recall asks for: the runtime, the folder, the repository; what is the same but for case, once."""
    found: dict[str, str] = {}
    for name in filter(None, (runtime_of(event.client_type).label, *_place(event))):
        found.setdefault(name.casefold(), name)
    return list(found.values())


def _place(event: HookEvent) -> tuple[str | None, str | None]:
    """Names of the folder and of the repository that a session works in."""
    if event.folder or event.repository:
        return event.folder, event.repository
    return repository_of(event.cwd)


def _boot_key(data: BootData) -> str:
    """What makes a boot block worth sending again to a session that still has the last one: its rules, not its news."""
    parts = [data.guidance, data.preamble, *(f"{node.uri}\n{node.content}" for node in data.nodes)]
    return sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()


def _input(event: HookEvent) -> dict[str, Any]:
    """The facts of an event that replay needs; what the host sent beyond them is not kept."""
    facts = {
        "native_event": event.native_event,
        "source": event.source,
        "prompt": event.prompt,
        "cwd": event.cwd,
        "agent_id": event.agent_id,
        "turn_id": event.turn_id,
        "tool_name": event.tool_name,
        "tool_input": dict(event.tool_input),
    }
    return {name: value for name, value in facts.items() if value}


def _recall_record(backend: str, release: str, recalled: Recalled, answer: Answer) -> dict[str, Any]:
    """What makes a recall repeatable, and what came out of it."""
    return {
        "backend": backend,
        "release": release,
        "query": recalled.result.query,
        "truncated_at": recalled.result.truncated_at,
        "at": recalled.at,
        "memory_seq": recalled.memory_seq,
        "settings": dict(recalled.settings),
        "asked": asdict(answer.asked),
        "candidates": [candidate_record(candidate) for candidate in answer.candidates],
        "meta": recalled.result.meta,
    }
