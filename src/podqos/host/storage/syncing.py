"""Syncs files to disk without blocking the node: a busy disk takes longer than a reaction may.

It uses a thread of its own that does nothing else.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable
from pathlib import Path
from queue import SimpleQueue

Sync = Callable[[Path], None]
_STACK_BYTES = 256 << 10  # all of it is locked in memory with --realtime


class SyncQueue:
    """A queue of files to sync."""

    def __init__(self) -> None:
        self._waiting: SimpleQueue[Path | None] = SimpleQueue()
        before = threading.stack_size(_STACK_BYTES)
        self._thread = threading.Thread(target=self._run, name="sync", daemon=True)
        self._thread.start()
        threading.stack_size(before)

    def later(self, file: Path) -> None:
        """Queue a file for syncing."""
        self._waiting.put(file)

    def close(self) -> None:
        """Wait for the queue to finish."""
        self._waiting.put(None)
        self._thread.join()

    def _run(self) -> None:
        while (file := self._waiting.get()) is not None:
            sync(file)


def sync(file: Path) -> None:
    """Sync a file to disk; one that is gone is skipped."""
    with contextlib.suppress(OSError):
        descriptor = os.open(file, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
