"""The virtual clock: one queue of what happens next, on all nodes.

Things are done in the order of time; at one time node after node; on one node first demands change, then the kernel
acts, then containers start and stop, then the kubelet looks. What is equal in all that is done in the order in which it
was planned. So a run is the same every time.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum
from heapq import heappop, heappush

CLUSTER = -1
"""Stands for the number of a node where something concerns all of them."""

NEVER_US = 1 << 62

MOST_AT_ONCE = 50_000_000
MOST_ON_A_NODE = 200_000
"""So many things at one time, in all or on one node after the other, are a mistake in the simulation."""

Action = Callable[[int], None]
"""Told the time."""


class EventPriority(IntEnum):
    """What comes first at one time on one node."""

    DEMAND = 0
    KERNEL = 1
    LIFE = 2
    KUBELET = 3


class EventQueue:
    """What happens next."""

    __slots__ = ("_at_once", "_began", "_heap", "_sequence", "_where", "done", "now_us", "reached", "until_us")

    def __init__(self, until_us: int) -> None:
        self.now_us = 0
        self.until_us = until_us
        self.done = 0
        """How many things have happened."""
        self.reached = CLUSTER
        """The highest number of a node on which something has happened at the present time."""
        self._heap: list[tuple[int, int, int, int, Action]] = []
        self._sequence = 0
        self._at_once = self._began = 0
        self._where = 0, CLUSTER

    def plan(self, time_us: int, node: int, priority: EventPriority, action: Action) -> None:
        """Let something happen at a time, unless that is after the end."""
        if time_us > self.until_us:
            return
        assert time_us >= self.now_us, "nothing happens in the past"
        self._sequence += 1
        heappush(self._heap, (time_us, node, priority, self._sequence, action))

    @property
    def next(self) -> tuple[int, int] | None:
        """When something happens next, and on which node."""
        return self._heap[0][:2] if self._heap else None

    def step(self) -> None:
        """Do what is next."""
        time_us, node, _, _, action = heappop(self._heap)
        if time_us != self.now_us:
            self.now_us, self.reached, self._at_once = time_us, node, 0
        else:
            self._at_once += 1
            self.reached = max(self.reached, node)
        if node != CLUSTER:
            if (time_us, node) != self._where:
                self._where, self._began = (time_us, node), self._at_once
            assert self._at_once - self._began < MOST_ON_A_NODE, f"time stands still at {time_us} µs"
        assert self._at_once < MOST_AT_ONCE, f"time stands still at {time_us} µs"
        self.done += 1
        action(time_us)

    def take_over(self, other: EventQueue) -> None:
        """Let what has been planned elsewhere happen here: what would have happened by now at once, the rest later."""
        while other.next is not None and other.next <= (self.now_us, self.reached):
            other.step()
        self.done += other.done
        for time_us, node, priority, _, action in sorted(other._heap):
            self.plan(time_us, node, EventPriority(priority), action)
