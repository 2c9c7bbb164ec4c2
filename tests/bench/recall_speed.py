"""How long recall takes, prompt by prompt, over invented memories of several sizes.

    python tests/bench/recall_speed.py [SIZE ...]

`measure` is what `bench.py` calls. Each size is measured in a process of its own, so that the memory one needs is not
hidden by what another left behind.
"""

from __future__ import annotations

import gc
import json
import subprocess
import sys
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TypedDict

HERE = Path(__file__).resolve().parent
SIZES = (100, 1_000, 10_000)
PROMPTS = 1_000
NOW = datetime(2026, 1, 1, tzinfo=UTC)


class Figures(TypedDict):
    """Times in milliseconds of wall clock, except `load_s` and `embed_s`; memory is what the index adds, in MB."""

    memories: int
    p50: float
    p95: float
    p99: float
    put: float
    load_s: float
    embed_s: float
    index_mb: float


def measure(sizes: Sequence[int] = SIZES) -> list[Figures]:
    """One set of figures for each number of memories."""
    found: list[Figures] = []
    for size in sizes:
        command = [sys.executable, str(HERE / "recall_speed.py"), "--one", str(size)]
        found.append(json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout))
    return found


def measure_one(size: int) -> Figures:
    """Load `size` memories, embed them, ask `PROMPTS` prompts."""
    sys.path.insert(0, str(HERE.parent / "support"))
    from synthetic import synthetic_nodes, synthetic_prompts

    from lorehooks.core.embeddings import NoCache, load_builtin
    from lorehooks.core.index import RecallIndex
    from lorehooks.core.model import RecallQuery
    from lorehooks.core.recall import recall
    from lorehooks.core.settings import Settings
    from lorehooks.core.views import rule_views

    nodes, prompts, settings = synthetic_nodes(size, 1), synthetic_prompts(PROMPTS, 2), Settings()
    project = nodes[0].uri.split("/")[2]
    before = _resident_mb()
    index = RecallIndex()
    start = time.perf_counter()
    for node in nodes:
        index.put(node, rule_views(node))
    loaded = time.perf_counter()
    model = load_builtin()
    if model is not None:
        index.attach_embedder(model, NoCache())
        while index.embed_some(64):
            pass
    embedded = time.perf_counter()
    for prompt in prompts[:20]:
        recall(index, RecallQuery(prompt, project=project), settings, NOW)
    gc.collect()
    after = _resident_mb()
    times = sorted(
        _timed(lambda prompt=prompt: recall(index, RecallQuery(prompt, project=project), settings, NOW))  # type: ignore[misc]
        for prompt in prompts
    )
    puts = sorted(_timed(lambda node=node: index.put(node, rule_views(node))) for node in nodes[:50])  # type: ignore[misc]
    return Figures(
        memories=size,
        p50=round(times[len(times) // 2], 2),
        p95=round(times[int(len(times) * 0.95)], 2),
        p99=round(times[int(len(times) * 0.99)], 2),
        put=round(puts[len(puts) // 2], 2),
        load_s=round(loaded - start, 2),
        embed_s=round(embedded - loaded, 2),
        index_mb=round(after - before, 1),
    )


def _timed(call: object) -> float:
    start = time.perf_counter()
    call()  # type: ignore[operator]
    return (time.perf_counter() - start) * 1000


def _resident_mb() -> float:
    """Resident memory of this process; 0 where /proc does not say."""
    try:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    except OSError:
        return 0.0
    return pages * 4096 / 1e6


def main() -> int:
    if sys.argv[1:2] == ["--one"]:
        print(json.dumps(measure_one(int(sys.argv[2]))))
        return 0
    for row in measure([int(size) for size in sys.argv[1:]] or SIZES):
        print("  ".join(f"{name} {value}" for name, value in row.items()))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
