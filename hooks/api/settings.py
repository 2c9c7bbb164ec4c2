"""Settings of the memory: read, change several at once or none, reset (`lore-contract.md` 1.11)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from pydantic import Field

from lorehooks.clients.errors import ServerProblem
from lorehooks.core.errors import InvalidError, LoreError
from lorehooks.core.settings import SETTINGS, Setting
from lorehooks.hooks.api.operation import Answer, Body, Call, Operation, operation

operations: list[Operation] = []

_SECTIONS = {
    "lifecycle": "What a session is told",
    "recall": "How memories are scored and shown",
    "views": "Texts that stand for a memory in semantic recall",
    "embedding": "Where vectors come from",
    "view_llm": "The model that writes views",
    "policy": "What a write is checked for",
}

_ENDPOINTS = ("embedding", "view_llm")


class EndpointFailedError(LoreError):
    """An endpoint of models did not do its part."""

    code = "endpoint_failed"
    status = 502


class SettingAnswer(Answer):
    """The definition of one setting; bounds are inclusive."""

    key: str
    section: str
    type: str
    label: str
    description: str
    default: bool | int | float | str
    min: float | None
    max: float | None
    options: list[str]
    secret: bool


class Section(Answer):
    id: str
    label: str
    description: str


class SettingsAnswer(Answer):
    definitions: list[SettingAnswer] = Field(serialization_alias="schema")
    sections: list[Section]
    values: dict[str, bool | int | float | str]
    defaults: dict[str, bool | int | float | str]
    sources: dict[str, Literal["db", "default"]]
    secret_configured: dict[str, bool]


class PatchBody(Body):
    patch: dict[str, object]


class TestBody(Body):
    """Which endpoint is tried, `embedding` or `view_llm`, and settings to try it with in place of those in force."""

    section: str
    patch: dict[str, object] = Field(default_factory=dict)


class TestAnswer(Answer):
    ok: Literal[True] = True
    section: str
    model: str
    detail: str


class ResetBody(Body):
    """Which settings go back to their default: `keys`, or one `key`."""

    keys: list[str] | None = None
    key: str | None = None


@operation(operations, "GET", "/settings", "Every setting of the memory with its value")
async def read(call: Call) -> SettingsAnswer:
    return _all(call)


@operation(operations, "PUT", "/settings", "Change settings: all of them, or none when one is wrong")
async def write(call: Call, body: PatchBody) -> SettingsAnswer:
    if None in body.patch.values():
        raise InvalidError("A setting cannot be null", hint="POST /api/settings/reset", status=400)
    await _set(call, body.patch)
    return _all(call)


@operation(operations, "POST", "/settings/reset", "Put settings back to their defaults")
async def reset(call: Call, body: ResetBody) -> SettingsAnswer:
    keys = body.keys or ([body.key] if body.key else [])
    if not keys:
        raise InvalidError("keys is required", status=400)
    await _set(call, dict.fromkeys(keys))
    return _all(call)


@operation(operations, "POST", "/settings/test", "Call the endpoint of embeddings or views once")
async def test(call: Call, body: TestBody) -> TestAnswer:
    from lorehooks.clients.trial import try_section  # brings httpx

    backend = call.parts.backend
    try:
        done = await try_section(body.section, backend.store.settings, body.patch, backend.models.credential_of)
    except ServerProblem as error:  # whatever went wrong there, it is a 502 here
        raise EndpointFailedError(error.message, hint=error.hint, code=error.code) from error
    except InvalidError as error:
        raise InvalidError(error.message, hint=error.hint, code=error.code, status=400) from error
    return TestAnswer(section=body.section, model=done.model, detail=done.detail)


async def _set(call: Call, values: Mapping[str, object | None]) -> None:
    """Every mistake in settings is a 400 in the contract."""
    try:
        await call.parts.backend.set_settings(values, call.origin())
    except InvalidError as error:
        raise InvalidError(error.message, hint=error.hint, code=error.code, status=400) from error


def _all(call: Call) -> SettingsAnswer:
    settings = call.parts.backend.store.settings
    mine = [setting for setting in SETTINGS.values() if setting.scope == "memory"]
    return SettingsAnswer(
        definitions=[_definition(setting) for setting in mine],
        sections=[Section(id=name, label=name, description=about) for name, about in _SECTIONS.items()],
        values={setting.key: "" if setting.secret else settings[setting.key] for setting in mine},
        defaults={setting.key: setting.default for setting in mine},
        sources={setting.key: "db" if setting.key in settings.changed else "default" for setting in mine},
        secret_configured={f"{section}.api_key": _has_key(call, section) for section in _ENDPOINTS},
    )


def _has_key(call: Call, section: str) -> bool:
    """Whether a key is kept for the origin that the section's address has now."""
    backend = call.parts.backend
    address = backend.store.settings[f"{section}.base_url"]
    try:
        return bool(address and backend.models.credential_of(address).api_key)
    except LoreError:
        return False  # a file that cannot be read has no key for anyone


def _definition(setting: Setting) -> SettingAnswer:
    return SettingAnswer(
        key=setting.key,
        section=setting.key.partition(".")[0],
        type=setting.type,
        label=setting.about,
        description=setting.about,
        default=setting.default,
        min=setting.minimum,
        max=setting.maximum,
        options=list(setting.choices),
        secret=setting.secret,
    )
