"""A request that is answered with an error, and a status that says whose fault it is."""

from __future__ import annotations

from typing import TypeVar

import msgspec

T = TypeVar("T")


class RequestRefusal(Exception):
    """A request that is answered with an error."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


def decoded(body: bytes, model: type[T]) -> T:
    """Return the body of a request as a value; raise ``RequestRefusal`` if it is not one."""
    try:
        return msgspec.json.decode(body, type=model)
    except (msgspec.DecodeError, RecursionError) as error:
        raise RequestRefusal(400, f"not a valid request: {error}") from None
