"""Bringing an archive into a memory: what is new, what is the same, what differs and who wins, worked out before anything is written.

Nothing here is ever deleted. A memory that is not here comes with its whole history; one that the file continues from the
very state that is here gets the rest of it; anything else becomes one update. An empty memory (a fixed boot node that
nobody has written to, a parent made to hold its children) holds nothing that could be lost, so it is filled.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal
from uuid import uuid4

from lorehooks.core import policy
from lorehooks.core import uri as uris
from lorehooks.core.archive import Archive, ArchivedNode
from lorehooks.core.errors import LoreError
from lorehooks.core.events import Event, State, state_of
from lorehooks.core.history import NODE_EVENTS
from lorehooks.core.lineage import continuation, log_key, without_clashes
from lorehooks.core.model import BOOT_URIS, DEFAULT_PRIORITY, Node
from lorehooks.core.secrets import find_secrets
from lorehooks.core.settings import SETTINGS
from lorehooks.core.store import empty_state

Keep = Literal["ours", "theirs", "newer"]
Kind = Literal["new", "filled", "same", "different"]
IMPORT = "import"


@dataclass(frozen=True, slots=True)
class Wishes:
    """What the person said. `keep`: who wins where both sides have something and it differs."""

    keep: Keep = "ours"
    settings: bool = False
    """Whether settings in the file are taken too: they may name a server to send texts to."""
    allow_secret: bool = False


@dataclass(frozen=True, slots=True)
class Here:
    """What of this memory a merge has to know, as of one moment."""

    nodes: Mapping[str, Node]
    """By uuid."""
    events: Mapping[str, Sequence[Event]]
    """By uuid, everything the log says of memories that the archive knows, too."""
    settings: Mapping[str, Any]
    """Settings that were set, with their values."""
    priority_caps: bool
    now: str


@dataclass(frozen=True, slots=True)
class Entry:
    """One memory of the file. `uri` is where it stands here afterwards; `taken` whether the file's state is what counts then."""

    uri: str
    kind: Kind
    taken: bool
    note: str = ""


@dataclass(frozen=True, slots=True)
class SettingEntry:
    """One setting of the file."""

    key: str
    kind: Kind
    taken: bool


@dataclass(frozen=True, slots=True)
class Draft:
    """An event to append. `seq` is the number it had in the file, None for one that the merge itself makes."""

    event: Event
    seq: int | None = None


@dataclass(frozen=True, slots=True)
class MergePlan:
    """What an import does. `secrets` name memories that hold what looks like a key; an import with any is refused."""

    entries: tuple[Entry, ...] = ()
    settings: tuple[SettingEntry, ...] = ()
    parents: tuple[str, ...] = ()
    """Addresses at which an empty memory is made to hold others."""
    secrets: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    drafts: tuple[Draft, ...] = ()

    @property
    def counts(self) -> dict[str, int]:
        """How many memories of each kind."""
        found = Counter(entry.kind for entry in self.entries)
        return {kind: found[kind] for kind in ("new", "filled", "same", "different")}


@dataclass(slots=True)
class _Choice:
    """How one memory of the file gets here."""

    node: ArchivedNode
    here: Node | None
    kind: Kind
    way: Literal["history", "onward", "create", "update", "leave"]
    rest: Sequence[Event] = ()
    """Events that come along."""
    note: str = ""
    wanted: State = field(default_factory=dict)

    @property
    def uuid(self) -> str:
        return self.here.uuid if self.here else self.node.uuid


def plan_merge(here: Here, archive: Archive, wishes: Wishes) -> MergePlan:
    """Work out a merge. Pure but for new uuids; raises nothing for an archive that was read by `archive`."""
    logs: dict[str, list[Event]] = {}
    for event in archive.events:
        if event.node_uuid is not None:
            logs.setdefault(event.node_uuid, []).append(event)
    choices = _choices(here, archive, logs, wishes.keep)
    gone = _histories_of_deleted(here, archive, logs)
    notes = [*archive.notes, *_settle_clashes(here, choices, gone)]
    _hold_caps(here, choices)
    writer = _Writer(here)
    writer.histories(
        [*(event for choice in choices for event in choice.rest), *(e for log in gone.values() for e in log)]
    )
    for choice in sorted(choices, key=lambda choice: choice.here is None):  # who moves away makes room first
        writer.finish(choice)
    parents = writer.parents()
    settings = _settings(here, archive, wishes, writer)
    secrets = [] if wishes.allow_secret else _secrets(here, writer.drafts)
    entries = tuple(
        Entry(choice.wanted["uri"], choice.kind, choice.way != "leave" or choice.kind == "same", choice.note)
        for choice in choices
    )
    return MergePlan(entries, settings, tuple(parents), tuple(secrets), tuple(notes), tuple(writer.drafts))


