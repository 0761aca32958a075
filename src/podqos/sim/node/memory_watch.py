"""Memory notifications from the kernel of a simulated node.

The kernel counts usage; the agent's levels are in available memory, which excludes inactive page cache. As on a real
node a level is therefore converted to usage with the figures of the moment at which it is set: page cache that comes
and goes later makes the notification early or late. Delivery takes no time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from podqos.agent.commands import MemoryLevel
from podqos.eviction.signals import Signal
from podqos.kernel.build import PAGE_BYTES
from podqos.sim.engine.event_queue import Action
from podqos.sim.engine.gauge import Gauge, Mark, Planner


class MemoryWatch:
    """The levels that the agent of one node watches."""

    def __init__(self, planner: Planner, crossed: Action, *, tells_of_falls: bool) -> None:
        """``tells_of_falls``: cgroup v1 notifies in both directions, ``memory.high`` of v2 in one."""
        self._planner = planner
        self._crossed = crossed
        self._fell = crossed if tells_of_falls else lambda _: None
        self._marks: list[Mark] = []

    @property
    def is_on(self) -> bool:
        """Whether anything is watched."""
        return bool(self._marks)

    def watch(self, levels: Sequence[MemoryLevel], sources: Mapping[Signal, tuple[Gauge, int]], now_us: int) -> None:
        """Watch these levels and no others; ``sources`` are usage and available bytes by signal."""
        for mark in self._marks:
            mark.remove()
        self._marks = []
        for level in levels:
            if level.signal in sources:
                self._add(level, *sources[level.signal], now_us)

    def _add(self, level: MemoryLevel, usage: Gauge, available_bytes: int, now_us: int) -> None:
        # Whole pages are counted: what the agent sees then, every part of it rounded down, is below the level.
        most_bytes = usage.at(now_us) + available_bytes - level.below_bytes + PAGE_BYTES
        rising, falling = Mark.both_ways(usage, most_bytes, self._planner, self._crossed, self._fell)
        is_below = rising.is_reached(now_us)
        (falling if is_below and not level.tell_if_below else rising).arm(now_us)
        self._marks += (rising, falling)
