"""How quick everything a user waits for is, and how good recall is. Writes docs/benchmarks.json and the table beside it.

    python tests/bench/bench.py [--quick] [--out FOLDER]

Everything is measured on scratch homes with the real hook program, bridge and service. `--quick` takes few samples of small
memories, to see that it works; its figures mean nothing.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
from scratch import (  # noqa: E402
    Caller,
    Spread,
    cpu_seconds,
    first_project,
    prompt_payload,
    prompts,
    resident_mb,
    running,
    scratch_home,
    timed,
    together,
    wait_for,
)
from table import table  # noqa: E402

from lorehooks.core.home import Home  # noqa: E402
from lorehooks.hooks import service  # noqa: E402

CLIENTS = 8
PAUSE = 0.005
"""Seconds between two prompts during a rebuild: prompts without a pause would only measure each other."""


@dataclass(frozen=True, slots=True)
class Plan:
    """Sizes of memories and numbers of samples."""

    sizes: tuple[int, ...] = (100, 1_000, 10_000)
    starts: int = 150
    prompts: int = 1_000
    colds: int = 5


QUICK = Plan(sizes=(30,), starts=3, prompts=16, colds=1)


def measure(plan: Plan, say: Callable[[str], None] = lambda _: None) -> dict[str, Any]:
    """All figures. Times are milliseconds of wall clock."""
    began = time.perf_counter()
    found: dict[str, Any] = {"machine": machine(), "hook": {}, "recall": {}}
    for size in (0, *plan.sizes):
        say(f"{size} memories")
        with scratch_home(size) as home:
            if size == plan.sizes[-1]:
                found["first start"] = first_start(home)
            with running(home) as pid:
                if size in (0, *plan.sizes[-2:]):
                    found["hook"][str(size)] = hook_starts(home, plan.starts)
                if size:
                    found["recall"][str(size)] = recalls(home, plan.prompts)
                if size == plan.sizes[-1]:
                    found["boot"] = boots(home, plan.starts)
                    found["bridge"] = bridges(home, plan.starts // 5 + 1)
                    found["memory"] = memory_use(home, pid, plan.prompts)
            if size:
                found["recall"][str(size)]["cold start"] = cold_starts(home, plan.colds)
    say("recall quality")
    found["quality"] = quality()
    found["seconds"] = round(time.perf_counter() - began)
    return found


def machine() -> dict[str, Any]:
    """What it was measured on, and how busy that was before."""
    model = next(
        (line.partition(":")[2].strip() for line in _lines("/proc/cpuinfo") if line.startswith("model name")),
        platform.processor(),
    )
    return {
        "at": datetime.now(UTC).isoformat(timespec="minutes"),
        "processor": model,
        "processors": os.cpu_count(),
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "load_before": [round(one, 2) for one in os.getloadavg()],
    }


def _lines(path: str) -> list[str]:
    try:
        return Path(path).read_text(encoding="utf-8").splitlines()
    except OSError:
        return []


def hook_starts(home: Home, count: int) -> dict[str, Any]:
    """The bare interpreter and the hook program in turn, from start to exit; the ratio is that of the medians."""
    python, program = str(home.bin / "python"), str(home.bin / "hook.py")
    data = prompt_payload(f"How do we deploy {first_project()}?", "bench")
    bare: list[float] = []
    hook: list[float] = []
    for _ in range(count):
        bare.append(_run([python, "-I", "-S", "-c", "pass"], b""))
        hook.append(_run([python, "-I", "-S", program, "claudecode", "prompt.submit"], data))
    of_bare, of_hook = Spread.of(bare), Spread.of(hook)
    return {"bare": asdict(of_bare), "hook": asdict(of_hook), "ratio": round(of_hook.p50 / of_bare.p50, 2)}


def _run(command: list[str], data: bytes) -> float:
    return timed(lambda: subprocess.run(command, input=data, capture_output=True, check=True))


def recalls(home: Home, count: int) -> dict[str, Any]:
    """Prompts through the hook's route of the service: one by one, by several clients without a pause, during a rebuild."""
    texts, cwd = prompts(count), f"/srv/{first_project()}"
    with Caller(home) as caller:
        for place, text in enumerate(texts[:30]):
            caller.prompt(text, f"warm-{place}", cwd)
        one_by_one = [
            timed(lambda text=text, place=place: caller.prompt(text, f"one-{place // 20}", cwd))
            for place, text in enumerate(texts)
        ]
    at_once: list[float] = []
    rebuild: list[float] = []
    took: list[float] = []

    def client(number: int) -> None:
        with Caller(home) as caller:
            for place, text in enumerate(texts[number::CLIENTS]):
                session = f"client-{number}-{place // 20}"
                at_once.append(timed(lambda text=text, session=session: caller.prompt(text, session, cwd)))

    def build() -> None:
        with Caller(home) as caller:
            took.append(timed(lambda: caller.json("POST", "/api/maintenance/rebuild", {})))

    def ask() -> None:
        with Caller(home) as caller:
            for place, text in enumerate(texts * 100):
                session = f"rebuild-{place // 20}"
                rebuild.append(timed(lambda text=text, session=session: caller.prompt(text, session, cwd)))
                if took:
                    return
                time.sleep(PAUSE)

    together([lambda number=number: client(number) for number in range(CLIENTS)])
    together([build, ask])
    return {
        "one by one": asdict(Spread.of(one_by_one)),
        f"{CLIENTS} clients": asdict(Spread.of(at_once)),
        "during a rebuild": asdict(Spread.of(rebuild)),
        "rebuild": round(took[0]),
    }


