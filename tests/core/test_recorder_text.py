from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from lorehooks.core import runs
from lorehooks.core.runs import Opened, Recorder
from lorehooks.core.secrets import mask


def test_half_a_surrogate_pair_from_a_host_costs_no_record(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path / "records.db")
    recorder.opened(Opened("2030-01-01T00:00:00.000Z", "pi", "s \ud83d", "q", "w://a", "none"))
    recorder.opened(Opened("2030-01-01T00:00:01.000Z", "pi", "s", "q", "w://b", "none"))
    assert recorder.flush()
    assert [tuple(row) for row in recorder.database.query("SELECT session_id, uri FROM opened ORDER BY at")] == [
        ("s \ufffd", "w://a"), ("s", "w://b"),
    ]  # fmt: skip
    recorder.close()


PIECES = st.sampled_from([
    "password", "pwd", "token", "密码", "=", ": ", "：", '"', " ", "\t", "\n", "hunter2-Xy9", "a1B2c3D4e5F6g7H8", "is",
    "ghp_" + "a1" * 18, "AKIA1234567890ABCDEF", "://user:", "s3cr3t!x", "@host", "-----BEGIN RSA PRIVATE KEY-----",
    "-----END RSA PRIVATE KEY-----", "the", "webhook", "eyJhbGciOiJI.eyJzdWIiOiIx.", "abcDEF123", "0123456789abcdef0123",
])  # fmt: skip
TEXT = st.lists(PIECES, max_size=7).map("".join)


@given(
    st.fixed_dictionaries({"a": TEXT, "list": st.lists(TEXT, max_size=4), "deep": st.fixed_dictionaries({"x": TEXT})})
)
def test_a_record_is_masked_text_by_text_however_quickly_it_is_looked_at(record: dict[str, Any]) -> None:
    alone = {
        "a": mask(record["a"]),
        "list": [mask(text) for text in record["list"]],
        "deep": {"x": mask(record["deep"]["x"])},
    }
    assert json.loads(runs._dump(record)) == alone
