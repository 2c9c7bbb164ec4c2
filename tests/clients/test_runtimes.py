from __future__ import annotations

from pathlib import Path

import pytest

from lorehooks.clients.runtimes import RUNTIMES
from lorehooks.core.budget import Budget

ALL = pytest.mark.parametrize("runtime", RUNTIMES.values(), ids=RUNTIMES)


@pytest.mark.parametrize(
    ("client", "host_cap"),
    [("claudecode", Budget(10_000, "utf16")), ("codex", Budget(10_000, "bytes")), ("zcode", Budget(24_000, "bytes"))],
)
def test_blocks_stay_below_a_host_s_own_cap_in_its_own_unit(client, host_cap):
    for ours in (RUNTIMES[client].boot_budget, RUNTIMES[client].recall_budget):
        assert ours.unit == host_cap.unit
        assert ours.limit < host_cap.limit


@ALL
def test_a_recall_block_takes_less_than_a_boot_block(runtime):
    assert runtime.recall_budget.limit < runtime.boot_budget.limit


@ALL
def test_every_runtime_has_the_two_events_and_an_answer_for_them(runtime):
    assert {"session.start", "prompt.submit"} <= set(runtime.events)
    assert runtime.contexts <= set(runtime.events)


@ALL
def test_a_host_waits_at_least_two_seconds_longer_than_our_settings_allow(runtime):
    """The bounds of `hooks.*_timeout_ms` end at 8 s; Hermes alone gives up then, and its plugin file waits for less."""
    waits = [ms for event, ms in runtime.host_timeout_ms.items() if event in runtime.contexts]
    assert all(ms >= (8_000 if runtime.client_type == "hermes" else 10_000) for ms in waits)
    assert runtime.form == "plugin" or {"session.start", "prompt.submit"} <= set(runtime.host_timeout_ms)


@ALL
def test_a_host_s_timeout_is_whole_seconds(runtime):
    assert all(ms > 0 and ms % 1000 == 0 for ms in runtime.host_timeout_ms.values())


def test_only_open_code_names_the_phase():
    assert [client for client, runtime in RUNTIMES.items() if runtime.names_phase] == ["opencode"]


@pytest.mark.parametrize(
    ("client", "environment", "home"),
    [
        ("claudecode", {}, "/home/ann/.claude"),
        ("claudecode", {"CLAUDE_CONFIG_DIR": "/x y/z"}, "/x y/z"),
        ("claudecode", {"CLAUDE_CONFIG_DIR": " "}, "/home/ann/.claude"),
        ("opencode", {}, "/home/ann/.config/opencode"),
        ("opencode", {"XDG_CONFIG_HOME": "/c"}, "/c/opencode"),
        ("pi", {"PI_CODING_AGENT_DIR": "/p"}, "/p"),
        ("zcode", {}, "/home/ann/.zcode"),
    ],
)
def test_a_runtime_s_home_follows_its_variable(client, environment, home):
    assert RUNTIMES[client].home({"HOME": "/home/ann"} | environment) == Path(home)
