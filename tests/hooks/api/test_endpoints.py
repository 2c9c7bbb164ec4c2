"""Endpoints of models through the Lore API: trying them, their keys, and what recall says when they fail."""

from __future__ import annotations

import time

import pytest
from fake_openai import FakeOpenAI

from lorehooks.clients.credentials import Credential, keep, path_of

KEY = "test-key-of-this-origin"
VECTORS = {"embedding.provider": "openai_compatible", "embedding.model": "m"}


@pytest.fixture
def server():
    with FakeOpenAI() as running:
        yield running


def wait(condition):
    end = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


def set_(api, **patch):
    answer = api.put("/api/settings", json={"patch": patch})
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_both_endpoints_can_be_tried_before_they_are_set(api, server):
    patch = {"view_llm.base_url": f"{server.url}/chat/completions", "view_llm.model": "some-model"}
    done = api.post("/api/settings/test", json={"section": "view_llm", "patch": patch}).json()
    assert (done["ok"], done["section"], done["model"]) == (True, "view_llm", "some-model")
    assert "3 questions" in done["detail"]
    patch = {**VECTORS, "embedding.base_url": server.url}
    done = api.post("/api/settings/test", json={"section": "embedding", "patch": patch}).json()
    assert (done["model"], done["detail"].partition(",")[0]) == ("m", "dimensions: 24")
    values = api.get("/api/settings").json()["values"]
    assert (values["view_llm.base_url"], values["embedding.base_url"]) == ("", "")


def test_a_trial_sends_nothing_of_the_memory(api, server, make):
    make("work://secret_plan", "Nobody must know of project Zebra.")
    set_(api, **VECTORS, **{"embedding.base_url": server.url})
    wait(lambda: api.get("/hooks/v1/state").json()["memory"]["vectors"])
    before = len(server.asked)
    assert api.post("/api/settings/test", json={"section": "embedding"}).status_code == 200
    assert "Zebra" not in str(server.asked[before:])


@pytest.mark.parametrize(
    "body",
    [
        {"section": "views"},
        {"section": "view_llm"},
        {"section": "embedding"},
        {"section": "embedding", "patch": {"view_llm.base_url": "http://127.0.0.1:1"}},
        {"section": "embedding", "patch": {"embedding.base_url": "no address"}},
        {"section": "embedding", "patch": {"embedding.base_url": "https://user:pass@host/v1"}},
        {"section": "embedding", "patch": {"embedding.nope": 1}},
    ],
)
def test_a_trial_of_what_is_not_set_or_wrong_is_a_400(api, body):
    answer = api.post("/api/settings/test", json=body)
    assert answer.status_code == 400, answer.text
    assert answer.json()["detail"]


@pytest.mark.parametrize("way", ["500", "html", "401", "partial", "redirect"])
def test_a_trial_that_fails_says_why_with_a_502(api, server, way):
    server.chat = way
    patch = {"view_llm.base_url": server.url, "view_llm.model": "some-model"}
    answer = api.post("/api/settings/test", json={"section": "view_llm", "patch": patch})
    assert answer.status_code == 502
    assert answer.json()["detail"]


def test_a_key_is_sent_to_the_origin_it_was_set_for_and_is_shown_nowhere(api, server):
    keep(api.home, server.url, Credential(api_key=KEY))
    server.key = KEY
    page = set_(api, **{"view_llm.base_url": server.url, "view_llm.model": "some-model"})
    assert page["secret_configured"] == {"embedding.api_key": False, "view_llm.api_key": True}
    assert api.post("/api/settings/test", json={"section": "view_llm"}).status_code == 200
    assert server.asked[-1].headers["authorization"] == f"Bearer {KEY}"
    with FakeOpenAI() as other:
        page = set_(api, **{"view_llm.base_url": other.url})
        assert page["secret_configured"]["view_llm.api_key"] is False
        assert api.post("/api/settings/test", json={"section": "view_llm"}).status_code == 200
        assert all("authorization" not in asked.headers for asked in other.asked)
    exported = api.get("/api/backup?action=export").text
    database = b"".join(path.read_bytes() for path in api.home.root.glob("lore.db*"))
    assert KEY not in exported + api.get("/api/settings").text
    assert KEY.encode() not in database
    assert path_of(api.home).stat().st_mode & 0o777 == 0o600


def test_a_key_is_no_setting_and_the_answer_says_where_it_goes(api):
    answer = api.put("/api/settings", json={"patch": {"embedding.api_key": KEY}})
    assert answer.status_code == 400
    assert answer.json()["hint"] == "lore config key URL"


def test_an_address_is_kept_without_what_was_copied_along(api):
    page = set_(api, **{"embedding.base_url": "HTTPS://API.Example.com:443/v1/embeddings/"})
    assert page["values"]["embedding.base_url"] == "https://api.example.com/v1"


def test_recall_and_search_go_on_and_say_so_while_the_endpoint_fails(api, server, make):
    make("work://webhooks", "Send a webhook from the outbox.", glossary=["webhook"])
    set_(api, **VECTORS, **{"embedding.base_url": server.url})
    wait(lambda: api.get("/hooks/v1/state").json()["memory"]["vectors"])
    body = {"query": "webhook from the outbox", "min_display_score": 0.1}
    assert api.post("/api/browse/recall", json=body).json()["retrieval_meta"]["without_vector"] == ""
    server.embeddings = "500"
    found = api.post("/api/browse/recall", json={**body, "query": "webhook in the outbox"}).json()
    assert found["retrieval_meta"]["without_vector"] == "server_error"
    assert [item["uri"] for item in found["items"]] == ["work://webhooks"]
    assert api.post("/api/browse/search", json={"query": "a webhook"}).json()["results"]


def test_the_state_tells_what_waits_and_what_is_wrong(api, server, make):
    make("work://a")
    server.chat = "401"
    set_(api, **{"view_llm.base_url": server.url, "view_llm.model": "some-model"})
    wait(lambda: api.get("/hooks/v1/state").json()["memory"]["views"]["problem"])
    views = api.get("/hooks/v1/state").json()["memory"]["views"]
    assert (views["model"], views["waiting"], views["retry_in"] > 0) == ("some-model", 1, True)
    assert "lore config key" in views["problem"]


def test_the_views_of_one_memory_are_written_anew_when_it_is_asked_for(api, server, make):
    make("work://a")
    make("work://b")
    set_(api, **{"view_llm.base_url": server.url, "view_llm.model": "some-model"})
    views = lambda: api.get("/hooks/v1/state").json()["memory"]["views"]  # noqa: E731
    wait(lambda: views()["written"] == 2)
    assert api.post("/api/browse/recall/rebuild", json={"domain": "work", "path": "a"}).status_code == 200
    wait(lambda: views()["written"] == 3)
    assert server.told()[-1]["uri"] == "work://a"
    page = api.get("/api/browse/node?domain=work&path=a").json()
    assert "A gist of work://a." in str(page["node"]["memory_views"])
