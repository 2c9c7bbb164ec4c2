"""The trace of sessions without memory: read leniently, and never larger than a trace should be."""

from __future__ import annotations

import pytest

from lorehooks.hooks.misses import Misses

LINE = "1925000000000 claudecode prompt.submit timeout\n"


def test_lines_that_are_none_are_passed_over(tmp_path):
    misses = Misses(tmp_path / "misses.log")
    misses.path.write_bytes(b"\xff\n\nnot a line\n" + LINE.encode() + b"1 2\n")
    misses.add("codex", "session.start", "made of words")
    assert [(miss.client_type, miss.reason) for miss in misses.read()] == [
        ("claudecode", "timeout"),
        ("codex", "made_of_words"),
    ]


def test_a_file_that_has_grown_keeps_its_newer_lines(tmp_path):
    misses = Misses(tmp_path / "misses.log")
    misses.path.write_text(LINE * 20_000)
    misses.add("codex", "session.start", "breaker")
    misses.cut()
    assert misses.path.stat().st_size < 200_000
    kept = misses.read()
    assert kept[0].client_type == "claudecode"
    assert kept[-1].reason == "breaker"


@pytest.mark.parametrize("content", [b"", b"x" * 500_000, LINE.encode() + b"x" * 500_000])
def test_cutting_what_is_no_log_fails_nobody(tmp_path, content):
    misses = Misses(tmp_path / "misses.log")
    misses.path.write_bytes(content)
    misses.cut()
    assert misses.path.stat().st_size <= 256_000


def test_a_folder_that_is_gone_costs_the_line_only(tmp_path):
    misses = Misses(tmp_path / "gone" / "misses.log")
    misses.add("codex", "session.start", "timeout")
    misses.cut()
    assert misses.read() == []
