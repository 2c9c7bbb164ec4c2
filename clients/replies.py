"""What a server's refusal means: its status and error envelope `{detail, code}` as one of our errors (`lore-contract.md` 1.1)."""

from __future__ import annotations

import re
from http import HTTPStatus

from lorehooks.clients.errors import (
    BadAnswerError,
    DeadlineError,
    NeedsPersonError,
    PausedError,
    RedirectedError,
    ServerError,
    UnauthorizedError,
    UnreachableError,
    UnsupportedError,
)
from lorehooks.clients.transport import Reply, decode_json
from lorehooks.core.errors import (
    ConflictError,
    InvalidError,
    LoreError,
    NotFoundError,
    ProtectedBootError,
    SecretError,
)

_MAX_DETAIL = 300
_NOT_TEXT = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]+")
_BEHIND: dict[str, type[LoreError]] = {
    kind.code: kind
    for kind in (
        *(UnreachableError, PausedError, DeadlineError, UnauthorizedError, BadAnswerError, RedirectedError),
        *(UnsupportedError, NeedsPersonError),
    )
}
"""What a local service answers when the fault lies with the server behind it: the same error, with its words."""
_NOT_ALLOWED = HTTPStatus.METHOD_NOT_ALLOWED
_POSTGRES_DUPLICATE = "23505"
"""What the public server answers, with status 500, when a path exists already."""


def raise_for_status(reply: Reply, label: str) -> None:
    """Return for a success; raise what any other status means."""
    if HTTPStatus.OK <= reply.status < HTTPStatus.MULTIPLE_CHOICES:
        return
    if reply.status < HTTPStatus.BAD_REQUEST:
        target = plain_line(reply.location)
        raise RedirectedError(
            f"{label} points to {target or 'another address'} instead of answering; that is never followed",
            hint="if that address is right, connect to it: lore connect URL",
        )
    detail, code, hint, is_envelope = _envelope(reply, label)
    if reply.status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN) and code != NeedsPersonError.code:
        raise UnauthorizedError(
            f"{label} wants a token, or another one ({detail or reply.status})", hint="lore connect URL --token-stdin"
        )
    if not is_envelope and reply.status < HTTPStatus.INTERNAL_SERVER_ERROR and reply.status != _NOT_ALLOWED:
        raise BadAnswerError(
            f"{label} answers {reply.status}, and not as a Lore server does",
            hint="look whether the address is that of a Lore server",
        )
    raise _refusal(reply.status, detail, code, hint, label)


def _refusal(status: int, detail: str, code: str, hint: str, label: str) -> LoreError:
    behind = _BEHIND.get(code)
    if behind is not None and behind.status == status:
        return behind(detail, hint=hint)
    if status == _NOT_ALLOWED or detail.startswith("Unknown API route"):
        return UnsupportedError(f"{label} does not offer this", hint="update that server, or do it there")
    if code == ProtectedBootError.code:
        return ProtectedBootError(detail, hint=hint)
    if status == HTTPStatus.NOT_FOUND:
        return NotFoundError(detail, code=code, hint=hint)
    if status == HTTPStatus.CONFLICT or code == _POSTGRES_DUPLICATE:
        return ConflictError("The path exists already" if code == _POSTGRES_DUPLICATE else detail, hint=hint)
    if code == SecretError.code:
        return SecretError(detail, hint=hint)
    if status < HTTPStatus.INTERNAL_SERVER_ERROR:
        return InvalidError(detail, code=code, status=status, hint=hint)
    return ServerError(
        f"{label} failed ({status}): {detail or 'it does not say why'}",
        answered=status,
        server_code=code,
        hint=hint or "look at that server's log",
    )


def _envelope(reply: Reply, label: str) -> tuple[str, str, str, bool]:
    """Detail, code and hint as far as the body has them, and whether it is an error envelope at all."""
    try:
        body = decode_json(reply, label)
    except BadAnswerError:
        return "", "", "", False
    if not isinstance(body, dict):
        return "", "", "", False
    detail, code, hint = body.get("detail", body.get("error")), body.get("code"), body.get("hint")
    return (
        plain_line(detail) if isinstance(detail, str) else "",
        code if isinstance(code, str) and code.isascii() else "",
        plain_line(hint) if isinstance(hint, str) else "",
        "detail" in body,
    )


def plain_line(text: str) -> str:
    """A server's words on one line of bounded length, without anything a terminal would act on."""
    text = _NOT_TEXT.sub(" ", text).strip()
    return text if len(text) <= _MAX_DETAIL else f"{text[:_MAX_DETAIL]}…"
