"""A fake model server for end-to-end tests of agent programs.

It listens on loopback only, speaks three wire protocols, answers a fixed short
text (or what a script tells it to), and appends every request it gets to a file
as one JSON line.  Standard library only, one file.

Protocols
    Anthropic Messages       POST /v1/messages              SSE and plain JSON
                             POST /v1/messages/count_tokens
    OpenAI Responses         POST /v1/responses             SSE and plain JSON
                             POST /v1/responses/compact     plain JSON
    OpenAI Chat Completions  POST /v1/chat/completions      SSE and plain JSON
    Model list               GET  /v1/models
    (each also without the leading /v1)

Control, for tests that run it as a separate process
    GET    /_fake/health      {"ok": true, "requests": N}
    GET    /_fake/requests    the recorded requests as a JSON list
    DELETE /_fake/requests    forget them (the file is left alone)
    PUT    /_fake/script      replace the script (body: the script's JSON)

Run it
    fake_model.py --port 0 --port-file port.txt --record requests.jsonl
    fake_model.py --port 8099 --script script.json
    fake_model.py --show requests.jsonl          print a record in short
    fake_model.py --self-test
    Each option has an environment variable: FAKE_MODEL_PORT, _PORT_FILE,
    _RECORD, _SCRIPT (a path, or the JSON itself), _TEXT, _DELAY_MS.

Use it inside a Python test
    with FakeModel(script={...}) as model:
        run_agent(base_url=model.url)
        assert "remembered fact" in model.requests[0]["text"]

Script (JSON)
    {
      "default": {"text": "FAKE-OK"},
      "rules": [
        {"when":  {"api": "messages",            # messages|responses|chat|count_tokens|compact
                   "model": "*haiku*",           # glob on the requested model
                   "text_contains": "abc",       # anywhere in the request's text
                   "last_contains": "abc",       # in what came after the model's last answer
                   "has_tool": "mcp__*__search", # glob on the offered tools' names
                   "has_tool_result": false},    # a tool result follows the last user text
         "reply": {"tool_calls": [{"name": "mcp__*__search", "arguments": {"q": "x"}}]},
         "times": 1},                            # default 1; 0 means without end
        {"when": {"last_contains": "boom"}, "reply": {"status": 529}}
      ]
    }
    The first rule that matches and is not used up answers; with none, "default".
    A reply has any of: text, tool_calls, status (an HTTP error), error (its
    message), delay_ms, usage {"input_tokens": n, "output_tokens": n}.  A tool
    call's name may be a glob: it becomes the first offered tool that it fits.

Each record has: n, time (epoch seconds when the request line was read),
method, path, query, headers (secrets masked), api, model, stream, text (all
text of the request, for simple searches), tools (the offered tools' names),
body (parsed JSON, or body_base64), rule (index or null), reply, status.
"""

# A tool to be run by hand too, kept in one piece as it is used elsewhere.
# ruff: noqa: A002, N815, PTH105, PTH123, SIM105, SIM115, TRY004, TRY300
from __future__ import annotations

import argparse
import base64
import contextlib
import fnmatch
import gzip
import json
import os
import sys
import threading
import time
import zlib
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

Json = dict[str, Any]

DEFAULT_TEXT = "FAKE-OK"
MASKED_HEADERS = {"authorization", "x-api-key", "api-key", "proxy-authorization", "cookie"}


# --- reading requests -------------------------------------------------------


def api_of(method: str, path: str) -> str:
    """Name the protocol a path belongs to; "other" when it is none of ours."""
    tail = path.rstrip("/")
    if method == "POST":
        if tail.endswith("/messages/count_tokens"):
            return "count_tokens"
        if tail.endswith("/messages"):
            return "messages"
        if tail.endswith("/responses/compact"):
            return "compact"
        if tail.endswith("/responses"):
            return "responses"
        if tail.endswith("/chat/completions"):
            return "chat"
    if method in ("GET", "HEAD") and "/models" in tail:
        return "models"
    return "other"


