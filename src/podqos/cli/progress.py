"""How far long work has come, on a terminal; nothing where nobody watches."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Self

_EVERY_SECONDS = 0.2


class Progress:
    """A line on standard error that is rewritten, and gone when the work is done."""

    def __init__(self, what: str, total: int | None = None) -> None:
        self._what = what
        self._total = total
        self._shown_at = 0.0
        self._is_watched = sys.stderr.isatty()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._is_watched:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)

    def at(self, done: int) -> None:
        """Say how much is done."""
        now = time.monotonic()
        if self._is_watched and now - self._shown_at >= _EVERY_SECONDS:
            self._shown_at = now
            of = f" of {self._total:,}" if self._total is not None else ""
            print(f"\r\x1b[K{done:,}{of} {self._what}", end="", file=sys.stderr, flush=True)


def progress_line(what: str) -> Callable[[int, int], None] | None:
    """Return what is told how many are done, of how many, and shows it once it takes longer than a moment."""
    if not sys.stderr.isatty():
        return None
    started = said = time.monotonic()

    def tell(done: int, total: int) -> None:
        nonlocal said
        now = time.monotonic()
        if done == total and said > started:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)
        elif now - started >= 0.5 and now - said >= 0.1:
            said = now
            print(f"\r{what} {done:,} of {total:,} ({done * 100 // total} %)", end="", file=sys.stderr, flush=True)

    return tell
