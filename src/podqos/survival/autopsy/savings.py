"""What would have saved the victim of an OOM: the decision, or the check that led to it, made again with one change.

Where a pod or container reached its own limit, only that limit counts: a request, class or priority decides between
pods, and whoever of the pod had died instead is no better for it.

All holds for that moment: memory that keeps growing reaches every limit in the end.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from enum import StrEnum
from fractions import Fraction
from functools import cache

from msgspec import Struct
from msgspec.structs import replace

from podqos.admission.priority import SYSTEM_PRIORITIES
from podqos.kernel.oom import OOMCandidate, Process
from podqos.model.pod import SYSTEM_NODE_CRITICAL, Container, Pod, PodSpec, QOSClass
from podqos.model.quantity import Quantity
from podqos.model.resources import MEMORY, ResourceRequirements
from podqos.qos.cgroup_paths import CgroupLevel
from podqos.qos.classes import qos_class_of
from podqos.qos.oom import BEST_EFFORT_OOM_SCORE_ADJ, oom_scores
from podqos.survival.autopsy.causes import kubelet_available_bytes, race_at
from podqos.survival.autopsy.facts import MOST_BYTES, KilledNode, is_guaranteed
from podqos.survival.autopsy.inside import OWN_LIMIT
from podqos.survival.autopsy.shortage import OF_NO_USE, Shortage, ShortageKind
from podqos.survival.counterfactual.counterfactual import least
from podqos.survival.counterfactual.pod_changes import (
    holder_of,
    in_mebibytes,
    resources_of,
    with_headroom,
    with_request,
)
from podqos.survival.forecast.race import run_race, winning_threshold_bytes

_MIB, _GIB = 1 << 20, 1 << 30
_FEW_GIB, _MANY_GIB = 2, 8  # from there on a size, or another amount, is in whole gibibytes
_MANY_HUGE_PAGES = 20  # parts of the machine: fewer are not worth a change
_LEAST_USE_BYTES = _MIB
_LEAST_USE_SHARE = 100
_Change = Callable[[Process], Process]


class SavedBy(StrEnum):
    """What is changed, of the victim of an OOM or of an evicted pod."""

    USAGE = "usage"
    """The victim uses less."""
    REQUEST = "request"
    """It requests more memory, which lowers its oom_score_adj and what it uses beyond its request."""
    LIMIT = "limit"
    """The limit that was reached is higher."""
    CLASS = "class"
    """Its pod is Guaranteed: limits equal to requests, in memory and CPU."""
    PRIORITY = "priority"
    """Its pod has a higher one; to the kernel that counts only as system-node-critical, the score of Guaranteed."""
    THRESHOLD = "threshold"
    """The kubelet's eviction threshold is higher: it acts before the kernel has to."""
    HUGE_PAGES = "hugePages"
    """Less memory is set aside for huge pages, of which some are not used."""
    NODE_SIZE = "nodeSize"
    """The node has more memory."""


_ORDER = (
    SavedBy.REQUEST,
    SavedBy.CLASS,
    SavedBy.LIMIT,
    SavedBy.PRIORITY,
    SavedBy.USAGE,
    SavedBy.THRESHOLD,
    SavedBy.HUGE_PAGES,
    SavedBy.NODE_SIZE,
)


class Instead(Struct, frozen=True, rename="camel", gc=False):
    """The process that would have been killed in the victim's place."""

    pid: int
    name: str
    badness: int


class Saving(Struct, frozen=True, rename="camel", gc=False):
    """A change that saves the victim; with one page less of it the victim dies."""

    change: SavedBy
    more_bytes: int | None = None
    """How much more (of ``usage``: less). None for a class or priority, or where the node's size is not known."""
    amount_bytes: int | None = None
    """The least amount that saves it: the request, limit, threshold or machine, what the victim uses."""
    advised_bytes: int | None = None
    """The amount to set, with a margin; it was tried, too. None where there is none to set."""
    oom_score_adj: int | None = None
    """What the victim would have had, where that saves it."""
    qos_class: QOSClass | None = None
    """What its pod would have been, where that changes."""
    priority: int | None = None
    instead: Instead | None = None
    """Who would have died. None: no process, because memory would not have run out."""


