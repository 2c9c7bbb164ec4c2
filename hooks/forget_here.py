"""What `lore forget` has to do on this machine when the memory itself is kept by a remote server."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

from lorehooks.core.errors import LoreError
from lorehooks.core.model import BOOT_URIS
from lorehooks.core.run_forget import forget_records
from lorehooks.hooks import traces

if TYPE_CHECKING:
    from lorehooks.hooks.app import Parts

PATH = "/maintenance/forget"


async def forget_here(parts: Parts, request: bytes, answer: bytes) -> bytes:
    """Purge records, kept answers and ready files here after a server has forgotten; its answer with ours added."""
    asked, said = _object(request), _object(answer)
    if asked.get("confirm") is not True or said.get("success") is not True:
        return answer
    text = str(asked.get("matching") or "").strip()
    texts = [text, *(str(uri) for uri in asked.get("uris") or []), *_gone(said.get("plan"))]
    left = [str(said.get("left") or "")]
    parts.ledger.drop_cached()
    try:
        boot = any(uri in BOOT_URIS for uri in texts)
        said["removed_records"] = await asyncio.to_thread(forget_records, parts.recorder, texts, boot=boot)
        parts.ledger.drop_cached()
        found = await asyncio.to_thread(traces.clean, parts.home, texts, watched=())
        await parts.ready.write_now()
        left += await asyncio.to_thread(traces.holding, parts.home, [text])
        said["cleaned_files"] = [*found.cleaned]
    except (LoreError, OSError) as error:
        left.append(str(error))
    said["left"] = "; ".join(filter(None, left))
    return json.dumps(said).encode()


def _gone(plan: Any) -> list[str]:
    if not isinstance(plan, dict):
        return []
    return [uri for part in ("memories", "deleted") for uri in plan.get(part) or [] if isinstance(uri, str)]


def _object(raw: bytes) -> dict[str, Any]:
    try:
        value = json.loads(raw)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}
