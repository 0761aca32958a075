"""Importing this loads msgspec without ``typing_extensions``: a tenth of the time that a command takes to start.

msgspec takes a few names from there where it is installed, though ``typing`` has them since Python 3.11.
"""

from __future__ import annotations

import sys


def _load() -> None:
    if "msgspec" in sys.modules or "typing_extensions" in sys.modules:
        return
    sys.modules["typing_extensions"] = None  # type: ignore[assignment] # as if it were not installed
    try:
        import msgspec  # noqa: F401
    finally:
        del sys.modules["typing_extensions"]


_load()
