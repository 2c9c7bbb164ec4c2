"""Verify, rebuild, forget over the API."""

from __future__ import annotations

import json
import time

KEY = "zanzibar_secret_42"


def test_verify_and_rebuild_find_a_sound_memory(api, make):
    for number in range(30):
        make(f"work://n{number}", glossary=[f"word{number}"])
    assert api.post("/api/maintenance/verify").json()["ok"] is True
    done = api.post("/api/maintenance/rebuild").json()
    assert done["success"] is True
    assert done["counts"]["nodes"] == 41
    assert api.post("/api/browse/search", json={"query": "word7"}).json()["results"][0]["uri"] == "work://n7"


def test_rebuild_mends_what_verify_finds(api, make):
    make("work://a", "Right.")
    with api.app.state.parts.backend.store.database.write() as connection:
        connection.execute("UPDATE nodes SET content = 'Wrong.' WHERE uri = 'work://a'")
    broken = api.post("/api/maintenance/verify").json()
    assert broken["ok"] is False
    assert any("nodes" in problem for problem in broken["problems"])
    api.post("/api/maintenance/rebuild")
    assert api.post("/api/maintenance/verify").json()["ok"] is True
    assert api.get("/api/browse/node?domain=work&path=a").json()["node"]["content"] == "Right."


def test_a_rebuild_tells_how_far_it_is(api, make):
    for number in range(60):
        make(f"work://n{number}")
    answer = api.post("/api/maintenance/rebuild?progress=1")
    assert answer.headers["content-type"] == "application/x-ndjson"
    *steps, last = [json.loads(line) for line in answer.text.splitlines()]
    assert {step["phase"] for step in steps} == {"projections", "index"}
    assert all(0 < step["done"] <= step["total"] for step in steps)
    assert last["success"] is True


def test_writes_during_a_rebuild_of_the_index_are_in_it_afterwards(api, make):
    for number in range(50):
        make(f"work://n{number}")
    backend = api.app.state.parts.backend

    async def rebuild_and_write() -> None:
        import asyncio

        from lorehooks.core.model import NodeDraft, NodePatch, Origin

        rebuild = asyncio.create_task(backend.live.rebuild())
        await asyncio.sleep(0)
        await backend.create_node(NodeDraft("work://late", "x", glossary=("zebra",)), Origin("cli"))
        await backend.update_node("work://n1", NodePatch(glossary=("quokka",)), Origin("cli"))
        await backend.delete_node("work://n2", Origin("cli"))
        await rebuild

    api.portal.call(rebuild_and_write)
    assert api.get("/api/browse/search?q=zebra").json()["results"][0]["uri"] == "work://late"
    assert api.get("/api/browse/search?q=quokka").json()["results"][0]["uri"] == "work://n1"
    assert len(backend.index) == 50 + 11


def test_the_index_can_be_rebuilt_for_one_memory_or_all(api, make):
    make("work://a", glossary=["x", "y"])
    one = api.post("/api/browse/recall/rebuild", json={"domain": "work", "path": "a"}).json()
    assert (one["success"], one["source_count"], one["glossary_embedding_source_count"]) == (True, 2, 2)
    everything = api.post("/api/browse/recall/rebuild").json()
    assert everything["source_count"] == 2 * 12
    assert api.post("/api/browse/recall/rebuild", json={"domain": "work", "path": "nope"}).status_code == 404


