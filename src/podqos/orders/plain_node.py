"""How fast memory may grow before the kernel acts first: of a node with its pods, and by a kubelet's settings alone.

The slower a growth, the more passes of the kubelet fall between its threshold and the end of the memory. So up to some
rate the kubelet is always first, from another on the kernel is, and in between it depends on when the kubelet looks.

``check`` and ``thresholds`` ask about a kubelet of which no pods are known. They get the forecast of one pod without a
limit that grows on an otherwise empty node, without page cache or swap. Other pods without page cache change nothing
about it, as long as no threshold is met before anything grows: they take from both parties alike.

What the system uses outside all pods does matter. The pods' cgroup ends at what is not reserved, the machine at what is
not used: where the system uses what is reserved for it, the machine is exhausted first, at the kernel's watermark. A
system that uses more or less than that leaves the kubelet as much time, or more.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from fractions import Fraction

from msgspec import Struct
from msgspec.structs import replace

from podqos.agent.agent import memory_notification
from podqos.eviction.signals import SIGNALS, Signal
from podqos.model.kubelet_config import KubeletConfiguration
from podqos.model.pod import Container, ObjectMeta, Pod, PodSpec
from podqos.model.profile import LATEST, Profile
from podqos.model.quantity import Quantity
from podqos.model.resources import MEMORY
from podqos.model.snapshot import ContainerUsage, NodeUsage, PodUsage, Snapshot
from podqos.model.stats import ContainerStats, MemoryStats, PodReference, PodStats
from podqos.orders.exhaustion import Exhaustion, exhaustion
from podqos.orders.growing import GrowingNode, Growth, GrowthLevel, KubeletWatch
from podqos.orders.memory import pods_limit_bytes
from podqos.placement.allocatable import cgroup_settings, node_allocatable
from podqos.qos.cgroup_settings import CgroupDriver, CgroupVersion

_SLOWEST, _FASTEST_TRIED = 10, 40
"""Growths from 1Ki to 1Ti per second, each twice as fast as the one before, are tried; the rates are between them."""
_HALF = Fraction(1, 2)


class TurningRates(Struct, frozen=True, gc=False, rename="camel"):
    """Two growths, in bytes per second, between which it is a matter of chance who is first."""

    kubelet_up_to: int | None
    """Up to this growth the kubelet acts first at every phase of its loop; null where it never is certain to."""
    kernel_from: int | None
    """From this growth on the kernel acts first at every phase; null where the kubelet can be first at any growth."""
    kernel_likely_from: int | None = None
    """From this growth on the kernel is more likely to be first; null where it is at no growth."""
    is_always_kubelet: bool = False
    """Whether the kubelet is first however fast it grows: then ``kubeletUpTo`` is the fastest growth that was tried."""


def turning_rates(node: GrowingNode) -> TurningRates:
    """Return from which growth to which it is a matter of chance who acts first."""
    tried = [1 << exponent for exponent in range(_SLOWEST, _FASTEST_TRIED + 1)]
    first = [node.kubelet_first(rate) for rate in tried]

    def slowest(is_so: Callable[[Fraction], bool], before: int | None) -> int | None:
        """Return the slowest growth from which on something is so; ``before`` is the place of the last that is not."""
        if before == len(tried) - 1:
            return None
        low, high = (0, tried[0]) if before is None else (tried[before], tried[before + 1])
        return low + 1 + bisect_left(range(low + 1, high), True, key=lambda rate: is_so(node.kubelet_first(rate)))

    unsure = next((at for at, share in enumerate(first) if share < 1), len(tried))
    doubted = slowest(lambda share: share < 1, unsure - 1 if unsure else None)
    return TurningRates(
        kubelet_up_to=tried[-1] if doubted is None else doubted - 1 or None,
        kernel_from=slowest(lambda share: share == 0, _last(first, lambda share: share > 0)),
        kernel_likely_from=slowest(lambda share: share < _HALF, _last(first, lambda share: share >= _HALF)),
        is_always_kubelet=doubted is None,
    )


def _last(shares: Sequence[Fraction], is_so: Callable[[Fraction], bool]) -> int | None:
    """Return the place of the last share of which something is so; None where it is of none."""
    return next((at for at in reversed(range(len(shares))) if is_so(shares[at])), None)


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


_MIB = 1 << 20


def least_hard_bytes(node: GrowingNode, rate: int, wanted: Fraction) -> int | None:
    """Return the least hard threshold in whole MiB that is enough by itself; None where none is.

    ``wanted`` is how likely the kubelet is to act first. A higher threshold never makes that worse.
    """
    most = node.snapshot.node.memory_bytes // _MIB
    soft = [level for level in node.levels if not level.is_hard]

    def first(mebibytes: int) -> Fraction:
        hard = node.hard_levels(mebibytes * _MIB)
        alone = node.kubelet_first(rate, hard)
        # Soft thresholds stay as they are set, and one that evicts in vain can stand in the way.
        return min(alone, node.kubelet_first(rate, (*hard, *soft))) if soft and alone >= wanted else alone

    found = bisect_left(range(most + 1), wanted, key=first)
    return None if found > most else found * _MIB
