"""The event loop of the node's one thread: descriptors and timers.

Callers register a descriptor or a timer; the loop knows nothing of their meaning. Times are seconds of the monotonic
clock.
"""

from __future__ import annotations

import select
import time
from collections.abc import Callable
from heapq import heappop, heappush
from itertools import count

Callback = Callable[[], None]


class Timer:
    """A callback to run later; it can be cancelled."""

    __slots__ = ("callback",)

    def __init__(self, callback: Callback | None) -> None:
        self.callback = callback

    def cancel(self) -> None:
        """Cancel it."""
        self.callback = None


class Loop:
    """Waits for events, and runs their callbacks."""

    def __init__(self) -> None:
        self._poll = select.epoll()
        self._readers: dict[int, Callback] = {}
        self._timers: list[tuple[float, int, Timer]] = []
        self._sequence = count()
        self._stopped = False

    def watch(self, descriptor: int, callback: Callback, events: int = select.EPOLLIN) -> None:
        """Call whenever a descriptor is ready; ``events`` are epoll's."""
        self._readers[descriptor] = callback
        self._poll.register(descriptor, events)

    def unwatch(self, descriptor: int) -> None:
        """Stop watching a descriptor; call it before closing."""
        if self._readers.pop(descriptor, None) is not None:
            self._poll.unregister(descriptor)

    def call_at(self, when: float, callback: Callback) -> Timer:
        """Call once at this time."""
        timer = Timer(callback)
        heappush(self._timers, (when, next(self._sequence), timer))
        return timer

    def call_after(self, seconds: float, callback: Callback) -> Timer:
        """Call once after this many seconds."""
        return self.call_at(time.monotonic() + seconds, callback)

    def run(self) -> None:
        """Run until stopped."""
        self._stopped = False
        while not self._stopped:
            self.step()

    def run_for(self, seconds: float) -> None:
        """Run for this long, for tests."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            self.step(until - time.monotonic())

    def step(self, longest_seconds: float = 3600.0) -> None:
        """Wait for the next event and handle it."""
        for descriptor, _ in self._poll.poll(max(0.0, min(longest_seconds, self._seconds_to_timer()))):
            callback = self._readers.get(descriptor)
            if callback is not None:
                callback()
        now = time.monotonic()
        while self._timers and self._timers[0][0] <= now:
            timer = heappop(self._timers)[2]
            if timer.callback is not None:
                timer.callback()

    def stop(self) -> None:
        """Leave ``run`` after the current callback."""
        self._stopped = True

    def close(self) -> None:
        """Release everything."""
        self._poll.close()
        self._readers.clear()
        self._timers.clear()

    def _seconds_to_timer(self) -> float:
        while self._timers and self._timers[0][2].callback is None:
            heappop(self._timers)
        return self._timers[0][0] - time.monotonic() if self._timers else 3600.0
