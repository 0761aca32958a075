"""When an eviction pass could see something: every threshold as a mark on the gauge of its signal.

An alarm is raised from the moment a threshold is met until a pass finds it cleared. While none is raised, passes
without state need not run.
"""

from __future__ import annotations

from podqos.eviction.thresholds import Threshold, derive_containerfs
from podqos.sim.engine.event_queue import NEVER_US
from podqos.sim.engine.gauge import GaugeMark
from podqos.sim.node.resources import NodeResources


class Alarms:
    """The alarms of one node."""

    def __init__(self, node: NodeResources) -> None:
        self._node = node
        self.are_raised = False
        self._raised_us = -NEVER_US
        self.marks: list[tuple[GaugeMark, Threshold]] = []
        config = node.settings.agent.eviction
        derived = derive_containerfs(config.thresholds, config.layout)
        sums = node.signals()
        for threshold in (*derived.in_place, *derived.added):
            if threshold.signal in sums:
                gauge, capacity = sums[threshold.signal]
                mark = GaugeMark(gauge, node.owner.plan, node.owner.alarm)
                mark.above(capacity - threshold.amount(capacity).value, node.owner.now_us)
                self.marks.append((mark, threshold))

    def look(self, now_us: int) -> None:
        """Clear the alarm after a pass if no threshold is met any more."""
        if any(mark.is_reached(now_us) for mark, _ in self.marks):
            self._raised_us = now_us
        self.are_raised = now_us - self._raised_us <= self._node.settings.spec.statistics_age_us
        for mark, _ in self.marks:
            if not mark.is_armed and not mark.is_reached(now_us):
                mark.arm(now_us)

    def raise_all(self, now_us: int) -> None:
        """Note that a pass could see something from now on."""
        self.are_raised = True
        self._raised_us = now_us
