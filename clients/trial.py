"""One call to an endpoint of models, to see whether its settings are right. Nothing is written, and nothing is kept."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lorehooks.clients.embedding_endpoint import SECTION as EMBEDDING
from lorehooks.clients.embedding_endpoint import open_embedding_client
from lorehooks.clients.model_endpoint import CredentialOf
from lorehooks.clients.view_llm import SECTION as VIEW_LLM
from lorehooks.clients.view_llm import open_view_model
from lorehooks.core.embeddings import load_builtin
from lorehooks.core.errors import InvalidError
from lorehooks.core.model import Node
from lorehooks.core.settings import Settings, Value, find

SECTIONS = (EMBEDDING, VIEW_LLM)
SECONDS = 15.0
"""What a trial may take (`lore-contract.md` 1.11)."""
_SAMPLE = Node(
    uuid="",
    uri="project://checkout_api/webhooks",
    content="Refund webhooks are idempotent by event id. Tests replay the same event twice and expect one refund row.",
    priority=1,
    disclosure="When changing refund or payment webhooks",
    glossary=("refund webhook", "idempotency key"),
    created_at="",
    updated_at="",
    content_at="",
)
"""An invented memory: none of the person's own is sent for a trial."""


@dataclass(frozen=True, slots=True)
class Tried:
    """What answered, and how."""

    model: str
    detail: str


async def try_section(
    section: str, settings: Settings, patch: Mapping[str, object], credential_of: CredentialOf
) -> Tried:
    """Try the settings of `embedding` or `view_llm`, with `patch` on top; a key is used for its own origin only.

    Raises InvalidError for what is not set or wrong, and what the endpoint's call raises.
    """
    if section not in SECTIONS:
        raise InvalidError(f"section is one of {', '.join(SECTIONS)}", status=400)
    changed: dict[str, Value] = dict(settings.changed)
    for key, value in patch.items():
        if key.partition(".")[0] != section:
            raise InvalidError(f"{key} is no setting of {section}", status=400)
        changed[key] = find(key).check(value)
    wanted = Settings(changed)
    return await (_embedding(wanted, credential_of) if section == EMBEDDING else _views(wanted, credential_of))


async def _embedding(settings: Mapping[str, Any], credential_of: CredentialOf) -> Tried:
    provider = settings["embedding.provider"]
    if provider == "off":
        raise InvalidError(
            "Vectors are switched off", hint="lore config set embedding.provider openai_compatible", status=400
        )
    if provider == "builtin":
        model = load_builtin()
        if model is None:
            raise InvalidError(
                "This Python has no wheel of the built-in model", hint="pip install wordllama", status=400
            )
        return Tried(model.profile, f"dimensions: {model.dim}, built in")
    client = open_embedding_client(settings, credential_of)
    if client is None:
        raise _not_set(EMBEDDING)
    began = time.perf_counter()
    try:
        rows = await client.embed([_SAMPLE.content], seconds=SECONDS)
    finally:
        await client.close()
    return Tried(client.model, f"dimensions: {rows.shape[1]}, in {time.perf_counter() - began:.2f} s")


async def _views(settings: Settings, credential_of: CredentialOf) -> Tried:
    limited = Settings(
        {**settings.changed, "view_llm.timeout_ms": min(settings["view_llm.timeout_ms"], int(SECONDS * 1000))}
    )
    model = open_view_model(limited, credential_of)
    if model is None:
        raise _not_set(VIEW_LLM)
    began = time.perf_counter()
    try:
        texts = await model.write(_SAMPLE)
    finally:
        await model.close()
    gist = texts["gist"].partition("\n")[0]
    return Tried(model.model, f"wrote a gist and 3 questions in {time.perf_counter() - began:.2f} s: {gist}")


def _not_set(section: str) -> InvalidError:
    return InvalidError(
        f"{section}.base_url or {section}.model is not set", hint=f"lore config set {section}.base_url URL", status=400
    )
