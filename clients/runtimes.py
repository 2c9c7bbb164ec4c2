"""The one table of what we know of each runtime. Adapters, plugin files, installers and doctor read it.

A number here was measured against the real program or stands in its documentation (`reference/runtimes`); where a host
states no limit of its own, the limit is ours.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from lorehooks.core.boot import LABELS
from lorehooks.core.budget import Budget

EventKind = Literal[
    "session.start", "prompt.submit", "tool.before", "subagent.start", "turn.end", "session.end", "none"
]
"""What happens in a host, in our words; `none` is what needs no answer."""


@dataclass(frozen=True, slots=True)
class Runtime:
    """One runtime. Sizes are in the unit in which that host counts."""

    client_type: str
    programs: tuple[str, ...]
    """Names of its command, in the order in which to look for them; empty for a desktop program without one."""
    home_variable: str
    """Environment variable that moves its home; empty when there is none."""
    home_default: str
    """Its home below the user's, when the variable is not set."""
    boot_budget: Budget
    """What a boot block may take, below the host's own cap."""
    recall_budget: Budget
    events: Mapping[EventKind, str]
    """Which of our events it has, and its own name for each."""
    contexts: frozenset[EventKind]
    """Events whose answer can put text before the model."""
    host_timeout_ms: Mapping[EventKind, int]
    """After how long the host gives up on us: what our own registration says, or what the host has built in."""
    form: Literal["hook", "plugin"]
    """Whether it starts a hook program, or loads a plugin file of ours."""
    keeps_transcript: bool
    """Whether a boot block stays in the conversation once sent; otherwise it is asked for again and again."""
    oldest_seen: str
    """The oldest release on which our way in was seen to work; empty where no release could be run."""
    home_below_variable: str = ""
    """What comes below the folder that the variable names."""
    names_phase: bool = False
    """Whether its recall tags carry `phase`."""
    compacts_before_starts: bool = False
    """Whether the session starts that wait for a prompt all run after the compaction that some of them are about."""
    rewrites_tool_input: bool = False
    """Whether a hook may put the ids of a recall into a tool call."""
    synthetic_prompts: tuple[str, ...] = ()
    """Beginnings of messages that the host writes itself and submits like prompts."""

    @property
    def label(self) -> str:
        """Its name as people write it."""
        return LABELS.get(self.client_type, self.client_type)

    def home(self, environment: Mapping[str, str]) -> Path:
        """Where this runtime keeps its settings, for a user with that environment."""
        moved = environment.get(self.home_variable, "").strip() if self.home_variable else ""
        if moved:
            return Path(moved).expanduser() / self.home_below_variable
        return Path(environment.get("HOME") or Path.home()) / self.home_default


_HOOKS: Mapping[EventKind, str] = {
    "session.start": "SessionStart",
    "prompt.submit": "UserPromptSubmit",
    "tool.before": "PreToolUse",
    "turn.end": "Stop",
}
_HOOK_CONTEXTS: frozenset[EventKind] = frozenset({"session.start", "prompt.submit"})
_OURS_AS_PROMPT = "<recall "
_ROOMY = Budget(16_000, "chars")
_RECALL = Budget(4_000, "chars")

