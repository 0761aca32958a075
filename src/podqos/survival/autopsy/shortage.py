"""Which memory ran out in an OOM, by how much and what held it, by the figures of the report."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from msgspec import Struct

from podqos.kernel.oom_report import Constraint, OOMReport, ReportCounter, ReportZone
from podqos.survival.autopsy.facts import KilledNode

_MOST_ZONES = 64
_ZONES = ("DMA", "DMA32", "Normal", "HighMem", "Movable")
_BY_HAND = -1
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
    """The kill was asked for by hand (sysrq f, order=-1)."""


OF_NO_USE = set(ShortageKind) - {ShortageKind.LIMIT, ShortageKind.WATERMARKS}


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
    """Of the machine: what no figure of the report accounts for, such as drivers, huge pages, a balloon."""


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
    return Shortage(
        name,
        usage_bytes,
        limit_bytes,
        lacking_bytes=max(node.page_bytes, usage_bytes + asked - limit_bytes),
        failures=counter.failures,
        parts=_cgroup_parts(report),
    )


def _fullness(counter: ReportCounter) -> float:
    return counter.usage_kb / (counter.limit_kb or 1)


def _machine_shortage(node: KilledNode) -> Shortage | None:
    report = node.report
    if not report.zones:
        return None
    allowed = _allowed_zones(report)
    asked_pages = 1 << max(0, report.order or 0)
    places = {(zone.node, zone.name) for zone in allowed}
    zones = [_zone(zone, node, asked_pages, is_allowed=(zone.node, zone.name) in places) for zone in report.zones]
    inside = [zone for zone in zones if zone.is_allowed] or zones
    elsewhere = sum(max(0, zone.free_bytes - zone.kept_bytes) for zone in zones if not zone.is_allowed)
    constrained = report.constraint in {Constraint.CPUSET, Constraint.MEMORY_POLICY}
    if constrained:
        # The report leaves out the zones of nodes that are not allowed; the sum of all is still there.
        elsewhere += max(0, free_bytes(node) - sum(zone.free_bytes for zone in zones))
    lacking: int | None = min(shortage.lacking_bytes for shortage in inside)
    kind = ShortageKind.WATERMARKS
    if elsewhere > asked_pages * node.page_bytes:
        kind = ShortageKind.NODES if constrained else ShortageKind.ZONES
    if not lacking:
        # Others may have freed memory since; but what is in pieces is still of no use.
        lacking = None
        largest = [zone.largest_block_kb for zone in allowed]
        if asked_pages > 1 and all(
            each is not None and each * 1024 < asked_pages * node.page_bytes for each in largest
        ):
            kind = ShortageKind.FRAGMENTATION
    if report.order == _BY_HAND or report.gfp_mask == 0:
        kind = ShortageKind.SYSRQ if report.order == _BY_HAND else ShortageKind.PAGE_FAULT
        lacking = None
    return Shortage(
        "free",
        sum(zone.free_kb for zone in allowed) * 1024,
        sum(zone.min_kb for zone in allowed) * 1024,
        kind,
        lacking,
        free_elsewhere_bytes=elsewhere,
        zones=tuple(zones[:_MOST_ZONES]),
        parts=_machine_parts(node),
    )


def free_bytes(node: KilledNode) -> int:
    """Return what is free of the whole machine."""
    pages = node.report.memory_pages.get("free")
    return sum(zone.free_kb for zone in node.report.zones) * 1024 if pages is None else pages * node.page_bytes


def _allowed_zones(report: OOMReport) -> list[ReportZone]:
    """Return the zones that may serve the request; all where none of those that may is in the report."""
    nodes = report.nodes if report.constraint in {Constraint.CPUSET, Constraint.MEMORY_POLICY} else None
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


def _zone(zone: ReportZone, node: KilledNode, asked_pages: int, *, is_allowed: bool) -> ZoneShortage:
    """Return what the kernel keeps of a zone: min watermark and reserve, as ``__zone_watermark_ok`` counts."""
    report = node.report
    # Of DMA32 and HighMem a kernel has one: on 32 bit the zone after DMA is Normal.
    absent = "DMA32" if _has(report, "HighMem") else "HighMem"
    names = [each for each in _ZONES if each != absent]
    highest = _highest_zone(report)
    index = names.index(highest if highest in names else "Normal")
    reserves = zone.reserve_pages
    kept = zone.min_kb * 1024 + (reserves[min(index, len(reserves) - 1)] * node.page_bytes if reserves else 0)
    free = zone.free_kb * 1024
    return ZoneShortage(
        node=zone.node,
        zone=zone.name,
        free_bytes=free,
        kept_bytes=kept,
        lacking_bytes=max(0, kept + asked_pages * node.page_bytes - free),
        is_allowed=is_allowed,
    )


def _has(report: OOMReport, zone: str) -> bool:
    return any(each.name == zone for each in report.zones)


def _cgroup_parts(report: OOMReport) -> MemoryParts:
    """Return what a cgroup holds, by its memory.stat: v2 says anon, v1 rss, with those below it as total_rss."""
    found = report.statistics
    if not found:
        return MemoryParts()
    if "anon" in found:
        shmem = found.get("shmem", 0)
        kernel = found.get(
            "kernel", _sum(found, "slab_unreclaimable", "slab_reclaimable", "kernel_stack", "pagetables")
        )
        return MemoryParts(
            anon_bytes=found["anon"],
            file_bytes=max(0, found.get("file", 0) - shmem),
            inactive_file_bytes=found.get("inactive_file"),
            dirty_bytes=_sum(found, "file_dirty", "file_writeback"),
            shmem_bytes=shmem,
            kernel_bytes=max(0, kernel - found.get("slab_reclaimable", 0)) + found.get("sock", 0),
        )
    total = "total_" if "total_rss" in found else ""
    if f"{total}rss" not in found:
        return MemoryParts()
    cache, files = found.get(f"{total}cache", 0), _sum(found, f"{total}inactive_file", f"{total}active_file")
    # Old kernels do not name shmem; it is cache that is on no list of files.
    shmem = found.get(f"{total}shmem", max(0, cache - files))
    kernel_counter = report.counters.get("kmem")
    return MemoryParts(
        anon_bytes=found[f"{total}rss"],
        file_bytes=max(0, cache - shmem),
        inactive_file_bytes=found.get(f"{total}inactive_file"),
        dirty_bytes=_sum(found, f"{total}dirty", f"{total}writeback"),
        shmem_bytes=shmem,
        kernel_bytes=None if kernel_counter is None else kernel_counter.usage_kb * 1024,
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
    return MemoryParts(
        anon_bytes=anon * size,
        file_bytes=files * size,
        inactive_file_bytes=pages["inactive_file"] * size,
        dirty_bytes=_sum(pages, "dirty", "writeback") * size,
        shmem_bytes=shmem * size,
        kernel_bytes=kernel * size,
        other_bytes=None if capacity is None or "free" not in pages else max(0, capacity - known * size),
    )


def _sum(figures: Mapping[str, int], *names: str) -> int:
    return sum(figures.get(name, 0) for name in names)
