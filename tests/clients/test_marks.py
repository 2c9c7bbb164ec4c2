"""Marks wait on disk until their server has taken them."""

from __future__ import annotations

import asyncio
import stat
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from lorehooks.clients.errors import UnreachableError
from lorehooks.clients.marks import MOST, Courier, Mark, MarkQueue
from lorehooks.core.clock import to_iso
from lorehooks.core.errors import InvalidError

NOW = datetime(2026, 5, 1, tzinfo=UTC)
MARK = Mark("https://one.example.test", "q-1", "project://a", "s-1", "codex", to_iso(NOW))


@pytest.fixture
def make(tmp_path: Path) -> Callable[[], MarkQueue]:
    """Open the queue of one home, anew each time."""
    return lambda: MarkQueue(tmp_path / "queue.jsonl", lambda: NOW)


def test_what_waits_survives_a_restart_and_stays_private(make, tmp_path: Path) -> None:
    queue = make()
    other = replace(MARK, server="https://two.example.test")
    queue.add(MARK)
    queue.add(other)
    queue.add(MARK)
    assert stat.S_IMODE((tmp_path / "queue.jsonl").stat().st_mode) == 0o600
    again = make()
    assert (again.waiting(MARK.server), again.waiting(other.server)) == ([MARK], [other])
    again.done([MARK])
    assert (make().waiting(MARK.server), make().waiting(other.server)) == ([], [other])


def test_lines_that_cannot_be_read_cost_only_themselves(make, tmp_path: Path) -> None:
    make().add(MARK)
    with (tmp_path / "queue.jsonl").open("a") as file:
        file.write('{"server": 1}\n[]\nhalf a li')
    assert make().waiting(MARK.server) == [MARK]


def test_it_neither_grows_without_bound_nor_keeps_marks_for_ever(make) -> None:
    queue = make()
    old = replace(MARK, uri="project://old", at=to_iso(NOW - timedelta(days=31)))
    queue.add(old)
    queue.done([])
    assert queue.waiting(MARK.server) == []
    queue._waiting = [replace(MARK, uri=f"project://m{number}") for number in range(MOST)]
    queue.add(MARK)
    assert len(make().waiting(MARK.server)) == MOST
    assert make().waiting(MARK.server)[-1] == MARK


class Server:
    """Takes marks, after the failures it is told to have."""

    def __init__(self, *failures: Exception) -> None:
        self.failures = list(failures)
        self.taken: list[tuple[str, list[str]]] = []
        self.idle = asyncio.Event()

    async def send(self, mark: Mark, opened: Sequence[str]) -> None:
        if self.failures:
            raise self.failures.pop(0)
        self.taken.append((mark.query_id, list(opened)))
        self.idle.set()


def test_marks_of_one_recall_go_together_once_it_is_over(make) -> None:
    async def run() -> None:
        server = Server()
        courier = Courier(make(), MARK.server, server.send, seconds=0.01)
        running = asyncio.create_task(courier.run())
        for uri in ("project://a", "project://b"):
            courier.add(replace(MARK, uri=uri))
        await asyncio.wait_for(server.idle.wait(), 20)
        running.cancel()
        assert server.taken == [("q-1", ["project://a", "project://b"])]
        assert make().waiting(MARK.server) == []

    asyncio.run(run())


def test_a_server_that_does_not_answer_loses_no_mark(make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lorehooks.clients.marks.RETRY_SECONDS", (0.01,))

    async def run() -> None:
        make().add(MARK)
        server = Server(UnreachableError("gone"), UnreachableError("gone"))
        running = asyncio.create_task(Courier(make(), MARK.server, server.send, seconds=0.0).run())
        await asyncio.wait_for(server.idle.wait(), 20)
        running.cancel()
        assert server.taken == [("q-1", ["project://a"])]

    asyncio.run(run())


def test_a_mark_that_is_refused_for_good_is_dropped(make) -> None:
    async def run() -> None:
        queue = make()
        queue.add(MARK)
        queue.add(replace(MARK, query_id="q-2"))
        server = Server(InvalidError("no"))
        await Courier(queue, MARK.server, server.send).deliver()
        assert server.taken == [("q-2", ["project://a"])]
        assert make().waiting(MARK.server) == []

    asyncio.run(run())
