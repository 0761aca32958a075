"""Reading a pipe that has a name: ``mkfifo``, or ``<(kubectl get pods -o yaml)`` of a shell.

Its writer may open it later than its reader, or never.
"""

from __future__ import annotations

import os
import select
import time

from podqos.errors import InputError

PATIENCE_SECONDS = 5.0
"""How long a writer may take to open the pipe; afterwards it may take as long as it likes to write."""
_POLL_SECONDS = 0.05


class Pipe:
    """A pipe opened without blocking."""

    def __init__(self, descriptor: int, path: str) -> None:
        self._descriptor = descriptor
        self._path = path

    def read(self, size: int, /) -> bytes:
        """Return the next bytes; none at the end."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while True:
            try:
                part = os.read(self._descriptor, size)
            except BlockingIOError:  # it has a writer, and nothing in it yet
                select.select([self._descriptor], [], [])
                continue
            if part or self._has_ended():
                return part
            if time.monotonic() > deadline:
                what = f"no program has opened this pipe for writing within {PATIENCE_SECONDS:g} s"
                raise InputError(what, where=self._path, fix="start the writer first, or give a file")

    def _has_ended(self) -> bool:
        """Whether a pipe without a writer had one before and is empty; waits a little."""
        poller = select.poll()
        poller.register(self._descriptor, select.POLLIN)
        return [events for _, events in poller.poll(_POLL_SECONDS * 1000)] == [select.POLLHUP]

    def close(self) -> None:
        """Close it."""
        os.close(self._descriptor)
