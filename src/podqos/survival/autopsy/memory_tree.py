"""The memory of an OOM as a tree: what ran out, the victim's pod and container below it, and the processes.

Only what the report says. A cgroup's report lists the processes of that cgroup; which container a process belongs to it
says of the victim alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import StrEnum
from heapq import nlargest

from msgspec import Struct

from podqos.kernel.oom_report import OOMReport, Victim
from podqos.qos.cgroup_paths import CgroupLevel, CgroupPlace, place_of
from podqos.survival.autopsy.candidates import Candidates
from podqos.survival.autopsy.facts import MOST_BYTES, KilledNode
from podqos.survival.autopsy.shortage import MemoryParts, Shortage

_TOLERANCE = 16
"""Of the memory of a process: the kernel counts it per CPU, and the victim's line is later than the table."""
_MOST_STEPS = 6
_NAMED = (CgroupLevel.POD, CgroupLevel.CONTAINER)


class BarKind(StrEnum):
    """What a bar stands for."""

    MACHINE = "machine"
    CGROUP = "cgroup"
    """Any other than a pod's or a container's."""
    POD = "pod"
    CONTAINER = "container"
    PROCESS = "process"
    OTHERS = "others"
    """The remaining processes together."""
    UNKNOWN = "unknown"
    """Nothing says whether the machine ran out or a cgroup."""


_KINDS = {
    CgroupLevel.MACHINE: BarKind.MACHINE,
    CgroupLevel.UNKNOWN: BarKind.UNKNOWN,
    CgroupLevel.POD: BarKind.POD,
    CgroupLevel.CONTAINER: BarKind.CONTAINER,
}


class MemoryBar(Struct, frozen=True, rename="camel", gc=False, kw_only=True):
    """A row of the tree, parents first; amounts are None where the report does not say."""

    kind: BarKind
    depth: int
    name: str
    """The cgroup's path, the pod's uid, the container's id, or the process."""
    pid: int | None = None
    tasks: int = 1
    """How many processes, of OTHERS."""
    is_killed: bool = False
    used_bytes: int | None = None
    """Of a process: resident memory, page tables and swap; of a cgroup what counts against its limit."""
    anon_bytes: int | None = None
    file_bytes: int | None = None
    """Page cache without tmpfs; of a process the files that it maps."""
    shmem_bytes: int | None = None
    rss_bytes: int | None = None
    """The three above in one: kernels before 6.9 say that of each process, and more of the victim alone."""
    kernel_bytes: int | None = None
    """Slab, page tables, stacks; of a process its page tables."""
    other_bytes: int | None = None
    """What none of the other figures accounts for."""
    swap_bytes: int | None = None
    limit_bytes: int | None = None
    """The cgroup's limit, or the machine's memory."""
    peak_bytes: int | None = None
    """The most that reports of this log have seen in use."""


def memory_tree(
    node: KilledNode, shortage: Shortage | None, candidates: Candidates, most_shown: int, peak_bytes: int | None = None
) -> tuple[MemoryBar, ...]:
    """Return the tree; empty where the report has neither figures nor processes. The largest processes are shown."""
    victims, pids = node.report.victims, candidates.pids
    lone = [victim for victim in victims.values() if victim.rss_parts_kb and victim.pid not in node.report.tasks]
    if shortage is None and not pids and not lone:
        return ()
    above = [*_above(node, shortage, peak_bytes)]
    depth = len(above)
    killed = {place for pid in victims if (place := candidates.place(pid)) is not None}
    shown = _shown(candidates, killed, most_shown)
    rest = [_others(node, candidates, shown, depth)] if len(pids) > len(shown) else []
    cgroups = [*_each_below(node, depth, most_shown)]
    way = next((place + 1 for place, (path, _) in enumerate(cgroups) if path == node.report.task_cgroup), 0)
    below = [bar for _, bar in cgroups] if way else [*_below(node, depth)]
    if not below or not (lone or killed.intersection(shown)):
        alike = [*(_lone(victim, depth) for victim in lone[:most_shown])]
        processes = [_process(node, candidates, place, depth) for place in shown]
        return (*above, *(bar for _, bar in cgroups), *alike, *processes, *rest)
    inner = (below[way - 1] if way else below[-1]).depth + 1
    dead = [*(_lone(victim, inner) for victim in lone[:most_shown])]
    dead += [_process(node, candidates, place, inner) for place in shown if place in killed]
    alive = [_process(node, candidates, place, depth) for place in shown if place not in killed]
    way = way or len(below)
    return (*above, *below[:way], *dead, *below[way:], *alive, *rest)