def test_a_backup_holds_every_table_and_the_exact_log(api, make):
    make("work://a", "One.", glossary=["x", "y"], priority=3)
    make("work://a/b")
    api.put("/api/browse/node?domain=work&path=a", json={"content": "Two."})
    api.put("/api/settings", json={"patch": {"recall.display.max_display_items": 5}})
    assert api.get("/api/backup").json() == {"last_backup": None, "local_count": 0, "webdav_enabled": False}
    answer = api.get("/api/backup?action=export")
    assert answer.headers["content-disposition"].startswith('attachment; filename="lore-backup-20')
    document = answer.json()
    tables = document["tables"]
    assert document["format"] == "lore-backup-v1"
    assert document["stats"] == {name: len(rows) for name, rows in tables.items()}
    edges = {edge["id"]: edge for edge in tables["edges"]}
    paths = {f"{path['domain']}://{path['path']}": edges[path["edge_id"]] for path in tables["paths"]}
    contents = {memory["node_uuid"]: memory["content"] for memory in tables["memories"]}
    assert contents[paths["work://a"]["child_uuid"]] == "Two."
    assert paths["work://a/b"]["parent_uuid"] == paths["work://a"]["child_uuid"]
    assert paths["core://agent/pi"]["parent_uuid"] == paths["core://agent"]["child_uuid"]
    assert {word["keyword"] for word in tables["glossary_keywords"]} == {"x", "y", "word"}
    assert {"key": "recall.display.max_display_items", "value": {"value": 5}} in tables["app_settings"]
    assert [event["event_type"] for event in tables["memory_events"]][-3:] == ["create", "create", "update"]
    log = document["lorehooks"]["events"]
    assert len(log) == api.post("/api/maintenance/verify").json()["counts"]["events"]
    assert [event["seq"] for event in log] == sorted(event["seq"] for event in log)
    assert api.get("/api/backup?action=webdav").status_code == 404


def test_backups_in_the_home_are_made_listed_and_sent_to_a_person(api, make):
    make("work://a", "One.")
    (made,) = api.post("/api/backup", json={}).json()["results"]
    assert api.get("/api/backup?action=list").json() == {"backups": [made]}
    status = api.get("/api/backup").json()
    assert (status["last_backup"], status["local_count"]) == (made["created_at"], 1)
    sent = api.get(f"/api/backup?action=download&filename={made['filename']}")
    assert sent.content == (api.home.backups / made["filename"]).read_bytes()
    assert len(sent.content) == made["size"]
    for name in ("../lore.db", "lore.db", ""):
        assert api.get("/api/backup", params={"action": "download", "filename": name}).status_code == 404
    assert api.post("/api/backup?client_type=pi", json={}).status_code == 403
    assert api.get(f"/api/backup?action=download&client_type=pi&filename={made['filename']}").status_code == 403
    assert api.post("/api/backup", json={"action": "restore", "data": {}}).status_code == 404


def test_an_import_shows_its_plan_then_brings_everything_in_and_recall_knows_it(api, make):
    make("work://a", "Mine.")
    node = {"uri": "work://a/b", "content": "Theirs.", "priority": 2, "glossary": ["quokka"]}
    archive = {"nodes": [node, {**node, "uri": "work://a", "content": "Other."}]}
    plan = api.post("/api/maintenance/import", json=archive).json()
    assert (plan["success"], plan["counts"]) == (False, {"new": 1, "filled": 0, "same": 0, "different": 1})
    assert api.get("/api/browse/node?domain=work&path=a/b").status_code == 404
    done = api.post("/api/maintenance/import?confirm=1&keep=theirs", json=archive).json()
    assert (done["success"], [one["taken"] for one in done["entries"]]) == (True, [True, True])
    assert api.get("/api/browse/search?q=quokka").json()["results"][0]["uri"] == "work://a"
    assert api.get("/api/browse/node?domain=work&path=a").json()["node"]["content"] == "Other."
    assert api.post("/api/maintenance/verify").json()["ok"] is True
    assert api.post("/api/maintenance/import?client_type=codex", json=archive).status_code == 403
    assert api.post("/api/maintenance/import", content=b"{").status_code == 422
    assert api.post("/api/maintenance/import", json={"nodes": [{"uri": "work://A B"}]}).status_code == 422


def test_forget_shows_its_plan_and_does_nothing_without_confirmation(api, make):
    make("work://a", f"holds {KEY}")
    plan = api.post("/api/maintenance/forget", json={"matching": KEY}).json()
    assert (plan["success"], plan["plan"]["memories"]) == (False, ["work://a"])
    assert api.get("/api/browse/node?domain=work&path=a").status_code == 200


