"""Which project a session works in, read from the folder tree without starting git.

A session start has a few milliseconds for this and may stand in any folder: a linked worktree, a submodule, a folder that
belongs to someone else, a file system that is gone. So every read is bounded and nothing here raises.
"""

from __future__ import annotations

import re
from pathlib import Path

_MOST_LEVELS = 64
_MOST_BYTES = 65_536
_SECTION = re.compile(r'\[\s*([A-Za-z0-9.-]+)\s*(?:"((?:[^"\\]|\\.)*)")?\s*\]')
_VALUE = re.compile(r"\s*([A-Za-z][A-Za-z0-9-]*)\s*=\s*(.*)")
_SCP_LIKE = re.compile(r"[^/\\:]+:(?!//)")


def repository_of(cwd: str | None, home: str | None = None) -> tuple[str | None, str | None]:
    """The name of the folder, and the name of the repository around it, for a session in `cwd`.

    The repository is named by its remote (`origin`, else the first one), else by its top folder. A repository that is the
    user's whole home folder (dotfiles) names no project. None for what cannot be told; `home` is for tests.
    """
    if not cwd:
        return None, None
    folder = Path(cwd)
    if not folder.is_absolute():  # it would be looked for where the service stands, which is another project
        return folder.name or None, None
    try:
        repository = _repository_name(folder, Path(home) if home else Path.home())
    except (OSError, ValueError, RuntimeError):  # a NUL in the path, a loop of links, a folder closed to us, no home
        repository = None
    return folder.name or None, repository


def project_key(name: str) -> str:
    """How memory spells a project's name in a path: `checkout-api` and `Checkout API` are `checkout_api`; may be empty."""
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name)
    return re.sub(r"[^a-z0-9]+", "_", spaced.lower()).strip("_")


def name_in_url(url: str) -> str | None:
    """The repository's name in a remote's address, whatever its form; None when there is none in it."""
    path = url.strip().split("?", 1)[0].split("#", 1)[0]
    if "://" in path:
        path = path.split("://", 1)[1].partition("/")[2]
    else:
        scp_like = _SCP_LIKE.match(path)
        if scp_like and not re.match(r"[A-Za-z]:[\\/]", path):  # C:\ is a folder, not a host
            path = path[scp_like.end() :]
    name = re.split(r"[/\\]", path.rstrip("/\\"))[-1].strip()
    name = name.removesuffix(".git") if name != ".git" else _parent_name(path)
    return name if name not in ("", ".", "..") else None


def _parent_name(path: str) -> str:
    parts = re.split(r"[/\\]", path.rstrip("/\\"))
    return parts[-2] if len(parts) > 1 else ""


def _repository_name(folder: Path, home: Path) -> str | None:
    for top in [folder, *folder.parents][:_MOST_LEVELS]:
        git = top / ".git"
        if not git.exists():
            continue
        if top in (home, home.resolve()):
            return None
        directory = _git_directory(git)
        if directory is None:
            return top.name or None
        common = _read(directory / "commondir").strip()
        shared = (directory / common).resolve() if common else directory
        return _remote_name(shared / "config") or (_name_of_main(shared) if common else top.name) or None
    return None


def _git_directory(git: Path) -> Path | None:
    """Where the repository's data lies: `.git` itself, or the folder that a `.git` file points to."""
    if git.is_dir():
        return git
    text = _read(git)
    if not text.startswith("gitdir:"):
        return None
    return git.parent / text.removeprefix("gitdir:").strip()


def _name_of_main(shared: Path) -> str:
    """The repository that a linked worktree belongs to, by the folder of its data: `shop/.git` or `shop.git`."""
    return shared.parent.name if shared.name == ".git" else shared.name.removesuffix(".git")


def _remote_name(config: Path) -> str | None:
    """The name in the address of `origin`, else of the first remote that has one."""
    remotes: dict[str, str] = {}
    remote: str | None = None
    for line in _read(config).splitlines():
        section = _SECTION.match(line.strip())
        if section:
            remote = section[2] if section[1].lower() == "remote" else None
            continue
        value = _VALUE.match(line)
        if value and remote is not None and value[1].lower() == "url":
            remotes.setdefault(remote, _plain(value[2]))
    named = [remotes.get("origin", ""), *remotes.values()]
    return next((name for url in named if url and (name := name_in_url(url))), None)


def _plain(value: str) -> str:
    """A configured value without quotes and comment."""
    value = value.strip()
    if value.startswith('"'):
        return value[1:].split('"', 1)[0]
    return re.split(r"\s+[#;]", value, maxsplit=1)[0].strip()


def _read(path: Path) -> str:
    """The beginning of a small text file; empty when it cannot be read. A pipe in its place would never end."""
    try:
        if not path.is_file():
            return ""
        with path.open("rb") as file:
            return file.read(_MOST_BYTES).decode("utf-8", "replace")
    except OSError:
        return ""
