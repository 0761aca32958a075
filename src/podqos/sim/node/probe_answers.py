"""How containers of a simulated node answer probes: a model (``probing.Answer``).

The answer costs CPU time (``PROBE_COST_US`` unless the scenario says otherwise) and takes as much longer as the
container gets less CPU than it wants. In a service it also waits for its turn like the median request, and is refused
where most requests are; the time that requests wait for other services is no part of it.
"""

from __future__ import annotations

from podqos.agent.reasons import ThrottledBy
from podqos.sim.node.pods import SimContainer
from podqos.sim.node.probing import Answer
from podqos.sim.node.throttling import NodeCpu

PROBE_COST_US = 10_000
"""The CPU time of an answer: 10 ms."""


class ProbeAnswers:
    """The answers of the containers on one node."""

    def __init__(self, cpu: NodeCpu) -> None:
        self._cpu = cpu

    def may_be_slow(self, container: SimContainer) -> bool:
        """Whether a container may answer late: it has a service, or is short of CPU."""
        return container.demand.service is not None or self._cpu.throttled_by(container) is not ThrottledBy.NOTHING

    def answer(self, container: SimContainer, now_us: int) -> Answer:
        """Return how a container answers a probe now."""
        cost_us = container.demand.probe_cost_us
        if cost_us is None:
            cost_us = PROBE_COST_US
        by = self._cpu.throttled_by(container)
        wanted = granted = 1
        if by is not ThrottledBy.NOTHING:
            share = self._cpu.shares(now_us)[container.path]
            wanted, granted = share.demand_nano, share.granted_nano
        bound = None if by is ThrottledBy.NOTHING else by
        slowdown = 100 * wanted // granted if granted else 0
        service = container.service
        if service is not None:
            response_us = None if service.is_refusing else service.probe_wait_us + cost_us * wanted // max(1, granted)
            return Answer(response_us if granted else None, slowdown, bound, service.waiting)
        return Answer(cost_us * wanted // granted if granted else None, slowdown, bound)
