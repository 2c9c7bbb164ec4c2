"""After `lore forget`, no byte below the home holds what was forgotten: backups, logs, marks, kept answers, vectors."""

from __future__ import annotations

import json
from contextlib import closing
from datetime import UTC, datetime

import pytest

from lorehooks.core.backup import AUTOMATIC, BEFORE_RESTORE, backups_of, free_name, write_backup
from lorehooks.core.embeddings import vector_key
from lorehooks.core.forget import forget
from lorehooks.core.model import Origin
from lorehooks.core.rebuild import verify
from lorehooks.core.store import Store
from lorehooks.core.uri import parse
from lorehooks.core.views import rule_views

KEY = "zanzibar_secret_42"


def _places(api):
    return [
        str(path) for path in api.home.root.rglob("*") if path.is_file() and KEY.encode() in path.read_bytes().lower()
    ]


def test_what_is_forgotten_is_in_no_backup_log_mark_or_kept_answer_when_the_answer_comes(api, make):
    home = api.home
    make("work://a", f"holds {KEY}", glossary=[KEY])
    make("work://b", "stays")
    api.put("/api/browse/boot", json={"nodes": {"core://agent": f"says {KEY}"}})
    for kind in ("", AUTOMATIC, BEFORE_RESTORE):
        write_backup(home.database, free_name(home, datetime.now(UTC), kind))
    api.post("/api/browse/move", json={"old_uri": "work://a", "new_uri": "work://elsewhere"})
    api.put("/api/browse/node?domain=work&path=elsewhere", json={"content": "clean", "glossary": []})
    mark = {"server": "x", "query_id": "q", "uri": f"work://{KEY}", "session_id": "s", "client_type": "pi", "at": "now"}
    planted = {
        "run/service.log": f"a line\nError about {KEY.upper()} here\nanother\n",
        "run/service.log.1": f"{KEY}\n",
        "run/misses.log": f"1 claudecode {KEY} timeout\n",
        "run/remote/abc/boot-any.json": json.dumps({"data": KEY}),
        "run/boot/former_runtime": f"{KEY}",
        "queue.jsonl": json.dumps({**mark, "uri": "work://b"}) + "\n" + json.dumps(mark) + "\n",
        "defect.md": KEY,
    }
    for name, text in planted.items():
        (home.root / name).parent.mkdir(parents=True, exist_ok=True)
        (home.root / name).write_text(text)
    (home.root / "link").symlink_to(home.root / "defect.md")
    api.portal.call(api.app.state.parts.ready.write_now)
    plan = api.post("/api/maintenance/forget", json={"matching": KEY}).json()["plan"]
    assert len(plan["backups"]) == 3
    assert set(plan["files"]) > {*planted}

    done = api.post("/api/maintenance/forget", json={"matching": KEY, "confirm": True}).json()

    assert _places(api) == []
    assert (done["left"], len(done["changed_backups"])) == ("", 3)
    assert {*done["cleaned_files"]} >= {*planted}
    assert (home.run / "service.log").read_text() == "a line\nError about [forgotten] here\nanother\n"
    assert [json.loads(line)["uri"] for line in (home.root / "queue.jsonl").read_text().splitlines()] == ["work://b"]
    assert not (home.root / "defect.md").exists()
    for backup in backups_of(home):  # there the memory held the text when it was copied
        with closing(Store(backup.path)) as copy:
            assert {node.uri for node in copy.nodes() if not node.is_boot} == {"work://b"}
            assert verify(copy).problems == ()
    assert api.post("/api/maintenance/verify").json()["ok"] is True


def test_what_only_records_or_backups_hold_can_be_forgotten(api, make):
    make("work://old", f"holds {KEY}")
    write_backup(api.home.database, free_name(api.home, datetime.now(UTC)))
    api.post("/api/maintenance/forget", json={"uris": ["work://old"], "confirm": True})
    assert _places(api) == []
    make("work://old", f"holds {KEY}")
    write_backup(api.home.database, free_name(api.home, datetime.now(UTC)))
    store = api.app.state.parts.backend.store
    forget(store, Origin("cli"), [parse("work://old")])
    api.post("/api/browse/recall", json={"query": f"what of {KEY}", "session_id": "s"})
    plan = api.post("/api/maintenance/forget", json={"uris": ["work://old"], "matching": KEY}).json()["plan"]
    assert (plan["memories"], plan["records"], len(plan["backups"])) == ([], 1, 1)
    assert api.post("/api/maintenance/forget", json={"uris": ["work://old"], "matching": KEY, "confirm": True}).json()[
        "success"
    ]
    assert _places(api) == []


def test_what_cannot_be_cleaned_is_named(api, make):
    make("work://a", KEY)
    api.home.config.write_text(f"# {KEY}\n")
    damaged = write_backup(api.home.database, free_name(api.home, datetime.now(UTC)))
    damaged.write_bytes(damaged.read_bytes()[:5000].replace(b"SQLite", b"Sqlite") + KEY.encode())
    left = api.post("/api/maintenance/forget", json={"matching": KEY, "confirm": True}).json()["left"]
    assert "config.toml holds the text" in left
    assert f"{damaged} cannot be cleaned, so delete it" in left
    assert api.home.config.read_text() == f"# {KEY}\n"


def test_no_vector_of_what_was_forgotten_is_kept_or_written_behind_it(lore_server):
    api = lore_server(vectors=True)
    live = api.app.state.parts.backend.live
    if live.embedder is None:
        pytest.skip("no model of vectors here")
    for name in ("gone", "stays"):
        api.post("/api/browse/node", json={"uri": f"work://{name}", "content": f"The {name} text of zanzibar."})
    node = api.app.state.parts.backend.store.require(parse("work://gone"))
    gone = {vector_key(view.text) for view in rule_views(node)}
    assert gone & {key for rows in live.cache._unsaved.values() for key in rows}
    api.post("/api/maintenance/forget", json={"uris": ["work://gone"], "confirm": True})
    api.portal.call(live.settle)
    rows = api.app.state.parts.backend.store.database.query("SELECT key FROM vectors")
    assert not gone & {row["key"] for row in rows}
    assert not gone & {key for rows in live.cache._unsaved.values() for key in rows}
    assert len(rows) >= 11