def boots(home: Home, count: int) -> dict[str, Any]:
    """Session starts through the hook's route, each of a new session."""

    def start(number: int) -> float:
        fields = {"session_id": f"boot-{number}", "hook_event_name": "SessionStart", "source": "startup", "cwd": "/srv"}
        body = json.dumps(fields).encode()
        return timed(lambda: caller.ask("POST", "/hooks/v1/claudecode/SessionStart", body))

    with Caller(home) as caller:
        return asdict(Spread.of([start(number) for number in range(count)]))


def bridges(home: Home, count: int) -> dict[str, Any]:
    """From starting the MCP bridge to its answer to `initialize`."""
    command = [str(home.bin / "python"), "-I", "-S", str(home.bin / "bridge.py"), "claudecode"]
    params = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "bench", "version": "0"}}
    asked = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}).encode() + b"\n"

    def start() -> float:
        began = time.perf_counter()
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as bridge:
            assert bridge.stdin is not None
            assert bridge.stdout is not None
            bridge.stdin.write(asked)
            bridge.stdin.flush()
            answer = bridge.stdout.readline()
            took = (time.perf_counter() - began) * 1000
        if b'"result"' not in answer:
            raise RuntimeError(f"the bridge answered {answer!r}")
        return took

    return asdict(Spread.of([start() for _ in range(count)]))


def memory_use(home: Home, pid: int, count: int) -> dict[str, Any]:
    """Resident memory after so many recalls more and one rebuild more, in MB (10^6 bytes)."""
    before = resident_mb(pid)
    with Caller(home) as caller:
        for place, text in enumerate(prompts(count)):
            caller.prompt(text, f"memory-{place // 20}")
        after_recalls = resident_mb(pid)
        caller.json("POST", "/api/maintenance/rebuild", {})
    return {"before": round(before), "after recalls": round(after_recalls), "after a rebuild": round(resident_mb(pid))}


def first_start(home: Home) -> dict[str, Any]:
    """The first start on a memory whose vectors are yet to be made: until the index has them all, in seconds."""
    began = time.perf_counter()
    with running(home) as pid:
        return {"wall": round(time.perf_counter() - began, 1), "processor": round(cpu_seconds(pid), 1)}


def cold_starts(home: Home, count: int) -> dict[str, Any]:
    """From no service to the first answer to a prompt, and to an index with all vectors; the median of some starts.

    The prompt has 1.5 s left, as the hook program has when it had to start the service; not every answer holds a memory.
    """
    first: list[float] = []
    complete: list[float] = []
    remembered = 0
    project = first_project()
    for number in range(count):
        began = time.perf_counter()
        service.start(home)
        with Caller(home) as caller:
            answer = caller.prompt(f"What must I know about {project}?", f"cold-{number}", f"/srv/{project}", ms=1500)
            remembered += f"project://{project}".encode() in answer
            first.append((time.perf_counter() - began) * 1000)
            wait_for(lambda caller=caller: caller.get("/hooks/v1/state")["memory"]["index_ready"], "the index")
            complete.append((time.perf_counter() - began) * 1000)
        service.stop(home)
    first_answer, whole = round(sorted(first)[count // 2]), round(sorted(complete)[count // 2])
    return {"first answer": first_answer, "with memory": f"{remembered} of {count}", "complete": whole}


def quality() -> dict[str, Any]:
    """Recall on the labelled prompts of tests/recall_bench (split `dev`), by the groups of its scorer."""
    folder = HERE.parent / "recall_bench"
    with tempfile.TemporaryDirectory() as scratch:
        results, report = Path(scratch) / "results.jsonl", Path(scratch) / "report.json"
        for command in (
            [sys.executable, str(folder / "run.py"), str(results)],
            [sys.executable, str(folder / "score.py"), str(results), "--split", "dev", "--json", str(report)],
        ):
            subprocess.run(command, check=True, capture_output=True)
        groups = json.loads(report.read_text(encoding="utf-8"))["groups"]
    wanted = ("n", "precision", "recall", "f1", "silence", "mrr")
    return {name: round(groups["all"][name], 3) for name in wanted if name in groups["all"]}


def main() -> int:
    parser = argparse.ArgumentParser(description="Measure what a user waits for")
    parser.add_argument("--quick", action="store_true", help="few samples, small memories")
    parser.add_argument("--out", type=Path, default=HERE.parents[1] / "docs", help="folder of the two files")
    given = parser.parse_args()
    found = measure(QUICK if given.quick else Plan(), lambda text: print(text, file=sys.stderr, flush=True))
    given.out.mkdir(parents=True, exist_ok=True)
    (given.out / "benchmarks.json").write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    text = table(found)
    (given.out / "benchmarks.md").write_text(text, encoding="utf-8")
    print(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
