"""The way of a prompt through the service: parse, ledger, recall or boot, budget, render, record.

Adapters know their host, the backend knows the memory; what stands here is the same for all of them. Nothing raises: a
hook gets its bytes or none, and the reason goes to the record and to `run/misses.log`.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
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
from lorehooks.core.model import REHEARSALS, SELF_TEST, Candidate, Origin, RecallQuery
from lorehooks.core.repository import project_key
from lorehooks.core.runs import Recorder
from lorehooks.core.secrets import masked_prompt
from lorehooks.core.settings import Settings
from lorehooks.core.tools import fill_ids
from lorehooks.hooks.hookanswer import HookAnswer, StartupRecall
from lorehooks.hooks.misses import Misses
from lorehooks.hooks.promptblock import Asked, prompt_block, recall_block, within_budget
from lorehooks.hooks.runrecord import runs_of
from lorehooks.hooks.serviceinfo import installed_version
from lorehooks.hooks.whereabouts import Whereabouts

ANSWER_MARGIN_MS = 200
"""What is left to the caller to receive and print the answer."""
_LEAST_MS, _MOST_MS = 50, 60_000
_NOTE_MARGIN = 0.05
"""Seconds that recall leaves to what is said when it took too long."""
_SAME_PROMPT_SECONDS = 3
"""Between two session starts of one prompt lies a process's start; else a model's summary and a person's typing."""

NEW_EPOCH_SOURCES = ("startup", "clear", "compact", "fork")
KEEPS_CONTEXT = ("resume",)
"""Sources after which the model still sees what it was sent; anything unknown counts as a new start (bug case B18)."""

SELF_TEST_TEXT = "Lore self-test: recall answered, and no memory matched."
"""A self-test is told even that there is nothing to tell, since silence is also what a broken hook says."""


