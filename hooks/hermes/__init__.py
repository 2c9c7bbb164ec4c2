"""The memory of lorehooks as a MemoryProvider of Hermes. The name of this folder is the provider's name.

Hermes loads this file in its own Python and waits for most of what it calls, without a limit; so each method here has one, and
none raises. The texts, and what needs any, are decided by the service (`hooks/dispatch.py`).
"""

# Hermes takes a folder for a provider only when the words MemoryProvider or register_memory_provider stand in the first 8,192
# characters of this file. It runs every other file of the folder first, so none may do anything by itself.
from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from .transport import Boot, Lore, guarded, place_of, text_in, tool_result

if TYPE_CHECKING:
    MemoryProvider = object
else:
    try:
        from agent.memory_provider import MemoryProvider
    except ImportError:  # outside of Hermes, as in tests
        MemoryProvider = object

BOOT_SECONDS = 3.0
"""What a new session's first turn waits for its boot block: Hermes stands still meanwhile."""
PREFETCH_SECONDS = 5.5
"""Hermes gives a recall up after 8 s, and then asks us no more until the call has ended."""
MOST_PROMPT = 100_000
MOST_ANSWER = 20_000
"""Characters that are sent."""
KEPT_SESSIONS = 100

lore = Lore()


class LoreProvider(MemoryProvider):
    """One agent of Hermes. Its session changes with `/new`, `/resume`, `/branch` and when its history is compressed."""

    def __init__(self) -> None:
        self._session = ""
        self._place: dict[str, str] = {}
        self._boots: dict[str, Boot] = {}
        self._tools: list[dict[str, Any]] = []
        self._compressing = False

    @property
    def name(self) -> str:
        return os.path.basename(os.path.dirname(os.path.abspath(__file__)))  # noqa: PTH100, PTH119, PTH120

    @guarded(default=False)
    def is_available(self) -> bool:
        """Whether there is a home. Hermes expects that nothing is asked for this."""
        return lore.is_here()

    # --- sessions

    @guarded(None)
    def initialize(self, session_id: str, **kwargs: Any) -> None:
        """Begin with a session, new or resumed: Hermes does not say which, and the service knows the ones it has seen."""
        self._session = session_id
        self._place = place_of(kwargs)
        self._begin("ask")
        lore.stay_alive()

    @guarded(default="")
    def system_prompt_block(self) -> str:
        """The boot block. Hermes asks for it on a session's first turn and whenever it composes its system prompt anew."""
        boot = self._boots.get(self._session) or self._begin("ask")
        return boot.text(BOOT_SECONDS)

    @guarded(None)
    def on_session_switch(
        self,
        new_session_id: str,
        *,
        parent_session_id: str = "",
        reset: bool = False,
        rewound: bool = False,
        **kwargs: Any,
    ) -> None:
        """Go on with another session, or with the same one after its history was compressed or its last turn undone."""
        before, self._session = self._session, new_session_id
        self._compressing = False
        reason = kwargs.get("reason")
        if rewound or (not reset and new_session_id == before):
            return
        if reason == "compression":  # the same talk under a new id: its system prompt holds this block already
            boot = self._boots.pop(parent_session_id or before, None)
            self._boots[new_session_id] = self._begin("ask") if boot is None else boot
        elif reset or new_session_id not in self._boots:
            self._begin("startup" if reset else "fork" if reason == "branch" else "ask")

    @guarded(default="")
    def on_pre_compress(self, messages: list[dict[str, Any]]) -> str:  # noqa: ARG002
        """A new epoch: what was recalled is about to leave the context, and the system prompt is composed anew."""
        self._compressing = True
        self._begin("compact")
        return ""

    @guarded(None)
    def on_session_end(self, messages: list[dict[str, Any]]) -> None:  # noqa: ARG002
        if self._session and not self._compressing:  # Hermes calls it before a compression too
            lore.tell("session.end", {**self._facts(), "reason": "other"})

    # --- turns

    @guarded(default="")
    def prefetch(self, query: str, *, session_id: str = "") -> str:
        """The recall block for a prompt. Hermes runs this in a thread of its own, and leaves `session_id` empty."""
        self._compressing = False
        facts = {**self._facts(session_id), "prompt": query[:MOST_PROMPT]}
        answer = lore.hook("prompt.submit", facts, min(lore.limit(is_start=False), PREFETCH_SECONDS))
        return text_in(answer, "context")

    @guarded(None)
    def sync_turn(
        self,
        user_content: str,  # noqa: ARG002  (it came by as a prompt)
        assistant_content: str,
        *,
        session_id: str = "",
        messages: list[dict[str, Any]] | None = None,  # noqa: ARG002
    ) -> None:
        """A turn is complete. Hermes runs this aside."""
        said = {"last_assistant_message": assistant_content[:MOST_ANSWER]}
        lore.tell("turn.end", {**self._facts(session_id), **said})

    # --- tools

    @guarded([])
    def get_tool_schemas(self) -> list[dict[str, Any]]:
        self._tools = self._tools or lore.tools()
        return self._tools

    @guarded(tool_result("The memory failed.", is_error=True))
    def handle_tool_call(self, tool_name: str, args: dict[str, Any], **kwargs: Any) -> str:  # noqa: ARG002
        text, is_error = lore.tool(tool_name, args, self._session)
        return tool_result(text, is_error=is_error)

    # --- parts

    def _facts(self, session_id: str = "") -> dict[str, Any]:
        return {"session_id": session_id or self._session, **self._place}

    def _begin(self, source: str) -> Boot:
        """Fetch the boot block of the present session aside."""
        self._boots.pop(self._session, None)
        boot = self._boots[self._session] = Boot(lore, {**self._facts(), "source": source})
        if len(self._boots) > KEPT_SESSIONS:
            del self._boots[next(iter(self._boots))]
        return boot


def register(ctx: Any) -> None:
    """What Hermes calls after loading this file."""
    ctx.register_memory_provider(LoreProvider())
