"""Our MCP bridge with one tool more, `hook_prompt`, which answers a prompt as the hook program would: for `hook_forms.py`.

HOME/bin/python -I -S hook_bridge.py HOME CLIENT_TYPE
"""

from __future__ import annotations

import importlib.util
import json
import sys
import time
from typing import Any

HOME, CLIENT = sys.argv[1:]
SPEC = importlib.util.spec_from_file_location("bridge", f"{HOME}/bin/bridge.py")
assert SPEC
assert SPEC.loader
bridge = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(bridge)


class HookBridge(bridge.Bridge):  # type: ignore[misc, name-defined]
    """Forwards the tool to the route of the hook program; whatever fails is an empty answer."""

    def _call(self, message: dict[str, Any]) -> Any:
        if message["params"].get("name") != "hook_prompt":
            return super()._call(message)
        body = json.dumps(message["params"].get("arguments")).encode()
        end = time.monotonic() + bridge.HOOK_SECONDS
        try:
            text = bridge.exchange(f"/hooks/v1/{CLIENT}/prompt.submit", body, end).decode()
        except (OSError, bridge.NoAnswerError):
            text = ""
        return bridge._result(message["id"], bridge._text(text, failed=False))


bridge.Bridge = HookBridge
sys.argv = [bridge.__file__, CLIENT]
bridge.main()
