"""Sending recorded requests to our server, with its own ids in the place of recorded ones."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import Any

TOKEN = "a-token"
_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")


@dataclass
class Answered:
    """What our server answered to one recorded request."""

    exchange: Any
    status: int
    answer: Any


@dataclass
class Replay:
    """Requests in the order of recording, against one server. Ids that either server made up are translated."""

    client: Any
    ids: dict[str, str] = field(default_factory=dict)

    def send(self, exchange) -> Answered:
        headers = dict(exchange.headers)
        headers["authorization"] = headers["authorization"].replace("test-token-123", TOKEN)
        headers["cookie"] = headers.get("cookie", "").replace("test-token-123", TOKEN)
        body = None if exchange.body is None else self._ours(exchange.body.decode()).encode()
        answer = self.client.request(exchange.method, self._ours(exchange.url), content=body, headers=headers)
        try:
            found = answer.json()
        except ValueError:
            found = answer.text
        self._learn(exchange.answer, found)
        return Answered(exchange, answer.status_code, found)

    def _ours(self, text: str) -> str:
        return _UUID.sub(lambda found: self.ids.get(found[0], found[0]), text)

    def _learn(self, theirs: Any, ours: Any) -> None:
        """Pair ids that stand in the same place, and node ids of the same address."""
        if isinstance(theirs, dict) and isinstance(ours, dict):
            for name, value in theirs.items():
                if name in ("node_uuid", "query_id") and isinstance(value, str) and isinstance(ours.get(name), str):
                    if theirs.get("uri") == ours.get("uri"):
                        self.ids.setdefault(value, ours[name])
                else:
                    self._learn(value, ours.get(name))
        elif isinstance(theirs, list) and isinstance(ours, list):
            by_uri = {item["uri"]: item for item in ours if isinstance(item, dict) and "uri" in item}
            for item in theirs:
                if isinstance(item, dict) and "uri" in item and item["uri"] in by_uri:
                    self._learn(item, by_uri[item["uri"]])


def shape_problems(theirs: Any, ours: Any, place: str = "") -> list[str]:
    """Fields of a recorded answer that ours has not, or has in another type. What ours has beyond them is no problem."""
    if theirs is None:
        return []
    if isinstance(theirs, dict):
        if not isinstance(ours, dict):
            return [f"{place}: {_kind(ours)} instead of object"]
        found = []
        for name, value in theirs.items():
            at = f"{place}.{name}".lstrip(".")
            if name == "details":  # what it holds depends on the event
                continue
            if name not in ours:
                found.append(f"{at}: missing")
            else:
                found += shape_problems(value, ours[name], at)
        return found
    if isinstance(theirs, list):
        if not isinstance(ours, list):
            return [f"{place}: {_kind(ours)} instead of list"]
        if not theirs or not ours:
            return []
        return list(dict.fromkeys(p for item in ours for p in shape_problems(theirs[0], item, f"{place}[]")))
    return [] if _kind(theirs) == _kind(ours) else [f"{place}: {_kind(ours)} instead of {_kind(theirs)}"]


def _kind(value: Any) -> str:
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int | float):
        return "number"
    return {str: "string", type(None): "null", dict: "object", list: "list"}[type(value)]


def pretty(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)[:300]
