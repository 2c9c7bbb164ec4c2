from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lorehooks.clients import output
from lorehooks.clients.output import Column, cells, clip, jsonable, say, say_json, say_table, table_lines

COLUMNS = [Column("uri", elastic=True), Column("n", right=True), Column("about", elastic=True)]


def test_chinese_takes_two_cells_and_combining_marks_none():
    assert cells("退款") == 4
    assert cells("e\u0301") == 1
    assert cells("abc") == 3


def test_clip_never_ends_inside_a_wide_character():
    assert clip("退款回调是幂等的", 7) == "退款回…"
    assert cells(clip("退款回调是幂等的", 8)) <= 8
    assert clip("short", 8) == "short"


@given(st.text(), st.integers(1, 40))
def test_clip_fits_whatever_the_text(text, width):
    assert cells(clip(text, width)) <= width


def test_a_table_fits_the_terminal_by_narrowing_its_elastic_columns():
    rows = [["project://checkout_api/webhooks/refunds", 12, "退款回调按事件编号幂等，测试要重放同一事件两次"]]
    lines = table_lines(COLUMNS, rows, 60)
    assert max(map(cells, lines)) <= 60
    assert "12" in lines[1]
    assert lines[1].count("…") == 2


def test_columns_of_a_table_stand_under_each_other_with_chinese_text():
    head, *body = table_lines(COLUMNS, [["中文", 5, "x"], ["latin", 123, "y"]], None)
    places = {cells(line[: line.index(mark)]) for line, mark in zip(body, "xy", strict=True)}
    assert places == {cells(head[: head.index("about")])}


def test_a_pipe_gets_whole_fields():
    long = "w" * 300
    assert long in table_lines(COLUMNS, [["u", 1, long]], None)[1]


def test_a_field_with_line_ends_stays_one_row():
    assert len(table_lines(COLUMNS, [["u", 1, "two\nlines\r\nthree"]], None)) == 2


def test_an_empty_table_says_so(capsys):
    say_table(COLUMNS, [], empty="No memories.")
    assert capsys.readouterr().out == "No memories.\n"


def test_terminal_escapes_of_a_memory_are_not_printed(capsys):
    say("before \x1b[2J\x1b]0;title\x07\x9b31m after\u202e")
    assert capsys.readouterr().out == "before  after\n"


@given(st.text())
def test_json_says_the_text_exactly_and_holds_no_control_character(text):
    with pytest.MonkeyPatch.context() as patch:
        printed: list[str] = []
        patch.setattr(output.click, "echo", printed.append)
        say_json({"text": text})
    assert json.loads(printed[0]) == {"text": text}
    assert not any(0x7F <= ord(c) <= 0x9F or c in "\x1b\u202e\u200b" or 0xD800 <= ord(c) <= 0xDFFF for c in printed[0])


@dataclass(frozen=True, slots=True)
class _Inner:
    path: Path
    tags: tuple[str, ...]


def test_dataclasses_become_objects():
    assert jsonable([_Inner(Path("/a"), ("x",))]) == [{"path": "/a", "tags": ["x"]}]


def test_progress_is_silent_where_nobody_watches(capsys, monkeypatch):
    monkeypatch.setattr(output, "PATIENCE_SECONDS", -1)
    with output.Progress() as progress:
        progress.begin("Rebuilding", 1)()
    assert capsys.readouterr() == ("", "")
