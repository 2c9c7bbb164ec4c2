"""A backup in the shapes that were recorded of the public server comes in whole, its history as far as events tell it."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path

import pytest

from lorehooks.core.archive_v1 import archive_of_backup
from lorehooks.core.history import history
from lorehooks.core.merge import Wishes
from lorehooks.core.merge_write import merge
from lorehooks.core.model import BOOT_URIS
from lorehooks.core.rebuild import verify
from lorehooks.core.store import Store
from lorehooks.core.uri import parse

GOLDEN = Path(__file__).parents[2].parent / "shared" / "golden"


@pytest.fixture
def recorded() -> list[dict]:
    if not (GOLDEN / "dataset.json").is_file():
        pytest.skip("the recorded rows of the public server are not beside this repository")
    return json.loads((GOLDEN / "dataset.json").read_text())["simple"]["nodes"]


def document(rows: list[dict], events: list[dict]) -> bytes:
    """The tables those rows were joined from; big numbers are texts, as that server's database driver gives them."""
    tables = {
        "nodes": [{"uuid": row["node_uuid"], "created_at": row["created_at"]} for row in rows],
        "memories": [
            {"id": str(row["memory_id"]), "node_uuid": row["node_uuid"], "content": row["content"], "deprecated": False,
             "migrated_to": None, "created_at": row["created_at"]}
            for row in rows
        ],
        "edges": [
            {"id": number, "parent_uuid": row["parent_uuid"], "child_uuid": row["node_uuid"], "priority": row["priority"],
             "disclosure": row["disclosure"], "created_at": row["created_at"]}
            for number, row in enumerate(rows, start=1)
        ],
        "paths": [
            {"domain": row["domain"], "path": row["path"], "edge_id": number, "created_at": row["created_at"]}
            for number, row in enumerate(rows, start=1)
        ],
        "glossary_keywords": [
            {"id": number, "keyword": keyword, "node_uuid": row["node_uuid"], "created_at": row["created_at"]}
            for number, row in enumerate(rows)
            for keyword in row["glossary"] or []
        ],
        "memory_events": events,
    }  # fmt: skip
    return json.dumps({"format": "lore-backup-v1", "tables": tables, "stats": {}}).encode()


def test_every_recorded_memory_comes_in_as_it_was(recorded, tmp_path):
    with closing(Store(tmp_path / "lore.db")) as store:
        done = merge(store, archive_of_backup(document(recorded, [])), Wishes(allow_secret=True))
        assert done.plan.counts["different"] == 0
        for row in recorded:
            node = store.require(parse(f"{row['domain']}://{row['path']}"))
            assert (node.content, node.disclosure) == (row["content"] or "", (row["disclosure"] or "").strip())
            assert list(node.glossary) == (row["glossary"] or [])
            if node.uri not in BOOT_URIS:
                assert node.uuid == row["node_uuid"]
                assert node.created_at == row["created_at"][:23] + "Z"
        assert verify(store).problems == ()


def test_recorded_events_become_history(recorded, exchanges, tmp_path):
    (answer,) = [exchange.answer for exchange in exchanges if exchange.name == "22_history"]
    uuids = {row["node_uuid"] for row in recorded}
    events = [event for event in answer["events"] if event["node_uuid"] in uuids]
    if not events:  # the rows were recorded on another day than the events: let the events be of one of the rows
        events = [event | {"node_uuid": recorded[-1]["node_uuid"]} for event in answer["events"]]
    uri = next(
        parse(f"{row['domain']}://{row['path']}") for row in recorded if row["node_uuid"] == events[0]["node_uuid"]
    )
    with closing(Store(tmp_path / "lore.db")) as store:
        merge(store, archive_of_backup(document(recorded, events)), Wishes(allow_secret=True))
        found = [event for event in history(store, uri) if event.source != "import"]
        assert [event.type for event in found] == [event["event_type"] for event in events]
        assert [event.client_type for event in found] == [event["details"].get("client_type") for event in events]
        assert [event.data["after"]["content"] for event in found] == [e["after_snapshot"]["content"] for e in events]
        assert verify(store).problems == ()
