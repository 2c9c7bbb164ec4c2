"""Creating, reading, changing, moving and deleting memories over the API."""

from __future__ import annotations

import pytest


def events_of(api, domain, path):
    return api.get(f"/api/browse/history?domain={domain}&path={path}").json()["events"]


def test_create_answers_what_clients_read_and_keeps_who_wrote(api):
    body = {
        "domain": "project", "parent_path": "", "title": "shop", "content": "A shop.", "priority": 3,
        "disclosure": "When working on the shop", "glossary": ["shop", "Shop", " "], "session_id": "s1",
    }  # fmt: skip
    answer = api.post("/api/browse/node?client_type=codex", json=body)
    assert answer.status_code == 200
    done = answer.json()
    assert done == {
        "success": True, "operation": "create", "uri": "project://shop", "path": "shop", "node_uuid": done["node_uuid"],
        "node": {"uri": "project://shop", "node_uuid": done["node_uuid"], "content": "A shop."},
        "warnings": [], "policy_warnings": [], "proposal": None,
    }  # fmt: skip
    node = api.get("/api/browse/node?domain=project&path=shop").json()["node"]
    assert node["glossary_keywords"] == ["shop"]
    assert (node["priority"], node["disclosure"]) == (3, "When working on the shop")
    (event,) = events_of(api, "project", "shop")
    assert (event["source"], event["client_type"], event["session_id"]) == ("api:POST /browse/node", "codex", "s1")


def test_a_priority_that_is_left_out_is_2_and_costs_none_of_the_few(api):
    for number in range(8):
        assert api.post("/api/browse/node", json={"uri": f"work://n{number}", "disclosure": "d"}).status_code == 200
    assert api.get("/api/browse/node?domain=work&path=n7").json()["node"]["priority"] == 2


def test_the_cap_of_priority_0_is_a_422(api, make):
    for number in range(5):
        make(f"work://top{number}", priority=0)
    answer = api.post("/api/browse/node", json={"uri": "work://one_more", "priority": 0})
    assert answer.status_code == 422
    assert answer.json()["code"] == "validation_error"
    assert "5" in answer.json()["detail"]


def test_without_a_title_a_memory_gets_the_next_number(api, make):
    make("work://team")
    make("work://team/7")
    first = api.post("/api/browse/node", json={"domain": "work", "parent_path": "team", "content": "a"}).json()
    second = api.post("/api/browse/node", json={"domain": "work", "parent_path": "/team/", "title": " "}).json()
    assert (first["uri"], second["uri"]) == ("work://team/8", "work://team/9")


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        ({"domain": "project", "title": "there"}, 409, "conflict"),
        ({"domain": "project", "parent_path": "nowhere", "title": "x"}, 422, "validation_error"),
        ({"domain": "project", "title": "Bad-Title"}, 422, "validation_error"),
        ({"domain": "project", "title": "a/b"}, 422, "validation_error"),
        ({"domain": "project", "title": "中文"}, 422, "validation_error"),
        ({"domain": "We ird", "title": "t"}, 422, "validation_error"),
        ({"uri": "project://a://b"}, 422, "validation_error"),
        ({"uri": "project://x", "priority": -1}, 422, "validation_error"),
        ({"uri": "project://x", "priority": 10**30}, 422, "validation_error"),
        ({"uri": "project://x", "glossary": "word"}, 422, "validation_error"),
        ({"uri": "project://x", "content": "AKIAIOSFODNN7EXAMPLE is the key"}, 422, "secret_found"),
    ],
)
def test_a_memory_that_breaks_a_rule_is_refused_with_an_honest_code(api, make, body, status, code):
    make("project://there")
    answer = api.post("/api/browse/node", json=body)
    assert (answer.status_code, answer.json()["code"]) == (status, code)
    assert api.get("/api/browse/domains").json() == [
        {"domain": "core", "root_count": 2}, {"domain": "preferences", "root_count": 1}, {"domain": "project", "root_count": 1},
    ]  # fmt: skip


def test_a_secret_is_stored_when_a_person_insists(api):
    body = {"uri": "project://x", "content": "AKIAIOSFODNN7EXAMPLE is public", "allow_secret": True}
    assert api.post("/api/browse/node", json=body).status_code == 200


