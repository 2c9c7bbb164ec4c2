"""Reading `lore-backup-v1`, the public server's backup and the one that ours exports (`lore-contract.md` 5.1, 6.4).

Our own carries the exact log beside its tables, and then only that counts. The public server's tables are brought into our
model: its paths are held to the grammar, a second path of a memory is dropped, and its events become history as far as
they say what was.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from lorehooks.core import uri as uris
from lorehooks.core.archive import Archive, ArchivedNode, archive_of, assembled, loads, read_node
from lorehooks.core.archive_v1_events import history_of
from lorehooks.core.backup_v1 import FORMAT, ROOT_UUID
from lorehooks.core.errors import InvalidError, short
from lorehooks.core.model import BOOT_URIS, DEFAULT_PRIORITY

Row = Mapping[str, Any]
_TABLES = ("nodes", "memories", "edges", "paths", "glossary_keywords", "app_settings", "memory_events")
_NEEDED = ("nodes", "memories", "edges", "paths")
_MAX_PRIORITY = 1_000_000


def archive_of_backup(data: bytes) -> Archive:
    """Read a backup. Raises InvalidError for what is none, with the table and row that is wrong."""
    document = loads(data, "the backup")
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        said = document.get("format") if isinstance(document, dict) else document
        raise InvalidError(f"a backup has the format {FORMAT}, not {short(said)}")
    tables = _tables(document)
    settings = dict(_settings(tables["app_settings"]))
    exact = document.get("lorehooks")
    if isinstance(exact, dict) and isinstance(exact.get("events"), list):
        return archive_of({"events": exact["events"], "settings": settings})
    nodes, notes = _nodes(tables)
    return assembled(list(nodes.values()), history_of(tables["memory_events"], nodes), settings, tuple(notes))


def _tables(document: Row) -> dict[str, list[Row]]:
    tables = document.get("tables")
    if not isinstance(tables, dict):
        raise InvalidError("the backup has no tables")
    found: dict[str, list[Row]] = {}
    for name in _TABLES:
        rows = tables.get(name)
        if rows is None and name not in _NEEDED:
            rows = []
        if not isinstance(rows, list):
            raise InvalidError(f"the backup has no table {name}")
        for number, row in enumerate(rows, start=1):
            if not isinstance(row, dict):
                raise InvalidError(f"{name}, row {number} is no object")
        found[name] = rows
    return found


def _nodes(tables: Mapping[str, list[Row]]) -> tuple[dict[str, ArchivedNode], list[str]]:
    """The memories that have a path by the uuid they have there, and what could not be taken as it is. Ids are numbers or texts, as drivers write them."""
    created = {str(row.get("uuid")): row.get("created_at") for row in tables["nodes"]}
    current = _current(tables["memories"])
    edges = {str(row.get("id")): row for row in tables["edges"]}
    words: dict[str, list[str]] = {}
    for row in tables["glossary_keywords"]:
        words.setdefault(str(row.get("node_uuid")), []).append(str(row.get("keyword")))
    changed = _last_changes(tables)
    nodes: dict[str, ArchivedNode] = {}
    notes: list[str] = []
    at_address: dict[str, str] = {}
    for number, (row, original) in enumerate(_paths(tables["paths"]), start=1):
        edge = edges.get(str(row.get("edge_id")))
        uuid = str(edge.get("child_uuid")) if edge else ""
        if edge is None or uuid == ROOT_UUID:
            notes.append(f"{original} leads to no memory and is passed over")
            continue
        address = clean_address(original)
        if not address:
            notes.append(f"{original} is no address that memory takes, and is passed over")
            continue
        if uuid in nodes:
            notes.append(f"{original} is a second path of {nodes[uuid].uri} and is passed over")
            continue
        if address in at_address:
            notes.append(f"{original} would stand at {address}, where {at_address[address]} stands, and is passed over")
            continue
        if address != original:
            notes.append(f"{original} becomes {address}")
        at_address[address] = original
        memory = current.get(uuid, {})
        raw = {
            "uri": address,
            "uuid": uuid,
            "content": memory.get("content"),
            "priority": _priority(edge.get("priority"), original, notes),
            "disclosure": edge.get("disclosure"),
            "glossary": words.get(uuid, []),
            "created_at": created.get(uuid) or edge.get("created_at"),
            "content_at": memory.get("created_at"),
            "updated_at": changed.get(uuid) or memory.get("created_at"),
        }
        nodes[uuid] = read_node(raw, f"paths, row {number} ({original})")
    return nodes, notes


def _paths(rows: list[Row]) -> Iterator[tuple[Row, str]]:
    """Every path with its address, fixed boot nodes first: a memory that stands at one of those belongs there."""
    addressed = [(row, f"{row.get('domain') or uris.DEFAULT_DOMAIN}://{row.get('path') or ''}") for row in rows]
    return iter(sorted(addressed, key=lambda pair: (pair[1].lower() not in BOOT_URIS, pair[1])))


def clean_address(text: str) -> str:
    """An address of the public server in our grammar, which it does not hold to; empty where nothing is left of it."""
    domain, _, path = text.partition("://")
    parts = [re.sub(r"[^a-z0-9]+", "_", part.lower()).strip("_") for part in (domain, *path.split("/")) if part.strip()]
    if len(parts) < 2 or not all(parts):  # noqa: PLR2004  (a domain and a path)
        return ""
    address = f"{parts[0]}://{'/'.join(parts[1:])}"
    return address if len(address) <= uris.MAX_LENGTH else ""


def _current(rows: list[Row]) -> dict[str, Row]:
    """The content in force of each memory: the newest row that no other replaced."""
    found: dict[str, Row] = {}
    for row in rows:
        uuid = str(row.get("node_uuid"))
        if row.get("deprecated") is not True and (uuid not in found or _id(row) >= _id(found[uuid])):
            found[uuid] = row
    return found


def _last_changes(tables: Mapping[str, list[Row]]) -> dict[str, str]:
    """When each memory was last written to, as far as events and keywords tell. Moments of one server sort as text."""
    found: dict[str, str] = {}
    for name in ("memory_events", "glossary_keywords"):
        for row in tables[name]:
            uuid, at = str(row.get("node_uuid")), row.get("created_at")
            if isinstance(at, str) and at > found.get(uuid, ""):
                found[uuid] = at
    return found


def _priority(value: object, address: str, notes: list[str]) -> int:
    if isinstance(value, int) and not isinstance(value, bool):
        if 0 <= value <= _MAX_PRIORITY:
            return value
        notes.append(f"{address} has the priority {short(value)}, which becomes {DEFAULT_PRIORITY}")
    return DEFAULT_PRIORITY


def _settings(rows: list[Row]) -> Iterator[tuple[str, Any]]:
    """Keys with their values, which that server wraps in an object."""
    for row in rows:
        key, value = row.get("key"), row.get("value")
        if isinstance(value, str):
            try:
                value = json.loads(value)
            except (ValueError, RecursionError):
                value = row.get("value")
        if isinstance(value, dict):
            value = value.get("value")
        if isinstance(key, str) and isinstance(value, str | int | float):
            yield key, value


def _id(row: Row) -> int:
    text = str(row.get("id"))
    return int(text) if text.isascii() and text.isdigit() and len(text) < 20 else 0  # noqa: PLR2004  (64 bits)
