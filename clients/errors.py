"""What can go wrong between here and a Lore server. Each names the server and, where there is one, the step that mends it."""

from __future__ import annotations

from lorehooks.core.errors import LoreError


class ServerProblem(LoreError):  # noqa: N818  (the errors below are its names)
    """The server did not do its part. Status 502: whoever asks the local service learns that the fault lies behind it."""

    code = "server_problem"
    status = 502


class UnreachableError(ServerProblem):
    """No connection, or it broke before an answer began."""

    code = "unreachable"


class DeadlineError(ServerProblem):
    """The answer was not complete in time."""

    code = "deadline"
    status = 504


class UnauthorizedError(ServerProblem):
    """The server wants a token, or another one."""

    code = "unauthorized"


class BadAnswerError(ServerProblem):
    """Something answered, but not as a Lore server does: a web page, broken JSON, another shape, too much."""

    code = "bad_answer"


class RedirectedError(BadAnswerError):
    """The server points elsewhere. That is never followed: a token is bound to the address it was given for."""

    code = "redirected"


class ServerError(ServerProblem):
    """The server says that it failed. `answered` is its HTTP status, `server_code` the `code` of its error envelope."""

    code = "server_error"

    def __init__(self, message: str, *, answered: int, server_code: str = "", hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.answered = answered
        self.server_code = server_code


class UnsupportedError(LoreError):
    """This server does not offer what was asked for."""

    code = "not_supported"
    status = 501


class InsecureError(LoreError):
    """A token would travel readable for everyone on the way."""

    code = "insecure"
    status = 400


class PausedError(UnreachableError):
    """The server failed repeatedly and is left alone for a while, so that nobody waits for it."""

    code = "paused"


class NeedsPersonError(LoreError):
    """An agent's write to a standing rule, on a server that cannot keep it until a person has agreed."""

    code = "needs_person"
    status = 403