_TABLE = (
    Runtime(
        client_type="claudecode",
        programs=("claude",),
        home_variable="CLAUDE_CONFIG_DIR",
        home_default=".claude",
        boot_budget=Budget(9_800, "utf16"),  # 10,000 pass whole, the 10,001st sends all to a file
        recall_budget=Budget(4_000, "utf16"),
        events={**_HOOKS, "subagent.start": "SubagentStart", "session.end": "SessionEnd"},
        contexts=_HOOK_CONTEXTS | {"subagent.start"},
        host_timeout_ms={"session.start": 10_000, "prompt.submit": 10_000, "subagent.start": 10_000},
        form="hook",
        keeps_transcript=True,
        oldest_seen="2.1.118",
        rewrites_tool_input=True,
        synthetic_prompts=(
            "<task-notification", "<teammate-message", "<local-command-", "<command-name", "<command-message", "<bash-",
            "<system-reminder", _OURS_AS_PROMPT,
        ),
    ),
    Runtime(
        client_type="codex",
        programs=("codex",),
        home_variable="CODEX_HOME",
        home_default=".codex",
        boot_budget=Budget(9_800, "bytes"),  # 2,500 tokens of 4 bytes; above, it leaves the text readable in /tmp
        recall_budget=Budget(4_000, "bytes"),
        events={**_HOOKS, "subagent.start": "SubagentStart", "session.end": "SessionEnd"},
        contexts=_HOOK_CONTEXTS | {"subagent.start"},
        host_timeout_ms={"session.start": 10_000, "prompt.submit": 10_000, "subagent.start": 10_000},
        form="hook",
        keeps_transcript=True,
        oldest_seen="0.160.0",
        compacts_before_starts=True,  # a resumed session whose context is full runs `resume`, then `compact`
        # Earlier releases refuse `updatedInput` and show the user a failed hook; later ones were not measured.
        rewrites_tool_input=False,
        synthetic_prompts=(_OURS_AS_PROMPT,),
    ),
    Runtime(
        client_type="opencode",
        programs=("opencode",),
        home_variable="XDG_CONFIG_HOME",
        home_default=".config/opencode",
        home_below_variable="opencode",
        boot_budget=_ROOMY,
        recall_budget=_RECALL,
        events={"session.start": "session.created", "prompt.submit": "chat.message"},
        contexts=_HOOK_CONTEXTS,
        host_timeout_ms={},  # it waits for ever: the plugin file keeps the time
        form="plugin",
        keeps_transcript=False,
        oldest_seen="1.18.33",
        names_phase=True,
        synthetic_prompts=(_OURS_AS_PROMPT,),
    ),
    Runtime(
        client_type="pi",
        programs=("pi",),
        home_variable="PI_CODING_AGENT_DIR",
        home_default=".pi/agent",
        boot_budget=_ROOMY,
        recall_budget=_RECALL,
        events={"session.start": "session_start", "prompt.submit": "before_agent_start"},
        contexts=_HOOK_CONTEXTS,
        host_timeout_ms={},
        form="plugin",
        keeps_transcript=False,
        oldest_seen="0.73.1",
        synthetic_prompts=(_OURS_AS_PROMPT,),
    ),
    Runtime(
        client_type="openclaw",
        programs=("openclaw",),
        home_variable="OPENCLAW_STATE_DIR",
        home_default=".openclaw",
        boot_budget=_ROOMY,
        recall_budget=_RECALL,
        events={"session.start": "session_start", "prompt.submit": "before_prompt_build"},
        contexts=_HOOK_CONTEXTS,
        host_timeout_ms={"session.start": 15_000, "prompt.submit": 15_000},
        form="plugin",
        keeps_transcript=False,
        oldest_seen="2026.9.6",
        synthetic_prompts=(_OURS_AS_PROMPT,),
    ),
    Runtime(
        client_type="hermes",
        programs=("hermes",),
        home_variable="HERMES_HOME",
        home_default=".hermes",
        boot_budget=Budget(8_000, "chars"),
        recall_budget=_RECALL,
        events={
            "session.start": "initialize",
            "prompt.submit": "prefetch",
            "turn.end": "sync_turn",
            "session.end": "on_session_end",
        },
        contexts=_HOOK_CONTEXTS,
        host_timeout_ms={"prompt.submit": 8_000},
        form="plugin",
        keeps_transcript=True,
        oldest_seen="0.19.0",
        # Not "[System note: ": the gateway puts such a note before what the user really wrote.
        synthetic_prompts=(
            "[ASYNC DELEGATION ", "[IMPORTANT: ", "[Background process ", "[Continuing toward ", "[System: ",
            _OURS_AS_PROMPT, "<memory-context>",
        ),
    ),
    Runtime(
        client_type="zcode",
        programs=("zcode",),
        home_variable="",
        home_default=".zcode",
        # It drops more than 32,768 bytes of JSON and cuts at 24,000 characters; JSON can double what it escapes.
        boot_budget=Budget(16_000, "bytes"),
        recall_budget=Budget(4_000, "bytes"),
        events=_HOOKS,
        contexts=_HOOK_CONTEXTS,
        host_timeout_ms={"session.start": 10_000, "prompt.submit": 10_000, "tool.before": 10_000},
        form="hook",
        keeps_transcript=True,
        oldest_seen="",
        rewrites_tool_input=True,
        synthetic_prompts=("<task-notification", "<system-reminder", _OURS_AS_PROMPT),
    ),
    Runtime(
        client_type="dsh",
        programs=("dsh",),
        home_variable="DSH_HOME",
        home_default=".dsh",
        boot_budget=_ROOMY,
        recall_budget=_RECALL,
        events={"session.start": "agent/created", "prompt.submit": "agent/pre-step"},
        contexts=_HOOK_CONTEXTS,
        host_timeout_ms={},
        form="plugin",
        keeps_transcript=False,
        oldest_seen="0.1.5-rc.1",
        synthetic_prompts=(_OURS_AS_PROMPT,),
    ),
)  # fmt: skip

RUNTIMES: Mapping[str, Runtime] = {runtime.client_type: runtime for runtime in _TABLE}


def runtime_of(client_type: str) -> Runtime:
    """The row of a runtime. One that is not in the table gets texts that any program has room for, and the global rules."""
    return RUNTIMES.get(client_type) or Runtime(
        client_type=client_type,
        programs=(),
        home_variable="",
        home_default="",
        boot_budget=_ROOMY,
        recall_budget=_RECALL,
        events={"session.start": "session.start", "prompt.submit": "prompt.submit"},
        contexts=_HOOK_CONTEXTS,
        host_timeout_ms={},
        form="plugin",
        keeps_transcript=True,
        oldest_seen="",
        synthetic_prompts=(_OURS_AS_PROMPT,),
    )
