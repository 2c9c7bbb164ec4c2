"""A stand-in for ZCode, which cannot be run here: written from reports on 3.2 to 3.15, strict wherever they differ. A single file.

It reads `~/.zcode/cli/config.json` when a session begins, runs `process` hooks with one line of JSON, and takes from stdout one
JSON object of the documented form or nothing. It proves our side of the contract only; `docs/runtimes/zcode.md` has the sources.
"""

from __future__ import annotations

import json
import re
import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

MOST_CHARACTERS = 24_000
MOST_BYTES = 32_768
HOOK_SECONDS = 60.0
OUTPUT_KEYS = {"hookEventName", "additionalContext", "updatedInput", "permissionDecision"}
CAMEL = {
    "session_id": "sessionId", "hook_event_name": "hookEventName", "permission_mode": "mode", "tool_name": "toolName",
    "tool_input": "toolInput", "tool_use_id": "toolCallId", "stop_hook_active": "stopHookActive",
}  # fmt: skip


@dataclass
class Outcome:
    """What an event came to. `failures` are what the app would record; `seconds` is how long the turn waited."""

    context: str = ""
    tool_input: dict[str, Any] | None = None
    failures: list[str] = field(default_factory=list)
    blocked: bool = False
    seconds: float = 0.0


class ZCode:
    """One session. `spelling` is how it names fields: `both`, `camel` or `snake`; `names_session` whether it gives its id."""

    def __init__(
        self,
        user: Path,
        project: Path,
        environment: Mapping[str, str],
        session_id: str = "sess_0b5c",
        *,
        spelling: str = "both",
        names_session: bool = True,
    ) -> None:
        self.file = user / ".zcode" / "cli" / "config.json"
        self.project = project
        self.environment = {**environment, "HOME": str(user)}
        self.session_id = session_id
        self.spelling = spelling
        self.names_session = names_session
        self.remembered = self.file.read_bytes()
        self.config = json.loads(self.remembered)

    def save_settings(self, **changes: Any) -> None:
        """What its settings page does: write the file from what the app remembers, whatever came into it since."""
        self.file.write_text(json.dumps({**json.loads(self.remembered), **changes}, indent=2))

    def start(self, source: str = "startup") -> Outcome:
        return self.fire("SessionStart", source, source=source, model="zai/glm-5")

    def prompt(self, text: str) -> Outcome:
        return self.fire("UserPromptSubmit", None, prompt=text, attachmentsSummary=[])  # its matcher has no effect

    def open(self, tool: str, arguments: dict[str, Any]) -> Outcome:
        """A tool call: hooks, then the server. The outcome's context is what the tool answered."""
        outcome = self.fire(
            "PreToolUse", tool, tool_name=tool, tool_input=arguments, tool_use_id="call_1", riskLevel="low"
        )
        _, server, name = tool.split("__")
        outcome.context = self._call(self.config["mcp"]["servers"][server], name, outcome.tool_input or arguments)
        return outcome

    def fire(self, event: str, match: str | None, **fields: Any) -> Outcome:
        """Run the hooks of an event, one after the other."""
        hooks, outcome, began, texts = self.config.get("hooks", {}), Outcome(), time.monotonic(), []
        if hooks.get("enabled") is not True:
            return outcome
        line = json.dumps(self._payload(event, fields)) + "\n"
        for group in hooks.get("events", {}).get(event, []):
            if match is not None and group.get("matcher") and not re.search(group["matcher"], match):
                continue
            for handler in group["hooks"]:
                text = self._run(event, handler, hooks, line, outcome)
                texts += [text] if text else []
        if texts:
            body = "\n\n".join(f"#{number}\n{text}" for number, text in enumerate(texts, 1))
            outcome.context = f"{event} hook additional context: \n{body}"[:MOST_CHARACTERS]
        outcome.seconds = time.monotonic() - began
        return outcome

    def _payload(self, event: str, fields: Mapping[str, Any]) -> dict[str, Any]:
        plain = {
            **({"session_id": self.session_id} if self.names_session else {}),
            "hook_event_name": event,
            "cwd": str(self.project),
            "permission_mode": "build",
            "agentName": "main",
            "timestamp": "2026-10-10T08:00:00.000Z",
            "traceId": "0" * 32,
            "turnId": "turn_00000001",
            "transcript_path": "/tmp/zcode-hook-transcript.jsonl",
            **fields,
        }
        camel = {CAMEL.get(key, key): value for key, value in plain.items()}
        return {"both": {**camel, **plain}, "camel": camel, "snake": plain}[self.spelling]

    def _run(self, event: str, handler: dict[str, Any], hooks: dict[str, Any], line: str, outcome: Outcome) -> str:
        if handler.get("type") != "process":
            outcome.failures.append(f"unknown type {handler.get('type')}")
            return ""
        try:
            done = subprocess.run(
                [handler["command"], *map(self._expand, handler.get("args", []))],
                input=line.encode(),
                capture_output=True,
                cwd=self.project,
                env=self.environment,
                timeout=handler.get("timeoutMs", HOOK_SECONDS * 1000) / 1000,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            outcome.failures.append(type(error).__name__)
            return ""
        outcome.blocked |= done.returncode == 2
        if done.returncode or done.stderr:
            outcome.failures.append(f"exit code {done.returncode}: {done.stderr.decode(errors='replace')}")
        if done.returncode or not done.stdout.strip():
            return ""
        if len(done.stdout) > hooks.get("maxOutputBytes", MOST_BYTES):
            outcome.failures.append("too much output")
            return ""
        return self._take(event, done.stdout, outcome)

    @staticmethod
    def _take(event: str, stdout: bytes, outcome: Outcome) -> str:
        try:
            answer = json.loads(stdout)
            said = answer.pop("hookSpecificOutput")
            strict = not answer and not set(said) - OUTPUT_KEYS and said["hookEventName"] == event
        except (ValueError, KeyError, TypeError, AttributeError):
            strict = False
        if not strict:
            outcome.failures.append("output of another form")
            return ""
        outcome.tool_input = said.get("updatedInput") or outcome.tool_input
        return str(said.get("additionalContext", ""))

    def _expand(self, argument: str) -> str:
        known = {"ZCODE_SESSION_ID": self.session_id, "CLAUDE_SESSION_ID": self.session_id}
        known |= dict.fromkeys(("ZCODE_PROJECT_DIR", "CLAUDE_PROJECT_DIR"), str(self.project))
        return re.sub(r"\$\{(\w+)\}", lambda found: known.get(found[1], found[0]), argument)

    def _call(self, server: dict[str, Any], name: str, arguments: dict[str, Any]) -> str:
        about = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "zcode", "version": "3"}}
        messages = [
            {"id": 1, "method": "initialize", "params": about},
            {"method": "notifications/initialized"},
            {"id": 2, "method": "tools/call", "params": {"name": name, "arguments": arguments}},
        ]
        lines = "".join(json.dumps({"jsonrpc": "2.0", **message}) + "\n" for message in messages)
        done = subprocess.run(
            [server["command"], *server["args"]],
            input=lines.encode(),
            capture_output=True,
            cwd=self.project,
            env=self.environment,
            timeout=HOOK_SECONDS,
            check=True,
        )
        answers = {answer.get("id"): answer for answer in map(json.loads, done.stdout.splitlines())}
        return "\n".join(part["text"] for part in answers[2]["result"]["content"])
