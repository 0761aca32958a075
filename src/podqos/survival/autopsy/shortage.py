"""Which memory ran out in an OOM, by how much and what held it, by the figures of the report."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from msgspec import Struct

from podqos.kernel.oom_report import OOMReport, ReportCounter, ReportZone
from podqos.survival.autopsy.facts import CONSTRAINED, MOST_BYTES, KilledNode

_MOST_ZONES = 64
_BY_KIND_SINCE = (4, 4)  # before it, a free block counts whomever it is kept for
_NEARLY_FULL = 90
_MUCH_CMA = 20  # parts of the memory
_ZONES = ("DMA", "DMA32", "Normal", "HighMem", "Movable")
_SWAP = "swap"

# The lowest bits of gfp_mask, the same in all these kernels: include/linux/gfp_types.h.
_GFP_DMA, _GFP_HIGHMEM, _GFP_DMA32, _GFP_MOVABLE = 1, 2, 4, 8


class ShortageKind(StrEnum):
    """Why there was no page to be had."""

    LIMIT = "limit"
    """A cgroup reached its limit."""
    WATERMARKS = "watermarks"
    """Every zone that could serve the request was down to what the kernel keeps."""
    FRAGMENTATION = "fragmentation"
    """There was memory, but not so many pages in one piece (order > 0)."""
    ZONES = "zones"
    """The zones that could serve the request were short; zones that could not had memory."""
    NODES = "nodes"
    """The memory nodes that a cpuset or a policy allows were short; others had memory."""
    PAGE_FAULT = "pageFault"
    """A page fault failed (gfp_mask=0): the report does not say what was short, maybe a cgroup's memory."""
    SYSRQ = "sysrq"
    """The kill was asked for by hand (sysrq f)."""
    FREED = "freed"
    """There was enough when the report was written: a process had ended, or had just been killed."""


OF_NO_USE = tuple(kind for kind in ShortageKind if kind not in (ShortageKind.LIMIT, ShortageKind.WATERMARKS))
UNPROVEN = (ShortageKind.PAGE_FAULT, ShortageKind.SYSRQ)
"""Kinds that do not show that any memory was short."""


class ZoneShortage(Struct, frozen=True, rename="camel", gc=False):
    """A zone of the machine's memory, and what the kernel keeps of it."""

    node: int
    zone: str
    """DMA, DMA32, Normal, HighMem, Movable."""
    free_bytes: int
    kept_bytes: int
    """Its min watermark, and its reserve against requests that could be served elsewhere (lowmem_reserve)."""
    lacking_bytes: int
    """What the request lacked here; 0 where there was enough."""
    is_allowed: bool
    """Whether the request could be served here: by its gfp_mask, cpuset and policy."""


class MemoryParts(Struct, frozen=True, rename="camel", gc=False):
    """What the memory that ran out held; None where the report does not say."""

    anon_bytes: int | None = None
    """Of processes."""
    file_bytes: int | None = None
    """Page cache, without tmpfs."""
    inactive_file_bytes: int | None = None
    """The part of it that the kubelet counts as free."""
    dirty_bytes: int | None = None
    """The part of it that is written to disk first, or is being written."""
    shmem_bytes: int | None = None
    """tmpfs, volumes in memory and shared memory."""
    kernel_bytes: int | None = None
    """The kernel's own that it cannot give back: slab, page tables, stacks."""
    other_bytes: int | None = None
    """Of the machine: what no figure of the report accounts for, such as drivers or a balloon."""
    huge_page_bytes: int | None = None
    """Of the machine: set aside for huge pages, used or not."""
    free_huge_page_bytes: int | None = None
    """The part of it that nobody uses."""


