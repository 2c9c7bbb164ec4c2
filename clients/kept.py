"""Copies of what a server said at session starts, used with their age while it does not answer.

They lie below `H/run/remote`, one folder for each server: boot for each client, startup recall for each client, project and
question. Losing them loses nothing.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256
from pathlib import Path
from typing import TypeVar

from pydantic import TypeAdapter, ValidationError

from lorehooks.clients.backend import Recalled
from lorehooks.core.boot import BootData
from lorehooks.core.clock import from_iso
from lorehooks.core.files import write_whole
from lorehooks.core.model import Origin, RecallQuery

_MOST_RECALLS = 200
_UNITS = (("day", 24 * 60), ("hour", 60), ("minute", 1))
_ZH = {"day": "天", "hour": "小时", "minute": "分钟"}
Kept = TypeVar("Kept")


@dataclass(frozen=True, slots=True)
class KeptBoot:
    """What a session of one client started with. `at` is when the server said so."""

    at: str
    data: BootData


@dataclass(frozen=True, slots=True)
class KeptRecall:
    """What a startup recall brought."""

    at: str
    recalled: Recalled


class KeptAnswers:
    """The copies for one server."""

    def __init__(self, folder: Path, server: str) -> None:
        """`folder` is shared by all servers; `server` is the address."""
        self.folder = folder / _digest(server)
        self._last: dict[str, BootData] = {}

    def boot(self, client_type: str | None) -> KeptBoot | None:
        """The last boot of a client."""
        return self._read(KeptBoot, _boot_name(client_type))

    def keep_boot(self, client_type: str | None, at: str, data: BootData) -> bool:
        """Keep a boot. Returns whether it differs from the one before."""
        name = _boot_name(client_type)
        before = self._last.get(name)
        if before is None and (kept := self.boot(client_type)) is not None:
            before = kept.data
        self._last[name] = data
        self._write(name, KeptBoot(at, data))
        return before != data

    def recall(self, query: RecallQuery, origin: Origin) -> KeptRecall | None:
        """What the same question brought last, for the same client and project."""
        return self._read(KeptRecall, _recall_name(query, origin))

    def keep_recall(self, query: RecallQuery, origin: Origin, at: str, recalled: Recalled) -> None:
        """Keep a startup recall, and the newest of them only."""
        self._write(_recall_name(query, origin), KeptRecall(at, recalled))
        with contextlib.suppress(OSError):
            files = sorted(self.folder.glob("recall-*.json"), key=lambda path: path.stat().st_mtime, reverse=True)
            for old in files[_MOST_RECALLS:]:
                old.unlink(missing_ok=True)

    def _read(self, shape: type[Kept], name: str) -> Kept | None:
        try:
            return TypeAdapter(shape).validate_json((self.folder / name).read_bytes())
        except (OSError, ValidationError):
            return None  # missing, cut off, or of another release

    def _write(self, name: str, value: object) -> None:
        with contextlib.suppress(OSError):
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            write_whole(self.folder / name, TypeAdapter(type(value)).dump_json(value))


def age_note(server: str, at: str, now: datetime, language: str) -> str:
    """One line that says how old a kept boot is."""
    minutes = max(round((now - from_iso(at)).total_seconds() / 60), 1)
    unit, length = next((unit, length) for unit, length in _UNITS if minutes >= length)
    count = minutes // length
    if language == "zh":
        return f"记忆提示：{server} 没有应答，以下内容来自 {count} {_ZH[unit]}前。运行 lore doctor 查看原因。"
    age = f"{count} {unit}{'' if count == 1 else 's'}"
    return f"Memory note: {server} does not answer; what stands here is from {age} ago. `lore doctor` says more."


def _boot_name(client_type: str | None) -> str:
    return f"boot-{client_type or 'any'}.json"


def _recall_name(query: RecallQuery, origin: Origin) -> str:
    return f"recall-{_digest(repr((origin.client_type, query.project, query.text, query.domain)))}.json"


def _digest(text: str) -> str:
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:24]
