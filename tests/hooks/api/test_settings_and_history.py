"""Settings, history, events, rollback."""

from __future__ import annotations

import pytest

KEY = "recall.display.max_display_items"


def test_settings_come_with_definitions_defaults_and_sources(api):
    page = api.get("/api/settings").json()
    keys = [one["key"] for one in page["schema"]]
    assert set(keys) == set(page["values"]) == set(page["defaults"]) == set(page["sources"])
    assert {one["section"] for one in page["schema"]} == {one["id"] for one in page["sections"]}
    (definition,) = [one for one in page["schema"] if one["key"] == KEY]
    assert (definition["type"], definition["min"], definition["max"], definition["default"]) == ("integer", 1, 20, 3)


def test_a_patch_is_whole_or_not_at_all(api):
    answer = api.put("/api/settings", json={"patch": {KEY: 5, "nope.key": 1}})
    assert answer.status_code == 400
    assert api.get("/api/settings").json()["values"][KEY] == 3
    done = api.put("/api/settings", json={"patch": {KEY: 5, "recall.display.min_display_score": 0.4}}).json()
    assert (done["values"][KEY], done["sources"][KEY]) == (5, "db")


@pytest.mark.parametrize(
    "patch",
    [{KEY: 99}, {KEY: 0}, {KEY: "many"}, {KEY: None}, {"nope.key": 1}, {"service.idle_hours": 2}, {KEY: [3]}],
)
def test_a_wrong_setting_is_a_400(api, patch):
    answer = api.put("/api/settings", json={"patch": patch})
    assert answer.status_code == 400
    assert answer.json()["detail"]


def test_reset_takes_one_key_or_several(api):
    api.put("/api/settings", json={"patch": {KEY: 5, "views.weight.gist": 0.5}})
    assert api.post("/api/settings/reset", json={"key": KEY}).json()["sources"][KEY] == "default"
    done = api.post("/api/settings/reset", json={"keys": ["views.weight.gist", KEY]}).json()
    assert done["values"]["views.weight.gist"] == 1.0
    for body in ({}, {"keys": []}, {"keys": ["nope"]}):
        assert api.post("/api/settings/reset", json=body).status_code == 400


def test_history_tells_each_change_with_its_diffs(api, make):
    make("work://a", "One.", glossary=["x"])
    at = "/api/browse/node?domain=work&path=a"
    api.put(at, json={"content": "Two.", "priority": 4, "session_id": "s"})
    api.put(at, json={"glossary_add": ["y"]})
    api.put(at, json={"glossary_remove": ["x"]})
    api.post("/api/browse/move", json={"old_uri": "work://a", "new_uri": "work://b"})
    past = api.get("/api/browse/history?domain=work&path=b").json()
    assert (past["uri"], past["content"], past["glossary_keywords"], past["deleted"]) == (
        "work://b",
        "Two.",
        ["y"],
        False,
    )
    assert [event["event_type"] for event in past["events"]] == [
        "move", "glossary_remove", "glossary_add", "update", "create",
    ]  # fmt: skip
    move, removed, added, update, create = past["events"]
    assert move["diffs"] == [{"field": "uri", "kind": "value", "before": "work://a", "after": "work://b"}]
    assert removed["diffs"] == [{"field": "glossary_keywords", "kind": "keyword_remove", "before": "x", "after": None}]
    assert added["diffs"] == [{"field": "glossary_keywords", "kind": "keyword_add", "before": None, "after": "y"}]
    assert [one["field"] for one in update["diffs"]] == ["content", "priority"]
    assert update["before_snapshot"]["content"] == "One."
    assert create["before_snapshot"] is None
    assert [event["rollback_supported"] for event in past["events"]] == [False, False, False, True, True]
    assert update["session_id"] == "s"


def test_rollback_restores_a_state_as_a_new_update(api, make):
    make("work://a", "One.", glossary=["x"], priority=3)
    at = "/api/browse/node?domain=work&path=a"
    api.put(at, json={"content": "Two.", "priority": 4, "glossary": ["z"]})
    events = api.get("/api/browse/history?domain=work&path=a").json()["events"]
    done = api.post("/api/browse/history?domain=work&path=a&client_type=pi", json={"event_id": events[-1]["id"]}).json()
    assert (done["success"], done["operation"], done["uri"]) == (True, "update", "work://a")
    node = api.get(at).json()["node"]
    assert (node["content"], node["priority"], node["glossary_keywords"]) == ("One.", 3, ["x"])
    latest = api.get("/api/browse/history?domain=work&path=a&limit=1").json()["events"]
    assert len(latest) == 1
    assert (latest[0]["is_rollback"], latest[0]["client_type"]) == (True, "pi")


def test_rollback_refuses_what_it_cannot_do(api, make):
    make("work://a")
    make("work://b")
    api.put("/api/browse/node?domain=work&path=a", json={"glossary_add": ["y"]})
    added, created = api.get("/api/browse/history?domain=work&path=a").json()["events"]
    path = "/api/browse/history?domain=work&path="
    assert api.post(f"{path}b", json={"event_id": created["id"]}).status_code == 422
    assert api.post(f"{path}a", json={"event_id": added["id"]}).status_code == 422
    assert api.post(f"{path}a", json={"event_id": "x"}).status_code == 422
    assert api.post(f"{path}a", json={"event_id": 2**53}).status_code == 422
    assert api.post(f"{path}a", json={"event_id": 99999}).status_code == 404
    assert api.post(f"{path}nope", json={"event_id": created["id"]}).status_code == 404


def test_a_deleted_memory_keeps_its_history(api, make):
    make("work://a", "One.")
    api.request("DELETE", "/api/browse/node?domain=work&path=a")
    past = api.get("/api/browse/history?domain=work&path=a").json()
    assert (past["deleted"], past["content"]) == (True, "One.")
    assert [event["event_type"] for event in past["events"]] == ["delete", "create"]
    assert api.get("/api/browse/history?domain=work&path=never").status_code == 404


def test_events_of_a_window_are_summed_up_and_filtered(api, make):
    make("work://a")
    make("work://b")
    for number in range(3):
        api.put("/api/browse/node?domain=work&path=a", json={"content": str(number)})
    found = api.get("/api/browse/events?days=1&limit=2").json()
    assert (found["window_days"], found["filters"]) == (1, None)
    assert found["hot_nodes"][0]["node_uri"] == "work://a"
    assert (found["hot_nodes"][0]["creates"], found["hot_nodes"][0]["updates"]) == (1, 3)
    assert len(found["recent_events"]) == 2
    assert {"event_type": "update", "total": 3} in found["by_event_type"]
    assert {"source": "api:PUT /browse/node", "total": 3} in found["by_source"]
    only = api.get("/api/browse/events?event_type=create&node_uri=work://b").json()
    assert only["summary"]["total_events"] == 1
    assert only["filters"] == {"event_type": "create", "node_uri": "work://b"}


def test_a_timeline_is_oldest_first_by_address_or_identity(api, make):
    uuid = make("work://a")
    api.put("/api/browse/node?domain=work&path=a", json={"content": "New."})
    by_uri = api.get("/api/browse/events/timeline?node_uri=work://a").json()
    by_uuid = api.get(f"/api/browse/events/timeline?node_uuid={uuid}").json()
    assert [event["event_type"] for event in by_uri["events"]] == ["create", "update"]
    assert by_uuid["events"] == by_uri["events"]
    assert api.get("/api/browse/events/timeline").json()["events"] == []
