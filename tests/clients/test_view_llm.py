"""Views by a model: what is asked, what is taken of an answer, and what each kind of bad answer is called."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from fake_openai import FakeOpenAI

from lorehooks.clients.credentials import Credential, credential_for, keep
from lorehooks.clients.errors import (
    BadAnswerError,
    DeadlineError,
    InsecureError,
    RedirectedError,
    ServerError,
    UnauthorizedError,
    UnreachableError,
)
from lorehooks.clients.model_endpoint import ModelCalls, may_pass, model_endpoint
from lorehooks.clients.view_llm import GIST_CHARS, QUESTION_CHARS, UnusableViewsError, ViewModel, read_views
from lorehooks.core.errors import LoreError
from lorehooks.core.home import Home
from lorehooks.core.model import Node

NODE = Node(
    "u1", "project://shop/webhooks", "Send events from the outbox.", 1, "When notifying a merchant", ("outbox",),
    "t", "t", "t",
)  # fmt: skip
KEY = "test-key-of-this-origin"


@pytest.fixture
def server() -> Iterator[FakeOpenAI]:
    with FakeOpenAI() as running:
        yield running


def write(
    server: FakeOpenAI,
    node: Node = NODE,
    *,
    credential: Credential | None = None,
    seconds: float = 20.0,
    times: int = 1,
) -> Mapping[str, str]:
    async def run() -> Mapping[str, str]:
        calls = ModelCalls(model_endpoint(server.url, credential or Credential(), "view_llm"), "view_llm")
        model = ViewModel(calls, "some-model", temperature=0.2, seconds=seconds)
        try:
            for _ in range(times):
                found = await model.write(node)
        finally:
            await model.close()
        return found

    return asyncio.run(run())


def test_a_memory_is_told_as_data_and_comes_back_as_two_views(server: FakeOpenAI) -> None:
    assert write(server) == {
        "gist": "A gist of project://shop/webhooks.\nWhen notifying a merchant",
        "question": "What of project://shop/webhooks?\nWhen does project://shop/webhooks matter?\n"
        "Who asks for project://shop/webhooks?",
    }
    (asked,) = server.asked
    assert asked.path == "/v1/chat/completions"
    assert (asked.body["model"], asked.body["temperature"], asked.body["stream"]) == ("some-model", 0.2, False)
    assert [message["role"] for message in asked.body["messages"]] == ["system", "user"]
    assert server.told() == [{"uri": NODE.uri, "when": NODE.disclosure, "words": ["outbox"], "content": NODE.content}]
    assert "authorization" not in asked.headers


@pytest.mark.parametrize("way", ["prose", "thinking", "lists"])
def test_views_are_found_in_whatever_stands_around_them(server: FakeOpenAI, way: str) -> None:
    server.chat = way
    found = write(server)
    assert found["gist"].startswith("A gist of project://shop/webhooks.")
    assert found["question"].splitlines()[0] == "What of project://shop/webhooks?"
    assert len(found["question"].splitlines()) == 3


def test_views_that_are_too_long_are_cut_and_further_questions_left_out(server: FakeOpenAI) -> None:
    server.chat = "long"
    found = write(server)
    gist, disclosure = found["gist"].split("\n")
    assert len(gist) <= GIST_CHARS
    assert disclosure == NODE.disclosure
    questions = found["question"].split("\n")
    assert len(questions) == 3
    assert all(len(question) <= QUESTION_CHARS for question in questions)


@pytest.mark.parametrize("way", ["partial", "blank", "wrong types", "broken", "empty"])
def test_an_answer_without_a_gist_and_three_questions_is_unusable(server: FakeOpenAI, way: str) -> None:
    server.chat = way
    with pytest.raises(UnusableViewsError, match="some-model does not answer with a gist and 3 questions"):
        write(server)
    assert len(server.asked) == 1


@pytest.mark.parametrize(
    ("way", "error", "passing"),
    [
        ("html", BadAnswerError, True),
        ("other", BadAnswerError, True),
        ("redirect", RedirectedError, False),
        ("500", ServerError, True),
        ("503", ServerError, True),
        ("429", ServerError, True),
        ("401", UnauthorizedError, False),
        ("404", ServerError, False),
        ("402", ServerError, False),
    ],
)
def test_each_failure_of_the_endpoint_has_its_name_and_may_pass_or_not(
    server: FakeOpenAI, way: str, error: type[LoreError], passing: bool
) -> None:
    server.chat = way
    with pytest.raises(error) as caught:
        write(server)
    assert may_pass(caught.value) is passing
    assert caught.value.hint
    assert "lore connect" not in caught.value.hint
    assert len(server.asked) == 1


def test_an_endpoint_that_hangs_is_left_in_time(server: FakeOpenAI) -> None:
    server.chat = "hang"
    with pytest.raises(DeadlineError) as caught:
        write(server, seconds=0.3)
    assert may_pass(caught.value)
    assert "look before you repeat" not in caught.value.message


def test_an_endpoint_that_is_gone_is_named_with_the_setting_that_names_it(server: FakeOpenAI) -> None:
    server.stop()
    with pytest.raises(UnreachableError) as caught:
        write(server)
    assert "view_llm.base_url" in caught.value.hint


@pytest.mark.parametrize(
    ("way", "requests", "form", "parameters"),
    [
        ("only schema", 1, "json_schema", {"temperature", "max_tokens"}),
        ("only object", 2, "json_object", {"temperature", "max_tokens"}),
        ("no format", 3, None, {"temperature", "max_tokens"}),
        ("strict", 3, "json_schema", {"max_completion_tokens"}),
    ],
)
def test_what_an_endpoint_refuses_is_given_up_once_and_not_with_each_memory(
    server: FakeOpenAI, way: str, requests: int, form: str | None, parameters: set[str]
) -> None:
    server.chat = way
    write(server, times=3)
    assert len(server.asked) == requests + 2
    body = server.asked[-1].body
    assert body.get("response_format", {}).get("type") == form
    assert body.keys() & {"temperature", "max_tokens", "max_completion_tokens"} == parameters


def test_an_endpoint_that_refuses_everything_is_asked_a_few_times_and_no_more(server: FakeOpenAI) -> None:
    server.chat = "400"
    with pytest.raises(ServerError):
        write(server)
    assert len(server.asked) == 3


def test_a_secret_in_a_memory_is_not_sent(server: FakeOpenAI) -> None:
    secret = "ghp_" + "a1B2" * 10
    write(server, Node("u", "w://a", f"The token is {secret}.", 2, secret, (secret,), "t", "t", "t"))
    assert secret not in str(server.asked[0].body)
    assert "github token" in str(server.asked[0].body)


def test_the_key_goes_to_its_origin_and_an_echo_of_it_is_not_repeated(server: FakeOpenAI, tmp_path: Path) -> None:
    home = Home(tmp_path)
    server.key = KEY
    keep(home, server.url, Credential(api_key=KEY))
    write(server, credential=credential_for(home, server.url))
    assert server.asked[0].headers["authorization"] == f"Bearer {KEY}"
    server.key = "another"
    with pytest.raises(UnauthorizedError) as caught:
        write(server, credential=credential_for(home, server.url))
    assert KEY not in str(caught.value)
    assert f"lore config key {server.url}" in caught.value.hint


def test_another_port_is_another_origin_and_gets_no_key(server: FakeOpenAI, tmp_path: Path) -> None:
    home = Home(tmp_path)
    keep(home, server.url, Credential(api_key=KEY))
    with FakeOpenAI() as other:
        write(other, credential=credential_for(home, other.url))
        assert "authorization" not in other.asked[0].headers
    server.chat = "redirect"
    with pytest.raises(RedirectedError):
        write(server, credential=credential_for(home, server.url))


def test_a_lore_servers_token_is_no_key_and_a_key_is_no_token(tmp_path: Path) -> None:
    home = Home(tmp_path)
    keep(home, "https://one.example", Credential(token="lore-token"))
    assert model_endpoint("https://one.example/v1", credential_for(home, "https://one.example/v1"), "x").token is None


def test_a_key_goes_over_plain_http_to_another_machine_only_where_that_was_accepted() -> None:
    with pytest.raises(InsecureError) as caught:
        model_endpoint("http://gpu.example:8000/v1", Credential(api_key=KEY), "view_llm")
    assert caught.value.hint.endswith("lore config key http://gpu.example:8000/v1 --allow-insecure-http")
    accepted = Credential(api_key=KEY, allow_insecure_http=True)
    model_endpoint("http://gpu.example:8000/v1", accepted, "view_llm").check()
    model_endpoint("http://gpu.example:8000/v1", Credential(), "view_llm").check()


@pytest.mark.parametrize("answer", ["", "{", "}{", "[]", "null", '{"gist": null}', '"text"', "{}" * 1000, "\ud800"])
def test_no_answer_is_a_defect(answer: Any) -> None:
    with pytest.raises(UnusableViewsError):
        read_views(answer, "some-model")
