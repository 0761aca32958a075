"""The state of memory: a tree of cgroups with what each holds, in plain numbers.

One ``Memory`` is one machine at one moment. It knows how to add, to move and to add up; what an allocation leads to
is in ``charge``, reclaim under pressure in ``reclaim`` and ``protection``, the OOM killer in ``oom``. Memory
of system processes outside every cgroup belongs to the root itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum

from msgspec import Struct

from podqos.kernel.build import PAGE_BYTES
from podqos.kernel.cgroup import ROOT, parent_path
from podqos.kernel.memory import Machine, mem_available_bytes


class Kind(StrEnum):
    """What memory is used for, as far as it matters who can take it back."""

    ANON = "anon"
    """Private memory, also tmpfs: goes only to swap."""
    ACTIVE_FILE = "active_file"
    INACTIVE_FILE = "inactive_file"
    KERNEL = "kernel"
    """Page tables, stacks, slab: stays until its owner goes."""
    SWAP = "swap"
    """Anonymous memory that has been swapped out; not part of usage."""


class MemcgSettings(Struct, frozen=True, gc=False):
    """What may be written to a memory cgroup. None is ``max``: no limit."""

    max_bytes: int | None = None
    """v2 ``memory.max``, v1 ``memory.limit_in_bytes``."""
    high_bytes: int | None = None
    min_bytes: int = 0
    low_bytes: int = 0
    swap_max_bytes: int | None = None
    """v2 ``memory.swap.max``."""
    memsw_max_bytes: int | None = None
    """v1 ``memory.memsw.limit_in_bytes``: memory and swap together."""
    swappiness: int = 60
    """At 0 nothing of this cgroup is swapped out."""
    oom_group: bool = False
    """v2 ``memory.oom.group``."""
    oom_kill_disable: bool = False
    """v1 ``memory.oom_control``: a process that hits the limit sleeps instead."""


class Memcg(Struct, eq=False):
    """One cgroup: its settings, its own memory, and the sums over its subtree."""

    path: str
    settings: MemcgSettings
    parent: Memcg | None
    children: dict[str, Memcg]
    own: dict[Kind, int]
    """Bytes held by this very cgroup, by kind."""
    usage_bytes: int = 0
    """Of the whole subtree, swap excluded: v2 ``memory.current``, v1 ``memory.usage_in_bytes``."""
    swap_usage_bytes: int = 0
    """Of the whole subtree: v2 ``memory.swap.current``."""

    def chain(self) -> Iterator[Memcg]:
        """Yield this cgroup and its ancestors up to the root."""
        memcg: Memcg | None = self
        while memcg is not None:
            yield memcg
            memcg = memcg.parent

    def subtree(self) -> Iterator[Memcg]:
        """Yield this cgroup and its descendants, parents first, siblings by path."""
        yield self
        for path in sorted(self.children):
            yield from self.children[path].subtree()


class Usage(Struct, frozen=True, gc=False):
    """What a subtree holds, by kind: the lines of ``memory.stat`` that matter here."""

    anon_bytes: int
    active_file_bytes: int
    inactive_file_bytes: int
    kernel_bytes: int
    swap_bytes: int

    @property
    def usage_bytes(self) -> int:
        """Everything but swap."""
        return self.anon_bytes + self.active_file_bytes + self.inactive_file_bytes + self.kernel_bytes

    @property
    def working_set_bytes(self) -> int:
        """Usage minus inactive file pages: what the kubelet counts."""
        return self.usage_bytes - self.inactive_file_bytes


class Memory:
    """All memory of one machine."""

    __slots__ = ("_memcgs", "machine", "root")

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.root = _new(ROOT, MemcgSettings(), None)
        self._memcgs = {ROOT: self.root}

    def __getitem__(self, path: str) -> Memcg:
        return self._memcgs[path]

    def __contains__(self, path: object) -> bool:
        return path in self._memcgs

    def __iter__(self) -> Iterator[Memcg]:
        return self.root.subtree()

    def add(self, path: str, settings: MemcgSettings | None = None) -> Memcg:
        """Make a cgroup, as mkdir does; the parent must be there."""
        assert path not in self._memcgs, f"cgroup {path} is there already"
        parent = self._memcgs[parent_path(path)]
        memcg = _new(path, settings or MemcgSettings(), parent)
        parent.children[path] = memcg
        self._memcgs[path] = memcg
        return memcg

    def remove(self, path: str) -> None:
        """Remove a cgroup without children and processes; what page cache it leaves behind falls to its parent."""
        memcg = self._memcgs[path]
        assert memcg.parent is not None
        assert not memcg.children, f"cgroup {path} has children"
        assert not memcg.own[Kind.ANON], f"cgroup {path} has processes"
        assert not memcg.own[Kind.SWAP], f"cgroup {path} has processes"
        for kind, size in memcg.own.items():
            memcg.parent.own[kind] += size
        del memcg.parent.children[path]
        del self._memcgs[path]

    def put(self, path: str, kind: Kind, size_bytes: int) -> None:
        """Add to (or, negative, take from) what a cgroup holds without checking limits; ``charge`` checks them."""
        memcg = self._memcgs[path]
        assert memcg.own[kind] + size_bytes >= 0, f"cgroup {path} has no {-size_bytes} bytes of {kind}"
        memcg.own[kind] += size_bytes
        for each in memcg.chain():
            if kind is Kind.SWAP:
                each.swap_usage_bytes += size_bytes
            else:
                each.usage_bytes += size_bytes

    def move(self, path: str, source: Kind, target: Kind, size_bytes: int) -> None:
        """Change what memory is used for: file pages age or are used again, anonymous ones are swapped out or in."""
        self.put(path, source, -size_bytes)
        self.put(path, target, size_bytes)

    def usage(self, path: str = ROOT) -> Usage:
        """Add up what a subtree holds."""
        sums = dict.fromkeys(Kind, 0)
        for memcg in self._memcgs[path].subtree():
            for kind, size in memcg.own.items():
                sums[kind] += size
        return Usage(
            anon_bytes=sums[Kind.ANON],
            active_file_bytes=sums[Kind.ACTIVE_FILE],
            inactive_file_bytes=sums[Kind.INACTIVE_FILE],
            kernel_bytes=sums[Kind.KERNEL],
            swap_bytes=sums[Kind.SWAP],
        )

    @property
    def free_bytes(self) -> int:
        """MemFree."""
        return self.machine.total_bytes - self.root.usage_bytes

    @property
    def swap_free_bytes(self) -> int:
        """SwapFree."""
        return self.machine.swap_bytes - self.root.swap_usage_bytes

    @property
    def available_bytes(self) -> int:
        """MemAvailable."""
        usage = self.usage()
        return mem_available_bytes(
            self.machine.watermarks,
            free_bytes=self.free_bytes,
            file_bytes=usage.active_file_bytes + usage.inactive_file_bytes,
        )

    def oom_total_pages(self, path: str) -> int:
        """Return what thousandths of ``oom_score_adj`` are of when this cgroup runs out."""
        return oom_total_pages(self.machine, self._memcgs[path].settings)


def oom_total_pages(machine: Machine, settings: MemcgSettings) -> int:
    """Return the same for a cgroup with these settings on this machine (mem_cgroup_get_max)."""
    swap_bytes = machine.swap_bytes
    if settings.max_bytes is None:
        return machine.oom_total_pages
    if settings.swappiness == 0:
        swap_bytes = 0
    elif machine.cgroup_version == 2:
        swap_bytes = _least(settings.swap_max_bytes, swap_bytes)
    elif settings.memsw_max_bytes is not None:
        swap_bytes = min(settings.memsw_max_bytes - settings.max_bytes, swap_bytes)
    return max(1, settings.max_bytes // PAGE_BYTES + swap_bytes // PAGE_BYTES)


def _new(path: str, settings: MemcgSettings, parent: Memcg | None) -> Memcg:
    return Memcg(path, settings, parent, children={}, own=dict.fromkeys(Kind, 0))


def _least(limit: int | None, other: int) -> int:
    return other if limit is None else min(limit, other)
