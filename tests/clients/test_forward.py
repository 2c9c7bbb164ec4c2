"""The service of a home whose memory another server keeps: what it passes on, what it answers itself, what it holds back."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from lorehooks.clients import config, credentials
from lorehooks.clients.credentials import Credential
from lorehooks.core.home import Home
from lorehooks.hooks.app import create_app

TOKEN = "lm_test_token"
OWN = "token-of-the-local-service"
ITEM = {
    "uri": "project://shop",
    "score": 0.69,
    "exact_score": 0.8,
    "score_breakdown": {"exact": 0.24},
    "cues": ["shop"],
    "matched_on": ["exact"],
    "priority": 1,
}
RECALL = {"query": "q", "candidates": [ITEM], "items": [ITEM], "retrieval_meta": {}, "event_log": {"query_id": "q-1"}}
NODE = {
    "node": {"uri": "project://shop", "node_uuid": "u-1", "content": "make release", "priority": 1, "disclosure": None},
    "children": [],
    "breadcrumbs": [],
}
BOOT = {"core_memories": [{"uri": "core://agent", "content": "Test first.", "node_uuid": "u-2"}], "recent_memories": []}


@pytest.fixture
def server(upstream) -> Any:
    server = upstream(TOKEN)
    server.answers |= {
        "GET /lifecycle/guidance": (200, {"guidance": "Theirs."}),
        "GET /browse/boot": (200, BOOT),
        "GET /browse/node": (200, NODE),
        "POST /browse/recall": (200, RECALL),
        "POST /browse/recall/usage": (200, {"updated_count": 1}),
        "GET /settings": (200, {"values": {}, "sources": {}}),
        "PUT /settings": (200, {"values": {}, "sources": {}}),
        "POST /browse/node": (200, {"success": True, "uri": "project://new", "node_uuid": "u-3"}),
    }
    return server


@pytest.fixture
def service(tmp_path: Path, server) -> Iterator[TestClient]:
    with ExitStack() as stack:
        yield stack.enter_context(running(Home(tmp_path / "h"), server.url))


def running(home: Home, url: str) -> TestClient:
    home.run.mkdir(parents=True)
    home.service_file.write_text(json.dumps({"token": OWN}))
    config.save(home, {"server.url": url})
    credentials.keep(home, url, Credential(TOKEN))
    return TestClient(create_app(home), base_url="http://127.0.0.1", headers={"Authorization": f"Bearer {OWN}"})


def test_a_request_arrives_with_the_servers_token_and_nothing_of_the_caller(service: TestClient, server) -> None:
    service.cookies.set("api_token", OWN)
    answer = service.get(
        "/api/browse/node?domain=project&path=a%2Fb&path=c", headers={"X-Secret": "x", "Origin": "http://127.0.0.1"}
    )
    assert (answer.status_code, answer.json()) == (200, NODE)
    asked = server.last("GET /browse/node")
    assert asked.query == "domain=project&path=a%2Fb&path=c"
    assert asked.headers["authorization"] == f"Bearer {TOKEN}"
    assert not {"cookie", "x-secret", "origin", "referer"} & set(asked.headers)
    assert OWN not in repr(asked)


def test_a_body_and_the_source_of_a_write_arrive(service: TestClient, server) -> None:
    body = {"domain": "project", "title": "new", "content": "缓存", "glossary": ["a"]}
    assert (
        service.post("/api/browse/node?client_type=pi", json=body, headers={"X-Lore-Source": "cli"}).json()["uri"]
        == "project://new"
    )
    asked = server.last("POST /browse/node")
    assert (asked.body, asked.query, asked.headers["x-lore-source"]) == (body, "client_type=pi", "cli")


def test_a_refusal_of_the_server_comes_back_as_it_is(service: TestClient, server) -> None:
    server.answers["DELETE /browse/node"] = (409, {"detail": "protected", "code": "protected_boot_path"})
    answer = service.delete("/api/browse/node?path=soul")
    assert (answer.status_code, answer.json()) == (409, {"detail": "protected", "code": "protected_boot_path"})


@pytest.mark.parametrize(
    ("theirs", "status", "code"),
    [
        ((401, {"detail": "Unauthorized"}), 502, "unauthorized"),
        ((302, "http://127.0.0.1:1/x"), 502, "redirected"),
        ((200, b"<html>sign in</html>"), 502, "bad_answer"),
    ],
)
def test_what_is_the_servers_fault_is_told_apart(
    service: TestClient, server, theirs: tuple[int, Any], status: int, code: str
) -> None:
    server.answers["GET /browse/node"] = theirs
    answer = service.get("/api/browse/node?path=soul")
    assert (answer.status_code, answer.json()["code"]) == (status, code)
    assert server.url in answer.json()["detail"]
    assert answer.json()["hint"]


def test_the_service_is_well_while_its_server_is_gone(tmp_path: Path) -> None:
    with running(Home(tmp_path / "h"), "http://127.0.0.1:9") as service:
        answer = service.get("/api/browse/domains")
        assert answer.status_code == 502
        assert answer.json()["code"] in ("unreachable", "paused")  # the service may have asked before, for itself
        health = service.get("/api/health").json()
        assert (health["status"], health["remote"]) == ("ok", "http://127.0.0.1:9")


def test_without_the_services_own_token_nothing_is_passed_on(service: TestClient, server) -> None:
    before = len(server.asked)
    answer = service.get("/api/browse/domains", headers={"Authorization": f"Bearer {TOKEN}"})
    assert answer.status_code == 401
    assert not any(asked.what == "GET /browse/domains" for asked in server.asked[before:])


def test_a_secret_does_not_leave_this_machine_by_mistake(service: TestClient, server) -> None:
    body = {"domain": "project", "title": "keys", "content": "ok", "glossary": ["ghp_" + "a1B2c3D4e5" * 4]}
    answer = service.post("/api/browse/node", json=body)
    assert (answer.status_code, answer.json()["code"]) == (422, "secret_found")
    assert server.count("POST /browse/node") == 0
    keyword = service.post("/api/browse/glossary", json={"node_uuid": "u-1", "keyword": body["glossary"][0]})
    assert (keyword.status_code, server.count("POST /browse/glossary")) == (422, 0)
    assert service.post("/api/browse/node", json={**body, "allow_secret": True}).status_code == 200


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("PUT", "/api/browse/node?domain=core&path=soul", {"content": "Obey."}),
        ("PUT", "/api/browse/node?domain=Core&path=%2FSoul%2F", {"content": "Obey."}),
        ("PUT", "/api/browse/boot?x=1", {"nodes": {"core://soul": "Obey."}}),
        ("PUT", "/api/browse/boot?x=1", {"nodes": {"CORE://Soul": "Obey."}}),
        (
            "POST",
            "/api/browse/node?x=1",
            {"domain": "core", "parent_path": "agent", "title": "zcode", "content": "Obey."},
        ),
        ("POST", "/api/browse/node?x=1", {"uri": "core://agent/zcode", "content": "Obey."}),
        ("POST", "/api/browse/history?domain=core&path=soul", {"event_id": 3}),
        ("POST", "/api/browse/triggers?x=1", {"uri": "core://soul", "add": ["obey"]}),
    ],
)
@pytest.mark.parametrize("client", ["claudecode", "ClaudeCode ", "mcp"])
def test_an_agent_does_not_rewrite_a_standing_rule_on_a_server_without_proposals(
    service: TestClient, server, client: str, method: str, path: str, body: Any
) -> None:
    def writes() -> int:
        return sum(asked.what.startswith(("PUT", "POST")) for asked in server.asked)

    answer = service.request(method, f"{path}&client_type={client}", json=body)
    assert (answer.status_code, answer.json()["code"]) == (403, "needs_person")
    assert writes() == 0
    service.request(method, path, json=body)
    assert writes() == 1


@pytest.mark.parametrize(
    "path",
    [
        "/api/browse/node%3Fdomain=core&path=agent",  # the server would read an address that was never checked
        "/api/browse/node/",
        "/api/browse/./node",
        "/api/browse//node",
        "/api/../admin",
        "/api/%2e%2e/admin",
        "/api/browse/node%23",
        "/api/browse/node%00",
        "/api/browse%5Cnode",
    ],
)
def test_no_spelling_of_a_path_gets_round_the_checks_or_out_of_the_api(service: TestClient, server, path: str) -> None:
    server.answers |= {
        f"{method} {name}": (200, {}) for method in ("POST", "PUT") for name in ("/admin", "/browse/node/")
    }
    before = len(server.asked)
    body = {"content": "the password is hunter2hunter2: AKIAIOSFODNN7EXAMPLE", "domain": "core"}
    for method in ("POST", "PUT"):
        assert service.request(method, path, json=body).status_code in (404, 405, 422)
    assert [asked.what for asked in server.asked[before:] if not asked.what.startswith("GET ")] == []


@pytest.mark.parametrize("body", [b"{", b"[]", b'"x"'])
def test_a_write_that_is_no_object_is_no_defect(service: TestClient, body: bytes) -> None:
    assert service.post("/api/browse/node", content=body).status_code in (200, 400)


def test_a_request_beyond_measure_is_refused(service: TestClient, server) -> None:
    answer = service.post("/api/browse/search", content=b" " * ((16 << 20) + 1))
    assert (answer.status_code, answer.json()["code"]) == (413, "too_large")
    assert server.count("POST /browse/search") == 0


def test_a_server_that_leads_back_here_is_found_out(service: TestClient, server) -> None:
    assert service.get("/api/browse/domains", headers={"X-Lore-Hops": "2"}).status_code == 200
    assert server.last("GET /browse/domains").headers["x-lore-hops"] == "3"
    answer = service.get("/api/browse/domains", headers={"X-Lore-Hops": "3"})
    assert answer.status_code == 502
    assert "leads back here" in answer.json()["detail"]


def test_changed_settings_are_read_again(service: TestClient, server) -> None:
    service.post("/hooks/v1/claudecode/prompt.submit", json={"session_id": "s-1", "prompt": "q"})
    service.put("/api/settings", json={"patch": {"recall.display.max_display_items": 5}})
    before = server.count("GET /settings")
    service.post("/hooks/v1/claudecode/prompt.submit", json={"session_id": "s-1", "prompt": "q"})
    assert server.count("GET /settings") == before + 1


def test_a_prompt_gets_the_servers_recall_in_our_own_block(service: TestClient, server) -> None:
    answer = service.post("/hooks/v1/claudecode/prompt.submit", json={"session_id": "s-1", "prompt": "deploy the shop"})
    text = answer.json()["hookSpecificOutput"]["additionalContext"]
    assert '<recall session_id="s-1" query_id="q-1">\n0.69 | project://shop | shop\n</recall>' in text
    assert server.last("POST /browse/recall").body["query"] == "deploy the shop"


def test_a_session_starts_with_the_servers_rules(service: TestClient) -> None:
    answer = service.post("/hooks/v1/codex/session.start", json={"session_id": "s-1", "source": "startup"})
    text = answer.json()["hookSpecificOutput"]["additionalContext"]
    assert "Test first." in text
    assert "Theirs." in text


def test_tools_work_on_the_server(service: TestClient) -> None:
    service.post("/hooks/v1/claudecode/prompt.submit", json={"session_id": "s-1", "prompt": "deploy the shop"})
    arguments = {"uri": "project://shop", "session_id": "s-1", "query_id": "q-1"}
    answer = service.post("/hooks/v1/claudecode/tool", json={"name": "lore_get_node", "arguments": arguments}).json()
    assert not answer["is_error"]
    assert "make release" in answer["text"]
    assert "query_id" not in answer["text"]  # the ids fit, so nothing is said about them


def test_the_public_plugins_are_answered_here(service: TestClient, server) -> None:
    body = {
        "runtime": {"runtime_id": "pi", "runtime_family": "pi"},
        "event": {"name": "prompt.submit"},
        "normalized": {"session_id": "s-1", "prompt": "deploy the shop"},
    }
    answer = service.post("/api/lifecycle/event", json=body).json()
    assert answer["query_id"] == "q-1"
    assert server.count("POST /lifecycle/event") == 0


def test_ready_files_are_written_whatever_the_server_does(tmp_path: Path, wait: Callable[..., None]) -> None:
    home = Home(tmp_path / "h")
    with running(home, "http://127.0.0.1:9"):
        wait(lambda: (home.run / "limits").exists() and (home.tools / "claudecode.json").exists())
    assert not (home.boot / "claudecode").exists()


def test_ready_boot_bytes_come_from_the_server(tmp_path: Path, server, wait: Callable[..., None]) -> None:
    home = Home(tmp_path / "h")
    with running(home, server.url):
        wait((home.boot / "claudecode").exists)
    assert b"Test first." in (home.boot / "claudecode").read_bytes()
    assert not home.database.exists()  # the embedded memory is not even opened


def test_a_service_in_the_foreground_is_not_ended_by_others(service: TestClient) -> None:
    assert service.post("/hooks/v1/reload").status_code == 409
