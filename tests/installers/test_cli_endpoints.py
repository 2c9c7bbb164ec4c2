"""`lore config key` and `lore config test`, through the real service of a scratch home."""

from __future__ import annotations

import io
import json
import sys
import time
from collections.abc import Iterator

import pytest
from fake_openai import FakeOpenAI

from lorehooks.clients.credentials import Credential, credential_for, keep, path_of
from lorehooks.core.home import Home
from lorehooks.hooks import service
from lorehooks.installers import cli

KEY = "test-key-of-this-origin"


@pytest.fixture
def home(tmp_path) -> Iterator[Home]:
    home = Home(tmp_path / "lore")
    yield home
    service.stop(home)


@pytest.fixture
def server() -> Iterator[FakeOpenAI]:
    with FakeOpenAI() as running:
        yield running


@pytest.fixture
def lore(home, capfd, monkeypatch, tmp_path):
    """Run a command; answers exit code, stdout and stderr."""
    monkeypatch.setenv("LORE_HOME", str(home.root))
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str, stdin: str = "") -> tuple[int, str, str]:
        with io.TextIOWrapper(io.BytesIO(stdin.encode()), encoding="utf-8") as pipe:
            monkeypatch.setattr(sys, "stdin", pipe)
            code = cli.run(arguments)
        return code, *capfd.readouterr()

    return run


def test_an_endpoint_is_set_given_its_key_tried_and_told_by_the_doctor(lore, home, server) -> None:
    server.key = KEY
    assert lore("config", "set", "view_llm.base_url", server.url)[0] == 0
    assert lore("config", "set", "view_llm.model", "some-model")[0] == 0
    code, out, err = lore("config", "test", "view_llm")
    assert code == 1
    assert f"lore config key {server.url}" in out + err
    code, out, err = lore("config", "key", server.url, "--token-stdin", stdin=f"{KEY}\n")
    assert code == 0
    assert KEY not in out + err
    assert f"http://127.0.0.1:{server.port}" in out
    assert path_of(home).stat().st_mode & 0o777 == 0o600
    code, out, _ = lore("config", "test", "view_llm", "--json")
    assert (code, json.loads(out)["model"]) == (0, "some-model")
    server.chat = "500"
    assert lore("remember", "Webhooks go through the outbox.", "--when", "notifying", "--words", "outbox")[0] == 0
    end = time.monotonic() + 60
    while "500" not in (out := lore("status")[1]):
        assert time.monotonic() < end, out
    assert "Views    some-model, 1 memory waits" in out
    assert KEY not in out
    code, out, err = lore("doctor", "--json")
    (finding,) = [each for each in json.loads(out)["findings"] if each["code"] == "views_endpoint"]
    assert (finding["severity"], finding["fix"]) == ("problem", "lore config test view_llm")
    assert KEY not in out + err


def test_a_key_is_removed_and_a_lore_servers_token_beside_it_stays(lore, home) -> None:
    keep(home, "https://one.example", Credential(token="a-token", api_key=KEY))
    code, out, _ = lore("config", "key", "https://one.example/v1", "--remove", "--json")
    assert (code, json.loads(out)) == (0, {"origin": "https://one.example:443", "has_key": False})
    kept = credential_for(home, "https://one.example")
    assert (kept.token, kept.api_key) == ("a-token", None)


@pytest.mark.parametrize(
    ("arguments", "stdin", "said"),
    [
        (("http://gpu.example/v1", "--token-stdin"), KEY, "plain http"),
        (("https://one.example", "--token-stdin"), "", "empty"),
        (("https://one.example", "--token-stdin"), "two words", "spaces"),
        (("https://one.example",), KEY, "--token-stdin"),
        (("https://user:pass@one.example", "--token-stdin"), KEY, "address"),
        (("nowhere", "--token-stdin"), KEY, "not the address"),
        (("https://one.example", "--remove", "--token-stdin"), KEY, "alone"),
    ],
)
def test_what_cannot_be_kept_is_refused_and_nothing_is_written(lore, home, arguments, stdin, said) -> None:
    code, out, err = lore("config", "key", *arguments, stdin=stdin)
    assert code == 1
    assert said in out + err
    assert not path_of(home).exists()


def test_a_key_for_plain_http_elsewhere_is_kept_when_that_is_accepted(lore, home) -> None:
    at = "http://gpu.example:8000/v1"
    assert lore("config", "key", at, "--token-stdin", "--allow-insecure-http", stdin=KEY)[0] == 0
    kept = credential_for(home, at)
    assert (kept.api_key, kept.allow_insecure_http) == (KEY, True)


def test_with_a_memory_elsewhere_its_keys_are_kept_elsewhere(lore, home) -> None:
    home.root.mkdir()
    home.config.write_text('[server]\nurl = "http://127.0.0.1:9"\n')
    code, out, err = lore("config", "key", "https://one.example/v1", "--token-stdin", stdin=KEY)
    assert code == 1
    assert "set the key there" in out + err
