"""CPU as the scheduler divides it: by weight down the tree of cgroups, capped by quota.

Among siblings that want more than there is, each gets its weight's share; what one does not use the others divide.
A quota takes CPU time away even when cores are idle. Nothing here kills: CPU only makes slow.

Source: Linux kernel/sched/fair.c (task groups, CFS bandwidth control), Documentation/scheduler/sched-bwc.rst. The
model is the limit of many short slices over all cores: demand is constant within a period, periods are aligned,
threads move freely between cores. Amounts are nanocores, as the kubelet counts CPU usage.

Where demands grow and shrink linearly, so does what each group gets, from one moment to the next at which a group
reaches its quota, gets all it wants or no longer does: ``CpuTree.course`` says when that is.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from fractions import Fraction
from typing import NamedTuple

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
    demand_slope: int = 0
    """How fast the demand grows, per microsecond."""

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
    demand_slope: int = 0
    """How fast its demand grows, per microsecond (``CpuTree.course``)."""
    granted_slope: int = 0
    """How fast what it gets grows."""

    @property
    def denied_nano(self) -> int:
        """What it wanted and did not get."""
        return self.demand_nano - self.granted_nano

    @property
    def denied_slope(self) -> int:
        """How fast that grows."""
        return self.demand_slope - self.granted_slope


class CpuCourse(Struct, frozen=True, gc=False):
    """How CPU is divided from now on."""

    shares: dict[str, CpuShare]
    """By path: of groups without children."""
    steady_us: int | None = None
    """For how many microseconds all of it changes linearly; None: for as long as the demands do."""


class _Node:
    """A group on the way through the calculation."""

    __slots__ = (
        "capacity_nano",
        "children",
        "demand_nano",
        "demand_slope",
        "granted_nano",
        "granted_slope",
        "group",
        "hungry",
        "own_nano",
        "own_slope",
        "quota_nano",
        "throttled_usec",
        "want_nano",
        "want_slope",
    )

    def __init__(self, group: CpuGroup) -> None:
        self.group = group
        self.quota_nano = group.quota_nano
        self.own_nano = group.demand_nano
        self.own_slope = group.demand_slope
        self.children: list[_Node] = []
        self.demand_nano = 0
        self.want_nano = 0
        """Demand as far as the quota allows it."""
        self.granted_nano = 0
        self.capacity_nano = 0
        """What it could use at a time: its grant, and what is idle around it."""
        self.throttled_usec = 0
        self.hungry: _Hungry | None = None
        """Of its children: those that do not get all they want, if they are short of CPU."""
        self.demand_slope = self.want_slope = self.granted_slope = 0


class _Hungry(NamedTuple):
    """Groups that divide by weight what their siblings leave."""

    nodes: list[_Node]
    left_nano: int
    weights: int


class CpuTree:
    """Groups among which CPU is divided again and again, with other demands each time.

    Every group's parent must be among them; the root may be left out.
    """

    __slots__ = ("_leaves", "_nodes", "_root")

    def __init__(self, groups: Iterable[CpuGroup]) -> None:
        self._nodes = {ROOT: _Node(CpuGroup(ROOT))}
        for group in sorted(groups, key=lambda group: group.path):
            node = self._nodes[group.path] = _Node(group)
            if group.path != ROOT:
                self._nodes[parent_path(group.path)].children.append(node)
        self._root = self._nodes[ROOT]
        self._leaves = [node for node in self._nodes.values() if not node.children]

    def demand(self, path: str, demand_nano: int, slope: int = 0) -> None:
        """Set what a group without children wants, and how fast that grows."""
        node = self._nodes[path]
        node.own_nano, node.own_slope = demand_nano, slope

    def shares(self, cores: int | Fraction) -> dict[str, CpuShare]:
        """Divide ``cores``; return what each group gets, parents before children, siblings by path."""
        self._divide(cores)
        _throttle_below(self._root)
        shares: dict[str, CpuShare] = {}
        _add_shares(self._root, (None, None), shares)
        return shares

    def course(self, cores: int | Fraction) -> CpuCourse:
        """Divide ``cores`` among groups whose demands grow and shrink linearly; return the groups without children.

        The slopes are rounded down to whole units per microsecond: units should be small.
        """
        self._divide(cores)
        changes: list[int] = []
        if any(node.own_slope for node in self._leaves):
            root = self._root
            _demand_slopes(root, changes)
            over = root.want_nano - root.capacity_nano
            _add_change(over, root.want_slope, changes)
            root.granted_slope = root.want_slope if _is_below(over, root.want_slope) else 0
            _granted_slopes(root, changes)
        else:
            for node in self._nodes.values():
                node.demand_slope = node.granted_slope = 0
        shares: dict[str, CpuShare] = {}
        _add_shares(self._root, (None, None), shares, leaves_only=True)
        return CpuCourse(shares, min(changes, default=None))

    def granted(self, cores: int | Fraction) -> dict[str, tuple[int, int]]:
        """Divide ``cores``; return only what each group without children wants and gets."""
        self._divide(cores)
        return {node.group.path: (node.demand_nano, node.granted_nano) for node in self._leaves}

    def _divide(self, cores: int | Fraction) -> None:
        root = self._root
        _want(root)
        root.capacity_nano = int(cores * CORE_NANO)
        root.granted_nano = min(root.want_nano, root.capacity_nano)
        if root.children:
            _fill_below(root)


def cpu_shares(groups: Iterable[CpuGroup], cores: int | Fraction) -> dict[str, CpuShare]:
    """Divide ``cores`` among the groups once; returns what each gets, parents before children, siblings by path."""
    return CpuTree(groups).shares(cores)


def _want(node: _Node) -> None:
    """Find what each group would take with all cores to itself, from the leaves up."""
    group = node.group
    if node.children:
        assert node.own_nano == 0, f"cgroup {group.path} has children and threads"
        for child in node.children:
            _want(child)
        node.demand_nano = sum(child.want_nano for child in node.children)
    else:
        threads = group.threads
        node.demand_nano = node.own_nano if threads is None else min(node.own_nano, threads * CORE_NANO)
    quota = node.quota_nano
    node.want_nano = node.demand_nano if quota is None else min(node.demand_nano, quota)


def _fill_below(node: _Node) -> None:
    """Divide what each group was granted among its children, from the root down."""
    _fill(node)
    for child in node.children:
        if child.children:
            _fill_below(child)


def _throttle_below(node: _Node) -> None:
    if node.children:
        _throttle(node)
        for child in node.children:
            _throttle_below(child)


_Bound = tuple[CpuBound | None, str | None]
"""What keeps a group from more, and where."""


def _add_shares(node: _Node, above: _Bound, shares: dict[str, CpuShare], *, leaves_only: bool = False) -> None:
    bound = _bound(node, above)
    if not (leaves_only and node.children):
        shares[node.group.path] = CpuShare(
            node.group.path,
            node.demand_nano,
            node.granted_nano,
            *bound,
            node.throttled_usec,
            node.demand_slope,
            node.granted_slope,
        )
    for child in node.children:
        _add_shares(child, bound, shares, leaves_only=leaves_only)


def _bound(node: _Node, above: _Bound) -> _Bound:
    if node.granted_nano >= node.demand_nano:
        return None, None
    if node.granted_nano == node.quota_nano:
        return CpuBound.QUOTA, node.group.path
    return above if node.group.path != ROOT else (CpuBound.CONTENTION, ROOT)


def _fill(parent: _Node) -> None:
    """Share by weight: a group that wants less than its share gets what it wants, the rest divide what remains."""
    parent.hungry = None
    if len(parent.children) == 1:
        (only,) = parent.children
        only.granted_nano = min(only.want_nano, parent.granted_nano)
        if parent.granted_nano < parent.demand_nano:
            parent.hungry = _Hungry(parent.children, parent.granted_nano, only.group.weight)
        return
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
                parent.hungry = _Hungry(hungry[index:], left, weights)
                for each in parent.hungry.nodes:
                    each.granted_nano = min(each.want_nano, left * each.group.weight // weights)
                break
            node.granted_nano = node.want_nano
            left -= node.want_nano
            weights -= weight


def _throttle(parent: _Node) -> None:
    """Find how long each group stands still after it has used up its quota.

    Within a period all run at once, by weight, until the first has used its quota; then the others go faster. Groups
    that get all they want run at their demand throughout. No group runs faster than its own demand.
    """
    idle_nano = max(0, parent.capacity_nano - sum(node.granted_nano for node in parent.children))
    for node in parent.children:
        node.capacity_nano = node.granted_nano + idle_nano
        node.throttled_usec = 0
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


# ---- how that changes --------------------------------------------------------------------------------------------


def _demand_slopes(node: _Node, changes: list[int]) -> None:
    """Find how fast demands grow, from the leaves up."""
    group = node.group
    if node.children:
        for child in node.children:
            _demand_slopes(child, changes)
        node.demand_slope = sum(child.want_slope for child in node.children)
    else:
        node.demand_slope = node.own_slope
        if group.threads is not None:
            over = node.own_nano - group.threads * CORE_NANO
            _add_change(over, node.own_slope, changes)
            node.demand_slope = node.own_slope if _is_below(over, node.own_slope) else 0
    node.want_slope = node.demand_slope
    if node.quota_nano is not None:
        over = node.demand_nano - node.quota_nano
        _add_change(over, node.demand_slope, changes)
        node.want_slope = node.demand_slope if _is_below(over, node.demand_slope) else 0


def _granted_slopes(parent: _Node, changes: list[int]) -> None:
    """Find how fast what each group gets grows, from the root down."""
    for node in parent.children:
        node.granted_slope = node.want_slope
    _add_change(parent.demand_nano - parent.granted_nano, parent.demand_slope - parent.granted_slope, changes)
    if parent.hungry is not None:
        nodes, left, weights = parent.hungry
        left_slope = parent.granted_slope - sum(node.want_slope for node in parent.children)
        left_slope += sum(node.want_slope for node in nodes)
        for node in nodes:
            node.granted_slope = left_slope * node.group.weight // weights
        for node in parent.children:
            # It gets all it wants as long as that is no more than its weight's part of what is left to the hungry.
            over = node.want_nano * weights - left * node.group.weight
            _add_change(over, node.want_slope * weights - left_slope * node.group.weight, changes)
    for node in parent.children:
        if node.children:
            _granted_slopes(node, changes)


def _is_below(over: int, slope: int) -> bool:
    """Whether an amount is below a limit from now on."""
    return over < 0 or (over == 0 and slope < 0)


def _add_change(over: int, slope: int, changes: list[int]) -> None:
    """Note after how many microseconds an amount exceeds a limit, or no longer does."""
    if slope > 0 and over <= 0:
        changes.append(-over // slope + 1)
    elif slope < 0 and over > 0:
        changes.append(-(over // slope))
