"""Bugs of podqos itself: what is asked for, and those that a command came upon and went on without."""

from __future__ import annotations

import os

_REPORT_AT = "https://podqos.dev"
_TRACEBACK = "PODQOS_TRACEBACK"  # an environment variable
ASK = f"Please report it at {_REPORT_AT}, with `podqos --version` and what the same command prints with {_TRACEBACK}=1"
reported_bugs: list[str] = []
"""Each in a few words, in the order in which they were printed."""


def wants_traceback() -> bool:
    """Whether an internal error prints its traceback."""
    return bool(os.environ.get(_TRACEBACK))
