"""Pressure stall information: how long tasks waited for memory, of the machine or of a cgroup.

Source: Documentation/accounting/psi.rst of Linux.
"""

from __future__ import annotations

import os
from pathlib import Path

from msgspec import Struct

from podqos.host.linux.procfs import read_text


class Pressure(Struct, frozen=True, gc=False):
    """One line of a pressure file."""

    avg10: float
    avg60: float
    avg300: float
    total_us: int


class PressureFile(Struct, frozen=True, gc=False):
    """Both lines: some tasks waited, all tasks waited."""

    some: Pressure
    full: Pressure | None = None


def read_pressure(file: Path) -> PressureFile | None:
    """Return a pressure file; None if the kernel has none (``psi=1`` on its command line enables it)."""
    found = {line.partition(" ")[0]: _pressure(line) for line in (read_text(file) or "").splitlines()}
    return PressureFile(found["some"], found.get("full")) if "some" in found else None


def _pressure(line: str) -> Pressure:
    values = dict(part.split("=", 1) for part in line.split()[1:])
    return Pressure(float(values["avg10"]), float(values["avg60"]), float(values["avg300"]), int(values["total"]))


def pressure_trigger(file: Path, stall_us: int, window_us: int) -> int | None:
    """Return a descriptor with an exceptional condition whenever tasks waited that long within a window.

    It ends with the descriptor. None where the kernel has no such signal, or does not allow it.
    """
    try:
        descriptor = os.open(file, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        os.write(descriptor, f"some {stall_us} {window_us}\0".encode())
    except OSError:
        os.close(descriptor)
        return None
    return descriptor