class Shortage(Struct, frozen=True, rename="camel", gc=False):
    """What ran out, and how far."""

    counter: str
    """memory, memory+swap or kmem of a cgroup; free for the machine."""
    usage_bytes: int
    """What is used of a limit; what is free of the machine."""
    limit_bytes: int
    """The limit; of the machine the kernel's reserve (the sum of its min watermarks)."""
    kind: ShortageKind = ShortageKind.LIMIT
    lacking_bytes: int | None = None
    """By how much: what was asked for beyond what could be had. None where the report does not say."""
    failures: int | None = None
    """How often the limit was met before (failcnt); None for the machine."""
    free_elsewhere_bytes: int = 0
    """What was free where the request could not be served."""
    zones: tuple[ZoneShortage, ...] = ()
    """Of the machine."""
    parts: MemoryParts = MemoryParts()
    block_bytes: int | None = None
    """With fragmentation: what was asked for in one piece."""
    swap_usage_bytes: int | None = None
    """Of the cgroup, or of the machine."""
    swap_limit_bytes: int | None = None
    """How much it may use; 0: it cannot swap. None where the report does not say, or nothing limits it."""


def shortage_of(node: KilledNode) -> Shortage | None:
    """Return the fullest counter of a cgroup, or what is free of the machine; None where the report does not say."""
    return _machine_shortage(node) if node.is_machine else _limit_shortage(node)


def _limit_shortage(node: KilledNode) -> Shortage | None:
    report = node.report
    # Swap that is full is why nothing could be reclaimed; the OOM killer is called for the others.
    limited = [
        (name, counter, counter.limit_kb)
        for name, counter in report.counters.items()
        if counter.limit_kb and name != _SWAP
    ]
    if not limited:
        return None
    name, counter, limit = max(limited, key=lambda each: _fullness(each[1]))
    usage_bytes, limit_bytes = counter.usage_kb * 1024, (limit or 0) * 1024
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


def _fullness(counter: ReportCounter) -> float:
    return counter.usage_kb / (counter.limit_kb or 1)


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


def _machine_shortage(node: KilledNode) -> Shortage | None:
    report = node.report
    if not report.zones:
        return None
    allowed = _allowed_zones(report)
    asked_pages = 1 << max(0, report.order or 0)
    places = {(zone.node, zone.name) for zone in allowed}
    reserve = _reserve_index(report)
    zones = [
        _zone(zone, node, asked_pages, reserve, is_allowed=(zone.node, zone.name) in places) for zone in report.zones
    ]
    elsewhere = sum(max(0, zone.free_bytes - zone.kept_bytes) for zone in zones if not zone.is_allowed)
    movable_kb = sum(_barred_kb(zone, report) for zone in allowed)
    if movable_kb * _MUCH_CMA > sum(zone.present_kb or zone.free_kb for zone in allowed):
        elsewhere += movable_kb * 1024  # with less, the machine was full all the same
    if node.is_constrained:
        # The report leaves out the zones of nodes that are not allowed; the sum of all is still there.
        elsewhere += max(0, free_bytes(node) - sum(zone.free_bytes for zone in zones))
    kind = _kind(node, allowed, zones, elsewhere)
    lacking = min(zone.lacking_bytes for zone in [zone for zone in zones if zone.is_allowed] or zones)
    lacking = lacking or _below_high_bytes(report.zones, zones, asked_pages * node.page_bytes)
    has_lacking = lacking and kind not in (ShortageKind.FRAGMENTATION, ShortageKind.FREED, *UNPROVEN)
    swap_kb, free_swap_kb = report.swap_kb, report.circumstances.free_swap_kb
    is_swap_known = swap_kb is not None and free_swap_kb is not None
    return Shortage(
        "free",
        sum(zone.free_kb for zone in allowed) * 1024,
        sum(zone.min_kb for zone in allowed) * 1024,
        kind,
        lacking if has_lacking else None,
        free_elsewhere_bytes=elsewhere,
        zones=tuple(zones[:_MOST_ZONES]),
        parts=_machine_parts(node),
        block_bytes=asked_pages * node.page_bytes if kind is ShortageKind.FRAGMENTATION else None,
        swap_usage_bytes=max(0, (swap_kb or 0) - (free_swap_kb or 0)) * 1024 if is_swap_known else None,
        swap_limit_bytes=None if swap_kb is None else swap_kb * 1024,
    )


