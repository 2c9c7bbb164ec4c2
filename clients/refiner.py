"""The work of the View LLM: memories that wait for their views get them one by one, beside everything else.

What waits follows from the log (`core.refine`), so that nothing is lost with the service. An endpoint that fails is left
alone, longer each time, and the memories keep the views they have: a model's where they are up to date, else those by rule.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import TYPE_CHECKING

from lorehooks.clients.background import Pace, Trouble, Worker
from lorehooks.core.errors import LoreError
from lorehooks.core.model import Change, Node, ViewType
from lorehooks.core.refine import is_refined, unrefined, wants_views
from lorehooks.core.store import Store

if TYPE_CHECKING:
    from lorehooks.clients.view_llm import ViewModel

Keep = Callable[[Node, Mapping[ViewType, str], str], Awaitable[bool]]
"""Makes views (node, texts, model) part of the memory; False when the node is not as it was any more."""
_UNUSABLE_IN_A_ROW = 3
"""Memories in a row that a model has no views for, after which the fault is the model's."""


class Refiner:
    """Writes views while a model is set. All of it runs on the event loop."""

    def __init__(
        self, store: Store, open_model: Callable[[], ViewModel | None], keep: Keep, pace: Pace | None = None
    ) -> None:
        """`open_model` gives the model of the settings, None where none is set."""
        self._store = store
        self._open = open_model
        self._keep = keep
        self._pace = pace or Pace()
        self._worker = Worker(self._work)
        self._trouble = Trouble()
        self._waiting: OrderedDict[str, None] = OrderedDict()
        """Memories to look at, the next one first. None of it matters after a restart."""
        self._more = asyncio.Event()
        self._anew: set[str] = set()
        self._unusable: set[str] = set()
        """Memories that the model has no views for; tried again when they change, and by the next service."""
        self._unusable_in_a_row = 0
        self._model: ViewModel | None = None
        self._written = 0

    async def run(self) -> None:
        """Run until cancelled."""
        await self._worker.run()

    def wake(self) -> None:
        """Begin anew, since settings or the memory as a whole have changed."""
        self._worker.wake()

    def note(self, changes: Iterable[Change]) -> None:
        """Look at what a write changed."""
        for change in changes:
            if change.after is not None and wants_views(change.after):
                self.ask_for(change.after.uuid)
            elif change.before is not None:
                self._waiting.pop(change.before.uuid, None)

    def ask_for(self, uuid: str, *, anew: bool = False) -> None:
        """Put a memory first in the line; `anew` when its views are to be written again although they are up to date."""
        if self._model is None:
            return
        if anew:
            self._anew.add(uuid)
        self._unusable.discard(uuid)
        self._waiting[uuid] = None
        self._waiting.move_to_end(uuid, last=False)
        self._more.set()

    def state(self) -> dict[str, object]:
        """For people: the model, how many memories wait, and what is wrong. `model` is None where none is set."""
        return {
            "model": self._model.model if self._model else None,
            "base_url": self._model.base_url if self._model else None,
            "waiting": len(self._waiting),
            "written": self._written,
            "unusable": len(self._unusable),
            "problem": self._trouble.problem,
            "retry_in": self._trouble.retry_in,
        }

    async def _work(self) -> None:
        self._trouble.over()
        self._waiting.clear()
        self._unusable.clear()
        self._unusable_in_a_row = 0
        while True:
            try:
                model = self._model = None if self._store.database.read_only else self._open()
                if model is None:
                    return
                try:
                    await self._write_with(model)
                finally:
                    await model.close()
            except LoreError as error:
                await self._trouble.wait(error, self._pace)

    async def _write_with(self, model: ViewModel) -> None:
        """Never returns. Raises LoreError when the endpoint or the disk fails."""
        for uuid in await asyncio.to_thread(unrefined, self._store):
            if uuid not in self._unusable:
                self._waiting.setdefault(uuid)
        while True:
            while self._waiting:
                uuid = next(iter(self._waiting))
                try:
                    await self._refine(model, uuid)
                except LoreError:
                    if uuid in self._waiting:
                        self._waiting.move_to_end(uuid)  # should it be this memory, others come first next time
                    raise
            self._more.clear()
            await self._more.wait()
            await asyncio.sleep(self._pace.settle)

    async def _refine(self, model: ViewModel, uuid: str) -> None:
        node = self._store.node_by_uuid(uuid)
        if node is None or not wants_views(node) or (uuid not in self._anew and is_refined(self._store, node)):
            self._waiting.pop(uuid, None)
            return
        from lorehooks.clients.view_llm import UnusableViewsError

        try:
            texts = await self._ask(model, node)
        except UnusableViewsError:
            self._waiting.pop(uuid, None)
            self._anew.discard(uuid)
            self._unusable.add(uuid)
            self._unusable_in_a_row += 1
            if self._unusable_in_a_row >= _UNUSABLE_IN_A_ROW:
                raise
            return
        self._trouble.over()
        self._unusable_in_a_row = 0
        if await self._keep(node, texts, model.model):
            self._waiting.pop(uuid, None)
            self._anew.discard(uuid)
            self._written += 1

    async def _ask(self, model: ViewModel, node: Node) -> Mapping[ViewType, str]:
        """The model's views, tried again a few times. Raises LoreError."""
        from lorehooks.clients.model_endpoint import may_pass

        for pause in self._pace.retries:
            try:
                return await model.write(node)
            except LoreError as error:
                if not may_pass(error):
                    raise
            await asyncio.sleep(pause)
        return await model.write(node)
