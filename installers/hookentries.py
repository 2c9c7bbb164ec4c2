"""The hook entries in a settings file, in the shape that Claude Code began: events, groups with a matcher, handlers.

{"<Event>": [{"matcher": "...", "hooks": [{"type": "command", "command": "..."}]}]}
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from lorehooks.core.home import Home
from lorehooks.installers.edits import Edit, Path, Prune, Remove
from lorehooks.installers.jsondata import look_up
from lorehooks.installers.jsontext import Plain
from lorehooks.installers.registered import is_ours

_WORDS = re.compile(r"[A-Za-z0-9_|]+")


@dataclass(frozen=True, slots=True)
class Entry:
    """One handler, and where it stands: at `value` in the group at position `group` of the list at `way`."""

    way: Path
    group: int
    handler: int
    whole: Plain
    """The group."""
    value: Plain
    """The handler."""

    @property
    def event(self) -> str:
        return str(self.way[-1])

    @property
    def command(self) -> str:
        """The command line, or of a program started without a shell what its shell gets to run; empty for other types."""
        _, command = look_up(self.value, ("command",))
        arguments = _list(self.value, "args")
        if command == "/bin/sh" and len(arguments) > 1 and arguments[0] == "-c":
            command = arguments[1]
        return command if isinstance(command, str) else ""

    @property
    def matcher(self) -> str:
        _, matcher = look_up(self.whole, ("matcher",))
        return matcher if isinstance(matcher, str) else ""

    def runs(self, home: Home) -> bool:
        """Whether it runs the hook program of this home, in whatever form."""
        _, command = look_up(self.value, ("command",))
        words = (command, *_list(self.value, "args"))
        return any(isinstance(word, str) and is_ours(word, home) for word in words)

    def takes(self, word: str) -> bool:
        """Whether its matcher lets a source or a tool's name through, as Claude Code and Codex read matchers."""
        matcher = self.matcher
        if matcher in ("", "*"):
            return True
        if _WORDS.fullmatch(matcher):
            return word in matcher.split("|")
        try:
            return re.search(matcher, word) is not None
        except re.error:
            return False


def entries(plain: Plain, way: Path) -> Iterator[Entry]:
    """All handlers below the object of events at `way`. What has another shape is passed over."""
    _, events = look_up(plain, way)
    for event, groups in events.items() if isinstance(events, dict) else ():
        for index, group in enumerate(groups if isinstance(groups, list) else ()):
            for position, handler in enumerate(_list(group, "hooks")):
                yield Entry((*way, event), index, position, group, handler)


def own_entries(plain: Plain, way: Path, home: Home) -> tuple[Entry, ...]:
    """Those that run the hook program of this home."""
    return tuple(entry for entry in entries(plain, way) if entry.runs(home))


def own_hooks(settings: Plain, home: Home, way: Path = ("hooks",)) -> tuple[Edit, ...]:
    """The edits that take out every handler that runs the hook program of this home, of any release."""
    return tuple(take_out(own_entries(settings, way, home)))


def take_out(gone: Sequence[Entry]) -> Iterator[Edit]:
    """The edits that remove handlers: whole groups where nothing else is in them, and those last, since positions shift."""
    whole: list[Edit] = []
    for entry in gone:
        inside = [each for each in gone if (each.way, each.group) == (entry.way, entry.group)]
        if len(inside) == len(_list(entry.whole, "hooks")):
            edit = Remove(entry.way, entry.whole)
            whole += [] if edit in whole else [edit]
        else:
            yield Remove((*entry.way, entry.group, "hooks"), entry.value)
    yield from whole


def prunes(gone: Sequence[Entry], way: Path) -> Iterator[Edit]:
    """The edits that remove what is empty without these handlers."""
    for event_way in dict.fromkeys(entry.way for entry in gone):
        yield Prune(event_way)
    if gone:
        yield from (Prune(way[:length]) for length in range(len(way), 0, -1))


def _list(plain: Plain, key: str) -> list[Plain]:
    _, value = look_up(plain, (key,))
    return value if isinstance(value, list) else []
