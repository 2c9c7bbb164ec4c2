"""Every recorded request against our server: the same status, fields, types and values, or a listed difference."""

from __future__ import annotations

import importlib.util
import json
import re
import sys
from pathlib import Path

import pytest


def _beside(name):
    """A module of this folder; tests are imported without a package."""
    spec = importlib.util.spec_from_file_location(f"golden_{name}", Path(__file__).with_name(f"{name}.py"))
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


replay = _beside("replay")
differences = _beside("differences")

TEMP = [("POST", "/api/browse/node", {"uri": "work://temp"}), ("POST", "/api/browse/node", {"uri": "work://temp/kid"})]
UNRECORDED = {
    "054_create_priority0_budget_422": [("DELETE", "/api/browse/node?domain=core&path=another_soul", None)],
    "055_create_no_priority_defaults_to_0_422": [("DELETE", "/api/browse/node?domain=core&path=no_priority", None)],
    "071_delete_no_body": [
        ("DELETE", f"/api/browse/node?domain=work&path={path}", None)
        for path in ("empty_content", "team/1", "team/or_warning")
    ],
    "19_update_priority0_budget_422": [
        ("PUT", "/api/browse/node?domain=project&path=lore_demo/rate_limits", {"priority": 3})
    ],
    "20_move_target_exists_409": [
        ("POST", "/api/browse/move", {"old_uri": "project://lore_demo/webhooks/rate_limits", "new_uri": "project://lore_demo/rate_limits"})
    ],
    "21_delete_no_path_404": TEMP,
}  # fmt: skip
"""What brings our memory to where the recorded one was after an exchange: steps nobody recorded, or that we refused."""

IGNORED = {
    "created_at", "updated_at", "last_updated_at", "last_event_at", "id", "query_id", "node_uuid", "memory_id", "edge_id",
    "score", "version", "detail", "code", "setup_title", "setup_description", "purpose", "boot_purpose", "label",
    "description", "text_content", "guidance", "draft_generation_reason", "warnings", "policy_warnings",
}  # fmt: skip
"""Ids, moments, and texts for people, which are our own."""
UNORDERED = {"glossary_keywords", "current"}
"""Keywords: in the order of writing here, by alphabet there."""
RANKED = {
    "candidates", "items", "results", "merged_candidates", "exact_hits", "glossary_semantic_hits", "dense_hits",
    "lexical_hits", "retrieval_meta", "recent_memories", "node_uris", "recent_queries", "client_type_threshold_analysis",
    "display_threshold_analysis", "summary", "hot_nodes", "recent_events", "by_event_type", "by_source", "steps", "runtime",
    "embedding", "memory_views", "updaters", "event_log", "value",
}  # fmt: skip
"""What follows from recall or from the history of the server; looked at by tests of their own."""


@pytest.fixture(scope="module")
def replayed(exchanges, tmp_path_factory):
    """Our answer to each recorded request, in the order of recording."""
    from starlette.testclient import TestClient

    from lorehooks.core.home import Home
    from lorehooks.hooks.app import create_app

    home = Home(tmp_path_factory.mktemp("golden") / "lore")
    home.run.mkdir(parents=True)
    home.service_file.write_text(json.dumps({"token": replay.TOKEN}))
    app = create_app(home)
    answers = {}
    with TestClient(app, base_url="http://127.0.0.1", headers={"Authorization": f"Bearer {replay.TOKEN}"}) as client:
        client.portal.call(app.state.parts.backend.live.complete.wait)
        server = replay.Replay(client)
        for exchange in exchanges:
            if exchange.name.startswith("51_db_down"):
                client.portal.call(_take_database_away, app.state.parts)
            answers[exchange.name] = server.send(exchange)
            for method, path, body in UNRECORDED.get(exchange.name, ()):
                assert client.request(method, path, json=body).status_code == 200, (exchange.name, path)
    return answers


def test_each_request_gets_the_recorded_status_or_a_listed_other(replayed):
    assert len(replayed) > 250
    wrong = []
    for name, answered in replayed.items():
        expected, reason = differences.STATUS.get(name, (answered.exchange.status, ""))
        if answered.status != expected:
            wrong.append(f"{name}: {answered.status} instead of {expected} {reason} {replay.pretty(answered.answer)}")
    assert wrong == []


def test_no_listed_status_is_the_recorded_one(replayed):
    assert [name for name, (status, _) in differences.STATUS.items() if replayed[name].exchange.status == status] == []


def test_errors_have_the_envelope(replayed):
    for name, answered in replayed.items():
        path = answered.exchange.path
        if answered.status >= 400 and path.startswith("/api/") and path not in ("/api/mcp", "/api/health"):
            assert isinstance(answered.answer.get("detail"), str), name
            assert answered.status == 401 or isinstance(answered.answer.get("code"), str), name
            theirs = answered.exchange.answer
            if answered.status == answered.exchange.status and isinstance(theirs, dict) and "code" in theirs:
                assert answered.answer["code"] == theirs["code"], name


def test_each_answer_has_every_recorded_field_in_its_type(replayed):
    wrong = []
    for name, answered in _alike(replayed):
        for problem in replay.shape_problems(answered.exchange.answer, answered.answer):
            field = problem.split(":")[0].rsplit(".", 1)[-1]
            if field in differences.NULLABLE and ": null" in problem:
                continue
            if not _listed(differences.SHAPE, f"{name}: {problem}"):
                wrong.append(f"{name}: {problem}")
    assert wrong == []


def test_each_answer_has_the_recorded_values(replayed):
    wrong = []
    for name, answered in _alike(replayed):
        if answered.exchange.path == "/api/mcp":
            continue
        for place, ours, theirs in _values(answered.exchange.answer, answered.answer):
            if not _listed(differences.VALUES, f"{name} {place}"):
                wrong.append(f"{name} {place}: {replay.pretty(ours)} instead of {replay.pretty(theirs)}")
    assert wrong == []


