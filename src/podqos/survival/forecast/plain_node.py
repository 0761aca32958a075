"""Who acts first by a kubelet's settings alone: the forecast for the plainest node that it could have.

``check`` and ``thresholds`` ask about a kubelet of which no pods are known. They get the forecast
of one pod without a limit that grows on an otherwise empty node, without page cache or swap. Other pods without page
cache change nothing about it, as long as no threshold is met before anything grows: they take from both parties alike.

What the system uses outside all pods does matter. The pods' cgroup ends at what is not reserved, the machine at what is
not used: where the system uses what is reserved for it, the machine is exhausted first, at the kernel's watermark. A
system that uses more or less than that leaves the kubelet as much time, or more.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from fractions import Fraction

from msgspec import Struct
from msgspec.structs import replace

from podqos.agent.memory import memory_notification
from podqos.eviction.signals import SIGNALS, Signal
from podqos.model.kubelet_config import KubeletConfiguration
from podqos.model.pod import Container, ObjectMeta, Pod, PodSpec
from podqos.model.profile import LATEST, Profile
from podqos.model.quantity import Quantity
from podqos.model.resources import MEMORY
from podqos.model.snapshot import ContainerUsage, NodeUsage, PodUsage, Snapshot
from podqos.model.stats import ContainerStats, MemoryStats, PodReference, PodStats
from podqos.placement.allocatable import node_allocatable
from podqos.placement.node_cgroups import cgroup_settings
from podqos.qos.cgroup_settings import CgroupDriver, CgroupVersion
from podqos.survival.forecast.forecast import least_hard_bytes
from podqos.survival.forecast.growing import GrowingNode, Growth, GrowthLevel, KubeletWatch
from podqos.survival.orders.exhaustion import Exhaustion, exhaustion
from podqos.survival.orders.headroom import pods_limit_bytes

_NAME = "grower"
_POD = Pod(
    metadata=ObjectMeta(name=_NAME, namespace="default", uid=_NAME), spec=PodSpec(containers=(Container(name=_NAME),))
)
_NOTHING = MemoryStats(working_set_bytes=0)
_USAGE = PodUsage(
    _POD,
    PodStats(PodReference(_NAME, "default", _NAME), memory=_NOTHING, containers=(ContainerStats(_NAME, _NOTHING),)),
    (ContainerUsage(_NAME, 0, processes=1),),
)
_FASTEST = 1 << 50
"""No growth is faster, in bytes per second."""


class PlainNode(Struct, frozen=True):
    """A machine and its kubelet, which must be one that starts there."""

    memory_bytes: int
    config: KubeletConfiguration = KubeletConfiguration()
    system_bytes: int = 0
    """What is used outside all pods."""
    cgroup_version: CgroupVersion = CgroupVersion.V2
    profile: Profile = LATEST
    hugepages_bytes: int = 0
    """Set aside as huge pages."""

    def with_reserved_in_use(self) -> PlainNode:
        """Return the node whose system uses all that is reserved for it: the least favourable for the kubelet."""
        capacity = {MEMORY: Quantity.of_units(self.memory_bytes, "BinarySI")}
        reserved = self.memory_bytes - node_allocatable(capacity, self.config).enforced[MEMORY].value
        return replace(self, system_bytes=max(0, reserved))

    def growing(self) -> GrowingNode:
        """Return the node as the forecast knows it."""
        capacity = {MEMORY: Quantity.of_units(self.memory_bytes, "BinarySI")}
        settings = cgroup_settings(self.config, capacity, cgroup_version=self.cgroup_version, profile=self.profile)
        # Where cgroups are changes nothing, and every container has to be somewhere.
        settings = replace(settings, cgroup_driver=CgroupDriver.CGROUPFS)
        watched = exhaustion(
            self.config,
            {Signal.MEMORY: self.memory_bytes},
            allocatable=node_allocatable(capacity, self.config),
            profile=self.profile,
        )
        watch = KubeletWatch(
            watched,
            pods_limit_bytes(settings),
            notification=memory_notification(self.config, self.cgroup_version, fast_path=False),
        )
        machine = NodeUsage(self.memory_bytes, system_bytes=self.system_bytes, hugepages_bytes=self.hugepages_bytes)
        return GrowingNode(Snapshot(machine, (_USAGE,)), settings, Growth(_NAME, _NAME), watch, self.profile)


class FirstActor(Struct, frozen=True, gc=False):
    """Which of kubelet and kernel acts first on such a node, at one growth rate."""

    kubelet_first: Fraction
    """Probability over the phase of the kubelet's loop."""
    needed_bytes: int | None
    """The least evictionHard memory.available with which it always is; None where none is enough."""
    sufficient_bytes: int | None
    """The least with which it always is whatever the system uses: also while all that is reserved is in use."""


def first_actor(node: PlainNode, rate: int) -> FirstActor:
    """Return who acts first while memory grows by ``rate`` bytes per second."""
    growing = node.growing()
    needed = least_hard_bytes(growing, rate, Fraction(1))
    in_use = node.with_reserved_in_use()
    sufficient = needed if in_use == node else least_hard_bytes(in_use.growing(), rate, Fraction(1))
    if needed is None or sufficient is None:
        return FirstActor(growing.kubelet_first(rate), needed, None)
    return FirstActor(growing.kubelet_first(rate), needed, max(needed, sufficient))


def always_first(node: PlainNode, rate: int) -> bool:
    """Whether the kubelet starts with these settings and is always first, whatever the system uses."""
    capacity = {MEMORY: Quantity.of_units(node.memory_bytes, "BinarySI")}
    if node_allocatable(capacity, node.config).over_reserved:
        return False
    return all(each.growing().kubelet_first(rate) == 1 for each in (node, node.with_reserved_in_use()))


def sure_growth(node: GrowingNode, levels: Sequence[GrowthLevel] | None = None) -> int | None:
    """Return the fastest growth, in bytes per second, at which the kubelet is first at every phase; None if at none.

    ``levels`` are thresholds to be tried in place of the node's own.
    """
    rate = bisect_left(range(1, _FASTEST), True, key=lambda rate: node.kubelet_first(rate, levels) < 1)
    return rate or None


class SureGrowth(Struct, frozen=True, gc=False, rename="camel"):
    """How fast memory may grow, in bytes per second, for the kubelet to act before the kernel at every phase."""

    system_bytes: int
    """What is used outside all pods."""
    bytes_per_second: int | None
    """By all thresholds together; null where the kernel is first however slowly memory grows."""
    reserved_bytes: int
    """What kubeReserved and systemReserved hold back."""
    reserved_in_use_bytes_per_second: int | None
    """The same while the system uses all of that."""


def kubelet_sure_growth(node: PlainNode) -> SureGrowth:
    """Return how fast memory may grow."""
    in_use = node.with_reserved_in_use()
    sure = sure_growth(node.growing())
    return SureGrowth(
        node.system_bytes,
        sure,
        in_use.system_bytes,
        sure if in_use == node else sure_growth(in_use.growing()),
    )


def with_sure_growth(found: Exhaustion, node: PlainNode) -> Exhaustion:
    """Return the thresholds with the growth at which each of memory, alone, lets the kubelet act first."""
    growing = node.growing()
    rates = {(level.signal, level.type, level.amount): sure_growth(growing, [level]) for level in growing.levels}
    thresholds = tuple(
        replace(threshold, sure_growth_bytes_per_second=rates.get((threshold.signal, threshold.type, threshold.amount)))
        if SIGNALS[threshold.signal].is_memory and threshold.amount is not None
        else threshold
        for threshold in found.thresholds
    )
    return replace(found, thresholds=thresholds)
