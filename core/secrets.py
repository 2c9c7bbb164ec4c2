"""Keys and passwords in text: found before a write, masked in records (design "Always true" 3).

Only forms that cannot be prose or code count: vendor prefixes, key blocks, tokens, and `name = value` where the value
looks random. "No API key in the build", `apiKey: env.KEY` and `token = get_token()` are no secrets. Every repetition is
bounded, so that a megabyte of anything is read in one pass.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, replace

_VENDOR = re.compile(
    r"""
    (?P<private_key>-----BEGIN[ A-Z]{0,40}PRIVATE\ KEY(?:\ BLOCK)?-----.*?(?:-----END[ A-Z]{0,40}PRIVATE\ KEY(?:\ BLOCK)?-----|\Z))
  | ://[^\s/:@]{1,100}:(?P<url_password>[^\s/@]{3,200})(?=@)
  | (?<![A-Za-z0-9])(?:
        (?P<aws_key>(?:AKIA|ASIA)[0-9A-Z]{16,40})
      | (?P<github_token>gh[pousr]_[A-Za-z0-9]{30,255}|github_pat_[A-Za-z0-9_]{40,255})
      | (?P<gitlab_token>glpat-[A-Za-z0-9_-]{18,255})
      | (?P<slack_token>xox[abeoprs]-[A-Za-z0-9-]{10,255})
      | (?P<api_key>(?:sk|pk|rk|lm)[-_](?:[A-Za-z0-9]{1,40}[-_]){0,6}(?=[A-Za-z]{0,60}[0-9])[A-Za-z0-9]{12,255}[A-Za-z0-9_-]{0,255})
      | (?P<google_key>AIza[0-9A-Za-z_-]{30,60})
      | (?P<npm_token>npm_[A-Za-z0-9]{30,60})
      | (?P<pypi_token>pypi-[A-Za-z0-9_-]{50,255})
      | (?P<web_token>eyJ[A-Za-z0-9_-]{8,2000}\.eyJ[A-Za-z0-9_-]{8,4000}\.[A-Za-z0-9_-]{8,2000})
    )
    """,
    re.VERBOSE | re.DOTALL,
)
_ASSIGNMENT = re.compile(
    r"""(?P<name>api[ _-]?keys?|(?:secret|client|encryption|signing|access|private)(?:[_-]?(?:access|private))?[_-]?key|secrets?|token
          |password|passphrase|passwd|pwd|credentials?|bearer|密码|口令|密钥|令牌)
        ["']?[ \t]{0,4}(?:=|:|：|\bis\b|是|为|[ ](?=[A-Za-z0-9+/_=-]{20}))[ \t]{0,4}
        ["']?(?P<value>[!#-&(-+\--:<-_a-~]{8,400})""",
    re.VERBOSE | re.IGNORECASE,
)
_REFERENCE = re.compile(
    r"^(?:[$<{(%/~.]|env\b|process\.|os\.|import\b|vault|arn:|op:|sha\d)|[(\[{<]|://", re.IGNORECASE
)
_PASSWORD_NAMES = ("password", "passphrase", "passwd", "pwd", "密码", "口令")
_PLACEHOLDER = re.compile(
    r"^(?:\W|password|passwd|pass|pwd|secret|token|x{3,}|\.{3}|\*{3}|changeme|example|your)", re.IGNORECASE
)
_DATE = re.compile(r"^\d{4}-\d\d-\d\d")
_IDENTIFIER = re.compile(r"^[A-Za-z]+[0-9]{1,3}[A-Za-z]*$")
_AWS_SECRET = re.compile(r"^[A-Za-z0-9/+]{40}$")
_RUN = re.compile(r"[A-Za-z0-9]+")
_CHANGE = re.compile(r"(?<=[A-Za-z])(?=[0-9])|(?<=[0-9])(?=[A-Za-z])")
_PRIVATE = re.compile(r"<private>.*?(?:</private>|\Z)", re.DOTALL | re.IGNORECASE)
_RANDOM_BITS = 2.8
_MOST_PROMPT, _LONGEST_SECRET = 20_000, 12_000
_MIN_CHANGES = 3
"""Places where letters and digits meet inside a word: names such as `sha256` or `base64encoded` have at most two."""


@dataclass(frozen=True, slots=True)
class Secret:
    """Where a secret stands in the text, of which kind, and how it may be shown."""

    kind: str
    start: int
    end: int
    masked: str


def find_secrets(text: str) -> list[Secret]:
    """Every secret in the text, in order, without overlaps."""
    found: list[Secret] = []
    for match in _VENDOR.finditer(text):
        kind = match.lastgroup or "secret"
        if kind != "url_password" or not _is_example(match.group()):
            found.append(_secret(kind, *match.span(kind), match.group(kind)))
    found += [
        _secret("assigned_value", *match.span("value"), match.group("value"))
        for match in _ASSIGNMENT.finditer(text)
        if _looks_random(match.group("value"), match.group("name"))
    ]
    found.sort(key=lambda secret: (secret.start, -secret.end))
    apart: list[Secret] = []
    for secret in found:
        if not apart or secret.start >= apart[-1].end:
            apart.append(secret)
        elif secret.end > apart[-1].end:
            apart[-1] = replace(apart[-1], end=secret.end)
    return apart


def mask(text: str) -> str:
    """The text with each secret replaced by `[kind: sk-a…]`."""
    pieces, at = [], 0
    for secret in find_secrets(text):
        pieces += [text[at : secret.start], f"[{secret.kind}: {secret.masked}]"]
        at = secret.end
    return "".join([*pieces, text[at:]])


def masked_prompt(prompt: str) -> str:
    """A prompt as recall and records take it: without private passages, masked, at most 20,000 characters.

    Recall reads far less, and looking through a pasted file of megabytes would hold up every other session. What is cut off
    is looked at as far as a secret can reach, so that none is halved and missed.
    """
    return mask(strip_private(prompt)[: _MOST_PROMPT + _LONGEST_SECRET])[:_MOST_PROMPT]


def strip_private(text: str) -> str:
    """The text without `<private>…</private>` passages, which never leave the hook. An unclosed one runs to the end."""
    return _PRIVATE.sub("", text) if "<" in text else text


def _secret(kind: str, start: int, end: int, value: str) -> Secret:
    if kind == "private_key":
        masked = "-----BEGIN…"
    else:
        shown = 1 if kind in {"url_password", "assigned_value"} else 4  # a vendor's prefix gives nothing away
        masked = f"{value[:shown]}…"
    return Secret(kind.replace("_", " "), start, end, masked)


def _is_example(address: str) -> bool:
    """Whether `://user:password` is a placeholder or a development default, such as `postgres:postgres`."""
    user, _, password = address.removeprefix("://").partition(":")
    return user == password or _REFERENCE.search(password) is not None or _PLACEHOLDER.search(password) is not None


def _looks_random(value: str, name: str) -> bool:
    value = value.rstrip(".:)!?") if not any(sign in value[:-1] for sign in "!@#$%^&*") else value
    has_digit = any(char.isdigit() for char in value)
    if not has_digit or _REFERENCE.search(value) or _DATE.match(value) or _PLACEHOLDER.search(value):
        return False
    if name.lower() in _PASSWORD_NAMES and not _IDENTIFIER.match(value):
        return True
    if _entropy(value) < _RANDOM_BITS:
        return False
    has_letter = any(char.isalpha() for char in value)
    if has_letter and any(sign in value for sign in "!@#$%^&*"):
        return True
    if _AWS_SECRET.match(value) and value.lower() != value != value.upper():
        return True
    return sum(len(_CHANGE.findall(run)) for run in _RUN.findall(value)) >= _MIN_CHANGES


def _entropy(value: str) -> float:
    return -sum((share := value.count(char) / len(value)) * math.log2(share) for char in set(value))
