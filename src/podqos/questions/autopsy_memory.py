"""The machine of an OOM report: what is known of it, the tasks to choose from, which memory ran out, who held it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache

from msgspec import Struct
from msgspec.structs import replace

from podqos.eviction.signals import Signal
from podqos.eviction.thresholds import Threshold, parse_thresholds
from podqos.kernel.oom import badness_in, exempt_in
from podqos.logs.report import Constraint, OOMReport, ReportZone, Task, Victim
from podqos.model.kubelet_config import KubeletConfiguration
from podqos.model.node import Node
from podqos.model.pod import Pod
from podqos.model.profile import LATEST, Profile
from podqos.model.resources import MEMORY
from podqos.qos.cgroup_paths import CgroupLevel, CgroupPlace, place_of
from podqos.qos.oom import BEST_EFFORT_OOM_SCORE_ADJ, COMPONENT_OOM_SCORE_ADJ
from podqos.questions.autopsy_death import MOST_BYTES, MemoryPart, MemoryParts, Shortage, ShortageKind, TreeRow

BELOW_PODS = (CgroupLevel.KUBEPODS, CgroupLevel.CLASS, CgroupLevel.POD, CgroupLevel.CONTAINER)
OWN_LIMIT = (CgroupLevel.CONTAINER, CgroupLevel.POD, CgroupLevel.SYSTEM, CgroupLevel.CGROUP)
"""Levels whose memory belongs to one pod or daemon."""
OF_NO_USE = tuple(kind for kind in ShortageKind if kind not in (ShortageKind.LIMIT, ShortageKind.WATERMARKS))
_CONSTRAINED = (Constraint.CPUSET, Constraint.MEMORY_POLICY)
_SANDBOX = COMPONENT_OOM_SCORE_ADJ["pod sandbox"]
_BY_HAND = -1
_ROOT_UID = 0


class NodeFacts(Struct, frozen=True):
    """What manifests, a cluster and options say."""

    pods: Mapping[str, Pod] = {}
    """By the uid in the name of their cgroup."""
    memory_bytes: Mapping[str, int] = {}
    """Of nodes, by name: a cgroup's report does not say how large the machine is."""
    kubelet_of: Callable[[str], KubeletConfiguration | None] = lambda _: None
    """Returns the settings of a node's kubelet, by its name; None where they are not stated."""
    growth_bytes_per_second: int | None = None
    """How fast memory was used up, where that is known."""
    profile: Profile = LATEST


NOTHING_KNOWN = NodeFacts()


def with_nodes(facts: NodeFacts, nodes: Iterable[Node]) -> NodeFacts:
    """Return what is known with the sizes of more nodes."""
    sizes = {node.name: node.status.capacity[MEMORY].value for node in nodes if MEMORY in node.status.capacity}
    return replace(facts, memory_bytes={**facts.memory_bytes, **sizes}) if sizes else facts