def test_warnings_come_with_the_write_under_both_names(api):
    done = api.post("/api/browse/node", json={"uri": "work://x", "disclosure": "请假或者换班时"}).json()
    assert done["warnings"] == done["policy_warnings"]
    assert any("OR" in warning for warning in done["warnings"])


def test_a_page_shows_children_crumbs_views_and_who_wrote(api, make):
    make("project://shop", "x" * 150)
    make("project://shop/webhooks", "y" * 101, priority=4)
    make("project://shop/refunds", "z" * 100, priority=1)
    make("project://shop/webhooks/retry")
    page = api.get("/api/browse/node?domain=project&path=/shop/").json()
    assert page["node"]["uri"] == "project://shop"
    assert page["node"]["is_virtual"] is False
    assert [view["view_type"] for view in page["node"]["memory_views"]] == ["gist", "question"]
    assert [(child["path"], child["approx_children_count"]) for child in page["children"]] == [
        ("shop/refunds", 0), ("shop/webhooks", 1),
    ]  # fmt: skip
    assert [child["content_snippet"] for child in page["children"]] == ["z" * 100, "y" * 100 + "..."]
    assert page["breadcrumbs"] == [{"path": "", "label": "root"}, {"path": "shop", "label": "shop"}]
    (updater,) = page["node"]["updaters"]
    assert (updater["source"], updater["event_count"]) == ("api:POST /browse/node", 1)


def test_nav_only_leaves_keywords_and_views_out(api, make):
    make("project://shop")
    node = api.get("/api/browse/node?domain=project&path=shop&nav_only=1").json()["node"]
    assert (node["glossary_keywords"], node["memory_views"]) == ([], [])
    assert node["content"] == "Some fact."


def test_a_root_is_virtual_in_any_domain_and_an_unknown_path_is_a_404(api, make):
    make("project://shop")
    root = api.get("/api/browse/node?domain=project").json()
    assert root["node"]["is_virtual"] is True
    assert root["node"]["node_uuid"] == "00000000-0000-0000-0000-000000000000"
    assert [child["uri"] for child in root["children"]] == ["project://shop"]
    assert api.get("/api/browse/node?domain=nothere&path=").json()["children"] == []
    answer = api.get("/api/browse/node?domain=project&path=nope")
    assert (answer.status_code, answer.json()["code"]) == (404, "not_found")


def test_reading_marks_nothing_whatever_ids_are_passed(api, make):
    make("project://shop")
    before = api.get("/api/browse/recall/stats").json()["summary"]
    api.get("/api/browse/node?domain=project&path=shop&session_id=s&query_id=q")
    assert api.get("/api/browse/recall/stats").json()["summary"] == before


def test_an_update_changes_what_it_names_and_null_changes_nothing(api, make):
    make("project://shop", "Old.", glossary=["a", "b"], priority=3)
    at = "/api/browse/node?domain=project&path=shop"
    done = api.put(
        at,
        json={"content": None, "disclosure": None, "priority": None, "glossary_add": ["c"], "glossary_remove": ["A"]},
    ).json()
    assert done["operation"] == "update"
    node = api.get(at).json()["node"]
    assert (node["content"], node["disclosure"], node["priority"]) == ("Old.", "When it fits", 3)
    assert node["glossary_keywords"] == ["b", "c"]
    api.put(at, json={"content": "New.", "disclosure": "", "glossary": ["only"]})
    node = api.get(at).json()["node"]
    assert (node["content"], node["disclosure"], node["glossary_keywords"]) == ("New.", None, ["only"])


def test_an_update_of_nothing_succeeds_and_leaves_no_event(api, make):
    make("project://shop")
    assert api.put("/api/browse/node?domain=project&path=shop", json={}).status_code == 200
    assert [event["event_type"] for event in events_of(api, "project", "shop")] == ["create"]
    assert api.put("/api/browse/node?domain=project&path=nope", json={"content": "x"}).status_code == 404


