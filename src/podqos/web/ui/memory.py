"""How much memory this process may use together with those that it starts, and what a process uses."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from math import inf
from pathlib import Path

_CGROUPS = Path("/sys/fs/cgroup")
_MEMBERSHIP = Path("/proc/self/cgroup")
_UNKNOWN_BYTES = 4 << 30
"""Assumed if the system does not tell."""


def usable_bytes(cgroups: Path = _CGROUPS, membership: Path = _MEMBERSHIP) -> int:
    """Return the smaller of the machine's memory and the limits of this process's cgroups."""
    return min([_machine_bytes(), *_cgroup_limits(cgroups, membership)])


def resident_bytes(pid: int) -> int:
    """Return the resident memory of a process; 0 if it is gone or the system does not tell."""
    try:
        with open(f"/proc/{pid}/statm", "rb") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError, AttributeError):  # Windows has neither the files nor sysconf
        return 0


def cpu_seconds(pid: int) -> float:
    """Return the CPU time that a process has used; infinite if it is gone or the system does not tell."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            user, system = file.read().rpartition(b")")[2].split()[11:13]
        return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError, AttributeError):
        return inf


def is_stopped(pid: int) -> bool:
    """Whether somebody has stopped a process: it would never answer."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return file.read().rpartition(b")")[2].split()[:1] == [b"T"]
    except OSError:
        return False


def _machine_bytes() -> int:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):  # Windows
        return _UNKNOWN_BYTES


def _cgroup_limits(cgroups: Path, membership: Path) -> Iterator[int]:
    """Yield the limits of the own cgroup and of those above it; in a container the own one is the root."""
    try:
        lines = membership.read_text(encoding="utf-8").splitlines()
    except OSError:
        return
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if controllers and "memory" not in controllers.split(","):
            continue
        root, name = (cgroups / "memory", "memory.limit_in_bytes") if controllers else (cgroups, "memory.max")
        own = root / path.strip("/")
        for folder in (own, *own.parents):
            with suppress(OSError, ValueError):  # "max", or not visible from here
                yield int((folder / name).read_bytes())
            if folder == root:
                break
