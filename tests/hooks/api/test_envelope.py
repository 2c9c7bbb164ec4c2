"""What stands around every answer: errors, methods, tokens, bodies that are none."""

from __future__ import annotations

import json

import pytest

from lorehooks.hooks.api.table import OPERATIONS

WITH_BODY = sorted({(one.method, one.path) for one in OPERATIONS if one.body is not None})


def test_health_needs_no_token_and_everything_else_does(api):
    anonymous = {"Authorization": ""}
    assert api.get("/api/health", headers=anonymous).status_code == 200
    assert api.head("/api/health", headers=anonymous).status_code == 200
    answer = api.get("/api/browse/domains", headers=anonymous)
    assert (answer.status_code, answer.json()) == (401, {"detail": "Unauthorized"})


def test_health_says_degraded_when_the_database_is_gone(api, close_database):
    close_database()
    answer = api.get("/api/health")
    assert answer.status_code == 503
    assert answer.json()["status"] == "degraded"
    assert answer.json()["database"] == "disconnected"


def test_a_closed_database_is_a_storage_error_and_no_defect(api, close_database):
    close_database()
    answer = api.get("/api/browse/domains")
    assert answer.status_code == 503
    assert answer.json()["code"]


@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "DELETE", "PATCH"])
def test_an_unknown_route_answers_the_contracts_404(api, method):
    answer = api.request(method, "/api/bridge/startup")
    assert answer.status_code == 404
    assert answer.json()["detail"].startswith("Unknown API route.")
    assert answer.json()["code"] == "not_found"


def test_a_known_route_names_the_methods_it_has(api):
    answer = api.patch("/api/browse/node")
    assert answer.status_code == 405
    assert answer.headers["allow"] == "DELETE, GET, HEAD, OPTIONS, POST, PUT"
    options = api.options("/api/browse/node")
    assert (options.status_code, options.headers["allow"]) == (204, answer.headers["allow"])


@pytest.mark.parametrize("body", [b"{not json", b"[]", b'"text"', b"\xff\xfe{}", b'{"a": NaN}', b"[" * 200_000])
def test_a_body_that_is_no_json_object_is_a_400_on_every_route(api, body):
    assert len(WITH_BODY) > 10
    for method, path in WITH_BODY:
        answer = api.request(method, f"/api{path.replace('{number}', '1')}", content=body)
        assert (answer.status_code, answer.json()["code"]) == (400, "bad_json"), path
        assert answer.json()["detail"]


def test_null_and_nothing_count_as_an_empty_object(api):
    for body in (b"null", b"", b"  "):
        answer = api.post("/api/lifecycle/event", content=body)
        assert answer.status_code == 200
        assert answer.json()["meta"] == {"reason": "unknown_runtime_family"}


def test_a_wrong_type_names_the_field(api):
    answer = api.post("/api/browse/node", json={"domain": "project", "title": "a", "priority": "high"})
    assert answer.status_code == 422
    assert answer.json()["code"] == "validation_error"
    assert answer.json()["detail"].startswith("priority: ")


def test_half_a_surrogate_pair_is_stored_visibly_and_comes_back(api):
    raw = b'{"domain": "project", "title": "cut", "content": "half \\ud83d emoji\\u0000", "disclosure": "d"}'
    assert api.post("/api/browse/node", content=raw).status_code == 200
    node = api.get("/api/browse/node?domain=project&path=cut").json()["node"]
    assert node["content"] == "half � emoji�"


def test_a_byte_order_mark_before_the_body_is_no_matter(api):
    body = b"\xef\xbb\xbf" + json.dumps({"domain": "project", "title": "bom", "disclosure": "d"}).encode()
    assert api.post("/api/browse/node", content=body).status_code == 200


def test_a_body_beyond_the_limit_is_refused(api, monkeypatch):
    monkeypatch.setattr("lorehooks.hooks.guard.MAX_BODY", 1000)
    answer = api.post("/api/browse/node", json={"content": "x" * 2000})
    assert answer.status_code == 413
    assert answer.json()["code"] == "too_large"


def test_a_defect_is_answered_and_not_raised(api, monkeypatch):
    async def broken() -> None:
        raise RuntimeError("a defect")

    monkeypatch.setattr(api.app.state.parts.backend, "domains", broken)
    answer = api.get("/api/browse/domains")
    assert answer.status_code == 500
    assert answer.json()["code"] == "internal_error"


def test_the_client_type_is_normalised_and_unknown_ones_are_nobody(api, make):
    for given, stored in (("ZCode ", "zcode"), ("dsh", "dsh"), ("CLAUDECODE", "claudecode"), ("cursor", None)):
        title = f"by_{(stored or 'nobody')}"
        answer = api.post(f"/api/browse/node?client_type={given}", json={"uri": f"work://{title}", "disclosure": "d"})
        assert answer.status_code == 200
        node = api.get(f"/api/browse/node?domain=work&path={title}").json()["node"]
        assert node["last_updated_client_type"] == stored
        assert node["last_updated_source"] == "api:POST /browse/node"
