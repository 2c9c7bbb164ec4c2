"""The public plugins' lifecycle calls: every family's shape, the ledger behind them, lenient reading."""

from __future__ import annotations

import pytest

SHAPES = {
    "claudecode": ("stdout_json", "stdout_text"),
    "codex": ("stdout_json", "stdout_json"),
    "zcode": ("stdout_json", "stdout_json"),
    "openclaw": ("appendSystemContext", "prependContext"),
    "opencode": ("systemContext", "promptContext"),
    "hermes": ("system_context", "context"),
    "dsh": ("systemContext", "promptContext"),
    "pi": ("systemPromptAppend", "message"),
    "cursor": ("context", "context"),
}


@pytest.fixture
def shop(api, make):
    api.put("/api/browse/boot", json={"nodes": {"core://agent": "Run the tests first."}})
    make("project://shop", "A shop.", glossary=["demo shop", "shop"])
    make("project://shop/webhooks", "Verify the raw body.", glossary=["Stripe webhook"], disclosure="Webhooks")
    api.put("/api/settings", json={"patch": {"recall.display.min_display_score": 0.3}})


def send(api, family, name, session="s1", **fields):
    body = {
        "protocol_version": "lore.lifecycle.v1",
        "runtime": {"runtime_id": family, "runtime_family": family},
        "event": {"name": name, "native_name": "x"},
        "normalized": {"session_id": session} if session else {},
    }
    body["normalized"].update(fields.pop("normalized", {}))
    answer = api.post("/api/lifecycle/event", json=body | fields)
    assert answer.status_code == 200, answer.text
    return answer.json()


def text_of(answer):
    value = answer["host_output"]["value"]
    if isinstance(value, str):
        return value
    if "hookSpecificOutput" in value:
        return value["hookSpecificOutput"]["additionalContext"]
    if "message" in value:
        return value["message"]["content"]
    (text,) = value.values()
    return text


@pytest.mark.parametrize("family", SHAPES)
def test_each_family_gets_its_own_shape(api, shop, family):
    start = send(api, family, "session.start", project={"dir_name": "shop", "repo_name": "shop"})
    prompt = send(api, family, "prompt.submit", normalized={"prompt": "How do I check a Stripe webhook?"})
    for answer, expected in zip((start, prompt), SHAPES[family], strict=True):
        output = answer["host_output"]
        assert (answer["ok"], answer["has_output"]) == (True, True)
        if expected.startswith("stdout"):
            assert output["mode"] == expected
        else:
            assert (output["mode"], list(output["value"])) == ("return_value", [expected])
    assert "Run the tests first." in text_of(start)
    assert (start["query_id"], start["node_uris"]) == ("", [])
    assert start["meta"]["session_id"] == "s1"
    assert "shop" in start["meta"]["queries"]
    assert prompt["node_uris"] == ["project://shop/webhooks"]
    assert f'query_id="{prompt["query_id"]}"' in text_of(prompt)
    assert ('phase="prompt"' in text_of(prompt)) is (family == "opencode")
    assert prompt["runtime"]["runtime_family"] == (None if family == "cursor" else family)


def test_hook_hosts_get_their_own_event_name_whatever_the_client_said(api, shop):
    for family in ("codex", "zcode", "claudecode"):
        start = send(api, family, "session.start", event={"name": "session.start", "native_name": "Nonsense"})
        assert start["host_output"]["value"]["hookSpecificOutput"]["hookEventName"] == "SessionStart"


def test_pi_gets_the_session_in_its_details_and_nothing_made_up(api, shop):
    prompt = {"normalized": {"prompt": "Stripe webhook"}}
    message = send(api, "pi", "prompt.submit", **prompt)["host_output"]["value"]["message"]
    assert message["details"] == {"source": "lore", "session_id": "s1"}
    assert (message["customType"], message["display"]) == ("lore-recall", False)
    message = send(api, "pi", "prompt.submit", session=None, **prompt)["host_output"]["value"]["message"]
    assert message["details"] == {"source": "lore"}


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ({}, "unknown_runtime_family"),
        ({"runtime": {"runtime_family": "<script>"}}, "unknown_runtime_family"),
        ({"runtime": "claudecode"}, "unknown_runtime_family"),
        ({"runtime": {"runtime_family": "mcp"}}, "unsupported_runtime_family"),
        ({"runtime": {"client_type": "admin"}}, "unsupported_runtime_family"),
        ({"runtime": {"runtime_family": "pi"}, "event": {"name": "tool.use"}}, "unsupported_event"),
        ({"runtime": {"runtime_family": "pi"}, "event": ["session.start"]}, "unsupported_event"),
        ({"runtime": {"runtime_family": "pi"}, "event": {"name": "prompt.submit"}}, "empty_prompt"),
        (
            {"runtime": {"runtime_family": "pi"}, "event": {"name": "prompt.submit"}, "normalized": {"prompt": " \n"}},
            "empty_prompt",
        ),
        (
            {
                "runtime": {"runtime_family": "pi"},
                "event": {"name": "prompt.submit"},
                "normalized": {"prompt": "/help"},
            },
            "slash_command",
        ),
    ],
)
def test_without_output_there_is_a_reason(api, body, reason):
    answer = api.post("/api/lifecycle/event", json=body).json()
    assert answer["host_output"] == {"mode": "none", "value": None}
    assert (answer["has_output"], answer["meta"]["reason"]) == (False, reason)


