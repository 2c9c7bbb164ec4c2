"""A stand-in for the `codex` program: the commands that an installer uses, as seen with 0.171.0. A single file.

`mcp add` and `mcp remove` write `config.toml` anew and lose all comments, which the real one keeps: what survives this
survives that. `FAKE_CODEX` in the environment makes one thing fail: `mcp`, `app-server`, or `deaf` for a server that does not
answer. Hashes are computed as the real program does, apart from the code under test.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import sys
import tomllib
from pathlib import Path
from typing import Any

import tomli_w

HOME = Path(os.environ.get("CODEX_HOME") or Path(os.environ["HOME"]) / ".codex")
CONFIG, HOOKS = HOME / "config.toml", HOME / "hooks.json"
FAILS = os.environ.get("FAKE_CODEX", "")


def load() -> dict[str, Any]:
    return tomllib.loads(CONFIG.read_bytes().decode("utf-8-sig")) if CONFIG.exists() else {}


def save(config: dict[str, Any]) -> None:
    HOME.mkdir(exist_ok=True)
    CONFIG.write_text(tomli_w.dumps(config))


def snake(name: str) -> str:
    return re.sub(r"(?<!^)([A-Z])", r"_\1", name).lower()


def digest(event: str, group: dict[str, Any], handler: dict[str, Any]) -> str:
    plain = {"async": False, "command": handler["command"], "timeout": handler.get("timeout", 600), "type": "command"}
    whole = {"event_name": snake(event), "hooks": [plain]}
    if "matcher" in group and event != "UserPromptSubmit":
        whole["matcher"] = group["matcher"]
    text = json.dumps(whole, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return "sha256:" + hashlib.sha256(text.encode()).hexdigest()


def hooks() -> list[dict[str, Any]]:
    state = load().get("hooks", {}).get("state", {})
    found = []
    events = json.loads(HOOKS.read_bytes())["hooks"] if HOOKS.exists() else {}
    for event, groups in events.items():
        for number, group in enumerate(groups):
            for position, handler in enumerate(group["hooks"]):
                key = f"{HOOKS}:{snake(event)}:{number}:{position}"
                now, noted = digest(event, group, handler), state.get(key, {})
                trust = noted.get("trusted_hash")
                found.append(
                    {
                        "key": key,
                        "eventName": event[0].lower() + event[1:],
                        "command": handler["command"],
                        "enabled": noted.get("enabled", True),
                        "currentHash": now,
                        "trustStatus": "untrusted" if trust is None else "trusted" if trust == now else "modified",
                    }
                )
    return found


def edit(config: dict[str, Any], key: str, value: Any) -> None:
    steps = [json.loads(part) if part[0] == '"' else part for part in re.findall(r'"(?:[^"\\]|\\.)*"|[^."]+', key)]
    here = config
    for step in steps[:-1]:
        here = here.setdefault(step, {})
    if value is None:
        here.pop(steps[-1], None)
    elif isinstance(value, dict) and isinstance(here.get(steps[-1]), dict):
        for name, each in value.items():
            here[steps[-1]][name] = {**here[steps[-1]].get(name, {}), **each}
    else:
        here[steps[-1]] = value


def answer(message: dict[str, Any]) -> dict[str, Any]:
    if message["method"] == "hooks/list":
        return {"data": [{"cwd": "/", "hooks": hooks(), "warnings": [], "errors": []}]}
    if message["method"] == "config/batchWrite":
        config = load()
        for each in message["params"]["edits"]:
            edit(config, each["keyPath"], each["value"])
        save(config)
        return {"status": "ok"}
    return {"userAgent": "fake"}


def serve() -> None:
    print(json.dumps({"method": "configWarning", "params": {}}), flush=True)
    for line in sys.stdin:
        message = json.loads(line)
        if "id" in message and FAILS != "deaf":
            print(json.dumps({"id": message["id"], "result": answer(message)}), flush=True)


def main(words: list[str]) -> int:
    if words == ["--version"]:
        print(os.environ.get("FAKE_CODEX_VERSION", "codex-cli 0.171.0"))
        return 0
    if words[0] == FAILS:
        print(f"{words[0]} fails", file=sys.stderr)
        return 1
    if words[0] == "app-server":
        serve()
        return 0
    config = load()
    if words[:2] == ["mcp", "add"]:
        name, _, program, *arguments = words[2:]
        config.setdefault("mcp_servers", {})[name] = {"command": program, "args": arguments}
    elif words[:2] == ["mcp", "remove"]:
        config.get("mcp_servers", {}).pop(words[2], None)
        if not config.get("mcp_servers", True):
            del config["mcp_servers"]
    save(config)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
