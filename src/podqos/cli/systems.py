"""Commands that need Linux say so before they do anything; all others run on macOS and Windows, too."""

from __future__ import annotations

import sys

from podqos.errors import HostError

_NAMES = {"darwin": "macOS", "win32": "Windows"}


def require_linux(command: str) -> None:
    """Raise ``HostError`` on any other system."""
    if sys.platform != "linux":
        raise HostError(f"`podqos {command}` needs Linux, and this is {_NAMES.get(sys.platform, sys.platform)}")
