"""What stands around every answer: reading a request, the errors `{detail, code}`, JSON on the way out."""

from __future__ import annotations

import json
import logging
import sqlite3
from collections.abc import Mapping

from pydantic import TypeAdapter, ValidationError
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.types import Receive, Scope, Send

from lorehooks.core.errors import LoreError
from lorehooks.core.wellformed import well_formed_json
from lorehooks.hooks.api.operation import Answer, Call, Operation

_log = logging.getLogger("lorehooks.api")
_ANYTHING: TypeAdapter[object] = TypeAdapter(object)


class BadJsonError(LoreError):
    """A body that is no JSON object."""

    code = "bad_json"
    status = 400


class Endpoint:
    """One path as an ASGI application: the operation of the request's method, and 405 for the rest."""

    def __init__(self, operations: Mapping[str, Operation]) -> None:
        self._operations = operations
        self._allowed = ", ".join(sorted({*operations, *(["HEAD"] if "GET" in operations else []), "OPTIONS"}))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        response = await self._answer(Request(scope, receive))
        await response(scope, receive, send)

    async def _answer(self, request: Request) -> Response:
        operation = self._operations.get("GET" if request.method == "HEAD" else request.method)
        if operation is not None:
            return await _guarded(Call(request, operation))
        allow = {"Allow": self._allowed}
        if request.method == "OPTIONS":
            return Response(status_code=204, headers=allow)
        return error_response(405, f"{request.method} is not served here", "method_not_allowed", headers=allow)


async def _guarded(call: Call) -> Response:
    try:
        return await _run(call)
    except LoreError as error:
        return error_response(error.status, error.message, error.code, hint=error.hint)
    except ValidationError as error:
        return error_response(422, _first_problem(error), "validation_error")
    except ClientDisconnect:
        return error_response(413, "The request is larger than this server takes", "too_large")
    except sqlite3.Error as error:
        return error_response(503, f"The memory cannot be read: {error}", "storage_error", hint="lore doctor")
    except Exception as error:  # noqa: BLE001  a defect of ours must still be answered
        _log.exception("%s failed", call.operation.source)
        return error_response(500, f"Defect in lorehooks: {type(error).__name__}: {error}", "internal_error")


async def _run(call: Call) -> Response:
    arguments: dict[str, object] = {}
    if call.operation.query is not None:
        arguments["query"] = call.operation.query.model_validate(dict(call.request.query_params))
    if call.operation.body is not None:
        arguments["body"] = call.operation.body.model_validate(await _json_object(call.request))
    if call.operation.path != "/health":
        call.parts.activity.touch()
    result = await call.operation.handler(call, **arguments)
    if isinstance(result, Response):
        return result
    return json_response(result, result.status_code if isinstance(result, Answer) else 200)


def json_response(value: object, status: int = 200) -> Response:
    """A value, models inside it included, as JSON."""
    return Response(_ANYTHING.dump_json(value, by_alias=True), status, media_type="application/json")


def error_response(
    status: int, detail: str, code: str, *, hint: str = "", headers: Mapping[str, str] | None = None
) -> Response:
    """The error envelope of the contract (1.1); `hint`, the step that mends it, is ours."""
    body = {"detail": detail, "code": code} | ({"hint": hint} if hint else {})
    return JSONResponse(well_formed_json(body), status, headers=headers)


async def _json_object(request: Request) -> dict[str, object]:
    """The body. An empty one and `null` count as an empty object, since every field may be left out somewhere."""
    raw = await request.body()
    if not raw.strip():
        return {}
    try:
        value = json.loads(raw.decode("utf-8-sig"), parse_constant=_no_constant)
        value = well_formed_json(value)
    except (ValueError, RecursionError) as error:
        raise BadJsonError(f"The body is no JSON: {error}") from error
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise BadJsonError(f"The body is a JSON {type(value).__name__}, not an object")
    return value


def _no_constant(name: str) -> object:
    raise ValueError(f"{name} is no JSON number")


def _first_problem(error: ValidationError) -> str:
    problem = error.errors(include_url=False, include_input=False, include_context=False)[0]
    place = ".".join(str(part) for part in problem["loc"])
    return f"{place}: {problem['msg']}" if place else problem["msg"]
