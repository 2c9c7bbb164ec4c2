"""Talks to `codex app-server`, the interface that Codex's own programs use: JSON-RPC, a message a line.

No model and no account are needed. Its plugins are left out for the run, since with them it looks for updates on the network.
"""

from __future__ import annotations

import contextlib
import json
import queue
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from lorehooks.core.errors import LoreError

SECONDS = 30.0
"""For the whole conversation."""


class AppServer:
    """One conversation. Raises LoreError when the program does not start, answers with an error, or takes too long."""

    def __init__(self, codex: Path, environment: Mapping[str, str], seconds: float = SECONDS) -> None:
        self._end = time.monotonic() + seconds
        self._number = 0
        try:
            self._process = subprocess.Popen(
                [codex, "app-server", "-c", "features.plugins=false"],
                cwd="/",
                env=dict(environment),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
            )
        except OSError as error:
            raise LoreError(f"{codex} cannot be started ({error.strerror})", code="host_failed") from error
        self._lines: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def __enter__(self) -> Self:
        try:
            about = {"name": "lorehooks", "title": "lorehooks", "version": "0"}
            self.ask("initialize", {"clientInfo": about, "capabilities": {}})
            self._send({"method": "initialized"})
        except BaseException:
            self._close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._close()

    def hooks(self) -> list[dict[str, Any]]:
        """All hooks outside of projects, with their hashes and whether they are trusted."""
        entries = self.ask("hooks/list", {"cwds": ["/"]}).get("data", [])
        return [hook for entry in entries for hook in entry.get("hooks", [])]

    def write(self, edits: Sequence[tuple[str, Any]]) -> None:
        """Merge values into the user's `config.toml`, by dotted key; None takes one out."""
        made = [{"keyPath": key, "value": value, "mergeStrategy": "upsert"} for key, value in edits]
        self.ask("config/batchWrite", {"edits": made})

    def ask(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        """The result of one request."""
        self._number += 1
        self._send({"id": self._number, "method": method, "params": params})
        while True:
            try:
                line = self._lines.get(timeout=max(0.0, self._end - time.monotonic()))
            except queue.Empty:
                raise LoreError(f"codex app-server did not answer {method} in time", code="host_failed") from None
            if not line:
                raise LoreError(f"codex app-server ended without an answer to {method}", code="host_failed")
            try:
                message = json.loads(line)
            except ValueError:
                continue
            if isinstance(message, dict) and message.get("id") == self._number and "method" not in message:
                return self._result(method, message)

    @staticmethod
    def _result(method: str, message: Mapping[str, Any]) -> dict[str, Any]:
        result = message.get("result")
        if isinstance(result, dict):
            return result
        error = message.get("error")
        said = error.get("message") if isinstance(error, dict) else error
        raise LoreError(f"codex app-server refused {method}: {said}", code="host_failed")

    def _send(self, message: Mapping[str, Any]) -> None:
        if self._process.stdin is None:
            raise AssertionError
        try:
            self._process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
            self._process.stdin.flush()
        except OSError as error:
            raise LoreError("codex app-server ended early", code="host_failed") from error

    def _read(self) -> None:
        if self._process.stdout is not None:
            for line in self._process.stdout:
                self._lines.put(line)
        self._lines.put(b"")

    def _close(self) -> None:
        """It ends with its stdin; where it does not, it is ended."""
        if self._process.stdin is not None:
            with contextlib.suppress(OSError):
                self._process.stdin.close()
        for end in (self._process.terminate, self._process.kill):
            try:
                self._process.wait(5)
                break
            except subprocess.TimeoutExpired:
                end()
        self._process.wait()
        self._reader.join(5)
        if self._process.stdout is not None:
            self._process.stdout.close()