def offered_tools(body: Any) -> list[tuple[str, str | None]]:
    """(name, namespace) of each tool the request offers, in order."""
    found: list[tuple[str, str | None]] = []
    if not isinstance(body, dict):
        return found

    def walk(tools: Any, namespace: str | None) -> None:
        for tool in tools if isinstance(tools, list) else []:
            if not isinstance(tool, dict):
                continue
            function = tool.get("function")
            name = tool.get("name") or (function.get("name") if isinstance(function, dict) else None)
            if isinstance(tool.get("tools"), list):  # Responses: a namespace of tools
                walk(tool["tools"], name)
            elif name or tool.get("type"):
                found.append((name or tool["type"], namespace))

    walk(body.get("tools"), None)
    for item in body.get("input") if isinstance(body.get("input"), list) else []:
        if isinstance(item, dict) and isinstance(item.get("tools"), list):
            walk(item["tools"], None)  # Responses: tools given as input items
    return found


def tool_names(body: Any) -> list[str]:
    """The offered tools' names; one in a namespace reads "namespace/name"."""
    return [f"{space}/{name}" if space else name for name, space in offered_tools(body)]


def text_of(value: Any) -> str:
    """All text inside a message or content value, one piece a line."""
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return "\n".join(filter(None, (text_of(v) for v in value)))
    if isinstance(value, dict):
        keys = ("text", "content", "output", "arguments", "input", "thinking")
        parts = [
            text_of(value[k]) if k != "input" else json.dumps(value[k], ensure_ascii=False) for k in keys if k in value
        ]
        return "\n".join(filter(None, parts))
    return ""


def messages_of(body: Any) -> list[tuple[str, str, Any]]:
    """(role, kind, content) of each part of a request, system text first."""
    if not isinstance(body, dict):
        return []
    out: list[tuple[str, str, Any]] = []
    if "system" in body:  # Messages
        out.append(("system", "system", body["system"]))
    if "instructions" in body:  # Responses
        out.append(("system", "instructions", body["instructions"]))
    if isinstance(body.get("messages"), list):  # Messages, Chat
        for m in body["messages"]:
            if isinstance(m, dict):
                kind = "tool_result" if m.get("role") == "tool" or _has_tool_result(m.get("content")) else "message"
                out.append((str(m.get("role")), kind, m.get("content", m)))
    source = body.get("input")
    if isinstance(source, str):  # Responses
        out.append(("user", "message", source))
    for item in source if isinstance(source, list) else []:
        if isinstance(item, dict):
            kind = str(item.get("type", "message"))
            kind = "tool_result" if kind.endswith("_output") else kind
            out.append((str(item.get("role", "-")), kind, item.get("content", item)))
    return out


def _has_tool_result(content: Any) -> bool:
    return isinstance(content, list) and any(isinstance(b, dict) and b.get("type") == "tool_result" for b in content)


def request_text(body: Any) -> str:
    return "\n".join(text_of(content) for _, _, content in messages_of(body))


def last_text(body: Any) -> str:
    """The text that came after the model's last answer (all of it, in a first request)."""
    newest: list[str] = []
    for role, kind, content in reversed(messages_of(body)):
        if role == "assistant" or kind in ("function_call", "custom_tool_call", "system", "instructions"):
            break
        newest.append(text_of(content))
    return "\n".join(reversed(newest))


def ends_with_tool_result(body: Any) -> bool:
    """Is the newest thing in the request a tool's answer, not a new user text?"""
    for role, kind, _ in reversed(messages_of(body)):
        if kind == "tool_result":
            return True
        if kind == "message" and role == "user":
            return False
    return False


# --- choosing a reply -------------------------------------------------------


