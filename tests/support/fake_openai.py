"""A stand-in for endpoints that speak as OpenAI does: chat completions and embeddings, well behaved or not.

with FakeOpenAI() as server:
    server.chat = "html"            # how chat completions are answered; see `_chat`
    server.embeddings = "hang"      # how embeddings are; see `_embed`
    … server.url + "/v1" …
    server.asked                    # every request: path, headers in lower case, body
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import re
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

Answer = tuple[int, str, bytes]
GOOD = {"gist": "A gist of {uri}.", "question": ["What of {uri}?", "When does {uri} matter?", "Who asks for {uri}?"]}
_WORD = re.compile(r"[a-z]+|[\u4e00-\u9fff]")


@dataclass
class Asked:
    """One request."""

    path: str
    headers: dict[str, str]
    body: dict[str, Any]


@dataclass
class FakeOpenAI:
    """The running server. Change `chat` and `embeddings` at any time; `dim` is the width of its vectors."""

    key: str | None = None
    chat: str | Callable[[dict[str, Any]], Any] = "good"
    embeddings: str = "good"
    dim: int = 24
    most_inputs: int = 1000
    asked: list[Asked] = field(default_factory=list)
    released: threading.Event = field(default_factory=threading.Event)
    """Set to let requests go on that `hang`."""

    def __enter__(self) -> Self:
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self._server.block_on_close = False
        self.port = self._server.server_address[1]
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def stop(self) -> None:
        """End it; its port is closed from then on."""
        self.released.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    def count(self, path: str) -> int:
        """Requests of a path below /v1."""
        return sum(asked.path == f"/v1{path}" for asked in self.asked)

    def inputs(self) -> list[str]:
        """All texts that were sent to be embedded, in order."""
        return [text for asked in self.asked if asked.path == "/v1/embeddings" for text in asked.body["input"]]

    def told(self) -> list[dict[str, Any]]:
        """The memories that views were asked for, in order."""
        return [_memory(asked.body) for asked in self.asked if asked.path == "/v1/chat/completions"]

    def _handler(fake) -> type[BaseHTTPRequestHandler]:  # noqa: N805  (`self` is the handler's below)
        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            wbufsize = -1

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                headers = {name.lower(): value for name, value in self.headers.items()}
                fake.asked.append(Asked(self.path, headers, body))
                status, kind, content = fake._answer(self.path, headers, body)
                self.send_response(status)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(content)))
                if status == 302:
                    self.send_header("Location", content.decode())
                self.end_headers()
                self.wfile.write(content)

            def handle(self) -> None:
                with contextlib.suppress(ConnectionError):  # the client gave up
                    super().handle()

            def log_message(self, *_: object) -> None: ...

        return Handler

    def _answer(self, path: str, headers: dict[str, str], body: dict[str, Any]) -> Answer:
        if self.key is not None and headers.get("authorization") != f"Bearer {self.key}":
            return _error(401, f"Incorrect API key provided: {headers.get('authorization', 'none')}")
        if path == "/v1/chat/completions":
            return self._chat(body)
        if path == "/v1/embeddings":
            return self._embed(body)
        return _error(404, "no such route")

    def _chat(self, body: dict[str, Any]) -> Answer:
        uri = _memory(body)["uri"]
        good = json.loads(json.dumps(GOOD, ensure_ascii=False).replace("{uri}", uri))
        if callable(self.chat):
            made = self.chat(body)
            return made if isinstance(made, tuple) else _completion(made)
        form = body.get("response_format", {}).get("type")
        match self.chat:
            case "good":
                return _completion(good)
            case "prose":
                return _completion(f"Sure! Here it is:\n```json\n{json.dumps(good)}\n```\nAnything else?")
            case "thinking":
                return _completion(f'<think>Maybe {{"gist": "no"}}? </think>\n{json.dumps(good)}')
            case "lists":
                lines = "\n".join(f"{place}. {each}" for place, each in enumerate(good["question"], start=1))
                return _completion({"summary": good["gist"], "questions": lines})
            case "long":
                return _completion(
                    {"gist": "word " * 500, "question": ["why " * 200, "how " * 200, "长" * 900, "more"]}
                )
            case "partial":
                return _completion({"gist": good["gist"], "question": good["question"][:2]})
            case "blank":
                return _completion({"gist": "  ", "question": ["", " ", ""]})
            case "wrong types":
                return _completion({"gist": 7, "question": {"a": 1}})
            case "broken":
                return _completion('{"gist": "cut o')
            case "empty":
                return _completion("")
            case "html":
                return 200, "text/html", b"<!doctype html><title>Sign in</title>"
            case "other":
                return 200, "application/json", b'{"choices": []}'
            case "redirect":
                return 302, "text/plain", b"http://localhost:1/elsewhere"
            case "only object" if form == "json_schema":
                return _error(400, "This response_format type is unavailable now")
            case "only schema" if form != "json_schema":
                return _error(400, "'response_format.type' must be 'json_schema' or 'text'")
            case "no format" if form is not None:
                return _error(422, "response_format: extra fields not permitted")
            case "strict" if "temperature" in body:
                return _error(400, "Unsupported value: 'temperature' does not support 0.2 with this model")
            case "strict" if "max_tokens" in body:
                return _error(400, "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead.")
            case "only object" | "only schema" | "no format" | "strict":
                return _completion(good)
            case "hang":
                self.released.wait()
                return _completion(good)
        return _error(int(str(self.chat)), "it failed")

    def _embed(self, body: dict[str, Any]) -> Answer:
        texts = body["input"]
        if len(texts) > self.most_inputs:
            return _error(400, f"at most {self.most_inputs} inputs")
        rows = [vector(text, self.dim) for text in texts]
        match self.embeddings:
            case "good":
                return _vectors(rows)
            case "turned round":
                data = [{"index": place, "embedding": row} for place, row in enumerate(rows)]
                return 200, "application/json", json.dumps({"data": data[::-1]}).encode()
            case "one short":
                return _vectors(rows[:-1])
            case "uneven":
                return _vectors([rows[0][:-1], *rows[1:]])
            case "zeros":
                return _vectors([[0.0] * self.dim] * len(rows))
            case "nan":
                return 200, "application/json", b'{"data": [{"index": 0, "embedding": [NaN, 1.0]}]}'
            case "html":
                return 200, "text/html", b"<!doctype html><title>Sign in</title>"
            case "hang":
                self.released.wait()
                return _vectors(rows)
            case "no long texts" if any(len(text) > 60 for text in texts):
                return _error(413, "input is longer than 512 tokens")
            case "no long texts":
                return _vectors(rows)
        return _error(int(self.embeddings), "it failed")


def vector(text: str, dim: int) -> list[float]:
    """A text's words thrown into `dim` boxes, so that texts with words in common are near each other."""
    row = [0.05] * dim
    for word in _WORD.findall(text.lower()):
        row[int.from_bytes(hashlib.sha256(word.encode()).digest()[:4], "big") % dim] += 1.0
    length = math.sqrt(sum(each * each for each in row))
    return [each / length for each in row]


def _memory(body: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(body["messages"][-1]["content"])
    return found


def _completion(content: Any) -> Answer:
    text = content if isinstance(content, str) else json.dumps(content, ensure_ascii=False)
    choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
    return 200, "application/json", json.dumps({"id": "c-1", "object": "chat.completion", "choices": [choice]}).encode()


def _vectors(rows: list[list[float]]) -> Answer:
    data = [{"object": "embedding", "index": place, "embedding": row} for place, row in enumerate(rows)]
    return 200, "application/json", json.dumps({"object": "list", "data": data, "model": "m"}).encode()


def _error(status: int, message: str) -> Answer:
    return status, "application/json", json.dumps({"error": {"message": message, "type": "some_error"}}).encode()
