"""Replay of prompts that had vectors and views from endpoints: the same bytes, and nobody is asked."""

from __future__ import annotations

import json
import time

import pytest
from fake_openai import FakeOpenAI

from lorehooks.installers import cli

PROMPT = "how should the refund webhook handle the idempotency key?"


@pytest.mark.parametrize("embeddings", ["good", "500"])
def test_an_endpoints_run_gives_the_same_bytes_without_the_endpoint(
    lore_server, monkeypatch, capfd, embeddings: str
) -> None:
    with FakeOpenAI() as server:
        api = lore_server()
        monkeypatch.setenv("LORE_HOME", str(api.home.root))
        for name in ("refunds", "invoices", "buttons"):
            body = {"uri": f"shop://{name}", "content": f"What holds for {name} and a refund webhook.", "disclosure": "When",
                    "glossary": [name, "refund webhook"]}  # fmt: skip
            assert api.post("/api/browse/node", json=body).status_code == 200
        patch = {
            "embedding.provider": "openai_compatible", "embedding.base_url": server.url, "embedding.model": "m",
            "view_llm.base_url": server.url, "view_llm.model": "v", "recall.display.min_display_score": 0.1,
        }  # fmt: skip
        assert api.put("/api/settings", json={"patch": patch}).status_code == 200
        end = time.monotonic() + 20
        while True:
            memory = api.get("/hooks/v1/state").json()["memory"]
            pending = api.app.state.parts.backend.index.pending()
            if memory["vectors"] and memory["views"]["written"] == 3 and not pending:
                break
            assert time.monotonic() < end, memory
            time.sleep(0.01)
        server.embeddings = embeddings
        event = {"session_id": "s-1", "prompt": PROMPT, "hook_event_name": "UserPromptSubmit", "cwd": "/"}
        sent = api.post("/hooks/v1/claudecode/prompt.submit", json=event).content
        assert b"shop://refunds" in sent
        assert api.post("/hooks/v1/flush").status_code == 200
        asked = len(server.asked)
    capfd.readouterr()
    code = cli.run(["replay", "1", "--again", "--as-of-then", "--json"])
    out, err = capfd.readouterr()
    assert code == 0, out + err
    assert json.loads(out)["same_bytes"] is True
    assert len(server.asked) == asked
