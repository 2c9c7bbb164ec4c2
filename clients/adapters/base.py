"""What every adapter is: the host's JSON in, one event; a text out, the host's JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from lorehooks.clients.adapters import payload as fields
from lorehooks.clients.runtimes import EventKind, Runtime
from lorehooks.core.escape import INVISIBLE
from lorehooks.core.secrets import strip_private

NODE_TOOL = "lore_get_node"

_NAMES: Mapping[str, EventKind] = {
    "sessionstart": "session.start",
    "prompt": "prompt.submit",
    "promptsubmit": "prompt.submit",
    "userprompt": "prompt.submit",
    "userpromptsubmit": "prompt.submit",
    "toolbefore": "tool.before",
    "pretooluse": "tool.before",
    "subagentstart": "subagent.start",
    "turnend": "turn.end",
    "stop": "turn.end",
    "sessionend": "session.end",
}
_NOT_THERE = re.compile(rf"\A[\s{INVISIBLE}\u200c\u200d]+")
_SLASH_COMMAND = re.compile(r"/[^\s/]+(?:\s|\Z)")
_MAX_ID = 200


@dataclass(frozen=True, slots=True)
class HookEvent:
    """One thing that happened in a host, in our words.

    `kind` is `none` when nothing is to be done, and `reason` says why. `source` is what began a session (startup, resume,
    clear, compact, fork, or whatever a later release of the host says). `prompt` has its `<private>` parts removed.
    `agent_id` is set inside a subagent. `native_event` is the host's own name, which some hosts want back. `folder` and
    `repository` are names that the sender told, whose working folder may be on another machine; `cwd` is then not looked at.
    """

    kind: EventKind
    client_type: str
    native_event: str = ""
    session_id: str | None = None
    source: str = ""
    prompt: str = ""
    cwd: str | None = None
    folder: str | None = None
    repository: str | None = None
    agent_id: str | None = None
    parent_session_id: str | None = None
    turn_id: str | None = None
    tool_name: str = ""
    tool_input: Mapping[str, object] = field(default_factory=dict)
    reason: str = ""


class Adapter(Protocol):
    """One runtime's way of speaking. Nothing here raises for what a host sent."""

    @property
    def runtime(self) -> Runtime:
        """Its row in the table."""

    def parse(self, event_name: str, payload: object) -> HookEvent:
        """Read what the host sent for an event; `event_name` is ours or the host's, in any case and with `.`, `_` or `-`."""

    def render(self, event: HookEvent, text: str) -> bytes:
        """Exactly one document that puts `text` before the model, or `b""` when the host has no place for it."""

    def render_tool_input(self, event: HookEvent, arguments: Mapping[str, object]) -> bytes:
        """The document that replaces a tool call's arguments, or `b""` when the host cannot do that."""


def canonical_event(name: str) -> EventKind:
    """Our name of an event; `none` for one we do nothing with."""
    return _NAMES.get(re.sub(r"[._\- ]", "", name.lower()), "none")


def is_node_tool(name: str) -> bool:
    """Whether a host's name of a tool is our `lore_get_node`, with whatever a host puts before it."""
    return name in (NODE_TOOL, f"lore_{NODE_TOOL}") or name.endswith((f"__{NODE_TOOL}", f".{NODE_TOOL}"))


def no_prompt_because(prompt: str, synthetic: tuple[str, ...]) -> str:
    """Why a text needs no recall: `blank`, `slash_command` or `synthetic`; empty for something a person asks.

    `synthetic` are the openings of messages that the host writes as if they were prompts. They count at the start only,
    since a person may quote one (bug case B7).
    """
    words = _NOT_THERE.sub("", prompt)
    if not words:
        return "blank"
    if _SLASH_COMMAND.match(words):
        return "slash_command"
    return "synthetic" if words.startswith(synthetic) else ""


def read_common(runtime: Runtime, event_name: str, payload: object) -> HookEvent:
    """The event with the fields that hosts share; `none` for what needs no answer in any host.

    Session ids are taken from `session_id`, then `conversation_id`, and never invented: sessions that share an invented
    id would share their ledger. Both spellings of a name are read, since hosts send either.
    """
    client_type = runtime.client_type
    if not isinstance(payload, Mapping):
        return HookEvent("none", client_type, reason="not_an_object")
    kind = canonical_event(event_name)
    tool_input = payload.get("tool_input", payload.get("toolInput"))
    prompt = strip_private(fields.text_of(payload.get("prompt")) or fields.text_of(payload.get("user_prompt")))
    agent_id = _identifier(payload, "agent_id", "agentId")
    tool_name = fields.string(payload, "tool_name", "toolName") or ""
    reason = ""
    if kind == "none":
        reason = "unknown_event"
    elif (fields.string(payload, "hook_source") or "").startswith("opencode"):
        reason = (
            "compatibility_layer"  # OpenCode, where a plugin runs Claude Code's hooks too, has its own plugin of ours
        )
    elif kind == "prompt.submit":
        # Some hosts run this event for the task of a subagent too; the main agent's prompt had its recall already.
        reason = "subagent" if agent_id else no_prompt_because(prompt, runtime.synthetic_prompts)
    elif kind == "tool.before" and not is_node_tool(tool_name):
        reason = "other_tool"
    return HookEvent(
        kind="none" if reason else kind,
        client_type=client_type,
        native_event=fields.string(payload, "hook_event_name", "hookEventName") or event_name,
        session_id=_identifier(payload, "session_id", "sessionId", "conversation_id", "conversationId"),
        source=fields.string(payload, "source") or "",
        prompt=prompt,
        cwd=fields.string(payload, "cwd"),
        agent_id=agent_id,
        parent_session_id=_identifier(payload, "parent_session_id", "parentSessionId"),
        turn_id=_identifier(payload, "turn_id", "turnId", "prompt_id"),
        tool_name=tool_name,
        tool_input=tool_input if isinstance(tool_input, Mapping) else {},
        reason=reason,
    )


def document(value: Mapping[str, object]) -> bytes:
    """One JSON document in UTF-8 without a newline; what UTF-8 cannot carry becomes U+FFFD."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return fields.valid_utf8(text).encode()


def _identifier(payload: Mapping[str, object], *names: str) -> str | None:
    """An id that can stand in a tag and be passed back unchanged, or None."""
    for name in names:
        value = fields.string(payload, name)
        if value and len(value) <= _MAX_ID and value.isprintable():
            return value
    return None
