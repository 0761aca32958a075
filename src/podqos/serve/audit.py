"""Audit lines, written independently of the answers: a slow reader delays no pod."""

from __future__ import annotations

import threading
from collections import deque
from typing import BinaryIO

_MOST_LINES = 20_000
_EVERY_SECONDS = 0.1


class AuditLog:
    """Writes lines to a file or pipe. Lines that do not fit into the queue are dropped and counted."""

    def __init__(self, stream: BinaryIO | None) -> None:
        self._stream = stream
        self._lines: deque[bytes] = deque()
        self._is_closed = threading.Event()
        self.dropped = 0
        self._thread = threading.Thread(target=self._run, name="audit", daemon=True)
        if stream is not None:
            self._thread.start()

    def write(self, line: bytes) -> None:
        """Queue a line."""
        if self._stream is None:
            return
        if len(self._lines) >= _MOST_LINES:
            self.dropped += 1
        else:
            self._lines.append(line)

    def close(self, seconds: float = 5.0) -> None:
        """Write the remaining lines, unless that takes too long."""
        self._is_closed.set()
        if self._stream is not None:
            self._thread.join(seconds)

    def _run(self) -> None:
        is_last = False
        while not is_last:
            is_last = self._is_closed.wait(_EVERY_SECONDS)
            taken = [self._lines.popleft() for _ in range(len(self._lines))]
            if not taken:
                continue
            assert self._stream is not None
            try:
                self._stream.write(b"".join([line + b"\n" for line in taken]))
                self._stream.flush()
            except (OSError, ValueError):
                self.dropped += len(taken)
