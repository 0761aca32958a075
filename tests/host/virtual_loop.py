"""A loop whose time passes only while it waits: nothing in it depends on how busy the machine is."""

from __future__ import annotations

import select
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from podqos.host.linux import loop as loop_module
from podqos.host.linux.loop import Loop


class _Clock:
    """Stands in for the module ``time``, and for the loop's epoll, whose waits it lets pass at once."""

    def __init__(self) -> None:
        self.now = 0.0

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


class _Poll:
    def __init__(self, real: select.epoll, clock: _Clock) -> None:
        self._real, self._clock = real, clock

    def __getattr__(self, name: str) -> object:
        return getattr(self._real, name)

    def poll(self, seconds: float) -> list[tuple[int, int]]:
        found = self._real.poll(0)
        if not found:
            self._clock.sleep(seconds)
        return found


@contextmanager
def virtual_loop() -> Iterator[tuple[Loop, _Clock]]:
    """Make a loop and its clock; for what is ready by itself, not for what other threads or processes do."""
    clock = _Clock()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loop_module, "time", clock)
        made = Loop()
        made._poll = _Poll(made._poll, clock)
        yield made, clock
        made.close()
