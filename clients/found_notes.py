"""What other programs keep for a user and a project: rule files and notes of agents. They are read and never written."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from lorehooks.clients.runtimes import RUNTIMES
from lorehooks.core.proposed_notes import Note, Scope
from lorehooks.core.repository import project_key, repository_of

LARGEST = 400_000
"""Bytes of a file that is still taken for notes."""
_MOST_LEVELS, _LOG_BYTES = 64, 65_536
_PROJECT_FILES = (
    ("CLAUDE.md", "claudecode"), ("CLAUDE.local.md", "claudecode"), (".claude/CLAUDE.md", "claudecode"),
    ("AGENTS.md", ""), ("AGENTS.override.md", ""), ("GEMINI.md", ""), (".cursorrules", ""),
)  # fmt: skip
_USER_FILES = (
    ("claudecode", "CLAUDE.md"), ("codex", "AGENTS.md"), ("codex", "AGENTS.override.md"), ("opencode", "AGENTS.md"),
    ("pi", "AGENTS.md"),
)  # fmt: skip
_CODEX_RAW = frozenset({"raw_memories.md"})
"""What Codex writes down on its way to its memories."""
_INDEX = re.compile(r"(?:[-*] )?\[[^\]]+\]\([^)]+\.md\).*")


def found_notes(folder: Path, environment: Mapping[str, str], *, all_projects: bool = False) -> list[Note]:
    """Notes for work in `folder`: of its project, then of the user. With `all_projects`, what Claude Code noted of others."""
    home = Path(environment.get("HOME") or Path.home())
    name, repository = repository_of(str(folder), str(home))
    project = project_key(repository or name or "")
    seen: set[Path] = set()
    notes: list[Note] = []
    if folder.resolve() != home.resolve():
        for path, client_type in _project_paths(folder, home):
            notes += _note(path, home, "project", seen, project=project, client_type=client_type)
        for path in _cursor_rules(folder, home):
            notes += _note(path, home, "project", seen, project=project, title=path.stem.replace("-", " "))
    for path, owner in _claude_memories(folder, environment, project, all_projects=all_projects):
        notes += _note(path, home, "project", seen, project=owner, client_type="claudecode", is_memory=True)
    for client_type, file in _USER_FILES:
        notes += _note(RUNTIMES[client_type].home(environment) / file, home, "user", seen, client_type=client_type)
    for path in (home / "CLAUDE.md", home / "AGENTS.md", home / "GEMINI.md", home / ".gemini" / "GEMINI.md"):
        notes += _note(path, home, "user", seen)
    for path in sorted((RUNTIMES["codex"].home(environment) / "memories").glob("*.md")):
        if path.name not in _CODEX_RAW:
            notes += _note(path, home, "user", seen, client_type="codex", is_memory=True)
    return notes


def _note(
    path: Path,
    home: Path,
    scope: Scope,
    seen: set[Path],
    *,
    project: str = "",
    client_type: str = "",
    title: str = "",
    is_memory: bool = False,
) -> list[Note]:
    """The note in a file, if it is one and was not read under another name."""
    try:
        resolved = path.resolve()
        if resolved in seen or not path.is_file() or path.stat().st_size > LARGEST:
            return []
        text = path.read_bytes().decode("utf-8", "replace")
    except (OSError, RuntimeError):  # a file that is closed to us, a loop of links
        return []
    seen.add(resolved)
    if not text.strip() or "\x00" in text or (path.name == "MEMORY.md" and _is_index(text)):
        return []
    shown = f"~/{path.relative_to(home)}" if path.is_relative_to(home) else str(path)
    return [Note(shown, text, scope, project, client_type, title, is_memory)]


def _project_paths(folder: Path, home: Path) -> Iterator[tuple[Path, str]]:
    for place in _folders(folder, home):
        for name, client_type in _PROJECT_FILES:
            yield place / name, client_type


def _cursor_rules(folder: Path, home: Path) -> Iterator[Path]:
    for place in _folders(folder, home):
        rules = place / ".cursor" / "rules"
        for pattern in ("**/*.mdc", "**/*.md"):
            yield from sorted(rules.glob(pattern))


def _folders(folder: Path, home: Path) -> list[Path]:
    """The folder and those above it up to the repository's top; the folder alone outside of one."""
    found = []
    for place in [folder, *folder.parents][:_MOST_LEVELS]:
        if place == home:
            break
        found.append(place)
        if (place / ".git").exists():
            return found
    return [folder]


def _claude_memories(
    folder: Path, environment: Mapping[str, str], project: str, *, all_projects: bool
) -> Iterator[tuple[Path, str]]:
    """Files of Claude Code's own memory with the project they are about."""
    projects = RUNTIMES["claudecode"].home(environment) / "projects"
    places = _folders(folder, Path(environment.get("HOME") or Path.home()))
    mine = {re.sub(r"[^A-Za-z0-9]", "-", str(place)) for place in places}
    for memory in sorted(projects.glob("*/memory")):
        is_mine = memory.parent.name in mine
        if is_mine or all_projects:
            owner = project if is_mine else _project_of(memory.parent)
            for path in sorted(memory.glob("*.md")):
                yield path, owner


def _project_of(sessions: Path) -> str:
    """The project of a folder of sessions: their records name the working folder, whose own name the folder's has lost."""
    for log in sorted(sessions.glob("*.jsonl"))[:3]:
        try:
            with log.open("rb") as file:
                beginning = file.read(_LOG_BYTES)
        except OSError:
            continue
        for line in beginning.splitlines():
            try:
                cwd = json.loads(line).get("cwd")
            except (ValueError, AttributeError, RecursionError):
                continue
            if isinstance(cwd, str) and cwd:
                name, repository = repository_of(cwd)
                return project_key(repository or name or "")
    return project_key(sessions.name.rpartition("-")[2])


def _is_index(text: str) -> bool:
    """Whether a file only lists the others beside it."""
    lines = [line.strip() for line in text.splitlines() if line.strip() and not line.startswith("#")]
    return bool(lines) and all(_INDEX.fullmatch(line) for line in lines)
