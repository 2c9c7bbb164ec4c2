"""Eight clients for ten minutes on 10,000 memories, then writers killed for twenty rounds. Writes docs/soak.md.

    python tests/bench/soak.py [--seconds 600] [--memories 10000] [--rounds 20 --writes 1000] [--out FILE]

Each client asks prompts and, now and then, creates, updates, deletes, reads and searches memories of its own. At the end
every acknowledged write is looked up. Exit code 1 when something was lost, refused, or outside the limits; `--no-limits`
leaves out the one limit in milliseconds, for a machine that does other work as well.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import platform
import random
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
from scratch import Caller, Spread, first_project, prompts, resident_mb, running, scratch_home, timed  # noqa: E402

from lorehooks.core.home import Home  # noqa: E402
from lorehooks.core.rebuild import verify  # noqa: E402
from lorehooks.core.store import Store  # noqa: E402

CLIENTS = 8
MOST_P95_MS = 25.0
MOST_GROWTH = 1.1
"""Resident memory at the end, in that of minute two (of a shorter run: a fifth of its time)."""
PAUSE = 0.05, 0.15
"""Seconds between two steps of a client, at random: quicker than any agent, and still with time between."""
DOING = ("prompt", "search", "read", "create", "update", "delete")
HOW_OFTEN = (70, 5, 5, 10, 7, 3)


@dataclass
class Client:
    """One client, and what it knows to be written: path below its own domain to content."""

    number: int
    home: Home
    texts: list[str]
    written: dict[str, str] = field(default_factory=dict)
    times: dict[str, list[float]] = field(default_factory=lambda: {name: [] for name in DOING})
    errors: list[str] = field(default_factory=list)

    def run(self, until: float) -> None:
        """Work until that monotonic second; what goes wrong is noted, and the work goes on."""
        chance = random.Random(self.number)
        with Caller(self.home) as caller:
            for step in itertools.count():
                if time.monotonic() > until:
                    return
                doing = chance.choices(DOING, HOW_OFTEN)[0]
                try:
                    self.times[doing].append(timed(partial(self._do, caller, doing, step, chance)))
                except Exception as error:  # noqa: BLE001  the run is to show all of them
                    self.errors.append(f"{doing}: {type(error).__name__}: {error}")
                time.sleep(chance.uniform(*PAUSE))

    def _do(self, caller: Caller, doing: str, step: int, chance: random.Random) -> None:
        known = sorted(self.written)
        if doing in ("read", "update", "delete") and not known:
            doing = "create"
        match doing:
            case "prompt":
                text = self.texts[step % len(self.texts)]
                caller.prompt(text, f"soak-{self.number}-{step // 40}", f"/srv/{first_project()}")
            case "search":
                word = chance.choice(self.texts).split()[0].strip("?:,") or "deploy"
                caller.get(f"/api/browse/search?q={quote(word, safe='')}")
            case "read":
                path = chance.choice(known)
                found = caller.get(f"/api/browse/node?domain=soak{self.number}&path={path}")["node"]["content"]
                if found != self.written[path]:
                    raise ValueError(f"{path} reads {found[:40]!r}, written was {self.written[path][:40]!r}")
            case "create":
                path, content = f"n{step}", f"Client {self.number} wrote this in step {step}."
                body = {"domain": f"soak{self.number}", "parent_path": "", "title": path, "content": content}
                caller.json(
                    "POST", "/api/browse/node", {**body, "priority": 2, "glossary": [f"soak{self.number}x{step}"]}
                )
                self.written[path] = content
            case "update":
                path, content = chance.choice(known), f"Client {self.number} wrote this anew in step {step}."
                caller.json("PUT", f"/api/browse/node?domain=soak{self.number}&path={path}", {"content": content})
                self.written[path] = content
            case "delete":
                path = chance.choice(known)
                caller.ask("DELETE", f"/api/browse/node?domain=soak{self.number}&path={path}")
                del self.written[path]


@contextmanager
def watched(pid: int, seconds: float) -> Iterator[list[tuple[float, float]]]:
    """Samples `(second, resident MB)` of a process, taken while the block runs."""
    samples: list[tuple[float, float]] = []
    began, over = time.monotonic(), threading.Event()

    def watch() -> None:
        while not over.wait(min(1.0, seconds / 60)):
            samples.append((time.monotonic() - began, resident_mb(pid)))

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield samples
    finally:
        over.set()
        thread.join()


def soak(memories: int, seconds: float) -> dict[str, Any]:
    """Run the clients; what they saw, and what is wrong with the memory afterwards."""
    with scratch_home(memories) as home:
        texts = prompts(2_000)
        clients = [Client(number, home, texts[number:] + texts[:number]) for number in range(CLIENTS)]
        with running(home) as pid, watched(pid, seconds) as samples:
            until = time.monotonic() + seconds
            threads = [threading.Thread(target=client.run, args=(until,)) for client in clients]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        store = Store(home.database)
        try:
            there = {node.uri: node.content for node in store.nodes() if node.domain.startswith("soak")}
            problems = list(verify(store).problems)
        finally:
            store.close()
    wanted = {f"soak{one.number}://{path}": text for one in clients for path, text in one.written.items()}
    lost = sorted(uri for uri in wanted.keys() | there.keys() if wanted.get(uri) != there.get(uri))
    mark = min(120.0, seconds / 5)
    early = _median([size for second, size in samples if mark <= second <= mark + seconds / 10])
    late = _median([size for second, size in samples if second >= seconds * 0.9])
    times = {name: [one for client in clients for one in client.times[name]] for name in DOING}
    return {
        "memories": memories,
        "seconds": seconds,
        "times": {name: Spread.of(each) for name, each in times.items() if each},
        "errors": [error for client in clients for error in client.errors],
        "lost": lost,
        "problems": problems,
        "rss": {"early": round(early, 1), "end": round(late, 1), "growth": round(late / early, 3) if early else 0.0},
    }


def _median(values: list[float]) -> float:
    return sorted(values)[len(values) // 2] if values else 0.0


def kills(rounds: int, writes: int) -> dict[str, Any]:
    """The kill rounds in a process of their own."""
    command = [sys.executable, str(HERE / "kill_rounds.py"), "--rounds", str(rounds), "--writes", str(writes)]
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder)
    if not done.stdout:
        raise RuntimeError(done.stderr)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def wrong(found: dict[str, Any], killed: dict[str, Any], *, limits: bool) -> list[str]:
    """What is not as it must be, in one line each."""
    lines = [f"error: {error}" for error in found["errors"][:10]]
    lines += [f"lost or never asked for: {uri}" for uri in found["lost"][:10]]
    lines += [f"verify: {problem}" for problem in found["problems"]]
    lines += [f"kill rounds: {problem}" for one in killed["rounds"] for problem in one["problems"]]
    if found["rss"]["growth"] > MOST_GROWTH:
        lines.append(f"resident memory grew to {found['rss']['growth']} of what it was")
    if limits and found["times"]["prompt"].p95 >= MOST_P95_MS:
        lines.append(f"recall p95 is {found['times']['prompt'].p95} ms, {MOST_P95_MS} are allowed")
    return lines


def page(found: dict[str, Any], killed: dict[str, Any], problems: list[str], load: tuple[float, ...]) -> str:
    """docs/soak.md."""
    rows = "".join(
        f"| {name} | {one.count} | {one.p50} | {one.p95} | {one.p99} |\n" for name, one in found["times"].items()
    )
    rss, acknowledged = found["rss"], sum(one["acknowledged"] for one in killed["rounds"])
    outcome = "Everything was as it must be." if not problems else "Wrong:\n\n" + "".join(f"- {x}\n" for x in problems)
    return (
        "# Soak\n\nWritten by `make soak`; do not edit.\n\n"
        f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC, {os.cpu_count()} processors, {platform.system()} {platform.release()},"
        f" Python {platform.python_version()}; load before: {' '.join(f'{one:.1f}' for one in load)}.\n\n"
        f"{outcome}\n\n"
        f"{CLIENTS} clients, {found['seconds']:g} s, {found['memories']:,} memories at the start, {PAUSE[0] * 1000:g} to"
        f" {PAUSE[1] * 1000:g} ms between two steps of a client. Milliseconds of wall clock, from the client's side:\n\n"
        f"| | count | p50 | p95 | p99 |\n| --- | --- | --- | --- | --- |\n{rows}\n"
        f"Errors: {len(found['errors'])}. Writes lost: {len(found['lost'])}. `lore verify`: {len(found['problems'])} problems.\n"
        f"Resident memory of the service: {rss['early']} MB early on, {rss['end']} MB at the end ({rss['growth']} of it).\n\n"
        f"Writers killed with `kill -9`: {len(killed['rounds'])} rounds,"
        f" {sum(one['kills'] for one in killed['rounds'])} kills, {acknowledged} acknowledged writes,"
        f" {sum(bool(one['problems']) for one in killed['rounds'])} rounds with a problem.\n"
    )


def main() -> int:
    parser = argparse.ArgumentParser(description="Long mixed use, and writers that are killed")
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--memories", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--writes", type=int, default=1_000)
    parser.add_argument("--no-limits", action="store_true", help="do not hold recall to its limit in milliseconds")
    parser.add_argument("--out", type=Path, default=HERE.parents[1] / "docs" / "soak.md")
    given = parser.parse_args()
    load = os.getloadavg()
    found = soak(given.memories, given.seconds)
    killed = kills(given.rounds, given.writes) if given.rounds else {"rounds": []}
    problems = wrong(found, killed, limits=not given.no_limits)
    text = page(found, killed, problems, load)
    given.out.write_text(text, encoding="utf-8")
    print(text)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
