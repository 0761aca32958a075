"""What was behind an OOM, and what would have saved its victim, by the figures of the kernel's report.

Nothing here is a formula of its own. What would have saved the victim is *tried*: the kernel's decision, or the check
that led to it, is made again with one change. Where a pod or container reached its own limit only that limit counts:
requests, class and priority decide between pods, and whoever of the pod had died instead is no better for it.

All holds for that moment: memory that keeps growing reaches every limit in the end.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from fractions import Fraction
from functools import lru_cache, partial
from itertools import accumulate

from podqos.admission.priority import SYSTEM_PRIORITIES
from podqos.kernel.oom import badness_in
from podqos.logs.report import OOMReport, Origin, Task
from podqos.model.pod import SYSTEM_NODE_CRITICAL, Container, Pod, PodSpec, QOSClass
from podqos.model.profile import Profile
from podqos.model.resources import MEMORY
from podqos.orders.counterfactual import holder_of, in_mebibytes, least, resources_of, with_headroom, with_request
from podqos.orders.race import Race, run_race, winning_growth_bytes_per_second, winning_threshold_bytes
from podqos.qos.cgroup_paths import CgroupLevel
from podqos.qos.classes import qos_class_of
from podqos.qos.oom import BEST_EFFORT_OOM_SCORE_ADJ, burstable_oom_score_adj, oom_scores
from podqos.questions.autopsy_death import (
    MOST_BYTES,
    Cause,
    DeathCause,
    DeathSaving,
    Inside,
    Process,
    SavedBy,
    Shortage,
    ShortageKind,
)
from podqos.questions.autopsy_memory import OF_NO_USE, OWN_LIMIT, Candidates, KilledNode

_SHARE = 4  # what holds a quarter or more of the memory is named as a cause
_LEAST_SHARE = 100  # what holds less than a hundredth is not a cause
_BY_USE = (ShortageKind.LIMIT, ShortageKind.WATERMARKS, ShortageKind.NODES)
"""Kinds for which it matters who uses how much."""
_ORIGINS = {Origin.SWAPOFF: Cause.SWAPOFF, Origin.KSM: Cause.KSM_OFF}


def chosen_name(report: OOMReport) -> str:
    """Return the name of the process that was chosen, by the line that says so, the table, or its kill."""
    pid = report.chosen or 0
    task, victim = report.tasks.get(pid), report.victims.get(pid)
    return report.chosen_name or (task.name if task else victim.name if victim else "")


def origin_of(report: OOMReport) -> Origin | None:
    """Return what the chosen process did for which it is killed first: by its name, or by how it asked for memory."""
    if chosen_name(report) == Origin.SWAPOFF:
        return Origin.SWAPOFF
    return report.circumstances.origin if report.chosen == report.trigger_pid is not None else None


# ---- causes ----------------------------------------------------------------------------------------------------------


def causes_of(
    node: KilledNode, shortage: Shortage | None, candidates: Candidates, own: Collection[int]
) -> Iterator[DeathCause]:
    """Yield what was behind an OOM, the main cause first. ``own`` are the victim and what belongs to it."""
    level = node.ran_out.level
    if level is CgroupLevel.UNKNOWN:
        return
    if shortage is not None and shortage.kind in OF_NO_USE:
        free = shortage.free_elsewhere_bytes or shortage.usage_bytes
        yield DeathCause(Cause.ELSEWHERE, held_bytes=free, against_bytes=shortage.lacking_bytes)
    if origin := origin_of(node.report):
        yield DeathCause(_ORIGINS[origin], pid=node.report.chosen, name=chosen_name(node.report))
    parts = [] if shortage is None else list(_part_causes(node, shortage))
    yield from (cause for is_main, cause in parts if is_main)
    if not node.is_machine and level in OWN_LIMIT:
        if shortage is None and level is not CgroupLevel.CGROUP:
            yield DeathCause(Cause.OWN_LIMIT)  # which the report names, and no figure of it
        elif shortage is not None and shortage.kind is ShortageKind.LIMIT:
            # The kubelet can enforce a reservation as the limit of a cgroup beside pods.
            is_reserved = level is CgroupLevel.SYSTEM and shortage.limit_bytes in (node.reservations or ())
            cause = Cause.SYSTEM_DAEMONS if is_reserved else Cause.OWN_LIMIT
            yield DeathCause(cause, held_bytes=shortage.usage_bytes, against_bytes=shortage.limit_bytes)
    elif origin is None and (shortage is None or shortage.kind in _BY_USE):
        yield from _owner_causes(node, candidates, own)
    yield from (cause for is_main, cause in parts if not is_main)
    if shortage is not None:
        yield from _race_cause(node, shortage)


def _part_causes(node: KilledNode, shortage: Shortage) -> Iterator[tuple[bool, DeathCause]]:
    """Yield what else than processes holds a quarter or more; the largest is a main cause if no more is theirs."""
    parts = shortage.parts
    total = shortage.limit_bytes if shortage.kind is ShortageKind.LIMIT else node.capacity_bytes
    if shortage.kind in OF_NO_USE or parts.anon_bytes is None or total is None:
        return
    unlisted, report = 0, node.report
    if node.is_machine and not node.is_constrained and not report.is_cut and report.tasks:
        # The table of the machine has all that live.
        listed = sum(task.rss_pages for task in report.tasks.values()) * node.page_bytes
        unlisted = max(0, parts.anon_bytes - listed)
    held = (
        (Cause.TMPFS, parts.shmem_bytes or 0, None),
        (Cause.KERNEL_MEMORY, parts.kernel_bytes or 0, None),
        (Cause.PAGE_CACHE, parts.file_bytes or 0, parts.dirty_bytes),
        (Cause.HUGE_PAGES, parts.huge_page_bytes or 0, parts.free_huge_page_bytes),
        (Cause.UNLISTED, unlisted, None),
        (Cause.UNACCOUNTED, parts.other_bytes or 0, None),
    )
    large = sorted((each for each in held if each[1] * _SHARE >= total), key=lambda each: -each[1])
    for cause, amount, unused in large:
        volumes: tuple[str, ...] = ()
        if cause is Cause.TMPFS and node.pod is not None:
            volumes = tuple(volume.name for volume in node.pod.spec.volumes if volume.is_in_memory)
        named = DeathCause(cause, held_bytes=amount, against_bytes=total, unused_bytes=unused, volumes=volumes)
        yield amount == large[0][1] > parts.anon_bytes - unlisted, named


def _owner_causes(node: KilledNode, candidates: Candidates, own: Collection[int]) -> Iterator[DeathCause]:
    """Yield which process is furthest above its request; those that no pod has are measured by the reservation."""
    capacity, counter = node.capacity_bytes, node.report.counters.get("memory")
    limit = None if counter is None or counter.limit_kb is None else counter.limit_kb * 1024
    basis = capacity or limit
    if basis is None or node.report.is_cut or not candidates.tasks:
        return
    if not node.is_kubernetes:
        yield from _program_cause(node, candidates, own, basis)
        return
    scores, rss, size = candidates.scores, candidates.rss_pages, node.page_bytes
    # Many processes share a score: of those the largest is furthest above its request.
    largest_of: dict[int, int] = {}
    for score, pages in zip(scores, rss, strict=True):
        largest_of[score] = max(pages, largest_of.get(score, 0))
    of_pods = {score for score in largest_of if node.is_pods(score)}
    others = [pages for pages, score in zip(rss, scores, strict=True) if score not in of_pods]
    beside = min(MOST_BYTES, sum(others) * size)
    requests = {score: request for score in of_pods if (request := node.request_bytes(score, basis)) is not None}
    above = {score: largest_of[score] * size - request for score, request in requests.items()}
    most = max(above.values(), default=0)
    furthest = [
        place
        for place in candidates.ranking
        if above.get(scores[place]) == most and rss[place] == largest_of[scores[place]]
    ]
    furthest = [place for place in furthest if place in own] or furthest
    reserved = None if node.reservations is None else sum(node.reservations)
    is_beside = beside > max(most, basis // _SHARE) if reserved is None else beside - reserved > max(0, most)
    if is_beside:
        yield DeathCause(Cause.SYSTEM_DAEMONS, held_bytes=beside, against_bytes=reserved)
    asked = candidates.place(node.report.trigger_pid)
    victim_pages = max([rss[place] for place in own], default=0)
    bursts = [asked] if asked is not None and rss[asked] > victim_pages else []
    found = [
        (place, requests[scores[place]])
        for place in dict.fromkeys([*bursts, *furthest[:1]])
        if requests.get(scores[place], MOST_BYTES) < rss[place] * size and rss[place] * size * _LEAST_SHARE >= basis
    ]
    for place, request in found:
        stated = None if capacity is None else request
        yield _use(node, candidates.tasks[place], stated, is_own=place in own, is_above=True)
    if not found and not is_beside:
        # None is above its request: they request more than there is.
        largest = max(candidates.ranking, key=rss.__getitem__)
        if rss[largest] * size * _LEAST_SHARE >= basis:
            yield _use(node, candidates.tasks[largest], is_own=largest in own)


def _use(
    node: KilledNode, task: Task, request_bytes: int | None = None, *, is_own: bool, is_above: bool = False
) -> DeathCause:
    return DeathCause(
        Cause.OWN_USE if is_own else Cause.NEIGHBOUR,
        held_bytes=task.rss_pages * node.page_bytes,
        against_bytes=request_bytes,
        pid=task.pid,
        name=task.name,
        request_thousandths=1000 - task.oom_score_adj if is_above else None,
    )


def _program_cause(
    node: KilledNode, candidates: Candidates, own: Collection[int], basis_bytes: int
) -> Iterator[DeathCause]:
    """Yield the program that uses most, all its processes together, where that is enough to be a cause."""
    members: dict[str, list[int]] = {}
    for place in candidates.ranking:
        members.setdefault(candidates.tasks[place].name, []).append(place)
    used = {name: sum(candidates.rss_pages[place] for place in places) for name, places in members.items()}
    name = max(used, key=used.__getitem__)
    held = min(MOST_BYTES, used[name] * node.page_bytes)
    if held * _LEAST_SHARE < basis_bytes:
        return
    largest = max(members[name], key=candidates.rss_pages.__getitem__)
    cause = Cause.OWN_USE if any(place in own for place in members[name]) else Cause.NEIGHBOUR
    pid, processes = candidates.pids[largest], len(members[name])
    yield DeathCause(cause, held_bytes=held, pid=pid, name=name, processes=processes)


def _kubelet_available(node: KilledNode, shortage: Shortage) -> int | None:
    """Return what the kubelet counted as free when the kernel had nothing left; None where that is not the question.

    It subtracts what is used without inactive file pages: from the machine's memory, or from the limit of all pods.
    """
    inactive = shortage.parts.inactive_file_bytes
    if not node.is_kubernetes or inactive is None or shortage.kind in OF_NO_USE:
        return None
    if shortage.kind is not ShortageKind.LIMIT:
        return node.free_bytes + inactive
    is_of_pods = node.ran_out.level is CgroupLevel.KUBEPODS
    return shortage.limit_bytes - shortage.usage_bytes + inactive if is_of_pods else None


def _race_at(available_bytes: int, threshold_bytes: int, growth_bytes_per_second: int) -> Race:
    """Return the race between kubelet and kernel that ends in the report, begun early enough."""
    start = threshold_bytes + growth_bytes_per_second * 3600
    return Race(available_bytes + start, start, threshold_bytes, growth_bytes_per_second)


def _race_cause(node: KilledNode, shortage: Shortage) -> Iterator[DeathCause]:
    """Yield why the kubelet did not act before the kernel: it saw enough free, or it came too late."""
    available = _kubelet_available(node, shortage)
    threshold = None if available is None else node.threshold_bytes
    if available is None or threshold is None:
        return
    is_seen = available < threshold
    yield DeathCause(
        Cause.THRESHOLD if is_seen else Cause.NOT_COUNTED,
        held_bytes=available,
        against_bytes=threshold,
        growth_bytes_per_second=winning_growth_bytes_per_second(_race_at(available, threshold, 1)) if is_seen else None,
        is_default=node.kubelet is None,
    )


# ---- inside a pod or container whose limit was reached ---------------------------------------------------------------

_POD = (CgroupLevel.CONTAINER, CgroupLevel.POD)
_MOST_LARGEST = 3
_MOST_SCORES = 5
_OF_OTHERS = range(-999, -996)
"""What kubelets and runtimes give themselves, sandboxes and Guaranteed pods, by their versions; a process that a
runtime starts in a container may keep it for a while, or for good."""
_OF_RUNTIME = "runc:["


def inside_of(node: KilledNode, candidates: Candidates) -> Inside | None:
    """Return what is known of the processes below a limit; None where it is not one pod's or daemon's, or no table."""
    if node.is_machine or node.ran_out.level not in OWN_LIMIT or not candidates.tasks:
        return None
    size, report = node.page_bytes, node.report
    large = sorted(candidates.tasks, key=lambda task: (-task.rss_pages, task.pid))[:_MOST_LARGEST]
    given, container = _given_scores(node)
    odd = [
        Process(task.name, task.pid, task.oom_score_adj)
        for task in sorted(candidates.tasks, key=lambda task: task.pid)
        if given
        and task.oom_score_adj not in given
        and task.oom_score_adj not in _OF_OTHERS
        and not task.name.startswith(_OF_RUNTIME)
    ]
    survivors = None
    is_known = "swap" in report.counters and not report.is_cut and node.ran_out.level in _POD  # cgroup v2
    # The line of a group kill precedes what the reaper says of its victims.
    if is_known and report.group is None and any(victim.is_reaped for victim in report.victims.values()):
        survivors = len(report.tasks) - len(report.tasks.keys() & report.victims.keys()) or None
    return Inside(
        len(candidates.tasks),
        tuple(
            Process(task.name, task.pid, rss_bytes=task.rss_pages * size, swap_bytes=(task.swap_pages or 0) * size)
            for task in large
        ),
        tuple(odd[:_MOST_SCORES]),
        max(0, len(odd) - _MOST_SCORES),
        container if odd else None,
        survivors,
    )


def _given_scores(node: KilledNode) -> tuple[Collection[int], int | None]:
    """Return the scores that the kubelet gives the containers there, and the container's where there is one alone."""
    profile, capacity, pod, place = node.facts.profile, node.capacity_bytes, node.pod, node.ran_out
    if place.level not in _POD:
        return (), None
    if pod is not None and capacity is not None:
        given = {score.value for score in oom_scores(pod, qos_class_of(pod, profile), capacity, profile)}
        if given:
            return given, next(iter(given)) if len(given) == 1 else None
    if place.qos_class is QOSClass.GUARANTEED:
        return {profile.guaranteed_oom_score_adj}, profile.guaranteed_oom_score_adj
    if place.qos_class is QOSClass.BEST_EFFORT:
        return {BEST_EFFORT_OOM_SCORE_ADJ}, BEST_EFFORT_OOM_SCORE_ADJ
    burstable = range(1000 + min(_OF_OTHERS), BEST_EFFORT_OOM_SCORE_ADJ)
    first = next(iter(node.report.tasks.values())).oom_score_adj  # the container's own first process
    if place.level is CgroupLevel.CONTAINER and first in burstable:
        return {first}, first
    return burstable, None


