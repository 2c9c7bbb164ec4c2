"""Recall, marks, search, statistics and debug over the API."""

from __future__ import annotations

import math

import pytest


@pytest.fixture
def shop(make):
    make(
        "project://shop/webhooks".replace("/webhooks", ""), "A shop.", glossary=["demo shop"], disclosure="When selling"
    )
    make(
        "project://shop/webhooks",
        "Verify the Stripe webhook signature against the raw body.",
        glossary=["webhook", "Stripe", "signature"],
        disclosure="When handling webhooks",
        priority=1,
    )
    make("project://shop/rates", "Wait for Retry-After on 429.", glossary=["rate limit"], disclosure="When calling")


def recall(api, query, client="claudecode", **fields):
    answer = api.post(f"/api/browse/recall?client_type={client}", json={"query": query, **fields})
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_a_prompt_gets_items_with_every_part_of_their_score(api, shop):
    found = recall(api, "verify the stripe webhook signature", session_id="s", min_display_score=0.3)
    item = found["items"][0]
    assert item["uri"] == "project://shop/webhooks"
    assert 1 <= len(item["cues"]) <= 3
    parts = item["score_breakdown"]
    added = sum(parts[name] for name in parts if name != "lexical_damp")
    assert math.isclose(added, item["score"], abs_tol=1e-6)
    assert item["score_display"] == pytest.approx(item["score"], abs=0.005001)
    assert item["recency_bonus"] == parts["recency"]
    assert found["index"] == {"ready": True}
    assert found["event_log"]["enabled"] is True
    assert found["candidates"][0] == item


def test_an_address_in_the_prompt_is_an_exact_match(api, shop):
    for prompt in ("project://shop/rates", "please read Project://shop/rates/ again"):
        found = recall(api, prompt, min_display_score=0.3)
        (item,) = [one for one in found["candidates"] if one["uri"] == "project://shop/rates"]
        assert (item["exact_score"], item["withheld"]) == (1.0, ""), prompt


def test_what_is_not_shown_says_why(api, shop):
    found = recall(api, "webhook rate limit demo shop", max_display_items=1, min_display_score=0.1)
    assert len(found["items"]) == 1
    assert {one["withheld"] for one in found["candidates"]} == {"", "limit"}
    none = recall(api, "webhook rate limit demo shop", min_display_score=1)
    assert none["items"] == []
    assert none["suppressed"] == {"boot": 0, "score": len(none["candidates"])}


def test_boot_nodes_are_never_items_unless_asked_for(api, shop):
    api.put("/api/browse/boot", json={"nodes": {"core://soul": "Persona: calm and dry."}})
    found = recall(api, "soul persona calm dry", min_display_score=0.05)
    assert "core://soul" not in [item["uri"] for item in found["items"]]
    assert found["suppressed"]["boot"] == 1
    assert "core://agent/dsh" in found["boot_uris"]
    shown = recall(api, "soul persona calm dry", min_display_score=0.05, exclude_boot_from_results=False)
    assert "core://soul" in [item["uri"] for item in shown["items"]]
    assert shown["boot_uris"] == []


def test_a_long_prompt_gets_a_notice_before_the_items(api, shop):
    found = recall(api, "verify the stripe webhook signature " * 20, min_display_score=0.2)
    notice, first = found["items"][:2]
    assert notice["uri"] == "notice://recall/query_truncated"
    assert (notice["score"], notice["score_display"], notice["matched_on"]) == (None, None, ["notice"])
    assert "200" in notice["cues"][0]
    assert first["uri"] == "project://shop/webhooks"
    meta = found["retrieval_meta"]
    assert (meta["query_truncated"], meta["query_char_limit"]) == (True, 200)
    assert meta["original_query_chars"] > meta["query_chars"]


def test_a_recall_that_takes_too_long_is_a_notice_and_no_error(api, shop):
    api.put("/api/settings", json={"patch": {"recall.safety.timeout_ms": 500}})
    api.app.state.parts.backend.ready.clear()
    found = recall(api, "quokka")
    (notice,) = found["items"]
    assert notice["uri"] == "notice://recall/timeout"
    assert (found["query"], found["candidates"]) == ("", [])
    assert found["event_log"] == {"query_id": None, "enabled": False}
    assert found["retrieval_meta"]["recall_timed_out"] is True


