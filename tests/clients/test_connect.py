"""`lore connect`: nothing is saved before the server has answered and taken the token."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from lorehooks.clients import config, credentials
from lorehooks.clients.command import Invocation
from lorehooks.clients.commands import connect
from lorehooks.clients.credentials import Credential
from lorehooks.clients.errors import BadAnswerError, InsecureError, RedirectedError, UnauthorizedError, UnreachableError
from lorehooks.core.errors import InvalidError, LoreError
from lorehooks.core.home import Home

TOKEN = "lm_test_token"


@pytest.fixture
def home(tmp_path: Path) -> Home:
    home = Home(tmp_path / "h")
    home.run.mkdir(parents=True)
    return home


@pytest.fixture
def run(home: Home) -> Callable[..., Result]:
    """Run `lore connect` with these arguments and this stdin."""

    def no_memory(_: Home) -> Any:
        raise AssertionError("connect needs no running service")

    def go(*arguments: str, stdin: str = "") -> Result:
        names = ["-h", "--help"]  # a command keeps the help option of its first use, and the reference shows both
        return CliRunner().invoke(
            connect, arguments, input=stdin, obj=Invocation(no_memory, home), help_option_names=names
        )

    return go


def saved(home: Home) -> str | None:
    return config.load(home).server


def test_a_server_that_takes_the_token_is_saved_and_the_token_kept_beside(run, home: Home, upstream) -> None:
    server = upstream(TOKEN)
    result = run(f"{server.url}/api/", "--token-stdin", stdin=f"{TOKEN}\n")
    assert result.exit_code == 0, result.output
    assert f"Memory: embedded -> {server.url}, version 1.3.22" in result.output
    assert saved(home) == server.url
    assert credentials.credential_for(home, server.url).token == TOKEN
    assert TOKEN not in result.output + home.config.read_text()


@pytest.mark.parametrize("stdin", ["wrong\n", None])
def test_a_wrong_or_missing_token_saves_nothing(run, home: Home, upstream, stdin: str | None) -> None:
    server = upstream(TOKEN)
    result = run(server.url, *(["--token-stdin"] if stdin else []), stdin=stdin or "")
    assert isinstance(result.exception, UnauthorizedError)
    assert "--token-stdin" in str(result.exception)
    assert saved(home) is None
    assert not credentials.path_of(home).exists()


@pytest.mark.parametrize(
    ("health", "error"),
    [
        ((200, b"<!doctype html>Sign in"), BadAnswerError),
        ((200, {"results": []}), BadAnswerError),
        ((302, "http://127.0.0.1:1/elsewhere"), RedirectedError),
    ],
)
def test_what_is_no_lore_server_saves_nothing(
    run, home: Home, upstream, health: tuple[int, Any], error: type[LoreError]
) -> None:
    server = upstream()
    server.answers["GET /health"] = health
    result = run(server.url)
    assert type(result.exception) is error
    assert saved(home) is None


def test_a_server_that_is_not_there_saves_nothing(run, home: Home, upstream) -> None:
    config.save(home, {"server.url": "embedded"})
    result = run("http://127.0.0.1:9")
    assert isinstance(result.exception, UnreachableError)
    assert "http://127.0.0.1:9" in str(result.exception)
    assert saved(home) == "embedded"


def test_a_kept_token_is_used_again_for_its_own_server_and_sent_to_no_other(run, home: Home, upstream) -> None:
    first, second = upstream(TOKEN), upstream()
    run(first.url, "--token-stdin", stdin=TOKEN)
    assert run(second.url).exit_code == 0
    assert all("authorization" not in asked.headers for asked in second.asked)
    again = run(first.url)
    assert again.exit_code == 0
    assert first.asked[-1].headers["authorization"] == f"Bearer {TOKEN}"
    assert saved(home) == first.url


def test_a_token_does_not_go_over_plain_http_to_another_machine(run, home: Home) -> None:
    result = run("http://lore.example.test", "--token-stdin", stdin=TOKEN)
    assert isinstance(result.exception, InsecureError)  # and no socket was opened: the tests' own guard would say so
    assert saved(home) is None


def test_the_proxy_of_the_shell_is_used_and_kept_for_the_service(
    run, home: Home, upstream, monkeypatch: pytest.MonkeyPatch
) -> None:
    proxy = upstream()  # to a proxy, one asks for the whole address
    proxy.answer = lambda asked: (200, [] if asked.what.endswith("domains") else {"status": "ok"})
    monkeypatch.setenv("http_proxy", proxy.url.removeprefix("http://"))
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    assert run("http://lore.example.test").exit_code == 0
    assert credentials.credential_for(home, "http://lore.example.test").proxy == proxy.url
    assert len(proxy.asked) == 2


def test_embedded_goes_back_and_leaves_the_token_with_its_server(run, home: Home, upstream) -> None:
    server = upstream(TOKEN)
    run(server.url, "--token-stdin", stdin=TOKEN)
    (home.run / "remote" / "x").mkdir(parents=True)
    result = run("--embedded", "--json")
    assert json.loads(result.stdout)["before"] == server.url
    assert saved(home) == "embedded"
    assert credentials.credential_for(home, server.url) == Credential(TOKEN)
    assert not (home.run / "remote").exists()


def test_the_same_again_changes_nothing_and_says_so(run, home: Home, upstream) -> None:
    server = upstream()
    run(server.url)
    before = home.config.read_bytes()
    result = run(server.url)
    assert "nothing had to change" in result.output
    assert home.config.read_bytes() == before


def test_other_settings_survive(run, home: Home, upstream) -> None:
    home.config.write_text('language = "zh"\n[mine]\nkept = 1\n')
    run(upstream().url)
    assert config.load(home).settings["language"] == "zh"
    assert "kept = 1" in home.config.read_text()


def test_the_service_of_the_same_home_is_refused(run, home: Home, upstream) -> None:
    server = upstream()
    home.service_file.write_text(json.dumps({"port": server.port, "token": "x"}))
    result = run(server.url)
    assert isinstance(result.exception, InvalidError)
    assert "this home itself" in str(result.exception)
    assert not server.asked


def test_without_arguments_it_says_which_memory_is_used_and_why(
    run, home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "Memory: embedded (nothing else is configured)" in run().output
    (home.root / "config.json").write_text('{"base_url": "http://127.0.0.1:18901"}')
    assert json.loads(run("--json").stdout) == {"address": "http://127.0.0.1:18901", "from": "public", "problem": ""}
    monkeypatch.setenv("LORE_BASE_URL", "http://127.0.0.1:5")
    assert "LORE_BASE_URL in the environment" in run().output


def test_the_public_file_is_left_alone_and_named_once_it_is_not_used(run, home: Home, upstream) -> None:
    public = home.root / "config.json"
    public.write_text('{"base_url": "http://127.0.0.1:18901", "api_token": "theirs"}')
    before = public.read_bytes()
    result = run(upstream().url)
    assert "stays as it is and is not used any more" in result.output
    assert public.read_bytes() == before


def test_a_variable_that_goes_before_is_named(run, upstream, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LORE_BASE_URL", "http://127.0.0.1:5")
    assert "LORE_BASE_URL is set in this shell" in run(upstream().url).output


@pytest.mark.parametrize(
    "arguments",
    [
        ("--embedded", "http://127.0.0.1:1"),
        ("--token-stdin",),
        ("ssh://host", "--token-stdin"),
        ("--embedded", "--token-stdin"),
    ],
)
def test_flags_that_do_not_go_together_are_refused(run, home: Home, arguments: tuple[str, ...]) -> None:
    assert isinstance(run(*arguments, stdin="x").exception, LoreError)
    assert saved(home) is None