# ---- what would have saved it ----------------------------------------------------------------------------------------

_MIB, _GIB = 1 << 20, 1 << 30
_CRITICAL = SYSTEM_PRIORITIES[SYSTEM_NODE_CRITICAL]
_FEW_GIB, _MANY_GIB = 2, 8  # from there on a size, or another amount, is in whole gibibytes
_MANY_HUGE_PAGES = 20  # parts of the machine: fewer are not worth a change
_LEAST_USE_BYTES = _MIB
_LEAST_USE_SHARE = 100
_ORDER = [*SavedBy]


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
        self.instead = ""
        """Who dies first where the victim is spared."""
        if rivals:
            self.instead = f"{candidates.tasks[rivals[0]].name} (pid {candidates.pids[rivals[0]]})"
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
        least_points = self._least_points
        return least_points is not None and max(self._badness(used, scores, self._privileged)) < least_points


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
    if not node.is_machine and node.ran_out.level in _POD:
        return range(len(candidates.tasks))
    score, name = candidates.scores[chosen], candidates.tasks[chosen].name
    alike = {place for place, each in enumerate(candidates.scores) if each == score}
    if not (node.is_pods(score) and 0 < score < BEST_EFFORT_OOM_SCORE_ADJ - 1):
        alike = {place for place in alike if candidates.tasks[place].name == name}
    return own | alike


