"""The limit of open files: raised as far as allowed for the node, unchanged for what it starts.

A program that still uses ``select`` fails beyond 1024, so containers get the limit that the node was started with.
"""

from __future__ import annotations

import contextlib
import errno
import os
import resource
import sys
from functools import cache

RESERVE = 64
"""Descriptors that only work that ends by itself may use."""


@cache
def original_limit() -> tuple[int, int]:
    """Return the soft and hard limit that this process was started with."""
    return resource.getrlimit(resource.RLIMIT_NOFILE)


def raise_limit() -> None:
    """Raise the soft limit to the hard one."""
    _, hard = original_limit()
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def most_used() -> int:
    """Return how many descriptors may be used, without the reserve."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return sys.maxsize if soft == resource.RLIM_INFINITY else max(1, soft - RESERVE)


def restore_limit() -> None:
    """Return to the original limit."""
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_NOFILE, original_limit())


def is_reserved(descriptor: int) -> bool:
    """Whether a descriptor is among the last ones; the kernel always gives out the lowest."""
    return descriptor >= resource.getrlimit(resource.RLIMIT_NOFILE)[0] - RESERVE


def check_free() -> None:
    """Raise ``OSError`` if only the reserve is left."""
    lowest = os.eventfd(0, os.EFD_CLOEXEC)
    os.close(lowest)
    if is_reserved(lowest):
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