class Dispatcher:
    """Answers every hook event of every runtime."""

    def __init__(
        self,
        backend: Backend,
        ledger: Ledger,
        recorder: Recorder,
        misses: Misses,
        machine: Settings,
        language: str,
        *,
        ready: Callable[[str], bytes] = lambda _: b"",
    ) -> None:
        """`ready` gives a runtime's ready boot bytes, for a session start that fails."""
        self.backend = backend
        self.ledger = ledger
        self.recorder = recorder
        self.misses = misses
        self.machine = machine
        self.language = language
        self.release = installed_version()
        self._ready = ready
        self._whereabouts = Whereabouts()

    async def handle(self, client_type: str, event_name: str, body: bytes, remaining_ms: float) -> bytes:
        """The bytes that the host gets on stdout, or as the answer to its plugin; empty for nothing."""
        adapter = adapter_for(client_type)
        if adapter is None:
            return b""
        _, output = await self.run(adapter, adapter.parse(event_name, decode(body)), remaining_ms)
        return output

    async def run(self, adapter: Adapter, event: HookEvent, remaining_ms: float) -> tuple[HookAnswer, bytes]:
        """The answer to an event, and its bytes as the adapter renders them; both are recorded."""
        began = time.perf_counter()
        event = replace(event, prompt=masked_prompt(event.prompt))
        event, answer = await self._answer(event, remaining_ms)
        output = adapter.render(event, answer.text) if answer.raw is None else answer.raw
        if answer.missed and not answer.text and event.kind == "session.start" and event.source not in KEEPS_CONTEXT:
            output = self._ready(event.client_type) or output
        if event.session_id not in REHEARSALS:
            if answer.missed:
                self.misses.add(event.client_type, event.kind, answer.missed)
            if answer.tells_misses:
                self.misses.seen(event.client_type)
            self._record(event, answer, output, (time.perf_counter() - began) * 1000)
        return answer, output

    async def _answer(self, event: HookEvent, remaining_ms: float) -> tuple[HookEvent, HookAnswer]:
        """The answer in time, and the event with the project that it belongs to."""
        due = asyncio.get_running_loop().time() + _seconds_for(remaining_ms)
        try:
            async with asyncio.timeout_at(due):
                event = await self._placed(event)
                match event.kind:
                    case "session.start":
                        return event, await self._session_start(event, due)
                    case "prompt.submit":
                        return event, await self._prompt(event, due)
                    case "subagent.start":
                        return event, await self._subagent_start(event)
                    case "tool.before":
                        return event, self._tool_before(event)
                    case _:
                        return event, HookAnswer(reason=event.reason or "noted")
        except TimeoutError:
            return event, HookAnswer(reason="timeout", missed="timeout")
        except LoreError as error:
            return event, HookAnswer(reason=error.code, missed=error.code)
        except Exception as error:  # noqa: BLE001  a defect of ours must not reach the user's prompt
            name = type(error).__name__
            return event, HookAnswer(reason=f"defect: {name}: {error}", missed=f"defect_{name}")

    # --- session start ---

    async def _session_start(self, event: HookEvent, due: float) -> HookAnswer:
        runtime = runtime_of(event.client_type)
        session = self._session(event)
        if session is None:
            return await self._boot(event, runtime, due, await self.backend.boot(event.client_type))
        if event.source == "compact" and runtime.compacts_before_starts and _just_sent(session):
            session.begin_epoch(keep_boot=True)
            self._keep(session)
            return HookAnswer(reason="unchanged", epoch=session.epoch)
        if event.source not in KEEPS_CONTEXT and event.source != "ask":
            session.begin_epoch()
        elif session.boot is not None and (event.source == "ask" or not runtime.keeps_transcript):
            return HookAnswer(text=session.boot, epoch=session.epoch)  # the same bytes, so that prompt caches hold
        data = await self.backend.boot(event.client_type)
        key = _boot_key(data)
        if event.source in KEEPS_CONTEXT and session.boot is not None and session.boot_key == key:
            return HookAnswer(reason="unchanged", epoch=session.epoch)
        answer = await self._boot(event, runtime, due, data)
        session.boot, session.boot_key, answer.epoch = answer.text, key, session.epoch
        session.boot_on_resume = time.monotonic() if event.source in KEEPS_CONTEXT else -math.inf
        self._keep(session)
        return answer

    async def _boot(self, event: HookEvent, runtime: Runtime, due: float, data: BootData) -> HookAnswer:
        """The boot block. Standing rules do not wait for a recall that is slow: then it begins without one."""
        startup: list[StartupRecall] = []
        missed = ""
        try:
            async with asyncio.timeout_at(due - _NOTE_MARGIN):
                await self._startup_recall(event, runtime, startup, due - _NOTE_MARGIN)
        except TimeoutError:
            missed = "slow_recall"
        except LoreError:
            pass  # what is wrong with the memory stands in the notice, or was found by `boot` already
        notices = (data.notice, self.misses.notice(event.client_type, self.language))
        text = render_boot(
            replace(
                data,
                startup=tuple(each.block for each in startup if each.block),
                notice=" ".join(filter(None, notices)),
            ),
            client_type=event.client_type,
            language=self.language,
            budget=runtime.boot_budget,
        )
        return HookAnswer(text=text, missed=missed, startup=startup, tells_misses=True)

    async def _startup_recall(self, event: HookEvent, runtime: Runtime, found: list[StartupRecall], by: float) -> None:
        """Add what memory has on runtime, folder and repository; a memory is named once."""
        asked = Asked(project_key(event.repository) if event.repository else None, (), self.language)
        named: set[str] = set()
        for text in startup_queries(event):
            recalled = await self._recall(event, RecallQuery(text, asked.project), by)
            candidates = tuple(
                replace(one, withheld="repeat") if not one.withheld and one.uri in named else one
                for one in recalled.result.candidates
            )
            block = recall_block(
                [one for one in candidates if not one.withheld],
                recalled,
                runtime,
                session_id=_named(event),
                phase="startup",
                language=self.language,
            )
            candidates = within_budget(candidates, block)
            found.append(StartupRecall(text, recalled, asked, candidates, block))
            shown = [one for one in candidates if not one.withheld]
            named.update(one.uri for one in shown)
            if shown:
                self._note_shown(event, recalled, shown)

    async def _subagent_start(self, event: HookEvent) -> HookAnswer:
        if not self.machine["hooks.subagent_boot"]:
            return HookAnswer(reason="switched_off")
        runtime = runtime_of(event.client_type)
        data = await self.backend.boot(event.client_type)
        text = render_subagent_boot(
            data, client_type=event.client_type, language=self.language, budget=runtime.recall_budget
        )
        return HookAnswer(text=text)

    # --- prompt ---

    async def _prompt(self, event: HookEvent, due: float) -> HookAnswer:
        loop = asyncio.get_running_loop()
        began = loop.time()
        session = self._session(event)
        if session is not None:
            session.boot_on_resume = -math.inf  # the starts of this prompt are through
        epoch = session.epoch if session else None
        settings = await self.backend.settings()
        asked = self._asked(event, session, settings)
        by = min(began + settings["recall.safety.timeout_ms"] / 1000, due - _NOTE_MARGIN)
        try:
            async with asyncio.timeout_at(by):
                recalled = await self._recall(event, asked.query(event.prompt, settings), by)
            if recalled.result.timed_out_ms is not None:
                raise TimeoutError  # noqa: TRY301  (a server's own limit was shorter: the user is told the same)
        except TimeoutError:
            waited = round((loop.time() - began) * 1000)
            note = blocks.render_recall((), session_id=None, query_id=None, timed_out_ms=waited, language=self.language)
            return HookAnswer(text=note, reason="slow_recall", missed="slow_recall", epoch=epoch)
        block = prompt_block(recalled, asked, settings, runtime_of(event.client_type), _named(event))
        if block.shown:
            self._note_shown(event, recalled, block.shown)
        return HookAnswer(
            text=block.text or (SELF_TEST_TEXT if event.session_id == SELF_TEST else ""),
            reason="" if block.shown else "no_match",
            recalled=recalled,
            candidates=block.candidates,
            asked=asked,
            epoch=epoch,
        )

    def _asked(self, event: HookEvent, session: Session | None, settings: Mapping[str, Any]) -> Asked:
        project = (session.project if session else None) or event.repository or event.folder
        once = session is not None and settings["recall.display.repeat"] == "once"
        return Asked(
            project=project_key(project) if project else None,
            shown_before=tuple(sorted(session.shown_in_epoch)) if session and once else (),
            language=self.language,
        )

    async def _recall(self, event: HookEvent, query: RecallQuery, by: float) -> Recalled:
        origin = Origin(f"hook:{event.kind}", event.client_type, event.session_id)
        return await self.backend.recall(query, origin, seconds=by - asyncio.get_running_loop().time())

    # --- ids ---

    def _tool_before(self, event: HookEvent) -> HookAnswer:
        """Fill in the ids of a recalled address that the model left out."""
        adapter = adapter_for(event.client_type)
        session = self._session(event)
        if adapter is None or session is None:
            return HookAnswer(reason="not_ours")
        if event.tool_input.get("session_id") and event.tool_input.get("query_id"):
            return HookAnswer(reason="ids_passed")
        filled = fill_ids(event.tool_input, session.ids_for)
        if filled is None:
            return HookAnswer(reason="not_recalled")
        return HookAnswer(reason="ids_filled", raw=adapter.render_tool_input(event, filled[0]))

    # --- ledger and record ---

    async def _placed(self, event: HookEvent) -> HookEvent:
        """The event with the names of its folder and repository."""
        if event.kind not in ("session.start", "prompt.submit") or event.folder or event.repository or not event.cwd:
            return event
        folder, repository = await self._whereabouts.of(event.cwd)
        return replace(event, folder=folder, repository=repository)

    def _session(self, event: HookEvent) -> Session | None:
        """The ledger's session, with the project it works in; None when the host named no session."""
        if _named(event) is None or event.session_id is None:
            return None
        session = self.ledger.session(event.client_type, event.session_id)
        session.project = event.repository or event.folder or session.project
        return session

    def _note_shown(self, event: HookEvent, recalled: Recalled, shown: Sequence[Candidate]) -> None:
        session = self._session(event)
        if session is not None:
            session.note_shown(recalled.query_id, [candidate.uri for candidate in shown])
            self._keep(session)

    def _keep(self, session: Session) -> None:
        self.ledger.keep(session, to_iso(self.recorder.clock()))

    def _record(self, event: HookEvent, answer: HookAnswer, output: bytes, ms: float) -> None:
        at = to_iso(self.recorder.clock())
        backend, release = self.backend.name, self.release
        self.recorder.add(lambda: runs_of(event, answer, output, at=at, ms=ms, backend=backend, release=release))


