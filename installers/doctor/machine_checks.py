"""What else on this machine remembers: a second home of ours, the same memory under Windows, other programs' memory hooks."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from lorehooks.clients.runtimes import RUNTIMES
from lorehooks.core.home import Home
from lorehooks.installers import receipt
from lorehooks.installers.doctor.finding import Finding, note, problem
from lorehooks.installers.doctor.subject import Subject
from lorehooks.installers.registered import for_home

AREA = "machine"
OTHERS = (
    *("agentmemory", "ai-memory", "basic-memory", "cavemem", "claude-mem", "claude-supermemory", "cognee", "deja-vu"),
    *("hindsight", "mem0", "memini", "memorix", "memory-lancedb", "memsearch", "mnemon", "neural-memory", "openmemory"),
    "supermemory",
)
"""Names under which other memories hook themselves into agents. They are reported and never touched."""
_LONGEST_FIRST = "|".join(sorted(OTHERS, key=len, reverse=True))
_OTHER = re.compile(rf"(?<![a-z0-9])(?:{_LONGEST_FIRST})(?![a-z0-9])", re.IGNORECASE)
_FILES: Mapping[str, tuple[str, ...]] = {
    "claudecode": ("settings.json",),
    "codex": ("config.toml", "hooks.json"),
    "opencode": ("opencode.json", "opencode.jsonc", "plugin", "plugins"),
    "pi": ("settings.json", "extensions"),
    "openclaw": ("openclaw.json",),
    "hermes": ("config.yaml",),
    "zcode": ("cli/config.json",),
    "dsh": ("package.json", "cordis.patch.yml"),
}
"""Below a runtime's home, where hooks, plugins and servers are named. Of a folder, the names in it count."""
_SECTIONS = frozenset(
    (
        "hooks",
        "mcpservers",
        "mcp_servers",
        "mcp",
        "plugin",
        "plugins",
        "enabledplugins",
        "extensions",
        "packages",
        "memory",
    )
)
_MOST_BYTES = 4 << 20
_WINDOWS_USERS = Path("/mnt/c/Users")


def check(subject: Subject, windows_users: Path = _WINDOWS_USERS) -> Iterator[Finding]:
    """Memories beside this one."""
    yield from _second_homes(subject)
    if windows_users.is_dir():
        yield from _windows_homes(subject, windows_users)
    for each in subject.receipts:
        for name, place in _others_in(subject, each.runtime):
            label = RUNTIMES[each.runtime].label
            text = f"{name} is connected to {label} too ({place}): two memories may answer each prompt"
            yield note(AREA, "other_memory", text, f"keep one of them; {name} is left as it is")


def _second_homes(subject: Subject) -> Iterator[Finding]:
    here = {each.runtime for each in subject.receipts if each.state == "installed"}
    for home in _candidates(subject):
        there = {each.runtime for each in receipt.installed(home) if each.state == "installed"}
        both = sorted(here & there)
        if both:
            text = f"{', '.join(both)} has hooks of two homes, this one and {home.root}"
            yield problem(AREA, "two_homes", text, for_home(home.root, f"lore uninstall {' '.join(both)}"))
        elif there:
            text = f"Another memory lies in {home.root}, and {', '.join(sorted(there))} uses it"
            yield note(AREA, "second_home", text, for_home(home.root, "lore doctor"))
        else:
            yield note(
                AREA,
                "second_home",
                f"Another memory lies in {home.root}, and no agent uses it",
                for_home(home.root, "lore doctor"),
            )


def _candidates(subject: Subject) -> Iterator[Home]:
    """Other homes that this user has, as far as they can be known: the usual place, and where agents were installed from."""
    context, seen = subject.context, {subject.home.root.resolve()}
    folders = [context.user_home / ".lore"]
    for each in subject.receipts:
        folders += [
            folder.parent for placed in each.placed for folder in placed.path.parents if folder.name == "plugins"
        ]
    for folder in folders:
        home = Home(folder)
        if home.root.resolve() not in seen and home.database.is_file():
            seen.add(home.root.resolve())
            yield home


def _windows_homes(subject: Subject, users: Path) -> Iterator[Finding]:
    try:
        homes = [user / ".lore" for user in sorted(users.iterdir()) if (user / ".lore" / "lore.db").is_file()]
    except OSError:
        return
    for home in homes:
        if home.resolve() != subject.home.root.resolve():
            text = f"Windows has a memory of its own in {home}: agents there and agents here do not share one"
            yield note(AREA, "windows_home", text, "lore connect on one side, lore serve on the other")


def _others_in(subject: Subject, runtime: str) -> Iterator[tuple[str, str]]:
    """(name, where) of every other memory that a runtime's own files name."""
    folder = RUNTIMES[runtime].home(subject.context.environment)
    places = [folder / name for name in _FILES.get(runtime, ())]
    if runtime == "claudecode":
        places.append(subject.context.user_home / ".claude.json")
    told = set()
    for place in places:
        for name in sorted({found.lower() for text in _texts(place) for found in _OTHER.findall(text)}):
            if name not in told:
                told.add(name)
                yield name, str(place)


def _texts(place: Path) -> Sequence[str]:
    """What a file says about hooks, plugins and servers, as far as it is switched on; all of it where its form is not known."""
    try:
        if place.is_dir():
            return [entry.name for entry in place.iterdir()]
        if place.stat().st_size > _MOST_BYTES:
            return []
        text = place.read_text(encoding="utf-8-sig", errors="replace")
    except OSError:
        return []
    try:
        parsed: Any = tomllib.loads(text) if place.suffix == ".toml" else json.loads(text)
    except (ValueError, RecursionError):
        return [text] if place.suffix in (".jsonc", ".yaml", ".yml") else []
    sections = parsed.items() if isinstance(parsed, dict) else ()
    return [each for key, value in sections if key.lower() in _SECTIONS for each in _strings(value)]


def _strings(value: Any) -> Iterator[str]:
    """Every text inside, names too; what is switched off counts as absent."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, item in value.items():
            if not _is_off(item):
                yield str(key)
                yield from _strings(item)
    elif isinstance(value, list):
        for item in value:
            if not _is_off(item):
                yield from _strings(item)


def _is_off(item: Any) -> bool:
    return item is False or (isinstance(item, dict) and (item.get("enabled") is False or item.get("disabled") is True))
