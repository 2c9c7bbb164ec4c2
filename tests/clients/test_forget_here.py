"""When another server keeps the memory: after it has forgotten, nothing below this home holds the text either."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from lorehooks.clients import config, credentials
from lorehooks.clients.credentials import Credential
from lorehooks.core.home import Home
from lorehooks.core.runs import Run
from lorehooks.hooks.app import create_app

KEY = "zanzibar_secret_42"
PLAN = {
    "memories": ["work://a"],
    "deleted": [],
    "earlier": [],
    "settings": [],
    "records": 0,
    "backups": [],
    "files": [],
}


@pytest.fixture
def server(upstream):
    server = upstream("lm_test_token")
    server.answers |= {
        "GET /lifecycle/guidance": (200, {"guidance": ""}),
        "GET /browse/boot": (200, {"core_memories": [], "recent_memories": []}),
        "GET /settings": (200, {"values": {}, "sources": {}}),
        "POST /maintenance/forget": (200, {"success": True, "plan": PLAN, "removed_events": 3, "left": ""}),
    }
    return server


@pytest.fixture
def service(tmp_path: Path, server):
    home = Home(tmp_path / "h")
    home.run.mkdir(parents=True)
    home.service_file.write_text(json.dumps({"token": "own"}))
    config.save(home, {"server.url": server.url})
    credentials.keep(home, server.url, Credential("lm_test_token"))
    with TestClient(create_app(home), base_url="http://127.0.0.1", headers={"Authorization": "Bearer own"}) as client:
        client.home = home
        yield client


def plant(service) -> None:
    recorder = service.app.state.parts.recorder
    run = Run(
        "2031-05-04T12:00:00.000Z",
        "pi",
        "prompt.submit",
        "s",
        1,
        None,
        "",
        1.0,
        {"prompt": f"what of {KEY}"},
        None,
        b"",
    )
    recorder.add(lambda: [run])
    assert recorder.flush()
    kept = service.home.run / "remote" / "server"
    kept.mkdir(parents=True, exist_ok=True)
    (kept / "recall-1.json").write_text(json.dumps({"text": KEY}))
    (service.home.run / "service.log").write_text(f"line about {KEY}\n")


def places(home: Home) -> list[str]:
    return [path.name for path in home.root.rglob("*") if path.is_file() and KEY.encode() in path.read_bytes()]


def test_records_kept_answers_and_logs_here_forget_too(service, server):
    plant(service)
    assert places(service.home)
    answer = service.post("/api/maintenance/forget", json={"matching": KEY, "confirm": True}).json()
    assert places(service.home) == []
    assert (answer["removed_events"], answer["removed_records"], answer["left"]) == (3, 1, "")
    assert set(answer["cleaned_files"]) == {"run/remote/server/recall-1.json", "run/service.log"}


@pytest.mark.parametrize(
    ("body", "said"),
    [({"matching": KEY}, {"success": False, "plan": PLAN}), ({"matching": KEY, "confirm": True}, {"success": False})],
)
def test_nothing_is_forgotten_here_before_the_server_has_forgotten(service, server, body, said):
    plant(service)
    server.answers["POST /maintenance/forget"] = (200, said)
    assert service.post("/api/maintenance/forget", json=body).json() == said
    assert len(places(service.home)) >= 3
