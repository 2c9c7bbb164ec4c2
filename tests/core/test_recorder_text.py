from __future__ import annotations

from pathlib import Path

from lorehooks.core.runs import Opened, Recorder


def test_half_a_surrogate_pair_from_a_host_costs_no_record(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path / "records.db")
    recorder.opened(Opened("2030-01-01T00:00:00.000Z", "pi", "s \ud83d", "q", "w://a", "none"))
    recorder.opened(Opened("2030-01-01T00:00:01.000Z", "pi", "s", "q", "w://b", "none"))
    assert recorder.flush()
    assert [tuple(row) for row in recorder.database.query("SELECT session_id, uri FROM opened ORDER BY at")] == [
        ("s \ufffd", "w://a"), ("s", "w://b"),
    ]  # fmt: skip
    recorder.close()
