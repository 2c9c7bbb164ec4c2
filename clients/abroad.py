"""A server's answers in the data classes of the core, for the remote memory. Pure functions."""

from __future__ import annotations

import contextlib

from lorehooks.clients import answers
from lorehooks.core.boot import BootData
from lorehooks.core.errors import LoreError
from lorehooks.core.model import BOOT_URIS, Node, boot_uris_for
from lorehooks.core.settings import SETTINGS, Settings, Value
from lorehooks.core.tool_backend import NodeView

UNKNOWN_ABROAD = ("zcode", "dsh")
"""Runtimes that the public server has no boot node for: theirs is read as a node (`lore-contract.md` 6.2)."""
_RECENT = 5


def settings_of(page: answers.SettingsPage) -> Settings:
    """What someone set on the server, as far as it is a setting here.

    Its defaults stay with it: numbers mean the same here, and its own default texts belong to its own blocks.
    """
    changed: dict[str, Value] = {}
    for key, value in page.values.items():
        setting = SETTINGS.get(key)
        if setting is None or setting.scope != "memory" or page.sources.get(key) != "db":
            continue
        with contextlib.suppress(LoreError):
            changed[key] = setting.check(value)
    return Settings(changed)


def boot_of(
    client_type: str | None, found: answers.Boot, own: NodeView | None, *, guidance: str, settings: Settings
) -> BootData:
    """What a session starts with. `own` is the runtime's boot node where the server does not know that it is one."""
    nodes = {
        memory.uri: _node(memory.uri, memory.node_uuid, memory.content, memory.priority, memory.disclosure)
        for memory in found.core_memories
    }
    if own is not None:
        nodes.setdefault(own.uri, _node(own.uri, own.uuid, own.content, own.priority, own.disclosure))
    recent = [
        _node(line.uri, "", "", line.priority, line.disclosure, line.created_at)
        for line in found.recent_memories
        if line.uri not in BOOT_URIS
    ]
    return BootData(
        guidance=guidance,
        nodes=tuple(nodes[uri] for uri in boot_uris_for(client_type) if uri in nodes),
        recent=tuple(recent[:_RECENT]),
        preamble=settings["lifecycle.boot.preamble"],
        startup_preamble=settings["lifecycle.startup_recall.preamble"],
    )


def _node(uri: str, uuid: str, content: str, priority: int, disclosure: str, at: str = "") -> Node:
    return Node(
        uuid=uuid,
        uri=uri,
        content=content,
        priority=priority,
        disclosure=disclosure,
        glossary=(),
        created_at=at,
        updated_at=at,
        content_at=at,
    )
