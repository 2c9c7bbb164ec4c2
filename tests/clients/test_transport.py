"""One exchange: connections kept, repeats only where they do no harm, TLS checked, odd bytes made harmless."""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import json
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from hypothesis import given, settings
from hypothesis import strategies as st

from lorehooks.clients.client import LoreClient
from lorehooks.clients.endpoint import LOCAL_URL, Endpoint
from lorehooks.clients.errors import BadAnswerError, ServerError, UnreachableError, UnsupportedError
from lorehooks.clients.replies import raise_for_status
from lorehooks.clients.transport import Reply
from lorehooks.core.errors import LoreError, NotFoundError
from lorehooks.core.model import NodeDraft, Origin

SECONDS = 20.0
HEALTH = b'{"status": "ok"}'
PERSON = Origin("cli")


def http(body: bytes, *, status: str = "200 OK", headers: str = "") -> bytes:
    head = f"HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n{headers}\r\n"
    return head.encode() + body


class Scripted:
    """A listener whose connections each play a list of answers: bytes are sent for a request, None hangs up instead."""

    def __init__(self, listener: socket.socket, *plays: list[bytes | None]) -> None:
        self.listener = listener
        self.plays = list(plays)
        self.requests: list[list[bytes]] = []
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        with contextlib.suppress(OSError):
            for play in self.plays:
                connection, _ = self.listener.accept()
                seen: list[bytes] = []
                self.requests.append(seen)
                with connection:
                    connection.settimeout(SECONDS)
                    for answer in play:
                        seen.append(connection.recv(65536))
                        if answer is None:
                            break
                        connection.sendall(answer)
                    if play[-1] is not None:
                        connection.recv(65536)


@pytest.fixture
def scripted() -> Iterator[Callable[..., tuple[str, Scripted]]]:
    """`scripted(play, play…)`: its address and what it saw."""
    with contextlib.ExitStack() as stack:

        def start(*plays: list[bytes | None]) -> tuple[str, Scripted]:
            listener = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
            return f"http://127.0.0.1:{listener.getsockname()[1]}", Scripted(listener, *plays)

        yield start


def ask(endpoint: Endpoint | str, times: int = 1) -> str:
    """The status that the last of several health questions over one client brings."""

    async def run() -> str:
        endpoint_ = Endpoint(endpoint) if isinstance(endpoint, str) else endpoint
        async with LoreClient(endpoint_, seconds=SECONDS) as client:
            for _ in range(times):
                answer = await client.health()
            return answer.status

    return asyncio.run(run())


def create(url: str) -> None:
    async def run() -> None:
        async with LoreClient(Endpoint(url), seconds=SECONDS) as client:
            await client.create_node(NodeDraft("project://a", "text"), PERSON)

    asyncio.run(run())


def answering(body: bytes, *, status: int = 200, content_type: str = "application/json") -> LoreClient:
    def handle(_: httpx.Request) -> httpx.Response:
        return httpx.Response(status, headers={"content-type": content_type}, stream=httpx.ByteStream(body))

    return LoreClient(Endpoint("http://127.0.0.1:1"), inner=httpx.MockTransport(handle))


def test_calls_share_a_connection(scripted) -> None:
    url, server = scripted([http(HEALTH)] * 3)
    assert ask(url, times=3) == "ok"
    assert len(server.requests) == 1


def test_a_question_is_asked_again_on_a_new_connection_when_the_old_one_was_closed(scripted) -> None:
    url, server = scripted([http(HEALTH), None], [http(HEALTH)])
    assert ask(url, times=2) == "ok"
    assert [len(seen) for seen in server.requests] == [2, 1]


def test_a_question_is_asked_again_once_and_not_more(scripted) -> None:
    url, server = scripted([None], [None], [http(HEALTH)])
    with pytest.raises(UnreachableError):
        ask(url)
    assert len(server.requests) == 2


def test_a_write_is_sent_once(scripted) -> None:
    url, server = scripted([None], [http(b"{}")])
    with pytest.raises(UnreachableError, match="may have arrived"):
        create(url)
    assert len(server.requests) == 1


def test_a_write_to_nobody_is_known_not_to_have_arrived() -> None:
    with pytest.raises(UnreachableError) as caught:
        create("http://127.0.0.1:9")
    assert "may have arrived" not in str(caught.value)
    assert "nothing answers there" in str(caught.value)


def test_cookies_of_a_server_are_not_kept(scripted) -> None:
    url, server = scripted([http(HEALTH, headers="Set-Cookie: a=b; Path=/\r\n"), http(HEALTH)])
    ask(url, times=2)
    assert b"cookie" not in server.requests[0][1].lower()


def test_a_compressed_answer_is_refused_since_it_could_grow_without_bound(scripted) -> None:
    url, _ = scripted([http(gzip.compress(b" " * 1000), headers="Content-Encoding: gzip\r\n")])
    with pytest.raises(BadAnswerError, match="compresses"):
        ask(url)


