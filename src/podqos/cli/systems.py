"""What differs between systems: commands that need Linux say so first; consoles of Windows are told about colours."""

from __future__ import annotations

import sys
from contextlib import suppress

from podqos.errors import HostError

_NAMES = {"darwin": "macOS", "win32": "Windows"}


_OUTPUT, _ERRORS = -11, -12  # STD_OUTPUT_HANDLE, STD_ERROR_HANDLE
_UNDERSTOOD = 0x7  # processed, wrapped, and ENABLE_VIRTUAL_TERMINAL_PROCESSING


def let_console_understand_colours() -> None:
    """Tell a console of Windows to follow escape sequences, which older ones otherwise print."""
    import ctypes

    with suppress(AttributeError, OSError):  # not a console, or not Windows
        kernel = ctypes.windll.kernel32  # type: ignore[attr-defined]
        for stream in (_OUTPUT, _ERRORS):
            kernel.SetConsoleMode(kernel.GetStdHandle(stream), _UNDERSTOOD)


def require_linux(command: str) -> None:
    """Raise ``HostError`` on any other system."""
    if sys.platform != "linux":
        raise HostError(f"`podqos {command}` needs Linux, and this is {_NAMES.get(sys.platform, sys.platform)}")
