"""Archives on disk: a folder of Markdown files, or one file. Only what an export wrote, and nobody changed since, is ever replaced."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path

from lorehooks.core import frontmatter
from lorehooks.core.archive import Archive
from lorehooks.core.archive_lines import archive_of_lines, is_lines
from lorehooks.core.archive_markdown import SUFFIX, archive_of_files
from lorehooks.core.archive_v1 import archive_of_backup
from lorehooks.core.backup import MAGIC
from lorehooks.core.errors import ConflictError, InvalidError, NotFoundError, StorageError
from lorehooks.core.files import write_whole

MARKER = ".lorehooks-export"
"""Lies in the folder of an export and says which files are its own, so that the next one can replace them."""


def read_archive(path: Path) -> Archive:
    """The archive in a folder of Markdown files, or in a file of any form. Raises InvalidError, NotFoundError."""
    try:
        if path.is_dir():
            return archive_of_files(_tree(path))
        data = path.read_bytes()
    except FileNotFoundError:
        raise NotFoundError(f"There is no {path}") from None
    except OSError as error:
        raise InvalidError(f"{error.filename or path} cannot be read: {error.strerror}") from None
    return archive_of(data, path.name)


def archive_of(data: bytes, name: str) -> Archive:
    """The archive in a file's bytes, told apart by what they begin with. Raises InvalidError."""
    if data.startswith(MAGIC):
        raise InvalidError(f"{name} is a backup in the memory's own form", hint=f"lore restore {name}")
    if is_lines(data):
        return archive_of_lines(data)
    if data.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{"):
        return archive_of_backup(data)
    if frontmatter.has_head(data[:16].decode("utf-8", "replace")):
        return archive_of_files({name: data})
    raise InvalidError(
        f"{name} is neither Markdown with a front matter, nor JSON Lines, nor lore-backup-v1",
        hint="lore init takes other notes",
    )


def write_file(path: Path, data: bytes) -> None:
    """Write one file, for its owner only. Raises ConflictError when it is there, StorageError."""
    if path.exists():
        raise ConflictError(f"{path} exists already", hint="name another file")
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_whole(path, data)
    except OSError as error:
        raise StorageError(f"{path} cannot be written: {error.strerror}", hint="name another file") from None


def write_tree(folder: Path, files: Mapping[str, bytes]) -> int:
    """Write a tree of files into a new, empty or own folder; answers how many it removed, since no memory is there any more.

    Raises ConflictError when the folder holds anything else, or a file that was changed since the last export.
    """
    own = _own_files(folder)
    _check_unchanged(folder, own, files)
    try:
        for path, data in files.items():
            file = folder / path
            file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            if not file.is_file() or file.read_bytes() != data:
                write_whole(file, data)
        gone = [path for path in own if path not in files and (folder / path).is_file()]
        for path in gone:
            (folder / path).unlink()
            _remove_empty(folder, (folder / path).parent)
        marker = {"files": {path: _digest(data) for path, data in files.items()}}
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_whole(folder / MARKER, json.dumps(marker, indent=1).encode())
    except OSError as error:
        raise StorageError(f"{error.filename or folder} cannot be written: {error.strerror}") from None
    return len(gone)


def _tree(folder: Path) -> dict[str, bytes]:
    """Markdown files below a folder by their path with `/`; hidden folders are somebody's tools."""
    found: dict[str, bytes] = {}
    for here, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(names):
            path = Path(here, name)
            if name.endswith(SUFFIX) and not name.startswith(".") and path.is_file():
                found[path.relative_to(folder).as_posix()] = path.read_bytes()
    if not found:
        raise InvalidError(f"There is no Markdown file in {folder}")
    return found


def _own_files(folder: Path) -> dict[str, str]:
    """What the last export wrote, with digests. Raises ConflictError for a folder that is somebody else's."""
    if not folder.exists() or (folder.is_dir() and not any(folder.iterdir())):
        return {}
    try:
        marker = json.loads((folder / MARKER).read_bytes())
    except (OSError, ValueError, RecursionError):
        marker = None
    files = marker.get("files") if isinstance(marker, dict) else None
    if not isinstance(files, dict):
        raise ConflictError(f"{folder} is there already, and no export of ours", hint="name a new or empty folder")
    return {path: digest for path, digest in files.items() if isinstance(digest, str) and _is_inside(path)}


def _check_unchanged(folder: Path, own: Mapping[str, str], files: Mapping[str, bytes]) -> None:
    """Raise ConflictError for a file that a person changed or put there, where ours would go."""
    for path in sorted({*own, *files}):
        file = folder / path
        if not file.is_file():
            continue
        data = file.read_bytes()
        if data != files.get(path) and _digest(data) != own.get(path):
            raise ConflictError(
                f"{file} was changed since the last export",
                hint=f"take it in first: lore import '{folder}', or name a new folder",
            )


def _is_inside(path: str) -> bool:
    return not path.startswith("/") and ".." not in path.split("/") and path.endswith(SUFFIX)


def _remove_empty(top: Path, folder: Path) -> None:
    while folder != top and folder.is_dir() and not any(folder.iterdir()):
        folder.rmdir()
        folder = folder.parent


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
