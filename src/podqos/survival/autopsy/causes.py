"""What was behind an OOM, by the figures of the report."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from enum import StrEnum

from msgspec import Struct

from podqos.kernel.oom_circumstances import Origin
from podqos.kernel.oom_report import OOMReport
from podqos.kernel.task_table import Task
from podqos.model.pod import Pod
from podqos.qos.cgroup_paths import CgroupLevel
from podqos.survival.autopsy.candidates import Candidates
from podqos.survival.autopsy.facts import MOST_BYTES, KilledNode, chosen_name, origin_of
from podqos.survival.autopsy.inside import OWN_LIMIT
from podqos.survival.autopsy.shortage import OF_NO_USE, Shortage, ShortageKind, free_bytes
from podqos.survival.forecast.race import Race, winning_growth_bytes_per_second

_SHARE = 4  # what holds a quarter or more of the memory is named as a cause
_BY_USE = (ShortageKind.LIMIT, ShortageKind.WATERMARKS, ShortageKind.NODES)
"""Kinds for which it matters who uses how much."""
_LEAST_SHARE = 100  # what holds less than a hundredth is not a cause


class Cause(StrEnum):
    """What was behind an OOM."""

    OWN_LIMIT = "OwnLimit"
    """The container, or its pod, reached its own limit."""
    OWN_USE = "OwnUse"
    """The victim is the one that was furthest above its request."""
    NEIGHBOUR = "Neighbour"
    """Another process is above its request: further than the victim, or it asked for the memory and uses more. Where
    none is above its request: the largest."""
    SYSTEM_DAEMONS = "SystemDaemons"
    """What runs beside pods used more than the node reserves for it."""
    PAGE_CACHE = "PageCache"
    """Page cache that the kernel could not drop in time."""
    NOT_COUNTED = "PageCacheNotCounted"
    """The kubelet saw more than its threshold as free, because it does not count inactive page cache as used."""
    TMPFS = "Tmpfs"
    """tmpfs, volumes in memory and shared memory: no process of the ranking is charged for what none maps."""
    KERNEL_MEMORY = "KernelMemory"
    """Slab, page tables, stacks of the kernel."""
    THRESHOLD = "ThresholdTooLow"
    """The kubelet's threshold was crossed, and memory ran out before its next pass: the race."""
    SWAPOFF = "SwapOff"
    """The victim was turning off swap: what was there came back into memory."""
    KSM_OFF = "KSMOff"
    """The victim was turning off KSM: equal pages that had been merged became many again."""
    HUGE_PAGES = "HugePages"
    """Memory set aside for huge pages, used or not: nothing else can have it."""
    UNLISTED = "NotInTable"
    """Memory of processes that the table does not have: such as were ending, or had been killed before."""
    UNACCOUNTED = "Unaccounted"
    """Memory that no figure of the report accounts for: drivers, a balloon."""
    ELSEWHERE = "MemoryElsewhere"
    """There was memory, and it was of no use (``Shortage.kind`` says why)."""


_ORIGINS = {Origin.SWAPOFF: Cause.SWAPOFF, Origin.KSM: Cause.KSM_OFF}


class AutopsyCause(Struct, frozen=True, rename="camel", gc=False):
    """A cause with the figures that decide."""

    cause: Cause
    held_bytes: int | None = None
    """How much: what the process uses, or the part of memory holds; of PageCacheNotCounted and ThresholdTooLow what the
    kubelet saw as free."""
    against_bytes: int | None = None
    """What that is measured by: the limit or the machine, a request, a reservation, a threshold."""
    pid: int | None = None
    """Of OwnUse and Neighbour: the process, or the largest of those with its name."""
    name: str = ""
    request_thousandths: int | None = None
    """Of the memory of its node: what its oom_score_adj says it requests."""
    growth_bytes_per_second: int | None = None
    """Of ThresholdTooLow: memory was lost faster than this, or the kubelet would have been first."""
    is_default: bool = False
    """Whether the threshold is the kubelet's default, because its settings are not stated."""
    processes: int = 1
    """How many of that name hold it together: where no kubelet gives them requests, a program counts as one."""
    unused_bytes: int | None = None
    """Of HugePages: the part that nobody uses; of PageCache: the part that is still to be written."""
    volumes: tuple[str, ...] = ()
    """Of Tmpfs: the volumes in memory that the victim's pod has, where its manifest is known."""