class Script:
    """Ordered rules; the first that matches and is not used up gives the reply."""

    def __init__(self, data: Json | None = None, default_text: str = DEFAULT_TEXT) -> None:
        data = data or {}
        if not isinstance(data, dict):
            raise ValueError("a script is a JSON object")
        self.default: Json = data.get("default") or {"text": default_text}
        self.rules: list[Json] = list(data.get("rules") or [])
        self._used = [0] * len(self.rules)
        self._lock = threading.Lock()

    @classmethod
    def load(cls, source: str | None, default_text: str = DEFAULT_TEXT) -> Script:
        """From a path, or from JSON text (which begins with a brace)."""
        if not source:
            return cls(None, default_text)
        if not source.lstrip().startswith("{"):
            with open(source, encoding="utf-8") as handle:
                source = handle.read()
        return cls(json.loads(source), default_text)

    def choose(self, api: str, body: Any) -> tuple[int | None, Json]:
        with self._lock:
            for index, rule in enumerate(self.rules):
                times = int(rule.get("times", 1))
                if times and self._used[index] >= times:
                    continue
                if self._fits(rule.get("when") or {}, api, body):
                    self._used[index] += 1
                    return index, dict(rule.get("reply") or {})
        return None, dict(self.default)

    @staticmethod
    def _fits(when: Json, api: str, body: Any) -> bool:
        model = str(body.get("model", "")) if isinstance(body, dict) else ""
        tests: dict[str, Callable[[Any], bool]] = {
            "api": lambda want: want == api,
            "model": lambda want: fnmatch.fnmatchcase(model, want),
            "text_contains": lambda want: want in request_text(body),
            "last_contains": lambda want: want in last_text(body),
            "has_tool": lambda want: any(
                fnmatch.fnmatchcase(name, want) or fnmatch.fnmatchcase(f"{space}/{name}", want)
                for name, space in offered_tools(body)
            ),
            "has_tool_result": lambda want: ends_with_tool_result(body) == bool(want),
        }
        unknown = set(when) - set(tests)
        if unknown:
            raise ValueError(f"unknown condition in a script: {sorted(unknown)}")
        if "api" not in when and api not in ("messages", "responses", "chat"):
            return False  # side calls only when asked for
        return all(tests[key](want) for key, want in when.items())


def resolve_tool(pattern: str, body: Any) -> tuple[str, str | None]:
    """The first offered tool that fits a glob, or the pattern as it is."""
    for name, space in offered_tools(body):
        if fnmatch.fnmatchcase(name, pattern) or (space and fnmatch.fnmatchcase(f"{space}/{name}", pattern)):
            return name, space
    return pattern, None


def calls_of(reply: Json, body: Any) -> list[Json]:
    """The reply's tool calls with their names resolved."""
    calls = []
    for call in reply.get("tool_calls") or []:
        name, space = resolve_tool(str(call["name"]), body)
        calls.append({"name": name, "namespace": call.get("namespace", space), "arguments": call.get("arguments", {})})
    return calls


