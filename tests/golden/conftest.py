"""Recorded exchanges of the public Lore server, where they lie beside the repository; they are never part of it."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

GOLDEN = Path(__file__).parents[2].parent / "shared" / "golden"
EARLIER = {"18_glossary_list": "18_a"}
"""Recorded before others of its group, as what it lists shows."""
ANSWERED_WITH_TOKEN = "API_TOKEN=test-token-123"


@dataclass(frozen=True)
class Exchange:
    """One request that was sent to the public server, and its answer."""

    name: str
    note: str
    method: str
    url: str
    headers: dict[str, str]
    body: bytes | None
    status: int
    answer: Any

    @property
    def path(self) -> str:
        return self.url.partition("?")[0]


def read(path: Path) -> Exchange:
    """An exchange; in some files a path was blanked out together with the backslash of the quote after it."""
    text = re.sub(
        r'^(  "body": .*)$', lambda line: line[0].replace('<path>"', '<path>\\"'), path.read_text(), flags=re.MULTILINE
    )
    record = json.loads(text)
    request, response = record["request"], record["response"]
    method, url, _ = request["line"].split(" ")
    headers = {name.lower(): value for name, value in request["headers"]}
    needs_token = ANSWERED_WITH_TOKEN in (record.get("server") or "")
    kept = {
        name: headers[name] for name in ("content-type", "accept", "mcp-protocol-version", "cookie") if name in headers
    }
    kept["authorization"] = headers.get("authorization", "") if needs_token else "Bearer test-token-123"
    answer = response["body_json"] if response["body_json"] is not None else response["body"]
    body = request["body"]
    return Exchange(
        path.stem, record.get("note") or "", method, url, kept,
        None if body is None else body.encode(), response["status"], answer,
    )  # fmt: skip


def _place(exchange: Exchange) -> tuple[str, int, str]:
    group = exchange.name.partition("_")[0]
    call = re.search(rb'"id":\s*(\d+)', exchange.body or b"") if exchange.path == "/api/mcp" and group == "31" else None
    return group, int(call[1]) if call else 0, EARLIER.get(exchange.name, exchange.name)


@pytest.fixture(scope="session")
def exchanges() -> list[Exchange]:
    """All of them, in the order of recording as far as names and request ids tell it."""
    folder = GOLDEN / "exchanges"
    if not folder.is_dir():
        pytest.skip("the recorded exchanges of the public server are not beside this repository")
    return sorted((read(path) for path in folder.glob("*.json")), key=_place)


@pytest.fixture(scope="session")
def recorded_recalls() -> list[dict]:
    """Recalls with every signal, of the public server with its default settings."""
    if not (GOLDEN / "recall.json").is_file():
        pytest.skip("the recorded recalls of the public server are not beside this repository")
    servers = json.loads((GOLDEN / "recall.json").read_text())["servers"]
    return [one["result"] for recalls in servers.values() for one in recalls]
