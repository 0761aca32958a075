"""Pressure stall information: how long tasks waited for memory, of the machine or of a cgroup.

Source: Documentation/accounting/psi.rst of Linux.
"""

from __future__ import annotations

import os
import select
from collections.abc import Callable
from pathlib import Path

from msgspec import Struct

from podqos.host.linux.loop import Loop, Timer
from podqos.host.linux.procfs import read_text

_AGAIN_SECONDS = 1.0


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


class PressureWatch:
    """Calls whenever tasks have waited that long within a window; never, where the kernel does not allow that.

    A cgroup may be removed and made again: the kernel says of a removed one without end that something happened.
    """

    def __init__(self, loop: Loop, file: Path, stall_us: int, window_us: int, on_stall: Callable[[], None]) -> None:
        self._loop, self._file, self._on_stall = loop, file, on_stall
        self._wanted = f"some {stall_us} {window_us}\0".encode()
        self._trigger: int | None = None
        self._timer: Timer | None = None
        self._arm()

    @property
    def is_armed(self) -> bool:
        """Whether the kernel will say so."""
        return self._trigger is not None

    def close(self) -> None:
        """Stop listening."""
        if self._timer is not None:
            self._timer.cancel()
        if self._trigger is not None:
            self._loop.unwatch(self._trigger)
            os.close(self._trigger)
            self._trigger = None

    def _arm(self) -> None:
        try:
            trigger = os.open(self._file, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError:
            return
        try:
            os.write(trigger, self._wanted)
        except OSError:
            os.close(trigger)
            return
        self._trigger = trigger
        self._loop.watch(trigger, self._stalled, select.EPOLLPRI)

    def _stalled(self) -> None:
        assert self._trigger is not None
        try:
            os.pread(self._trigger, 1, 0)
        except OSError:
            self.close()
            self._arm_again()
        self._on_stall()

    def _arm_again(self) -> None:
        """Wait until there is such a cgroup again."""
        self._timer = None
        if self._file.exists():
            self._arm()
        else:
            self._timer = self._loop.call_after(_AGAIN_SECONDS, self._arm_again)