def usage_of(reply: Json, body: Any) -> tuple[int, int]:
    """(input, output) token counts: the script's, or a rough guess from sizes."""
    usage = reply.get("usage") or {}
    guess = max(1, len(json.dumps(body)) // 4) if body is not None else 1
    return int(usage.get("input_tokens", guess)), int(usage.get("output_tokens", 8))


# --- writing replies --------------------------------------------------------
# Each protocol has one function for the plain JSON reply and one that yields
# (event name or None, data) pairs for the stream.


def messages_json(reply: Json, body: Any, ident: str) -> Json:
    tokens_in, tokens_out = usage_of(reply, body)
    calls = calls_of(reply, body)
    blocks: list[Json] = []
    text = reply.get("text", "" if calls else DEFAULT_TEXT)
    if text:
        blocks.append({"type": "text", "text": text})
    for i, call in enumerate(calls):
        blocks.append(
            {"type": "tool_use", "id": f"toolu_{ident}_{i}", "name": call["name"], "input": call["arguments"]}
        )
    return {
        "id": f"msg_{ident}",
        "type": "message",
        "role": "assistant",
        "model": (body or {}).get("model", "fake"),
        "content": blocks,
        "stop_reason": "tool_use" if calls else "end_turn",
        "stop_sequence": None,
        "usage": {
            "input_tokens": tokens_in,
            "output_tokens": tokens_out,
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": 0,
        },
    }


def messages_stream(reply: Json, body: Any, ident: str) -> Iterator[tuple[str | None, Json]]:
    full = messages_json(reply, body, ident)
    start = dict(full, content=[], stop_reason=None, usage=dict(full["usage"], output_tokens=1))
    yield "message_start", {"type": "message_start", "message": start}
    yield "ping", {"type": "ping"}
    for i, block in enumerate(full["content"]):
        if block["type"] == "text":
            empty: Json = {"type": "text", "text": ""}
            delta: Json = {"type": "text_delta", "text": block["text"]}
        else:
            empty = dict(block, input={})
            delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
        yield "content_block_start", {"type": "content_block_start", "index": i, "content_block": empty}
        yield "content_block_delta", {"type": "content_block_delta", "index": i, "delta": delta}
        yield "content_block_stop", {"type": "content_block_stop", "index": i}
    yield (
        "message_delta",
        {
            "type": "message_delta",
            "delta": {"stop_reason": full["stop_reason"], "stop_sequence": None},
            "usage": {"output_tokens": full["usage"]["output_tokens"]},
        },
    )
    yield "message_stop", {"type": "message_stop"}


def responses_json(reply: Json, body: Any, ident: str) -> Json:
    tokens_in, tokens_out = usage_of(reply, body)
    calls = calls_of(reply, body)
    output: list[Json] = []
    text = reply.get("text", "" if calls else DEFAULT_TEXT)
    if text:
        output.append(
            {
                "type": "message",
                "id": f"msg_{ident}",
                "status": "completed",
                "role": "assistant",
                "content": [{"type": "output_text", "text": text, "annotations": []}],
            }
        )
    for i, call in enumerate(calls):
        item: Json = {
            "type": "function_call",
            "id": f"fc_{ident}_{i}",
            "call_id": f"call_{ident}_{i}",
            "status": "completed",
            "name": call["name"],
        }
        if call["namespace"]:
            item["namespace"] = call["namespace"]
        if _is_custom_tool(call["name"], body):  # free-form tool: raw text input
            item["type"] = "custom_tool_call"
            item["input"] = call["arguments"] if isinstance(call["arguments"], str) else json.dumps(call["arguments"])
        else:
            item["arguments"] = json.dumps(call["arguments"])
        output.append(item)
    return {
        "id": f"resp_{ident}",
        "object": "response",
        "created_at": int(time.time()),
        "status": "completed",
        "model": (body or {}).get("model", "fake"),
        "output": output,
        "error": None,
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "usage": {
            "input_tokens": tokens_in,
            "input_tokens_details": {"cached_tokens": 0},
            "output_tokens": tokens_out,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": tokens_in + tokens_out,
        },
    }


def _is_custom_tool(name: str, body: Any) -> bool:
    tools = body.get("tools") if isinstance(body, dict) else None
    return any(isinstance(t, dict) and t.get("type") == "custom" and t.get("name") == name for t in tools or [])


def responses_stream(reply: Json, body: Any, ident: str) -> Iterator[tuple[str | None, Json]]:
    full = responses_json(reply, body, ident)
    number = 0

    def event(kind: str, **fields: Any) -> tuple[str | None, Json]:
        nonlocal number
        number += 1
        return kind, dict({"type": kind, "sequence_number": number - 1}, **fields)

    begun = dict(full, status="in_progress", output=[], usage=None)
    yield event("response.created", response=begun)
    yield event("response.in_progress", response=begun)
    for i, item in enumerate(full["output"]):
        if item["type"] == "message":
            part = item["content"][0]
            at = {"item_id": item["id"], "output_index": i, "content_index": 0}
            yield event("response.output_item.added", output_index=i, item=dict(item, status="in_progress", content=[]))
            yield event("response.content_part.added", part=dict(part, text=""), **at)
            yield event("response.output_text.delta", delta=part["text"], **at)
            yield event("response.output_text.done", text=part["text"], **at)
            yield event("response.content_part.done", part=part, **at)
        elif item["type"] == "function_call":
            at = {"item_id": item["id"], "output_index": i}
            yield event(
                "response.output_item.added", output_index=i, item=dict(item, status="in_progress", arguments="")
            )
            yield event("response.function_call_arguments.delta", delta=item["arguments"], **at)
            yield event("response.function_call_arguments.done", arguments=item["arguments"], **at)
        else:
            yield event("response.output_item.added", output_index=i, item=dict(item, status="in_progress", input=""))
        yield event("response.output_item.done", output_index=i, item=item)
    yield event("response.completed", response=full)


def compact_json(reply: Json, body: Any, ident: str) -> Json:
    """The Responses "compact" call: the history replaced by one summary message."""
    text = reply.get("text", DEFAULT_TEXT)
    return {
        "id": f"resp_{ident}",
        "object": "response.compaction",
        "output": [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]}],
    }


