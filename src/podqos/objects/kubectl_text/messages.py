"""An eviction's message that a terminal or a mail has broken into lines, between words or inside of one."""

from __future__ import annotations

from collections.abc import Sequence

from podqos.eviction.message_reading import read_message

_MOST_CHARACTERS = 16_000


def rejoined(parts: Sequence[str]) -> str:
    """Return the parts as one message, joined in the way in which it says more."""
    whole = parts[0]
    for part in parts[1:]:
        spaced, glued = f"{whole} {part}".strip(), f"{whole}{part}"
        whole = glued if _said(glued) > _said(spaced) else spaced
    return whole[:_MOST_CHARACTERS]


def _said(text: str) -> tuple[bool, int, bool]:
    message = read_message(text[:_MOST_CHARACTERS])
    if message is None:
        return False, 0, False
    known = [usage for usage in message.containers if usage.used is not None and usage.request is not None]
    return True, len(known), message.available is not None