def is_shared(node: KilledNode) -> bool:
    """Whether what ran out is not one pod's or daemon's: only then another may die in the victim's place."""
    return node.is_machine or node.ran_out.level not in OWN_LIMIT


def savings_of(node: KilledNode, shortage: Shortage | None, decision: RepeatedKill | None) -> tuple[DeathSaving, ...]:
    """Return what would have saved the victim: lines of its manifest, then less use, then another node.

    ``decision`` is None where the kernel's choice cannot be made again.
    """
    if node.ran_out.level is CgroupLevel.UNKNOWN or node.is_by_hand:
        return ()  # by hand nothing ran out: whoever asked for a kill gets one
    found: list[DeathSaving] = []
    if decision is not None and is_shared(node):
        found += _by_manifest(node, decision)
        if shortage is None or shortage.kind not in OF_NO_USE:
            found += _by_use(node, decision)
    if shortage is not None:
        if shortage.kind in (ShortageKind.LIMIT, ShortageKind.WATERMARKS) and shortage.lacking_bytes is not None:
            found += [*_by_size(node, shortage, shortage.lacking_bytes)]
        found += _by_threshold(node, shortage)
    return tuple(sorted(found, key=lambda saving: _ORDER.index(saving.change)))


def _by_use(node: KilledNode, decision: RepeatedKill) -> Iterator[DeathSaving]:
    """Yield how much less the victim had to use, until another is chosen: others take what it leaves.

    Only what its owner could do something with: neither a few pages, which any other moment turns round, nor most of
    what it does.
    """
    rss, size = decision.victim.rss_pages, node.page_bytes
    least_pages = max(-(-_LEAST_USE_BYTES // size), rss // _LEAST_USE_SHARE)
    if decision.spares(less_pages=min(rss, least_pages)):
        return
    pages = least(1, rss // 2, 1, lambda pages: decision.spares(less_pages=pages), decision.excess_points)
    if pages is not None:
        amount = (rss - pages) * size
        yield DeathSaving(SavedBy.USAGE, more=pages * size, amount=amount, instead=decision.instead)


def _by_size(node: KilledNode, shortage: Shortage, lacking: int) -> Iterator[DeathSaving]:
    """Yield the least limit, or size of the machine, at which the request succeeds; unused huge pages."""
    is_machine = shortage.kind is ShortageKind.WATERMARKS
    is_node = is_machine or node.ran_out.level is CgroupLevel.KUBEPODS
    capacity = node.capacity_bytes
    now = capacity if is_machine else shortage.limit_bytes
    amount = None if now is None else now + lacking
    in_swap = shortage.swap_usage_bytes or 0 if is_machine else 0
    advised = None if amount is None else with_margin(amount + in_swap, _FEW_GIB if is_node else _MANY_GIB)
    if advised is not None and now is not None and advised - now < lacking:
        advised = None
    if is_node and not is_machine:
        # The limit of all pods is what the node has without its reservations.
        amount = None if capacity is None else capacity + lacking
    change = SavedBy.NODE_SIZE if is_node else SavedBy.LIMIT
    yield DeathSaving(change, more=lacking, amount=amount, advised=advised)
    unused, total = shortage.parts.free_huge_page_bytes or 0, shortage.parts.huge_page_bytes or 0
    if unused >= max(lacking, (capacity or 0) // _MANY_HUGE_PAGES, 1):
        yield DeathSaving(SavedBy.HUGE_PAGES, more=lacking, amount=total - lacking, advised=total - unused)


def with_margin(least_bytes: int, many_gib: int = _MANY_GIB) -> int:
    """Return an amount that an operator would set: the least with some headroom, in whole mebibytes or gibibytes."""
    amount = min(MOST_BYTES, with_headroom(least_bytes))
    unit = _GIB if amount >= many_gib * _GIB else _MIB
    return -(-amount // unit) * unit


def _by_threshold(node: KilledNode, shortage: Shortage) -> Iterator[DeathSaving]:
    """Yield the least threshold at which the kubelet always acts first, by how fast memory was used up."""
    growth = node.facts.growth_bytes_per_second
    available = None if growth is None else _kubelet_available(node, shortage)
    if available is None or growth is None:
        return
    threshold, capacity = node.threshold_bytes or 0, node.capacity_bytes
    needed = winning_threshold_bytes(_race_at(available, threshold, growth))
    wins = run_race(_race_at(available, needed, growth)).kubelet_first == Fraction(1)
    if wins and needed > threshold and (capacity is None or needed < capacity):
        advised = in_mebibytes(needed).value
        yield DeathSaving(SavedBy.THRESHOLD, more=needed - threshold, amount=needed, advised=advised)


def _by_manifest(node: KilledNode, decision: RepeatedKill) -> Iterator[DeathSaving]:
    """Yield changes of the victim's manifest that give it another score; none where it has what Guaranteed gives."""
    adj, lowest = decision.victim.oom_score_adj, node.facts.profile.guaranteed_oom_score_adj
    is_pods = bool(node.victim.pod_uid) or node.is_pods(adj)
    if not is_pods or node.victim.qos_class is QOSClass.GUARANTEED or adj <= lowest:
        return
    yield from _by_request(node, decision)
    if decision.spares(oom_score_adj=lowest):
        amount = min(MOST_BYTES, with_headroom(decision.used_pages * node.page_bytes))
        yield DeathSaving(
            SavedBy.CLASS,
            amount=amount,
            advised=in_mebibytes(amount).value,
            oom_score_adj=lowest,
            qos_class=QOSClass.GUARANTEED,
            instead=decision.instead,
        )
    critical = _critical_score(node.facts.profile)
    if critical is not None and decision.spares(oom_score_adj=critical):
        yield DeathSaving(SavedBy.PRIORITY, amount=_CRITICAL, oom_score_adj=critical, instead=decision.instead)


@lru_cache(maxsize=8)
def _critical_score(profile: Profile) -> int | None:
    """Return the score that system-node-critical gives the containers of any pod; None: it gives none."""
    if profile.lowest_score_for == "nobody":
        return None
    containers = (Container(name="main"),)
    pod = Pod(spec=PodSpec(containers=containers, priority_class_name=SYSTEM_NODE_CRITICAL, priority=_CRITICAL))
    return oom_scores(pod, QOSClass.BURSTABLE, 1, profile)[0].value


def _by_request(node: KilledNode, decision: RepeatedKill) -> Iterator[DeathSaving]:
    """Yield the least request with which another dies; where the node's size is not known, the score it has to give."""
    profile, capacity, adj = node.facts.profile, node.capacity_bytes, decision.victim.oom_score_adj
    burstable = QOSClass.BURSTABLE if node.victim.qos_class is QOSClass.BEST_EFFORT else None
    floor = 1000 + profile.guaranteed_oom_score_adj
    likely = -(-decision.excess_points // max(1, decision.points_per_score))
    lower = least(1, adj - floor, 1, lambda by: decision.spares(oom_score_adj=adj - by), likely)
    if capacity is None:
        if lower is not None:
            instead = decision.instead
            yield DeathSaving(SavedBy.REQUEST, oom_score_adj=adj - lower, qos_class=burstable, instead=instead)
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
        changed = with_request(pod, holder, MEMORY, amount)
        scores = oom_scores(changed, qos_class_of(changed, profile), capacity, profile)
        return next(score.value for score in scores if score.container == container)

    def spares(amount: int) -> bool:
        return decision.spares(oom_score_adj=score_of(amount))

    # What gives a container of its own the highest score with which it is spared.
    enough = None if lower is None else node.request_bytes(adj - lower, capacity)
    amount = least(now + 1, most, node.page_bytes, spares, enough)
    if amount is not None:
        advised = min(most, with_margin(amount))
        yield DeathSaving(
            SavedBy.REQUEST,
            more=amount - now,
            amount=amount,
            advised=advised if spares(advised) else None,
            oom_score_adj=score_of(amount),
            qos_class=burstable,
            instead=decision.instead,
        )


def _container(node: KilledNode, oom_score_adj: int, capacity_bytes: int) -> tuple[Pod, str] | None:
    """Return the victim's pod and the container that has its score; None where that is not known."""
    pod, profile = node.pod, node.facts.profile
    if pod is not None:
        for oom_score in oom_scores(pod, qos_class_of(pod, profile), capacity_bytes, profile):
            if oom_score.value == oom_score_adj:
                return pod, oom_score.container
    return None
