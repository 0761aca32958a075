"""The virtual clock: one queue of events for all nodes.

Events run in the order of time, then of nodes; on one node demands change first, then the kernel acts, then containers
start and stop, then the kubelet looks, and last the CPU is shared out. Of equal events those with a turn run first, in
the order of their turns, then the others in the order in which they were planned, so that every run is the same.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum
from heapq import heappop, heappush

CLUSTER = -1
"""The node number of events that concern the whole cluster."""

NEVER_US = 1 << 62

LAST_TURN = 1 << 62
"""The turn of an event that has none of its own."""

MOST_AT_ONCE = 50_000_000
MOST_ON_A_NODE = 200_000
"""More events at one time, in total or in a row on one node, are a bug in the simulator."""

Action = Callable[[int], None]
"""Called with the time."""


class EventPriority(IntEnum):
    """The order of events at one time on one node."""

    DEMAND = 0
    KERNEL = 1
    LIFE = 2
    KUBELET = 3
    SHARING = 4
    """Of the CPU, among those that run after all that: nothing else depends on it."""
    REST = 5
    """A node on which nothing more happens for now goes to sleep."""


class EventQueue:
    """The events to come."""

    __slots__ = (
        "_at_once",
        "_began",
        "_dropped",
        "_heap",
        "_sequence",
        "_where",
        "done",
        "node",
        "now_us",
        "reached",
        "resting",
        "until_us",
    )

    def __init__(self, until_us: int) -> None:
        self.now_us = 0
        self.until_us = until_us
        self.done = 0
        """How many events have run."""
        self.node = CLUSTER
        """Where the current event is."""
        self.reached = CLUSTER
        """The highest number of a node that had an event at the current time."""
        self.resting: dict[int, Callable[[int, int, int], bool]] = {}
        """By number of a node that rests: called with the time, priority and turn of an event there, to wake it and to
        say whether the event is to happen."""
        self._heap: list[tuple[int, int, int, int, int, Action]] = []
        self._sequence = 0
        self._dropped: dict[int, int] = {}
        """By number of a node: up to which of its events none happens any more."""
        self._at_once = self._began = 0
        self._where = 0, CLUSTER

    def plan(self, time_us: int, node: int, priority: EventPriority, action: Action, turn: int = LAST_TURN) -> None:
        """Plan an event, unless it is after the end."""
        if time_us > self.until_us:
            return
        assert time_us >= self.now_us, "nothing happens in the past"
        self._sequence += 1
        heappush(self._heap, (time_us, node, priority, turn, self._sequence, action))

    def drop(self, node: int) -> None:
        """Let nothing happen of what is planned for a node."""
        self._dropped[node] = self._sequence

    @property
    def next(self) -> tuple[int, int] | None:
        """Time and node of the next event."""
        return self._heap[0][:2] if self._heap else None

    @property
    def next_priority(self) -> EventPriority:
        """What kind of event comes next."""
        return EventPriority(self._heap[0][2])

    def step(self) -> None:
        """Run the next event."""
        time_us, node, priority, turn, sequence, action = heappop(self._heap)
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
        self.node = node
        is_dropped = bool(self._dropped) and sequence <= self._dropped.get(node, 0)
        if not is_dropped and (node not in self.resting or self.resting[node](time_us, priority, turn)):
            action(time_us)
