"""A memory as a tree of Markdown files: `project://shop/cart` is `project/shop/cart.md`, its children lie in `project/shop/cart/`.

The file carries the memory as it is now; its history stays behind. The address in a file's head wins over its place.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import PurePosixPath

from lorehooks.core import frontmatter
from lorehooks.core import uri as uris
from lorehooks.core.archive import Archive, ArchivedNode, assembled, read_node
from lorehooks.core.errors import InvalidError
from lorehooks.core.model import BOOT_URIS, DEFAULT_PRIORITY

SUFFIX = ".md"
_FIELDS = ("uri", "priority", "disclosure", "glossary", "created", "updated")
_LONGEST_NAME = 120
"""Characters of a file name that every file system takes; a longer segment is cut and told apart by a digest."""
_LARGEST = 16_000_000


def files_of(archive: Archive) -> dict[str, bytes]:
    """Each memory as a file, by its path with `/`. Boot nodes that nobody has written to are left out."""
    return {
        path_of(node.uri): text_of(node).encode()
        for node in archive.nodes
        if node.uri not in BOOT_URIS or node.state["content"] or node.state["glossary"] or node.state["disclosure"]
    }


def text_of(node: ArchivedNode) -> str:
    """One memory as a file."""
    state = node.state
    created = "" if node.uri in BOOT_URIS else node.created_at  # those are as old as the memory that they are in
    moments = {"created": created, "updated": node.updated_at}
    return frontmatter.write(
        {
            "uri": state["uri"],
            "priority": state["priority"],
            "disclosure": state["disclosure"],
            "glossary": state["glossary"],
            **{name: at for name, at in moments.items() if at},
        },
        state["content"],
    )


def path_of(uri: str) -> str:
    """Where a memory's file lies in the tree."""
    parsed = uris.parse(uri)
    return "/".join(map(_file_name, (parsed.domain, *parsed.segments))) + SUFFIX


def archive_of_files(files: Mapping[str, bytes]) -> Archive:
    """The memories in a tree of files. Files without a head are no memories, and noted.

    Raises InvalidError with the file and line that cannot be read.
    """
    nodes: list[ArchivedNode] = []
    notes: list[str] = []
    for path in sorted(files):
        try:
            text = _text(files[path])
            if not frontmatter.has_head(text):
                notes.append(f"{path} has no front matter and is passed over")
                continue
            node, ignored = node_of(text, path)
        except InvalidError as error:
            raise InvalidError(f"{path}, {error.message}", hint=error.hint) from None
        nodes.append(node)
        notes += [f"{path}: {name} is no field of a memory and is passed over" for name in ignored]
    return assembled(nodes, [], {}, tuple(notes))


def node_of(text: str, path: str = "") -> tuple[ArchivedNode, list[str]]:
    """The memory in a file's text, and names of fields that mean nothing here. Raises InvalidError."""
    head = frontmatter.read(text)
    fields = head.fields
    priority = _one(fields, "priority") or str(DEFAULT_PRIORITY)
    if not (priority.isascii() and priority.isdigit() and len(priority) < 10):  # noqa: PLR2004  (no number of ours is longer)
        raise InvalidError(f"priority is a whole number, not {priority[:40]!r}")
    raw = {
        "uri": _one(fields, "uri") or _uri_of(path),
        "content": head.body,
        "priority": int(priority),
        "disclosure": _one(fields, "disclosure"),
        "glossary": _many(fields, "glossary"),
        "created_at": _one(fields, "created"),
        "updated_at": _one(fields, "updated"),
    }
    return read_node(raw, "its head"), [name for name in fields if name not in _FIELDS]


def _one(fields: Mapping[str, frontmatter.Value], name: str) -> str:
    value = fields.get(name, "")
    if isinstance(value, list):
        raise InvalidError(f"{name} is one text, not a list")
    return value


def _many(fields: Mapping[str, frontmatter.Value], name: str) -> list[str]:
    """A list; people also write one text with commas."""
    value = fields.get(name, [])
    return value if isinstance(value, list) else value.replace("，", ",").replace("、", ",").split(",")


def _uri_of(path: str) -> str:
    """The address that a file's place says."""
    parts = PurePosixPath(path).with_suffix("").parts if path else ()
    if len(parts) < 2:  # noqa: PLR2004  (a domain and a path)
        raise InvalidError("there is no uri in its head", hint="add a line such as uri: project://shop/cart")
    return f"{parts[0]}://{'/'.join(parts[1:])}"


def _file_name(segment: str) -> str:
    if len(segment) <= _LONGEST_NAME:
        return segment
    return f"{segment[:_LONGEST_NAME]}-{hashlib.sha256(segment.encode()).hexdigest()[:12]}"


def _text(data: bytes) -> str:
    if len(data) > _LARGEST:
        raise InvalidError(f"it has {len(data):,} bytes, which is no memory")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidError(f"byte {error.start} is no UTF-8") from None