def chat_json(reply: Json, body: Any, ident: str) -> Json:
    tokens_in, tokens_out = usage_of(reply, body)
    calls = calls_of(reply, body)
    text = reply.get("text", None if calls else DEFAULT_TEXT)
    message: Json = {"role": "assistant", "content": text}
    if calls:
        message["tool_calls"] = [
            {
                "id": f"call_{ident}_{i}",
                "type": "function",
                "function": {"name": call["name"], "arguments": json.dumps(call["arguments"])},
            }
            for i, call in enumerate(calls)
        ]
    return {
        "id": f"chatcmpl-{ident}",
        "object": "chat.completion",
        "created": int(time.time()),
        "model": (body or {}).get("model", "fake"),
        "choices": [{"index": 0, "message": message, "finish_reason": "tool_calls" if calls else "stop"}],
        "usage": {"prompt_tokens": tokens_in, "completion_tokens": tokens_out, "total_tokens": tokens_in + tokens_out},
    }


def chat_stream(reply: Json, body: Any, ident: str) -> Iterator[tuple[str | None, Json]]:
    full = chat_json(reply, body, ident)
    message, finish = full["choices"][0]["message"], full["choices"][0]["finish_reason"]

    def chunk(delta: Json, finish_reason: str | None = None) -> tuple[str | None, Json]:
        return None, {
            "id": full["id"],
            "object": "chat.completion.chunk",
            "created": full["created"],
            "model": full["model"],
            "choices": [{"index": 0, "delta": delta, "finish_reason": finish_reason}],
        }

    yield chunk({"role": "assistant", "content": ""})
    if message["content"]:
        yield chunk({"content": message["content"]})
    for i, call in enumerate(message.get("tool_calls") or []):
        yield chunk({"tool_calls": [dict(call, index=i)]})
    yield chunk({}, finish)
    options = (body or {}).get("stream_options") or {}
    if options.get("include_usage"):
        yield (
            None,
            {
                "id": full["id"],
                "object": "chat.completion.chunk",
                "created": full["created"],
                "model": full["model"],
                "choices": [],
                "usage": full["usage"],
            },
        )


PLAIN = {"messages": messages_json, "responses": responses_json, "chat": chat_json, "compact": compact_json}
STREAM = {"messages": messages_stream, "responses": responses_stream, "chat": chat_stream}


def error_json(api: str, status: int, message: str) -> Json:
    if api in ("messages", "count_tokens"):
        kind = {
            400: "invalid_request_error",
            401: "authentication_error",
            404: "not_found_error",
            429: "rate_limit_error",
            529: "overloaded_error",
        }.get(status, "api_error")
        return {"type": "error", "error": {"type": kind, "message": message}}
    return {"error": {"message": message, "type": "fake_error", "code": str(status)}}


