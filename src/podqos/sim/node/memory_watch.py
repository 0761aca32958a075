"""Memory notifications of a simulated node: when the real node would be told, without the time that takes.

The fast path is told when less is available than the level says. A kubelet is told by the kernel, which counts usage:
its level, in available memory, which excludes inactive page cache, is converted to usage with the figures of the
moment at which it is set; page cache that comes and goes later makes the notification early or late.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from podqos.agent.commands import MemoryLevel, WatchMemory
from podqos.eviction.signals import Signal
from podqos.kernel.build import PAGE_BYTES
from podqos.sim.engine.event_queue import Action
from podqos.sim.engine.gauge import Gauge, GaugeMark, Planner


class GaugeSource(NamedTuple):
    """What is used of a signal, in the kernel's count and the kubelet's, and how much there is."""

    usage: Gauge
    working_set: Gauge
    capacity_bytes: int


class MemoryWatch:
    """The levels that the agent of one node watches."""

    def __init__(self, planner: Planner, crossed: Action, *, tells_of_falls: bool) -> None:
        """``tells_of_falls``: cgroup v1 notifies a kubelet in both directions."""
        self._planner = planner
        self._crossed = crossed
        self._fell = crossed if tells_of_falls else lambda _: None
        self._marks: list[GaugeMark] = []
        self.is_shifted_by_cache = False
        """Whether page cache shifts what is watched, until it is asked for again."""

    def watch(self, asked: WatchMemory, sources: Mapping[Signal, GaugeSource], now_us: int) -> None:
        """Watch these levels and no others."""
        for mark in self._marks:
            mark.remove()
        self._marks = []
        self.is_shifted_by_cache = bool(asked.levels) and not asked.through_cache
        for level in asked.levels:
            if level.signal in sources:
                self._add(level, sources[level.signal], now_us, through_cache=asked.through_cache)

    def _add(self, level: MemoryLevel, source: GaugeSource, now_us: int, *, through_cache: bool) -> None:
        gauge, fell = (source.working_set, lambda _: None) if through_cache else (source.usage, self._fell)
        cache_bytes = gauge.at(now_us) - source.working_set.at(now_us)
        # Whole pages are counted: what the agent sees then, every part of it rounded down, is below the level.
        most_bytes = source.capacity_bytes + cache_bytes - level.below_bytes + PAGE_BYTES
        rising, falling = GaugeMark.both_ways(gauge, most_bytes, self._planner, self._crossed, fell)
        is_below = rising.is_reached(now_us)
        (falling if is_below and not level.tell_if_below else rising).arm(now_us)
        self._marks += (rising, falling)
