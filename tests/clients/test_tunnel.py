"""A service on another machine through ssh. `fake_ssh.py` stands in for ssh; all else is real."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import stat
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from lorehooks.clients import config
from lorehooks.clients.client import LoreClient
from lorehooks.clients.connect import connect_ssh
from lorehooks.clients.endpoint import LOCAL_URL, Endpoint
from lorehooks.clients.errors import UnreachableError
from lorehooks.clients.link import Link
from lorehooks.clients.target import resolve
from lorehooks.clients.tunnel import SshAddress, Tunnel, find_home, parse_ssh
from lorehooks.core.errors import InvalidError
from lorehooks.core.home import Home

FAKE_SSH = Path(__file__).parents[1] / "support" / "fake_ssh.py"
FAR_SERVICE = '''\
#!{python}
"""The far machine's service: leaves at once when one runs, answers every question, notes its process id."""
import json, os, socketserver, sys
from http.server import BaseHTTPRequestHandler

class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        asked = self.path.partition("?")[0]
        body = [{{"domain": "core", "root_count": 1}}] if asked.endswith("domains") else {{"status": "ok", "version": "far"}}
        content = json.dumps(body).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)
    def address_string(self):
        return "tunnel"
    def log_message(self, *_):
        pass

os.chdir(os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + "/run")
try:
    os.open("once", os.O_CREAT | os.O_EXCL)
except FileExistsError:
    sys.exit(0)
if os.path.exists("service.sock"):
    os.unlink("service.sock")