# --- the server -------------------------------------------------------------


class FakeModel:
    """The server. Use as a context manager, or call start() and stop()."""

    def __init__(
        self,
        port: int = 0,
        record: str | None = None,
        script: Any = None,
        text: str = DEFAULT_TEXT,
        delay_ms: int = 0,
        host: str = "127.0.0.1",
    ) -> None:
        if host not in ("127.0.0.1", "::1", "localhost"):
            raise ValueError("the fake model listens on loopback only")
        self.default_text = text
        self.delay_ms = delay_ms
        self.script = script if isinstance(script, Script) else Script(script, text)
        self.requests: list[Json] = []
        self._record = open(record, "a", encoding="utf-8") if record else None
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._server = _Server((host, port), _Handler)
        self._server.fake = self

    @property
    def port(self) -> int:
        return int(self._server.server_address[1])

    @property
    def url(self) -> str:
        """Base without /v1: what ANTHROPIC_BASE_URL wants; OpenAI clients want url + "/v1"."""
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> FakeModel:
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        self._thread.start()
        return self

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        if self._thread:
            self._thread.join(5)
        if self._record:
            self._record.close()
            self._record = None

    def serve_forever(self) -> None:
        self._server.serve_forever(poll_interval=0.2)

    __enter__ = start

    def __exit__(self, *_: object) -> None:
        self.stop()

    def add(self, entry: Json) -> None:
        """Number a request, keep it and write its line (before the reply goes out)."""
        with self._lock:
            entry["n"] = len(self.requests)
            self.requests.append(entry)
            if self._record:
                self._record.write(json.dumps(entry, ensure_ascii=False) + "\n")
                self._record.flush()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    allow_reuse_address = True
    fake: FakeModel


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_version = "fake-model"
    disable_nagle_algorithm = True
    server: _Server

    def log_message(self, format: str, *args: Any) -> None:  # quiet
        pass

    def handle(self) -> None:
        try:
            super().handle()
        except ConnectionError:  # the client went away
            pass

    def do_GET(self) -> None:
        self._serve()

    do_POST = do_PUT = do_DELETE = do_HEAD = do_GET

    def _serve(self) -> None:
        came = time.time()
        fake = self.server.fake
        parts = urlsplit(self.path)
        raw = self._read_body()
        if parts.path.startswith("/_fake/"):
            self._control(parts.path, raw)
            return
        body, shown = self._parse(raw)
        api = api_of(self.command, parts.path)
        try:
            rule, reply = fake.script.choose(api, body)
        except ValueError as problem:
            rule, reply = None, {"status": 500, "error": str(problem)}
        stream = bool(isinstance(body, dict) and body.get("stream")) and api in STREAM
        status = int(reply.get("status", 404 if api == "other" and self.command != "HEAD" else 200))
        entry: Json = {
            "n": -1,
            "time": came,
            "method": self.command,
            "path": parts.path,
            "query": parts.query,
            "headers": {k: ("***" if k.lower() in MASKED_HEADERS else v) for k, v in self.headers.items()},
            "api": api,
            "model": body.get("model") if isinstance(body, dict) else None,
            "stream": stream,
            "status": status,
            "rule": rule,
            "reply": reply,
            "text": request_text(body),
            "tools": tool_names(body),
        }
        entry.update(shown)
        fake.add(entry)
        delay = reply.get("delay_ms", fake.delay_ms)
        if delay:
            time.sleep(delay / 1000)
        ident = f"fake{entry['n']:06d}"
        if status >= 400:
            self._send(status, error_json(api, status, str(reply.get("error", f"fake status {status}"))))
        elif stream:
            self._send_stream(STREAM[api](reply, body, ident), done=api == "chat")
        elif api in PLAIN:
            self._send(status, PLAIN[api](reply, body, ident))
        elif api == "count_tokens":
            self._send(status, {"input_tokens": usage_of(reply, body)[0]})
        elif api == "models":
            self._send(
                status,
                {
                    "object": "list",
                    "models": [],
                    "has_more": False,
                    "data": [
                        {
                            "id": "fake",
                            "object": "model",
                            "type": "model",
                            "display_name": "fake",
                            "created": 0,
                            "created_at": "2020-01-01T00:00:00Z",
                            "owned_by": "fake",
                        }
                    ],
                },
            )
        else:
            self._send(status, {})

    def _control(self, path: str, raw: bytes) -> None:
        fake = self.server.fake
        if path == "/_fake/health":
            self._send(200, {"ok": True, "requests": len(fake.requests)})
        elif path == "/_fake/requests" and self.command == "GET":
            self._send(200, list(fake.requests))
        elif path == "/_fake/requests" and self.command == "DELETE":
            fake.requests.clear()
            self._send(200, {"ok": True})
        elif path == "/_fake/script" and self.command == "PUT":
            try:
                fake.script = Script(json.loads(raw or b"{}"), fake.default_text)
                self._send(200, {"ok": True, "rules": len(fake.script.rules)})
            except ValueError as problem:
                self._send(400, {"error": str(problem)})
        else:
            self._send(404, {"error": "no such control path"})

    def _read_body(self) -> bytes:
        if "chunked" in self.headers.get("Transfer-Encoding", "").lower():
            pieces = []
            while True:
                size = int(self.rfile.readline().split(b";")[0].strip() or b"0", 16)
                if not size:
                    while self.rfile.readline().strip():  # trailers
                        pass
                    return b"".join(pieces)
                pieces.append(self.rfile.read(size))
                self.rfile.readline()
        return self.rfile.read(int(self.headers.get("Content-Length") or 0))

    def _parse(self, raw: bytes) -> tuple[Any, Json]:
        """(parsed body or None, the fields that record it)."""
        if not raw:
            return None, {"body": None}
        encoding = self.headers.get("Content-Encoding", "").lower()
        try:
            plain = (
                gzip.decompress(raw) if encoding == "gzip" else zlib.decompress(raw) if encoding == "deflate" else raw
            )
            body = json.loads(plain)
            return body, {"body": body}
        except (ValueError, OSError, zlib.error):
            return None, {"body": None, "body_base64": base64.b64encode(raw).decode("ascii")}

    def _send(self, status: int, data: Any) -> None:
        payload = json.dumps(data, ensure_ascii=False).encode("utf-8")
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(payload)))
        self.end_headers()
        if self.command != "HEAD":
            self._write(payload)

    def _send_stream(self, events: Iterator[tuple[str | None, Json]], done: bool) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Cache-Control", "no-cache")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for name, data in events:
            line = f"data: {json.dumps(data, ensure_ascii=False)}\n\n"
            self._write_chunk((f"event: {name}\n" if name else "") + line)
        if done:
            self._write_chunk("data: [DONE]\n\n")
        self._write(b"0\r\n\r\n")

    def _write_chunk(self, text: str) -> None:
        piece = text.encode("utf-8")
        self._write(b"%x\r\n%s\r\n" % (len(piece), piece))

    def _write(self, data: bytes) -> None:
        try:
            self.wfile.write(data)
        except (BrokenPipeError, ConnectionResetError):  # the client went away
            self.close_connection = True