def test_every_listed_difference_is_still_one(replayed):
    seen = set()
    for name, answered in _alike(replayed):
        for problem in replay.shape_problems(answered.exchange.answer, answered.answer):
            seen |= {pattern for pattern in differences.SHAPE if re.match(pattern, f"{name}: {problem}")}
        for place, _, _ in _values(answered.exchange.answer, answered.answer):
            seen |= {pattern for pattern in differences.VALUES if re.match(pattern, f"{name} {place}")}
    assert (set(differences.SHAPE) | set(differences.VALUES)) - seen == set()


def test_every_prompt_that_recalled_something_recalls_it_here_and_no_other_does(replayed):
    looked_at = 0
    for name, answered in replayed.items():
        theirs = answered.exchange.answer
        if not isinstance(theirs, dict) or not isinstance(theirs.get("node_uris"), list):
            continue
        if name in ("11_lifecycle_unknown_family", "51_db_down_prompt") or "updated_count" in theirs:
            continue
        ours = answered.answer
        assert set(theirs["node_uris"][:1]) <= set(ours["node_uris"]), name
        assert bool(ours["node_uris"]) == bool(theirs["node_uris"]), name
        looked_at += bool(theirs["node_uris"])
    assert looked_at > 15


def test_the_best_recorded_item_is_shown_by_recall_and_found_by_search(replayed):
    for name in (
        "13_recall_hit",
        "13_recall_long_notice",
        "13_recall_zh",
        "13_recall_options",
        "16_recall_for_query_id",
    ):
        theirs, ours = replayed[name].exchange.answer["items"], replayed[name].answer["items"]
        best = next(item["uri"] for item in theirs if item["score"] is not None)
        assert best in [item["uri"] for item in ours], name
        assert [item["uri"] for item in theirs if item["score"] is None] == [
            item["uri"] for item in ours if item["score"] is None
        ], name
    assert replayed["13_recall_miss"].answer["items"] == []
    for name in ("17_search_get_en", "17_search_get_zh", "17_search_post_domain", "17_search_get_phrase"):
        theirs, ours = replayed[name].exchange.answer["results"], replayed[name].answer["results"]
        assert theirs[0]["uri"] in [hit["uri"] for hit in ours[:2]], name


def test_the_official_hooks_print_for_their_host_what_it_understands(replayed):
    """The way of the public hook programs: `stdout_json` is printed as JSON, `stdout_text` as it is."""
    printed = {}
    for name in ("claudecode_1", "claudecode_2", "codex_1", "codex_2"):
        output = replayed[f"40_official_hook_{name}"].answer["host_output"]
        recorded = replayed[f"40_official_hook_{name}"].exchange.answer["host_output"]
        assert output["mode"] == recorded["mode"]
        printed[name] = json.dumps(output["value"]) if output["mode"] == "stdout_json" else output["value"]
    for name, event in (("claudecode_1", "SessionStart"), ("codex_1", "SessionStart"), ("codex_2", "UserPromptSubmit")):
        document = json.loads(printed[name])
        assert list(document) == ["hookSpecificOutput"]
        assert document["hookSpecificOutput"]["hookEventName"] == event
        assert document["hookSpecificOutput"]["additionalContext"].strip()
    assert printed["claudecode_2"].startswith('<recall session_id="7f6d1f9e-1111-4222-8333-444455556666" query_id="')
    assert "| project://lore_demo/webhooks |" in printed["claudecode_2"]
    assert "Run the tests before saying a change is done." in printed["codex_1"]


def test_warnings_come_where_the_public_server_warns(replayed):
    looked_at = 0
    for name, answered in _alike(replayed):
        theirs = answered.exchange.answer
        if isinstance(theirs, dict) and theirs.get("policy_warnings"):
            assert answered.answer["policy_warnings"], name
            looked_at += 1
    assert looked_at >= 4


def test_mcp_tools_fail_and_succeed_where_the_public_ones_do(replayed):
    looked_at = 0
    for name, answered in replayed.items():
        if not name.startswith(("16_mcp", "31_mcp", "51_db_down_mcp")):
            continue
        theirs, ours = answered.exchange.answer["result"], answered.answer["result"]
        if name in differences.MCP_ANSWERS:
            continue
        assert bool(ours.get("isError")) == bool(theirs.get("isError")), (name, ours)
        assert [part["type"] for part in ours["content"]] == ["text"], name
        looked_at += 1
    assert looked_at > 30


async def _take_database_away(parts):
    await parts.ready.close()
    parts.backend.store.close()


def _alike(replayed):
    """Exchanges in which both servers answered well with the same status."""
    return [
        (name, answered)
        for name, answered in replayed.items()
        if answered.status == answered.exchange.status and answered.status < 400
    ]


def _listed(table, text):
    return any(re.match(pattern, text) for pattern in table)


def _values(theirs, ours, place=""):
    """Places at which two answers differ: `(place, ours, theirs)`."""
    if isinstance(theirs, dict) and isinstance(ours, dict):
        for name, value in theirs.items():
            if name in UNORDERED and isinstance(value, list):
                yield from _values(sorted(value), sorted(ours.get(name, [])), f"{place}.{name}")
            elif name in ours and name not in IGNORED | RANKED:
                yield from _values(value, ours[name], f"{place}.{name}")
    elif isinstance(theirs, list) and isinstance(ours, list) and len(theirs) == len(ours):
        for number, (one, other) in enumerate(zip(theirs, ours, strict=True)):
            yield from _values(one, other, f"{place}[{number}]")
    elif theirs != ours:
        yield place or " ", ours, theirs
