"""A circuit breaker: after repeated failures a server is left alone for a while, so that no prompt waits for it (bug case D1)."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from http import HTTPStatus

from lorehooks.clients.errors import BadAnswerError, DeadlineError, PausedError, ServerError, UnreachableError

FAILURES = 3
"""Failures in a row after which it opens."""
OPEN_SECONDS = 30.0
_MOST_DOUBLINGS = 20
NOTICEABLE_SECONDS = 0.5
"""A call that its caller gave up on counts as a failure when it had taken this long."""
_GATEWAY = (HTTPStatus.BAD_GATEWAY, HTTPStatus.SERVICE_UNAVAILABLE, HTTPStatus.GATEWAY_TIMEOUT)


class Breaker:
    """Closed: calls go through. Open: they fail at once. Half open: one goes through, and decides."""

    def __init__(
        self,
        name: str,
        clock: Callable[[], float] = time.monotonic,
        *,
        most_seconds: float = OPEN_SECONDS,
        any_error: bool = False,
    ) -> None:
        """`name` is the server as messages name it; `clock` counts seconds.

        It stays open for 30 s, and twice as long after each further failure, up to `most_seconds`. With `any_error` a refusal
        is a failure too: for a server of which every call asks the same.
        """
        self.name = name
        self._clock = clock
        self._most_seconds = most_seconds
        self._any_error = any_error
        self._failures = 0
        self._failed_at = 0.0
        self._until = 0.0
        self._probing = False

    @property
    def is_open(self) -> bool:
        """Whether a call made now would fail at once."""
        return self._failures >= FAILURES and (self._probing or self._clock() < self._until)

    @asynccontextmanager
    async def attempt(self) -> AsyncIterator[None]:
        """Make one call inside. Raises PausedError instead while the breaker is open."""
        if self.is_open:
            left = max(self._until - self._clock(), 0)
            raise PausedError(
                f"{self.name} failed {self._failures} times and is not asked for another {left:.0f} s",
                hint="lore doctor",
            )
        is_probe = self._failures >= FAILURES
        self._probing = is_probe or self._probing
        began = self._clock()
        try:
            yield
        except asyncio.CancelledError:
            if self._clock() - began >= NOTICEABLE_SECONDS:
                self._failed(began)
            raise
        except (UnreachableError, DeadlineError, BadAnswerError):
            self._failed(began)
            raise
        except ServerError as error:
            if self._any_error or error.answered in _GATEWAY:
                self._failed(began)
            else:
                self._failures = 0  # it fails at this, but it answers
            raise
        except Exception:
            if self._any_error:
                self._failed(began)
            else:
                self._failures = 0  # a refusal is an answer
            raise
        else:
            self._failures = 0
        finally:
            if is_probe:
                self._probing = False

    def _failed(self, began: float) -> None:
        """Count a failure; calls that were under way together count as one."""
        if began < self._failed_at:
            return
        self._failed_at = self._clock()
        self._failures += 1
        if self._failures >= FAILURES:
            doublings = min(self._failures - FAILURES, _MOST_DOUBLINGS)
            self._until = self._clock() + min(OPEN_SECONDS * 2**doublings, self._most_seconds)
