"""What only the user may decide."""

from __future__ import annotations

from lorehooks.core.errors import LoreError
from lorehooks.core.model import CLIENT_TYPES
from lorehooks.hooks.api.operation import Call


class PersonOnlyError(LoreError):
    """An agent asked for what only the user may decide."""

    code = "person_only"
    status = 403


def require_person(call: Call) -> None:
    """Raise PersonOnlyError for a call that an agent makes."""
    if call.client_type in CLIENT_TYPES or call.client_type == "mcp":
        raise PersonOnlyError("Only the user may decide this, not an agent", hint="lore pending list")