def _choices(here: Here, archive: Archive, logs: Mapping[str, Sequence[Event]], keep: Keep) -> list[_Choice]:
    """One choice for each memory of the file: those known by uuid, then those that meet another one at their address."""
    by_uri = {node.uri: node for node in here.nodes.values()}
    known = {
        node.uuid: _meeting(here.nodes[node.uuid], node, here, by_uri, logs, keep)
        for node in archive.nodes
        if node.uuid in here.nodes
    }
    choices = []
    for node in archive.nodes:
        there = by_uri.get(node.uri)
        moved = known.get(there.uuid) if there else None
        if node.uuid in known:
            choices.append(known[node.uuid])
        elif there is None or (moved is not None and moved.wanted["uri"] != node.uri):
            choices.append(_newcomer(here, node, logs))
        elif moved is not None:
            note = f"stays out: {moved.node.uri} of the file stands at its address here"
            choices.append(_Choice(node, None, "different", "leave", (), note, dict(node.state)))
        else:
            choices.append(_meeting(there, node, here, by_uri, logs, keep))
    return choices


def _newcomer(here: Here, node: ArchivedNode, logs: Mapping[str, Sequence[Event]]) -> _Choice:
    log = logs.get(node.uuid, ())
    if log and node.uuid not in here.events:
        return _Choice(node, None, "new", "history", log, wanted=dict(node.state))
    node = replace(node, uuid=node.uuid or str(uuid4()))
    return _Choice(node, None, "new", "create", wanted=dict(node.state))


def _meeting(
    found: Node,
    node: ArchivedNode,
    here: Here,
    by_uri: Mapping[str, Node],
    logs: Mapping[str, Sequence[Event]],
    keep: Keep,
) -> _Choice:
    """A memory of the file and the one here that it stands for."""
    note, wanted = "", dict(node.state)
    if found.uri != node.uri and (found.is_boot or node.uri in by_uri):
        note = f"stays at {found.uri}, since {node.uri} is taken"
        wanted["uri"] = found.uri
    rest = continuation(here.events[found.uuid], logs.get(node.uuid, ())) if found.uuid == node.uuid else None
    if wanted == state_of(found):
        if found.is_boot and _is_empty(found) and rest:
            return _Choice(node, found, "same", "onward", rest, note, wanted)
        return _Choice(node, found, "same", "leave", (), note, wanted)
    kind: Kind = "filled" if _is_empty(found) else "different"
    if kind == "different" and not (keep == "theirs" or (keep == "newer" and node.updated_at > found.updated_at)):
        return _Choice(node, found, kind, "leave", (), note, state_of(found))
    return _Choice(node, found, kind, "onward" if rest else "update", rest or (), note, wanted)


def _is_empty(node: Node) -> bool:
    return not (node.content or node.disclosure or node.glossary)


def _histories_of_deleted(here: Here, archive: Archive, logs: Mapping[str, list[Event]]) -> dict[str, Sequence[Event]]:
    """What the file remembers of memories that it has no more, where this memory has never heard of them."""
    alive = {node.uuid for node in archive.nodes}
    return {
        uuid: log
        for uuid, log in logs.items()
        if uuid not in alive and uuid not in here.events and any(event.type in NODE_EVENTS for event in log)
    }


def _settle_clashes(here: Here, choices: Sequence[_Choice], gone: dict[str, Sequence[Event]]) -> list[str]:
    """Let go of histories that would put two memories at one address in between; the memories themselves come all the same."""
    histories = {choice.uuid: choice.rest for choice in choices if choice.rest} | gone
    clashing = without_clashes({node.uri: node.uuid for node in here.nodes.values()}, histories)
    notes = []
    for choice in choices:
        if choice.rest and choice.uuid in clashing:
            choice.rest = ()
            choice.way = "create" if choice.here is None else "update"
            choice.note = choice.note or "comes without its history, which stood where another memory stands here"
    for uuid in clashing & gone.keys():
        del gone[uuid]
        notes.append("The history of a deleted memory stays out, since another memory stands at its address here")
    return notes


def _hold_caps(here: Here, choices: Sequence[_Choice]) -> None:
    """Lower the priority of memories for which there is no room, the last ones by address first."""
    if not here.priority_caps:
        return
    written = {choice.uuid for choice in choices if choice.here is not None and choice.way != "leave"}
    count = Counter(node.priority for node in here.nodes.values() if not node.is_boot and node.uuid not in written)
    for choice in sorted(choices, key=lambda choice: (choice.wanted["priority"], choice.wanted["uri"])):
        if choice.way == "leave" or choice.wanted["uri"] in BOOT_URIS:
            continue
        asked = level = choice.wanted["priority"]
        while level in policy.PRIORITY_CAPS and count[level] >= policy.PRIORITY_CAPS[level]:
            level += 1
        count[level] += 1
        if level != asked:
            choice.wanted["priority"] = level
            choice.note = f"priority {asked} becomes {level}: there is room for {policy.PRIORITY_CAPS[asked]}"


