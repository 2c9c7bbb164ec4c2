"""`make try`: the main job on a scratch home, step by step, for a person's eyes. Exit code 1 when a step did not do what it says.

Everything runs as it does on a real machine: the `lore` command, the hook program through its registered command line with
Claude Code's payloads, the bridge that Claude Code starts for tools. What it started is ended, what it wrote removed.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lorehooks.clients import output
from lorehooks.core.blocks import RecallBlock, parse_recall
from lorehooks.core.home import Home
from lorehooks.hooks.replay import sent_text
from lorehooks.installers.registered import registered_command

SESSION = "5f0c2d6e-4b1a-4c7e-9a51-3d2e8f7b6a90"
RULES = "Ask before you delete anything. Run the tests before you say that something works."
MEMORIES: tuple[tuple[str, str, str, str], ...] = (
    (
        "project://checkout_api",
        "Payment service of the shop. Python, PostgreSQL, deployed by tag.",
        "When starting work in checkout-api",
        "checkout-api, checkout",
    ),
    (
        "project://checkout_api/webhooks",
        "Refund webhooks are idempotent by event.id. Tests must replay the same event twice and assert a single refund row.",
        "When changing refund or payment webhooks in checkout-api",
        "refund webhook, idempotency key, stripe",
    ),
    (
        "project://checkout_api/deploy",
        "上线前必须先在预发布环境跑冒烟测试，再打 tag。周五下午不发布。",
        "准备把 checkout-api 发布到生产环境时",
        "上线, 发布, 部署, deploy, release",
    ),
    (
        "preferences://commits",
        "Commit messages say why, in one sentence, in English.",
        "When writing a commit message",
        "commit message, 提交信息",
    ),
)
ENGLISH = "The refund webhook fires twice for one order. Where do I handle the idempotency key?"
CHINESE = "今天想上线 checkout，发布前还要做什么？"
UNRELATED = "Thanks, that looks good to me!"

_SECONDS_TO_END = 5.0
"""A service lets go of its home a moment before its process is gone."""


class TourError(Exception):
    """A step that did not do what it says."""


class Tour:
    """A scratch home and the programs that work on it."""

    def __init__(self, root: Path) -> None:
        self.home = Home(root / ".lore")
        self.project = root / "work" / "checkout-api"
        (self.project / ".git").mkdir(parents=True)
        self.environment = {
            **{name: os.environ[name] for name in ("PATH", "LANG", "LC_ALL", "TZ", "TMPDIR") if name in os.environ},
            "HOME": str(root),
            "LORE_HOME": str(self.home.root),
        }

    def lore(self, *arguments: str) -> bytes:
        """The stdout of a `lore` command. Raises TourError when it fails."""
        done = self._run([sys.executable, "-m", "lorehooks.installers.cli", *arguments], b"")
        if done.returncode:
            raise TourError(f"lore {arguments[0]} ended with {done.returncode}: {done.stderr.decode().strip()}")
        return done.stdout

    def lore_json(self, *arguments: str) -> Any:
        return json.loads(self.lore(*arguments, "--json"))

    def hook(self, event: str, **fields: str) -> bytes:
        """What Claude Code gets on stdout when it runs our registered command."""
        command = registered_command(self.home, "claudecode", event)
        payload = {"session_id": SESSION, "cwd": str(self.project), "hook_event_name": event, **fields}
        done = self._run(["/bin/sh", "-c", command], json.dumps(payload, ensure_ascii=False).encode())
        if done.returncode or done.stderr:
            raise TourError(f"the hook ended with {done.returncode}: {done.stderr.decode().strip()}")
        return done.stdout

    def tool(self, name: str, arguments: Mapping[str, str]) -> str:
        """The text of a tool call through the bridge, as Claude Code makes it."""
        client = {"name": "tour", "version": "1"}
        messages = (
            {
                "id": 1,
                "method": "initialize",
                "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client},
            },
            {"method": "notifications/initialized"},
            {"id": 2, "method": "tools/call", "params": {"name": name, "arguments": dict(arguments)}},
        )
        lines = "".join(json.dumps({"jsonrpc": "2.0", **message}) + "\n" for message in messages)
        bin_ = self.home.bin
        done = self._run([str(bin_ / "python"), "-I", "-S", str(bin_ / "bridge.py"), "claudecode"], lines.encode())
        answers = {answer.get("id"): answer for answer in map(json.loads, done.stdout.splitlines())}
        try:
            return str(answers[2]["result"]["content"][0]["text"])
        except (KeyError, IndexError, TypeError):
            raise TourError(f"the bridge answered {done.stdout.decode()!r}") from None

    def _run(self, command: list[str], data: bytes) -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(
            command, input=data, env=self.environment, cwd=self.project, capture_output=True, check=False, timeout=60
        )


def main() -> int:
    """Take the tour in a home that is gone afterwards; answers the exit code."""
    began = time.monotonic()
    root = Path(tempfile.mkdtemp(prefix="lore-tour-"))
    try:
        tour = Tour(root)
        try:
            _take(tour)
        finally:
            _end(tour)
    except TourError as error:
        output.note(f"This step failed: {error}", fg="red")
        return 1
    finally:
        shutil.rmtree(root, ignore_errors=True)
    output.say(
        f"\nDone in {time.monotonic() - began:.0f} s. The service was ended and the scratch home removed.", fg="green"
    )
    output.say("For your own agents: lore install")
    return 0


def _take(tour: Tour) -> None:
    _tell("A service for a memory of its own, in a scratch home")
    info = tour.lore_json("service", "start")
    _say(f"pid {info['pid']}, 127.0.0.1:{info['port']}, version {info['version']}")

    _tell("Some memories, English and Chinese, and a standing rule")
    for uri, content, disclosure, glossary in MEMORIES:
        tour.lore("node", "create", uri, content, "--disclosure", disclosure, "--glossary", glossary)
        _say(f"{uri}  {content}")
    tour.lore("node", "update", "core://agent", RULES)
    _say(f"core://agent  {RULES}")

    _tell("A session starts: Claude Code runs the hook, and this is put before the model")
    start = sent_text(tour.hook("SessionStart", source="startup"))
    _say(start)
    _check(RULES in start, "the standing rule stands in the boot block")

    _tell(f"A prompt: {ENGLISH}")
    sent = tour.hook("UserPromptSubmit", prompt=ENGLISH)
    block = _block(sent, "project://checkout_api/webhooks")

    _tell(f"A prompt in Chinese: {CHINESE}")
    _block(tour.hook("UserPromptSubmit", prompt=CHINESE), "project://checkout_api/deploy")

    _tell(f"A prompt that needs no memory: {UNRELATED}")
    silent = tour.hook("UserPromptSubmit", prompt=UNRELATED)
    _say(sent_text(silent) or "(nothing: no memory fits)")
    _check(not silent, "nothing is sent")

    _tell("The model opens the memory with the ids of its block, through the tools of the bridge")
    opened = tour.tool(
        "lore_get_node",
        {"uri": block.uris[0], "session_id": block.session_id, "query_id": block.query_id},
    )
    _say(opened)
    _check("event.id" in opened, "the tool shows the content")

    _tell("Afterwards: what this session was sent, and why")
    _say(tour.lore("replay", SESSION).decode())
    run = next(run for run in tour.lore_json("replay", SESSION)["runs"] if run["query_id"] == block.query_id)
    _check(tour.lore("replay", str(run["id"]), "--exact") == sent, "the record holds the exact bytes")
    _check([line["how"] for line in run["opened"]] == ["passed"], "the opened memory counts as used")
    tour.lore("node", "update", block.uris[0], "Refunds moved to another service.")
    again = tour.lore_json("replay", str(run["id"]), "--again", "--as-of-then")
    _check(
        again["same_bytes"], "asked again on the memory of then, it gives the same bytes, whatever was changed since"
    )


def _end(tour: Tour) -> None:
    """Stop the service; no process of the tour may be left."""
    if tour.home.run.exists():
        pid = tour.lore_json("service", "status").get("pid")
        tour.lore("service", "stop")
        if tour.lore_json("service", "status")["running"]:
            raise TourError("the service is still there")
        end = time.monotonic() + _SECONDS_TO_END
        while pid and _is_alive(pid) and time.monotonic() < end:
            time.sleep(0.02)


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except OSError:
        return False
    return True


def _block(sent: bytes, wanted: str) -> RecallBlock:
    text = sent_text(sent)
    _say(text or "(nothing)")
    block = parse_recall(text)
    if block is None or not block.uris or block.uris[0] != wanted:
        raise TourError(f"{wanted} should be the first memory shown")
    _check(block.session_id == SESSION and bool(block.query_id), "the block names its session and query")
    return block


def _check(holds: object, what: str) -> None:
    if not holds:
        raise TourError(f"it is not so that {what}")
    output.say(f"  ok: {what}", fg="green")


def _tell(text: str) -> None:
    output.say(f"\n{text}", bold=True)


def _say(text: str) -> None:
    for line in text.rstrip("\n").split("\n"):
        output.say(f"  {line}")


if __name__ == "__main__":
    sys.exit(main())
