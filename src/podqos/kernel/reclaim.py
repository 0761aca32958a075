"""What the kernel reclaims under pressure, from which cgroup, and in which order.

File pages go before anything dies: inactive ones first, then active ones; anonymous memory only where there is swap.
Every cgroup of the subtree under pressure loses in proportion to what is reclaimable there, never below ``memory.min``,
and below ``memory.low`` only when nothing else is left.

Source: Linux mm/vmscan.c (shrink_node_memcgs, get_scan_count). Approximate where the kernel is statistical: it
weighs file against anonymous pages by refaults and swappiness and works in small batches; the model takes all file
pages before it swaps, divides exactly, and takes larger batches (``relieve``), so that a full cache costs tens of steps
and not thousands. When nothing is left is exact all the same.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from podqos.kernel.build import PAGE_BYTES
from podqos.kernel.cgroup import ROOT
from podqos.kernel.memcg import Kind, Memcg, Memory
from podqos.kernel.protection import protections

ORDER = (Kind.INACTIVE_FILE, Kind.ACTIVE_FILE, Kind.ANON)

LEAST_BATCH_BYTES = 1 << 20
"""A cgroup at its limit reclaims at least this much at a time, if it can, or a sixteenth of all that is reclaimable."""


class Taken(Struct, frozen=True, gc=False):
    """Memory taken from one cgroup."""

    path: str
    kind: Kind
    size_bytes: int
    below_low: bool
    """It was protected by ``memory.low``, in vain."""


def plan_reclaim(memory: Memory, path: str, wanted_bytes: int, *, may_swap: bool = True) -> tuple[Taken, ...]:
    """Say what reclaim in the subtree of ``path`` would take to gain ``wanted_bytes``, or all that it can."""
    plan = _Plan(memory, memory[path])
    for below_low in (False, True):
        for kind in ORDER:
            if kind is not Kind.ANON or (may_swap and memory.swap_free_bytes > 0):
                wanted_bytes -= plan.take(kind, wanted_bytes, below_low=below_low)
            if wanted_bytes <= 0:
                return tuple(plan.taken)
        if not plan.anything_low:
            break
    return tuple(plan.taken)


def reclaimable_bytes(memory: Memory, path: str, *, may_swap: bool = True) -> int:
    """Return all that reclaim could gain in the subtree of ``path``."""
    everything = memory[path].usage_bytes
    return sum(taken.size_bytes for taken in plan_reclaim(memory, path, everything, may_swap=may_swap))


def reclaim(memory: Memory, path: str, wanted_bytes: int, *, may_swap: bool = True) -> tuple[Taken, ...]:
    """Carry a plan out; returns what was taken."""
    taken = plan_reclaim(memory, path, wanted_bytes, may_swap=may_swap)
    for each in taken:
        if each.kind is Kind.ANON:
            memory.move(each.path, Kind.ANON, Kind.SWAP, each.size_bytes)
        else:
            memory.put(each.path, each.kind, -each.size_bytes)
    return taken


def relieve(memory: Memory, path: str, lacking_bytes: int, *, may_swap: bool = True) -> tuple[Taken, ...]:
    """Reclaim for a cgroup, or the machine, that is over its limit: what is lacking, and a batch more."""
    batch = max(LEAST_BATCH_BYTES, reclaimable_bytes(memory, path, may_swap=may_swap) // 16)
    return reclaim(memory, path, lacking_bytes + batch, may_swap=may_swap)


def kswapd(memory: Memory) -> tuple[Taken, ...]:
    """Reclaim in the background, once less than ``low`` is free: up to ``high``, as far as there is anything."""
    return reclaim(memory, ROOT, max(LEAST_BATCH_BYTES, memory.machine.watermarks.high_bytes - memory.free_bytes))


class _Plan:
    """Reclaim as far as it has been thought through; the memory itself stays as it is."""

    def __init__(self, memory: Memory, target: Memcg) -> None:
        self.taken: list[Taken] = []
        self._memory = memory
        self._memcgs = list(target.subtree())
        self._protection = protections(target, recursive=memory.machine.recursive_protection)
        self._gone: dict[tuple[str, Kind], int] = {}
        self._gone_in_all: dict[str, int] = {}
        self._swapped: dict[str, int] = {}

    @property
    def anything_low(self) -> bool:
        """Whether a second round, below ``memory.low``, could gain anything."""
        return any(protection.low_bytes > protection.min_bytes for protection in self._protection.values())

    def take(self, kind: Kind, wanted_bytes: int, *, below_low: bool) -> int:
        """Take up to that much of one kind; return how much it was."""
        gained = 0
        # One round is enough unless cgroups compete for the last of a swap limit.
        while gained < wanted_bytes and (more := self._round(kind, wanted_bytes - gained, below_low=below_low)):
            gained += more
        return gained

    def _round(self, kind: Kind, wanted_bytes: int, *, below_low: bool) -> int:
        givers = [(memcg, self._spare(memcg, kind, below_low=below_low)) for memcg in self._memcgs]
        givers = [(memcg, spare) for memcg, spare in givers if spare > 0]
        gained = 0
        for (memcg, _), part in zip(givers, divided(wanted_bytes, [spare for _, spare in givers]), strict=True):
            size = self._swap_out(memcg, part) if kind is Kind.ANON else part
            if size:
                self._note(memcg.path, kind, size, below_low=below_low)
                gained += size
        return gained

    def _spare(self, memcg: Memcg, kind: Kind, *, below_low: bool) -> int:
        held = memcg.own[kind] - self._gone.get((memcg.path, kind), 0)
        if held <= 0 or (kind is Kind.ANON and (memcg.settings.swappiness == 0 or held < PAGE_BYTES)):
            return 0  # swap takes whole pages: without one in memory a process cannot run, so it is killed
        protection = self._protection[memcg.path]
        kept = protection.min_bytes if below_low else protection.first_bytes
        spare = min(held, memcg.usage_bytes - self._gone_in_all.get(memcg.path, 0) - kept)
        return min(spare, self._swap_room(memcg)) if kind is Kind.ANON else spare

    def _swap_room(self, memcg: Memcg) -> int:
        """Return what is left of swap: the machine's, and what each cgroup above may use."""
        rooms = [self._memory.swap_free_bytes - self._swapped.get(ROOT, 0)]
        for each in memcg.chain():
            limit = each.settings.swap_max_bytes
            if limit is not None:
                rooms.append(limit - each.swap_usage_bytes - self._swapped.get(each.path, 0))
        return max(0, min(rooms))

    def _swap_out(self, memcg: Memcg, wanted_bytes: int) -> int:
        """Swap out as much as still finds room after the others of this round."""
        size = min(wanted_bytes, self._swap_room(memcg))
        for each in memcg.chain():
            self._swapped[each.path] = self._swapped.get(each.path, 0) + size
        return size

    def _note(self, path: str, kind: Kind, size_bytes: int, *, below_low: bool) -> None:
        self.taken.append(Taken(path, kind, size_bytes, below_low))
        self._gone[path, kind] = self._gone.get((path, kind), 0) + size_bytes
        self._gone_in_all[path] = self._gone_in_all.get(path, 0) + size_bytes


def divided(wanted_bytes: int, spares: Sequence[int]) -> list[int]:
    """Divide what is wanted in proportion to what each can spare; odd bytes go to the first that can."""
    total = sum(spares)
    if wanted_bytes >= total:
        return list(spares)
    parts = [wanted_bytes * spare // total for spare in spares]
    odd = wanted_bytes - sum(parts)
    for index, spare in enumerate(spares):
        extra = min(odd, spare - parts[index])
        parts[index] += extra
        odd -= extra
    return parts