def _settings(here: Here, archive: Archive, wishes: Wishes, writer: _Writer) -> tuple[SettingEntry, ...]:
    """Settings of the file that this release knows."""
    entries = []
    for key, given in sorted(archive.settings.items()):
        setting = SETTINGS.get(key)
        if setting is None or setting.scope != "memory" or setting.secret:
            continue
        try:
            value = setting.check(given)
        except LoreError:
            continue
        ours = here.settings.get(key)
        kind: Kind = "new" if ours is None else "same" if ours == value else "different"
        taken = wishes.settings and (kind == "new" or (kind == "different" and wishes.keep == "theirs"))
        if taken:
            writer.add("setting", {"key": key, "value": value})
        entries.append(SettingEntry(key, kind, taken or kind == "same"))
    return tuple(entries)


def _secrets(here: Here, drafts: Sequence[Draft]) -> list[str]:
    found: dict[str, None] = {}
    for draft in drafts:
        event = draft.event
        after: State = event.data.get("after") or {}
        ours = here.nodes.get(event.node_uuid or "")
        known = "\n".join((ours.content, ours.disclosure, *ours.glossary)) if ours else ""
        texts = (after.get("content", ""), after.get("disclosure", ""), *after.get("glossary", ()))
        for text in (*texts, str(event.data.get("text") or "")):
            for secret in find_secrets(text):
                if text[secret.start : secret.end] not in known:
                    found.setdefault(f"{event.uri}: {secret.kind} {secret.masked}")
    return list(found)


class _Writer:
    """Collects the events of a merge and keeps in mind what each memory is by then."""

    def __init__(self, here: Here) -> None:
        self.here = here
        self.drafts: list[Draft] = []
        self.states: dict[str, State] = {node.uuid: state_of(node) for node in here.nodes.values()}
        self._known = {log_key(event) for log in here.events.values() for event in log if event.type not in NODE_EVENTS}

    def histories(self, events: Sequence[Event]) -> None:
        """Take over events of the file in their order."""
        for event in sorted(events, key=lambda event: event.seq):
            if event.type not in NODE_EVENTS:
                if log_key(event) in self._known:
                    continue
            elif event.type == "delete":
                self.states.pop(event.node_uuid or "", None)
            else:
                self.states[event.node_uuid or ""] = event.data["after"]
            self.drafts.append(Draft(replace(event, at=min(event.at, self.here.now)), event.seq))

    def finish(self, choice: _Choice) -> None:
        """Bring a memory to the state that it shall have, from wherever its history has brought it."""
        if choice.way == "leave":
            return
        node, wanted = choice.node, choice.wanted
        before = self.states.get(choice.uuid)
        written = min(node.updated_at or self.here.now, self.here.now)
        if before is None:
            data: dict[str, Any] = {"after": wanted}
            if node.created_at and node.created_at < written:
                data["created_at"] = node.created_at
            self.add("create", data, uuid=choice.uuid, uri=wanted["uri"], at=written)
            return
        if before["uri"] != wanted["uri"]:
            moved = before | {"uri": wanted["uri"]}
            data = {"before": before, "after": moved, "root": before["uri"]}
            self.add("move", data, uuid=choice.uuid, uri=wanted["uri"])
            before = moved
        if before != wanted:
            at = written if choice.kind == "filled" else self.here.now
            self.add("update", {"before": before, "after": wanted}, uuid=choice.uuid, uri=wanted["uri"], at=at)

    def parents(self) -> list[str]:
        """Make what is missing above any memory; answers the addresses, from the top."""
        present = {state["uri"] for state in self.states.values()}
        missing: set[str] = set()
        for text in present:
            above = uris.parse(text).parent
            while above is not None and str(above) not in present | missing:
                missing.add(str(above))
                above = above.parent
        for text in sorted(missing):
            self.add(
                "create", {"after": empty_state(text) | {"priority": DEFAULT_PRIORITY}}, uuid=str(uuid4()), uri=text
            )
        return sorted(missing)

    def add(self, kind: Any, data: dict[str, Any], *, uuid: str = "", uri: str | None = None, at: str = "") -> None:
        """Draft an event of the merge's own."""
        self.drafts.append(
            Draft(Event(0, kind, at or self.here.now, IMPORT, node_uuid=uuid or None, uri=uri, data=data))
        )
        if uuid and "after" in data:
            self.states[uuid] = data["after"]
