"""The breaker: three failures in a row, half a minute of silence, one probe."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from lorehooks.clients.breaker import Breaker
from lorehooks.clients.errors import DeadlineError, PausedError, ServerError, UnreachableError
from lorehooks.core.errors import NotFoundError


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def breaker(clock: Clock) -> Breaker:
    return Breaker("the server", clock)


async def call(breaker: Breaker, error: Exception | None = None) -> str:
    async with breaker.attempt():
        if error is not None:
            raise error
    return "answered"


async def fail(breaker: Breaker, clock: Clock, times: int = 3) -> None:
    for _ in range(times):
        clock.now += 1
        with pytest.raises(UnreachableError):
            await call(breaker, UnreachableError("gone"))


def in_loop(part: Callable[[], Awaitable[None]]) -> None:
    async def run() -> None:
        await part()

    asyncio.run(run())


def test_it_opens_after_three_failures_in_a_row_and_then_nobody_waits(breaker: Breaker, clock: Clock) -> None:
    async def part() -> None:
        await fail(breaker, clock, 2)
        assert await call(breaker) == "answered"
        await fail(breaker, clock, 2)
        assert not breaker.is_open
        await fail(breaker, clock, 1)
        with pytest.raises(PausedError, match=r"the server failed 3 times and is not asked for another 30 s"):
            await call(breaker)

    in_loop(part)


def test_after_half_a_minute_one_call_goes_through_and_decides(breaker: Breaker, clock: Clock) -> None:
    async def part() -> None:
        await fail(breaker, clock)
        clock.now += 30
        entered, go_on = asyncio.Event(), asyncio.Event()

        async def probe() -> None:
            async with breaker.attempt():
                entered.set()
                await go_on.wait()

        probing = asyncio.create_task(probe())
        await entered.wait()
        with pytest.raises(PausedError):
            await call(breaker)
        go_on.set()
        await probing
        assert await call(breaker) == "answered"

    in_loop(part)


def test_a_probe_that_fails_opens_it_again(breaker: Breaker, clock: Clock) -> None:
    async def part() -> None:
        await fail(breaker, clock)
        clock.now += 30
        await fail(breaker, clock, 1)
        with pytest.raises(PausedError):
            await call(breaker)

    in_loop(part)


@pytest.mark.parametrize("error", [NotFoundError("no"), ServerError("no embedding", answered=500)])
def test_a_refusal_is_an_answer(breaker: Breaker, clock: Clock, error: Exception) -> None:
    async def part() -> None:
        await fail(breaker, clock, 2)
        for _ in range(5):
            clock.now += 1
            with pytest.raises(type(error)):
                await call(breaker, error)
        assert not breaker.is_open

    in_loop(part)


def test_calls_that_fail_together_count_once(breaker: Breaker, clock: Clock) -> None:
    async def part() -> None:
        async def slow() -> None:
            async with breaker.attempt():
                await asyncio.sleep(0)
                clock.now += 0.1
                raise DeadlineError("late")

        await asyncio.gather(*(slow() for _ in range(5)), return_exceptions=True)
        assert not breaker.is_open

    in_loop(part)


def test_a_call_that_its_caller_gave_up_on_counts_when_it_took_long(breaker: Breaker, clock: Clock) -> None:
    async def hang(seconds: float) -> None:
        async with breaker.attempt():
            clock.now += seconds
            await asyncio.sleep(3600)

    async def part() -> None:
        for seconds in (0.1, 0.1, 0.1, 1.9, 1.9, 1.9):
            assert not breaker.is_open
            clock.now += 1
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(hang(seconds), 0.01)
        assert breaker.is_open

    in_loop(part)


def test_pauses_double_up_to_the_most_and_refusals_count_where_every_call_asks_the_same(clock: Clock) -> None:
    breaker = Breaker("the endpoint", clock, most_seconds=100, any_error=True)

    async def refused() -> float:
        """How long it stays open after one more refusal."""
        clock.now += 1
        with pytest.raises(NotFoundError):
            await call(breaker, NotFoundError("no"))
        began = clock.now
        while breaker.is_open:
            clock.now += 1
        return clock.now - began

    async def part() -> None:
        assert [await refused() for _ in range(6)] == [0, 0, 30, 60, 100, 100]
        assert await call(breaker) == "answered"
        assert [await refused() for _ in range(3)] == [0, 0, 30]

    in_loop(part)