def test_a_blank_prompt_finds_nothing(api, shop):
    for query in ("", "   "):
        found = recall(api, query)
        assert (found["items"], found["candidates"]) == ([], [])


def test_options_narrow_the_answer(api, shop):
    found = recall(
        api, "stripe webhook", domain="project", limit=1, max_display_items=1, score_precision=4, min_display_score=0.1
    )
    assert len(found["candidates"]) == 1
    assert found["items"][0]["score_display"] == pytest.approx(found["items"][0]["score"], abs=0.00005)
    assert recall(api, "stripe webhook", domain="work", min_display_score=0.1)["candidates"] == []


def test_a_shared_term_resolves_to_the_sessions_own_project(api, make):
    for project in ("alpha", "beta"):
        make(f"project://{project}", f"The {project} project.")
        make(f"project://{project}/deploy", f"Deploy {project} by hand.", glossary=["deploy"])
    found = recall(api, "deploy", project="Beta", min_display_score=0.3)
    assert found["items"][0]["uri"] == "project://beta/deploy"
    found = recall(api, "deploy", project="alpha", min_display_score=0.3)
    assert found["items"][0]["uri"] == "project://alpha/deploy"


def test_an_embedding_override_changes_nothing_and_sends_nothing(api, shop):
    override = {"provider": "openai_compatible", "base_url": "http://192.0.2.1/v1", "api_key": "k", "model": "m"}
    with_it = recall(api, "stripe webhook", embedding=override, min_display_score=0.1)
    without = recall(api, "stripe webhook", min_display_score=0.1)
    assert [one["score"] for one in with_it["candidates"]] == [one["score"] for one in without["candidates"]]
    assert with_it["retrieval_meta"]["model"] is None


def test_marks_count_once_and_only_what_was_shown(api, shop):
    found = recall(api, "stripe webhook signature", session_id="s", min_display_score=0.2, max_display_items=1)
    query_id = found["event_log"]["query_id"]

    def mark(**body):
        return api.post("/api/browse/recall/usage?client_type=pi", json=body).json()

    uris = ["project://shop/webhooks", "project://shop/rates"]
    assert mark(query_id=query_id, success=False) == {"updated_count": 0, "query_id": query_id, "node_uris": []}
    assert mark(query_id=query_id, session_id="pi-embedded", node_uris=uris) == {
        "updated_count": 1, "query_id": query_id, "node_uris": uris,
    }  # fmt: skip
    assert mark(query_id=query_id, node_uris=uris)["updated_count"] == 0
    assert mark(query_id="00000000-dead-beef-0000-000000000000", node_uris=uris)["updated_count"] == 0
    assert mark(session_id="s", node_uris=uris) == {"updated_count": 0, "query_id": None, "node_uris": uris}


def test_no_addresses_mark_all_that_was_shown(api, shop):
    found = recall(api, "stripe webhook rate limit", min_display_score=0.1, max_display_items=3)
    shown = [item["uri"] for item in found["items"]]
    assert len(shown) > 1
    body = {"query_id": found["event_log"]["query_id"]}
    assert api.post("/api/browse/recall/usage", json=body).json()["updated_count"] == len(shown)


def test_a_query_id_is_known_after_a_restart(lore_server):
    first = lore_server()
    first.post("/api/browse/node", json={"uri": "work://x", "glossary": ["zebra"], "disclosure": "d"})
    found = first.post("/api/browse/recall", json={"query": "zebra", "min_display_score": 0.1}).json()
    first.__exit__(None, None, None)
    second = lore_server()
    body = {"query_id": found["event_log"]["query_id"], "node_uris": ["work://x"]}
    assert second.post("/api/browse/recall/usage", json=body).json()["updated_count"] == 1


def test_search_finds_by_get_and_post_alike(api, shop):
    got = api.get("/api/browse/search?q=stripe webhook&limit=5&content_limit=1").json()
    posted = api.post("/api/browse/search", json={"query": "stripe webhook", "limit": 5, "content_limit": 1}).json()
    assert got["results"] == posted["results"]
    first, *rest = got["results"]
    assert first["uri"] == "project://shop/webhooks"
    assert (first["domain"], first["path"]) == ("project", "shop/webhooks")
    assert first["content"].startswith("Verify")
    assert all(hit["content"] is None for hit in rest)
    assert "<b>" not in first["snippet"]
    assert got["meta"]["limit"] == 5