def _below_high_bytes(zones: list[ReportZone], figures: list[ZoneShortage], asked_bytes: int) -> int:
    """Return what was missing to the high watermark, to which the kernel looks before it kills; 0: nothing."""
    missing = [
        figure.kept_bytes + (max(zone.min_kb, zone.high_kb or 0) - zone.min_kb) * 1024 + asked_bytes - figure.free_bytes
        for zone, figure in zip(zones, figures, strict=True)
        if figure.is_allowed
    ]
    return max(0, min(missing, default=0))


def _kind(node: KilledNode, allowed: list[ReportZone], zones: list[ZoneShortage], elsewhere_bytes: int) -> ShortageKind:
    report = node.report
    asked_bytes = node.page_bytes << max(0, report.order or 0)
    if node.is_by_hand:
        return ShortageKind.SYSRQ
    if report.gfp_mask == 0 and not all(zone.lacking_bytes for zone in zones):
        return ShortageKind.PAGE_FAULT
    if _is_fragmented(node, allowed, zones):
        return ShortageKind.FRAGMENTATION
    inside = [(zone, figures) for zone, figures in zip(report.zones, zones, strict=True) if figures.is_allowed]
    for zone, figures in inside:
        reserved = figures.kept_bytes - zone.min_kb * 1024
        # Before it kills, the kernel looks a last time whether there is more than the high watermark. A little more is
        # what others freed since, and tells nothing about what was full.
        if (
            zone.high_kb is not None
            and figures.free_bytes - reserved - asked_bytes > 2 * max(zone.min_kb, zone.high_kb) * 1024
        ):
            return ShortageKind.FREED
    if elsewhere_bytes > asked_bytes:
        return ShortageKind.NODES if node.is_constrained else ShortageKind.ZONES
    return ShortageKind.WATERMARKS


def _is_fragmented(node: KilledNode, allowed: list[ReportZone], zones: list[ZoneShortage]) -> bool:
    """Whether there was memory, and none of it in so large a piece: free, or page cache that can be dropped."""
    report = node.report
    order = report.order or 0
    if order <= 0:
        return False
    figures = {(figure.node, figure.zone): figure for figure in zones}
    spare = -1
    for zone in allowed:
        free, kept = figures[zone.node, zone.name].free_bytes, figures[zone.node, zone.name].kept_bytes
        reserved = kept - zone.min_kb * 1024
        # A zone whose reserve bars the request does not count, whatever pieces it has.
        is_open = free - reserved >= node.page_bytes << order
        if is_open and (zone.blocks is None or _has_block(node, zone, order)):
            return False
        spare = max(spare, free - kept)
    cached = _sum(report.memory_pages, "active_file", "inactive_file") * node.page_bytes
    return spare >= node.page_bytes << order or cached > sum(zone.min_kb for zone in allowed) * 1024


def _has_block(node: KilledNode, zone: ReportZone, order: int) -> bool:
    """Whether a zone has a free piece that the request may use, as ``__zone_watermark_ok`` looks for it."""
    page_kb = node.page_bytes // 1024
    blocks = zone.blocks or ()
    release = node.report.release
    if release is not None and release < _BY_KIND_SINCE:
        free, least = zone.free_kb, zone.min_kb
        for smaller in range(order):
            free -= sum(block.count * block.size_kb for block in blocks if block.size_kb == page_kb << smaller)
            least //= 2
            if free <= least:
                return False
        return any(block.size_kb >= page_kb << order for block in blocks)
    mask = node.report.gfp_mask
    usable = {"U", "M", "E"} | ({"C"} if mask is not None and mask & _GFP_MOVABLE else set())
    return any(
        block.size_kb >= page_kb << order and (not block.kinds or not usable.isdisjoint(block.kinds))
        for block in blocks
    )


def free_bytes(node: KilledNode) -> int:
    """Return what is free of the whole machine."""
    pages = node.report.memory_pages.get("free")
    return sum(zone.free_kb for zone in node.report.zones) * 1024 if pages is None else pages * node.page_bytes


