"""Where a note from somebody's rule file belongs in the memory, by rule: address, disclosure, glossary.

A person looks at each before it is taken, so a rule may guess; what it must not do is lose a word of the note.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import Literal

from lorehooks.core import uri as uris
from lorehooks.core.events import State
from lorehooks.core.model import BOOT_URIS, CLIENT_TYPES, DEFAULT_PRIORITY
from lorehooks.core.policy import MAX_DISCLOSURE
from lorehooks.core.repository import project_key
from lorehooks.core.secrets import find_secrets
from lorehooks.core.sections import Section, sections, strip_head
from lorehooks.core.stopwords import COMMON_WORDS, FUNCTION_WORDS
from lorehooks.core.views import language
from lorehooks.core.wellformed import well_formed
from lorehooks.core.writes import clean_keywords

Scope = Literal["user", "project"]
_STYLE = re.compile(
    r"\b(?:tone|persona|personality|voice|communication|conversation)\b|语气|人设|沟通|说话", re.IGNORECASE
)
_ABOUT_USER = re.compile(
    r"\b(?:about me|who i am|my background|preferences?|user)\b|关于我|个人|偏好|用户", re.IGNORECASE
)
_OF_RUNTIME = re.compile(
    r"\b(?:claude code|codex|gemini cli|opencode|subagents?|slash commands?|hooks?|mcp|plan mode|sandbox|approval)\b",
    re.IGNORECASE,
)
_CODE = re.compile(r"`([^`\n]{2,40})`")
_WORD = re.compile(r"[A-Za-z0-9]+")
_OCCASION = re.compile(r"(?:when(?:ever)?|if|before|after|while)\b|当|在", re.IGNORECASE)
_MOST_TERMS, _LONGEST_TERM, _LONGEST_SEGMENT, _SEGMENT_WORDS = 8, 40, 48, 5


@dataclass(frozen=True, slots=True)
class Note:
    """A file of rules or notes that another program reads. `project` is a path segment, empty for the user's own files."""

    name: str
    text: str
    scope: Scope
    project: str = ""
    client_type: str = ""
    title: str = ""
    """What the file is about, where its name says that."""
    is_memory: bool = False
    """Whether an agent wrote it down by itself."""


@dataclass(frozen=True, slots=True)
class Piece:
    """One note with its place. For a fixed boot node `state` holds this piece alone, to be added to what is there."""

    source: str
    heading: str
    state: State
    status: Literal["new", "there", "secret"] = "new"
    secret: str = ""

    @property
    def is_boot(self) -> bool:
        return self.state["uri"] in BOOT_URIS


def pieces_of(note: Note) -> list[Piece]:
    """The notes of a file, each with its proposed place."""
    fields, body = strip_head(well_formed(note.text))
    if note.is_memory and fields:  # such a file is one memory, whatever headings it has
        name = fields.get("name") or note.name.rpartition("/")[2].rpartition(".")[0]
        found = [Section((name.replace("_", " "),), body.strip())] if body.strip() else []
    else:
        found = [
            Section((note.title,), section.text) if note.title and not section.headings else section
            for section in sections(body)
        ]
    return [_piece(note, fields, section) for section in found]


def settled(pieces: Sequence[Piece], contents: dict[str, str]) -> list[Piece]:
    """Pieces beside the memory as it is (address to content): what is there already, and addresses that are free."""
    texts = {content.strip() for uri, content in contents.items() if uri not in BOOT_URIS}
    taken = {uri for uri, content in contents.items() if content}  # an empty one was made to hold others
    found: list[Piece] = []
    seen: set[tuple[bool, str]] = set()
    for piece in pieces:
        content = piece.state["content"].strip()
        if (piece.is_boot, content) in seen:
            continue  # the same file under two names
        seen.add((piece.is_boot, content))
        if content in contents.get(piece.state["uri"], "") if piece.is_boot else content in texts:
            found.append(replace(piece, status="there"))
            continue
        uri = piece.state["uri"] if piece.is_boot else _free_address(piece.state["uri"], taken)
        taken.add(uri)
        secrets = find_secrets(content)
        found.append(
            replace(
                piece,
                state={**piece.state, "uri": uri},
                status="secret" if secrets else "new",
                secret=f"{secrets[0].kind} {secrets[0].masked}" if secrets else "",
            )
        )
    return found


