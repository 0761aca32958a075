"""Frees the memory of processes that were killed, on this process' time (``process_mrelease``, Linux 5.15).

What is killed frees its memory itself, as fast as it is given a core: a BestEffort pod on a busy machine, or a pod with
a small CPU limit, takes seconds for it. The kernel does this only to what is dying, so nothing else can be hurt.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterable

from podqos.host.linux.cgroupfs import open_pidfd

_PROCESS_MRELEASE = 448
"""The same number on every architecture."""


def release_memory(pids: Iterable[int]) -> int:
    """Free what killed processes hold, which may take a second; return how many had not begun to do so themselves."""
    system_call = ctypes.CDLL(None).syscall
    count = 0
    for pid in pids:
        try:
            pidfd = open_pidfd(pid) if pid else None
        except OSError:
            continue
        if pidfd is not None:
            count += system_call(_PROCESS_MRELEASE, pidfd, 0) == 0
            os.close(pidfd)
    return count
