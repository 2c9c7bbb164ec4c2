"""The base address of an endpoint that speaks as OpenAI does: `https://api.openai.com/v1`, `http://localhost:11434/v1`."""

from __future__ import annotations

from urllib.parse import urlsplit

from lorehooks.core.errors import InvalidError, short

_PORTS = {"http": 80, "https": 443}
_CALLS = ("/chat/completions", "/embeddings", "/completions", "/models")
"""Ends of an address that was copied from an example of one call."""
_HINT = "write it as https://host/v1"


def base_address(text: str) -> str:
    """The address as it is kept: lower-case scheme and host, no slash and no single call at the end; blank stays blank.

    Raises InvalidError that says what is wrong with it.
    """
    text = text.strip()
    if not text:
        return ""
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError as error:
        raise InvalidError(f"{short(text)} is not an address: {error}", hint=_HINT, status=400) from None
    if parts.scheme not in _PORTS or not parts.hostname:
        raise InvalidError(f"{short(text)} is not the address of an endpoint", hint=_HINT, status=400)
    if parts.username is not None or parts.password is not None:
        raise InvalidError("A key does not stand in the address", hint="lore config key URL", status=400)
    if parts.query or parts.fragment or any(not "!" <= character <= "~" for character in text):
        raise InvalidError(f"{short(text)} has more than an address", hint=_HINT, status=400)
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    shown = "" if port is None or port == _PORTS[parts.scheme] else f":{port}"
    path = parts.path.rstrip("/")
    while path.endswith(_CALLS):
        path = path[: path.rindex("/")].removesuffix("/chat").rstrip("/")
    return f"{parts.scheme}://{host}{shown}{path}"