def _shown(candidates: Candidates, killed: set[int], most_shown: int) -> list[int]:
    """Return the places of the largest processes; a victim is shown, however small."""
    resident = candidates.resident_bytes
    places = sorted(range(len(resident)), key=resident.__getitem__, reverse=True)
    largest = places[:most_shown]
    missing = sorted(killed.difference(largest))
    if not missing:
        return largest
    kept = [place for place in largest if place in killed] + missing
    kept += [place for place in largest if place not in killed]
    return sorted(kept[:most_shown], key=resident.__getitem__, reverse=True)


def _each_below(node: KilledNode, depth: int, most_shown: int) -> Iterator[tuple[str, MemoryBar]]:
    """Yield the cgroups below the one that ran out with what each holds itself: kernels before 5.3 list them."""
    report = node.report
    if not report.statistics_below:
        return
    root = report.oom_cgroup or report.statistics_of or ""
    below = {path: own for path, own in report.statistics_below.items() if path.startswith(root.rstrip("/") + "/")}
    sizes = {path: own.get("rss", 0) + own.get("cache", 0) + own.get("swap", 0) for path, own in below.items()}
    shown = {*nlargest(most_shown, sizes, key=sizes.__getitem__), report.task_cgroup}
    for path, own in below.items():
        if path not in shown or not (sizes[path] or path == report.task_cgroup):
            continue
        place = place_of(path)
        cache = own.get("cache", 0)
        # Old kernels do not name shmem; it is cache that is on no list of files.
        shmem = own.get("shmem", max(0, cache - own.get("inactive_file", 0) - own.get("active_file", 0)))
        steps = path[len(root.rstrip("/")) + 1 :].count("/")
        bar = MemoryBar(
            kind=_kind(place),
            depth=depth + min(steps, _MOST_STEPS),
            name=_name(place, path),
            used_bytes=min(MOST_BYTES, own.get("rss", 0) + cache),
            anon_bytes=min(MOST_BYTES, own.get("rss", 0)),
            file_bytes=min(MOST_BYTES, max(0, cache - shmem)),
            shmem_bytes=min(MOST_BYTES, shmem),
            swap_bytes=min(MOST_BYTES, own["swap"]) if "swap" in own else None,
        )
        yield path, bar


def _above(node: KilledNode, shortage: Shortage | None, peak_bytes: int | None) -> Iterator[MemoryBar]:
    """Yield the cgroup that ran out, below its pod if it is a container's."""
    report, place = node.report, node.ran_out
    depth = 0
    if place.level is CgroupLevel.CONTAINER:
        yield MemoryBar(kind=BarKind.POD, depth=0, name=place.pod_uid)
        depth = 1
    parts = MemoryParts() if shortage is None else shortage.parts
    swap = report.counters.get("swap")
    memory = report.counters.get("memory")
    if node.is_machine:
        limit, used, swapped = node.capacity_bytes, None, _swapped(report, node.page_bytes)
        other = parts.other_bytes
    else:
        limit = None if memory is None or memory.limit_kb is None else memory.limit_kb * 1024
        used = None if memory is None else memory.usage_kb * 1024
        both = report.counters.get("memory+swap")  # of cgroup v1
        swapped = None if swap is None else swap.usage_kb * 1024
        if swap is None and memory is not None and both is not None:
            swapped = max(0, both.usage_kb - memory.usage_kb) * 1024
        known = (parts.anon_bytes, parts.file_bytes, parts.shmem_bytes, parts.kernel_bytes)
        other = None if used is None or parts.anon_bytes is None else max(0, used - sum(filter(None, known)))
    yield MemoryBar(
        kind=_kind(place),
        depth=depth,
        name=_name(place, report.oom_cgroup or ""),
        used_bytes=used,
        anon_bytes=parts.anon_bytes,
        file_bytes=parts.file_bytes,
        shmem_bytes=parts.shmem_bytes,
        kernel_bytes=parts.kernel_bytes,
        other_bytes=other,
        swap_bytes=swapped,
        limit_bytes=limit,
        peak_bytes=peak_bytes,
    )


