"""Hook program, bridge and the real service together: every recorded payload, and the faults that a user can meet."""

from __future__ import annotations

import json
import os
import signal
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from lorehooks.hooks import bridge, layout

CASES = sorted((Path(__file__).parents[1] / "cases" / "in").iterdir())
HUGE = {
    "huge": {"session_id": "s-1", "cwd": "/tmp/p", "prompt": "部署方案 and more words " * 100_000},
    "one long token": {"session_id": "s-1", "cwd": "/tmp/p", "prompt": "a" * 3_000_000},
}


def check(ran, event: str) -> None:
    assert (ran.code, ran.err) == (0, b"")
    if ran.out:
        output = ran.answer["hookSpecificOutput"]
        assert output["hookEventName"] == event
        assert isinstance(output["additionalContext"], str)


def test_every_payload_goes_through_as_silence_or_one_document(real) -> None:
    payloads = {path.name: path.read_bytes() for path in CASES}
    payloads |= {name: json.dumps(fields).encode() for name, fields in HUGE.items()}
    payloads["deep"] = b'{"session_id":"s-1","prompt":' + b"[" * 100_000 + b"]" * 100_000 + b"}"
    for data in payloads.values():
        check(real.hook("prompt.submit", data), "UserPromptSubmit")
        check(real.hook("UserPromptSubmit", data, client="codex"), "UserPromptSubmit")
        check(real.hook("UserPromptSubmit", data, client="zcode"), "UserPromptSubmit")
    assert real.misses() == []


@pytest.mark.parametrize("source", ["startup", "clear", "compact", "unknown-new"])
def test_session_start_brings_a_boot_block(real, source: str) -> None:
    ran = real.hook("session.start", json.dumps({"session_id": "s", "cwd": "/tmp", "source": source}).encode())
    check(ran, "SessionStart")
    assert ran.out


def test_first_prompts_at_once_on_a_cold_home_start_one_service(place, wait_for) -> None:
    layout.lay(place.home)
    place.limits(8000, 8000)
    data = [json.dumps({"session_id": f"s-{n}", "cwd": "/tmp", "source": "startup"}).encode() for n in range(8)]
    with ThreadPoolExecutor(8) as pool:
        ran = list(pool.map(lambda one: place.hook("session.start", one), data))
    for one in ran:
        check(one, "SessionStart")
        assert one.out
    assert place.home.log.read_text().count("serves") == 1


def test_halted_service_leaves_the_ready_boot_bytes(real, wait_for) -> None:
    wait_for((real.home.boot / "claudecode").exists, "ready boot bytes")
    wait_for((real.home.run / "limits").exists, "limits")
    real.limits(500, 500)
    ready = (real.home.boot / "claudecode").read_bytes()
    os.kill(real.pid(), signal.SIGSTOP)
    ran = real.hook("session.start", b'{"session_id": "s", "cwd": "/tmp", "source": "startup"}')
    check(ran, "SessionStart")
    assert ran.out == ready
    assert real.hook("prompt.submit").is_silent


def test_service_of_a_newer_release_renews_the_files_of_its_home(place, wait_for) -> None:
    layout.lay(place.home)
    (place.home.bin / "hook.py").write_text("print(1)")
    assert bridge.start_service(str(place.home.root), 30)
    wait_for(lambda: (place.home.bin / "hook.py").read_text() != "print(1)", "a new hook program")
