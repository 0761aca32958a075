"""Returns freed memory to the system after many connections have closed, or large requests have ended.

The C library keeps it otherwise: it is still counted as the process's own, against its container's limit.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable

_CONNECTION_BYTES = 16 << 10
_MUCH_BYTES = 1 << 20


class FreedMemory:
    """Returns memory after a peak."""

    def __init__(self) -> None:
        self._peak = 0
        self._trim = _trim()

    def sweep(self, connections: int, held_bytes: int) -> None:
        """Return memory if much less is in use than at the peak."""
        used = connections * _CONNECTION_BYTES + held_bytes
        self._peak = max(self._peak, used)
        if self._peak - used >= max(_MUCH_BYTES, self._peak // 2):
            self._peak = used
            self._trim()


def _trim() -> Callable[[], object]:
    """Return the C library's function; other libraries return memory by themselves."""
    try:
        trim = ctypes.CDLL(None).malloc_trim
    except (OSError, AttributeError, TypeError):
        return lambda: None
    return lambda: trim(0)
