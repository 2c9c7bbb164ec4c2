"""Why a memory was or was not shown for a prompt, and the smallest change that would show it.

Every change is tried on a private index first: what it does to this prompt, and to prompts that it was not made for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Literal, TypeVar

from lorehooks.core.index import RecallIndex
from lorehooks.core.model import Candidate, Node, RecallQuery, RecallResult, View
from lorehooks.core.recall import recall

_ENOUGH = 1_000
"""Candidates looked at for the one prompt; what ranks below has nothing in common with it."""
_SHOWN_ONLY = 1
_NEAREST, _OF_ONE_KIND = 2, 3

Result = TypeVar("Result")
ViewsOf = Callable[[Node], Sequence[View]]


@dataclass(frozen=True, slots=True)
class Prompt:
    """A prompt and the project it was asked in."""

    text: str
    project: str | None = None


@dataclass(frozen=True, slots=True)
class Edit:
    """A change that a person could make. `node` is the memory as it would be; `settings` are values that would be set."""

    what: str
    commands: tuple[tuple[str, ...], ...]
    node: Node | None = None
    settings: tuple[tuple[str, int | float], ...] = ()
    kind: Literal["glossary", "disclosure", "priority", "setting"] = "glossary"
    adds: frozenset[str] = frozenset()
    """Words that it adds to the glossary."""
    size: int = 1
    """How much it asks of the person and of other prompts, for putting edits in order: words added, or ten for a setting."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a memory comes for a prompt. `rank` counts from 1 among those that may be shown; None when nothing matched."""

    shown: bool
    score: float
    rank: int | None
    candidate: Candidate | None


@dataclass(frozen=True, slots=True)
class Effect:
    """What an edit does to other prompts, out of `asked`: shows more there, or pushes something out."""

    asked: int
    more: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Trial:
    """An edit, where the memory comes with it, and what it does to other prompts (None when that was not tried)."""

    edit: Edit
    place: Place
    effect: Effect | None = None


class Bench:
    """A private copy of the memory's index, on which edits are made and taken back."""

    def __init__(
        self, index: RecallIndex, settings: Mapping[str, Any], now: datetime, views_of: ViewsOf, node: Node
    ) -> None:
        """`node` is the memory in question; it is in the index already."""
        self._index = index
        self._settings = settings
        self._now = now
        self._views_of = views_of
        self._node = node

    def ask(self, prompt: Prompt, changes: Mapping[str, Any] | None = None, *, limit: int = _ENOUGH) -> RecallResult:
        """Recall as a prompt would get it."""
        settings = {**self._settings, **(changes or {})}
        return recall(self._index, RecallQuery(prompt.text, prompt.project, limit=limit), settings, self._now)

    def place(self, prompt: Prompt, edit: Edit | None = None) -> Place:
        """Where the memory comes for a prompt, as it is or with an edit."""
        return self._with(edit, lambda changes: _place(self.ask(prompt, changes), self._node.uri))

    def effect(self, edit: Edit, others: Sequence[Prompt], before: Sequence[frozenset[str]]) -> Effect:
        """What an edit does to other prompts; `before` is what `shown` says of them without it."""
        after = self._with(edit, lambda changes: self.shown(others, changes))
        pairs = list(zip(others, before, after, strict=True))
        return Effect(
            len(others),
            tuple(prompt.text for prompt, was, now in pairs if now - was),
            tuple(prompt.text for prompt, was, now in pairs if was - now),
        )

    def shown(self, prompts: Sequence[Prompt], changes: Mapping[str, Any] | None = None) -> list[frozenset[str]]:
        """What each prompt is shown."""
        return [
            frozenset(candidate.uri for candidate in self.ask(prompt, changes, limit=_SHOWN_ONLY).shown)
            for prompt in prompts
        ]

    def _with(self, edit: Edit | None, look: Callable[[Mapping[str, Any]], Result]) -> Result:
        if edit is None or edit.node is None:
            return look(dict(edit.settings) if edit else {})
        self._put(edit.node)
        try:
            return look(dict(edit.settings))
        finally:
            self._put(self._node)

    def _put(self, node: Node) -> None:
        self._index.put(node, self._views_of(node))
        while self._index.embed_some(64):
            pass


def _place(result: RecallResult, uri: str) -> Place:
    may_show = [candidate for candidate in result.candidates if candidate.withheld != "boot"]
    for rank, candidate in enumerate(may_show, start=1):
        if candidate.uri == uri:
            return Place(not candidate.withheld, candidate.score, rank, candidate)
    boot = next((candidate for candidate in result.candidates if candidate.uri == uri), None)
    return Place(False, boot.score if boot else 0.0, None, boot)


def tried(
    bench: Bench,
    prompt: Prompt,
    edits: Sequence[Edit],
    others: Sequence[Prompt],
    *,
    most: int = 5,
    step: Callable[[], None] = lambda: None,
) -> list[Trial]:
    """The edits that would show the memory, the least first: fewest other prompts changed, then smallest.

    When none does, the ones that come nearest. Effects are measured for the `most` that are answered.
    """
    trials: list[Trial] = []
    for edit in edits:
        if not any(trial.place.shown and _is_less(trial.edit, edit) for trial in trials):
            trials.append(Trial(edit, bench.place(prompt, edit)))
        step()
    showing = _varied(sorted((trial for trial in trials if trial.place.shown), key=lambda trial: trial.edit.size))
    if not showing:
        nearest = sorted(trials, key=lambda trial: (-trial.place.score, trial.edit.size))
        return nearest[: min(_NEAREST, most)]
    before = bench.shown(others)
    measured = [replace(trial, effect=bench.effect(trial.edit, others, before)) for trial in showing[: most + 2]]
    return sorted(measured, key=_disturbance)[:most]


def _is_less(one: Edit, other: Edit) -> bool:
    return one.kind == other.kind and one.adds < other.adds


def _varied(trials: Sequence[Trial]) -> list[Trial]:
    """At most three edits of one kind, so that a person sees more than one way."""
    kept: list[Trial] = []
    for trial in trials:
        if sum(other.edit.kind == trial.edit.kind for other in kept) < _OF_ONE_KIND:
            kept.append(trial)
    return kept


def _disturbance(trial: Trial) -> tuple[int, int]:
    effect = trial.effect
    return (2 * len(effect.lost) + len(effect.more) if effect else 0, trial.edit.size)
