"""All routes of the API in one table."""

from __future__ import annotations

from collections.abc import Iterable

from starlette.routing import Route, Router
from starlette.types import Receive, Scope, Send

from lorehooks.hooks.api import (
    backup,
    boot,
    browse,
    debug,
    health,
    history,
    lifecycle,
    maintenance,
    recall,
    settings,
    setup,
    stats,
    transfer,
    write,
)
from lorehooks.hooks.api.envelope import Endpoint, error_response
from lorehooks.hooks.api.operation import Operation

OPERATIONS: tuple[Operation, ...] = (
    *health.operations,
    *lifecycle.operations,
    *boot.operations,
    *browse.operations,
    *write.operations,
    *recall.operations,
    *debug.operations,
    *stats.operations,
    *history.operations,
    *settings.operations,
    *setup.operations,
    *maintenance.operations,
    *backup.operations,
    *transfer.operations,
)


def router(operations: Iterable[Operation] = OPERATIONS) -> Router:
    """One route for each path, and the contract's 404 for everything else."""
    by_path: dict[str, dict[str, Operation]] = {}
    for operation in operations:
        by_path.setdefault(operation.path, {})[operation.method] = operation
    routes = [Route(path, Endpoint(methods)) for path, methods in by_path.items()]
    return Router([*routes, Route("/{path:path}", _Unknown())], redirect_slashes=False)


class _Unknown:
    """The catch-all, an application of its own so that it answers every method."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        response = error_response(404, f"Unknown API route. {scope['path']} is not served here.", "not_found")
        await response(scope, receive, send)
