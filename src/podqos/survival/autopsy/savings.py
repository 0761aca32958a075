"""What would have saved the victim of an OOM: the decision, or the check that led to it, made again with one change.

Where a pod or container reached its own limit, only that limit counts: a request, class or priority decides between
pods, and whoever of the pod had died instead is no better for it.

All holds for that moment: memory that keeps growing reaches every limit in the end.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from enum import StrEnum
from fractions import Fraction
from functools import lru_cache, partial
from itertools import accumulate

from msgspec import Struct

from podqos.admission.priority import SYSTEM_PRIORITIES
from podqos.kernel.oom import badness_in
from podqos.model.pod import SYSTEM_NODE_CRITICAL, Container, Pod, PodSpec, QOSClass
from podqos.model.profile import Profile
from podqos.model.resources import MEMORY
from podqos.qos.cgroup_paths import CgroupLevel
from podqos.qos.classes import qos_class_of
from podqos.qos.oom import BEST_EFFORT_OOM_SCORE_ADJ, burstable_oom_score_adj, oom_scores
from podqos.survival.autopsy.candidates import Candidates
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
_CRITICAL = SYSTEM_PRIORITIES[SYSTEM_NODE_CRITICAL]
_FEW_GIB, _MANY_GIB = 2, 8  # from there on a size, or another amount, is in whole gibibytes
_MANY_HUGE_PAGES = 20  # parts of the machine: fewer are not worth a change
_LEAST_USE_BYTES = _MIB
_LEAST_USE_SHARE = 100


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

    def __init__(self, candidates: Candidates, chosen: int, own: Collection[int], lacking_pages: int) -> None:
        """Take the places of the victim and of what belongs to it. The kernel kills until enough pages are freed."""
        scores, used, points = candidates.scores, candidates.used_pages, candidates.points
        rivals = [place for place in candidates.killable if place not in own]
        freed = accumulate(max(1, candidates.rss_pages[place]) for place in rivals)
        last = next((place for place, pages in zip(rivals, freed, strict=True) if pages >= lacking_pages), None)
        self._least_points = None if last is None else points[last]
        """Of the last that would have died instead; None: there are not enough of them."""
        self.excess_points = 0 if last is None else points[chosen] - points[last] + 1
        """By how much the victim's badness has to be less, where no other process of its own is in the way."""
        self.points_per_score = candidates.total_pages // 1000
        self.instead = None
        """Who dies first where the victim is spared."""
        if rivals:
            first = candidates.tasks[rivals[0]]
            self.instead = Instead(first.pid, first.name, points[rivals[0]])
        self.victim = candidates.tasks[chosen]
        self.used_pages = sum([used[place] for place in own])
        # Whatever changes, of the others with one score the first stays the first.
        others = [place for place in candidates.killable if place in own and place != chosen]
        own_places = [chosen, *{scores[place]: place for place in reversed(others)}.values()]
        self._used = [used[place] for place in own_places]
        self._scores = [scores[place] for place in own_places]
        self._privileged = [candidates.privileged[place] for place in own_places]
        self._badness = partial(badness_in, candidates.release, candidates.total_pages)

    def spares(self, *, less_pages: int = 0, oom_score_adj: int | None = None) -> bool:
        """Whether neither the victim nor what belongs to it dies; of equals they do.

        The victim uses so much less, and whoever has its score has that one.
        """
        used, scores = [self._used[0] - less_pages, *self._used[1:]], self._scores
        if oom_score_adj is not None:
            scores = [oom_score_adj if score == self.victim.oom_score_adj else score for score in scores]
        least = self._least_points
        return least is not None and max(self._badness(used, scores, self._privileged)) < least


def own_of(node: KilledNode, candidates: Candidates) -> Collection[int]:
    """Return the places of what belongs to the victim, as far as the table shows: it does not say whose a process is.

    All of a container or pod that ran out; all that died with the victim; else those with the victim's score, which the
    request gives a Burstable container; scores that many share count only with the same name.
    """
    chosen, report = candidates.chosen, node.report
    killed = report.victims if report.group is not None else ()
    own = {place for pid in (report.chosen, *killed) if (place := candidates.place(pid)) is not None}
    if chosen is None:
        return own
    if not node.is_machine and node.ran_out.level in (CgroupLevel.CONTAINER, CgroupLevel.POD):
        return range(len(candidates.tasks))
    score, name = candidates.scores[chosen], candidates.tasks[chosen].name
    alike = {place for place, each in enumerate(candidates.scores) if each == score}
    if not (node.is_pods(score) and 0 < score < BEST_EFFORT_OOM_SCORE_ADJ - 1):
        alike = {place for place in alike if candidates.tasks[place].name == name}
    return own | alike


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
    if shortage is None or shortage.kind not in (ShortageKind.LIMIT, ShortageKind.WATERMARKS):
        return None
    return shortage.lacking_bytes


