"""How close a run came to running out of memory on a node, where it did not."""

from __future__ import annotations

from podqos.agent.reasons import OOMLevel
from podqos.answers.run_view import ClosestCall
from podqos.sim.node.notes import NoteTaker
from podqos.sim.summary import RunSummary

_OWN_LIMITS = frozenset({OOMLevel.CONTAINER.value, OOMLevel.POD.value})


def closest_call(summary: RunSummary, notes: NoteTaker) -> ClosestCall | None:
    """Return where memory came closest to an eviction or an OOM kill for the whole node; None where there was one."""
    if summary.evictions_by_signal or not summary.oom_kills_by_level.keys() <= _OWN_LIMITS:
        return None
    reaches = notes.memory_reaches()
    closest = min(reaches, key=lambda reach: (reach.available.least - reach.threshold_bytes, reach.node), default=None)
    if closest is None:
        return None
    least = closest.available
    return ClosestCall(closest.node, least.least_us, max(0, least.least), closest.threshold_bytes, closest.memory_bytes)