class KilledNode(Struct, frozen=True):
    """A report's machine and the place of its victim, with all that is known of them."""

    facts: NodeFacts
    report: OOMReport
    page_bytes: int
    ran_out: CgroupPlace
    victim: CgroupPlace
    pod: Pod | None
    """The victim's pod, where it is known."""
    capacity_bytes: int | None
    """The machine's memory, as the kubelet reads it; None where nothing says."""
    is_machine: bool
    """Whether the machine ran out, and not a cgroup."""
    is_by_hand: bool
    """Whether someone called the OOM killer (sysrq f)."""
    is_kubernetes: bool
    """Whether a kubelet runs there: by the cgroups that the report names, or a pod's sandbox in its table."""

    @property
    def kubelet(self) -> KubeletConfiguration | None:
        """The settings of its kubelet; None where they are not stated."""
        return self.facts.kubelet_of(_node_name(self.pod, self.report))

    @property
    def is_constrained(self) -> bool:
        """Whether the request was kept to some of the memory nodes."""
        return self.report.constraint in _CONSTRAINED

    def is_pods(self, oom_score_adj: int) -> bool:
        """Whether a process belongs to a pod: the kubelet gives them scores that little else has."""
        if not self.is_kubernetes:
            return False
        if not self.is_machine and self.ran_out.level in BELOW_PODS:
            return True
        fixed = (self.facts.profile.guaranteed_oom_score_adj, _SANDBOX)
        return 0 < oom_score_adj <= BEST_EFFORT_OOM_SCORE_ADJ or oom_score_adj in fixed

    def request_bytes(self, oom_score_adj: int, capacity_bytes: int) -> int | None:
        """Return the least request with which a container has a score; None where the score does not depend on it."""
        if oom_score_adj >= BEST_EFFORT_OOM_SCORE_ADJ - 1:
            return 0
        if oom_score_adj <= 1000 + self.facts.profile.guaranteed_oom_score_adj:
            return None
        return -(-capacity_bytes * (1000 - oom_score_adj) // 1000)

    @property
    def threshold_bytes(self) -> int | None:
        """The kubelet's hard threshold of free memory, its default where nothing is stated; None: it has none."""
        config, profile = self.kubelet, self.facts.profile
        for threshold in _default_thresholds(profile) if config is None else parse_thresholds(config, profile):
            if threshold.signal is Signal.MEMORY and threshold.is_hard:
                return threshold.amount(self.capacity_bytes or 0).value
        return None

    @property
    def reservations(self) -> tuple[int, ...] | None:
        """What the kubelet reserves for itself and for the system; None where its configuration is not stated."""
        config = self.kubelet
        if config is None:
            return None
        amounts = (config.reserved_for_kube, config.reserved_for_system)
        return tuple(amount[MEMORY].value for amount in amounts if MEMORY in amount)

    @property
    def free_bytes(self) -> int:
        """What is free of the whole machine."""
        pages = self.report.memory_pages.get("free")
        return sum(zone.free_kb for zone in self.report.zones) * 1024 if pages is None else pages * self.page_bytes


@lru_cache(maxsize=8)
def _default_thresholds(profile: Profile) -> tuple[Threshold, ...]:
    return parse_thresholds(KubeletConfiguration(), profile)


def _node_name(pod: Pod | None, report: OOMReport) -> str:
    return (pod.spec.node_name if pod is not None else "") or report.host


def killed_node(report: OOMReport, page_bytes: int, facts: NodeFacts) -> KilledNode:
    """Return a report with what is known of its machine."""
    is_by_hand = report.order == _BY_HAND or report.circumstances.is_by_hand
    ran_out = place_of(report.oom_cgroup or "")
    if is_by_hand:
        ran_out = CgroupPlace(CgroupLevel.MACHINE)
    elif report.constraint is None:
        ran_out = CgroupPlace(CgroupLevel.UNKNOWN)
    elif report.constraint is Constraint.MEMCG and ran_out.level is CgroupLevel.MACHINE:
        ran_out = CgroupPlace(CgroupLevel.CGROUP)
    victim = place_of(report.task_cgroup or "")
    pod = facts.pods.get(victim.pod_uid) if victim.pod_uid else None
    capacity = facts.memory_bytes.get(_node_name(pod, report)) or None
    if report.ram_pages is not None and report.ram_pages > report.reserved_pages:
        capacity = (report.ram_pages - report.reserved_pages) * page_bytes
    return KilledNode(
        facts,
        report,
        page_bytes,
        ran_out,
        victim,
        pod,
        capacity,
        is_machine=is_by_hand or (report.constraint is not None and report.constraint is not Constraint.MEMCG),
        is_by_hand=is_by_hand,
        is_kubernetes=victim.level in BELOW_PODS
        or ran_out.level in BELOW_PODS
        or _SANDBOX in [task.oom_score_adj for task in report.tasks.values()],
    )


class Candidates:
    """The tasks that the kernel had to choose from, with what decides between them, ordered by its rule.

    Most of a judgement is about all of them: the figures are columns in the order of the table, and a *place* is an
    index of theirs. The table does not say who has CAP_SYS_ADMIN; root usually does.
    """

    def __init__(self, report: OOMReport, tasks: Sequence[Task], page_bytes: int, total_pages: int) -> None:
        self.tasks = tasks
        self.total_pages = total_pages
        self.release = report.release
        self.pids = pids = [task.pid for task in tasks]
        self.scores = scores = [task.oom_score_adj for task in tasks]
        self.rss_pages = [task.rss_pages for task in tasks]
        self.swap_pages = [task.swap_pages or 0 for task in tasks]
        self.table_bytes = [
            (task.page_table_bytes or 0) if task.page_table_pages is None else task.page_table_pages * page_bytes
            for task in tasks
        ]
        columns = zip(self.rss_pages, self.swap_pages, self.table_bytes, strict=True)
        self.resident_bytes = [(rss + swap) * page_bytes + tables for rss, swap, tables in columns]
        """All three."""
        self.used_pages = [held // page_bytes for held in self.resident_bytes]
        self.privileged = [task.uid == _ROOT_UID for task in tasks]
        self.points = badness_in(report.release, total_pages, self.used_pages, scores, self.privileged)
        """Their badness."""
        self.chosen = self.place(report.chosen)
        """The place of the one that the kernel chose."""
        places = [*range(len(tasks))]
        if self.chosen is not None:
            # Of equals it comes first: which of them the kernel meets last the table does not say.
            places.insert(0, places.pop(self.chosen))
        places.sort(key=self.points.__getitem__, reverse=True)
        self.exempt = exempt = exempt_in(pids, scores)
        """Places of those that are never chosen."""
        self.killable = [place for place in places if place not in exempt]
        """Places of the others, the highest badness first."""
        self.ranking = [*self.killable, *(place for place in places if place in exempt)]
        self.others = [place for place in self.killable if place != self.chosen]
        """The killable ones that were not chosen: the first is the rival."""

    def place(self, pid: int | None) -> int | None:
        """Return where a process is."""
        try:
            return None if pid is None else self.pids.index(pid)
        except ValueError:
            return None

    def unprivileged_points(self, place: int) -> int:
        """Return the badness of one if it has no CAP_SYS_ADMIN."""
        used, scores = self.used_pages[place], self.scores[place]
        return badness_in(self.release, self.total_pages, [used], [scores], [False])[0]


# ---- what ran out ----------------------------------------------------------------------------------------------------

_NEARLY_FULL = 90
_ZONES = ("DMA", "DMA32", "Normal", "HighMem", "Movable")
_SWAP = "swap"
# The lowest bits of gfp_mask, the same in all these kernels: include/linux/gfp_types.h.
_GFP_DMA, _GFP_HIGHMEM, _GFP_DMA32, _GFP_MOVABLE = 1, 2, 4, 8


def shortage_of(node: KilledNode) -> Shortage | None:
    """Return the fullest counter of a cgroup, or what is free of the machine; None where the report does not say."""
    if node.is_machine:
        return _machine_shortage(node) if node.report.zones else None
    report = node.report
    # Swap that is full is why nothing could be reclaimed; the OOM killer is called for the others.
    limited = [
        (counter.usage_kb / counter.limit_kb, name, counter)
        for name, counter in report.counters.items()
        if counter.limit_kb and name != _SWAP
    ]
    if not limited:
        return None
    _, name, counter = max(limited, key=lambda each: each[0])
    usage_bytes, limit_bytes = counter.usage_kb * 1024, (counter.limit_kb or 0) * 1024
    asked = node.page_bytes << max(0, report.order or 0)
    # Counters are read after the request failed, and others of the cgroup may have ended meanwhile.
    is_freed = (usage_bytes + asked) * 100 < limit_bytes * _NEARLY_FULL
    swap_usage, swap_limit = _cgroup_swap(report)
    return Shortage(
        name,
        usage_bytes,
        limit_bytes,
        ShortageKind.FREED if is_freed else ShortageKind.LIMIT,
        lacking_bytes=None if is_freed else max(node.page_bytes, usage_bytes + asked - limit_bytes),
        failures=counter.failures,
        parts=_cgroup_parts(report),
        swap_usage_bytes=swap_usage,
        swap_limit_bytes=swap_limit,
    )


def _cgroup_swap(report: OOMReport) -> tuple[int | None, int | None]:
    """Return what a cgroup uses of swap, and what it may use: v2 has a counter for it, v1 for memory with swap."""
    memory, both, swap = (report.counters.get(name) for name in ("memory", "memory+swap", _SWAP))
    if swap is not None:
        return swap.usage_kb * 1024, None if swap.limit_kb is None else swap.limit_kb * 1024
    if both is None or memory is None:
        return None, None
    # What memory leaves of the common limit can be swap.
    limit = None if both.limit_kb is None else max(0, both.limit_kb - memory.usage_kb) * 1024
    return max(0, both.usage_kb - memory.usage_kb) * 1024, limit


def _machine_shortage(node: KilledNode) -> Shortage:
    """Return what is free of the machine, and why that was of no use.

    The kernel looks at every zone that may serve the request, the best first. It keeps so much of the lower ones from
    requests that the best can serve that only the best tells whether there was anything left.
    """
    report = node.report
    mask = report.gfp_mask
    last = _ZONES.index(_highest_zone(mask))
    nodes = report.nodes if node.is_constrained else None
    known = [zone for zone in report.zones if zone.name in _ZONES]
    allowed = [
        zone for zone in known if (nodes is None or zone.node in nodes) and _ZONES.index(zone.name) <= last
    ] or report.zones
    names = [zone.name for zone in allowed]
    best_name = max(names, key=lambda name: _ZONES.index(name) if name in _ZONES else -1)
    best = [zone for zone in allowed if zone.name == best_name]
    asked_kb = (node.page_bytes << max(0, report.order or 0)) // 1024
    spare_kb = max(zone.free_kb - zone.min_kb for zone in best)
    barred = [zone for zone in report.zones if zone not in allowed]
    elsewhere = sum(max(0, zone.free_kb - zone.min_kb) for zone in barred) * 1024
    if node.is_constrained:
        # The report leaves out the zones of nodes that are not allowed; the sum of all is still there.
        elsewhere += max(0, node.free_bytes - sum(zone.free_kb for zone in report.zones) * 1024)
    kind = ShortageKind.WATERMARKS
    if node.is_by_hand:
        kind = ShortageKind.SYSRQ
    elif mask == 0 and spare_kb >= asked_kb:
        kind = ShortageKind.PAGE_FAULT
    elif (report.order or 0) > 0 and _has_pieces(node, allowed, best, asked_kb):
        kind = ShortageKind.FRAGMENTATION
    elif any(_is_freed(zone, asked_kb) for zone in best):
        kind = ShortageKind.FREED
    elif elsewhere > asked_kb * 1024:
        kind = ShortageKind.NODES if node.is_constrained else ShortageKind.ZONES
    lacking_kb = min(zone.min_kb + asked_kb - zone.free_kb for zone in best)
    if lacking_kb <= 0:  # before it kills, the kernel looks a last time, up to the high watermark
        missing = [max(zone.min_kb, zone.high_kb or 0) + asked_kb - zone.free_kb for zone in allowed]
        lacking_kb = min((each for each in missing if each > 0), default=0)
    has_lacking = lacking_kb > 0 and kind in (ShortageKind.WATERMARKS, ShortageKind.ZONES, ShortageKind.NODES)
    swap_kb, free_swap_kb = report.swap_kb, report.circumstances.free_swap_kb
    is_swap_known = swap_kb is not None and free_swap_kb is not None
    return Shortage(
        "free",
        sum(zone.free_kb for zone in allowed) * 1024,
        sum(zone.min_kb for zone in allowed) * 1024,
        kind,
        lacking_bytes=lacking_kb * 1024 if has_lacking else None,
        free_elsewhere_bytes=elsewhere,
        zones=tuple(dict.fromkeys(names)),
        parts=_machine_parts(node),
        block_bytes=asked_kb * 1024 if kind is ShortageKind.FRAGMENTATION else None,
        swap_usage_bytes=max(0, (swap_kb or 0) - (free_swap_kb or 0)) * 1024 if is_swap_known else None,
        swap_limit_bytes=None if swap_kb is None else swap_kb * 1024,
    )


def _has_pieces(node: KilledNode, allowed: list[ReportZone], best: list[ReportZone], asked_kb: int) -> bool:
    """Whether there was memory, free or as page cache that can be dropped, so that it was in too small pieces."""
    cached_kb = _sum(node.report.memory_pages, "active_file", "inactive_file") * node.page_bytes // 1024
    is_free = any(zone.free_kb - max(zone.min_kb, zone.high_kb or 0) >= asked_kb for zone in best)
    return is_free or cached_kb > sum(zone.min_kb for zone in allowed)


def _is_freed(zone: ReportZone, asked_kb: int) -> bool:
    """Whether a zone has far more than the kernel looked for a last time before it killed: others freed it since."""
    return zone.high_kb is not None and zone.free_kb - asked_kb > 2 * max(zone.min_kb, zone.high_kb)


def _highest_zone(mask: int | None) -> str:
    if mask is None or (mask & _GFP_HIGHMEM and mask & _GFP_MOVABLE):
        return "Movable"
    if mask & _GFP_HIGHMEM:
        return "HighMem"
    if mask & _GFP_DMA32:
        return "DMA32"
    return "DMA" if mask & _GFP_DMA else "Normal"


def _cgroup_parts(report: OOMReport) -> MemoryParts:
    """Return what a cgroup holds, by its memory.stat: v2 says anon, v1 rss, with those below it as total_rss."""
    found = report.statistics or {}
    if "anon" in found:
        shmem = found.get("shmem", 0)
        kernel = found.get("kernel")
        if kernel is None:
            kernel = _sum(found, "slab_unreclaimable", "slab_reclaimable", "kernel_stack", "pagetables")
        return MemoryParts(
            anon_bytes=found["anon"],
            file_bytes=max(0, found.get("file", 0) - shmem),
            inactive_file_bytes=found.get("inactive_file"),
            dirty_bytes=_sum(found, "file_dirty", "file_writeback"),
            shmem_bytes=shmem,
            kernel_bytes=max(0, kernel - found.get("slab_reclaimable", 0)) + found.get("sock", 0),
        )
    kernel_counter = report.counters.get("kmem")
    kernel_bytes = None if kernel_counter is None else kernel_counter.usage_kb * 1024
    total = "total_" if "total_rss" in found else ""
    if f"{total}rss" not in found:
        return MemoryParts(kernel_bytes=kernel_bytes)  # the counter is not one of the statistics
    shmem = _shmem(found, total)
    return MemoryParts(
        anon_bytes=found[f"{total}rss"],
        file_bytes=max(0, found.get(f"{total}cache", 0) - shmem),
        inactive_file_bytes=found.get(f"{total}inactive_file"),
        dirty_bytes=_sum(found, f"{total}dirty", f"{total}writeback"),
        shmem_bytes=shmem,
        kernel_bytes=kernel_bytes,
    )


def _shmem(found: Mapping[str, int], total: str = "") -> int:
    """Return tmpfs and shared memory of cgroup v1; old kernels do not name it: cache that is on no list of files."""
    files = _sum(found, f"{total}inactive_file", f"{total}active_file")
    return found.get(f"{total}shmem", max(0, found.get(f"{total}cache", 0) - files))


def _machine_parts(node: KilledNode) -> MemoryParts:
    report = node.report
    pages = report.memory_pages
    if not pages.keys() >= {"active_anon", "inactive_anon", "active_file", "inactive_file"}:
        return MemoryParts()
    size = node.page_bytes
    shmem = pages.get("shmem", 0)
    anon = max(0, pages["active_anon"] + pages["inactive_anon"] - shmem)
    files = pages["active_file"] + pages["inactive_file"]
    kernel = _sum(pages, "slab_unreclaimable", "pagetables", "sec_pagetables") + report.kernel_stack_kb * 1024 // size
    capacity = node.capacity_bytes
    known = anon + files + shmem + kernel + _sum(pages, "free", "free_pcp", "slab_reclaimable", "unevictable")
    huge = min(report.circumstances.huge_pages_kb * 1024, MOST_BYTES)
    free_huge = min(report.circumstances.free_huge_pages_kb * 1024, MOST_BYTES)
    return MemoryParts(
        anon_bytes=anon * size,
        file_bytes=files * size,
        inactive_file_bytes=pages["inactive_file"] * size,
        dirty_bytes=_sum(pages, "dirty", "writeback") * size,
        shmem_bytes=shmem * size,
        kernel_bytes=kernel * size,
        other_bytes=None if capacity is None or "free" not in pages else max(0, capacity - known * size - huge),
        huge_page_bytes=huge if report.circumstances.huge_pages else None,
        free_huge_page_bytes=free_huge if report.circumstances.huge_pages else None,
    )


def _sum(figures: Mapping[str, int], *names: str) -> int:
    return sum([figures.get(name, 0) for name in names])


# ---- who held it -----------------------------------------------------------------------------------------------------

_TOLERANCE = 16
"""Of the memory of a process: the kernel counts it per CPU, and the victim's line is later than the table."""
_MOST_STEPS = 6
_NAMED = (CgroupLevel.POD, CgroupLevel.CONTAINER)
_KINDS = {
    CgroupLevel.MACHINE: "machine",
    CgroupLevel.UNKNOWN: "unknown",
    CgroupLevel.POD: "pod",
    CgroupLevel.CONTAINER: "container",
}
_SPLIT = (("anon", "anonymous memory"), ("file", "page cache"), ("shmem", "tmpfs and shared memory"))
_REST = (("kernel", "kernel memory"), ("other", "not in the report"), ("swap", "swap"))
_OF_PROCESS = {"file": "mapped files", "kernel": "page tables"}


def tree_of(
    node: KilledNode, shortage: Shortage | None, candidates: Candidates, most_shown: int
) -> tuple[TreeRow, ...]:
    """Return who held the memory: what ran out, the victim's pod and container below it, and the largest processes.

    Only what the report says: a cgroup's report lists the processes of that cgroup, and which container a process
    belongs to it says of the victim alone. Pods and containers have uids and ids for names; empty: nothing is known.
    """
    report, victims = node.report, node.report.victims
    lone = [each for each in victims.values() if each.rss_parts_kb and each.pid not in report.tasks][:most_shown]
    if shortage is None and not candidates.pids and not lone:
        return ()
    above = _above(node, MemoryParts() if shortage is None else shortage.parts)
    depth = len(above)
    places = sorted(range(len(candidates.tasks)), key=candidates.resident_bytes.__getitem__, reverse=True)
    killed = {place for pid in victims if (place := candidates.place(pid)) is not None}
    # A victim is shown, however small.
    kept = {*[*dict.fromkeys([*(place for place in places if place in killed), *places])][:most_shown]}
    shown = [place for place in places if place in kept]
    listed = dict(_each_below(node, depth, most_shown))
    below = [*listed.values()] if report.task_cgroup in listed else [*_between(node, depth)]
    dead_depth = depth
    if below and (lone or killed.intersection(shown)):
        own = listed.get(report.task_cgroup or "", below[-1])
        way = below.index(own) + 1
        dead_depth = own.depth + 1
    else:
        below, way = [*listed.values()], 0
    dead = [_lone(each, dead_depth) for each in lone]
    dead += [_process(node, candidates, place, dead_depth) for place in shown if place in killed]
    alive = [_process(node, candidates, place, depth) for place in shown if place not in killed]
    if not way:
        processes = [_process(node, candidates, place, depth) for place in shown]
        dead, alive, way = [*(_lone(each, depth) for each in lone), *processes], [], len(below)
    rest = [_others(node, candidates, shown, depth)] if len(places) > len(shown) else []
    return (*above, *below[:way], *dead, *below[way:], *alive, *rest)


def _row(
    kind: str, depth: int, name: str, used: int | None = None, limit: int | None = None, **parts: int | None
) -> TreeRow:
    """Return a bar; resident memory is told apart where the report does that."""
    is_process = kind in {"process", "others"}
    found = []
    if not is_process and parts.get("anon") is None and used:
        found.append(MemoryPart("usage", used, "rss"))
    split = _SPLIT if parts.get("anon") is not None else (("rss", "resident memory"),)
    for part, words in (*split, *_REST):
        if amount := min(MOST_BYTES, parts.get(part) or 0):
            found.append(MemoryPart(_OF_PROCESS.get(part, words) if is_process else words, amount, part))
    return TreeRow(depth, kind, name, tuple(found), None if used is None else min(MOST_BYTES, used), limit)


def _name(place: CgroupPlace, path: str) -> str:
    if place.level is CgroupLevel.CONTAINER:
        return place.container_id
    return place.pod_uid if place.level is CgroupLevel.POD else path


def _above(node: KilledNode, parts: MemoryParts) -> list[TreeRow]:
    """Return the cgroup that ran out, below its pod if it is a container's."""
    report, place = node.report, node.ran_out
    memory, both = report.counters.get("memory"), report.counters.get("memory+swap")
    anon, file, shmem, kernel = parts.anon_bytes, parts.file_bytes, parts.shmem_bytes, parts.kernel_bytes
    if node.is_machine:
        limit, used, swapped, other = node.capacity_bytes, None, None, parts.other_bytes
        pages = [task.swap_pages for task in report.tasks.values()]
        if report.swap_kb and pages and None not in pages:
            swapped = sum(filter(None, pages)) * node.page_bytes
    else:
        limit = None if memory is None or memory.limit_kb is None else memory.limit_kb * 1024
        used = None if memory is None else memory.usage_kb * 1024
        swapped, _ = _cgroup_swap(report)
        swapped = None if both is None and "swap" not in report.counters else swapped
        other = None if used is None or anon is None else max(0, used - sum(filter(None, (anon, file, shmem, kernel))))
    is_container = place.level is CgroupLevel.CONTAINER
    rows = [_row("pod", 0, place.pod_uid)] if is_container else []
    kind, name = _KINDS.get(place.level, "cgroup"), _name(place, report.oom_cgroup or "")
    figures = {"anon": anon, "file": file, "shmem": shmem, "kernel": kernel, "other": other, "swap": swapped}
    return [*rows, _row(kind, len(rows), name, used, limit, **figures)]


def _each_below(node: KilledNode, depth: int, most_shown: int) -> Iterator[tuple[str, TreeRow]]:
    """Yield the cgroups below the one that ran out with what each holds itself: kernels before 5.3 list them."""
    report = node.report
    root = (report.oom_cgroup or report.statistics_of or "").rstrip("/")
    below = {path: own for path, own in report.statistics_below.items() if path.startswith(f"{root}/")}
    sizes = {path: _sum(own, "rss", "cache", "swap") for path, own in below.items()}
    shown = {*sorted(sizes, key=sizes.__getitem__, reverse=True)[:most_shown], report.task_cgroup}
    for path, own in below.items():
        if path not in shown or not (sizes[path] or path == report.task_cgroup):
            continue
        place, shmem = place_of(path), _shmem(own)
        figures = {"file": max(0, own.get("cache", 0) - shmem), "shmem": shmem, "swap": own.get("swap")}
        steps = min(path[len(root) + 1 :].count("/"), _MOST_STEPS)
        kind, used = _KINDS.get(place.level, "cgroup"), _sum(own, "rss", "cache")
        yield path, _row(kind, depth + steps, _name(place, path), used, anon=own.get("rss", 0), **figures)


def _between(node: KilledNode, depth: int) -> Iterator[TreeRow]:
    """Yield the cgroups between the one that ran out and the victim."""
    victim, ran_out, path = node.victim, node.ran_out, node.report.task_cgroup
    if not path or victim == ran_out:
        return
    if victim.level in _NAMED and victim.pod_uid and victim.pod_uid != ran_out.pod_uid:
        yield _row("pod", depth, victim.pod_uid)
        depth += 1
    if victim.level is CgroupLevel.CONTAINER and ran_out.level is not CgroupLevel.CONTAINER:
        yield _row("container", depth, victim.container_id)
    elif victim.level not in _NAMED and path != node.report.oom_cgroup:
        yield _row("cgroup", depth, path)


def _process(node: KilledNode, candidates: Candidates, place: int, depth: int) -> TreeRow:
    size, task = node.page_bytes, candidates.tasks[place]
    rss = task.rss_pages * size
    victim, split = node.report.victims.get(task.pid), None
    if task.rss_parts_pages is not None:
        split = [pages * size for pages in task.rss_parts_pages]
    elif victim is not None and victim.rss_parts_kb:
        parts = [kilobytes * 1024 for kilobytes in victim.rss_parts_kb]
        if abs(sum(parts) - rss) * _TOLERANCE <= rss:  # else it has grown or shrunk since the table was written
            split = parts
    anon, file, shmem = split or (None, None, None)
    figures = {"anon": anon, "file": file, "shmem": shmem, "rss": rss, "kernel": candidates.table_bytes[place]}
    swap = None if task.swap_pages is None else task.swap_pages * size
    used = candidates.resident_bytes[place]
    row = _row("process", depth, f"{task.name} (pid {task.pid})", used, swap=swap, **figures)
    return replace(row, mark="killed") if victim is not None else row


def _lone(victim: Victim, depth: int) -> TreeRow:
    """Return a victim that is in no table, by its own line: reports are rate limited."""
    anon, file, shmem = (kilobytes * 1024 for kilobytes in victim.rss_parts_kb or (0, 0, 0))
    name = f"{victim.name} (pid {victim.pid})"
    row = _row("process", depth, name, anon + file + shmem, anon=anon, file=file, shmem=shmem)
    return replace(row, mark="killed")


def _others(node: KilledNode, candidates: Candidates, shown: Sequence[int], depth: int) -> TreeRow:
    """Return those that are not shown, together."""
    columns = (candidates.rss_pages, candidates.swap_pages, candidates.table_bytes)
    resident, swapped, tables = [sum(column) - sum(map(column.__getitem__, shown)) for column in columns]
    size, number = node.page_bytes, len(candidates.tasks) - len(shown)
    name = f"{number:,} other process{'' if number == 1 else 'es'}"
    used = (resident + swapped) * size + tables
    return _row("others", depth, name, used, rss=resident * size, kernel=tables, swap=swapped * size)
