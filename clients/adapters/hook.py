"""Claude Code, Codex and ZCode: hook programs with JSON on both sides, in the form that Claude Code began.

What sets them apart (names, caps, synthetic prompts, whether a tool call may be rewritten) stands in `clients.runtimes`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from lorehooks.clients.adapters.base import HookEvent, document, read_common
from lorehooks.clients.runtimes import Runtime


@dataclass(frozen=True, slots=True)
class HookAdapter:
    """Answers with nothing but the event's own name and the context.

    Codex fails a whole hook on one key that it does not know, Claude Code and ZCode drop a context that names another
    event, so no key is added here for one host's sake.
    """

    runtime: Runtime

    def parse(self, event_name: str, payload: object) -> HookEvent:
        return read_common(self.runtime, event_name, payload)

    def render(self, event: HookEvent, text: str) -> bytes:
        if event.kind not in self.runtime.contexts or not text.strip():
            return b""
        native = self.runtime.events[event.kind]
        return document({"hookSpecificOutput": {"hookEventName": native, "additionalContext": text}})

    def render_tool_input(self, event: HookEvent, arguments: Mapping[str, object]) -> bytes:
        """New arguments without a decision: whether the tool may run stays with the user's own permission rules."""
        if event.kind != "tool.before" or not self.runtime.rewrites_tool_input:
            return b""
        native = self.runtime.events[event.kind]
        return document({"hookSpecificOutput": {"hookEventName": native, "updatedInput": dict(arguments)}})
