"""Text that every store, host and format can hold.

JSON may carry half of a surrogate pair and NUL; SQLite cannot bind the first, and C programs end at the second.
"""

from __future__ import annotations

import json
import re
from typing import Any

_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
_ENDS_LINES = re.compile("[\x7f-\x9f\u2028\u2029\ufeff]")


def well_formed(text: str) -> str:
    """The text with each lone surrogate and each NUL replaced by U+FFFD, so that the loss can be seen."""
    return _UNSTORABLE.sub("\ufffd", text)


def well_formed_json(value: Any) -> Any:
    """The same for every string, key or value, inside a JSON value."""
    if isinstance(value, str):
        return well_formed(value)
    if isinstance(value, dict):
        return {well_formed(key): well_formed_json(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [well_formed_json(item) for item in value]
    return value


def json_line(value: Any) -> str:
    """JSON that is one line to every reader: some end lines at U+0085 or U+2028 too, and YAML refuses control characters."""
    return _ENDS_LINES.sub(lambda found: f"\\u{ord(found[0]):04x}", json.dumps(value, ensure_ascii=False))
