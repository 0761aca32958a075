"""For a thread that has to react at once: what would hold it up in Python itself, and the time it goes by."""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Callable

_SWITCH_SECONDS = 0.001
_GARBAGE = 20_000  # allocations before a collection is worthwhile


class Undisturbed:
    """Keeps other threads and the garbage collector from delaying this thread.

    Nothing is collected by itself, because a collection takes longer than a reaction may: ``collect`` is called when
    nothing happens.
    """

    def __init__(self) -> None:
        self._switch_seconds = sys.getswitchinterval()

    def begin(self) -> None:
        """Leave what there is so far out of all collections."""
        # Another thread lets this one go on that soon.
        sys.setswitchinterval(_SWITCH_SECONDS)
        gc.disable()
        gc.collect()
        gc.freeze()

    def collect(self) -> None:
        """Collect garbage, if there is enough of it."""
        if gc.get_count()[0] > _GARBAGE:
            gc.collect()

    def end(self) -> None:
        """Let everything be as it was."""
        sys.setswitchinterval(self._switch_seconds)
        gc.unfreeze()
        gc.enable()


def journal_clock() -> Callable[[], int]:
    """Return a clock for journals, in microseconds: the wall clock's time now, monotonic from here on."""
    boot_us = (time.time_ns() - time.monotonic_ns()) // 1000
    return lambda: boot_us + time.monotonic_ns() // 1000