def _allowed_zones(report: OOMReport) -> list[ReportZone]:
    """Return the zones that may serve the request; all where none of those that may is in the report."""
    nodes = report.nodes if report.constraint in CONSTRAINED else None
    last = _ZONES.index(_highest_zone(report))
    allowed = [
        zone
        for zone in report.zones
        if (nodes is None or zone.node in nodes) and zone.name in _ZONES and _ZONES.index(zone.name) <= last
    ]
    return allowed or report.zones


def _highest_zone(report: OOMReport) -> str:
    mask = report.gfp_mask
    if mask is None or (mask & _GFP_HIGHMEM and mask & _GFP_MOVABLE):
        return "Movable"
    if mask & _GFP_HIGHMEM:
        return "HighMem"
    if mask & _GFP_DMA32:
        return "DMA32"
    return "DMA" if mask & _GFP_DMA else "Normal"


def _reserve_index(report: OOMReport) -> int:
    """Return which of a zone's reserves the request has to leave."""
    # Of DMA32 and HighMem a kernel has one: on 32 bit the zone after DMA is Normal.
    absent = "DMA32" if any(zone.name == "HighMem" for zone in report.zones) else "HighMem"
    names = [each for each in _ZONES if each != absent]
    highest = _highest_zone(report)
    return names.index(highest if highest in names else "Normal")


def _zone(zone: ReportZone, node: KilledNode, asked_pages: int, reserve: int, *, is_allowed: bool) -> ZoneShortage:
    """Return what the kernel keeps of a zone: min watermark and reserve, as ``__zone_watermark_ok`` counts."""
    report, reserves = node.report, zone.reserve_pages
    kept = zone.min_kb * 1024 + (reserves[min(reserve, len(reserves) - 1)] * node.page_bytes if reserves else 0)
    free = (zone.free_kb - _barred_kb(zone, report)) * 1024
    return ZoneShortage(
        node=zone.node,
        zone=zone.name,
        free_bytes=free,
        kept_bytes=kept,
        lacking_bytes=max(0, kept + asked_pages * node.page_bytes - free),
        is_allowed=is_allowed,
    )


def _barred_kb(zone: ReportZone, report: OOMReport) -> int:
    """Return what of a zone's free memory is for movable pages alone, where the request is for others."""
    is_movable = report.gfp_mask is None or bool(report.gfp_mask & _GFP_MOVABLE)
    return 0 if is_movable else min(zone.free_kb, zone.free_cma_kb)


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
    cache, files = found.get(f"{total}cache", 0), _sum(found, f"{total}inactive_file", f"{total}active_file")
    # Old kernels do not name shmem; it is cache that is on no list of files.
    shmem = found.get(f"{total}shmem", max(0, cache - files))
    return MemoryParts(
        anon_bytes=found[f"{total}rss"],
        file_bytes=max(0, cache - shmem),
        inactive_file_bytes=found.get(f"{total}inactive_file"),
        dirty_bytes=_sum(found, f"{total}dirty", f"{total}writeback"),
        shmem_bytes=shmem,
        kernel_bytes=kernel_bytes,
    )


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
    return MemoryParts(
        anon_bytes=anon * size,
        file_bytes=files * size,
        inactive_file_bytes=pages["inactive_file"] * size,
        dirty_bytes=_sum(pages, "dirty", "writeback") * size,
        shmem_bytes=shmem * size,
        kernel_bytes=kernel * size,
        other_bytes=None if capacity is None or "free" not in pages else max(0, capacity - known * size - huge),
        huge_page_bytes=huge if report.circumstances.huge_pages else None,
        free_huge_page_bytes=(
            min(report.circumstances.free_huge_pages_kb * 1024, MOST_BYTES) if report.circumstances.huge_pages else None
        ),
    )


def _sum(figures: Mapping[str, int], *names: str) -> int:
    return sum([figures.get(name, 0) for name in names])
