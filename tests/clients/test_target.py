"""Which server a home uses, and that a token goes to the address it was given for and nowhere else."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lorehooks.clients import config, credentials
from lorehooks.clients.config import ConfigError
from lorehooks.clients.credentials import Credential
from lorehooks.clients.endpoint import Endpoint, is_loopback, origin_of, parse_url
from lorehooks.clients.errors import InsecureError
from lorehooks.clients.target import Target, resolve
from lorehooks.core.errors import InvalidError
from lorehooks.core.home import Home

SERVER = "https://lore.example.test"


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "h")


def target_of(home: Home, **environment: str) -> Target:
    return resolve(home, config.load(home), environment)


def write_public(home: Home, text: str) -> Path:
    home.root.mkdir(exist_ok=True)
    path = home.root / "config.json"
    path.write_text(text)
    return path


def test_a_new_home_uses_its_own_memory(home: Home) -> None:
    assert target_of(home) == Target()


def test_the_environment_goes_before_config_and_config_before_the_public_file(home: Home) -> None:
    write_public(home, json.dumps({"base_url": "http://127.0.0.1:18901/", "api_token": "public-token"}))
    found = target_of(home)
    assert (found.row, found.address, found.endpoint.token) == ("public", "http://127.0.0.1:18901", "public-token")
    config.save(home, {"server.url": SERVER})
    credentials.keep(home, SERVER, Credential("kept-token"))
    found = target_of(home)
    assert (found.row, found.address, found.endpoint.token) == ("config", SERVER, "kept-token")
    found = target_of(home, LORE_BASE_URL="http://127.0.0.1:1/api/", LORE_API_TOKEN="env-token")
    assert (found.row, found.address, found.endpoint.token) == ("environment", "http://127.0.0.1:1", "env-token")


def test_address_and_token_come_from_the_same_row(home: Home) -> None:
    write_public(home, json.dumps({"base_url": "http://127.0.0.1:18901", "api_token": "public-token"}))
    credentials.keep(home, SERVER, Credential("kept-token"))
    assert target_of(home, LORE_BASE_URL=SERVER).endpoint.token is None
    assert target_of(home, LORE_API_TOKEN="env-token").endpoint.token == "public-token"
    config.save(home, {"server.url": "https://other.example.test"})
    assert target_of(home, LORE_API_TOKEN="env-token").endpoint.token is None


def test_embedded_is_a_choice_that_goes_before_the_public_file(home: Home) -> None:
    path = write_public(home, json.dumps({"base_url": "http://127.0.0.1:18901"}))
    config.save(home, {"server.url": "embedded"})
    before = path.read_bytes()
    assert target_of(home) == Target("config")
    assert path.read_bytes() == before


@pytest.mark.parametrize("text", ["", "[]", "{", '{"base_url": 5}', '{"base_url": " "}', "\xff"])
def test_a_public_file_that_names_no_server_leaves_the_own_memory(home: Home, text: str) -> None:
    write_public(home, text)
    found = target_of(home)
    assert (found.row, found.endpoint) == ("embedded", None)
    assert bool(found.problem) == (not text.startswith('{"'))


@pytest.mark.parametrize(
    "address",
    [
        "nonsense",
        "ftp://host",
        "http://",
        "http://user:pw@host",
        "https://host/?q=1",
        "http://ho st",
        "ssh://-oProxyCommand=x",
    ],
)
def test_a_wrong_address_is_a_problem_and_no_other_memory(home: Home, address: str) -> None:
    config.save(home, {"server.url": address})
    found = target_of(home)
    assert (found.row, found.endpoint is None) == ("config", False)
    assert found.problem


def test_plain_http_takes_a_token_to_this_machine_only(home: Home) -> None:
    Endpoint("http://127.0.0.1:1", "t").check()
    Endpoint("http://[::1]:1", "t").check()
    Endpoint("http://lore.example.test").check()
    with pytest.raises(InsecureError, match="--allow-insecure-http"):
        Endpoint("http://lore.example.test", "t").check()
    found = target_of(home, LORE_BASE_URL="http://lore.example.test", LORE_API_TOKEN="env-token")
    assert "plain http" in found.problem
    credentials.keep(home, "http://lore.example.test", Credential("t", allow_insecure_http=True))
    config.save(home, {"server.url": "http://lore.example.test"})
    assert target_of(home).problem == ""
    config.save(home, {"server.url": "http://lore.example.test:81"})
    assert target_of(home).endpoint.token is None


def test_a_token_never_shows(home: Home) -> None:
    assert "secret" not in repr(Endpoint(SERVER, "secret"))
    assert "secret" not in repr(Credential("secret"))
    with pytest.raises(InvalidError) as caught:
        credentials.keep(home, SERVER, Credential("secret\nX-Header: 1"))
    assert "secret" not in str(caught.value)
    credentials.path_of(home).parent.mkdir(exist_ok=True)
    credentials.path_of(home).write_text("token = secret")
    with pytest.raises(ConfigError) as broken:
        credentials.credential_for(home, SERVER)
    assert "secret" not in str(broken.value)


def test_tokens_are_for_their_owner_only_and_for_their_origin_only(home: Home) -> None:
    credentials.keep(home, SERVER, Credential("one"))
    credentials.keep(home, f"{SERVER}:8443/lore", Credential("two"))
    path = credentials.path_of(home)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    path.chmod(0o644)
    assert credentials.credential_for(home, f"{SERVER}:443/other/path").token == "one"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert credentials.credential_for(home, f"{SERVER}:8443").token == "two"
    for other in ("http://lore.example.test:443", "https://lore.example.test.evil.test", "https://example.test"):
        assert credentials.credential_for(home, other) == Credential()
    credentials.keep(home, SERVER, Credential())
    assert "one" not in path.read_text()


def test_proxy_and_agent_of_the_shell_that_connected_are_kept_for_the_service(home: Home) -> None:
    credentials.keep(home, SERVER, Credential("t", proxy="http://user:secret@proxy:3128"))
    config.save(home, {"server.url": SERVER})
    found = target_of(home)
    assert found.endpoint.proxy == "http://user:secret@proxy:3128"
    assert "secret" not in repr(found)
    credentials.keep(home, "ssh://me@desk:22/home/me/.lore", Credential(agent="/run/agent"))
    config.save(home, {"server.url": "ssh://me@desk:22/elsewhere"})
    assert target_of(home).agent == "/run/agent"
    config.save(home, {"server.url": "ssh://me@other/elsewhere"})
    assert target_of(home).agent == ""


@pytest.mark.parametrize(
    ("text", "url"),
    [
        ("HTTPS://Lore.Example.TEST:443/", "https://lore.example.test"),
        ("http://127.0.0.1:18901/api/", "http://127.0.0.1:18901"),
        ("https://host/lore/api", "https://host/lore"),
        ("http://[::1]:80", "http://[::1]"),
    ],
)
def test_one_server_has_one_address(text: str, url: str) -> None:
    assert parse_url(text) == url


@pytest.mark.parametrize(
    "url", ["http://127.0.0.1.evil.test", "http://localhost.evil.test", "http://1270.0.1", "http://0.0.0.0"]
)
def test_what_only_looks_like_loopback_is_none(url: str) -> None:
    assert not is_loopback(url)


@given(st.text(alphabet="htps:/.@[]?#%1a\x00\n é\\", max_size=30))
def test_any_text_is_an_address_with_an_origin_or_refused(text: str) -> None:
    try:
        url = parse_url(text)
    except InvalidError:
        return
    assert parse_url(url) == url
    assert origin_of(url).startswith(("http://", "https://"))
