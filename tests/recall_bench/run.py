"""Run recall with its default settings over the labelled prompts, write a results file and print the table.

    python tests/recall_bench/run.py [RESULTS.jsonl] [--misses] [--no-embedder]

`score.py`, `nodes.jsonl` and `prompts.jsonl` are vendored data: 160 memories of an invented engineer and 200 prompts.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from lorehooks.core.clock import to_iso
from lorehooks.core.embeddings import NoCache, load_builtin
from lorehooks.core.index import RecallIndex
from lorehooks.core.model import Node, RecallQuery
from lorehooks.core.recall import recall
from lorehooks.core.settings import Settings
from lorehooks.core.views import rule_views

HERE = Path(__file__).resolve().parent
NOW = datetime(2025, 7, 4, 9, 0, tzinfo=UTC)
RANKED = 20


def read(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]


def load_nodes(path: Path = HERE / "nodes.jsonl") -> list[Node]:
    """The memories, all written at the same moment, so that age decides nothing."""
    moment = to_iso(NOW)
    return [
        Node(
            f"node-{place:04}", row["uri"], row["content"], row["priority"], row["disclosure"],
            tuple(row["glossary"]), moment, moment, moment,
        )
        for place, row in enumerate(read(path))
    ]  # fmt: skip


def build(nodes: Sequence[Node], *, embedder: bool = True) -> RecallIndex:
    index = RecallIndex()
    for node in nodes:
        index.put(node, rule_views(node))
    model = load_builtin() if embedder else None
    if model is not None:
        index.attach_embedder(model, NoCache())
        index.embed_some(index.pending())
    return index


def run(index: RecallIndex, prompts: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """One result a prompt, as `score.py` reads them."""
    settings = Settings()
    results = []
    for prompt in prompts:
        start = time.perf_counter()
        found = recall(index, RecallQuery(prompt["prompt"], project=prompt["project"], limit=RANKED), settings, NOW)
        results.append({
            "id": prompt["id"],
            "shown": [candidate.uri for candidate in found.shown],
            "ranked": [candidate.uri for candidate in found.candidates],
            "ms": round((time.perf_counter() - start) * 1000, 3),
        })  # fmt: skip
    return results


def main() -> int:
    parser = argparse.ArgumentParser(description="Recall quality on the labelled prompts")
    parser.add_argument("results", nargs="?", default="recall_results.jsonl", help="where the results file goes")
    parser.add_argument("--misses", action="store_true", help="list the prompts that went wrong")
    parser.add_argument("--no-embedder", action="store_true", help="without vectors, as where there is no model wheel")
    given = parser.parse_args()
    index = build(load_nodes(), embedder=not given.no_embedder)
    prompts = read(HERE / "prompts.jsonl")
    run(index, prompts[:5])  # the first prompts pay for lazy tables
    rows = run(index, prompts)
    Path(given.results).write_text(
        "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8"
    )
    command = [sys.executable, str(HERE / "score.py"), given.results, *(["--misses"] if given.misses else [])]
    return subprocess.run(command, check=False).returncode


if __name__ == "__main__":
    raise SystemExit(main())
