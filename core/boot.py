"""What a session starts with: guidance, the standing rules, the latest memories, startup recall."""

from __future__ import annotations

from dataclasses import dataclass

from lorehooks.core.model import Node

LABELS = {
    "claudecode": "Claude Code",
    "codex": "Codex",
    "opencode": "OpenCode",
    "pi": "Pi",
    "openclaw": "OpenClaw",
    "hermes": "Hermes",
    "zcode": "ZCode",
    "dsh": "dsh",
}
"""Names of the runtimes as people write them."""


@dataclass(frozen=True, slots=True)
class BootData:
    """The parts of a boot block, already chosen for one client.

    `nodes` are the boot nodes of that client in their fixed order (agent, soul, user, runtime); those without content
    may be in it and are left out of the text. `recent` are the most recently written other memories, newest first, at
    most five. `startup` are rendered `<recall>` blocks. The two preambles are the person's own settings; empty takes ours.
    """

    guidance: str = ""
    nodes: tuple[Node, ...] = ()
    recent: tuple[Node, ...] = ()
    startup: tuple[str, ...] = ()
    preamble: str = ""
    startup_preamble: str = ""
