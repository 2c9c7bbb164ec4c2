"""An endpoint of models that speaks as OpenAI does, and what its refusals mean.

Its key stands in `credentials.toml` under the origin it was set for. Another address in the settings is another origin and
gets no key, so nobody who may change settings can have a key sent elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Any

from lorehooks.clients.credentials import Credential
from lorehooks.clients.endpoint import Endpoint, is_loopback
from lorehooks.clients.errors import (
    BadAnswerError,
    DeadlineError,
    InsecureError,
    RedirectedError,
    ServerError,
    UnauthorizedError,
    UnreachableError,
)
from lorehooks.clients.replies import plain_line
from lorehooks.clients.transport import Reply, Transport, decode_json, encode_json
from lorehooks.core.errors import LoreError
from lorehooks.core.secrets import mask

CredentialOf = Callable[[str], Credential]
"""What is kept for the origin of an address."""
_PASSING = (HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.CONFLICT, HTTPStatus.TOO_EARLY, HTTPStatus.TOO_MANY_REQUESTS)


def model_endpoint(base_url: str, credential: Credential, section: str) -> Endpoint:
    """The way to an endpoint of the settings `section`, with the key of its origin. Raises InsecureError."""
    key = credential.api_key
    if key and base_url.startswith("http://") and not is_loopback(base_url) and not credential.allow_insecure_http:
        raise InsecureError(
            f"{base_url} is plain http: its key could be read on the way",
            hint=f"use https, or accept that with: lore config key {base_url} --allow-insecure-http",
        )
    return Endpoint(
        base_url,
        key,
        allow_insecure_http=credential.allow_insecure_http,
        proxy=credential.proxy,
        mend=f"look whether it runs and whether {section}.base_url is right, then: lore config test {section}",
    )


class ModelCalls:
    """Calls of one endpoint, each held to a deadline and a size, and repeated by nobody but the caller."""

    def __init__(self, endpoint: Endpoint, section: str, transport: Transport | None = None) -> None:
        """`transport` replaces the network's."""
        self.endpoint = endpoint
        self._section = section
        self._transport = transport or Transport(endpoint)

    async def post(self, path: str, body: Mapping[str, Any], *, seconds: float) -> Reply:
        """A good answer. Raises UnreachableError, DeadlineError, BadAnswerError, UnauthorizedError, ServerError."""
        reply = await self._transport.call(
            "POST",
            path,
            seconds=seconds,
            content=encode_json(body),
            headers={"Content-Type": "application/json"},
            repeatable=True,  # a kept-alive connection may have ended meanwhile
        )
        self._check(reply, path)
        return reply

    async def close(self) -> None:
        await self._transport.close()

    def _check(self, reply: Reply, path: str) -> None:
        label, status = self.endpoint.label, reply.status
        if HTTPStatus.OK <= status < HTTPStatus.MULTIPLE_CHOICES:
            return
        if status < HTTPStatus.BAD_REQUEST:
            raise RedirectedError(
                f"{label} points to {plain_line(reply.location) or 'another address'}; that is never followed",
                hint=f"if that address is right: lore config set {self._section}.base_url URL",
            )
        said = self._said(reply)
        if status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
            key = "another key" if self.endpoint.token else "a key"
            raise UnauthorizedError(f"{label} wants {key} ({said})", hint=f"lore config key {label}")
        hint = f"lore config test {self._section}"
        if status in (HTTPStatus.NOT_FOUND, HTTPStatus.METHOD_NOT_ALLOWED):
            hint = f"look at {self._section}.base_url, which mostly ends with /v1, and at {self._section}.model"
        raise ServerError(f"{label}{path} answers {status}: {said}", answered=status, hint=hint)

    def _said(self, reply: Reply) -> str:
        """The endpoint's own words on one line, without the key, should it repeat it."""
        try:
            body = decode_json(reply, self.endpoint.label)
        except BadAnswerError:
            return "it does not say why"
        error = body.get("error", body) if isinstance(body, dict) else body
        text = error if isinstance(error, str) else ""
        if isinstance(error, dict):
            text = next((each for name in ("message", "detail") if isinstance(each := error.get(name), str)), "")
        if self.endpoint.token:
            text = text.replace(self.endpoint.token, "…")
        return plain_line(mask(text)) or "it does not say why"


def may_pass(error: LoreError) -> bool:
    """Whether the same call may succeed a moment later, without anybody changing something."""
    if isinstance(error, ServerError):
        return error.answered >= HTTPStatus.INTERNAL_SERVER_ERROR or error.answered in _PASSING
    if isinstance(error, RedirectedError):
        return False
    return isinstance(error, UnreachableError | DeadlineError | BadAnswerError)
