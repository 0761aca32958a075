"""Which memory ran out in an OOM, by how much, what held it, and which causes that leaves: all from the report's figures."""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct


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


class Shortage(Struct, frozen=True, rename="camel", gc=False):
    """What ran out, and how far."""

    counter: str
    """memory, memory+swap, kmem or swap of a cgroup; free for the machine."""
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


class Cause(StrEnum):
    """What was behind an OOM."""

    OWN_LIMIT = "OwnLimit"
    """The container, or its pod, reached its own limit."""
    OWN_GROWTH = "OwnGrowth"
    """The victim is the one that was furthest above its request."""
    NEIGHBOUR = "Neighbour"
    """Another process was further above its request than the victim."""
    SYSTEM_DAEMONS = "SystemDaemons"
    """What runs beside pods used more than the node reserves for it."""
    PAGE_CACHE = "PageCache"
    """Page cache that the kernel could not drop in time: the kubelet counts it as free."""
    TMPFS = "Tmpfs"
    """tmpfs, volumes in memory and shared memory: no process of the ranking is charged for what none maps."""
    KERNEL_MEMORY = "KernelMemory"
    """Slab, page tables, stacks of the kernel."""
    THRESHOLD = "ThresholdTooLow"
    """The kubelet's threshold was crossed, and memory ran out before its next pass: the race."""
    ELSEWHERE = "MemoryElsewhere"
    """There was memory that the request could not use (``Shortage.kind`` says why)."""


class AutopsyCause(Struct, frozen=True, rename="camel", gc=False):
    """A cause with the figures that decide."""

    cause: Cause
    held_bytes: int | None = None
    """How much: of OwnGrowth and Neighbour what the process uses; of ThresholdTooLow what the kubelet saw as free."""
    against_bytes: int | None = None
    """What that is measured by: the limit or the machine, a request, a reservation, a threshold."""
    pid: int | None = None
    """Of OwnGrowth and Neighbour: the process."""
    name: str = ""
    growth_bytes_per_second: int | None = None
    """Of ThresholdTooLow: memory was lost faster than this, or the kubelet would have been first."""
