"""A machine's memory: zones, the watermarks below which the kernel acts, and MemAvailable.

The kernel never hands out its last page. Free memory below ``low`` wakes kswapd, which reclaims until ``high``;
below ``min`` an allocation must reclaim by itself, and where that gains nothing the OOM killer comes. cgroups are in
``memcg``; nothing here knows of them.

Sources: Linux mm/page_alloc.c (setup_per_zone_wmarks, setup_per_zone_lowmem_reserve, calculate_totalreserve_pages,
calculate_min_free_kbytes), mm/khugepaged.c (set_recommended_min_free_kbytes), mm/show_mem.c (si_mem_available). Zones
are those of x86-64.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import isqrt
from typing import Literal

from msgspec import Struct

from podqos.kernel.build import PAGE_BLOCK_PAGES, PAGE_BYTES

WATERMARK_SCALE_FACTOR = 10
"""vm.watermark_scale_factor: ten thousandths of a zone between two watermarks."""

LOWMEM_RESERVE_RATIO = {"DMA": 256, "DMA32": 256, "Normal": 32}
"""vm.lowmem_reserve_ratio: a lower zone keeps 1/ratio of the zones above it from allocations that could use those."""

HUGE_PAGES_FROM_BYTES = 512 * 2**20

DMA_PAGES = 3840
DMA32_PAGES = 3 * 2**30 // PAGE_BYTES - DMA_PAGES
"""How an x86-64 machine's first 3 GiB divide, less what firmware and kernel image take."""


class Zone(Struct, frozen=True, gc=False):
    """A range of physical memory, lowest first: DMA, DMA32, Normal, Movable."""

    name: str
    managed_pages: int


class ZoneWatermarks(Struct, frozen=True, gc=False):
    """The marks of one zone, as ``/proc/zoneinfo`` shows them."""

    zone: Zone
    min_pages: int
    low_pages: int
    high_pages: int
    lowmem_reserve_pages: int = 0
    """The last number of ``protection``: what ordinary allocations must leave untouched here."""


class Watermarks(Struct, frozen=True, gc=False):
    """The marks of a machine in terms of its free memory.

    The first three include what the lower zones keep back, so that they compare with MemFree.
    """

    min_bytes: int
    low_bytes: int
    high_bytes: int
    zone_low_bytes: int = 0
    """The low marks alone: what MemAvailable leaves of page cache."""
    total_reserve_bytes: int = 0
    """What MemAvailable takes off free memory."""


class Machine(Struct, frozen=True, gc=False):
    """What of a machine decides about memory."""

    total_bytes: int
    watermarks: Watermarks
    swap_bytes: int = 0
    cgroup_version: Literal[1, 2] = 2
    recursive_protection: bool = True
    """cgroup2 mounted with ``memory_recursiveprot``, as systemd does: unclaimed protection passes to children."""

    @property
    def oom_total_pages(self) -> int:
        """What thousandths of ``oom_score_adj`` are of in a global OOM: RAM and swap."""
        return (self.total_bytes + self.swap_bytes) // PAGE_BYTES


def machine(
    total_bytes: int,
    *,
    swap_bytes: int = 0,
    cgroup_version: Literal[1, 2] = 2,
    recursive_protection: bool = True,
) -> Machine:
    """Return an x86-64 machine with the kernel's default watermarks for that much memory."""
    zones = x86_zones(total_bytes)
    marks = watermarks(zone_watermarks(zones, default_min_free_kib(zones)))
    return Machine(total_bytes, marks, swap_bytes, cgroup_version, recursive_protection)


def x86_zones(total_bytes: int) -> tuple[Zone, ...]:
    """Divide memory as a 64-bit PC does; a real machine differs by what its firmware keeps."""
    pages = total_bytes // PAGE_BYTES
    dma = min(pages, DMA_PAGES)
    dma32 = min(pages - dma, DMA32_PAGES)
    sizes = (("DMA", dma), ("DMA32", dma32), ("Normal", pages - dma - dma32))
    return tuple(Zone(name, size) for name, size in sizes if size)


def default_min_free_kib(zones: Sequence[Zone], *, huge_pages: bool = True) -> int:
    """Return vm.min_free_kbytes as a machine with these zones boots.

    With transparent huge pages on (``madvise`` is enough) khugepaged raises it, to at most a twentieth of memory;
    machines below 512 MiB have none.
    """
    pages = sum(zone.managed_pages for zone in zones)
    usual = min(max(isqrt(pages * PAGE_BYTES // 1024 * 16), 128), 262144)
    if not huge_pages or pages * PAGE_BYTES < HUGE_PAGES_FROM_BYTES:
        return usual
    populated = sum(1 for zone in zones if zone.managed_pages and zone.name != "Movable")
    # Two blocks per zone, and one for every pair of the three kinds of pages that may steal from each other.
    wanted = PAGE_BLOCK_PAGES * populated * (2 + 3 * 3)
    return max(usual, min(wanted, pages // 20) * PAGE_BYTES // 1024)


def zone_watermarks(
    zones: Sequence[Zone], min_free_kib: int, scale_factor: int = WATERMARK_SCALE_FACTOR
) -> tuple[ZoneWatermarks, ...]:
    """Divide vm.min_free_kbytes among the zones by size, and set the other marks above it."""
    pages_min = min_free_kib * 1024 // PAGE_BYTES
    lowmem_pages = sum(zone.managed_pages for zone in zones if zone.name != "Movable")
    marks = []
    for index, zone in enumerate(zones):
        managed = zone.managed_pages
        share = pages_min * managed // lowmem_pages if lowmem_pages else 0
        lowest = min(max(managed // 1024, 32), 128) if zone.name == "Movable" else share
        gap = max(share // 4, managed * scale_factor // 10000)
        ratio = LOWMEM_RESERVE_RATIO.get(zone.name)
        above = sum(other.managed_pages for other in zones[index + 1 :])
        reserve = above // ratio if ratio and managed else 0
        marks.append(ZoneWatermarks(zone, lowest, lowest + gap, lowest + 2 * gap, reserve))
    return tuple(marks)


def watermarks(zones: Sequence[ZoneWatermarks]) -> Watermarks:
    """Add the marks of all zones up to those of the machine."""

    def floor(mark: int, zone: ZoneWatermarks) -> int:
        return min(zone.zone.managed_pages, mark + zone.lowmem_reserve_pages)

    return Watermarks(
        min_bytes=PAGE_BYTES * sum(floor(zone.min_pages, zone) for zone in zones),
        low_bytes=PAGE_BYTES * sum(floor(zone.low_pages, zone) for zone in zones),
        high_bytes=PAGE_BYTES * sum(floor(zone.high_pages, zone) for zone in zones),
        zone_low_bytes=PAGE_BYTES * sum(zone.low_pages for zone in zones),
        total_reserve_bytes=PAGE_BYTES * sum(floor(zone.high_pages, zone) for zone in zones),
    )


def mem_available_bytes(
    marks: Watermarks, *, free_bytes: int, file_bytes: int, reclaimable_kernel_bytes: int = 0
) -> int:
    """Return MemAvailable: free memory, and what of caches can go without swapping or thrashing.

    ``file_bytes`` is Active(file) + Inactive(file), ``reclaimable_kernel_bytes`` is KReclaimable.
    """
    available = free_bytes - marks.total_reserve_bytes
    for cache_bytes in (file_bytes, reclaimable_kernel_bytes):
        available += cache_bytes - min(cache_bytes // 2, marks.zone_low_bytes)
    return max(0, available)
