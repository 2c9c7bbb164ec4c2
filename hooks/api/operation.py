"""How a route is written: a handler whose annotations say what it takes and what it gives.

`async def handler(call: Call, query: SomeQuery, body: SomeBody) -> SomeAnswer`: `query` and `body` are left out when the
route has none. The same annotations make the OpenAPI document, so it cannot say anything else.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar, get_type_hints

from pydantic import BaseModel, ConfigDict
from starlette.requests import Request

from lorehooks.core.model import Origin, known_client

if TYPE_CHECKING:
    from lorehooks.hooks.app import Parts

_SOURCE = re.compile(r"cli|console|import|dream|soul|mcp:lore_[a-z_]+")
Handler = TypeVar("Handler", bound=Callable[..., Awaitable[object]])


class Query(BaseModel):
    """Parameters of an address. Unknown ones are ignored, as public clients send some that mean nothing here."""

    model_config = ConfigDict(extra="ignore", frozen=True)


class Body(BaseModel):
    """A JSON object that a client sends. Unknown fields are ignored, `embedding` (an address for our key) among them."""

    model_config = ConfigDict(extra="ignore", frozen=True)


class Answer(BaseModel):
    """A JSON object that goes out. Constructed by us, so a wrong type is a defect and not a client's error."""

    model_config = ConfigDict(frozen=True)

    @property
    def status_code(self) -> int:
        """The HTTP status that goes with it."""
        return 200


class MayWait(Answer):
    """The answer of a write that a person may have to agree to: then `proposal` is its number, and the status 202."""

    proposal: int | None = None

    @property
    def status_code(self) -> int:
        return 200 if self.proposal is None else 202


@dataclass(frozen=True, slots=True)
class Operation:
    """One method of one path below `/api`. `query`, `body` and `answer` are None where the handler has none."""

    method: str
    path: str
    summary: str
    handler: Callable[..., Awaitable[object]]
    query: type[Query] | None
    body: type[Body] | None
    answer: Any

    @property
    def source(self) -> str:
        """How events name this route (`lore-contract.md` 1.8)."""
        return f"api:{self.method} {self.path}"


@dataclass(frozen=True, slots=True)
class Call:
    """One request: the route, and who asks."""

    request: Request
    operation: Operation

    @property
    def parts(self) -> Parts:
        """What the service is made of."""
        parts: Parts = self.request.app.state.parts
        return parts

    @property
    def client_type(self) -> str | None:
        """Who asks, by the parameter `client_type`; what is not known is nobody (`lore-contract.md` 1.1)."""
        return known_client(self.request.query_params.get("client_type"))

    def origin(self, session_id: str | None = None) -> Origin:
        """Who writes, as events keep it: our own client says for whom it asks (`cli`, `mcp:<tool>`), others are named by route."""
        said = self.request.headers.get("x-lore-source", "")
        source = said if _SOURCE.fullmatch(said) else self.operation.source
        return Origin(source, self.client_type, session_id or None)


def operation(into: list[Operation], method: str, path: str, summary: str) -> Callable[[Handler], Handler]:
    """Add the decorated handler to a module's routes."""

    def add(handler: Handler) -> Handler:
        hints = get_type_hints(handler)
        unknown = set(inspect.signature(handler).parameters) - {"call", "query", "body"}
        if unknown:
            raise TypeError(f"{handler} takes {unknown}")
        into.append(
            Operation(method, path, summary, handler, hints.get("query"), hints.get("body"), hints.get("return"))
        )
        return handler

    return add
