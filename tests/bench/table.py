"""The figures of `bench.py` as the page docs/benchmarks.md."""

from __future__ import annotations

from typing import Any

_HEAD = """# Benchmarks

Written by `make bench` from `docs/benchmarks.json`; do not edit.

Measured {at} on {processor}, {processors} processors, {system}, Python {python}; load before: {load}. It took {seconds} s.
Times are milliseconds of wall clock. Memories and prompts are invented, in English and Chinese (`tests/support/synthetic.py`);
every figure comes from the real hook program, bridge and service on a scratch home.
"""


def table(found: dict[str, Any]) -> str:
    """The whole page."""
    machine = found["machine"]
    load = " ".join(map(str, machine["load_before"]))
    head = _HEAD.format(**machine, load=load, seconds=found["seconds"])
    parts = [head, _hook(found), _recall(found), _other(found), _quality(found["quality"])]
    return "\n".join(parts)


def _rows(heads: list[str], rows: list[list[object]]) -> str:
    lines = [heads, ["---"] * len(heads), *rows]
    return "".join(f"| {' | '.join(map(str, line))} |\n" for line in lines)


def _spread(spread: dict[str, Any]) -> list[object]:
    return [spread["p50"], spread["p95"], spread["p99"], spread["count"]]


def _hook(found: dict[str, Any]) -> str:
    rows = []
    for size, one in found["hook"].items():
        rows.append([f"{int(size):,}", "bare interpreter", *_spread(one["bare"]), ""])
        rows.append([f"{int(size):,}", "hook, start to exit", *_spread(one["hook"]), one["ratio"]])
    return (
        "## A prompt's hook\n\nThe bare interpreter (`python -I -S -c pass`) and the hook program in turn, in the same run."
        " The ratio is that of the medians.\n\n"
        + _rows(["memories", "", "p50", "p95", "p99", "samples", "ratio"], rows)
    )


def _recall(found: dict[str, Any]) -> str:
    ways = ("one by one", "8 clients", "during a rebuild")
    rows = [[f"{int(size):,}", way, *_spread(one[way])] for size, one in found["recall"].items() for way in ways]
    starts = [[f"{int(size):,}", *one["cold start"].values(), one["rebuild"]] for size, one in found["recall"].items()]
    return (
        "## Recall\n\nA prompt through the service's own route over its Unix socket: parse, recall, block, record. The eight"
        " clients ask without a pause, so they wait for each other; during a rebuild one client asks every few"
        " milliseconds.\n\n"
        + _rows(["memories", "", "p50", "p95", "p99", "samples"], rows)
        + "\nFrom no service to the first answer to a prompt, until its index is complete, and a whole rebuild beside"
        " those prompts:\n\n"
        + _rows(["memories", "first answer", "which held the memory", "complete", "rebuild"], starts)
    )


def _other(found: dict[str, Any]) -> str:
    largest = f"{int(list(found['recall'])[-1]):,}"
    memory, first = found["memory"], found["first start"]
    return (
        f"## The rest, with {largest} memories\n\n"
        + _rows(
            ["", "p50", "p95", "p99", "samples"],
            [
                ["boot block of a new session", *_spread(found["boot"])],
                ["bridge, start to `initialize`", *_spread(found["bridge"])],
            ],
        )
        + f"\nResident memory of the service: {memory['before']} MB, {memory['after recalls']} MB after more recalls,"
        f" {memory['after a rebuild']} MB after another rebuild.\n"
        f"The very first start, which makes all vectors: {first['wall']} s ({first['processor']} s of processor time)"
        " until the last; prompts are answered by words meanwhile.\n"
    )


def _quality(quality: dict[str, Any]) -> str:
    return "## Recall quality\n\nThe labelled prompts of `tests/recall_bench` (dev), defaults.\n\n" + _rows(
        list(quality), [list(quality.values())]
    )
