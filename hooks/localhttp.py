"""Speaking to the local service itself, where the Lore API is not enough: its own routes, and answers that come in lines."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from lorehooks.core.errors import LoreError, StorageError
from lorehooks.core.home import Home
from lorehooks.hooks import service


@contextmanager
def local_answer(
    home: Home,
    method: str,
    path: str,
    *,
    body: object | None = None,
    headers: Mapping[str, str] | None = None,
    seconds: float = 10.0,
) -> Iterator[http.client.HTTPResponse]:
    """The answer of a running service, to be read inside the block. `seconds` is the longest silence that is waited for.

    A body of bytes is JSON already.
    Raises LoreError in the words of the service when it refuses, StorageError when none runs or it does not answer.
    """
    connection = http.client.HTTPConnection("lore")
    try:
        connection.sock = service.connect(home, seconds)
        sent = body if body is None or isinstance(body, bytes) else json.dumps(body)
        connection.request(method, path, sent, {"Content-Type": "application/json", **(headers or {})})
        answer = connection.getresponse()
        if answer.status >= http.client.BAD_REQUEST:
            raise _refusal(answer)
        yield answer
    except (OSError, http.client.HTTPException) as error:
        raise StorageError(f"The local service did not answer: {error}", hint="lore service restart") from error
    finally:
        connection.close()


def _refusal(answer: http.client.HTTPResponse) -> LoreError:
    try:
        said = json.loads(answer.read())
        return LoreError(str(said["detail"]), hint=str(said.get("hint", "")), code=str(said.get("code", "")))
    except (ValueError, KeyError, TypeError):
        return LoreError(f"The local service answered {answer.status}", hint="lore doctor")