# --- command line -----------------------------------------------------------


def show(path: str, width: int) -> None:
    """Print a record file in short: what each request carried, block by block."""

    def cut(text: str) -> str:
        flat = text.replace("\n", "\\n")
        return flat if len(flat) <= width else f"{flat[:width]}…[{len(flat)}]"

    with open(path, encoding="utf-8") as handle:
        for line in handle:
            r = json.loads(line)
            print(
                f"#{r['n']} {r['method']} {r['path']} api={r['api']} model={r['model']} stream={r['stream']} "
                f"tools={len(r['tools'])} rule={r['rule']} status={r['status']}"
            )
            for i, (role, kind, content) in enumerate(messages_of(r.get("body"))):
                blocks = content if isinstance(content, list) else [content]
                for j, block in enumerate(blocks):
                    what = block.get("type", "?") if isinstance(block, dict) else "str"
                    print(f"   {i}.{j} {role}/{kind}/{what}: {cut(text_of(block) or json.dumps(block))}")
            print(f"   -> {cut(json.dumps(r['reply']))}")


def self_test() -> int:
    """Ask each protocol once, streamed and plain, with and without a tool call."""
    from urllib.request import Request, urlopen

    script = {
        "rules": [
            {
                "when": {"last_contains": "use-tool", "has_tool": "mcp__*"},
                "times": 0,
                "reply": {"tool_calls": [{"name": "mcp__*", "arguments": {"q": 1}}]},
            }
        ]
    }
    tool = {
        "messages": {"name": "mcp__x__y", "input_schema": {}},
        "responses": {"type": "function", "name": "mcp__x__y", "parameters": {}},
        "chat": {"type": "function", "function": {"name": "mcp__x__y"}},
    }
    failed = passed = 0
    with FakeModel(script=script, text="hi there") as model:
        for api, path in (
            ("messages", "/v1/messages"),
            ("responses", "/v1/responses"),
            ("chat", "/v1/chat/completions"),
        ):
            for stream in (False, True):
                for word, want in (("hello", "hi there"), ("use-tool", "mcp__x__y")):
                    said = [{"role": "user", "content": word}]
                    body = {
                        "model": "m",
                        "stream": stream,
                        "tools": [tool[api]],
                        ("input" if api == "responses" else "messages"): said,
                    }
                    request = Request(model.url + path, json.dumps(body).encode(), {"Content-Type": "application/json"})
                    with urlopen(request, timeout=5) as answer:
                        got = answer.read().decode()
                    good = want in got and model.requests[-1]["api"] == api
                    passed, failed = passed + good, failed + (not good)
                    if not good:
                        print(f"FAILED {api} stream={stream} {word}: {got[:300]}")
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