def _by_use(node: KilledNode, decision: RepeatedKill | None) -> Iterator[Saving]:
    """Yield how much less the victim had to use, until another is chosen: others take what it leaves.

    Only what its owner could do something with: neither a few pages, which any other moment turns round, nor most of
    what it does.
    """
    if decision is None:
        return
    rss, size = decision.victim.rss_pages, node.page_bytes
    least_pages = max(-(-_LEAST_USE_BYTES // size), rss // _LEAST_USE_SHARE)
    if decision.spares(less_pages=min(rss, least_pages)):
        return
    pages = least(1, rss // 2, 1, lambda pages: decision.spares(less_pages=pages), decision.excess_points)
    if pages is not None:
        yield Saving(SavedBy.USAGE, pages * size, (rss - pages) * size, instead=decision.instead)


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
    growth = node.facts.growth_bytes_per_second
    available = None if growth is None else kubelet_available_bytes(node, shortage)
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

    yield from _by_request(node, decision)
    lowest = node.facts.profile.guaranteed_oom_score_adj
    if decision.spares(oom_score_adj=lowest):
        amount = min(MOST_BYTES, with_headroom(decision.used_pages * node.page_bytes))
        yield Saving(
            SavedBy.CLASS,
            None,
            amount,
            in_mebibytes(amount).value,
            lowest,
            QOSClass.GUARANTEED,
            instead=decision.instead,
        )
    critical = _critical_score(node.facts.profile)
    if critical is not None and decision.spares(oom_score_adj=critical):
        yield Saving(SavedBy.PRIORITY, oom_score_adj=critical, priority=_CRITICAL, instead=decision.instead)


@lru_cache(maxsize=8)
def _critical_score(profile: Profile) -> int | None:
    """Return the score that system-node-critical gives the containers of any pod; None: it gives none."""
    if profile.lowest_score_for == "nobody":
        return None
    containers = (Container(name="main"),)
    pod = Pod(spec=PodSpec(containers=containers, priority_class_name=SYSTEM_NODE_CRITICAL, priority=_CRITICAL))
    return oom_scores(pod, QOSClass.BURSTABLE, 1, profile)[0].value


def _by_request(node: KilledNode, decision: RepeatedKill) -> Iterator[Saving]:
    """Yield the least request with which another dies; where the node's size is not known, the score it has to give."""
    profile, capacity, adj = node.facts.profile, node.capacity_bytes, decision.victim.oom_score_adj
    burstable = QOSClass.BURSTABLE if node.victim.qos_class is QOSClass.BEST_EFFORT else None
    floor = 1000 + profile.guaranteed_oom_score_adj
    likely = -(-decision.excess_points // max(1, decision.points_per_score))
    lower = least(1, adj - floor, 1, lambda by: decision.spares(oom_score_adj=adj - by), likely)
    if capacity is None:
        if lower is not None:
            score = adj - lower
            yield Saving(SavedBy.REQUEST, None, None, None, score, burstable, instead=decision.instead)
        return
    known = _container(node, adj, capacity)
    if known is None:
        # The largest request that gives this score: whatever it was, more than this lowers it.
        now = 0 if adj >= BEST_EFFORT_OOM_SCORE_ADJ else -(-capacity * (1001 - adj) // 1000) - 1
        most = capacity
    else:
        pod, container = known
        holder = holder_of(pod, container, MEMORY, profile)
        stated = resources_of(pod, holder)
        request, limit = stated.requests.get(MEMORY), stated.limits.get(MEMORY)
        now = 0 if request is None else request.value
        most = capacity if limit is None else limit.value

    def score_of(amount: int) -> int:
        if known is None:
            return burstable_oom_score_adj(amount, capacity, profile)
        return _score(node, with_request(pod, holder, MEMORY, amount), container, capacity)

    def spares(amount: int) -> bool:
        return decision.spares(oom_score_adj=score_of(amount))

    # What gives a container of its own the highest score with which it is spared.
    enough = None if lower is None else node.request_bytes(adj - lower, capacity)
    amount = least(now + 1, most, node.page_bytes, spares, enough)
    if amount is not None:
        advised = min(most, with_margin(amount))
        yield Saving(
            SavedBy.REQUEST,
            amount - now,
            amount,
            advised if spares(advised) else None,
            score_of(amount),
            burstable,
            instead=decision.instead,
        )


def _score(node: KilledNode, pod: Pod, container: str, capacity_bytes: int) -> int:
    """Return the score that the kubelet gives a container."""
    profile = node.facts.profile
    scores = oom_scores(pod, qos_class_of(pod, profile), capacity_bytes, profile)
    return next(score.value for score in scores if score.container == container)


def _container(node: KilledNode, oom_score_adj: int, capacity_bytes: int) -> tuple[Pod, str] | None:
    """Return the victim's pod and the container that has its score; None where that is not known."""
    pod, profile = node.pod, node.facts.profile
    if pod is not None:
        for oom_score in oom_scores(pod, qos_class_of(pod, profile), capacity_bytes, profile):
            if oom_score.value == oom_score_adj:
                return pod, oom_score.container
    return None
