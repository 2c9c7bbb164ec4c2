"""Hooks in the shape that Claude Code gave them and others took over: `{event: [{matcher?, hooks: [{command, …}]}]}`."""

from __future__ import annotations

from lorehooks.core.home import Home
from lorehooks.installers.edits import Edit, Path, Remove
from lorehooks.installers.jsondata import look_up
from lorehooks.installers.jsontext import Plain
from lorehooks.installers.registered import is_ours


def own_hooks(settings: Plain, home: Home, way: Path = ("hooks",)) -> tuple[Edit, ...]:
    """Edits that take out every handler that runs the hook program of this home, of any release.

    `way` leads to the object of events. A group goes whole when all its handlers are ours; from a mixed one only ours go.
    """
    _, events = look_up(settings, way)
    single: list[Edit] = []
    whole: list[Edit] = []
    for event, groups in events.items() if isinstance(events, dict) else ():
        for index, group in enumerate(groups if isinstance(groups, list) else ()):
            _, handlers = look_up(group, ("hooks",))
            own = [each for each in handlers if _is_own(each, home)] if isinstance(handlers, list) else []
            if isinstance(handlers, list) and own and len(own) == len(handlers):
                whole.append(Remove((*way, event), group))
            else:
                single += [Remove((*way, event, index, "hooks"), each) for each in own]
    return (*single, *whole)  # places first: taking a group out moves those behind it


def _is_own(handler: Plain, home: Home) -> bool:
    """Whether a handler runs our hook program: as one shell command, or as a program with arguments."""
    _, command = look_up(handler, ("command",))
    _, arguments = look_up(handler, ("args",))
    words = [command, *(arguments if isinstance(arguments, list) else ())]
    return any(isinstance(word, str) and is_ours(word, home) for word in words)