def main(argv: list[str] | None = None) -> int:
    env = os.environ.get
    parser = argparse.ArgumentParser(description="A fake model server (see the top of the file).")
    parser.add_argument("--port", type=int, default=int(env("FAKE_MODEL_PORT", "0")), help="0 picks a free one")
    parser.add_argument("--port-file", default=env("FAKE_MODEL_PORT_FILE"), help="write the port here when ready")
    parser.add_argument("--record", default=env("FAKE_MODEL_RECORD"), help="append each request here (JSON lines)")
    parser.add_argument("--script", default=env("FAKE_MODEL_SCRIPT"), help="script: a path or the JSON itself")
    parser.add_argument("--text", default=env("FAKE_MODEL_TEXT", DEFAULT_TEXT), help="the fixed answer")
    parser.add_argument("--delay-ms", type=int, default=int(env("FAKE_MODEL_DELAY_MS", "0")))
    parser.add_argument("--show", metavar="FILE", help="print a record file in short and leave")
    parser.add_argument("--width", type=int, default=160, help="with --show: characters a block")
    parser.add_argument("--self-test", action="store_true")
    args = parser.parse_args(argv)
    if args.show:
        show(args.show, args.width)
        return 0
    if args.self_test:
        return self_test()
    model = FakeModel(args.port, args.record, Script.load(args.script, args.text), args.text, args.delay_ms)
    if args.port_file:
        part = args.port_file + ".part"
        with open(part, "w", encoding="ascii") as handle:
            handle.write(str(model.port))
        os.replace(part, args.port_file)
    print(f"fake model on {model.url}", file=sys.stderr, flush=True)
    with contextlib.suppress(KeyboardInterrupt):
        model.serve_forever()
    return 0


if __name__ == "__main__":
    sys.exit(main())
