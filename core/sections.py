"""Splitting a Markdown text by its headings, as a person would cut it into notes. Any text is valid input."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

LONG = 2_500
"""Characters from which a section is split at its own headings."""
_HEADING = re.compile(r" {0,3}(#{1,6})[ \t]+(.+?)(?:[ \t]+#+)?[ \t]*")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)
_IMPORT = re.compile(r"\s*(?:[-*] )?@[\w~./-]+\s*")
_MARKUP = re.compile(r"[*_`\[\]]+|\([^)]*\)$")
_FIELD = re.compile(r"([A-Za-z_][A-Za-z0-9_-]*)[ \t]*:[ \t]*(.*)")


@dataclass(frozen=True, slots=True)
class Section:
    """A part of a text with the headings above it; none for what stands before the first."""

    headings: tuple[str, ...]
    text: str


def strip_head(text: str) -> tuple[dict[str, str], str]:
    """The plain fields of a YAML head, which other programs write in their own way, and the rest. Nothing is refused."""
    text = text.removeprefix("\ufeff").replace("\r\n", "\n")
    if not text.startswith("---\n"):
        return {}, text
    end = re.compile(r"^---[ \t]*$", re.MULTILINE).search(text, 4)
    if end is None:
        return {}, text
    found = (_FIELD.fullmatch(line.strip()) for line in text[4 : end.start()].splitlines())
    return {field[1].lower(): field[2].strip().strip("\"'") for field in found if field}, text[end.end() :].lstrip("\n")


def sections(text: str) -> list[Section]:
    """The notes in a text, in order: by its second-level headings, a long one by those below, without empty ones."""
    lines = _COMMENT.sub("", text).split("\n")
    headings = list(_headings(lines))
    levels = [level for _, level, _ in headings]
    first = [level for level in levels if level == 1]
    cut = 2 if len(first) <= 1 and any(level > 1 for level in levels) else 1
    found = _cut((), lines, headings, cut)
    return [section for section in found if _says_something(section.text)]


def _cut(
    above: tuple[str, ...], lines: Sequence[str], headings: Sequence[tuple[int, int, str]], level: int
) -> Iterator[Section]:
    """Cut at headings of this level and higher ones; a lone title names nothing and goes."""
    marks = [(at, depth, name) for at, depth, name in headings if depth <= level]
    starts = [0, *(at for at, _, _ in marks)]
    for number, start in enumerate(starts):
        end = starts[number + 1] if number + 1 < len(starts) else len(lines)
        title = marks[number - 1][2] if number else ""
        is_title = number > 0 and marks[number - 1][1] == 1 and level > 1
        names = above if is_title or not title else (*above, title)
        body = lines[start + (number > 0) : end]
        text = "\n".join(body).strip("\n")
        below = [(at - start - (number > 0), depth, name) for at, depth, name in headings if start < at < end]
        if len(text) > LONG and below:
            yield from _cut(names, body, below, min(depth for _, depth, _ in below))
        else:
            yield Section(names, text.strip())


def _headings(lines: Sequence[str]) -> Iterator[tuple[int, int, str]]:
    """(line, level, name) of every heading that does not stand in a code block."""
    fence = ""
    for number, line in enumerate(lines):
        mark = _FENCE.match(line)
        if fence:
            if mark and mark[1].startswith(fence):
                fence = ""
        elif mark:
            fence = mark[1]
        elif found := _HEADING.fullmatch(line):
            name = _MARKUP.sub("", found[2]).strip()
            if name:
                yield number, len(found[1]), name


def _says_something(text: str) -> bool:
    """Whether more is there than blank lines, rules, and names of other files to read."""
    return any(
        line.strip(" \t-=*#>") and not _IMPORT.fullmatch(line) and not _HEADING.fullmatch(line)
        for line in text.split("\n")
    )
