"""What people and the doctor try out is answered like a session's hook, and stands in no record."""

from __future__ import annotations

import json

import pytest

from lorehooks.core.model import REHEARSALS
from lorehooks.installers import cli


@pytest.fixture
def lore(real, monkeypatch, capfd):
    monkeypatch.setenv("LORE_HOME", str(real.home.root))

    def run(*arguments: str):
        capfd.readouterr()
        code = cli.run([*arguments, "--json"])
        out, err = capfd.readouterr()
        assert (code, err) == (0, "")
        return json.loads(out)

    return run


def test_previews_of_the_command_line_are_in_no_record(lore, real):
    lore("node", "create", "project://refunds", "Refund webhooks are idempotent.", "--glossary", "refund webhook")
    previewed = lore("recall", "how are refund webhooks handled?")
    assert "project://refunds" in previewed["block"]
    assert lore("boot")["text"]
    assert lore("replay")["sessions"] == []
    body = {"session_id": "s-1", "prompt": "how are refund webhooks handled?"}
    assert b"project://refunds" in real.hook(data=json.dumps(body).encode()).out
    (session,) = lore("replay")["sessions"]
    assert (session["session_id"], session["shown"]) == ("s-1", 1)


@pytest.mark.parametrize("session", REHEARSALS)
def test_recalls_of_a_rehearsal_count_in_no_statistics(lore_server, session):
    server = lore_server()

    def asked(session_id: str) -> int:
        server.post("/api/browse/recall", json={"query": "how do we deploy?", "session_id": session_id})
        return server.get("/api/browse/recall/stats").json()["summary"]["query_count"]

    assert asked(session) == 0
    assert asked("s-1") == 1
