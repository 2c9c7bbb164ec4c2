"""The records of hook runs: pruned by age and size, and never in anyone's way."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from lorehooks.core.clock import to_iso
from lorehooks.core.runs import Opened, Recorder, Run

NOW = datetime(2031, 5, 20, 12, tzinfo=UTC)
PROMPT = "x" * 20_000


@pytest.fixture
def recorder(tmp_path: Path) -> Iterator[Recorder]:
    opened = Recorder(tmp_path / "records.db", lambda: NOW)
    yield opened
    opened.close()


def run(at: datetime, prompt: str = "", output: bytes = b"") -> Run:
    return Run(to_iso(at), "claudecode", "prompt.submit", "s-1", 1, None, "", 1.0, {"prompt": prompt}, output=output)


def count(recorder: Recorder, table: str) -> int:
    assert recorder.flush()
    return int(recorder.database.query(f"SELECT count(*) FROM {table}")[0][0])


def test_what_is_older_than_the_days_goes_with_the_bytes_that_only_it_sent(recorder: Recorder) -> None:
    old, new = NOW - timedelta(days=31), NOW - timedelta(days=29)
    recorder.add(lambda: [run(old, output=b"old"), run(old, output=b"both"), run(new, output=b"both")])
    for at in (old, new):
        recorder.opened(Opened(to_iso(at), "claudecode", "s-1", "q-1", "core://agent", "passed"))
    recorder.prune(30, 200)
    assert count(recorder, "runs") == 1
    assert count(recorder, "opened") == 1
    assert [bytes(row[0]) for row in recorder.database.query("SELECT bytes FROM outputs")] == [b"both"]


def test_too_much_loses_its_oldest_quarter_and_no_more_although_the_file_stays_large(recorder: Recorder) -> None:
    """SQLite keeps the pages that a removal frees, so the file's own size would ask for one quarter after another."""
    recorder.add(lambda: [run(NOW, PROMPT) for _ in range(60)])
    assert count(recorder, "runs") == 60
    recorder.prune(30, 1)
    left = count(recorder, "runs")
    assert 40 <= left < 60
    assert recorder.database.query("SELECT min(id) FROM runs")[0][0] == 60 - left + 1
    recorder.prune(30, 1)
    recorder.prune(30, 1)
    assert count(recorder, "runs") == left
