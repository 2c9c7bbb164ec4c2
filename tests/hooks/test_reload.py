"""A running service and `lore connect`: the next use finds the new memory, and a command's own way to the service."""

from __future__ import annotations

import asyncio

import pytest

from lorehooks.clients.connect import connect_embedded, reload_service
from lorehooks.core.errors import ConflictError
from lorehooks.core.model import NodeDraft, NodePatch, Origin
from lorehooks.hooks import layout, service
from lorehooks.hooks.local import connect_local


def test_a_background_service_ends_when_the_memory_is_changed(real, wait_for) -> None:
    done = asyncio.run(connect_embedded(real.home, {}))
    assert done.changes
    assert done.warnings == ()
    wait_for(lambda: not service.status(real.home).running, "the end of the service")


def test_without_a_service_there_is_nothing_to_end(place) -> None:
    assert asyncio.run(reload_service(place.home)) == ""


def test_a_command_starts_the_service_and_asks_it(place) -> None:
    layout.lay(place.home)  # in place of the stand-in

    async def run() -> None:
        async with connect_local(place.home, seconds=30) as client:
            assert (await client.health()).status == "ok"
            draft = NodeDraft("project://shop", "make release", 2, "When deploying", ("deploy",))
            await client.create_node(draft, Origin("cli"))
            past = await client.history("project://shop")
            assert [event.source for event in past.events] == ["cli"]
            patch = NodePatch(content="Test first.")
            waiting = await client.update_node("core://agent", patch, Origin("mcp:lore_update_node", "codex"))
            (proposal,) = await client.pending()
            assert (proposal.number, proposal.after["content"]) == (waiting.proposal, "Test first.")
            await client.decide(proposal.number, accepted=True)
            assert (await client.get_node("core://agent")).content == "Test first."
            with pytest.raises(ConflictError):
                await client.decide(proposal.number, accepted=False)
            assert (await client.put_settings({"recall.display.max_display_items": 5})).values[
                "recall.display.max_display_items"
            ] == 5
            assert (await client.reset_settings(["recall.display.max_display_items"])).sources[
                "recall.display.max_display_items"
            ] == "default"

    asyncio.run(run())