def test_delete_takes_the_subtree_and_not_a_neighbour_that_a_wildcard_would_match(api, make):
    for uri in ("work://a_b", "work://a_b/kid", "work://axb", "work://axb/kid"):
        make(uri)
    done = api.request("DELETE", "/api/browse/node?domain=work&path=a_b&session_id=s&client_type=pi").json()
    assert (done["success"], done["operation"], done["deleted_uri"]) == (True, "delete", "work://a_b")
    assert done["deleted_uris"] == ["work://a_b", "work://a_b/kid"]
    assert api.get("/api/browse/node?domain=work&path=axb/kid").status_code == 200
    assert api.request("DELETE", "/api/browse/node?domain=work&path=a_b").status_code == 404
    assert events_of(api, "work", "a_b")[0]["session_id"] == "s"


def test_move_takes_children_along_and_lists_them_under_the_new_parent(api, make):
    for uri in ("work://old", "work://old/v5", "work://other"):
        make(uri)
    done = api.post("/api/browse/move", json={"old_uri": "work://old", "new_uri": "work://other/home5"}).json()
    assert (done["success"], done["operation"]) == (True, "move")
    assert (done["uri"], done["path"]) == ("work://other/home5", "other/home5")
    assert (done["old_uri"], done["new_uri"]) == ("work://old", "work://other/home5")
    children = api.get("/api/browse/node?domain=work&path=other").json()["children"]
    assert [child["uri"] for child in children] == ["work://other/home5"]
    assert api.get("/api/browse/node?domain=work&path=other/home5/v5").status_code == 200


@pytest.mark.parametrize(
    ("old", "new", "status", "code"),
    [
        ("work://nope", "work://x", 404, "not_found"),
        ("work://a", "work://b", 409, "conflict"),
        ("work://a", "work://ghost/a", 422, "validation_error"),
        ("work://a", "work://Bad Seg", 422, "validation_error"),
        ("work://a", "work://a/b", 422, "validation_error"),
        ("core://soul", "core://x", 409, "protected_boot_path"),
        ("work://a", "core://agent/pi", 409, "protected_boot_path"),
        ("", "", 422, "validation_error"),
    ],
)
def test_a_move_that_cannot_be_is_refused_with_an_honest_code(api, make, old, new, status, code):
    make("work://a")
    make("work://b")
    answer = api.post("/api/browse/move", json={"old_uri": old, "new_uri": new})
    assert (answer.status_code, answer.json()["code"]) == (status, code)


def test_boot_nodes_cannot_be_deleted(api):
    for domain, path in (("core", "agent"), ("core", "agent/dsh"), ("preferences", "user")):
        answer = api.request("DELETE", f"/api/browse/node?domain={domain}&path={path}")
        assert (answer.status_code, answer.json()["code"]) == (409, "protected_boot_path")


def test_the_glossary_routes_add_once_and_remove_once(api, make):
    uuid = make("project://shop", glossary=["Stripe"])
    word = {"keyword": "hmac", "node_uuid": uuid}
    assert api.post("/api/browse/glossary", json=word).json()["success"] is True
    assert api.post("/api/browse/glossary", json=word).json()["success"] is True
    assert api.get("/api/browse/glossary").json() == {
        "glossary": [{"keyword": "Stripe", "node_uuid": uuid}, {"keyword": "hmac", "node_uuid": uuid}]
    }
    assert api.request("DELETE", "/api/browse/glossary", json=word).json()["success"] is True
    assert api.request("DELETE", "/api/browse/glossary", json=word).json()["success"] is False
    unknown = api.post("/api/browse/glossary", json={"keyword": "x", "node_uuid": "nope"})
    assert unknown.status_code == 404
    assert api.post("/api/browse/glossary", json={}).status_code == 422


def test_triggers_tell_what_was_new_and_what_was_not(api, make):
    make("project://shop", glossary=["Stripe", "webhook"])
    body = {"uri": "project://shop", "add": ["hmac", "WEBHOOK", " "], "remove": ["stripe", "nothere"]}
    done = api.post("/api/browse/triggers", json=body).json()
    assert done["added"] == ["hmac"]
    assert done["skipped_add"] == ["WEBHOOK"]
    assert done["removed"] == ["stripe"]
    assert done["skipped_remove"] == ["nothere"]
    assert done["current"] == ["webhook", "hmac"]
    assert api.post("/api/browse/triggers", json={"uri": "project://nope", "add": ["x"]}).status_code == 404