def _free_address(uri: str, taken: Collection[str]) -> str:
    """The address itself, or with the next number; beside the memory of a whole project, notes of it."""
    if uri not in taken:
        return uri
    base = uri if "/" in uris.parse(uri).path else f"{uri}/notes"
    return next(address for number in count(1) if (address := base if number == 1 else f"{base}_{number}") not in taken)


def _piece(note: Note, fields: dict[str, str], section: Section) -> Piece:
    heading = ": ".join(section.headings)
    boot = _boot_node(note, fields, heading, section.text)
    if boot:
        content = f"## {heading}\n\n{section.text}" if heading else section.text
        return Piece(
            note.name, heading, {"uri": boot, "content": content, "priority": 0, "disclosure": "", "glossary": []}
        )
    state: State = {
        "uri": _address(note, section),
        "content": section.text,
        "priority": DEFAULT_PRIORITY,
        "disclosure": _disclosure(note, fields, section)[:MAX_DISCLOSURE],
        "glossary": list(_glossary(section)),
    }
    return Piece(note.name, heading, state)


def _boot_node(note: Note, fields: dict[str, str], heading: str, text: str) -> str:
    """The fixed boot node a note belongs to; empty for one that becomes a memory of its own."""
    if fields.get("type", "").lower() == "user":
        return "preferences://user"
    if note.scope == "project":
        return ""
    if _STYLE.search(heading) and not re.search(r"\b(?:code|commit)", heading, re.IGNORECASE):
        return "core://soul"
    if _ABOUT_USER.search(heading):
        return "preferences://user"
    if note.client_type in CLIENT_TYPES and (_OF_RUNTIME.search(heading) or _OF_RUNTIME.search(text[:400])):
        return f"core://agent/{note.client_type}"
    return "core://agent"


def _address(note: Note, section: Section) -> str:
    base = f"project://{note.project}" if note.project else "core://notes"
    if not section.headings:
        return base
    return f"{base}/{segment_of(' '.join(section.headings)) or segment_of(section.text) or 'notes'}"


def segment_of(text: str) -> str:
    """A path segment from the telling words of a text; empty when it has none in Latin letters."""
    words = [word for word in project_key(text[:400]).split("_") if word]
    telling = [word for word in words if word not in FUNCTION_WORDS and word not in COMMON_WORDS] or words
    return "_".join(telling[:_SEGMENT_WORDS])[:_LONGEST_SEGMENT].strip("_")


def _disclosure(note: Note, fields: dict[str, str], section: Section) -> str:
    """The one situation that a heading, or the head of the file, names."""
    described = fields.get("description", "")
    chinese = language(f"{section.text} {described}") == "zh"
    if described:
        if _OCCASION.match(described):
            return described
        return f"涉及“{described}”时" if chinese else f"When it is about: {described}"
    if files := fields.get("globs", ""):
        return f"修改符合 {files} 的文件时" if chinese else f"When changing files that match {files}"
    topic = section.headings[-1] if section.headings else ""
    where = note.project.replace("_", " ")
    if chinese:
        return f"在 {where} 里处理{topic}时" if topic else f"在 {where} 里工作时"
    return f"When working on {topic[:1].lower()}{topic[1:]} in {where}" if topic else f"When starting work in {where}"


def _glossary(section: Section) -> tuple[str, ...]:
    """The heading, its telling words, and what stands in code marks: commands, files, names."""
    terms: list[str] = []
    for heading in section.headings[-1:]:
        if len(heading) <= _LONGEST_TERM:
            terms.append(heading.lower() if heading.isascii() else heading)
        terms += [word for word in map(str.lower, _WORD.findall(heading)) if _is_telling(word)]
    code = [term.strip() for term in _CODE.findall(section.text)]
    terms += sorted(dict.fromkeys(code), key=lambda term: -code.count(term))
    return clean_keywords(terms)[:_MOST_TERMS]


def _is_telling(word: str) -> bool:
    return len(word) > 2 and word not in FUNCTION_WORDS and word not in COMMON_WORDS  # noqa: PLR2004  (letters)
