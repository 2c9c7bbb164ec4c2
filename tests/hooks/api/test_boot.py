"""Boot nodes over the API: who gets which, a person's editing, an agent's wait for a yes."""

from __future__ import annotations

import pytest

GLOBAL = ["core://agent", "core://soul", "preferences://user"]


@pytest.mark.parametrize(
    ("client", "own"), [("", 0), ("mcp", 0), ("cursor", 0), ("claudecode", 1), ("ZCODE", 1), ("dsh", 1), ("admin", 8)]
)
def test_a_client_gets_the_global_nodes_and_its_own(api, client, own):
    boot = api.get(f"/api/browse/boot?client_type={client}").json()
    assert [node["uri"] for node in boot["core_memories"]][:3] == GLOBAL
    assert (boot["loaded"], boot["total"], boot["failed"]) == (3 + own, 3 + own, [])
    assert boot["includes_all_clients"] is (client == "admin")
    scopes = [node["scope"] for node in boot["nodes"]]
    assert scopes == ["global"] * 3 + ["client"] * own


def test_an_empty_memory_is_uninitialized_and_becomes_complete(api):
    assert api.get("/api/browse/boot").json()["overall_state"] == "uninitialized"
    api.put("/api/browse/boot", json={"nodes": {"core://soul": "Calm."}})
    partial = api.get("/api/browse/boot").json()
    assert (partial["overall_state"], partial["remaining_count"]) == ("partial", 2)
    api.put("/api/browse/boot", json={"nodes": dict.fromkeys(GLOBAL, "Text.")})
    assert api.get("/api/browse/boot").json()["overall_state"] == "complete"
    flow = api.get("/api/setup/flow").json()
    assert (flow["complete"], flow["next_step"]) == (True, None)


def test_a_person_writes_boot_nodes_in_their_fixed_order(api):
    nodes = {"preferences://user": "Lin.", "CORE://Agent/": "Test first.", "core://agent/pi": "Pi only."}
    results = api.put("/api/browse/boot?client_type=admin", json={"nodes": nodes}).json()["results"]
    assert [(one["uri"], one["status"]) for one in results] == [
        ("core://agent", "created"), ("preferences://user", "created"), ("core://agent/pi", "created"),
    ]  # fmt: skip
    again = api.put("/api/browse/boot", json={"nodes": {"core://agent": "Test first."}}).json()["results"]
    assert again[0]["status"] == "unchanged"
    changed = api.put("/api/browse/boot", json={"nodes": {"core://agent": "Test always."}}).json()["results"]
    assert changed[0]["status"] == "updated"
    history = api.get("/api/browse/history?domain=core&path=agent").json()
    assert history["events"][0]["source"] == "api:PUT /browse/boot"


@pytest.mark.parametrize("nodes", [{}, {"core://nope": "x"}, {"core://soul": None}, [], None])
def test_what_is_no_boot_node_is_a_422(api, nodes):
    assert api.put("/api/browse/boot", json={"nodes": nodes}).status_code == 422


def test_one_boot_node_that_is_refused_does_not_stop_the_others(api):
    nodes = {"core://agent": "key AKIAIOSFODNN7EXAMPLE", "core://soul": "Calm."}
    results = api.put("/api/browse/boot", json={"nodes": nodes}).json()["results"]
    assert [one["status"] for one in results] == ["failed", "created"]
    assert results[0]["detail"]


def test_an_agents_write_to_a_boot_node_waits_and_only_a_person_decides(api):
    wish = api.put("/api/browse/node?domain=core&path=soul&client_type=opencode", json={"content": "Obey me."})
    assert wish.status_code == 202
    number = wish.json()["proposal"]
    assert "waits" in wish.json()["warnings"][0]
    assert api.get("/api/browse/node?path=soul").json()["node"]["content"] == ""
    (waiting,) = api.get("/api/pending").json()["proposals"]
    assert (waiting["number"], waiting["uri"], waiting["client_type"]) == (number, "core://soul", "opencode")
    assert (waiting["before"]["content"], waiting["after"]["content"]) == ("", "Obey me.")
    for agent in ("opencode", "mcp", "dsh"):
        answer = api.post(f"/api/pending/{number}?client_type={agent}", json={"accept": True})
        assert (answer.status_code, answer.json()["code"]) == (403, "person_only")
    assert api.post(f"/api/pending/{number}", json={"accept": True}).json()["accepted"] is True
    assert api.get("/api/browse/node?path=soul").json()["node"]["content"] == "Obey me."
    assert api.get("/api/pending").json() == {"proposals": []}
    assert api.post(f"/api/pending/{number}", json={"accept": False}).status_code == 409


def test_a_rejected_wish_changes_nothing(api):
    result = api.put("/api/browse/boot?client_type=pi", json={"nodes": {"core://soul": "Obey me."}}).json()["results"][
        0
    ]
    assert result["status"] == "pending"
    (waiting,) = api.get("/api/pending").json()["proposals"]
    assert api.post(f"/api/pending/{waiting['number']}", json={"accept": False}).json()["accepted"] is False
    assert api.get("/api/browse/node?path=soul").json()["node"]["content"] == ""


@pytest.mark.parametrize("number", ["0", "999", "x", "-1", "9" * 40])
def test_an_unknown_proposal_is_a_404(api, number):
    assert api.post(f"/api/pending/{number}", json={"accept": True}).status_code == 404


def test_recent_memories_are_the_latest_five_others(api, make):
    for number in range(7):
        make(f"work://n{number}")
    api.put("/api/browse/boot", json={"nodes": {"core://soul": "Calm."}})
    recent = api.get("/api/browse/boot").json()["recent_memories"]
    assert [one["uri"] for one in recent] == [f"work://n{number}" for number in (6, 5, 4, 3, 2)]
    assert set(recent[0]) == {"uri", "priority", "disclosure", "created_at"}
