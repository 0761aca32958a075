"""Problems of a program that goes on: each is said once, on one line, and counted."""

from __future__ import annotations

import os
import traceback
from collections.abc import Callable

from podqos.errors import HostError

_MOST_KEPT = 1000
_LONGEST = 2500


class OnceNotes:
    """What has been said."""

    def __init__(self, say: Callable[[str], None], goes_on: str) -> None:
        """``goes_on`` says what goes on after an internal error."""
        self.counts: dict[str, int] = {}
        """Problems, and how often they occurred."""
        self._say, self._goes_on = say, goes_on

    def add(self, text: str) -> None:
        """Say a problem, unless it was said before."""
        if not text.isprintable() or len(text) > _LONGEST:
            text = "".join(
                letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in text[:_LONGEST]
            )
        if text not in self.counts and len(self.counts) < _MOST_KEPT:
            self.counts[text] = 0
            self._say(text)
        if text in self.counts:
            self.counts[text] += 1

    def add_error(self, error: Exception) -> None:
        """Say what went wrong that nothing else has handled: where, and what."""
        if isinstance(error, HostError):
            self.add(str(error))
            return
        places = traceback.extract_tb(error.__traceback__)
        where = f" ({os.path.basename(places[-1].filename)}:{places[-1].lineno})" if places else ""  # noqa: PTH119
        self.add(f"internal error: {words(error)}{where}; {self._goes_on} keeps running")


def words(error: Exception) -> str:
    """Return an exception in words."""
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
