"""How much memory a node has left until its kubelet evicts: the least over its thresholds, each on its own signal.

A kubelet that enforces the allocatable of pods watches two signals of memory: ``memory.available`` of the machine, and
``allocatableMemory.available`` of the cgroup of all pods. Reservations make the second the smaller one on most nodes.
When the kernel acts is in ``outlook`` and ``growing``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec import Struct

from podqos.eviction.signals import Signal
from podqos.model.profile import Profile
from podqos.model.resources import MEMORY
from podqos.model.snapshot import Snapshot
from podqos.qos.cgroup_settings import CgroupSettings
from podqos.survival.orders.exhaustion import WatchedThreshold


class Headroom(Struct, frozen=True, gc=False, rename="camel"):
    """What is left until the kubelet evicts, and the threshold that decides it."""

    headroom_bytes: int
    """Negative where the threshold is met already."""
    signal: Signal
    type: str
    """``hard``, or ``soft``: the kubelet evicts once it has been met for its grace period."""
    threshold_bytes: int
    available_bytes: int
    """What the signal says now."""
    grace_seconds: float = 0


def pods_limit_bytes(settings: CgroupSettings) -> int | None:
    """Return what all pods may use together, the capacity of allocatableMemory.available; None if not enforced."""
    if not settings.enforce_node_allocatable or MEMORY not in settings.node_allocatable:
        return None
    return settings.node_allocatable[MEMORY].value


def memory_signals(snapshot: Snapshot, limit_bytes: int | None, profile: Profile) -> dict[Signal, int]:
    """Return what is available by each signal of memory that the kubelet watches."""
    used_by_pods = snapshot.pods_working_set_bytes
    available = {Signal.MEMORY: snapshot.node.available_bytes(used_by_pods, profile)}
    if limit_bytes is not None:
        available[Signal.ALLOCATABLE_MEMORY] = limit_bytes - used_by_pods
    return available


def headroom(available: Mapping[Signal, int], thresholds: Iterable[WatchedThreshold]) -> Headroom | None:
    """Return the least headroom over all thresholds of memory; None where the kubelet has none, and never evicts."""
    found = [
        Headroom(
            headroom_bytes=available[threshold.signal] - threshold.amount,
            signal=threshold.signal,
            type=threshold.type,
            threshold_bytes=threshold.amount,
            available_bytes=available[threshold.signal],
            grace_seconds=threshold.grace_seconds,
        )
        for threshold in thresholds
        if threshold.signal in available and threshold.amount is not None
    ]
    # At a tie the one that acts sooner, which is also the order of the kubelet's signals.
    return min(found, key=lambda each: (each.headroom_bytes, each.grace_seconds), default=None)
