"""That the benches work; what they find on a busy machine means nothing, so nothing here is held to milliseconds."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

HERE = Path(__file__).resolve().parent


def run(script: str, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(HERE / script), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)


@pytest.fixture
def soak(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(HERE))
    spec = importlib.util.spec_from_file_location("soak_bench", HERE / "soak.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "soak_bench", module)
    spec.loader.exec_module(module)
    return module


def test_the_bench_measures_everything_and_writes_both_files(tmp_path: Path) -> None:
    done = run("bench.py", "--quick", "--out", tmp_path)
    assert done.returncode == 0, done.stderr
    found = json.loads((tmp_path / "benchmarks.json").read_text(encoding="utf-8"))
    assert set(found["hook"]) == {"0", "30"}
    assert found["hook"]["30"]["ratio"] > 0
    assert set(found["recall"]["30"]) == {"one by one", "8 clients", "during a rebuild", "rebuild", "cold start"}
    assert found["recall"]["30"]["cold start"]["with memory"] == "1 of 1"
    assert found["quality"]["f1"] >= 0.58
    page = (tmp_path / "benchmarks.md").read_text(encoding="utf-8")
    assert f"| {found['hook']['30']['hook']['p50']} |" in page
    assert f"| {found['boot']['p95']} |" in page


@pytest.mark.slow
def test_half_a_minute_of_mixed_use_loses_nothing_and_does_not_grow(tmp_path: Path) -> None:
    page = tmp_path / "soak.md"
    done = run(
        "soak.py",
        "--seconds",
        "30",
        "--memories",
        "1000",
        "--rounds",
        "1",
        "--writes",
        "50",
        "--no-limits",
        "--out",
        page,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    text = page.read_text(encoding="utf-8")
    assert "Errors: 0. Writes lost: 0. `lore verify`: 0 problems." in text
    assert "| prompt |" in text
    assert "| create |" in text


def test_the_soak_tells_what_is_wrong(soak: ModuleType) -> None:
    found = {
        "errors": ["prompt: TimeoutError: x"],
        "lost": ["soak1://n5"],
        "problems": ["nodes: 1 rows missing"],
        "rss": {"early": 100.0, "end": 120.0, "growth": 1.2},
        "times": {"prompt": soak.Spread(5.0, 30.0, 40.0, 100)},
    }
    killed = {"rounds": [{"acknowledged": 10, "kills": 1, "problems": ["not as acknowledged: w://a"]}]}
    assert len(soak.wrong(found, killed, limits=True)) == 6
    assert len(soak.wrong(found, killed, limits=False)) == 5
