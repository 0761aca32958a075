"""What an allocation leads to: room, reclaim, a delay, or an OOM somewhere up the tree.

Every page needs a free page of the machine and room in each cgroup from its own up to the root. A cgroup without room
reclaims within its subtree; the first that gains too little is out of memory. A whole amount is charged at once as if
page by page: what fits before the first OOM is charged, the caller retries the rest after the kill. ``charge`` itself
is what tests hold against the real kernel, and ``growth`` and the forecast against it.

Sources: Linux mm/memcontrol.c (try_charge_memcg, calculate_high_delay), mm/page_alloc.c (__alloc_pages_slowpath).
kswapd and reclaim above ``memory.high`` are assumed to take no time.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum

from msgspec import Struct
from msgspec.structs import replace

from podqos.kernel.build import HZ, PAGE_BYTES
from podqos.kernel.cgroup import ROOT
from podqos.kernel.memcg import Kind, Memcg, Memory
from podqos.kernel.reclaim import Taken, kswapd, reclaim, reclaimable_bytes

CHARGE_BATCH_PAGES = 64
HIGH_DELAY_PRECISION_BITS = 20
HIGH_DELAY_SCALING_BITS = 14
HIGH_DELAY_MAX_SECONDS = 2


class MemoryBound(StrEnum):
    """What can be exhausted."""

    MACHINE = "machine"
    """Free memory down to the ``min`` watermark: a global OOM."""
    MEMORY = "memory.max"
    MEMSW = "memory.memsw.limit_in_bytes"
    """v1: memory and swap together; swapping does not help."""


class BoundRoom(Struct, frozen=True, gc=False):
    """How much more one bound allows."""

    path: str
    bound: MemoryBound
    limit_bytes: int
    free_bytes: int
    """Left before anything has to be reclaimed; below zero where a limit was lowered."""
    reclaimable_bytes: int = 0

    @property
    def until_oom_bytes(self) -> int:
        """What can still be charged when all that can be reclaimed is."""
        return self.free_bytes + self.reclaimable_bytes


class OutOfMemory(Struct, frozen=True, gc=False):
    """A bound that reclaim could not relieve."""

    path: str
    """The cgroup that ran out, whose subtree the victim comes from; the root for a global OOM."""
    bound: MemoryBound
    limit_bytes: int
    missing_bytes: int
    oom_total_pages: int
    """What thousandths of ``oom_score_adj`` are of (see ``oom``)."""
    kills: bool = True
    """False where v1's ``oom_kill_disable`` lets the allocating process sleep instead."""


class Throttle(Struct, frozen=True, gc=False):
    """A cgroup above its ``memory.high`` that reclaim could not bring back: its allocations are slowed."""

    path: str
    over_bytes: int
    delay_usec: int
    """The sleep after each batch of 64 pages (256 KiB)."""


class Charge(Struct, frozen=True, gc=False):
    """The result of one allocation."""

    charged_bytes: int
    recycled_bytes: int = 0
    """File pages that were read and dropped again, because there is room for no more at a time."""
    taken: tuple[Taken, ...] = ()
    out_of_memory: OutOfMemory | None = None
    throttle: Throttle | None = None


def charge(memory: Memory, path: str, kind: Kind, wanted_bytes: int, *, hz: int = HZ) -> Charge:
    """Allocate in a cgroup. Charging 0 enforces limits that were lowered."""
    assert kind is not Kind.SWAP, "memory is swapped out by reclaim, never allocated as swap"
    taken: list[Taken] = []
    allowed, tightest = _make_room(memory, path, wanted_bytes, taken)
    memory.put(path, kind, allowed)
    if memory.free_bytes < memory.machine.watermarks.low_bytes:
        taken += kswapd(memory)
    throttle = _keep_below_high(memory, memory[path], taken, hz)
    if tightest is None:
        return Charge(allowed, taken=tuple(taken), throttle=throttle)
    missing = wanted_bytes - min(allowed, tightest.until_oom_bytes)
    if allowed > 0 and kind in {Kind.ACTIVE_FILE, Kind.INACTIVE_FILE}:
        return Charge(allowed, missing, tuple(taken), throttle=throttle)
    return Charge(allowed, 0, tuple(taken), _out_of_memory(memory, tightest, missing), throttle)


def rooms(memory: Memory, path: str) -> Iterator[BoundRoom]:
    """Yield what bounds allocations in ``path``, as the kernel asks: the machine, its own limits, those above.

    ``with_reclaim`` adds what each could gain.
    """
    yield machine_room(memory)
    for memcg in memory[path].chain():
        settings = memcg.settings
        if settings.memsw_max_bytes is not None and memory.machine.cgroup_version == 1:
            yield _room(memory, memcg.path, MemoryBound.MEMSW, settings.memsw_max_bytes)
        if settings.max_bytes is not None:
            yield _room(memory, memcg.path, MemoryBound.MEMORY, settings.max_bytes)


