"""The session ledger: read back after a restart, and never the reason why a session gets nothing."""

from __future__ import annotations

from pathlib import Path

from lorehooks.core.ledger import Ledger
from lorehooks.core.runs import Recorder


def ledger_of(recorder: Recorder) -> Ledger:
    return Ledger(recorder.database.query, recorder.put)


def test_a_session_is_read_back_as_it_was(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path / "records.db")
    session = ledger_of(recorder).session("codex", "s-1")
    session.begin_epoch()
    session.boot, session.boot_key, session.project = "rules", "key", "shop"
    session.note_shown("q-1", ["project://shop/cart"])
    ledger_of(recorder).keep(session, "2031-05-20T12:00:00.000Z")
    assert recorder.flush()
    again = ledger_of(recorder).session("codex", "s-1")
    recorder.close()
    assert (again.epoch, again.boot, again.boot_key, again.project) == (1, "rules", "key", "shop")
    assert again.shown == {"project://shop/cart": "q-1"}
    assert again.shown_in_epoch == {"project://shop/cart"}


def test_a_session_begins_anew_when_the_records_cannot_be_read(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path / "records.db")
    ledger = ledger_of(recorder)
    recorder.close()
    assert ledger.session("codex", "s-1").epoch == 0
    assert recorder.shown("q-1") is None
