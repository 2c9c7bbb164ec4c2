from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).parents[1] / "bench" / "kill_rounds.py"


def test_no_acknowledged_write_is_lost_when_the_writer_is_killed(tmp_path: Path) -> None:
    """Three short rounds; `make soak` runs twenty of a thousand writes each."""
    command = [sys.executable, str(SCRIPT), "--rounds", "3", "--writes", "100"]
    run = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300, cwd=tmp_path)
    assert run.stderr == ""
    outcome = json.loads(run.stdout)
    assert [one["problems"] for one in outcome["rounds"]] == [[], [], []], outcome["seed"]
    assert all(one["acknowledged"] >= 100 and one["kills"] >= 1 for one in outcome["rounds"])
    assert run.returncode == 0
