"""What keeps a process that computes for visitors in its place: priority, memory, and the server's end."""

from __future__ import annotations

import os
import sys
from contextlib import suppress

_PR_SET_PDEATHSIG = 1
_OOM_SCORE_ADJ = b"500"


def end_with_server() -> None:
    """Let the kernel end this process with the one that started it; other systems than Linux cannot."""
    if sys.platform != "linux":
        return
    from ctypes import CDLL
    from signal import SIGKILL

    CDLL(None).prctl(_PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0)


def lower_priority(niceness: int) -> None:
    """Let the server go first, and be the first to be OOM-killed, as far as the system supports it."""
    if sys.platform == "win32":
        return
    os.nice(niceness)
    with suppress(OSError), open("/proc/self/oom_score_adj", "wb") as file:
        file.write(_OOM_SCORE_ADJ)


def limit_memory(most_bytes: int) -> None:
    """Bound what this process may allocate beyond what it has mapped already."""
    if sys.platform == "win32":
        return
    from resource import RLIMIT_AS, getrlimit, setrlimit

    wanted, most = _mapped_bytes() + most_bytes, getrlimit(RLIMIT_AS)[1]
    with suppress(OSError, ValueError):  # macOS may refuse
        setrlimit(RLIMIT_AS, (wanted if most < 0 else min(most, wanted), most))


def _mapped_bytes() -> int:
    try:
        with open("/proc/self/statm", "rb") as file:
            return int(file.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return 0
