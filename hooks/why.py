"""`lore why` on this machine's memory: a private index from the database, other prompts from the records."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

from lorehooks.clients.adapters.base import no_prompt_because
from lorehooks.clients.live_index import views_in_force
from lorehooks.core import uri as uris
from lorehooks.core.embeddings import load_builtin
from lorehooks.core.errors import NotFoundError
from lorehooks.core.events import node_of
from lorehooks.core.home import Home
from lorehooks.core.index import RecallIndex
from lorehooks.core.model import Node, View
from lorehooks.core.readonly import looking_into
from lorehooks.core.secrets import masked_prompt
from lorehooks.core.settings import SETTINGS, Settings
from lorehooks.core.store import not_found
from lorehooks.core.vector_cache import KnownVectors
from lorehooks.core.why import Bench, Place, Prompt, Trial, tried
from lorehooks.core.why_edits import proposed_edits
from lorehooks.hooks.replay import REASONS

RECORDED = 200
"""Prompts of the records that edits are held against."""
OCCASIONS = 100
"""Situations that other memories say they are for, which are as good as prompts."""
_SLICE = 64
Progress = Callable[[str, int], Callable[[], None]]


@dataclass(frozen=True, slots=True)
class Answer:
    """What `lore why` found. `remarks` are reasons that no edit mends, or that come before any."""

    node: Node
    prompt: Prompt
    settings: Settings
    place: Place
    ahead: tuple[tuple[str, float], ...]
    """Memories shown for this prompt, with their scores."""
    remarks: tuple[str, ...]
    trials: tuple[Trial, ...]
    recorded: int
    occasions: int


def why(home: Home, prompt: Prompt, uri: uris.Uri, now: datetime, progress: Progress) -> Answer:
    """Find out why a memory was or was not shown, and what would show it. Nothing is written.

    `progress(label, steps)` answers what is called for each step. Raises NotFoundError, StorageError.
    """
    with looking_into(home.database, missing=f"There is no memory in {home.root}", hint="lore remember TEXT") as memory:
        nodes = [node_of(row) for row in memory.execute("SELECT * FROM nodes ORDER BY uri")]
        refined = _refined(memory)
        settings = _settings(memory)
        node = next((node for node in nodes if node.uri == str(uri)), None)
        if node is None:
            raise not_found(uri)
        index, has_vectors = _index(memory, nodes, refined, settings, progress)
        bench = Bench(index, settings, now, lambda one: views_in_force(one, refined.get(one.uuid, [])), node)
        prompt = Prompt(masked_prompt(prompt.text), prompt.project)
        result = bench.ask(prompt)
        place = bench.place(prompt)
        remarks = [*_never_asked(prompt.text), *_about(node, place, prompt, bench, settings, has_vectors=has_vectors)]
        if result.truncated_at is not None:
            remarks.append(f"Recall reads the first {result.truncated_at} characters of this prompt")
        recorded, occasions = _recorded(home, prompt), _occasions(nodes, node)
        trials: list[Trial] = []
        if not place.shown and not node.is_boot:
            edits = proposed_edits(prompt.text, result.query, node, place, index, settings)
            trials = tried(bench, prompt, edits, [*recorded, *occasions], step=progress("Trying edits", len(edits)))
    ahead = tuple((candidate.uri, candidate.score) for candidate in result.shown)
    return Answer(node, prompt, settings, place, ahead, tuple(remarks), tuple(trials), len(recorded), len(occasions))


def _never_asked(text: str) -> list[str]:
    reason = no_prompt_because(text, ())
    return [f"Hooks ask memory nothing for it: {REASONS.get(reason, reason)}"] if reason else []


def _about(
    node: Node, place: Place, prompt: Prompt, bench: Bench, settings: Settings, *, has_vectors: bool
) -> list[str]:
    """What the person should know before any edit."""
    found = []
    if node.is_boot:
        found.append("It is a fixed boot node: sessions have it from their start, and recall never shows it")
        return found
    project = node.path.split("/")[0] if node.domain == "project" else None
    if project and project != prompt.project and not place.shown:
        inside = bench.place(Prompt(prompt.text, project))
        if inside.shown:
            found.append(
                f"In a session of the repository {project} it is shown ({inside.score:.2f}): --project {project}"
            )
    if not node.glossary:
        found.append("Its glossary is empty, and without words there hardly anything reaches the threshold")
    if not node.disclosure:
        found.append("It has no disclosure: say in which one situation it matters")
    if not has_vectors:
        found.append("No model of meaning was used here, so only words count")
    if settings["recall.display.repeat"] == "once":
        found.append("A memory is shown once per epoch of a session (recall.display.repeat)")
    return found


def _refined(memory: sqlite3.Connection) -> dict[str, list[tuple[View, str]]]:
    found: dict[str, list[tuple[View, str]]] = {}
    for row in memory.execute("SELECT * FROM views"):
        view = View(row["type"], row["text"], "llm", row["model"])
        found.setdefault(row["node_uuid"], []).append((view, row["signature"]))
    return found


def _settings(memory: sqlite3.Connection) -> Settings:
    rows = memory.execute("SELECT key, value FROM settings")
    return Settings({row["key"]: json.loads(row["value"]) for row in rows if row["key"] in SETTINGS})


def _index(
    memory: sqlite3.Connection,
    nodes: Sequence[Node],
    refined: dict[str, list[tuple[View, str]]],
    settings: Settings,
    progress: Progress,
) -> tuple[RecallIndex, bool]:
    """The index of this memory, and whether it has vectors. An endpoint of vectors is not asked."""
    index = RecallIndex()
    step = progress("Reading memories", len(nodes))
    for node in nodes:
        index.put(node, views_in_force(node, refined.get(node.uuid, [])))
        step()
    model = load_builtin() if settings["embedding.provider"] == "builtin" else None
    if model is None:
        return index, False
    index.attach_embedder(model, KnownVectors(memory))
    step = progress("Embedding", index.pending())
    while done := index.embed_some(_SLICE):
        for _ in range(done):
            step()
    return index, True


def _recorded(home: Home, prompt: Prompt) -> list[Prompt]:
    """The latest prompts that sessions asked, each once and without this one; empty where nothing was recorded."""
    found: dict[str, Prompt] = {}
    try:
        with looking_into(home.records, missing="", hint="") as records:
            rows = records.execute(
                "SELECT input, recall FROM runs WHERE event = 'prompt.submit' AND recall IS NOT NULL ORDER BY id DESC LIMIT ?",
                (4 * RECORDED,),
            )
            for row in rows:
                text = str(json.loads(row["input"]).get("prompt", ""))
                project = (json.loads(row["recall"]).get("asked") or {}).get("project")
                if text.strip() and text != prompt.text and len(found) < RECORDED:
                    found.setdefault(text, Prompt(text, project))
    except NotFoundError:
        return []
    return list(found.values())


def _occasions(nodes: Sequence[Node], node: Node) -> list[Prompt]:
    """What other memories are for, spread over all of them."""
    others = [one for one in nodes if one.disclosure and one.uri != node.uri and not one.is_boot]
    every = max(1, -(-len(others) // OCCASIONS))
    return [
        Prompt(one.disclosure, one.path.split("/")[0] if one.domain == "project" else None) for one in others[::every]
    ]
