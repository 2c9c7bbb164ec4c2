"""Addresses of memories: `domain://path` (seed "Memory model"; grammar: `lore-contract.md` 5.2)."""

from __future__ import annotations

import re
from dataclasses import dataclass

from lorehooks.core.errors import InvalidError
from lorehooks.core.wellformed import well_formed

DEFAULT_DOMAIN = "core"
MAX_LENGTH = 400
_SEGMENT = re.compile(r"[a-z0-9]+(?:_[a-z0-9]+)*")
_DATE = re.compile(r"(?:^|[/_])(?:19|20)\d\d(?:_?(?:0[1-9]|1[0-2])(?:_?(?:0[1-9]|[12]\d|3[01]))?)?(?:$|[/_])")


@dataclass(frozen=True, slots=True, order=True)
class Uri:
    """A parsed address. `path` has no outer slashes; an empty path is the root of the domain."""

    domain: str
    path: str

    def __str__(self) -> str:
        return f"{self.domain}://{self.path}"

    @property
    def parent(self) -> Uri | None:
        """The address one level up, or None for a root or a first-level path."""
        head, slash, _ = self.path.rpartition("/")
        return Uri(self.domain, head) if slash else None

    @property
    def title(self) -> str:
        """The last segment."""
        return self.path.rpartition("/")[2]

    @property
    def segments(self) -> list[str]:
        return self.path.split("/") if self.path else []

    def child(self, title: str) -> Uri:
        """The address of a child with that title."""
        return Uri(self.domain, f"{self.path}/{title}" if self.path else title)

    def contains(self, other: Uri) -> bool:
        """Whether `other` is this address or lies below it."""
        if self.domain != other.domain:
            return False
        return not self.path or other.path == self.path or other.path.startswith(f"{self.path}/")


def parse(text: str, default_domain: str = DEFAULT_DOMAIN) -> Uri:
    """Read an address as people and agents write it: outer slashes and case do not matter, a bare word is a path.

    For looking things up; `parse_for_write` also holds the address to the grammar. Raises InvalidError for a second `://`.
    """
    domain, scheme, path = well_formed(text).partition("://")
    if not scheme:
        domain, path = default_domain, domain
    if "://" in path:
        raise InvalidError(f"{text[:MAX_LENGTH]!r} has two '://': write one address as domain://path")
    path = "/".join(part.strip() for part in path.lower().split("/") if part.strip())
    return Uri(domain.strip().lower() or default_domain, path)


def parse_for_write(text: str, default_domain: str = DEFAULT_DOMAIN) -> Uri:
    """Read an address that is about to be created. Raises InvalidError when a segment breaks the grammar."""
    uri = parse(text, default_domain)
    if not uri.path:
        raise InvalidError(f"{uri} is the root of a domain: name a path below it, such as {uri}my_topic")
    for segment in (uri.domain, *uri.segments):
        if not _SEGMENT.fullmatch(segment):
            raise InvalidError(
                f"{segment[:MAX_LENGTH]!r} in {text[:MAX_LENGTH]!r} is not a path segment: use lowercase snake_case, such as deploy_checklist"
            )
    if len(str(uri)) > MAX_LENGTH:
        raise InvalidError(
            f"{str(uri)[:60]}… is longer than {MAX_LENGTH} characters: name the concept, not its content"
        )
    return uri


def has_date(uri: Uri) -> bool:
    """Whether a path names a moment instead of a concept, which deserves a warning."""
    return _DATE.search(uri.path) is not None