def test_what_is_not_http_is_a_bad_answer(scripted) -> None:
    url, _ = scripted([b"SSH-2.0-OpenSSH_9.6\r\n\r\n"])
    with pytest.raises(BadAnswerError, match="does not speak HTTP"):
        ask(url)


def test_a_socket_is_reached_however_long_the_path_of_its_folder_is(tmp_path: Path) -> None:
    folder = tmp_path / ("long" * 30)
    folder.mkdir()
    listener = socket.socket(socket.AF_UNIX)
    here = Path.cwd()
    try:
        with contextlib.chdir(folder):
            listener.bind("service.sock")
        listener.listen()
        Scripted(listener, [http(HEALTH)])
        assert ask(Endpoint(LOCAL_URL, socket=folder / "service.sock")) == "ok"
    finally:
        listener.close()
    assert Path.cwd() == here


def test_a_missing_socket_is_an_unreachable_service(tmp_path: Path) -> None:
    with pytest.raises(UnreachableError, match="lore service restart"):
        ask(Endpoint(LOCAL_URL, socket=tmp_path / "no.sock", name="The local service"))
    with pytest.raises(UnreachableError):
        ask(Endpoint(LOCAL_URL, socket=tmp_path / ("long" * 40) / "no.sock"))


@pytest.fixture
def tls(tmp_path: Path) -> Iterator[tuple[str, Path]]:
    """A TLS server with a certificate of nobody's, and that certificate."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    pem = tmp_path / "cert.pem"
    pem.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    secret = tmp_path / "key.pem"
    secret.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pem, secret)
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            while True:
                try:
                    connection, _ = listener.accept()
                except OSError:
                    return
                with contextlib.suppress(OSError), context.wrap_socket(connection, server_side=True) as secure:
                    secure.recv(65536)
                    secure.sendall(http(HEALTH, headers="Connection: close\r\n"))

        threading.Thread(target=serve, daemon=True).start()
        yield f"localhost:{listener.getsockname()[1]}", pem


def test_a_certificate_of_nobodys_is_refused_with_the_way_to_trust_it(tls: tuple[str, Path]) -> None:
    with pytest.raises(UnreachableError, match=r"certificate is not trusted.*SSL_CERT_FILE"):
        ask(f"https://{tls[0]}")


def test_a_certificate_that_someone_vouches_for_is_trusted(
    tls: tuple[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(tls[1]))
    assert ask(Endpoint(f"https://{tls[0]}", "t")) == "ok"


def test_text_that_cannot_be_stored_is_made_storable() -> None:
    body = json.dumps({"guidance": "cut \ud83d here\x00"}).encode()

    async def run() -> str:
        async with answering(body) as client:
            return await client.guidance()

    assert asyncio.run(run()) == "cut � here�"


@pytest.mark.parametrize(
    "body",
    [
        b"[" * 100_000,
        b'{"status": ' + b"9" * 5000 + b"}",
        b'{"status": "ok", "x": 1e999}',
        b'{"status": "ok"} x',
        b"\xef\xbb\xbf{}",
    ],
)
def test_json_that_breaks_parsers_is_a_bad_answer(body: bytes) -> None:
    async def run() -> None:
        async with answering(body) as client:
            with pytest.raises(BadAnswerError):
                await client.health()

    asyncio.run(run())


@given(st.binary(max_size=200), st.sampled_from([200, 204, 301, 400, 401, 404, 409, 422, 500, 503]))
@settings(max_examples=150, deadline=None)
def test_any_answer_is_a_result_or_one_of_our_errors(body: bytes, status: int) -> None:
    async def run() -> None:
        async with answering(body, status=status) as client:
            for call in (client.health(), client.domains(), client.search("x")):
                with contextlib.suppress(LoreError):
                    await call

    asyncio.run(run())


def refusal(status: int, body: object, content_type: str = "application/json") -> LoreError:
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    with pytest.raises(LoreError) as caught:
        raise_for_status(Reply(status, content, content_type), "The server")
    return caught.value


def test_a_servers_words_cannot_act_on_a_terminal_or_fill_it() -> None:
    error = refusal(404, {"detail": "\x1b[2Jgone\r\n" + "x" * 1000, "code": "not_found"})
    assert isinstance(error, NotFoundError)
    assert str(error).startswith("[2Jgone xxx")
    assert len(str(error)) < 320


@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        (404, {"detail": "Unknown API route. GET /api/pending"}, UnsupportedError),
        (405, b"", UnsupportedError),
        (404, b"<html>", BadAnswerError),
        (418, {"error": "teapot"}, BadAnswerError),
        (502, {"detail": "x cannot be reached", "code": "unreachable"}, UnreachableError),
        (500, {"detail": "x cannot be reached", "code": "unreachable"}, ServerError),
        (503, {"detail": "locked", "code": "storage_error"}, ServerError),
    ],
)
def test_a_status_means_one_of_our_errors(status: int, body: object, kind: type[LoreError]) -> None:
    assert type(refusal(status, body)) is kind
