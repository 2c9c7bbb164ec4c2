"""OpenCode, Pi, OpenClaw, Hermes and dsh: a plugin file of ours inside the host sends our own JSON and gets a small answer.

The file sends `{session_id?, parent_session_id?, prompt?, source?, cwd?, agent_id?, trigger?, session_key?}` and gets the
object that its host wants returned, under the names of the public Lore contract (1.3); `{}` when there is nothing to add.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

from lorehooks.clients.adapters.base import HookEvent, document, read_common
from lorehooks.clients.runtimes import Runtime

_BOOT_KEYS = {
    "opencode": "systemContext",
    "pi": "systemPromptAppend",
    "openclaw": "appendSystemContext",
    "hermes": "system_context",
    "dsh": "systemContext",
}
_RECALL_KEYS = {"opencode": "promptContext", "openclaw": "prependContext", "hermes": "context", "dsh": "promptContext"}
_TEMPLATES = frozenset({"dsh"})
"""Hosts that take a boot text for a template: `{{name}}` would be replaced, and an unknown name fails the user's turn."""
_BRACE_BEFORE_BRACE = re.compile(r"\{(?=\{)")
_NOTHING = b"{}"


@dataclass(frozen=True, slots=True)
class PluginAdapter:
    """Sessions of subagents get the short boot block and no recall: the main agent's prompt had its own."""

    runtime: Runtime

    def parse(self, event_name: str, payload: object) -> HookEvent:
        event = read_common(self.runtime, event_name, payload)
        if event.kind == "none" or not isinstance(payload, Mapping):
            return event
        if self.runtime.client_type == "openclaw":
            reason = _not_from_the_user(payload)
            if reason:
                return replace(event, kind="none", reason=reason)
        if event.parent_session_id:
            if event.kind == "session.start":
                return replace(event, kind="subagent.start")
            if event.kind == "prompt.submit":
                return replace(event, kind="none", reason="subagent")
        return event

    def render(self, event: HookEvent, text: str) -> bytes:
        client = self.runtime.client_type
        if not text.strip():
            return _NOTHING
        if event.kind in ("session.start", "subagent.start"):
            if client in _TEMPLATES:
                text = _BRACE_BEFORE_BRACE.sub("{ ", text)  # the reader must see that something was changed
            return document({_BOOT_KEYS[client]: text})
        if event.kind != "prompt.submit":
            return _NOTHING
        if client == "pi":
            details = {"source": "lore"} | ({"session_id": event.session_id} if event.session_id else {})
            message = {"customType": "lore-recall", "content": text, "display": False, "details": details}
            return document({"message": message})
        return document({_RECALL_KEYS[client]: text})

    def render_tool_input(self, event: HookEvent, arguments: Mapping[str, object]) -> bytes:  # noqa: ARG002
        """Nothing: the file's own tools know the session, so its calls need no rewriting."""
        return _NOTHING


def _not_from_the_user(payload: Mapping[str, object]) -> str:
    """Why a run of OpenClaw is none of a person's: its own memory sub-sessions (bug case B19), timers and the like."""
    key, trigger = payload.get("session_key"), payload.get("trigger")
    if isinstance(key, str) and ":active-memory:" in f"{key}:":
        return "internal_session"
    if isinstance(trigger, str) and trigger not in ("", "user"):
        return "synthetic"
    return ""
