"""Both kill orders of a node's pods side by side: the kubelet's evictions and the kernel's kills.

The two often disagree about the same pods. The kubelet compares usage over request and priority; the kernel knows
neither requests nor priorities, only pages and ``oom_score_adj``. Each place comes with the numbers that decided it and
with what puts it before the next. Nothing is decided here: ``eviction.ranking`` and ``kernel.oom`` do that.

Both orders are of this moment. After the first eviction or kill the figures differ.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterator, Sequence
from enum import StrEnum
from itertools import pairwise

from msgspec import Struct
from msgspec.structs import replace

from podqos.eviction.ranking import RankedPod, Ranking, Spared, rank, ranking_keys
from podqos.eviction.signals import RankKey
from podqos.kernel.build import PAGE_BYTES
from podqos.kernel.oom import OOMCandidate, badness, shown_oom_score
from podqos.kernel.oom import rank as rank_processes
from podqos.model.pod import Pod, QOSClass
from podqos.model.snapshot import ContainerUsage, Snapshot
from podqos.orders.memory import ContainerProcesses, OOMDomain, container_processes
from podqos.qos.cgroup_settings import CgroupSettings
from podqos.qos.oom import OOMScore


class KillKey(StrEnum):
    """Why the kernel kills one process before another."""

    MEMORY = "more memory"
    """It outweighs an adjustment that is equal or lower."""
    ADJUSTMENT = "higher oom_score_adj"
    """It outweighs memory that is equal or less."""
    BOTH = "more memory and higher oom_score_adj"
    SCANNED_LATER = "scanned later"
    """Equal badness: the kernel keeps the last it has seen."""


class KilledContainer(Struct, frozen=True, gc=False):
    """A container in the kernel's order, by the worst of its processes."""

    pod: Pod
    qos_class: QOSClass
    usage: ContainerUsage
    score: OOMScore
    worst: OOMCandidate
    before_next_by: KillKey | None = None
    margin_bytes: int | None = None
    """How much more the next one would have to hold to be killed first; None for the last."""

    def shown_score(self, machine_bytes: int) -> int:
        """Return what ``/proc/PID/oom_score`` shows for that process.

        That is always of the machine's RAM and swap, also where it is a cgroup that runs out of memory.
        """
        total_pages = machine_bytes // PAGE_BYTES
        return shown_oom_score(badness(self.worst.process, total_pages), total_pages)


class EvictionPlace(Struct, frozen=True, rename="camel"):
    """A pod in the kubelet's order, as it is published."""

    place: int
    pod: str
    qos_class: QOSClass
    priority: int
    usage: int | None
    """Bytes, inodes or processes; null without statistics."""
    request: int
    excess: int | None
    """usage − request."""
    over_request: bool
    spared: str | None
    """Why it is skipped: ``critical``, or ``guaranteed`` under qos-tiers and a soft threshold."""
    kernel_place: int | None
    """Null for a pod none of whose containers runs: there is no process to kill."""
    before_next_by: RankKey | None
    reason: str
    """Why it stands before the next."""
    workload: str = ""
    """The pods of one manifest have the same: kind and ``namespace/name``; empty for a pod of its own."""


class KillPlace(Struct, frozen=True, rename="camel"):
    """A container in the kernel's order, by its worst process, as it is published."""

    place: int
    pod: str
    container: str
    qos_class: QOSClass
    is_measured: bool
    processes: int
    used_bytes: int
    """Of the worst process."""
    oom_score_adj: int
    oom_reason: str
    badness_bytes: int
    oom_score: int
    """What ``/proc/PID/oom_score`` shows."""
    eviction_place: int
    before_next_by: KillKey | None
    margin_bytes: int | None
    """How much more the next would have to use to be killed first."""
    reason: str
    """Why it stands before the next."""
    share_points: float
    """The memory of the worst process in the kernel's thousandths of what ran out."""
    points: float
    """``sharePoints`` and ``oomScoreAdj`` together: the badness in those thousandths."""


class Disagreement(Struct, frozen=True, gc=False, rename="camel"):
    """Two pods that kubelet and kernel kill in opposite orders, neither of them by a tie-break.

    Of many such pairs only neighbours in the kubelet's order are listed, with pods that it cannot distinguish in the
    kernel's order, and those it never evicts at the end.
    """

    evicted_first: str
    killed_first: str
    killed_by: KillKey
    """What puts the other first for the kernel."""
    evicted_by: RankKey | None
    """What puts the one first for the kubelet; None where it would never evict the other."""
    spared: Spared | None
    """Why it would not."""


class Orders(Struct, frozen=True, gc=False):
    """Both orders. A pod's place is its index; one without a process is in the kubelet's only."""

    ranking: Ranking
    domain: OOMDomain
    eviction: tuple[RankedPod, ...]
    kernel: tuple[KilledContainer, ...]
    """Containers; a pod's place is that of its first."""
    kernel_pods: tuple[Pod, ...]
    disagreements: tuple[Disagreement, ...]
    """All reversed pairs; of more than a screenful, those of neighbours. Empty exactly if nothing is reversed."""
    reversed_pairs: int
    """How many pairs of pods, neighbours or not, are reversed."""


_FirstKilled = dict[str, KilledContainer]
"""By uid, the first container of each pod that the kernel takes; in its order."""


