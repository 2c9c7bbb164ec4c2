"""A memory outside of its database: what export files hold and import takes, whatever their form.

Everything here comes from a file that somebody may have written by hand, so each value is held to the rules of the memory
before it is believed. Forms: Markdown (`archive_markdown`), JSON Lines (`archive_lines`), `lore-backup-v1` (`archive_v1`).
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, get_args

from lorehooks.core import policy
from lorehooks.core import uri as uris
from lorehooks.core.clock import from_iso, to_iso
from lorehooks.core.errors import InvalidError, short
from lorehooks.core.events import Event, EventType, State
from lorehooks.core.history import NODE_EVENTS
from lorehooks.core.model import BOOT_URIS
from lorehooks.core.store import boot_uuid
from lorehooks.core.wellformed import well_formed, well_formed_json
from lorehooks.core.writes import clean_keywords

_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_LONGEST_NAME = 400
"""Characters of a source, session or query id; those are made by machines."""
_MOST_SEQ = 2**50
"""Numbers that every JSON reader keeps exact, far below where SQLite ends."""
_STATES: Final = {"create": ("after",), "delete": ("before",)}
_BOTH: Final = ("before", "after")
_TYPES = frozenset(get_args(EventType))


@dataclass(frozen=True, slots=True)
class ArchivedNode:
    """One memory in an archive. What a form does not carry is empty."""

    state: State
    uuid: str = ""
    created_at: str = ""
    updated_at: str = ""
    content_at: str = ""

    @property
    def uri(self) -> str:
        uri: str = self.state["uri"]
        return uri


@dataclass(frozen=True, slots=True)
class Archive:
    """`nodes` are the memories as they are in the file, by address; `events` how they came to be, where the form says it."""

    nodes: tuple[ArchivedNode, ...] = ()
    events: tuple[Event, ...] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    """What the file has and a memory does not take, one line each."""


def archive_of(raw: object) -> Archive:
    """The archive in a JSON value as `as_json` makes it. Raises InvalidError that names what is wrong."""
    if not isinstance(raw, dict):
        raise InvalidError("An archive is a JSON object")
    parts = {name: raw.get(name) or [] for name in ("nodes", "events")}
    for name, value in parts.items():
        if not isinstance(value, list):
            raise InvalidError(f"{name} of an archive is a list, not {short(value)}")
    settings = raw.get("settings") or {}
    if not isinstance(settings, dict):
        raise InvalidError(f"settings of an archive is an object, not {short(settings)}")
    return assembled(
        [read_node(one, f"memory {number}") for number, one in enumerate(parts["nodes"], start=1)],
        [read_event(one, f"event {number}") for number, one in enumerate(parts["events"], start=1)],
        well_formed_json(settings),
    )


def as_json(archive: Archive) -> dict[str, Any]:
    """An archive in what JSON has, without its notes."""
    return {
        "nodes": [node_json(node) for node in archive.nodes],
        "events": [event_json(event) for event in archive.events],
        "settings": dict(archive.settings),
    }


def assembled(
    nodes: list[ArchivedNode], events: list[Event], settings: Mapping[str, Any], notes: tuple[str, ...] = ()
) -> Archive:
    """An archive from parts that were read. Raises InvalidError when they contradict each other.

    A memory that the log leaves alive and that no part describes is taken from the log; where both do, the description
    wins, since people edit that.
    """
    seqs = [event.seq for event in events]
    if len(set(seqs)) != len(seqs):
        raise InvalidError("Two events of the file have the same number")
    events = sorted(events, key=lambda event: event.seq)
    described = {node.uuid for node in nodes if node.uuid}
    nodes = [*nodes, *(node for node in living(events) if node.uuid not in described)]
    for what, values in (
        ("address", [node.uri for node in nodes]),
        ("uuid", [node.uuid for node in nodes if node.uuid]),
    ):
        for value, times in Counter(values).items():
            if times > 1:
                raise InvalidError(f"Two memories of the file have the {what} {value}")
    return Archive(tuple(sorted(nodes, key=lambda node: node.uri)), tuple(events), settings, notes)


def living(events: list[Event]) -> list[ArchivedNode]:
    """The memories that a log leaves, as `events.project` would make them."""
    found: dict[str, ArchivedNode] = {}
    for event in events:
        if event.node_uuid is None or event.type not in NODE_EVENTS:
            continue
        if event.type == "delete":
            found.pop(event.node_uuid, None)
            continue
        before, after = found.get(event.node_uuid), event.data["after"]
        created = before.created_at if before else event.data.get("created_at", event.at)
        same = before is not None and before.state["content"] == after["content"]
        content_at = before.content_at if before is not None and same else event.at
        found[event.node_uuid] = ArchivedNode(after, event.node_uuid, created, event.at, content_at)
    return list(found.values())


def below(archive: Archive, uri: uris.Uri) -> Archive:
    """The part at an address and below it, deleted memories that last stood there included. Settings are left out."""
    last = {event.node_uuid: event.uri or "" for event in archive.events if event.type in NODE_EVENTS}
    last |= {node.uuid: node.uri for node in archive.nodes if node.uuid}
    wanted = {uuid for uuid, address in last.items() if uri.contains(uris.parse(address))}
    return Archive(
        tuple(node for node in archive.nodes if uri.contains(uris.parse(node.uri))),
        tuple(event for event in archive.events if event.node_uuid is not None and event.node_uuid in wanted),
        {},
        archive.notes,
    )


def read_node(raw: object, name: str) -> ArchivedNode:
    """A memory from JSON; `name` says which in an error."""
    fields = _object(raw, name)
    uuid = fields.get("uuid") or ""
    if uuid and not (isinstance(uuid, str) and _UUID.fullmatch(uuid)):
        raise InvalidError(f"{name}: {short(uuid)} is no uuid")
    state = read_state(fields, name)
    moments = {key: _moment(fields.get(key), name) for key in ("created_at", "updated_at", "content_at")}
    return ArchivedNode(state, _checked_identity(uuid, state, name), **moments)


def node_json(node: ArchivedNode) -> dict[str, Any]:
    """A memory in what JSON has; what is empty because its form does not carry it is left out."""
    extra = {"uuid": node.uuid, "created_at": node.created_at, "updated_at": node.updated_at}
    return node.state | {name: value for name, value in {**extra, "content_at": node.content_at}.items() if value}


def read_state(raw: object, name: str) -> State:
    """What a person or agent wrote of a memory, held to the rules for writing. Raises InvalidError."""
    fields = _object(raw, name)
    uri, content, disclosure = (
        _text(fields.get(key, ""), f"{name}: {key}") for key in ("uri", "content", "disclosure")
    )
    keywords = fields.get("glossary") or []
    if not isinstance(keywords, list) or not all(isinstance(keyword, str) for keyword in keywords):
        raise InvalidError(f"{name}: glossary is a list of words, not {short(keywords)}")
    glossary = clean_keywords(keywords)
    priority = fields.get("priority")
    try:
        address = str(uris.parse_for_write(uri))
        policy.check_priority_value(priority)
        policy.check_text(content, disclosure, glossary)
    except InvalidError as error:
        raise InvalidError(f"{name}: {error.message}", hint=error.hint) from None
    return {
        "uri": address,
        "content": content,
        "priority": priority,
        "disclosure": disclosure.strip(),
        "glossary": list(glossary),
    }


def read_event(raw: object, name: str) -> Event:
    """One event of an exact log. Raises InvalidError."""
    fields = _object(raw, name)
    seq, kind = fields.get("seq"), fields.get("type")
    if not isinstance(seq, int) or isinstance(seq, bool) or not 0 < seq < _MOST_SEQ:
        raise InvalidError(f"{name}: seq is a number from 1, not {short(seq)}")
    name = f"event {seq}"
    if not isinstance(kind, str) or kind not in _TYPES:
        raise InvalidError(f"{name}: {short(kind)} is no kind of event that this release knows")
    uuid = fields.get("node_uuid")
    if uuid is not None and not (isinstance(uuid, str) and _UUID.fullmatch(uuid)):
        raise InvalidError(f"{name}: {short(uuid)} is no uuid")
    texts = {key: _name(fields.get(key), f"{name}: {key}") for key in ("client_type", "session_id", "uri")}
    at = _moment(fields.get("at"), name)
    if not at:
        raise InvalidError(f"{name}: there is no moment in it")
    source = _name(fields.get("source"), f"{name}: source") or "import"
    data = well_formed_json(_object(fields.get("data"), f"{name}: data"))
    event = Event(seq, kind, at, source, texts["client_type"], texts["session_id"], uuid, texts["uri"], data)  # type: ignore[arg-type]
    return _checked_event(event, name)


def event_json(event: Event) -> dict[str, Any]:
    """An event in what JSON has."""
    return {
        "seq": event.seq,
        "type": event.type,
        "at": event.at,
        "source": event.source,
        "client_type": event.client_type,
        "session_id": event.session_id,
        "node_uuid": event.node_uuid,
        "uri": event.uri,
        "data": event.data,
    }


def loads(data: bytes | str, name: str) -> Any:
    """JSON from outside. Raises InvalidError for whatever is none, `NaN` and nesting without end among it."""
    try:
        text = data.decode("utf-8-sig") if isinstance(data, bytes) else data
        return json.loads(text, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        said = "it nests too deep" if isinstance(error, RecursionError) else str(error)
        raise InvalidError(f"{name} is no JSON: {said}") from None


def _checked_event(event: Event, name: str) -> Event:
    """The event with the data that its kind needs, in the form in which this memory writes it."""
    data = dict(event.data)
    match event.type:
        case kind if kind in NODE_EVENTS:
            wanted = _STATES.get(kind, _BOTH)
            data |= {part: read_state(data.get(part), f"{name}: {part}") for part in wanted}
            if "created_at" in data:
                data["created_at"] = _moment(data["created_at"], name) or event.at
            state = data["before" if kind == "delete" else "after"]
            if event.node_uuid is None:
                raise InvalidError(f"{name}: it says of which memory it is not")
            _checked_identity(event.node_uuid, state, name)
            if state["uri"] in BOOT_URIS and (kind in ("move", "delete") or data["after"]["uri"] not in BOOT_URIS):
                raise InvalidError(f"{name}: {state['uri']} is a fixed boot node, which never moves or goes")
            return _with(event, data, state["uri"])
        case "proposal":
            data |= {part: read_state(data.get(part), f"{name}: {part}") for part in _BOTH}
            needed = event.node_uuid is not None and data["after"]["uri"] in BOOT_URIS
            if needed:
                _checked_identity(event.node_uuid or "", data["after"], name)
            _require(needed, name)
            return _with(event, data, data["after"]["uri"])
        case "view":
            _require(event.node_uuid is not None and data.get("type") in ("gist", "question"), name)
            if data.get("text") is not None:
                for part in ("text", "signature"):
                    _require(isinstance(data.get(part), str), name)
                _require(isinstance(data.get("model"), str | None), name)
        case "setting":
            _require(isinstance(data.get("key"), str) and isinstance(data.get("value"), str | int | float | None), name)
        case "use":
            _require(event.node_uuid is not None and data.get("how") in ("passed", "filled", "none"), name)
            _require(isinstance(data.get("query_id"), str), name)
        case "proposal_accepted" | "proposal_rejected":
            _require(isinstance(data.get("proposal"), int) and event.node_uuid is not None, name)
        case _:  # a tombstone
            data = {part: count for part, count in data.items() if isinstance(count, int)}
    return _with(event, data, event.uri)


def _with(event: Event, data: dict[str, Any], uri: str | None) -> Event:
    return Event(
        event.seq, event.type, event.at, event.source, event.client_type, event.session_id, event.node_uuid, uri, data
    )


def _checked_identity(uuid: str, state: State, name: str) -> str:
    """The uuid a memory has here: fixed boot nodes have the same in every memory of ours, and nothing else has it."""
    uri = state["uri"]
    if uri in BOOT_URIS:
        return boot_uuid(uri)
    if uuid and uuid in _BOOT_UUIDS:
        raise InvalidError(f"{name}: {uri} has the uuid of a fixed boot node")
    return uuid


_BOOT_UUIDS = frozenset(boot_uuid(uri) for uri in BOOT_URIS)


def _object(raw: object, name: str) -> dict[str, Any]:
    if not isinstance(raw, dict):
        raise InvalidError(f"{name} is a JSON object, not {short(raw)}")
    return raw


def _text(value: object, name: str) -> str:
    if value is None:
        return ""
    if not isinstance(value, str):
        raise InvalidError(f"{name} is a text, not {short(value)}")
    return well_formed(value)


def _name(value: object, name: str) -> str | None:
    text = _text(value, name)
    if len(text) > _LONGEST_NAME:
        raise InvalidError(f"{name} has {len(text)} characters, the limit is {_LONGEST_NAME}")
    return text or None


def _moment(value: object, name: str) -> str:
    """A moment in the form in which this memory writes it; empty for none. Raises InvalidError."""
    if value is None or value == "":
        return ""
    try:
        if isinstance(value, datetime):
            return to_iso(value)
        return to_iso(from_iso(str(value) if not isinstance(value, str) else value.strip()))
    except (ValueError, OverflowError):
        raise InvalidError(f"{name}: {short(value)} is no moment such as 2031-05-04T12:00:00Z") from None


def _require(met: bool, name: str) -> None:
    if not met:
        raise InvalidError(f"{name}: it does not say what an event of its kind says")


def _no_constant(name: str) -> object:
    raise ValueError(f"{name} is no JSON number")
