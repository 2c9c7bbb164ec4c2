from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from lorehooks.core.embeddings import load_builtin

HERE = Path(__file__).resolve().parent


def module(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"recall_bench_{name}", HERE / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded


def figures(*, embedder: bool) -> dict[str, dict[str, float]]:
    run, score = module("run"), module("score")
    prompts = run.read(HERE / "prompts.jsonl")
    rows = {row["id"]: row for row in run.run(run.build(run.load_nodes(), embedder=embedder), prompts)}
    report, _ = score.report(prompts, rows)
    return dict(report)


@pytest.mark.skipif(load_builtin() is None, reason="no wordllama wheel for this platform")
def test_recall_with_its_defaults_holds_the_agreed_quality() -> None:
    found = figures(embedder=True)
    assert found["all"]["f1"] >= 0.58
    assert found["all"]["silence"] >= 0.85
    assert found["chitchat"]["silence"] >= 0.9
    assert found["all"]["mrr"] >= 0.7


def test_without_a_model_recall_is_weaker_and_as_quiet() -> None:
    found = figures(embedder=False)
    assert found["all"]["f1"] >= 0.5
    assert found["all"]["silence"] >= 0.85
    assert found["all"]["mrr"] >= 0.65


def test_the_runner_writes_results_and_prints_the_table(tmp_path: Path) -> None:
    results = tmp_path / "results.jsonl"
    done = subprocess.run([sys.executable, HERE / "run.py", results], capture_output=True, text=True, check=True)
    assert "silence" in done.stdout
    assert len(results.read_text(encoding="utf-8").splitlines()) == 200
