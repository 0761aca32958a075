"""Field errors: what the API server reports about one field of an object, in its own shape and words.

The text is part of Kubernetes' interface (people search for it), so it is made here and not in ``report``.

Source: Kubernetes v1.36 staging/src/k8s.io/apimachinery/pkg/util/validation/field/errors.go.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum

from msgspec import Struct
from msgspec.json import encode

from podqos.manifest.plain import Plain
from podqos.model.go_text import quoted


class ErrorType(StrEnum):
    """The kinds of field errors, as ``causes[].reason`` of a Status names them."""

    INVALID = "FieldValueInvalid"
    REQUIRED = "FieldValueRequired"
    FORBIDDEN = "FieldValueForbidden"
    DUPLICATE = "FieldValueDuplicate"
    NOT_FOUND = "FieldValueNotFound"
    NOT_SUPPORTED = "FieldValueNotSupported"
    TOO_LONG = "FieldValueTooLong"
    TOO_MANY = "FieldValueTooMany"


_WORDS = {
    ErrorType.INVALID: "Invalid value",
    ErrorType.REQUIRED: "Required value",
    ErrorType.FORBIDDEN: "Forbidden",
    ErrorType.DUPLICATE: "Duplicate value",
    ErrorType.NOT_FOUND: "Not found",
    ErrorType.NOT_SUPPORTED: "Unsupported value",
    ErrorType.TOO_LONG: "Too long",
    ErrorType.TOO_MANY: "Too many",
}


class FieldError(Struct, frozen=True, gc=False):
    """One error about one field."""

    path: str
    type: ErrorType
    value: Plain = None
    """The offending value; None if the error is not about a value."""
    detail: str = ""

    def __str__(self) -> str:
        """Return the API server's message, with the field."""
        return f"{self.path}: {self.words}"

    @property
    def words(self) -> str:
        """The API server's message, without the field."""
        value = "" if self.value is None else f": {_printed(self.value)}"
        detail = f": {self.detail}" if self.detail else ""
        return f"{_WORDS[self.type]}{value}{detail}"


class Undecoded(FieldError, frozen=True, gc=False):
    """A field because of which an object cannot be read; the words are the decoder's."""

    @property
    def words(self) -> str:
        """The API server's message."""
        return self.detail


_ESCAPED = {ord(character): f"\\u{ord(character):04x}" for character in "<>&\u2028\u2029"}


def _printed(value: Plain) -> str:
    return quoted(value) if isinstance(value, str) else encode(value).decode().translate(_ESCAPED)


def invalid(path: str, value: Plain, detail: str) -> FieldError:
    """Return an error about an invalid value."""
    return FieldError(path, ErrorType.INVALID, value, detail)


def invalid_null(path: str, detail: str) -> FieldError:
    """Return an error about a map or list that is missing, which is printed: an error without a value is another."""
    return FieldError(path, ErrorType.INVALID, None, f"null: {detail}")


def required(path: str, detail: str = "") -> FieldError:
    """Return an error about a missing value."""
    return FieldError(path, ErrorType.REQUIRED, None, detail)


def forbidden(path: str, detail: str) -> FieldError:
    """Return an error about a forbidden value."""
    return FieldError(path, ErrorType.FORBIDDEN, None, detail)


def duplicate(path: str, value: Plain) -> FieldError:
    """Return an error about a duplicate value."""
    return FieldError(path, ErrorType.DUPLICATE, value)


def not_found(path: str, value: str) -> FieldError:
    """Return an error about a name that does not exist."""
    return FieldError(path, ErrorType.NOT_FOUND, value)


def too_long(path: str, most: int) -> FieldError:
    """Return an error about a text that is too long."""
    return FieldError(path, ErrorType.TOO_LONG, None, f"may not be more than {most} bytes")


def too_many(path: str, count: int, most: int) -> FieldError:
    """Return an error about a list that is too long."""
    return FieldError(path, ErrorType.TOO_MANY, count, f"must have at most {most} items")


def not_supported(path: str, value: Plain, supported: Iterable[str]) -> FieldError:
    """Return an error about an unsupported value."""
    known = ", ".join(encode(name).decode() for name in supported)
    return FieldError(path, ErrorType.NOT_SUPPORTED, value, f"supported values: {known}")
