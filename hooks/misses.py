"""`run/misses.log`: one line for each time a session got no memory, written by hooks and service, read by people.

Line: `epoch_ms client_type event reason`. The file is cut when it grows; it is a trace, not a record.
"""

from __future__ import annotations

import contextlib
import time
from dataclasses import dataclass
from pathlib import Path

_TOLD = "told"
"""Reason of a line that is no miss: up to here a session was told. It stands in the log, since the service comes and goes."""
_MOST_BYTES = 256_000
_FIELDS = 4
_DAY_SECONDS = 86_400
_REASONS = {
    "en": {"timeout": "the service was too slow", "slow_recall": "recall was too slow", "no_service": "no service is set up",
           "start_failed": "the service did not start", "breaker": "the service failed repeatedly",
           "stdin": "the host did not finish its message", "host": "the host did not take the answer",
           "too_large": "the host's message was too large", "bad_answer": "what answered made no sense",
           "unreachable": "the Lore server could not be reached", "deadline": "the Lore server was too slow",
           "paused": "the Lore server failed repeatedly", "unauthorized": "the Lore server refuses the token",
           "server_error": "the Lore server failed", "database_locked": "another program has locked the memory",
           "disk_refused": "the disk refuses", "database_damaged": "the memory's file is damaged"},
    "zh": {"timeout": "服务响应过慢", "slow_recall": "召回过慢", "no_service": "尚未安装服务",
           "start_failed": "服务未能启动", "breaker": "服务连续失败",
           "stdin": "宿主没有写完消息", "host": "宿主没有读取应答",
           "too_large": "宿主的消息过大", "bad_answer": "应答无效",
           "unreachable": "无法连接 Lore 服务器", "deadline": "Lore 服务器响应过慢",
           "paused": "Lore 服务器连续失败", "unauthorized": "Lore 服务器不接受令牌",
           "server_error": "Lore 服务器出错", "database_locked": "记忆被其他程序锁定",
           "disk_refused": "磁盘拒绝写入", "database_damaged": "记忆文件已损坏"},
}  # fmt: skip


def reason_text(reason: str, language: str = "en") -> str:
    """A reason in words; one without words as it stands."""
    return _REASONS[language].get(reason, reason.replace("_", " "))


@dataclass(frozen=True, slots=True)
class Miss:
    """One hook run without memory. `at_ms` counts milliseconds since 1970."""

    at_ms: int
    client_type: str
    event: str
    reason: str


class Misses:
    """The log of one home."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def add(self, client_type: str, event: str, reason: str) -> None:
        """Append one line; a folder that refuses costs the line, nothing else."""
        with contextlib.suppress(OSError), self.path.open("a", encoding="utf-8") as file:
            file.write(f"{time.time() * 1000:.0f} {client_type} {event} {reason.replace(' ', '_')}\n")

    def read(self) -> list[Miss]:
        """All misses, oldest first; lines that are none are passed over."""
        return [miss for miss in self._lines() if miss.reason != _TOLD]

    def _lines(self) -> list[Miss]:
        try:
            lines = self.path.read_text(encoding="utf-8", errors="replace").splitlines()
        except OSError:
            return []
        found = []
        for line in lines:
            fields = line.split()
            if len(fields) == _FIELDS and fields[0].isdigit():
                found.append(Miss(int(fields[0]), *fields[1:]))
        return found

    def notice(self, client_type: str, language: str) -> str:
        """One line on what this runtime missed since its last session start; empty for nothing."""
        missed = self._untold(client_type)
        if not missed:
            return ""
        reason = reason_text(missed[-1].reason, language)
        if language == "zh":
            return f"记忆提示：自上次会话以来有 {len(missed)} 次没有拿到记忆（{reason}）。运行 lore doctor 查看原因。"
        times = "once" if len(missed) == 1 else f"{len(missed)} times"
        return f"Memory note: {times} since the last session this runtime got no memory ({reason}). `lore doctor` says more."

    def seen(self, client_type: str) -> None:
        """Note that a session was told."""
        if self._untold(client_type):
            self.add(client_type, "session.start", _TOLD)

    def _untold(self, client_type: str) -> list[Miss]:
        """Misses of the last day that no session of this runtime was told of."""
        since = (time.time() - _DAY_SECONDS) * 1000
        missed: list[Miss] = []
        for line in self._lines():
            if line.client_type == client_type and line.at_ms > since:
                if line.reason == _TOLD:
                    missed.clear()
                else:
                    missed.append(line)
        return missed

    def cut(self) -> None:
        """Keep the newer half of a file that has grown."""
        with contextlib.suppress(OSError):
            if self.path.stat().st_size > _MOST_BYTES:
                data = self.path.read_bytes()[-_MOST_BYTES // 2 :]
                self.path.write_bytes(data.partition(b"\n")[2])