def causes_of(
    node: KilledNode, shortage: Shortage | None, candidates: Candidates, own: Collection[int]
) -> Iterator[AutopsyCause]:
    """Yield what was behind an OOM, the main cause first. ``own`` are the victim and what belongs to it."""
    if node.ran_out.level is CgroupLevel.UNKNOWN:
        return
    if shortage is not None and shortage.kind in OF_NO_USE:
        free = shortage.free_elsewhere_bytes or shortage.usage_bytes
        yield AutopsyCause(Cause.ELSEWHERE, free, shortage.lacking_bytes)
    if origin := origin_of(node.report):
        yield AutopsyCause(_ORIGINS[origin], pid=node.report.chosen, name=chosen_name(node.report))
    parts = [] if shortage is None else list(_part_causes(node, shortage))
    main = [cause for is_main, cause in parts if is_main]
    yield from main
    if not node.is_machine and node.ran_out.level in OWN_LIMIT:
        if shortage is None and node.ran_out.level is not CgroupLevel.CGROUP:
            yield AutopsyCause(Cause.OWN_LIMIT)  # which the report names, and no figure of it
        elif shortage is not None and shortage.kind is ShortageKind.LIMIT:
            # The kubelet can enforce a reservation as the limit of a cgroup beside pods.
            is_reserved = node.ran_out.level is CgroupLevel.SYSTEM and shortage.limit_bytes in (node.reservations or ())
            cause = Cause.SYSTEM_DAEMONS if is_reserved else Cause.OWN_LIMIT
            yield AutopsyCause(cause, shortage.usage_bytes, shortage.limit_bytes)
    elif origin is None and (shortage is None or shortage.kind in _BY_USE):
        yield from _owner_causes(node, candidates, own)
    yield from (cause for is_main, cause in parts if not is_main)
    if shortage is not None:
        yield from _race_cause(node, shortage)


def _part_causes(node: KilledNode, shortage: Shortage) -> Iterator[tuple[bool, AutopsyCause]]:
    """Yield what else than processes holds a quarter or more; the largest is a main cause if no more is theirs."""
    parts = shortage.parts
    if shortage.kind in OF_NO_USE:
        return
    total = shortage.limit_bytes if shortage.kind is ShortageKind.LIMIT else node.capacity_bytes
    if parts.anon_bytes is None or total is None:
        return
    unlisted = _unlisted_bytes(node, parts.anon_bytes)
    held = (
        (Cause.TMPFS, parts.shmem_bytes or 0, None),
        (Cause.KERNEL_MEMORY, parts.kernel_bytes or 0, None),
        (Cause.PAGE_CACHE, parts.file_bytes or 0, parts.dirty_bytes),
        (Cause.HUGE_PAGES, parts.huge_page_bytes or 0, parts.free_huge_page_bytes),
        (Cause.UNLISTED, unlisted, None),
        (Cause.UNACCOUNTED, parts.other_bytes or 0, None),
    )
    large = [each for each in held if each[1] * _SHARE >= total]
    large.sort(key=lambda each: -each[1])
    for cause, amount, unused in large:
        volumes = _volumes_in_memory(node.pod) if cause is Cause.TMPFS else ()
        named = AutopsyCause(cause, amount, total, unused_bytes=unused, volumes=volumes)
        yield amount == large[0][1] > parts.anon_bytes - unlisted, named


def _unlisted_bytes(node: KilledNode, anon_bytes: int) -> int:
    """Return what processes hold that have no row in the table of the machine, which has all that live."""
    report = node.report
    if not node.is_machine or node.is_constrained or report.is_cut or not report.tasks:
        return 0
    listed = sum(task.rss_pages for task in report.tasks.values()) * node.page_bytes
    return max(0, anon_bytes - listed)


def _volumes_in_memory(pod: Pod | None) -> tuple[str, ...]:
    return () if pod is None else tuple(volume.name for volume in pod.spec.volumes if volume.is_in_memory)


