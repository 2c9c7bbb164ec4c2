"""The whole memory as one file (`lore-contract.md` 1.12). Restoring is the command `lore restore`, with its checks."""

from __future__ import annotations

import asyncio

from starlette.responses import FileResponse, Response

from lorehooks.clients.console import Console
from lorehooks.core.backup import Backup, backups_of, free_name, write_backup
from lorehooks.core.errors import NotFoundError
from lorehooks.hooks.api.operation import Answer, Body, Call, Operation, Query, operation
from lorehooks.hooks.api.person import require_person
from lorehooks.hooks.serviceinfo import installed_version

operations: list[Operation] = []


class BackupQuery(Query):
    """`action`: `export` makes a document of now, `list` names the backups in the home, `download` sends one of them."""

    action: str = ""
    filename: str = ""


class BackupAnswer(Answer):
    """When the latest backup in the home was made, and how many there are. They are never sent elsewhere."""

    last_backup: str | None = None
    local_count: int = 0
    webdav_enabled: bool = False


class BackupFile(Answer):
    filename: str
    size: int
    created_at: str


class BackupList(Answer):
    """Newest first."""

    backups: list[BackupFile]


class RunBody(Body):
    """`action` is left out, or `run`."""

    action: str = "run"


class BackupResults(Answer):
    results: list[BackupFile]


@operation(operations, "GET", "/backup", "The whole memory in the form lore-backup-v1, or the backups in the home")
async def backup(call: Call, query: BackupQuery) -> BackupAnswer | BackupList | Response:
    found = await asyncio.to_thread(backups_of, call.parts.home)
    match query.action:
        case "":
            return BackupAnswer(last_backup=found[0].created_at if found else None, local_count=len(found))
        case "list":
            return BackupList(backups=[_file(one) for one in found])
        case "download":
            require_person(call)
            for one in found:
                if one.path.name == query.filename:
                    return FileResponse(one.path, media_type="application/vnd.sqlite3", filename=one.path.name)
            raise NotFoundError(f"There is no backup {query.filename[:80]!r}", hint="action=list")
        case "export":
            content, name = await Console(call.parts.backend).export(installed_version())
            headers = {"Content-Disposition": f'attachment; filename="{name}"'}
            return Response(content, media_type="application/json", headers=headers)
    raise NotFoundError(f"The backup action {query.action[:40]!r} is not served here", hint="action=export")


@operation(operations, "POST", "/backup", "Make a backup in the home: a whole copy in the memory's own form")
async def run(call: Call, body: RunBody) -> BackupResults:
    require_person(call)
    if body.action != "run":
        raise NotFoundError(f"The backup action {body.action[:40]!r} is not served here", hint="lore restore FILE")
    parts = call.parts
    store = parts.backend.store
    made = await asyncio.to_thread(write_backup, store.database.path, free_name(parts.home, store.clock()))
    found = await asyncio.to_thread(backups_of, parts.home)
    return BackupResults(results=[_file(one) for one in found if one.path == made])


def _file(backup: Backup) -> BackupFile:
    return BackupFile(filename=backup.path.name, size=backup.size, created_at=backup.created_at)
