"""What a report of the OOM killer says besides figures and names: by hand, where, and for whom memory was set aside.

Sources: Linux drivers/tty/sysrq.c (moom_callback), mm/swapfile.c (SYSCALL_DEFINE1(swapoff)), mm/ksm.c (run_store),
mm/oom_kill.c (dump_header, oom_task_origin), mm/hugetlb.c (hugetlb_show_meminfo),
mm/swap_state.c (show_swap_cache_info).
"""

from __future__ import annotations

import re
from enum import StrEnum

from msgspec import Struct, field

_HUGE = re.compile(
    r"Node (\d{1,5}) hugepages_total=(\d{1,12}) hugepages_free=(\d{1,12}) .{0,40}hugepages_size=(\d{1,9})kB"
)
_NODEMASK = re.compile(r"nodemask=(\d{1,5}(?:[,-]\d{1,5}){0,200})")
_CPUSET = re.compile(r".{1,64} cpuset=(\S{1,4096}) mems_allowed=")
_FREE_SWAP = re.compile(r"Free swap {1,3}= ?(\d{1,13})kB")
BY_HAND = "Manual OOM execution"
"""What a line says before the report of an OOM that someone asks for."""
_BY_HAND = ("moom_callback", "sysrq_handle_moom")
_MOST_POOLS = 1024
_MOST_NODES = 1024


class Origin(StrEnum):
    """What a process does that the kernel kills first, whatever its badness (oom_task_origin)."""

    SWAPOFF = "swapoff"
    """It turns swap off, which brings all that is swapped back into memory."""
    KSM = "ksm"
    """It turns the merging of equal pages off, which gives each a copy again."""


_ORIGINS = {
    "sys_swapoff": Origin.SWAPOFF,
    "try_to_unuse": Origin.SWAPOFF,
    "unmerge_and_remove_all_rmap_items": Origin.KSM,
}


class HugePages(Struct, gc=False):
    """The huge pages of one size on one memory node."""

    total: int
    free: int


class Circumstances(Struct):
    """What else the lines of a report say."""

    is_by_hand: bool = False
    """Whether someone called the OOM killer (sysrq f): then nothing ran out."""
    origin: Origin | None = None
    """What the process that asked was doing, by its call trace."""
    nodemask: frozenset[int] | None = None
    """The memory nodes of the request's policy; None: all."""
    cpuset: str = ""
    """Of the process that asked."""
    huge_pages: dict[tuple[int, int], HugePages] = field(default_factory=dict)
    """By memory node and size in KiB."""
    free_swap_kb: int | None = None

    @property
    def huge_pages_kb(self) -> int:
        """What is set aside for huge pages, used or not."""
        return sum(pages.total * size for (_, size), pages in self.huge_pages.items())

    @property
    def free_huge_pages_kb(self) -> int:
        """The part of it that nobody uses."""
        return sum(min(pages.free, pages.total) * size for (_, size), pages in self.huge_pages.items())

    @property
    def nodes(self) -> frozenset[int]:
        """The memory nodes that lines about huge pages name: all that the machine has."""
        return frozenset(node for node, _ in self.huge_pages)

    def read(self, text: str) -> None:
        """Read a line of the report that is neither of its tables nor of its kill."""
        if "hugepages_total=" in text:
            self._read_huge_pages(text)
        elif "nodemask=" in text and "oom-kill:" not in text:
            if mask := _NODEMASK.search(text):
                self.nodemask = node_numbers(mask[1])
        elif " cpuset=" in text:
            if named := _CPUSET.match(text):
                self.cpuset = named[1]
        elif text.startswith("Free swap"):
            if free := _FREE_SWAP.match(text):
                self.free_swap_kb = int(free[1])
        elif "moom" in text and any(mark in text for mark in _BY_HAND):
            self.is_by_hand = True
        elif self.origin is None and "+0x" in text:
            self.origin = next((origin for mark, origin in _ORIGINS.items() if mark in text), None)

    @staticmethod
    def is_told_by(frames: str) -> bool:
        """Whether frames of a stack, or figures, say anything of this."""
        return "moom" in frames or any(mark in frames for mark in _ORIGINS)

    def _read_huge_pages(self, text: str) -> None:
        pool = _HUGE.search(text)
        if pool is not None and len(self.huge_pages) < _MOST_POOLS:
            self.huge_pages[int(pool[1]), int(pool[4])] = HugePages(int(pool[2]), int(pool[3]))


def node_numbers(text: str) -> frozenset[int]:
    """Read a list of memory nodes such as ``0,2-3``; nothing where it is none."""
    numbers: set[int] = set()
    for part in text.split(","):
        first, _, last = part.partition("-")
        if not (first.isascii() and first.isdecimal() and len(first) < 6):
            return frozenset()
        end = int(last) if last.isascii() and last.isdecimal() and len(last) < 6 else int(first)
        numbers.update(range(int(first), min(end, int(first) + _MOST_NODES) + 1))
        if len(numbers) > _MOST_NODES:
            break
    return frozenset(numbers)