class RepeatedKill:
    """The kernel's choice in one OOM, to be made again with a change to the victim and what belongs to it."""

    def __init__(
        self,
        candidates: Sequence[OOMCandidate],
        rate: Callable[[Process], OOMCandidate],
        chosen: int,
        own: Collection[int],
        lacking_pages: int,
    ) -> None:
        """Take the candidates in the order of the ranking, and what gives a process its badness.

        The kernel kills until ``lacking_pages`` are freed.
        """
        mine = {candidate.process.pid: candidate for candidate in candidates if candidate.process.pid in own}
        self.victim = mine[chosen].process
        self.used_pages = sum(candidate.used_pages for candidate in mine.values())
        self.rivals = [
            candidate
            for candidate in candidates
            if candidate.process.pid not in own and not candidate.process.is_exempt
        ]
        # Whatever changes, of the others with one score the first stays the first.
        others = [
            candidate.process
            for candidate in mine.values()
            if candidate.process.pid != chosen and not candidate.process.is_exempt
        ]
        firsts = {other.oom_score_adj: other for other in reversed(others)}
        self._own = [self.victim, *firsts.values()]
        self._rate = rate
        self._lacking_pages = lacking_pages

    def spares(self, change: _Change, less_pages: int = 0) -> bool:
        """Whether neither the victim nor what belongs to it dies; of equals they do."""
        lacking = self._lacking_pages - less_pages
        best = max(self._rate(change(process)).points for process in self._own)
        for rival in self.rivals:
            if lacking <= 0 or rival.points <= best:
                break
            lacking -= max(1, rival.process.rss_pages)
        return lacking <= 0

    def instead(self, less_pages: int = 0) -> Instead | None:
        """Return who dies first where the victim is spared."""
        if self._lacking_pages <= less_pages:
            return None
        first = self.rivals[0]
        return Instead(first.process.pid, first.process.name, first.points)


def own_of(
    node: KilledNode, processes: Sequence[Process], chosen: int | None, killed: Collection[int]
) -> frozenset[int]:
    """Return which processes belong to the victim, as far as the table shows: it does not say whose a process is.

    All of a container or pod that ran out; all that died with the victim; else those with the victim's score, which the
    request gives a Burstable container; scores that many share count only with the same name.
    """
    own = {pid for pid in (chosen, *killed) if pid is not None}
    victim = next((process for process in processes if process.pid == chosen), None)
    if victim is None:
        return frozenset(own)
    if not node.is_machine and node.ran_out.level in {CgroupLevel.CONTAINER, CgroupLevel.POD}:
        return frozenset(own | {process.pid for process in processes})
    is_telling = node.is_pods(victim.oom_score_adj) and 0 < victim.oom_score_adj < BEST_EFFORT_OOM_SCORE_ADJ - 1
    alike = (process for process in processes if process.oom_score_adj == victim.oom_score_adj)
    return frozenset(own | {process.pid for process in alike if is_telling or process.name == victim.name})


def is_shared(node: KilledNode) -> bool:
    """Whether what ran out is not one pod's or daemon's: only then another may die in the victim's place."""
    return node.is_machine or node.ran_out.level not in OWN_LIMIT


def savings_of(node: KilledNode, shortage: Shortage | None, decision: RepeatedKill | None) -> tuple[Saving, ...]:
    """Return what would have saved the victim: lines of its manifest, then less use, then another node.

    ``decision`` is None where the kernel's choice cannot be made again.
    """
    if node.ran_out.level is CgroupLevel.UNKNOWN:
        return ()
    if shortage is not None and shortage.kind is ShortageKind.SYSRQ:
        return ()  # nothing ran out: whoever asked for a kill gets one
    has_rivals = is_shared(node)
    found = [*_by_manifest(node, decision)] if has_rivals else []
    if has_rivals and (shortage is None or shortage.kind not in OF_NO_USE):
        found += _by_use(node, decision)
    if shortage is not None:
        found += [*_by_size(node, shortage), *_by_huge_pages(node, shortage), *_by_threshold(node, shortage)]
    return tuple(sorted(found, key=lambda saving: _ORDER.index(saving.change)))


def _avoidable_bytes(shortage: Shortage | None) -> int | None:
    """Return what more memory, or less use of it, avoids the OOM; None where it would not, or is not known."""
    if shortage is None or shortage.kind not in {ShortageKind.LIMIT, ShortageKind.WATERMARKS}:
        return None
    return shortage.lacking_bytes