def test_what_is_forgotten_is_in_no_byte_below_the_home(api, make):
    make("work://a", f"holds {KEY}", glossary=[KEY, "zebra"])
    make("work://b", f"held {KEY}")
    api.put("/api/browse/node?domain=work&path=b", json={"content": "clean"})
    api.put("/api/browse/boot", json={"nodes": {"core://soul": f"says {KEY}"}})
    api.put("/api/settings", json={"patch": {"recall.display.min_display_score": 0.1}})
    start = {
        "runtime": {"runtime_family": "claudecode"}, "event": {"name": "session.start"},
        "normalized": {"session_id": "s"}, "project": {"dir_name": KEY},
    }  # fmt: skip
    assert KEY in api.post("/api/lifecycle/event", json=start).text
    assert KEY in api.post("/api/browse/recall", json={"query": f"zebra {KEY}", "session_id": "s"}).text
    parts = api.app.state.parts
    assert parts.recorder.flush()
    assert any(KEY.encode() in path.read_bytes() for path in api.home.root.rglob("*.db*"))

    done = api.post("/api/maintenance/forget", json={"matching": KEY.upper(), "confirm": True}).json()

    assert (done["success"], done["left"]) == (True, "")
    assert done["plan"]["memories"] == ["core://soul", "work://a"]
    assert done["plan"]["earlier"] == ["work://b"]
    assert done["removed_records"] > 0
    assert api.get("/api/browse/node?domain=work&path=a").status_code == 404
    assert api.get("/api/browse/search?q=zebra").json()["results"] == []
    assert _places(api) == []
    assert api.post("/api/maintenance/verify").json()["ok"] is True
    assert KEY not in api.post("/api/lifecycle/event", json=start | {"project": {}}).text


def test_forget_by_address_takes_what_is_below_and_the_records_that_name_it(api, make):
    make("work://a", glossary=["zebra"])
    make("work://a/b")
    make("work://c")
    api.post("/api/browse/recall", json={"query": "zebra"})
    done = api.post("/api/maintenance/forget", json={"uris": ["work://a"], "confirm": True}).json()
    assert done["plan"]["memories"] == ["work://a", "work://a/b"]
    assert done["removed_records"] >= 1
    assert api.get("/api/browse/node?domain=work&path=c").status_code == 200
    assert api.get("/api/browse/recall/stats").json()["summary"]["query_count"] == 0


def test_forget_wants_something_to_forget_and_a_person(api, make):
    make("work://a")
    assert api.post("/api/maintenance/forget", json={}).status_code == 422
    assert api.post("/api/maintenance/forget", json={"matching": "x"}).status_code == 422
    assert api.post("/api/maintenance/forget", json={"uris": ["work://nope"]}).status_code == 404
    by_agent = api.post("/api/maintenance/forget?client_type=pi", json={"uris": ["work://a"], "confirm": True})
    assert (by_agent.status_code, by_agent.json()["code"]) == (403, "person_only")


def _places(api):
    return [
        str(path) for path in api.home.root.rglob("*") if path.is_file() and KEY.encode() in path.read_bytes().lower()
    ]


def test_a_large_move_gives_every_memory_its_vectors(lore_server):
    api = lore_server(vectors=True)
    api.post("/api/browse/node", json={"uri": "work://old", "disclosure": "d"})
    for number in range(40):
        api.post(
            "/api/browse/node", json={"uri": f"work://old/n{number}", "content": f"Fact {number}.", "disclosure": "d"}
        )
    api.post("/api/browse/move", json={"old_uri": "work://old", "new_uri": "work://new"})
    live = api.app.state.parts.backend.live
    deadline = time.monotonic() + 30
    while live.index.pending() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert live.index.pending() == 0
    assert live.embedder is not None
