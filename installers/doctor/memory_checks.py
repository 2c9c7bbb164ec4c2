"""What the memory has to give: whether it is reachable, has standing rules, can be recalled, and is ready for a session."""

from __future__ import annotations

import importlib.util
import json
import sqlite3
from collections.abc import Iterator, Sequence

from lorehooks.clients.config import EMBEDDED
from lorehooks.core.errors import LoreError
from lorehooks.core.model import BOOT_URIS
from lorehooks.core.readonly import looking_into
from lorehooks.installers import status
from lorehooks.installers.doctor.finding import Finding, note, ok, problem
from lorehooks.installers.doctor.subject import Subject
from lorehooks.installers.status import MemoryStatus

AREA = "memory"
_NAMED = 3


def check(subject: Subject) -> Iterator[Finding]:
    """The memory in use, here or on a server."""
    if not subject.is_there:
        return
    found = status.memory(subject.home, subject.target)
    if subject.target.address != EMBEDDED or subject.target.problem:
        yield _server(subject, found)
    elif found.memories is not None:
        yield from _embedded(subject, found)
    yield from _ready(subject)


def _server(subject: Subject, found: MemoryStatus) -> Finding:
    if found.reachable and not found.problem:
        return ok(AREA, "server", f"{found.address} answers{f', version {found.version}' if found.version else ''}")
    waiting = subject.service.running and subject.target.ssh is None
    text = f"The memory at {found.address} cannot be reached: {found.problem or 'it does not answer'}"
    kept = "; sessions start with what it said last" if waiting else ""
    return problem(AREA, "server", text + kept, f"lore connect {found.address}")


def _embedded(subject: Subject, found: MemoryStatus) -> Iterator[Finding]:
    count = "1 memory" if found.memories == 1 else f"{found.memories:,} memories"
    yield ok(AREA, "memories", f"{count}, {found.boot_written} of {found.boot_total} boot nodes written")
    if not found.boot_written:
        text = "No standing rules are written, so sessions start without any"
        yield note(AREA, "no_rules", text, "lore boot --edit core://agent")
    if found.pending:
        waits = "1 write of an agent waits" if found.pending == 1 else f"{found.pending} writes of agents wait"
        yield note(AREA, "pending", f"{waits} for your yes", "lore pending list")
    bare = _without_words(subject)
    if bare:
        only, it = ("1 memory has", "it") if len(bare) == 1 else (f"{len(bare)} memories have", "them")
        text = f"{only} no glossary, so that recall finds {it} by path and content only: {_some(bare)}"
        yield note(AREA, "no_glossary", text, f"lore node update {bare[0]} --add WORD,…")
    yield from _vectors(subject)


def _without_words(subject: Subject) -> list[str]:
    try:
        with looking_into(subject.home.database, missing="", hint="") as memory:
            sql = "SELECT uri, glossary FROM nodes WHERE trim(content) <> '' ORDER BY uri"  # a bare parent has no words
            rows = memory.execute(sql).fetchall()
    except (LoreError, sqlite3.Error):
        return []  # the checks of the database say why
    return [row["uri"] for row in rows if row["uri"] not in BOOT_URIS and not json.loads(row["glossary"])]


def _vectors(subject: Subject) -> Iterator[Finding]:
    memory = (subject.state or {}).get("memory") or {}
    provider = _provider(subject)
    if provider == "off":
        text = "Recall by meaning is switched off (embedding.provider); words and terms still find memories"
        yield note(AREA, "vectors_off", text, "lore config reset embedding.provider")
    elif provider == "builtin" and importlib.util.find_spec("wordllama") is None:
        text = "This Python has no model for recall by meaning (no wheel of wordllama); words and terms still find memories"
        yield note(AREA, "vectors_off", text, "pip install wordllama, or set embedding.provider to an endpoint")
    elif memory.get("index_ready") and memory.get("vectors") is None:
        text = "The model for recall by meaning could not be loaded; words and terms still find memories"
        yield note(AREA, "vectors_off", text, "lore service restart")


def _provider(subject: Subject) -> str:
    try:
        with looking_into(subject.home.database, missing="", hint="") as memory:
            row = memory.execute("SELECT value FROM settings WHERE key = 'embedding.provider'").fetchone()
    except (LoreError, sqlite3.Error):
        return ""
    return str(json.loads(row["value"])) if row else "builtin"


def _ready(subject: Subject) -> Iterator[Finding]:
    """Files that answer while the service is away; only a running service can tell whether they are up to date."""
    if subject.state is not None:
        stale = subject.state.get("stale_files") or []
        if stale:
            text = f"Ready files are not what memory says now: {_some(stale)}"
            yield problem(AREA, "stale_files", text, fixable=True)
        return
    missing = [each.runtime for each in subject.receipts if not (subject.home.boot / each.runtime).exists()]
    if missing:
        text = f"There is no ready boot block for {', '.join(missing)}, should a session start before the service does"
        yield note(AREA, "stale_files", text, "lore service start")


def _some(names: Sequence[str]) -> str:
    return ", ".join([*names[:_NAMED], "…"] if len(names) > _NAMED else names)
