"""The event loop of the node's one thread: descriptors and timers.

Callers register a descriptor or a timer; the loop knows nothing of their meaning. Times are seconds of the monotonic
clock.

A callback that raises does not end the loop: ``failed`` is called, everything else continues. A descriptor whose
callback keeps failing would keep the loop busy; it is left alone for a while, longer each time.
"""

from __future__ import annotations

import select
import time
from collections.abc import Callable
from heapq import heappop, heappush
from itertools import count

Callback = Callable[[], None]
_TURN_SECONDS = 0.02
_PAUSE_SECONDS = 0.05
_LONGEST_PAUSE_SECONDS = 10.0


def _raise(error: Exception) -> None:
    raise error


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
        self.failed: Callable[[Exception], None] = _raise
        """Told what a callback raised; by default it is raised."""
        self.longest_turn_seconds = 0.0
        """How long nothing else was looked at, at most."""
        self._poll = select.epoll()
        self._readers: dict[int, tuple[Callback, int]] = {}
        self._pauses: dict[int, float] = {}
        """Of descriptors whose last callback failed."""
        self._paused: set[int] = set()
        self._timers: list[tuple[float, int, Timer]] = []
        self._sequence = count()
        self._stopped = False

    def watch(self, descriptor: int, callback: Callback, events: int = select.EPOLLIN) -> None:
        """Call whenever a descriptor is ready; ``events`` are epoll's."""
        self._readers[descriptor] = callback, events
        self._poll.register(descriptor, events)

    def unwatch(self, descriptor: int) -> None:
        """Stop watching a descriptor; call it before closing."""
        self._pauses.pop(descriptor, None)
        is_known = self._readers.pop(descriptor, None) is not None
        if descriptor in self._paused:
            self._paused.remove(descriptor)
        elif is_known:
            self._poll.unregister(descriptor)

    def call_at(self, when: float, callback: Callback) -> Timer:
        """Call once at this time."""
        timer = Timer(callback)
        heappush(self._timers, (when, next(self._sequence), timer))
        return timer

    def call_after(self, seconds: float, callback: Callback) -> Timer:
        """Call once after this many seconds."""
        return self.call_at(time.monotonic() + seconds, callback)

    def call_every(self, seconds: float, callback: Callback) -> None:
        """Call now and then again and again, with this much time in between."""

        def again() -> None:
            try:
                callback()
            finally:
                self.call_after(seconds, again)

        self._call(again)

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
        """Wait for the next event and handle it; if many timers are due, some of them."""
        ready = self._poll.poll(max(0.0, min(longest_seconds, self._seconds_to_timer())))
        began = now = time.monotonic()
        for descriptor, _ in ready:
            reader = self._readers.get(descriptor)
            if reader is None:
                continue
            if self._call(reader[0]):
                self._pauses.pop(descriptor, None)
            elif self._readers.get(descriptor) is reader:
                self._pause(descriptor, reader)
        while self._timers and self._timers[0][0] <= now:
            timer = heappop(self._timers)[2]
            if timer.callback is not None:
                self._call(timer.callback)
                if time.monotonic() - began > _TURN_SECONDS:
                    break
        self.longest_turn_seconds = max(self.longest_turn_seconds, time.monotonic() - began)

    def stop(self) -> None:
        """Leave ``run`` after the current callback."""
        self._stopped = True

    def close(self) -> None:
        """Release everything."""
        self._poll.close()
        self._readers.clear()
        self._timers.clear()

    def _call(self, callback: Callback) -> bool:
        """Run a callback; return whether it did not raise."""
        try:
            callback()
        except Exception as error:  # noqa: BLE001 - one callback's fault is not the others'
            self.failed(error)
            return False
        return True

    def _pause(self, descriptor: int, reader: tuple[Callback, int]) -> None:
        """Leave a descriptor alone for a while."""
        pause = min(2 * self._pauses.get(descriptor, _PAUSE_SECONDS / 2), _LONGEST_PAUSE_SECONDS)
        self._pauses[descriptor] = pause
        self._poll.unregister(descriptor)
        self._paused.add(descriptor)

        def go_on() -> None:
            if descriptor in self._paused and self._readers.get(descriptor) is reader:
                self._paused.remove(descriptor)
                self._poll.register(descriptor, reader[1])

        self.call_after(pause, go_on)

    def _seconds_to_timer(self) -> float:
        while self._timers and self._timers[0][2].callback is None:
            heappop(self._timers)
        return self._timers[0][0] - time.monotonic() if self._timers else 3600.0


class Debounce:
    """Calls back once for events that come in groups: a moment after the first of them."""

    def __init__(self, loop: Loop, seconds: float, callback: Callback) -> None:
        self._loop, self._seconds, self._callback = loop, seconds, callback
        self._is_waiting = False

    def heard(self) -> None:
        """Call back in a moment, with whatever else comes until then."""
        if not self._is_waiting:
            self._is_waiting = True
            self._loop.call_after(self._seconds, self._settled)

    def _settled(self) -> None:
        self._is_waiting = False
        self._callback()
