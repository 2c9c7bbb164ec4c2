"""Whatever a client sends, the server answers in its own form and has no defect."""

from __future__ import annotations

import json

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lorehooks.hooks.api.table import OPERATIONS

TEXT = st.one_of(
    st.sampled_from(
        [
            "",
            " ",
            "core",
            "project",
            "work://a",
            "work://a/b",
            "core://soul",
            "a",
            "b",
            "://",
            "a://b://c",
            "中文",
            "..",
            "%",
            "_",
        ]
    ),
    st.text(max_size=20),
)
VALUE = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False), TEXT,
    st.lists(TEXT, max_size=4), st.dictionaries(TEXT, st.one_of(TEXT, st.integers(), st.none()), max_size=3),
)  # fmt: skip
NUMBERS = st.integers(min_value=-3, max_value=300)


@st.composite
def requests(draw):
    operation = draw(st.sampled_from(OPERATIONS))
    path = operation.path.replace("{number}", str(draw(st.one_of(NUMBERS, st.integers()))))
    query = {}
    if operation.query is not None:
        names = draw(st.lists(st.sampled_from(sorted(operation.query.model_fields)), unique=True))
        query = {name: draw(st.one_of(TEXT, NUMBERS)) for name in names}
    query["client_type"] = draw(st.sampled_from(["", "claudecode", "dsh", "mcp", "admin", "?"]))
    body = None
    if operation.body is not None:
        names = draw(st.lists(st.sampled_from(sorted(operation.body.model_fields)), unique=True))
        body = {name: draw(st.one_of(VALUE, TEXT, NUMBERS)) for name in names}
    return operation.method, path, query, body


def test_no_request_finds_a_defect(api, make):
    make("work://a", glossary=["zebra"])
    make("work://a/b")

    @settings(max_examples=250, deadline=None, suppress_health_check=list(HealthCheck))
    @given(requests())
    def send(request):
        method, path, query, body = request
        content = None if body is None else json.dumps(body, ensure_ascii=True).encode()
        answer = api.request(method, f"/api{path}", params=query, content=content)
        assert answer.status_code < 500, answer.text
        if answer.status_code >= 400:
            assert isinstance(answer.json()["detail"], str)
            assert isinstance(answer.json()["code"], str)

    send()
    assert api.post("/api/maintenance/verify").json()["ok"] is True