def both_orders(
    snapshot: Snapshot, ranking: Ranking, settings: CgroupSettings, domain: OOMDomain | None = None
) -> Orders:
    """Rank a node's pods in both orders. Without a ``domain`` the whole machine runs out of memory."""
    if domain is None:
        domain = OOMDomain(snapshot.node.memory_bytes + snapshot.node.swap_bytes)
    eviction = rank([entry.pod for entry in snapshot.pods], snapshot.stats, ranking)
    kernel = kernel_order(container_processes(snapshot, settings, ranking.profile), domain)
    first: _FirstKilled = {}
    for killed in kernel:
        first.setdefault(killed.pod.metadata.uid, killed)
    compared = _compared(ranking_keys(ranking), eviction, first)
    reversed_pairs = _reversed_pairs([each.killed.worst.points for each in compared])
    return Orders(
        ranking=ranking,
        domain=domain,
        eviction=eviction,
        kernel=kernel,
        kernel_pods=tuple(killed.pod for killed in first.values()),
        disagreements=tuple(_disagreements(compared, ranking_keys(ranking), reversed_pairs)),
        reversed_pairs=reversed_pairs,
    )


def kernel_order(containers: Sequence[ContainerProcesses], domain: OOMDomain) -> tuple[KilledContainer, ...]:
    """Return the containers in the order in which the kernel would kill them, each by its worst process."""
    total_pages = domain.total_bytes // PAGE_BYTES
    owners = {process.pid: index for index, container in enumerate(containers) for process in container.processes}
    worst: dict[int, OOMCandidate] = {}
    processes = (process for container in containers for process in container.processes)
    for candidate in rank_processes(processes, total_pages, domain.path):
        worst.setdefault(owners[candidate.process.pid], candidate)
    killed = [_killed(containers[index], candidate) for index, candidate in worst.items()]
    return (*(_before(one, other) for one, other in pairwise(killed)), *killed[-1:])


def _killed(container: ContainerProcesses, worst: OOMCandidate) -> KilledContainer:
    return KilledContainer(
        pod=container.pod.pod,
        qos_class=container.qos_class,
        usage=container.usage,
        score=container.score,
        worst=worst,
    )


def _before(one: KilledContainer, other: KilledContainer) -> KilledContainer:
    """Return the one, with what puts it before the other."""
    margin_bytes = (one.worst.points - other.worst.points) * PAGE_BYTES
    return replace(one, before_next_by=killed_by(one.worst, other.worst), margin_bytes=margin_bytes)


def killed_by(one: OOMCandidate, other: OOMCandidate) -> KillKey:
    """Return why the kernel kills the one, of at least the same badness, before the other."""
    assert one.points >= other.points
    if one.points == other.points:
        return KillKey.SCANNED_LATER
    if one.used_pages > other.used_pages:
        return KillKey.BOTH if one.adjustment_pages > other.adjustment_pages else KillKey.MEMORY
    return KillKey.ADJUSTMENT


class _Compared(Struct, frozen=True, gc=False):
    """A pod as both see it."""

    ranked: RankedPod
    killed: KilledContainer
    after_last_by: RankKey | None
    """What puts the last distinguishable pod before it; None for the first, and for spared pods."""
    group: int
    """Pods of one group are the same to the kubelet."""


MOST_LISTED_PAIRS = 20
"""Of more reversed pairs only those of neighbours are listed."""
# Tie-breaks.
_NO_DIFFERENCE = (RankKey.NAME, RankKey.INPUT_ORDER)


def _compared(orders_by: Sequence[RankKey], eviction: Sequence[RankedPod], first: _FirstKilled) -> list[_Compared]:
    """Return the pods of both orders in the kubelet's: indistinguishable ones in the kernel's, spared ones last."""
    in_order = (*orders_by, RankKey.INPUT_ORDER)
    groups: list[tuple[RankKey | None, list[RankedPod]]] = [(None, [])]
    differs_by = len(in_order) - 1
    for ranked in eviction:
        if ranked.spared is None and ranked.pod.metadata.uid in first:
            if groups[-1][1] and in_order[differs_by] not in _NO_DIFFERENCE:
                groups.append((in_order[differs_by], []))
            groups[-1][1].append(ranked)
            differs_by = len(in_order) - 1
        if ranked.before_next_by is not None:
            # Two pods differ first in what comes first of all the differences between them.
            differs_by = min(differs_by, in_order.index(ranked.before_next_by))
    spared = [
        ranked_pod for ranked_pod in eviction if ranked_pod.spared is not None and ranked_pod.pod.metadata.uid in first
    ]
    groups.append((None, spared))
    return [
        _Compared(ranked, first[ranked.pod.metadata.uid], key, number)
        for number, (key, group) in enumerate(groups)
        for ranked in sorted(group, key=lambda ranked: -first[ranked.pod.metadata.uid].worst.points)
    ]


def _disagreements(
    compared: Sequence[_Compared], orders_by: Sequence[RankKey], reversed_pairs: int
) -> Iterator[Disagreement]:
    for first, one in enumerate(compared) if reversed_pairs else ():
        last = len(compared) if reversed_pairs <= MOST_LISTED_PAIRS else first + 2
        keys: set[RankKey] = set()
        for other in compared[first + 1 : last]:
            if other.group != one.group and other.after_last_by is not None:
                keys.add(other.after_last_by)
            if one.killed.worst.points < other.killed.worst.points:
                yield Disagreement(
                    evicted_first=one.ranked.pod.key,
                    killed_first=other.ranked.pod.key,
                    killed_by=killed_by(other.killed.worst, one.killed.worst),
                    # Two pods differ first in what comes first of all the differences between them.
                    evicted_by=None if other.ranked.spared is not None else min(keys, key=orders_by.index),
                    spared=other.ranked.spared,
                )


def _reversed_pairs(points: Sequence[int]) -> int:
    """Count the pairs of which the later number is the larger one."""
    seen: list[int] = []
    count = 0
    for point in points:
        count += bisect_left(seen, point)
        insort(seen, point)
    return count
