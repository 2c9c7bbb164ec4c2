"""How a memory, its children and its history stand on a terminal and in JSON."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from lorehooks.clients import output
from lorehooks.clients.output import Column

if TYPE_CHECKING:
    from lorehooks.clients.answers import Child, HistoryEvent, NodePage

CHILDREN = (Column("memory", elastic=True), Column("priority", right=True), Column("says", elastic=True))


def say_page(page: NodePage) -> None:
    """Print a memory with everything that is known of it."""
    node = page.node
    output.say(node.uri, bold=True)
    if not node.is_virtual:
        _say_field("priority", str(node.priority))
        _say_field("disclosure", node.disclosure)
        _say_field("glossary", ", ".join(node.glossary_keywords))
        by = " by ".join(
            filter(
                None,
                (
                    output.moment(node.last_updated_at or node.created_at),
                    _who(node.last_updated_client_type, node.last_updated_source),
                ),
            )
        )
        _say_field("written", by)
        output.say()
        output.say(node.content or "(no content)")
    if page.children:
        output.say()
        output.say_table(CHILDREN, [child_row(child) for child in page.children])


def _say_field(name: str, value: str) -> None:
    if value:
        output.say(f"{name:<11}{value}")


def child_row(child: Child) -> tuple[object, ...]:
    """A child in a table of `CHILDREN`: how much lies below it, and when it matters or else how it begins."""
    more = f" (+{child.approx_children_count})" if child.approx_children_count else ""
    return f"{child.uri}{more}", child.priority, child.disclosure or child.content_snippet


def node_json(page: NodePage) -> dict[str, object]:
    """The memory for `--json`."""
    node = page.node
    return {
        "uri": node.uri,
        "uuid": "" if node.is_virtual else node.node_uuid,
        "content": node.content,
        "priority": node.priority,
        "disclosure": node.disclosure,
        "glossary": node.glossary_keywords,
        "created_at": node.created_at,
        "updated_at": node.last_updated_at,
        "client_type": node.last_updated_client_type,
        "source": node.last_updated_source,
        "children": [child_json(child) for child in page.children],
    }


def child_json(child: Child) -> dict[str, object]:
    """A child for `--json`."""
    return {
        "uri": child.uri,
        "priority": child.priority,
        "disclosure": child.disclosure,
        "snippet": child.content_snippet,
        "children": child.approx_children_count,
    }


def event_row(event: HistoryEvent) -> tuple[str, ...]:
    """An event of a history: number, moment, kind, who, and in a few words what it changed."""
    kind = "rollback" if event.is_rollback else event.event_type.replace("_", " ")
    touched = ", ".join(part for change in event.diffs for part in _touched(change))
    return str(event.id), output.moment(event.created_at), kind, _who(event.client_type, event.source), touched


def _touched(change: Mapping[str, Any]) -> Iterator[str]:
    name, before, after = (change.get(key) for key in ("field", "before", "after"))
    if name == "uri":
        yield f"from {before}"
    elif name == "priority" and after is not None:
        yield f"priority {after}"
    elif isinstance(before, list) or isinstance(after, list):
        old, new = before or [], after or []
        yield from (f"+{word}" for word in new if word not in old)
        yield from (f"-{word}" for word in old if word not in new)
    else:
        yield str(name)


def _who(client_type: str | None, source: str | None) -> str:
    return " ".join(filter(None, (client_type, f"({source})" if client_type and source else source)))


def changes(event: HistoryEvent) -> Iterator[str]:
    """What an event changed, field by field, as lines of a diff."""
    for change in event.diffs:
        yield f"{change.get('field')}:"
        yield from output.changed_lines(change.get("before"), change.get("after"))
