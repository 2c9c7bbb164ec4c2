"""The OpenAPI document of the API, made from the annotations that the handlers run by.

`python -m lorehooks.hooks.api.openapi FILE` writes it; docs/openapi.json is kept true by a test.
"""

from __future__ import annotations

import inspect
import json
import re
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, get_args

from pydantic import BaseModel, TypeAdapter
from starlette.responses import Response

from lorehooks.hooks.api.operation import MayWait, Operation

_REF = "#/components/schemas/{model}"
_ERROR = {
    "type": "object",
    "description": "What every error is. `hint` is the step that mends it.",
    "properties": {"detail": {"type": "string"}, "code": {"type": "string"}, "hint": {"type": "string"}},
    "required": ["detail"],
}
_STATUSES = {
    "400": "The body is no JSON object, or a setting is wrong",
    "401": "The token is missing or wrong",
    "403": "Only a person may decide this",
    "404": "There is no such memory, event or proposal",
    "409": "The path exists, or is a fixed boot node",
    "413": "The request is too large",
    "422": "A value breaks a rule of the memory",
    "503": "The memory cannot be read or written",
}
_CLIENT_TYPE = {
    "name": "client_type",
    "in": "query",
    "description": "Who asks: a runtime, `mcp` or `admin`; what is not known counts as nobody",
    "schema": {"type": "string"},
}


def document(operations: Iterable[Operation]) -> dict[str, Any]:
    """The OpenAPI 3.1 document of these operations."""
    schemas: dict[str, Any] = {"Error": _ERROR}
    paths: dict[str, dict[str, Any]] = {}
    for operation in operations:
        paths.setdefault(f"/api{operation.path}", {})[operation.method.lower()] = _operation(operation, schemas)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "lorehooks",
            "version": "1",
            "description": "The Lore API as lorehooks serves it; docs/compatibility.md says how it relates to the public one.",
        },
        "security": [{"token": []}],
        "paths": paths,
        "components": {
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
            "responses": {f"Error{status}": _error(text) for status, text in _STATUSES.items()},
            "schemas": dict(sorted(schemas.items())),
        },
    }


def _error(text: str) -> dict[str, Any]:
    return {"description": text, "content": {"application/json": {"schema": {"$ref": _REF.format(model="Error")}}}}


def _operation(operation: Operation, schemas: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {
        "summary": operation.summary,
        "operationId": f"{operation.method.lower()}_{re.sub(r'[^a-z]+', '_', operation.path).strip('_')}",
        "parameters": [*_parameters(operation, schemas)],
        "responses": _responses(operation, schemas),
    }
    if operation.path == "/health":
        found["security"] = []
    if operation.body is not None:
        schema = _schema(operation.body, schemas, "validation")
        found["requestBody"] = {"content": {"application/json": {"schema": schema}}}
    return found


def _parameters(operation: Operation, schemas: dict[str, Any]) -> Iterable[dict[str, Any]]:
    for name in re.findall(r"{(\w+)}", operation.path):
        yield {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
    if operation.query is None or "client_type" not in operation.query.model_fields:
        yield _CLIENT_TYPE
    if operation.query is None:
        return
    schema = _flat(operation.query, schemas)
    for name, field in schema.get("properties", {}).items():
        about = field.pop("description", "")
        parameter = {"name": name, "in": "query", "schema": field}
        yield parameter | ({"description": about} if about else {})


def _responses(operation: Operation, schemas: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {"200": {"description": "Done", "content": _content(operation, schemas)}}
    if any(inspect.isclass(kind) and issubclass(kind, MayWait) for kind in _kinds(operation.answer)):
        found["202"] = {"description": "It waits for a person's yes", "content": found["200"]["content"]}
    return found | {
        status: {"$ref": f"#/components/responses/Error{status}"}
        for status in _STATUSES
        if status not in found and not (operation.path == "/health" and status in ("401", "503"))
    }


def _content(operation: Operation, schemas: dict[str, Any]) -> dict[str, Any]:
    kinds = [kind for kind in _kinds(operation.answer) if kind is not Response]
    answer = operation.answer if len(kinds) == len(_kinds(operation.answer)) else kinds[0]
    return {"application/json": {"schema": _schema(answer, schemas, "serialization")}}


def _kinds(answer: Any) -> tuple[Any, ...]:
    """The members of a union, or the one type."""
    is_union = type(answer).__name__ in ("UnionType", "_UnionGenericAlias")
    return get_args(answer) if is_union else (answer,)


def _schema(kind: Any, schemas: dict[str, Any], mode: Any) -> dict[str, Any]:
    """A reference to a model, whose schema goes among the others, or the schema of a list of them."""
    made = _take_definitions(TypeAdapter(kind).json_schema(ref_template=_REF, mode=mode, by_alias=True), schemas)
    if inspect.isclass(kind) and issubclass(kind, BaseModel):
        schemas[kind.__name__] = made
        return {"$ref": _REF.format(model=kind.__name__)}
    return made


def _flat(query: type[BaseModel], schemas: dict[str, Any]) -> dict[str, Any]:
    return _take_definitions(query.model_json_schema(ref_template=_REF), schemas)


def _take_definitions(made: dict[str, Any], schemas: dict[str, Any]) -> dict[str, Any]:
    """Put the schemas that one refers to among the others; answers it without them."""
    for name, schema in made.pop("$defs", {}).items():
        schemas[name] = _plain(schema)
    plain: dict[str, Any] = _plain(made)
    return plain


def _plain(value: Any) -> Any:
    """Without the titles that pydantic makes of names: they say nothing, and differ between its releases."""
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items() if not (key == "title" and isinstance(item, str))}
    return [_plain(item) for item in value] if isinstance(value, list) else value


def main(arguments: list[str]) -> None:
    """Write the document to the file that is named."""
    from lorehooks.hooks.api.table import OPERATIONS

    text = json.dumps(document(OPERATIONS), indent=1, ensure_ascii=False) + "\n"
    Path(arguments[0]).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
