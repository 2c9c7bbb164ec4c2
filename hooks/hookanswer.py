"""What a hook gets, and what the record says about it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from lorehooks.clients.backend import Recalled
from lorehooks.core.model import Candidate
from lorehooks.hooks.promptblock import Asked


@dataclass(frozen=True, slots=True)
class StartupRecall:
    """One question of a session start: what memory had, and the block for it, empty when nothing is shown."""

    text: str
    recalled: Recalled
    asked: Asked
    candidates: tuple[Candidate, ...]
    block: str


@dataclass(slots=True)
class HookAnswer:
    """The answer to one event."""

    text: str = ""
    reason: str = ""
    """Why nothing was sent; empty when something was."""
    missed: str = ""
    """What the session should have had and did not get, in a word for `run/misses.log`."""
    startup: Sequence[StartupRecall] = ()
    recalled: Recalled | None = None
    candidates: tuple[Candidate, ...] = ()
    asked: Asked = field(default_factory=Asked)
    epoch: int | None = None
    tells_misses: bool = False
    """Whether the text was made now, and so says what was missed since the last one."""
    raw: bytes | None = None
    """Bytes that are no context text, such as changed tool arguments."""
