"""Pure: timeouts and retries."""

from __future__ import annotations

from msgspec import Struct

_FIRST_WAIT_SECONDS = 0.25
_LONGEST_WAIT_SECONDS = 15.0
_LONGEST_RETRY_AFTER_SECONDS = 60
TOO_MANY_REQUESTS = 429


class Patience(Struct, frozen=True):
    """Timeouts and retries. Nothing takes longer, whatever a server does."""

    connect_seconds: float = 10.0
    """For a connection, with TLS."""
    stall_seconds: float = 30.0
    """From one chunk of a response to the next."""
    total_seconds: float = 120.0
    """For one complete response."""
    attempts: int = 6
    """Maximum number of attempts, with growing pauses; a GET can always be repeated."""
    most_bytes: int = 256 << 20
    """Maximum size of a response, after decompression."""


PATIENT = Patience()
ONCE = Patience(attempts=1, stall_seconds=15.0, total_seconds=60.0)
"""For optional sources."""


def is_temporary(status: int) -> bool:
    """Whether a retry may succeed after this status."""
    return status == TOO_MANY_REQUESTS or 500 <= status < 600


def pause_seconds(attempt: int, retry_after: str | None, draw: float) -> float:
    """Return how long to wait after the failed attempt of that number, from 0.

    It doubles each time; ``draw``, a random number from 0 to 1, takes off up to a half, so that clients which failed
    together do not come back together. What a server asks for with Retry-After is waited at least.
    """
    pause = min(_FIRST_WAIT_SECONDS * (1 << min(attempt, 10)), _LONGEST_WAIT_SECONDS) * (1 - draw / 2)
    if retry_after is not None and retry_after.isascii() and retry_after.isdigit() and len(retry_after) < 10:
        return min(int(retry_after), _LONGEST_RETRY_AFTER_SECONDS) + pause
    return pause
