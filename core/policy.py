"""What a write is checked for: priority caps, disclosure, dates in paths, secrets, boot nodes (seed "Memory model")."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterable, Mapping
from typing import Any

from lorehooks.core import uri as uris
from lorehooks.core.errors import InvalidError, PolicyError, ProtectedBootError, SecretError, short
from lorehooks.core.model import BOOT_URIS, Origin
from lorehooks.core.secrets import find_secrets

PRIORITY_CAPS = {0: 5, 1: 15}
MAX_PRIORITY = 1_000_000
MAX_CONTENT = 1_000_000
MAX_DISCLOSURE = 2_000
MAX_KEYWORDS = 64
MAX_KEYWORD = 200
_OR = re.compile(
    r"""
      (?<![A-Za-z0-9_])or(?![A-Za-z0-9_])(?!\s+(?:later|newer|earlier|older|above|below|higher|lower|more|less|so|not)\b)
    | 或者 | 或是 | 以及 | 要么
    | (?<!多)或(?![许多少则])                                  # 或许 and 或多或少 weigh something, they list nothing
    | 还是(?!想|要|会|得|需|能|不|没|有|很|按|继续|觉得|保持|老|旧)   # "still" is no choice between two
    """,
    re.IGNORECASE | re.VERBOSE,
)


def check_priority_value(priority: object) -> None:
    """Raise InvalidError when this is no priority at all."""
    if not isinstance(priority, int) or isinstance(priority, bool) or not 0 <= priority <= MAX_PRIORITY:
        raise InvalidError(f"priority is a whole number from 0 to {MAX_PRIORITY}, not {short(priority)}")


def check_priority(
    connection: sqlite3.Connection, priority: int, settings: Mapping[str, Any], *, uuid: str | None = None
) -> None:
    """Raise PolicyError when the store already holds as many memories of this priority as it may.

    Fixed boot nodes do not count. `uuid` is the node that is about to change, which does not count against itself.
    """
    cap = PRIORITY_CAPS.get(priority)
    if cap is None or not settings["policy.priority_budget_enabled"]:
        return
    marks = ",".join("?" * len(BOOT_URIS))
    (count,) = connection.execute(
        f"SELECT count(*) FROM nodes WHERE priority = ? AND uuid IS NOT ? AND uri NOT IN ({marks})",  # noqa: S608  only ?
        (priority, uuid, *BOOT_URIS),
    ).fetchone()
    if count >= cap:
        raise PolicyError(
            f"Priority {priority} already holds {count} memories, its limit is {cap}",
            hint=f"use priority {priority + 1} or higher, or lower another memory first",
        )


def check_text(content: str, disclosure: str, glossary: tuple[str, ...]) -> None:
    """Raise InvalidError when a field is larger than any memory should be."""
    if len(content) > MAX_CONTENT:
        raise InvalidError(
            f"content has {len(content)} characters, the limit is {MAX_CONTENT}", hint="split the memory"
        )
    if len(disclosure) > MAX_DISCLOSURE:
        raise InvalidError(f"disclosure has {len(disclosure)} characters, the limit is {MAX_DISCLOSURE}")
    if len(glossary) > MAX_KEYWORDS:
        raise InvalidError(f"the glossary has {len(glossary)} keywords, the limit is {MAX_KEYWORDS}")
    if any(len(keyword) > MAX_KEYWORD for keyword in glossary):
        raise InvalidError(f"a glossary keyword is longer than {MAX_KEYWORD} characters")


def check_secrets(texts: Iterable[str], known: str = "") -> None:
    """Raise SecretError that shows the beginning of the first secret in the texts.

    What already stands in the text `known` passes, so that an old secret does not block an unrelated change.
    """
    for text in texts:
        for secret in find_secrets(text):
            if text[secret.start : secret.end] in known:
                continue
            raise SecretError(
                f"This looks like a secret ({secret.kind}: {secret.masked}); a memory is read by every agent",
                hint="leave the value out and say where it is kept, or store it all the same with --allow-secret",
            )


def check_not_boot(uri: uris.Uri, verb: str) -> None:
    """Raise ProtectedBootError when the address is a fixed boot node, or has one below it."""
    for boot in BOOT_URIS:
        if uri.contains(uris.parse(boot)):
            raise ProtectedBootError(
                f"{boot} is a fixed boot node and cannot be {verb}", hint=f"edit its content: lore boot --edit {boot}"
            )


def needs_review(uri: str, origin: Origin, settings: Mapping[str, Any]) -> bool:
    """Whether a write waits for a person: an agent's write to a fixed boot node, unless the policy allows it."""
    return uri in BOOT_URIS and origin.is_agent and settings["policy.boot_write"] == "review"


def disclosure_warnings(disclosure: str, settings: Mapping[str, Any]) -> list[str]:
    """Warn about a missing disclosure, or one that names several situations."""
    if not settings["policy.disclosure_warning_enabled"]:
        return []
    if not disclosure.strip():
        return ["No disclosure: say in one line in which future situation this memory should surface"]
    if _OR.search(disclosure):
        return ["The disclosure uses OR wording: name one future situation, and split the memory if there are two"]
    return []


def glossary_warnings(glossary: tuple[str, ...]) -> list[str]:
    """Warn about an empty glossary: a memory that shares no words with the prompt is then hardly ever shown."""
    return [] if glossary else ["No glossary: add the words that people type when they mean this memory"]


def path_warnings(uri: uris.Uri) -> list[str]:
    """Warn about a path that names a moment."""
    if uris.has_date(uri):
        return [f"{uri} has a date in its path: name the concept and put the date into the content"]
    return []
