"""A memory as JSON Lines: a head, each memory as it is now, each setting, then the whole log, event by event.

{"lorehooks": "jsonl-1", "created_at": "…", "release": "…"}
{"node": {"uri": "…", "content": "…", …}}
{"setting": {"key": "…", "value": …}}
{"event": {"seq": 12, "type": "create", …}}
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from lorehooks.core.archive import (
    Archive,
    ArchivedNode,
    assembled,
    event_json,
    loads,
    node_json,
    read_event,
    read_node,
)
from lorehooks.core.errors import InvalidError, short
from lorehooks.core.events import Event
from lorehooks.core.wellformed import json_line, well_formed_json

FORM = "jsonl-1"


def lines_of(archive: Archive, *, created_at: str, release: str) -> Iterator[bytes]:
    """The file, line by line."""
    yield _line({"lorehooks": FORM, "created_at": created_at, "release": release})
    for node in archive.nodes:
        yield _line({"node": node_json(node)})
    for key, value in archive.settings.items():
        yield _line({"setting": {"key": key, "value": value}})
    for event in archive.events:
        yield _line({"event": event_json(event)})


def is_lines(data: bytes) -> bool:
    """Whether a file says that it is one of these."""
    return data.removeprefix(b"\xef\xbb\xbf").lstrip().startswith((b'{"lorehooks":', b'{"lorehooks" :'))


def archive_of_lines(data: bytes) -> Archive:
    """Read a file back. Raises InvalidError with the line that is wrong."""
    nodes: list[ArchivedNode] = []
    events: list[Event] = []
    settings: dict[str, Any] = {}
    head = True
    for number, line in enumerate(data.split(b"\n"), start=1):
        if not line.strip():
            continue
        raw = loads(line, f"line {number}")
        if not isinstance(raw, dict):
            raise InvalidError(f"line {number} is a JSON object, not {short(raw)}")
        if head:
            head = False
            if raw.get("lorehooks") != FORM:
                raise InvalidError(f"line {number}: this release reads {FORM}, not {short(raw.get('lorehooks'))}")
        elif "node" in raw:
            nodes.append(read_node(raw["node"], f"line {number}"))
        elif "event" in raw:
            events.append(read_event(raw["event"], f"line {number}"))
        elif "setting" in raw:
            key, value = _setting(raw["setting"], number)
            settings[key] = value
        else:
            raise InvalidError(f"line {number} is no memory, setting or event")
    return assembled(nodes, events, settings)


def _setting(raw: Any, number: int) -> tuple[str, Any]:
    if not isinstance(raw, dict) or not isinstance(raw.get("key"), str):
        raise InvalidError(f"line {number}: a setting is {{key, value}}")
    return raw["key"], well_formed_json(raw.get("value"))


def _line(value: dict[str, Any]) -> bytes:
    return json_line(value).encode() + b"\n"