def startup_queries(event: HookEvent) -> list[str]:
    """What startup recall asks for: the runtime, the folder, the repository; what is the same but for case, once."""
    found: dict[str, str] = {}
    for name in filter(None, (runtime_of(event.client_type).label, event.folder, event.repository)):
        found.setdefault(name.casefold(), name)
    return list(found.values())


def _named(event: HookEvent) -> str | None:
    """The session as blocks and ledger know it: a rehearsal is none."""
    return None if event.session_id in REHEARSALS else event.session_id


def _seconds_for(remaining_ms: float) -> float:
    """How long an answer may take when the caller has so much left. Callers may write anything into that header."""
    left = remaining_ms if math.isfinite(remaining_ms) else 0
    return min(max(left - ANSWER_MARGIN_MS, _LEAST_MS), _MOST_MS) / 1000


def _just_sent(session: Session) -> bool:
    """Whether the boot block went out with the resume that ran right before this start, for the same prompt."""
    return session.boot is not None and time.monotonic() - session.boot_on_resume < _SAME_PROMPT_SECONDS


def _boot_key(data: BootData) -> str:
    """What makes a boot block worth sending again to a session that still has the last one: its rules, not its news."""
    parts = [data.guidance, data.preamble, *(f"{node.uri}\n{node.content}" for node in data.nodes)]
    return sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()
