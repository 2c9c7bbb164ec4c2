"""What the fixed boot nodes are for, as the API describes them (`lore-contract.md` 1.6; seed "The fixed boot nodes")."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from lorehooks.core.boot import LABELS
from lorehooks.core.model import CLIENT_TYPES


@dataclass(frozen=True, slots=True)
class BootSpec:
    """One fixed boot node. `client_type` is set for a runtime's own."""

    id: str
    uri: str
    role: Literal["agent", "soul", "user"]
    role_label: str
    purpose: str
    setup_title: str
    setup_description: str
    client_type: str | None = None

    @property
    def scope(self) -> Literal["global", "client"]:
        return "client" if self.client_type else "global"


_GLOBAL = (
    BootSpec(
        "agent",
        "core://agent",
        "agent",
        "workflow constraints",
        "How every runtime works: collaboration, safety checks, verification.",
        "Working rules",
        "Write the rules that hold in every runtime: how to work together, what to check, what not to touch. "
        "What holds for one runtime only belongs to its own node.",
    ),
    BootSpec(
        "soul",
        "core://soul",
        "soul",
        "style / persona / self-definition",
        "Tone, persona and self-definition, the same in every session.",
        "Persona",
        "Write how the agent should come across in conversation, and how it sees itself.",
    ),
    BootSpec(
        "user",
        "preferences://user",
        "user",
        "stable user definition",
        "Who the user is: lasting preferences and background.",
        "User",
        "Write lasting preferences and background that you have confirmed.",
    ),
)


def _own(client: str) -> BootSpec:
    label = LABELS[client]
    return BootSpec(
        f"agent-{client}",
        f"core://agent/{client}",
        "agent",
        f"{label.lower()} runtime constraints",
        f"What is different in {label}: its hooks, tools and special behaviour.",
        f"{label} rules",
        f"Write only what differs in {label}; the working rules of core://agent are loaded with it.",
        client,
    )


SPECS = {spec.uri: spec for spec in (*_GLOBAL, *map(_own, CLIENT_TYPES))}
"""By address, in the order of `core.model.BOOT_URIS`."""
