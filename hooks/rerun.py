"""Asking a recorded prompt again: on the memory and settings of then, which gives the same bytes, or on others.

What decides the bytes is in the record: prompt, ids, moment, settings, the last event that the memory had seen, which model's
vectors it had, and what the epoch had shown (design "Always true" 7). The memory of then is the log replayed up to that event.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from lorehooks.clients.adapters import HookEvent, any_adapter
from lorehooks.clients.backend import Recalled
from lorehooks.clients.live_index import views_in_force
from lorehooks.clients.runtimes import runtime_of
from lorehooks.core.clock import from_iso
from lorehooks.core.embeddings import Model, load_builtin
from lorehooks.core.errors import InvalidError
from lorehooks.core.index import RecallIndex
from lorehooks.core.model import Candidate
from lorehooks.core.past import Past, last_event, memory_at
from lorehooks.core.recall import recall
from lorehooks.core.recorded_model import RecordedModel
from lorehooks.core.settings import Settings, Value, find
from lorehooks.core.vector_cache import KnownVectors
from lorehooks.hooks.promptblock import Asked, prompt_block
from lorehooks.hooks.records import RunRecord
from lorehooks.hooks.serviceinfo import installed_version

_SLICE = 64


@dataclass(frozen=True, slots=True)
class Rerun:
    """The answer of now. `caveats` say why it may differ from then although nothing was changed on purpose."""

    output: bytes
    text: str
    candidates: tuple[Candidate, ...]
    caveats: tuple[str, ...]


def rerun(
    record: RunRecord,
    log: sqlite3.Connection,
    *,
    as_of_then: bool,
    now: datetime,
    changes: Mapping[str, str],
    progress: Callable[[str, int], Callable[[], None]],
) -> Rerun:
    """Recall, budget and render again. `progress(label, steps)` answers what is called for each step.

    Raises InvalidError for a run that was no recall of this machine's memory or a wrong setting, NotFoundError when the
    log does not reach back.
    """
    then = record.recall
    if then is None or record.event != "prompt.submit":
        raise InvalidError(
            f"Run {record.id} is no prompt of a session ({record.event}): only prompts can be run again",
            hint="lore replay SESSION",
        )
    if then["memory_seq"] is None or then["backend"] != "embedded":
        raise InvalidError(
            f"Run {record.id} was answered by {then['backend']}, whose memory is not here",
            hint="ask it there: lore recall PROMPT",
        )
    seq = then["memory_seq"] if as_of_then else last_event(log)
    past = memory_at(log, seq, progress("Replaying the log", seq))
    base: Mapping[str, Value] = Settings(then["settings"]).changed if as_of_then else past.settings.changed
    settings = Settings({**base, **{key: find(key).check(value) for key, value in changes.items()}})
    index, profile = _index(past, log, _model(then["meta"], settings, as_of_then=as_of_then), progress)
    asked = Asked(**{**then["asked"], "shown_before": tuple(then["asked"]["shown_before"])})
    moment = from_iso(then["at"]) if as_of_then else now
    result = recall(index, asked.query(record.prompt, settings), settings, moment)
    runtime = runtime_of(record.client_type)
    recalled = Recalled(record.query_id or "", result, settings.changed, seq, then["at"])
    block = prompt_block(recalled, asked, settings, runtime, record.host_session)
    return Rerun(
        _rendered(record, block.text),
        block.text,
        block.candidates,
        _caveats(record, profile, index.pending() if profile else 0) if as_of_then else (),
    )


def _model(meta: Mapping[str, Any], settings: Settings, *, as_of_then: bool) -> Model | None:
    """The model to recall with: the built-in one, or what the record holds of one behind an endpoint, which is not asked."""
    if as_of_then and meta.get("profile") is None:
        return None
    if "calibration" in meta and (as_of_then or settings["embedding.provider"] == "openai_compatible"):
        try:
            return RecordedModel(meta)
        except (KeyError, TypeError, ValueError):
            return None
    return load_builtin() if settings["embedding.provider"] == "builtin" else None


def _index(
    past: Past,
    log: sqlite3.Connection,
    model: Model | None,
    progress: Callable[[str, int], Callable[[], None]],
) -> tuple[RecallIndex, str | None]:
    """The index of that memory, and the profile of the model whose vectors it has."""
    index = RecallIndex()
    step = progress("Reading memories", len(past.nodes))
    for node in past.nodes:
        index.put(node, views_in_force(node, past.refined.get(node.uuid, [])))
        step()
    if model is None:
        return index, None
    index.attach_embedder(model, KnownVectors(log))
    step = progress("Embedding", index.pending())
    while done := index.embed_some(_SLICE):
        for _ in range(done):
            step()
    return index, model.profile


def _rendered(record: RunRecord, text: str) -> bytes:
    event = HookEvent(
        "prompt.submit", record.client_type, str(record.input.get("native_event", "")), session_id=record.host_session
    )
    return any_adapter(record.client_type).render(event, text)


def _caveats(record: RunRecord, profile: str | None, pending: int) -> tuple[str, ...]:
    then: dict[str, Any] = record.recall or {}
    release, now = then.get("release", ""), installed_version()
    found = []
    if release != now:
        found.append(f"recorded by release {release or 'unknown'}, run again by {now}")
    if then["meta"].get("profile") != profile:
        found.append(f"vectors of {then['meta'].get('profile') or 'no model'} then, of {profile or 'no model'} now")
    if "loaded" in then["meta"]:
        found.append(f"{then['meta']['loaded']} of {then['meta']['memories']} memories were loaded then")
    if then["meta"].get("pending"):
        found.append(f"{then['meta']['pending']} texts had no vector yet")
    elif pending:
        found.append(f"{pending} texts have no vector of that model here any more")
    return tuple(found)
