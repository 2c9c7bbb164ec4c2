"""The one exception class that reaches a person or an API client."""

from __future__ import annotations

from reprlib import repr as shorten

_MAX_BITS = 200


def short(value: object) -> str:
    """A wrong value as a message shows it: a few dozen characters, whatever came in."""
    if isinstance(value, int) and value.bit_length() > _MAX_BITS:
        return "a number of that size"  # Python refuses to print one of thousands of digits
    return shorten(value)


class LoreError(Exception):
    """Something a caller can act on.

    `message` says what happened and to what, in one line. `hint` is the command or step that mends it.
    `code` and `status` are the envelope of the Lore API (`lore-contract.md` 1.1): `{detail, code}` with that HTTP status.
    """

    code = "error"
    status = 400

    def __init__(self, message: str, *, hint: str = "", code: str = "", status: int = 0) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.code = code or type(self).code
        self.status = status or type(self).status

    def __str__(self) -> str:
        return f"{self.message} ({self.hint})" if self.hint else self.message


class NotFoundError(LoreError):
    """A URI, event or run that does not exist."""

    code = "not_found"
    status = 404


class ConflictError(LoreError):
    """The path exists already, or is protected."""

    code = "conflict"
    status = 409


class ProtectedBootError(ConflictError):
    """A fixed boot node may be edited, but not deleted, moved or replaced."""

    code = "protected_boot_path"


class InvalidError(LoreError):
    """A value that breaks a rule of the memory model."""

    code = "validation_error"
    status = 422


class PolicyError(InvalidError):
    """A write that is well formed, and that a rule of this memory holds back."""


class SecretError(PolicyError):
    """A write that carries what looks like a key or password."""

    code = "secret_found"


class StorageError(LoreError):
    """The database cannot be read or written."""

    code = "storage_error"
    status = 503
