"""Claude Code: command hooks with JSON on both sides (`claude-codex.md` section 2)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from lorehooks.clients.adapters.base import EventKind, HookEvent, document, hook_output, read_common

_NATIVE: Mapping[EventKind, str] = {
    "session.start": "SessionStart",
    "prompt.submit": "UserPromptSubmit",
    "subagent.start": "SubagentStart",
}
_SYNTHETIC = (
    "<task-notification",
    "<teammate-message",
    "<local-command-",
    "<command-name",
    "<command-message",
    "<bash-",
    "<system-reminder",
    "<recall ",
)


@dataclass(frozen=True, slots=True)
class ClaudeCode:
    """Answers with the event's own name, since Claude Code drops a context that names another."""

    client_type: str = "claudecode"

    def parse(self, event_name: str, payload: object) -> HookEvent:
        return read_common(self.client_type, event_name, payload, synthetic=_SYNTHETIC)

    def render(self, event: HookEvent, text: str) -> bytes:
        native = _NATIVE.get(event.kind)
        return hook_output(native, text) if native else b""

    def render_tool_input(self, event: HookEvent, arguments: Mapping[str, object]) -> bytes:
        """New arguments without a decision: whether the tool may run stays with the user's own permission rules."""
        if event.kind != "tool.before":
            return b""
        return document({"hookSpecificOutput": {"hookEventName": "PreToolUse", "updatedInput": dict(arguments)}})