def test_search_limits_and_modes(api, shop):
    assert api.get("/api/browse/search?q=").json()["meta"] == {
        "query": "", "domain": None, "limit": 0, "content_limit": 0, "mode": "both", "strategy": "raw_plus_lex_damp",
        "candidates": {"exact": 0, "glossary_semantic": 0, "dense": 0, "view_lexical": 0, "content_lexical": 0},
    }  # fmt: skip
    none = api.post("/api/browse/search", json={"query": "webhook", "limit": 0, "content_limit": 0}).json()
    assert (none["meta"]["limit"], none["meta"]["content_limit"]) == (10, 0)
    assert none["results"][0]["content"] is None
    assert api.post("/api/browse/search", json={"query": "webhook", "mode": "keyword"}).json()["results"]
    assert api.post("/api/browse/search", json={"query": "webhook", "mode": "magic"}).status_code == 422
    assert api.get("/api/browse/search?q=webhook&limit=-1").status_code == 422
    assert api.get("/api/browse/search?query=webhook&domain=work").json()["results"] == []


def test_statistics_count_what_was_shown_and_opened(api, shop):
    found = recall(api, "stripe webhook signature", client="pi", session_id="s", min_display_score=0.2)
    recall(api, "nothing of the kind", client="codex")
    recall(api, "stripe webhook", client="", min_display_score=0.2)
    query_id = found["event_log"]["query_id"]
    api.post("/api/browse/recall/usage", json={"query_id": query_id, "node_uris": ["project://shop/webhooks"]})
    stats = api.get("/api/browse/recall/stats?days=1").json()
    assert stats["summary"]["query_count"] == 3
    assert stats["summary"]["used_count"] == 1
    assert stats["by_path"][0]["node_uri"] == "project://shop/webhooks"
    assert stats["recent_queries"]["items"][-1]["query_id"] == query_id
    assert {one["client_type"] for one in stats["client_type_threshold_analysis"]} == {"pi", "codex", None}
    assert stats["display_threshold_analysis"]["status"] == "insufficient_data"
    one = api.get(f"/api/browse/recall/stats?query_id={query_id}").json()
    assert one["query_detail"]["shown"][0] == {
        "node_uri": "project://shop/webhooks", "score": found["items"][0]["score"], "used": True,
    }  # fmt: skip
    assert api.get("/api/browse/recall/stats?client_type=codex").json()["summary"]["query_count"] == 1
    assert api.get("/api/browse/recall/stats?client_type=__legacy__").json()["summary"]["query_count"] == 1
    assert api.get("/api/browse/recall/stats?client_type=admin").json()["summary"]["query_count"] == 3
    page = api.get("/api/browse/recall/stats?recent_queries_limit=1&recent_queries_offset=1").json()["recent_queries"]
    assert (len(page["items"]), page["total"], page["has_more"]) == (1, 3, True)


def test_debug_lists_the_hits_of_each_signal(api, shop):
    found = api.get("/api/browse/recall/debug?query=stripe webhook&min_display_score=0.2").json()
    assert found["exact_hits"][0]["uri"] == "project://shop/webhooks"
    assert found["exact_hits"][0]["exact_score"] > 0
    assert found["lexical_hits"][0]["lexical_score"] > 0
    assert found["merged_candidates"][0]["uri"] == found["candidates"][0]["uri"]
    assert found["event_log"]["query_id"]
    assert found["runtime"]["weights"]["w_exact"] == 0.3
    unlogged = api.post("/api/browse/recall/debug", json={"query": "stripe webhook"}).json()
    assert unlogged["event_log"] is None
    assert api.get("/api/browse/recall/stats").json()["summary"]["query_count"] == 1


def test_secrets_in_a_prompt_are_not_kept(api, shop):
    recall(api, "webhook with AKIAIOSFODNN7EXAMPLE", min_display_score=0.1)
    (item,) = api.get("/api/browse/recall/stats").json()["recent_queries"]["items"]
    assert "AKIAIOSFODNN7EXAMPLE" not in item["query_text"]
