"""Acknowledged writes against `kill -9`: a child writes and says so, the parent kills it at random moments and compares.

Each round starts with an empty home and starts writers, one after the other, until enough writes are acknowledged. After
each kill the memory must be exactly what was acknowledged, or that and the one write that was under way, and `verify`
must be clean. Run: kill_rounds.py --rounds 20 --writes 1000
"""

from __future__ import annotations

import argparse
import itertools
import json
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

from lorehooks.core.model import NodeDraft, NodePatch, Origin
from lorehooks.core.rebuild import verify
from lorehooks.core.store import Store
from lorehooks.core.uri import parse
from lorehooks.core.writes import create, delete, move, update

PERSON = Origin("cli")
FILLER = "a memory of some length, so that a write spans pages " * 20
Effect = dict[str, str | None]
"""What a write does: address to new content, or to None where the memory is gone."""


def write_until_killed(path: Path, life: int) -> None:
    """Create, update, move and delete for ever; print the effect of each write before it, and `done` after it."""
    store = Store(path)
    top = f"w://life{life}"

    def step(effect: Effect, verb: Callable[[], object]) -> None:
        print(json.dumps(effect), flush=True)
        verb()
        print("done", flush=True)

    step({top: "0"}, lambda: create(store, NodeDraft(top, "0"), PERSON))
    for number in itertools.count(1):
        new, text = f"{top}/n{number}", f"{number} {FILLER}"
        step({new: text}, lambda new=new, text=text: create(store, NodeDraft(new, text), PERSON))
        count = NodePatch(content=str(number))
        step({top: str(number)}, lambda count=count: update(store, parse(top), count, PERSON))
        if number % 3 == 0:
            moved = f"{top}/moved{number}"
            step({new: None, moved: text}, lambda new=new, moved=moved: move(store, parse(new), moved, PERSON))
        if number % 3 == 1:
            step({new: None}, lambda new=new: delete(store, parse(new), PERSON))


def one_life(path: Path, life: int, chance: random.Random) -> tuple[list[Effect], Effect, int]:
    """Start a writer and kill it after a random number of writes or a random time.

    Answers the effects it acknowledged, that of the write under way, and its exit code.
    """
    command = [sys.executable, __file__, "--write", str(path), "--life", str(life)]
    done: list[Effect] = []
    under_way: Effect = {}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout is not None
        enough = chance.randint(1, 120)
        by_time = threading.Timer(chance.uniform(0.0, 0.4) if chance.random() < 0.3 else 60, writer.kill)
        by_time.start()
        for line in writer.stdout:
            if line == "done\n":
                done.append(under_way)
                under_way = {}
            elif line.endswith("\n"):
                under_way = json.loads(line)
            if len(done) == enough:
                time.sleep(chance.uniform(0, 0.004))  # into the middle of a write
                writer.kill()
        by_time.cancel()
        writer.kill()
    return done, under_way, writer.returncode


def applied(state: dict[str, str], effect: Effect) -> dict[str, str]:
    return {address: content for address, content in (state | effect).items() if content is not None}


def run_round(folder: Path, writes: int, chance: random.Random) -> dict[str, object]:
    """One empty home, and as many lives as it takes."""
    path = folder / "lore.db"
    state: dict[str, str] = {}
    acknowledged = 0
    for life in itertools.count(1):
        done, under_way, code = one_life(path, life, chance)
        acknowledged += len(done)
        for effect in done:
            state = applied(state, effect)
        store = Store(path)
        problems = list(verify(store).problems)
        actual = {node.uri: node.content for node in store.nodes() if not node.is_boot}
        store.close()
        if actual not in (state, applied(state, under_way)):
            differing = [uri for uri in actual.keys() | state.keys() if actual.get(uri) != state.get(uri)]
            problems.append(f"not as acknowledged: {', '.join(sorted(differing))}")
        if code != -signal.SIGKILL:
            problems.append(f"a writer ended by itself with code {code}")
        state = actual
        if problems or acknowledged >= writes:
            return {"acknowledged": acknowledged, "kills": life, "problems": problems}
    raise AssertionError  # the loop returns


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--rounds", type=int, default=20)
    arguments.add_argument("--writes", type=int, default=1000)
    arguments.add_argument("--seed", type=int, help="repeat a run's random choices (not its timing)")
    arguments.add_argument("--write", type=Path, help=argparse.SUPPRESS)
    arguments.add_argument("--life", type=int, default=0, help=argparse.SUPPRESS)
    chosen = arguments.parse_args()
    if chosen.write is not None:
        write_until_killed(chosen.write, chosen.life)
    seed = chosen.seed if chosen.seed is not None else random.SystemRandom().randrange(2**32)
    chance = random.Random(seed)
    rounds = []
    for _ in range(chosen.rounds):
        with tempfile.TemporaryDirectory() as folder:
            rounds.append(run_round(Path(folder), chosen.writes, chance))
        if rounds[-1]["problems"]:
            break
    print(json.dumps({"seed": seed, "rounds": rounds}, ensure_ascii=False))
    return 1 if any(outcome["problems"] for outcome in rounds) else 0


if __name__ == "__main__":
    sys.exit(main())
