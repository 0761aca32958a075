"""Bytes of answers that wait for their clients, each counted once, however many connections send it."""

from __future__ import annotations

from typing import Any


class Held:
    """Counts bytes objects that are referenced from here."""

    def __init__(self) -> None:
        self.total_bytes = 0
        self._references: dict[int, int] = {}

    def add(self, data: bytes) -> None:
        """Count another reference; the caller keeps the object alive until it is removed."""
        before = self._references.get(id(data), 0)
        self._references[id(data)] = before + 1
        if not before:
            self.total_bytes += len(data)

    def remove(self, data: Any) -> None:  # noqa: ANN401 - what a memoryview says it shows
        """Drop a reference."""
        left = self._references[id(data)] - 1
        if left:
            self._references[id(data)] = left
        else:
            del self._references[id(data)]
            self.total_bytes -= len(data)

    def is_last(self, data: Any) -> bool:  # noqa: ANN401 - as above
        """Whether only one reference is left."""
        return self._references.get(id(data)) == 1