def _owner_causes(node: KilledNode, candidates: Candidates, own: Collection[int]) -> Iterator[AutopsyCause]:
    """Yield which process is furthest above its request; those that no pod has are measured by the reservation."""
    capacity = node.capacity_bytes
    basis = capacity or _limit_bytes(node.report)
    if basis is None or node.report.is_cut or not candidates.tasks:
        return
    if not node.is_kubernetes:
        yield from _program_cause(node, candidates, own, basis)
        return
    scores, rss, size = candidates.scores, candidates.rss_pages, node.page_bytes
    # Many processes share a score: of those the largest is furthest above its request.
    largest_of: dict[int, int] = {}
    for score, pages in zip(scores, rss, strict=True):
        if score not in largest_of or pages > largest_of[score]:
            largest_of[score] = pages
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
        yield AutopsyCause(Cause.SYSTEM_DAEMONS, beside, reserved)
    asked = candidates.place(node.report.trigger_pid)
    victim_pages = max([rss[place] for place in own], default=0)
    bursts = [asked] if asked is not None and rss[asked] > victim_pages else []
    found = [
        (place, requests[scores[place]])
        for place in dict.fromkeys([*bursts, *furthest[:1]])
        if scores[place] in requests and _is_cause(node, rss[place], basis)
    ]
    found = [(place, request) for place, request in found if rss[place] * size > request]
    for place, request in found:
        stated = None if capacity is None else request
        yield _use(node, candidates.tasks[place], stated, is_own=place in own, is_above=True)
    if not found and not is_beside:
        # None is above its request: they request more than there is.
        largest = max(candidates.ranking, key=rss.__getitem__)
        if _is_cause(node, rss[largest], basis):
            yield _use(node, candidates.tasks[largest], is_own=largest in own)


def _is_cause(node: KilledNode, rss_pages: int, basis_bytes: int) -> bool:
    """Whether a process uses enough to be one."""
    return rss_pages * node.page_bytes * _LEAST_SHARE >= basis_bytes


def _program_cause(
    node: KilledNode, candidates: Candidates, own: Collection[int], basis_bytes: int
) -> Iterator[AutopsyCause]:
    """Yield the program that uses most, all its processes together, where that is enough to be a cause."""
    used: dict[str, int] = {}
    tasks = candidates.tasks
    for place in candidates.ranking:
        name = tasks[place].name
        used[name] = used.get(name, 0) + tasks[place].rss_pages
    name = max(used, key=lambda name: min(MOST_BYTES, used[name] * node.page_bytes))
    held = min(MOST_BYTES, used[name] * node.page_bytes)
    if held * _LEAST_SHARE < basis_bytes:
        return
    members = [place for place in candidates.ranking if tasks[place].name == name]
    largest = max(members, key=candidates.rss_pages.__getitem__)
    cause = Cause.OWN_USE if any(place in own for place in members) else Cause.NEIGHBOUR
    yield AutopsyCause(cause, held, pid=candidates.pids[largest], name=name, processes=len(members))


def _use(
    node: KilledNode, task: Task, request_bytes: int | None = None, *, is_own: bool, is_above: bool = False
) -> AutopsyCause:
    return AutopsyCause(
        Cause.OWN_USE if is_own else Cause.NEIGHBOUR,
        task.rss_pages * node.page_bytes,
        request_bytes,
        task.pid,
        task.name,
        1000 - task.oom_score_adj if is_above else None,
    )


def _limit_bytes(report: OOMReport) -> int | None:
    counter = report.counters.get("memory")
    return None if counter is None or counter.limit_kb is None else counter.limit_kb * 1024


def kubelet_available_bytes(node: KilledNode, shortage: Shortage) -> int | None:
    """Return what the kubelet counted as free when the kernel had nothing left; None where that is not the question.

    It subtracts what is used without inactive file pages: from the machine's memory, or from the limit of all pods.
    """
    inactive = shortage.parts.inactive_file_bytes
    if not node.is_kubernetes or inactive is None or shortage.kind in OF_NO_USE:
        return None
    if shortage.kind is ShortageKind.LIMIT:
        return (
            shortage.limit_bytes - shortage.usage_bytes + inactive
            if node.ran_out.level is CgroupLevel.KUBEPODS
            else None
        )
    return free_bytes(node) + inactive


def race_at(available_bytes: int, threshold_bytes: int, growth_bytes_per_second: int) -> Race:
    """Return the race between kubelet and kernel that ends in the report, begun early enough."""
    start = threshold_bytes + growth_bytes_per_second * 3600
    return Race(available_bytes + start, start, threshold_bytes, growth_bytes_per_second)


def _race_cause(node: KilledNode, shortage: Shortage) -> Iterator[AutopsyCause]:
    """Yield why the kubelet did not act before the kernel: it saw enough free, or it came too late."""
    available = kubelet_available_bytes(node, shortage)
    threshold = None if available is None else node.threshold_bytes
    if available is None or threshold is None:
        return
    is_default = node.kubelet is None
    if available >= threshold:
        yield AutopsyCause(Cause.NOT_COUNTED, available, threshold, is_default=is_default)
        return
    growth = winning_growth_bytes_per_second(race_at(available, threshold, 1))
    yield AutopsyCause(Cause.THRESHOLD, available, threshold, growth_bytes_per_second=growth, is_default=is_default)
