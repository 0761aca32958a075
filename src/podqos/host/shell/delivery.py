"""Events for an agent, one after the other, and the timer for when it wants to be woken."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from podqos.agent.port import Event
from podqos.host.linux.loop import Loop, Timer


class Delivery:
    """Hands events to an agent; what follows from one comes after it, and never in between.

    ``handle`` takes one event and must not raise. ``settled`` is called when none is left. ``wake_us`` says when the
    agent wants to be woken, by ``now_us``, and ``wake`` is called then.
    """

    def __init__(
        self,
        loop: Loop,
        now_us: Callable[[], int],
        *,
        handle: Callable[[Event], None],
        settled: Callable[[], None],
        wake_us: Callable[[], int | None],
        wake: Callable[[], None],
    ) -> None:
        self._loop = loop
        self._now_us = now_us
        self._handle = handle
        self._settled = settled
        self._wake_us = wake_us
        self._wake = wake
        self._waiting: deque[Event] = deque()
        self._is_delivering = False
        self._timer: Timer | None = None

    def deliver(self, event: Event) -> None:
        """Deliver an event, and everything that follows from it."""
        self._waiting.append(event)
        if self._is_delivering:
            return
        self._is_delivering = True
        try:
            while self._waiting:
                self._handle(self._waiting.popleft())
        finally:
            self._is_delivering = False
            try:
                self._settled()
            finally:
                self._set_timer()

    def _set_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        wake_us = self._wake_us()
        if wake_us is not None:
            self._timer = self._loop.call_after(max(0.0, (wake_us - self._now_us()) / 1e6), self._wake)