server = socketserver.ThreadingUnixStreamServer("service.sock", Handler)
open("pid.new", "w").write(str(os.getpid()))
os.rename("pid.new", "pid")
server.serve_forever()
'''


@dataclass
class Far:
    """The other machine: its home, the program that reaches it, and what that was asked."""

    home: Home
    ssh: str
    log: Path

    @property
    def pid(self) -> int:
        return int((self.home.run / "pid").read_text())

    @property
    def runs(self) -> list[list[str]]:
        return [json.loads(line)[0] for line in self.log.read_text().splitlines()]

    @property
    def agents(self) -> list[str]:
        return [json.loads(line)[1] for line in self.log.read_text().splitlines()]

    def end_service(self) -> None:
        os.kill(self.pid, signal.SIGKILL)
        (self.home.run / "once").unlink()


@pytest.fixture
def far(monkeypatch: pytest.MonkeyPatch) -> Iterator[Far]:
    with tempfile.TemporaryDirectory(prefix="far-") as folder:
        root = Path(folder)
        home = Home(root / ".lore")
        home.run.mkdir(parents=True)
        home.bin.mkdir()
        service = home.bin / "service"
        service.write_text(FAR_SERVICE.format(python=sys.executable))
        service.chmod(0o700)
        ssh = root / "ssh"
        ssh.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{FAKE_SSH}" "$@"\n')
        ssh.chmod(0o700)
        monkeypatch.setenv("FAKE_SSH_HOME", str(root))
        monkeypatch.setenv("FAKE_SSH_LOG", str(root / "log"))
        yield Far(home, str(ssh), root / "log")
        with contextlib.suppress(OSError, ValueError):
            os.kill(int((home.run / "pid").read_text()), signal.SIGKILL)


@pytest.fixture
def home(tmp_path: Path) -> Home:
    home = Home(tmp_path / ("a_home_with_a_long_name_" * 4))
    home.run.mkdir(parents=True)
    return home


def address_of(far: Far) -> SshAddress:
    return SshAddress("desk.example.test", "me", 2222, str(far.home.root))


def test_connect_finds_the_far_home_starts_its_service_and_saves_the_address(far: Far, home: Home) -> None:
    done = asyncio.run(connect_ssh(home, "ssh://me@desk.example.test:2222", {}, ssh=far.ssh))
    assert done.after == f"ssh://me@desk.example.test:2222{far.home.root}"
    assert done.health is not None
    assert done.health.version == "far"
    assert config.load(home).server == done.after
    target = resolve(home, config.load(home), {})
    assert (target.ssh, target.problem) == (address_of(far), "")


def test_the_near_end_is_a_private_socket_and_no_port(far: Far, home: Home) -> None:
    async def run() -> None:
        tunnel = Tunnel(address_of(far), home.run / "remote.sock", ssh=far.ssh)
        await tunnel.ensure()
        assert stat.S_ISSOCK(tunnel.near.stat().st_mode)
        async with LoreClient(Endpoint(LOCAL_URL, socket=tunnel.near), seconds=20) as client:
            assert [line.domain for line in await client.domains()] == ["core"]
        await tunnel.close()
        assert not tunnel.near.exists()

    asyncio.run(run())
    (arguments,) = far.runs
    assert arguments[arguments.index("-L") + 1] == f"./remote.sock:{far.home.root}/run/service.sock"
    assert "BatchMode=yes" in arguments
    assert not {"-D", "-R", "-g"} & set(arguments)
    assert arguments[-4:-1] == ["2222", "--", "me@desk.example.test"]


def test_several_callers_share_one_tunnel(far: Far, home: Home) -> None:
    async def run() -> None:
        tunnel = Tunnel(address_of(far), home.run / "remote.sock", ssh=far.ssh)
        await asyncio.gather(*(tunnel.ensure() for _ in range(5)))
        await tunnel.ensure()
        await tunnel.close()

    asyncio.run(run())
    assert len(far.runs) == 1


def test_ssh_ends_when_this_process_is_gone_however_it_went(far: Far, home: Home) -> None:
    async def run() -> None:
        tunnel = Tunnel(address_of(far), home.run / "remote.sock", ssh=far.ssh)
        await tunnel.ensure()
        process = tunnel._child._process
        process.stdin.close()  # what the kernel does for a process that was killed
        assert await asyncio.wait_for(process.wait(), 20) == 0
        await tunnel.ensure()
        await tunnel.close()

    asyncio.run(run())
    assert len(far.runs) == 2


def test_a_far_service_that_ended_is_started_again(far: Far, home: Home) -> None:
    config.save(home, {"server.url": str(address_of(far))})

    async def run() -> None:
        link = Link(resolve(home, config.load(home), {}), home)
        link._tunnel = Tunnel(address_of(far), home.run / "remote.sock", ssh=far.ssh)
        try:
            await link.ask(lambda client: client.domains(), 20)
            first = far.pid
            far.end_service()
            with pytest.raises(UnreachableError):
                await link.ask(lambda client: client.domains(), 20)
            await link.ask(lambda client: client.domains(), 20)
            assert far.pid != first
        finally:
            await link.close()

    asyncio.run(run())


def test_the_agent_of_the_login_is_kept_for_a_service_that_has_none(
    far: Far, home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    asyncio.run(connect_ssh(home, "ssh://me@desk.example.test", {"SSH_AUTH_SOCK": "/run/agent"}, ssh=far.ssh))
    target = resolve(home, config.load(home), {})
    assert target.agent == "/run/agent"

    async def run() -> None:
        tunnel = Tunnel(address_of(far), home.run / "remote.sock", agent=target.agent, ssh=far.ssh)
        await tunnel.ensure()
        await tunnel.close()

    asyncio.run(run())
    assert far.agents == ["", "", "/run/agent"]


def test_a_host_that_cannot_be_reached_says_what_ssh_said(
    far: Far, home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_SSH_REFUSE", "Permission denied (publickey).")
    with pytest.raises(UnreachableError, match=r"Permission denied \(publickey\)\..*ssh -p 2222 me@desk"):
        asyncio.run(connect_ssh(home, "ssh://me@desk.example.test:2222", {}, ssh=far.ssh))

    async def run() -> None:
        tunnel = Tunnel(address_of(far), home.run / "remote.sock", ssh=far.ssh)
        with pytest.raises(UnreachableError, match="Permission denied"):
            await tunnel.ensure()
        await tunnel.close()

    asyncio.run(run())
    assert config.load(home).server is None


def test_a_machine_without_lorehooks_says_how_to_set_it_up(far: Far, home: Home) -> None:
    (far.home.bin / "service").unlink()
    with pytest.raises(UnreachableError, match="run there: lore service start"):
        asyncio.run(find_home(parse_ssh("ssh://desk.example.test"), ssh=far.ssh))


def test_a_machine_without_ssh_says_so(home: Home) -> None:
    with pytest.raises(UnreachableError, match="install the OpenSSH client"):
        asyncio.run(connect_ssh(home, "ssh://desk.example.test", {}, ssh=str(home.root / "none")))


@pytest.mark.parametrize(
    "text",
    [
        "ssh://",
        "ssh://-oProxyCommand=touch%20x",
        "ssh://-F@host",
        "ssh://ho st",
        "ssh://user:pw@host",
        "ssh://host:99999",
        "ssh://a;b",
        "host",
    ],
)
def test_what_ssh_could_take_for_an_option_is_no_address(text: str) -> None:
    with pytest.raises(InvalidError):
        parse_ssh(text)


@pytest.mark.parametrize(
    "text", ["ssh://desk", "ssh://me@desk:2222/home/me/.lore", "ssh://[::1]:22", "ssh://h/a%20b/c"]
)
def test_an_address_reads_back_as_it_was_written(text: str) -> None:
    assert str(parse_ssh(text)) == text
