"""Models behind endpoints: whether views and vectors come, or recall has to do without."""

from __future__ import annotations

from collections.abc import Iterator

from lorehooks.installers.doctor.finding import Finding, ok, problem
from lorehooks.installers.doctor.subject import Subject
from lorehooks.installers.modelstate import told

AREA = "memory"


def check(subject: Subject) -> Iterator[Finding]:
    """What the running service says of each endpoint; nothing where none is set or no service runs."""
    for each in told(subject.state or {}):
        code = "views_endpoint" if each.section == "view_llm" else "vectors_endpoint"
        if each.problem:
            instead = "views by rule stand in" if each.section == "view_llm" else "words and terms still find memories"
            text = f"{each.label} by an endpoint ({each.text}): {each.problem}; meanwhile {instead}"
            yield problem(AREA, code, text, f"lore config test {each.section}")
        else:
            yield ok(AREA, code, f"{each.label} by an endpoint: {each.text}")
