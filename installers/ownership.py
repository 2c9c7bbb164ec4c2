"""Whose an entry in a host's settings is: ours, of another home of lorehooks, or of someone else. Told letter for letter."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from lorehooks.clients.runtimes import EventKind
from lorehooks.core.home import Home
from lorehooks.installers.edits import Path as Way
from lorehooks.installers.hookentries import Entry, entries, own_entries
from lorehooks.installers.jsondata import look_up
from lorehooks.installers.jsontext import Plain
from lorehooks.installers.registered import bridge_home_of, home_of

Owner = Literal["none", "ours", "gone", "other"]
"""`gone` is a home of lorehooks that is not there any more."""


@dataclass(frozen=True, slots=True)
class Hooks:
    """The hook entries below `way` in a host's settings. `events` has the host's name of each event that we register."""

    plain: Plain
    way: Way
    client_type: str
    events: Mapping[str, EventKind]
    home: Home

    @property
    def all(self) -> tuple[Entry, ...]:
        return tuple(entries(self.plain, self.way))

    @property
    def own(self) -> tuple[Entry, ...]:
        return own_entries(self.plain, self.way, self.home)

    def stale(self, good: Mapping[str, Entry]) -> tuple[Entry, ...]:
        """Entries that must go: ours beside the `good` ones or in another form, and those of a home that is gone."""
        found = []
        for entry in self.all:
            other = self._other_home(entry)
            if entry.runs(self.home):
                if good.get(entry.event) != entry:
                    found.append(entry)
            elif other is not None and not other.bin.is_dir():
                found.append(entry)
        return tuple(found)

    @property
    def other_homes(self) -> tuple[Path, ...]:
        """Homes beside ours whose hooks stand here and whose programs are there."""
        homes = {home.root for home in map(self._other_home, self.all) if home is not None}
        return tuple(root for root in sorted(homes) if Home(root).bin.is_dir())

    def _other_home(self, entry: Entry) -> Home | None:
        event = self.events.get(entry.event)
        home = home_of(entry.command, self.client_type, event) if event else None
        return home if home is not None and home.root != self.home.root else None


def server_owner(settings: Plain, way: Way, client_type: str, home: Home) -> Owner:
    """Whose the MCP server at `way` is, a table with `command` and `args`."""
    found, table = look_up(settings, way)
    if not found:
        return "none"
    _, program = look_up(table, ("command",))
    _, arguments = look_up(table, ("args",))
    words = [word for word in arguments if isinstance(word, str)] if isinstance(arguments, list) else []
    owner = bridge_home_of(program, words, client_type) if isinstance(program, str) else None
    if owner is None or words != arguments:
        return "other"
    if owner.root == home.root:
        return "ours"
    return "other" if owner.bin.is_dir() else "gone"