def _swapped(report: OOMReport, page_bytes: int) -> int | None:
    """Return how much the tasks of a machine have swapped out; None where there is no swap, or the table lacks it."""
    if not report.swap_kb or not report.tasks:
        return None
    pages = [task.swap_pages for task in report.tasks.values()]
    return None if None in pages else min(MOST_BYTES, sum(filter(None, pages)) * page_bytes)


def _below(node: KilledNode, depth: int) -> Iterator[MemoryBar]:
    """Yield the cgroups between the one that ran out and the victim."""
    victim, ran_out = node.victim, node.ran_out
    if not node.report.task_cgroup or victim == ran_out:
        return
    if victim.level in _NAMED and victim.pod_uid and victim.pod_uid != ran_out.pod_uid:
        yield MemoryBar(kind=BarKind.POD, depth=depth, name=victim.pod_uid)
        depth += 1
    if victim.level is CgroupLevel.CONTAINER and ran_out.level is not CgroupLevel.CONTAINER:
        yield MemoryBar(kind=BarKind.CONTAINER, depth=depth, name=victim.container_id)
    elif victim.level not in _NAMED and node.report.task_cgroup != node.report.oom_cgroup:
        yield MemoryBar(kind=BarKind.CGROUP, depth=depth, name=node.report.task_cgroup)


def _kind(place: CgroupPlace) -> BarKind:
    return _KINDS.get(place.level, BarKind.CGROUP)


def _name(place: CgroupPlace, path: str) -> str:
    if place.level is CgroupLevel.CONTAINER:
        return place.container_id
    return place.pod_uid if place.level is CgroupLevel.POD else path


def _process(node: KilledNode, candidates: Candidates, place: int, depth: int) -> MemoryBar:
    size, task = node.page_bytes, candidates.tasks[place]
    rss = task.rss_pages * size
    victim, anon, file, shmem = node.report.victims.get(task.pid), None, None, None
    if task.rss_parts_pages is not None:
        anon, file, shmem = [pages * size for pages in task.rss_parts_pages]
    elif victim is not None and victim.rss_parts_kb:
        parts = [kilobytes * 1024 for kilobytes in victim.rss_parts_kb]
        if abs(sum(parts) - rss) * _TOLERANCE <= rss:  # else it has grown or shrunk since the table was written
            anon, file, shmem = parts
    has_tables = task.page_table_bytes is not None or task.page_table_pages is not None
    return MemoryBar(
        kind=BarKind.PROCESS,
        depth=depth,
        name=task.name,
        pid=task.pid,
        is_killed=victim is not None,
        used_bytes=candidates.resident_bytes[place],
        anon_bytes=anon,
        file_bytes=file,
        shmem_bytes=shmem,
        rss_bytes=rss,
        kernel_bytes=candidates.table_bytes[place] if has_tables else None,
        swap_bytes=None if task.swap_pages is None else task.swap_pages * size,
    )


def _lone(victim: Victim, depth: int) -> MemoryBar:
    """Return a victim that is in no table, by its own line: reports are rate limited."""
    anon, file, shmem = (min(MOST_BYTES, kilobytes * 1024) for kilobytes in victim.rss_parts_kb or (0, 0, 0))
    return MemoryBar(
        kind=BarKind.PROCESS,
        depth=depth,
        name=victim.name,
        pid=victim.pid,
        is_killed=True,
        used_bytes=anon + file + shmem,
        anon_bytes=anon,
        file_bytes=file,
        shmem_bytes=shmem,
        rss_bytes=anon + file + shmem,
    )


def _others(node: KilledNode, candidates: Candidates, shown: Sequence[int], depth: int) -> MemoryBar:
    """Return those that are not shown, together."""
    columns = (candidates.rss_pages, candidates.swap_pages, candidates.table_bytes)
    resident, swapped, tables = [sum(column) - sum(map(column.__getitem__, shown)) for column in columns]
    size = node.page_bytes
    return MemoryBar(
        kind=BarKind.OTHERS,
        depth=depth,
        name="",
        tasks=len(candidates.tasks) - len(shown),
        used_bytes=min(MOST_BYTES, (resident + swapped) * size + tables),
        rss_bytes=min(MOST_BYTES, resident * size),
        kernel_bytes=min(MOST_BYTES, tables),
        swap_bytes=min(MOST_BYTES, swapped * size),
    )
