"""What the tools answer, as text: the forms of the public Lore server (`lore-contract.md` 2), made safe to show.

Content is shown as stored, but for tags that hosts and our own blocks use (`escape.reserved_tags`).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from lorehooks.core.escape import inline, reserved_tags
from lorehooks.core.model import WriteResult
from lorehooks.core.tool_backend import DomainLine, NodeView, SearchHit


def status_text(status: Mapping[str, object]) -> str:
    return f"Lore online\n\n{json.dumps(dict(status), ensure_ascii=False, separators=(',', ':'))}"


def node_text(view: NodeView) -> str:
    """Address and marks, content, children, keywords; parts that are empty leave no line."""
    head = [
        f"URI: {inline(view.uri)}",
        f"Node UUID: {view.uuid}" if view.uuid else "",
        f"Priority: {view.priority}" if view.uuid else "",
        f"Disclosure: {reserved_tags(_one_line(view.disclosure))}" if view.disclosure.strip() else "",
        f"Aliases: {', '.join(map(inline, view.aliases))}" if view.aliases else "",
    ]
    sections = ["\n".join(filter(None, head)), reserved_tags(view.content) or "(empty)"]
    if view.children:
        lines = ["Children:"]
        for child in view.children:
            lines.append(f"- {inline(child.uri)} (priority: {child.priority})")
            if child.snippet:
                lines.append(f"  {reserved_tags(_one_line(child.snippet))}")
        sections.append("\n".join(lines))
    if view.glossary:
        sections.append(f"Glossary keywords: {_keywords(view.glossary)}")
    return "\n\n".join(sections)


def search_text(hits: Sequence[SearchHit], domain: str | None) -> str:
    """Numbered hits, best first; the full content where the backend gave it, else a snippet."""
    if not hits:
        return f"No matching memories found in domain {inline(domain)}." if domain else "No matching memories found."
    return "\n\n".join(_hit_text(number, hit) for number, hit in enumerate(hits, 1))


def domains_text(domains: Sequence[DomainLine]) -> str:
    lines = [
        f'- {inline(line.domain)} ({line.count}) — open root with lore_get_node uri="{inline(line.domain)}://" nav_only=true'
        for line in domains
    ]
    return "\n".join(lines) or "No domains found."


def created_text(result: WriteResult, glossary: Sequence[str]) -> str:
    return _write_text(result, f"Created {result.uri}", f"Glossary: {_keywords(glossary)}" if glossary else "")


def updated_text(result: WriteResult, added: Sequence[str], removed: Sequence[str]) -> str:
    return _write_text(
        result,
        f"Updated {result.uri}",
        f"glossary+ {_keywords(added)}" if added else "",
        f"glossary- {_keywords(removed)}" if removed else "",
    )


def deleted_text(result: WriteResult, asked: str) -> str:
    """`asked` is the address as it was given; another one in the answer is the memory's main address."""
    main = f" (canonical: {result.uri})" if result.uri != asked else ""
    return _write_text(result, f"Deleted {asked}{main}{_with_below(result)}")


def moved_text(result: WriteResult, old: str) -> str:
    return _write_text(result, f"Moved {old} → {result.uri}{_with_below(result)}")


def _write_text(result: WriteResult, done: str, *details: str) -> str:
    if result.proposal is not None:
        done = (
            f"Not changed yet: {result.uri} is a standing rule of the user, so this waits for the user's yes "
            f"(proposal {result.proposal}). Tell the user to run: lore pending list"
        )
    lines = [done, *filter(None, details)]
    if result.warnings:
        lines += ["", "Policy warnings:", *(f"  ⚠ {_one_line(warning)}" for warning in result.warnings)]
    return "\n".join(lines)


def _with_below(result: WriteResult) -> str:
    below = len(result.changes) - 1
    return f" (with {below} below it)" if below > 0 else ""


def _hit_text(number: int, hit: SearchHit) -> str:
    lines = [f"{number}. {inline(hit.uri)} (priority: {hit.priority}, score: {_score(hit.score)})"]
    if hit.cues:
        lines.append(f"   via: {_keywords(hit.cues)}")
    if hit.content is not None:
        lines += ["   ---", reserved_tags(hit.content) or "(empty)"]
    elif hit.snippet:
        lines.append(f"   {reserved_tags(_one_line(hit.snippet))}")
    return "\n".join(lines)


def _score(score: float) -> str:
    """At most two decimals without closing zeros, as the public server prints it."""
    return f"{round(score, 2):g}"


def _keywords(words: Sequence[str]) -> str:
    return ", ".join(inline(word) for word in words)


def _one_line(text: str) -> str:
    return " ".join(text.split())
