"""The committed description of the API is the code's own, and the page about compatibility names every route."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

from lorehooks.hooks.api.openapi import document
from lorehooks.hooks.api.operation import Query
from lorehooks.hooks.api.table import OPERATIONS

DOCS = Path(__file__).parents[3] / "docs"


def test_the_committed_document_is_what_the_code_says():
    committed = json.loads((DOCS / "openapi.json").read_text(encoding="utf-8"))
    made = json.loads(json.dumps(document(OPERATIONS)))
    assert committed == made, "run: python -m lorehooks.hooks.api.openapi docs/openapi.json"


def test_every_reference_leads_somewhere_and_every_operation_has_an_id_of_its_own():
    made = document(OPERATIONS)

    def references(value):
        if isinstance(value, dict):
            if isinstance(value.get("$ref"), str):
                yield value["$ref"]
            for item in value.values():
                yield from references(item)
        elif isinstance(value, list):
            for item in value:
                yield from references(item)

    found = set(references(made))
    assert len(found) > 40
    for reference in found:
        here = made
        for part in reference.removeprefix("#/").split("/"):
            here = here[part]
    ids = [operation["operationId"] for path in made["paths"].values() for operation in path.values()]
    assert [name for name, count in Counter(ids).items() if count > 1] == []
    assert len(ids) == len(OPERATIONS)


def test_no_two_models_share_a_name():
    """A schema of one would stand for the other."""
    models = {}

    def subclasses(kind):
        for below in kind.__subclasses__():
            yield below
            yield from subclasses(below)

    from lorehooks.hooks.api.operation import Answer, Body

    for model in {*subclasses(Answer), *subclasses(Body)} - set(subclasses(Query)):
        assert models.setdefault(model.__name__, model) is model


def test_the_page_about_compatibility_names_every_route():
    page = (DOCS / "compatibility.md").read_text(encoding="utf-8")
    served = page.partition("## Served")[2].partition("## Not served")[0]
    assert [one for one in OPERATIONS if f"`{one.method} /api{one.path}`" not in served] == []


def test_what_the_page_calls_not_served_answers_404(api):
    for method, path in (
        ("POST", "browse/boot/draft"), ("GET", "browse/feedback"), ("GET", "browse/dream"),
        ("GET", "maintenance/orphans"), ("GET", "review/groups"), ("GET", "jobs"), ("POST", "bridge/startup"),
        ("GET", "browse/session/read"),
    ):  # fmt: skip
        assert api.request(method, f"/api/{path}").status_code == 404, path