def machine_room(memory: Memory) -> BoundRoom:
    """Return what the machine has above its ``min`` watermark."""
    machine = memory.machine
    return _room(memory, ROOT, MemoryBound.MACHINE, machine.total_bytes - machine.watermarks.min_bytes)


def with_reclaim(memory: Memory, room: BoundRoom) -> BoundRoom:
    """Return a room with what reclaim could add to it."""
    gain = reclaimable_bytes(memory, room.path, may_swap=room.bound is not MemoryBound.MEMSW)
    return replace(room, reclaimable_bytes=gain)


def high_delay_usec(usage_bytes: int, high_bytes: int, charged_pages: int, hz: int = HZ) -> int:
    """Return how long an allocating process sleeps on its way back to user mode; zero where it is not worth it."""
    usage_pages, high_pages = usage_bytes // PAGE_BYTES, high_bytes // PAGE_BYTES
    if usage_pages <= high_pages:
        return 0
    overage = ((usage_pages - high_pages) << HIGH_DELAY_PRECISION_BITS) // max(1, high_pages)
    jiffies = overage * overage * hz >> HIGH_DELAY_PRECISION_BITS >> HIGH_DELAY_SCALING_BITS
    jiffies = min(jiffies * charged_pages // CHARGE_BATCH_PAGES, HIGH_DELAY_MAX_SECONDS * hz)
    return 0 if jiffies <= hz // 100 else jiffies * 1_000_000 // hz


def _room(memory: Memory, path: str, bound: MemoryBound, limit_bytes: int) -> BoundRoom:
    memcg = memory[path]
    used = memcg.usage_bytes + (memcg.swap_usage_bytes if bound is MemoryBound.MEMSW else 0)
    return BoundRoom(path, bound, limit_bytes, limit_bytes - used)


def _make_room(memory: Memory, path: str, wanted_bytes: int, taken: list[Taken]) -> tuple[int, BoundRoom | None]:
    """Reclaim wherever room is lacking; returns what can be charged, and the bound that allows no more if one does."""
    short = [with_reclaim(memory, room) for room in rooms(memory, path) if room.free_bytes < wanted_bytes]
    if not short:
        return wanted_bytes, None
    tightest = min(short, key=lambda room: room.until_oom_bytes)
    allowed = max(0, min(wanted_bytes, tightest.until_oom_bytes))
    # From the leaf up, the machine last: what is gained below also relieves those above.
    for room in sorted(short, key=lambda room: room.bound is MemoryBound.MACHINE):
        lacking = allowed - _room(memory, room.path, room.bound, room.limit_bytes).free_bytes
        if lacking > 0:
            taken += reclaim(memory, room.path, lacking, may_swap=room.bound is not MemoryBound.MEMSW)
    # Reclaim in one cgroup shifts protection in others: what was promised may have become a little less.
    left = min(rooms(memory, path), key=lambda room: room.free_bytes)
    if left.free_bytes < allowed:
        return max(0, left.free_bytes), left
    return allowed, tightest if tightest.until_oom_bytes < wanted_bytes else None


def _keep_below_high(memory: Memory, leaf: Memcg, taken: list[Taken], hz: int) -> Throttle | None:
    """Reclaim what is above ``memory.high``; where that fails the worst excess slows the allocating process."""
    worst: Throttle | None = None
    for memcg in leaf.chain():
        high = memcg.settings.high_bytes
        if high is None or memcg.usage_bytes <= high:
            continue
        taken += reclaim(memory, memcg.path, memcg.usage_bytes - high)
        if memcg.usage_bytes > high:
            delay = high_delay_usec(memcg.usage_bytes, high, CHARGE_BATCH_PAGES, hz)
            if worst is None or delay > worst.delay_usec:
                worst = Throttle(memcg.path, memcg.usage_bytes - high, delay)
    return worst


def _out_of_memory(memory: Memory, room: BoundRoom, missing_bytes: int) -> OutOfMemory:
    if room.bound is MemoryBound.MACHINE:
        return OutOfMemory(ROOT, room.bound, room.limit_bytes, missing_bytes, memory.machine.oom_total_pages)
    settings = memory[room.path].settings
    kills = not (settings.oom_kill_disable and memory.machine.cgroup_version == 1)
    total_pages = memory.oom_total_pages(room.path)
    return OutOfMemory(room.path, room.bound, room.limit_bytes, missing_bytes, total_pages, kills)
