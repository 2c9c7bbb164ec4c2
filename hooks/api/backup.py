"""The whole memory as one file (`lore-contract.md` 1.12). Restoring is the command `lore restore`, with its checks."""

from __future__ import annotations

from starlette.responses import Response

from lorehooks.clients.console import Console
from lorehooks.core.errors import NotFoundError
from lorehooks.hooks.api.operation import Answer, Call, Operation, Query, operation
from lorehooks.hooks.serviceinfo import installed_version

operations: list[Operation] = []


class BackupQuery(Query):
    """`action=export` downloads; without an action, the answer says what backups there are."""

    action: str = ""


class BackupAnswer(Answer):
    """This server writes no backups by itself, so there is never a last one."""

    last_backup: str | None = None
    local_count: int = 0
    webdav_enabled: bool = False


@operation(operations, "GET", "/backup", "The whole memory in the form lore-backup-v1")
async def backup(call: Call, query: BackupQuery) -> BackupAnswer | Response:
    if not query.action:
        return BackupAnswer()
    if query.action != "export":
        raise NotFoundError(f"The backup action {query.action[:40]!r} is not served here", hint="action=export")
    content, name = await Console(call.parts.backend).export(installed_version())
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    return Response(content, media_type="application/json", headers=headers)
