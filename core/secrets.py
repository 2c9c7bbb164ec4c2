"""Keys and passwords in text: found before a write, masked in records (design "Always true" 3).

Only forms that cannot be prose count: vendor prefixes, key blocks, tokens, and `name = value` where the value looks
random. "No API key in the build" and `apiKey: env.KEY` are not secrets.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

_VENDOR = re.compile(
    r"""
    (?P<private_key>-----BEGIN[ A-Z]*PRIVATE\ KEY-----.*?(?:-----END[ A-Z]*PRIVATE\ KEY-----|\Z))
  | (?P<aws_key>\b(?:AKIA|ASIA)[0-9A-Z]{16,})
  | (?P<github_token>\b(?:gh[pousr]_[A-Za-z0-9]{30,}|github_pat_[A-Za-z0-9_]{40,}))
  | (?P<gitlab_token>\bglpat-[A-Za-z0-9_-]{18,})
  | (?P<slack_token>\bxox[abeoprs]-[A-Za-z0-9-]{10,})
  | (?P<api_key>\b(?:sk|pk|rk|lm)[-_](?=[A-Za-z_-]*\d)[A-Za-z0-9_-]{16,})
  | (?P<google_key>\bAIza[0-9A-Za-z_-]{30,})
  | (?P<npm_token>\bnpm_[A-Za-z0-9]{30,})
  | (?P<web_token>\beyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,})
  | (?P<url_password>(?<=://)[^\s/:@]+:[^\s/@]{3,}(?=@))
    """,
    re.VERBOSE | re.DOTALL,
)
_ASSIGNMENT = re.compile(
    r"""(?P<name>[A-Za-z0-9_.-]*(?:api[_-]?key|secret|token|passw(?:or)?d|passwd|pwd|credential|bearer|密码|口令|密钥))
        ["']?\s*(?:=|:|：|\s+is\s+|是|\s(?=[A-Za-z0-9+/_=-]{20,}))\s*
        ["']?(?P<value>[^\s"'`,;，。；]{8,})""",
    re.VERBOSE | re.IGNORECASE,
)
_REFERENCE = re.compile(
    r"^(?:[$<{(%]|env\b|process\.|os\.|import\b|vault|secrets?[./:])|[({\[<]|^\W*$|://", re.IGNORECASE
)
_PRIVATE = re.compile(r"<private>.*?(?:</private>|\Z)", re.DOTALL | re.IGNORECASE)
_RANDOM_BITS = 2.8


@dataclass(frozen=True, slots=True)
class Secret:
    """Where a secret stands in the text, of which kind, and how it may be shown."""

    kind: str
    start: int
    end: int
    masked: str


def find_secrets(text: str) -> list[Secret]:
    """Every secret in the text, in order, without overlaps."""
    found = [
        _secret(match.lastgroup or "secret", match.start(), match.end(), match.group())
        for match in _VENDOR.finditer(text)
    ]
    for match in _ASSIGNMENT.finditer(text):
        value = match.group("value")
        if _looks_random(value) and not any(
            s.start < match.end("value") and match.start("value") < s.end for s in found
        ):
            found.append(_secret("assigned value", match.start("value"), match.end("value"), value))
    return sorted(found, key=lambda secret: secret.start)


def mask(text: str) -> str:
    """The text with each secret replaced by `[kind: sk-a…]`."""
    pieces, at = [], 0
    for secret in find_secrets(text):
        if secret.start >= at:
            pieces += [text[at : secret.start], f"[{secret.kind}: {secret.masked}]"]
            at = secret.end
    return "".join([*pieces, text[at:]])


def strip_private(text: str) -> str:
    """The text without `<private>…</private>` passages, which never leave the hook. An unclosed one runs to the end."""
    return _PRIVATE.sub("", text) if "<" in text else text


def _secret(kind: str, start: int, end: int, value: str) -> Secret:
    return Secret(
        kind.replace("_", " "), start, end, f"{value[:4]}…" if not value.startswith("-----") else "-----BEGIN…"
    )


def _looks_random(value: str) -> bool:
    if _REFERENCE.search(value) or (value.isalpha() and value.islower()):
        return False
    entropy = -sum((n := value.count(c) / len(value)) * math.log2(n) for c in set(value))
    mixed = sum((any(map(str.isdigit, value)), any(map(str.islower, value)), any(map(str.isupper, value))))
    return entropy >= _RANDOM_BITS and (mixed > 1 or any(c in "!@#$%^&*" for c in value)) and not value.endswith("()")
