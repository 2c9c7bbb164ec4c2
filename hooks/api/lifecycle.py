"""What the public plugins call at a session start and on each prompt (`lore-contract.md` 1.3, 1.4).

The same dispatcher, ledger and records as for our own hooks answer here; only the envelope differs. Like a hook, this
never fails a session: what goes wrong is no output and a reason.
"""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import Any, Literal

from lorehooks.clients.adapters import HookEvent, any_adapter
from lorehooks.clients.runtimes import RUNTIMES
from lorehooks.core.blocks import parse_recall
from lorehooks.core.model import GENERIC_CLIENTS, known_client
from lorehooks.hooks.api.operation import Answer, Body, Call, Operation, operation
from lorehooks.hooks.dispatch import ANSWER_MARGIN_MS, startup_queries

operations: list[Operation] = []

PROTOCOL = "lore.lifecycle.v1"
_EVENTS = ("session.start", "prompt.submit")
_NAME = re.compile(r"[a-z0-9][a-z0-9_.-]{0,39}")
_REASONS = {"blank": "empty_prompt"}
"""Our reasons for which the contract has a word of its own."""

Mode = Literal["none", "stdout_json", "stdout_text", "return_value"]


class LifecycleBody(Body):
    """What happened. Fields that hosts fill are read leniently: a wrong type counts as left out."""

    protocol_version: Any = None
    runtime: Any = None
    event: Any = None
    normalized: Any = None
    project: Any = None
    native_input_snapshot: Any = None


class RuntimeAnswer(Answer):
    runtime_id: str
    runtime_family: str | None
    """Null for a runtime that is not known; it is answered in the generic form if it has a name."""


class HostOutput(Answer):
    """`value` is what to print (as JSON or as it is) or to give back to the host; null in mode `none`."""

    mode: Mode
    value: dict[str, Any] | str | None


class LifecycleAnswer(Answer):
    ok: Literal[True] = True
    protocol_version: str = PROTOCOL
    event_name: str
    runtime: RuntimeAnswer
    host_output: HostOutput
    query_id: str
    node_uris: list[str]
    has_output: bool
    meta: dict[str, Any]


class Guidance(Answer):
    guidance: str


@operation(operations, "POST", "/lifecycle/event", "Context for a session start or a prompt, shaped for the host")
async def event(call: Call, body: LifecycleBody) -> LifecycleAnswer:
    request = _Request(body)
    if request.refusal:
        return request.answer(HostOutput(mode="none", value=None), meta={"reason": request.refusal})
    asked = request.hook_event()
    if asked.kind == "none":
        return request.answer(
            HostOutput(mode="none", value=None), meta={"reason": _REASONS.get(asked.reason, asked.reason)}
        )
    answer, output = await call.parts.dispatcher.run(any_adapter(request.name), asked, _time_limit(call, asked))
    meta: dict[str, Any] = {"session_id": asked.session_id or ""}
    if answer.reason and answer.recalled is None:
        meta["reason"] = answer.reason
    if asked.kind == "session.start":
        meta["queries"] = startup_queries(asked)
        return request.answer(_host_output(asked, answer.text, output), meta=meta)
    block = parse_recall(answer.text)
    return request.answer(
        _host_output(asked, answer.text, output),
        meta=meta,
        query_id=answer.recalled.query_id if answer.recalled else "",
        node_uris=list(dict.fromkeys(block.uris)) if block else [],
    )


@operation(operations, "GET", "/lifecycle/guidance", "The guidance in force; empty when it is switched off")
async def guidance(call: Call) -> Guidance:
    return Guidance(guidance=await call.parts.backend.guidance())


class _Request:
    """A lifecycle request, read leniently."""

    def __init__(self, body: LifecycleBody) -> None:
        runtime = _object(body.runtime)
        named = _text(runtime.get("runtime_family")) or _text(runtime.get("client_type"))
        self.family = known_client(named)
        self.name = self.family or named.lower()
        self.runtime_id = _text(runtime.get("runtime_id")) or self.family or "unknown"
        self.event_name = _text(_object(body.event).get("name"))
        self.normalized = _object(body.normalized)
        self.project = _object(body.project)
        self.snapshot = _object(body.native_input_snapshot)

    @property
    def refusal(self) -> str:
        """Why there is nothing to answer, in the contract's order; empty when there is."""
        if not _NAME.fullmatch(self.name):
            return "unknown_runtime_family"
        if self.name in GENERIC_CLIENTS:
            return "unsupported_runtime_family"
        return "" if self.event_name in _EVENTS else "unsupported_event"

    def hook_event(self) -> HookEvent:
        """The event as our own hooks have it.

        The source tells a resumed session from a new one. A runtime that asks for its boot text again and again, since
        its transcript does not keep it, gets the same bytes each time.
        """
        source = _text(self.snapshot.get("source"))
        if not source and self.name in RUNTIMES and not RUNTIMES[self.name].keeps_transcript:
            source = "ask"
        payload = {
            "session_id": self.normalized.get("session_id"),
            "prompt": self.normalized.get("prompt"),
            "source": source,
            "agent_id": self.snapshot.get("agent_id"),
        }
        found = any_adapter(self.name).parse(self.event_name, payload)
        folder = _text(self.project.get("dir_name") or self.project.get("dirName")) or None
        repository = _text(self.project.get("repo_name") or self.project.get("repoName")) or None
        return replace(found, folder=folder, repository=repository)

    def answer(
        self, output: HostOutput, *, meta: dict[str, Any], query_id: str = "", node_uris: list[str] | None = None
    ) -> LifecycleAnswer:
        return LifecycleAnswer(
            event_name=self.event_name,
            runtime=RuntimeAnswer(runtime_id=self.runtime_id, runtime_family=self.family),
            host_output=output,
            query_id=query_id,
            node_uris=node_uris or [],
            has_output=output.mode != "none",
            meta=meta,
        )


def _host_output(asked: HookEvent, text: str, output: bytes) -> HostOutput:
    """What the adapter rendered, with the way in which the public plugin hands it on."""
    if not text.strip() or not output:
        return HostOutput(mode="none", value=None)
    runtime = RUNTIMES.get(asked.client_type)
    if runtime is not None and runtime.form == "hook":
        if asked.client_type == "claudecode" and asked.kind == "prompt.submit":
            return HostOutput(mode="stdout_text", value=text)
        return HostOutput(mode="stdout_json", value=json.loads(output))
    return HostOutput(mode="return_value", value=json.loads(output))


def _time_limit(call: Call, asked: HookEvent) -> float:
    """Milliseconds for an answer, as for our own hooks; the caller's network is not ours to reckon with."""
    key = "hooks.prompt_timeout_ms" if asked.kind == "prompt.submit" else "hooks.start_timeout_ms"
    return float(call.parts.config.settings[key]) + ANSWER_MARGIN_MS


def _object(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _text(value: object) -> str:
    return value.strip() if isinstance(value, str) else ""