def _by_use(node: KilledNode, decision: RepeatedKill | None) -> Iterator[Saving]:
    """Yield how much less the victim had to use, until another is chosen: others take what it leaves.

    Only what its owner could do something with: neither a few pages, which any other moment turns round, nor most of
    what it does.
    """
    if decision is None or not decision.rivals:
        return
    victim, size = decision.victim, node.page_bytes

    def lighter(pages: int) -> _Change:
        return lambda process: (
            replace(process, rss_pages=process.rss_pages - pages) if process.pid == victim.pid else process
        )

    least_pages = max(-(-_LEAST_USE_BYTES // size), victim.rss_pages // _LEAST_USE_SHARE)
    if decision.spares(lighter(min(victim.rss_pages, least_pages))):
        return
    pages = least(1, victim.rss_pages // 2, 1, lambda amount: decision.spares(lighter(amount)))
    if pages is not None:
        yield Saving(SavedBy.USAGE, pages * size, (victim.rss_pages - pages) * size, instead=decision.instead())


def _by_size(node: KilledNode, shortage: Shortage) -> Iterator[Saving]:
    """Yield the least limit, or size of the machine, at which the request succeeds, and one with a margin."""
    lacking = _avoidable_bytes(shortage)
    if lacking is None:
        return
    is_node = shortage.kind is ShortageKind.WATERMARKS or node.ran_out.level is CgroupLevel.KUBEPODS
    now = node.capacity_bytes if shortage.kind is ShortageKind.WATERMARKS else shortage.limit_bytes
    amount = None if now is None else now + lacking
    in_swap = shortage.swap_usage_bytes or 0 if shortage.kind is ShortageKind.WATERMARKS else 0
    advised = None if amount is None else with_margin(amount + in_swap, _FEW_GIB if is_node else _MANY_GIB)
    if advised is not None and now is not None and advised - now < lacking:
        advised = None
    if is_node and shortage.kind is not ShortageKind.WATERMARKS:
        # The limit of all pods is what the node has without its reservations.
        capacity = node.capacity_bytes
        amount = None if capacity is None else capacity + lacking
    yield Saving(SavedBy.NODE_SIZE if is_node else SavedBy.LIMIT, lacking, amount, advised)


def _by_huge_pages(node: KilledNode, shortage: Shortage) -> Iterator[Saving]:
    """Yield that unused huge pages are given back, where they are enough, and many."""
    lacking, unused = _avoidable_bytes(shortage), shortage.parts.free_huge_page_bytes or 0
    total, capacity = shortage.parts.huge_page_bytes or 0, node.capacity_bytes or 0
    if lacking is not None and unused >= max(lacking, capacity // _MANY_HUGE_PAGES, 1):
        yield Saving(SavedBy.HUGE_PAGES, lacking, total - lacking, total - unused)


def with_margin(least_bytes: int, many_gib: int = _MANY_GIB) -> int:
    """Return an amount that an operator would set: the least with some headroom, in whole mebibytes or gibibytes."""
    amount = min(MOST_BYTES, with_headroom(least_bytes))
    unit = _GIB if amount >= many_gib * _GIB else _MIB
    return -(-amount // unit) * unit


def _by_threshold(node: KilledNode, shortage: Shortage) -> Iterator[Saving]:
    """Yield the least threshold at which the kubelet always acts first, by how fast memory was used up."""
    available, growth = kubelet_available_bytes(node, shortage), node.facts.growth_bytes_per_second
    if available is None or growth is None:
        return
    threshold, capacity = node.threshold_bytes or 0, node.capacity_bytes
    needed = winning_threshold_bytes(race_at(available, threshold, growth))
    wins = run_race(race_at(available, needed, growth)).kubelet_first == Fraction(1)
    if wins and needed > threshold and (capacity is None or needed < capacity):
        yield Saving(SavedBy.THRESHOLD, needed - threshold, needed, in_mebibytes(needed).value)


def _by_manifest(node: KilledNode, decision: RepeatedKill | None) -> Iterator[Saving]:
    """Yield changes of the victim's manifest that give it another score."""
    if decision is None:
        return
    victim = decision.victim
    is_pods = bool(node.victim.pod_uid) or node.is_pods(victim.oom_score_adj)
    if not is_pods or is_guaranteed(node, victim.oom_score_adj):
        return

    def scored(value: int) -> _Change:
        return lambda process: (
            replace(process, oom_score_adj=value) if process.oom_score_adj == victim.oom_score_adj else process
        )

    yield from _by_request(node, decision, scored)
    lowest = node.facts.profile.guaranteed_oom_score_adj
    if decision.spares(scored(lowest)):
        amount = min(MOST_BYTES, with_headroom(decision.used_pages * node.page_bytes))
        yield Saving(
            SavedBy.CLASS,
            None,
            amount,
            in_mebibytes(amount).value,
            lowest,
            QOSClass.GUARANTEED,
            instead=decision.instead(),
        )
    pod = node.pod if node.pod is not None and node.pod.spec.containers else _sketched(None)
    priority = SYSTEM_PRIORITIES[SYSTEM_NODE_CRITICAL]
    spec = replace(pod.spec, priority_class_name=SYSTEM_NODE_CRITICAL, priority=priority)
    critical = _score(node, replace(pod, spec=spec), pod.spec.containers[0].name, 1)
    if node.facts.profile.lowest_score_for != "nobody" and decision.spares(scored(critical)):
        yield Saving(SavedBy.PRIORITY, oom_score_adj=critical, priority=priority, instead=decision.instead())


def _by_request(node: KilledNode, decision: RepeatedKill, scored: Callable[[int], _Change]) -> Iterator[Saving]:
    """Yield the least request with which another dies; where the node's size is not known, the score it has to give."""
    profile, capacity, adj = node.facts.profile, node.capacity_bytes, decision.victim.oom_score_adj
    burstable = QOSClass.BURSTABLE if node.victim.qos_class is QOSClass.BEST_EFFORT else None
    if capacity is None:
        floor = 1000 + profile.guaranteed_oom_score_adj
        lower = least(1, adj - floor, 1, lambda by: decision.spares(scored(adj - by)))
        if lower is not None:
            score = adj - lower
            yield Saving(SavedBy.REQUEST, None, None, None, score, burstable, instead=decision.instead())
        return
    pod, container = _container(node, adj, capacity)
    holder = holder_of(pod, container, MEMORY, profile)
    stated = resources_of(pod, holder)
    request, limit = stated.requests.get(MEMORY), stated.limits.get(MEMORY)
    now = 0 if request is None else request.value

    def score_of(amount: int) -> int:
        return _score(node, with_request(pod, holder, MEMORY, amount), container, capacity)

    @cache
    def spares(score: int) -> bool:
        return decision.spares(scored(score))

    most = capacity if limit is None else limit.value
    amount = least(now + 1, most, node.page_bytes, lambda amount: spares(score_of(amount)))
    if amount is not None:
        advised = min(most, with_margin(amount))
        spared = spares(score_of(advised))
        yield Saving(
            SavedBy.REQUEST,
            amount - now,
            amount,
            advised if spared else None,
            score_of(amount),
            burstable,
            instead=decision.instead(),
        )


def _score(node: KilledNode, pod: Pod, container: str, capacity_bytes: int) -> int:
    """Return the score that the kubelet gives a container."""
    profile = node.facts.profile
    scores = oom_scores(pod, qos_class_of(pod, profile), capacity_bytes, profile)
    return next(score.value for score in scores if score.container == container)


def _container(node: KilledNode, oom_score_adj: int, capacity_bytes: int) -> tuple[Pod, str]:
    """Return the victim's pod and the container that has its score, or one made up from what the score says."""
    pod, profile = node.pod, node.facts.profile
    if pod is not None:
        for oom_score in oom_scores(pod, qos_class_of(pod, profile), capacity_bytes, profile):
            if oom_score.value == oom_score_adj:
                return pod, oom_score.container
    # The largest request that gives this score: whatever it was, more than this lowers it.
    largest = -(-capacity_bytes * (1001 - oom_score_adj) // 1000) - 1
    sketched = _sketched(None if oom_score_adj >= BEST_EFFORT_OOM_SCORE_ADJ else largest)
    return sketched, sketched.spec.containers[0].name


def _sketched(request_bytes: int | None) -> Pod:
    requests = {} if request_bytes is None else {MEMORY: Quantity.of_units(request_bytes, "BinarySI")}
    return Pod(spec=PodSpec(containers=(Container(name="main", resources=ResourceRequirements(requests=requests)),)))
