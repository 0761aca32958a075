"""CPU as the scheduler divides it: by weight down the tree of cgroups, capped by quota.

Among siblings that want more than there is, each gets its weight's share; what one does not use the others divide.
A quota takes CPU time away even when cores are idle. Nothing here kills: CPU only makes slow.

Source: Linux kernel/sched/fair.c (task groups, CFS bandwidth control), Documentation/scheduler/sched-bwc.rst. The
model is the limit of many short slices over all cores: demand is constant within a period, periods are aligned,
threads move freely between cores. Amounts are nanocores, as the kubelet counts CPU usage.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from fractions import Fraction

from msgspec import Struct

from podqos.kernel.cgroup import ROOT, parent_path

CORE_NANO = 1_000_000_000
DEFAULT_PERIOD_USEC = 100_000


class CpuGroup(Struct, frozen=True, gc=False):
    """A cgroup of the CPU controller. Only groups without children have demand."""

    path: str
    weight: int = 100
    """v2 ``cpu.weight`` or v1 ``cpu.shares``: siblings only need the same scale."""
    quota_usec: int | None = None
    """CPU time per period; None is ``max``."""
    period_usec: int = DEFAULT_PERIOD_USEC
    demand_nano: int = 0
    """What its threads would use on an idle machine with cores enough."""
    threads: int | None = None
    """Runnable threads, each of which fills one core at most; None is as many as it takes."""

    @property
    def quota_nano(self) -> int | None:
        """The quota in nanocores."""
        return None if self.quota_usec is None else self.quota_usec * CORE_NANO // self.period_usec


class CpuBound(StrEnum):
    """What keeps a group from more."""

    QUOTA = "cpu.max"
    CONTENTION = "contention"
    """The cores are shared out."""


class CpuShare(Struct, frozen=True, gc=False):
    """What a group gets, and what stands in its way."""

    path: str
    demand_nano: int
    """Its own, or that of the groups below it; threads counted."""
    granted_nano: int
    bound: CpuBound | None = None
    """None: it gets all it wants."""
    bound_at: str | None = None
    """The group whose quota binds; the root under contention."""
    throttled_usec_per_period: int = 0
    """How long its own quota stops it in each of its periods."""

    @property
    def denied_nano(self) -> int:
        """What it wanted and did not get."""
        return self.demand_nano - self.granted_nano


class _Node:
    """A group on the way through the calculation."""

    __slots__ = (
        "capacity_nano",
        "children",
        "demand_nano",
        "granted_nano",
        "group",
        "quota_nano",
        "throttled_usec",
        "want_nano",
    )

    def __init__(self, group: CpuGroup) -> None:
        self.group = group
        self.quota_nano = group.quota_nano
        self.children: list[_Node] = []
        self.demand_nano = 0
        self.want_nano = 0
        """Demand as far as the quota allows it."""
        self.granted_nano = 0
        self.capacity_nano = 0
        """What it could use at a time: its grant, and what is idle around it."""
        self.throttled_usec = 0


def cpu_shares(groups: Iterable[CpuGroup], cores: int | Fraction) -> dict[str, CpuShare]:
    """Divide ``cores`` among the groups; returns what each gets, parents before children, siblings by path.

    Every group's parent must be among them; the root may be left out.
    """
    root = _tree(groups)
    _want(root)
    root.capacity_nano = int(cores * CORE_NANO)
    root.granted_nano = min(root.want_nano, root.capacity_nano)
    shares: dict[str, CpuShare] = {}
    _grant(root, None, shares)
    return shares


def _tree(groups: Iterable[CpuGroup]) -> _Node:
    nodes = {ROOT: _Node(CpuGroup(ROOT))}
    for group in sorted(groups, key=lambda group: group.path):
        node = nodes[group.path] = _Node(group)
        if group.path != ROOT:
            nodes[parent_path(group.path)].children.append(node)
    return nodes[ROOT]


def _want(node: _Node) -> None:
    """Find what each group would take with all cores to itself, from the leaves up."""
    group = node.group
    if node.children:
        assert group.demand_nano == 0, f"cgroup {group.path} has children and threads"
        for child in node.children:
            _want(child)
        node.demand_nano = sum(child.want_nano for child in node.children)
    else:
        threads = group.threads
        node.demand_nano = group.demand_nano if threads is None else min(group.demand_nano, threads * CORE_NANO)
    quota = node.quota_nano
    node.want_nano = node.demand_nano if quota is None else min(node.demand_nano, quota)


def _grant(node: _Node, parent: CpuShare | None, shares: dict[str, CpuShare]) -> None:
    """Divide what each group was granted among its children, from the root down."""
    group = node.group
    bound, bound_at = _bound(node, parent)
    share = CpuShare(group.path, node.demand_nano, node.granted_nano, bound, bound_at, node.throttled_usec)
    shares[group.path] = share
    if node.children:
        _fill(node)
        _throttle(node)
        for child in node.children:
            _grant(child, share, shares)


def _bound(node: _Node, parent: CpuShare | None) -> tuple[CpuBound | None, str | None]:
    if node.granted_nano >= node.demand_nano:
        return None, None
    if node.granted_nano == node.quota_nano:
        return CpuBound.QUOTA, node.group.path
    return (CpuBound.CONTENTION, ROOT) if parent is None else (parent.bound, parent.bound_at)


def _fill(parent: _Node) -> None:
    """Share by weight: a group that wants less than its share gets what it wants, the rest divide what remains."""
    if parent.granted_nano >= parent.demand_nano:
        for node in parent.children:
            node.granted_nano = node.want_nano
    else:
        left, weights = parent.granted_nano, sum(node.group.weight for node in parent.children)
        # Ascending by want per weight; the sort is stable, so that equals keep the order of their paths.
        hungry = sorted(parent.children, key=lambda node: (node.want_nano << 20) // node.group.weight)
        for index, node in enumerate(hungry):
            weight = node.group.weight
            if node.want_nano * weights > left * weight:
                for each in hungry[index:]:
                    each.granted_nano = min(each.want_nano, left * each.group.weight // weights)
                break
            node.granted_nano = node.want_nano
            left -= node.want_nano
            weights -= weight
    idle_nano = max(0, parent.capacity_nano - sum(node.granted_nano for node in parent.children))
    for node in parent.children:
        node.capacity_nano = node.granted_nano + idle_nano


def _throttle(parent: _Node) -> None:
    """Find how long each group stands still after it has used up its quota.

    Within a period all run at once, by weight, until the first has used its quota; then the others go faster. Groups
    that get all they want run at their demand throughout. No group runs faster than its own demand.
    """
    hungry = [node for node in parent.children if node.granted_nano < node.demand_nano]
    stopped = [node for node in hungry if node.granted_nano == node.quota_nano]
    if not stopped:
        return
    stopped.sort(key=lambda node: (node.granted_nano << 20) // node.group.weight)
    satisfied = sum(node.granted_nano for node in parent.children if node.granted_nano >= node.demand_nano)
    pool = max(1, parent.capacity_nano - satisfied)
    weights = sum(node.group.weight for node in hungry)
    ran = level = 0.0
    for node in stopped:
        reached = node.granted_nano / node.group.weight
        ran += (reached - level) * weights / pool
        level = reached
        weights -= node.group.weight
        running = min(1.0, max(ran, node.granted_nano / node.demand_nano))
        node.throttled_usec = round((1 - running) * node.group.period_usec)