def test_the_client_type_stands_in_for_a_missing_family(api, shop):
    runtime = {"client_type": "ClaudeCode", "runtime_id": "my-fork"}
    answer = send(api, "", "prompt.submit", normalized={"prompt": "Stripe webhook"}, runtime=runtime)
    assert answer["runtime"] == {"runtime_id": "my-fork", "runtime_family": "claudecode"}
    assert answer["host_output"]["mode"] == "stdout_text"


def test_a_prompt_without_a_match_has_a_query_id_and_no_output(api, shop):
    answer = send(api, "claudecode", "prompt.submit", normalized={"prompt": "penguins in antarctica"})
    assert answer["host_output"] == {"mode": "none", "value": None}
    assert answer["query_id"]
    assert answer["meta"] == {"session_id": "s1"}


@pytest.mark.parametrize("family", ["opencode", "pi", "openclaw", "dsh"])
def test_a_runtime_that_asks_again_gets_the_same_bytes(api, shop, make, family):
    first = send(api, family, "session.start", project={"dir_name": "shop"})
    make("work://new", "Written in between.")
    again = send(api, family, "session.start", project={"dir_name": "shop"})
    assert again["host_output"] == first["host_output"]
    other = send(api, family, "session.start", session="s2", project={"dir_name": "shop"})
    assert "work://new" in text_of(other)


def test_a_resumed_session_gets_its_boot_only_when_the_rules_changed(api, shop):
    resume = {"native_input_snapshot": {"source": "resume"}}
    send(api, "claudecode", "session.start", native_input_snapshot={"source": "startup"})
    again = send(api, "claudecode", "session.start", **resume)
    assert (again["has_output"], again["meta"]["reason"]) == (False, "unchanged")
    api.put("/api/browse/boot", json={"nodes": {"core://agent": "Never force push."}})
    assert "Never force push." in text_of(send(api, "claudecode", "session.start", **resume))


def test_ids_of_a_lifecycle_recall_can_be_marked(api, shop):
    prompt = send(api, "hermes", "prompt.submit", normalized={"prompt": "Stripe webhook"})
    body = {"query_id": prompt["query_id"], "session_id": "s1", "node_uris": prompt["node_uris"]}
    assert api.post("/api/browse/recall/usage?client_type=hermes", json=body).json()["updated_count"] == 1
    stats = api.get("/api/browse/recall/stats?client_type=hermes").json()
    assert stats["summary"]["used_count"] == 1


def test_the_sessions_project_comes_from_its_start(api, make):
    api.put("/api/settings", json={"patch": {"recall.display.min_display_score": 0.2}})
    for project in ("alpha", "beta"):
        make(f"project://{project}", f"The {project} project.")
        make(f"project://{project}/deploy", f"Deploy {project} by hand.", glossary=["deploy"])
    send(api, "codex", "session.start", project={"dirName": "x", "repoName": "beta"})
    prompt = send(api, "codex", "prompt.submit", normalized={"prompt": "deploy"})
    assert prompt["node_uris"][0] == "project://beta/deploy"


def test_guidance_can_be_read_and_switched_off(api):
    assert "lore_get_node" in api.get("/api/lifecycle/guidance").json()["guidance"]
    api.put("/api/settings", json={"patch": {"lifecycle.guidance.enabled": False}})
    assert api.get("/api/lifecycle/guidance").json() == {"guidance": ""}


def test_a_database_that_is_gone_costs_the_boot_text_but_no_session_and_no_recall(api, shop, close_database):
    close_database()
    start = send(api, "claudecode", "session.start", session="later")
    assert start["has_output"] is False
    assert start["meta"]["reason"]
    prompt = send(api, "claudecode", "prompt.submit", session="later", normalized={"prompt": "Stripe webhook"})
    assert prompt["node_uris"] == ["project://shop/webhooks"]
