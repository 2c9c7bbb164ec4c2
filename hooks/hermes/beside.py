"""The same memory for a Hermes whose provider slot is another's: hooks and tools of a standalone plugin, which run beside it.

The installer puts this file into the folder as `__init__.py`. Boot and recall both end the user's message here, so they stay in
the conversation; Hermes puts more than 10,000 characters into a file instead, and waits for a hook without a limit.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

from .transport import Lore, guarded, place_of, text_in, tool_result

BOOT_SECONDS = 3.0
RECALL_SECONDS = 5.5
MOST_TEXT = 9_900
MOST_PROMPT = 100_000
MOST_ANSWER = 20_000
"""Characters."""

lore = Lore()


class Hooks:
    """All sessions of one Hermes process."""

    def __init__(self) -> None:
        self._boots: dict[str, str] = {}
        """What each session was given as its boot block, empty where it had it already."""
        self._lengths: dict[str, int] = {}
        self._parents: dict[str, str] = {}

    @guarded(None)
    def pre_llm_call(
        self,
        *,
        session_id: str = "",
        user_message: Any = "",
        conversation_history: Sequence[dict[str, Any]] = (),
        is_first_turn: bool = False,
        platform: str = "",
        **_: Any,
    ) -> dict[str, str] | None:
        """Boot block with a session's first turn and when it has left the conversation, recall with every turn."""
        facts = self._facts(session_id, platform)
        boot = ""
        if session_id not in self._boots or self._is_lost(session_id, conversation_history):
            known = "compact" if session_id in self._boots else "resume"
            boot = self._boot(facts, "startup" if is_first_turn else known)
        self._lengths[session_id] = len(conversation_history)
        facts["prompt"] = _instruction(user_message)
        answer = lore.hook("prompt.submit", facts, min(lore.limit(is_start=False), RECALL_SECONDS))
        recall = text_in(answer, "context")
        text = "\n\n".join(filter(None, (boot, recall)))
        return {"context": text if len(text) <= MOST_TEXT else boot or recall} if text else None

    def _boot(self, facts: dict[str, Any], source: str) -> str:
        """The boot block. Of a resumed session the service gives it again only if the rules have changed."""
        answer = lore.hook("session.start", {**facts, "source": source}, min(lore.limit(is_start=True), BOOT_SECONDS))
        if answer is None:  # not kept: the next turn asks again
            return "" if source == "resume" else lore.ready_boot()
        self._boots[facts["session_id"]] = text = text_in(answer, "system_context")
        return text

    def _is_lost(self, session_id: str, history: Sequence[dict[str, Any]]) -> bool:
        """Whether the history was compressed and does not hold the block any more. No hook tells of that."""
        text = self._boots[session_id]
        if not text or len(history) >= self._lengths.get(session_id, 0):
            return False
        return not any(text in str(each.get("api_content") or each.get("content")) for each in history)

    @guarded(None)
    def post_llm_call(
        self, *, session_id: str = "", assistant_response: Any = "", platform: str = "", **_: Any
    ) -> None:
        """A turn is complete. Told aside, since the user waits for this one too."""
        facts = {**self._facts(session_id, platform), "last_assistant_message": str(assistant_response)[:MOST_ANSWER]}
        threading.Thread(target=lore.tell, args=("turn.end", facts), name="lore-turn", daemon=True).start()

    @guarded(None)
    def on_session_finalize(self, *, session_id: str | None = "", platform: str = "", **_: Any) -> None:
        if session_id and self._boots.pop(session_id, None) is not None:
            facts = {**self._facts(session_id, platform), "reason": "other"}
            lore.tell("session.end", facts)

    @guarded(None)
    def subagent_start(
        self, *, child_session_id: str | None = "", parent_session_id: str | None = "", **_: Any
    ) -> None:
        if child_session_id and parent_session_id:
            self._parents[child_session_id] = parent_session_id

    @guarded(None)
    def subagent_stop(self, *, child_session_id: str | None = "", **_: Any) -> None:
        self._parents.pop(child_session_id or "", None)
        self._boots.pop(child_session_id or "", None)

    def _facts(self, session_id: str, platform: str) -> dict[str, Any]:
        parent = self._parents.get(session_id)
        place = place_of({}) if platform in {"", "cli", "tui"} else {}
        return {"session_id": session_id, **place, **({"parent_session_id": parent} if parent else {})}


def register(ctx: Any) -> None:
    """What Hermes calls after loading this file."""
    if not lore.is_here():
        return
    hooks = Hooks()
    for name in ("pre_llm_call", "post_llm_call", "on_session_finalize", "subagent_start", "subagent_stop"):
        ctx.register_hook(name, getattr(hooks, name))
    for schema in lore.tools():
        ctx.register_tool(name=schema["name"], toolset="lore", schema=schema, handler=_handler(schema["name"]))
    lore.stay_alive()


def _handler(name: str) -> Callable[..., str]:
    @guarded(tool_result("The memory failed.", is_error=True))
    def call(args: dict[str, Any], *, session_id: str | None = "", **_: Any) -> str:
        text, is_error = lore.tool(name, args, session_id or "")
        return tool_result(text, is_error=is_error)

    return call


def _instruction(message: Any) -> Any:
    """What the user said, without the text of a skill that Hermes has put around it; parts of a message stay parts."""
    if not isinstance(message, str):
        return message
    try:
        from agent.skill_commands import extract_user_instruction_from_skill_message as instruction

        return (instruction(message) or "")[:MOST_PROMPT]
    except ImportError:
        return message[:MOST_PROMPT]
