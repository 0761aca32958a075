"""Bringing files to the disk without waiting for it: a busy disk takes longer than the node may take to react.

The one thread of the node besides its own; it does nothing but wait for the disk.
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


class Syncing:
    """Files on their way to the disk."""

    def __init__(self) -> None:
        self._waiting: SimpleQueue[Path | None] = SimpleQueue()
        before = threading.stack_size(_STACK_BYTES)
        self._thread = threading.Thread(target=self._run, name="sync", daemon=True)
        self._thread.start()
        threading.stack_size(before)

    def later(self, file: Path) -> None:
        """Bring a file to the disk soon."""
        self._waiting.put(file)

    def close(self) -> None:
        """Wait for what is on its way."""
        self._waiting.put(None)
        self._thread.join()

    def _run(self) -> None:
        while (file := self._waiting.get()) is not None:
            sync(file)


def sync(file: Path) -> None:
    """Wait until a file is on the disk; one that is gone needs no waiting."""
    with contextlib.suppress(OSError):
        descriptor = os.open(file, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
