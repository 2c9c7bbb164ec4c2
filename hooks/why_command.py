"""`lore why`: why a memory was or was not shown, and the smallest change that would show it."""

from __future__ import annotations

import os
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lorehooks.clients import config, output
from lorehooks.clients.command import Invocation, json_option, pass_invocation
from lorehooks.clients.errors import UnsupportedError
from lorehooks.clients.target import resolve
from lorehooks.core import uri as uris
from lorehooks.core.blocks import score_text
from lorehooks.core.clock import system_clock
from lorehooks.core.repository import project_key, repository_of

if TYPE_CHECKING:
    from lorehooks.core.why import Trial
    from lorehooks.hooks.why import Answer

_EXAMPLES = 3


@click.command()
@click.argument("prompt")
@click.option("--expect", "uri", required=True, metavar="URI", help="The memory that should be shown.")
@click.option("--project", help="Repository of the session. Without it, the one you stand in.")
@json_option
@pass_invocation
def why(invocation: Invocation, prompt: str, *, uri: str, project: str | None) -> None:
    """Find out why a memory was or was not shown for a prompt, and what would show it.

    Each change is tried on a copy of the index first: the score it gives, and what it would do to the latest recorded
    prompts and to the situations that other memories are for. Nothing is changed.
    """
    from lorehooks.core.why import Prompt
    from lorehooks.hooks.why import why as find_out

    target = resolve(invocation.home, config.load_or_defaults(invocation.home), os.environ)
    if target.endpoint is not None:
        raise UnsupportedError(
            f"The memory is kept by {target.address}", hint="ask it there, or: lore recall PROMPT --explain"
        )
    repository = project or repository_of(str(Path.cwd()))[1]
    key = project_key(repository) or None if repository else None
    with output.Progress() as bar:
        answer = find_out(invocation.home, Prompt(prompt, key), uris.parse(uri), system_clock(), bar.begin)
    if invocation.as_json:
        output.say_json(_as_json(answer))
    else:
        _say(answer)


def _say(answer: Answer) -> None:
    from lorehooks.hooks.replay import explain_candidates

    place, node = answer.place, answer.node
    threshold = answer.settings["recall.display.min_display_score"]
    if place.shown:
        output.say(f"Shown: {node.uri} scores {score_text(place.score)} and comes {_ordinal(place.rank)}.", bold=True)
    elif place.candidate is None:
        output.say(f"Not shown: {node.uri} has no word, term or meaning in common with this prompt.", bold=True)
    else:
        output.say(f"Not shown: {node.uri} scores {score_text(place.score)}, {_reason(answer, threshold)}.", bold=True)
    for remark in answer.remarks:
        output.say(f"  {remark}.")
    if place.candidate is not None:
        for line in explain_candidates([place.candidate], answer.settings):
            output.say(line)
    if not place.shown and answer.ahead:
        shown = ", ".join(f"{uri} ({score_text(score)})" for uri, score in answer.ahead)
        output.say(f"\nShown instead: {shown}")
    if not place.shown and not node.is_boot:
        _say_trials(answer)


def _say_trials(answer: Answer) -> None:
    if not answer.trials:
        output.say("\nNo change was found to try: is it the right memory for this prompt?")
        return
    shows = answer.trials[0].place.shown
    heading = "What would show it, the least first" if shows else "No single change shows it; these come nearest"
    output.say(f"\n{heading}:", bold=True)
    for number, trial in enumerate(answer.trials, start=1):
        rank = f", {_ordinal(trial.place.rank)}" if trial.place.rank else ""
        output.say(f"{number}. {trial.edit.what}: {score_text(trial.place.score)}{rank}")
        for command in trial.edit.commands:
            output.say(f"   {shlex.join(command)}")
        if trial.effect is not None:
            output.say(f"   {_effect(trial)}")
    if shows:
        about = f"{answer.recorded} recorded prompts and {answer.occasions} situations of other memories"
        output.note(f"Held against {about}.", dim=True)
        output.note(
            "Take a word that people will type again when they mean this memory, not one that only this prompt has.",
            dim=True,
        )


def _effect(trial: Trial) -> str:
    effect = trial.effect
    if effect is None or not effect.asked:
        return "there are no other prompts to hold it against yet"
    if not effect.more and not effect.lost:
        return f"changes nothing for {effect.asked} other prompts"
    parts = []
    for what, found in (("shows more", effect.more), ("pushes something out", effect.lost)):
        if found:
            examples = ", ".join(repr(output.clip(text, 40)) for text in found[:_EXAMPLES])
            parts.append(
                f"{what} in {len(found)} of {effect.asked} other prompts ({examples}{', …' * (len(found) > _EXAMPLES)})"
            )
    return "; ".join(parts)


def _reason(answer: Answer, threshold: float) -> str:
    candidate = answer.place.candidate
    match candidate.withheld if candidate else "":
        case "score":
            return f"below the {threshold:.2f} from which memories are shown"
        case "limit":
            most = answer.settings["recall.display.max_display_items"]
            return f"but {most} others come first (it is {_ordinal(answer.place.rank)})"
        case "boot":
            return "but recall never shows boot nodes"
    return "which is too little"


def _ordinal(rank: int | None) -> str:
    if rank is None:
        return "nowhere"
    if rank % 100 in (11, 12, 13):
        return f"{rank}th"
    return f"{rank}{ {1: 'st', 2: 'nd', 3: 'rd'}.get(rank % 10, 'th') }"


def _as_json(answer: Answer) -> dict[str, Any]:
    place = answer.place
    return {
        "uri": answer.node.uri,
        "prompt": answer.prompt.text,
        "project": answer.prompt.project,
        "shown": place.shown,
        "score": place.score,
        "rank": place.rank,
        "threshold": answer.settings["recall.display.min_display_score"],
        "withheld": place.candidate.withheld if place.candidate else "no_match",
        "candidate": place.candidate,
        "ahead": [{"uri": uri, "score": score} for uri, score in answer.ahead],
        "remarks": answer.remarks,
        "edits": [_trial_json(trial) for trial in answer.trials],
        "held_against": {"recorded_prompts": answer.recorded, "occasions": answer.occasions},
    }


def _trial_json(trial: Trial) -> dict[str, Any]:
    return {
        "what": trial.edit.what,
        "commands": [shlex.join(command) for command in trial.edit.commands],
        "shown": trial.place.shown,
        "score": trial.place.score,
        "rank": trial.place.rank,
        "effect": trial.effect,
    }
