"""What the OOM killer writes into the kernel's log: who asked, what was full, the task table, who died.

Sources: Linux mm/oom_kill.c (dump_header, dump_tasks, dump_task, __oom_kill_process, oom_kill_process, oom_reap_task),
mm/memcontrol.c (mem_cgroup_print_oom_context, mem_cgroup_print_oom_meminfo, mem_cgroup_print_oom_group),
mm/show_mem.c (show_free_areas, __show_mem), drivers/tty/sysrq.c (moom_callback), mm/hugetlb.c (hugetlb_show_meminfo).
"""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct, field


class Constraint(StrEnum):
    """What limits where memory may come from."""

    NONE = "none"
    MEMCG = "memcg"
    CPUSET = "cpuset"
    MEMORY_POLICY = "memoryPolicy"
    UNKNOWN = "unknown"
    """No line says whether a cgroup ran out or the machine."""


class Task(Struct, frozen=True, gc=False):
    """A row of the task table; amounts in pages, None where its form has no such column."""

    pid: int
    uid: int
    rss_pages: int
    oom_score_adj: int
    name: str
    swap_pages: int | None = None
    page_table_pages: int | None = None
    page_table_bytes: int | None = None
    total_vm_pages: int = 0
    rss_parts_pages: tuple[int, int, int] | None = None
    """anon, file and shmem, where the table has them: since 6.9."""


class Victim(Struct, gc=False):
    """A process that was killed, as its own line says."""

    pid: int
    name: str
    total_vm_kb: int | None = None
    rss_kb: int | None = None
    oom_score_adj: int | None = None
    is_reaped: bool = False
    rss_parts_kb: tuple[int, int, int] | None = None
    """anon, file and shmem; kernels before 4.5 count shmem as file."""
    page_tables_kb: int = 0


class ReportCounter(Struct, frozen=True, gc=False):
    """A counter of the cgroup that ran out."""

    usage_kb: int
    limit_kb: int | None
    """None: without a limit."""
    failures: int | None = None
    """How often the limit was met."""


class FreeBlocks(Struct, frozen=True, gc=False):
    """Free pieces of one size."""

    size_kb: int
    count: int
    kinds: str = ""
    """Whom they are kept for, by the kernel's letters: U, M, E, and H, C, I, which are not for everyone."""


class ReportZone(Struct, gc=False):
    """A zone of the machine's memory."""

    node: int
    name: str
    free_kb: int
    min_kb: int
    present_kb: int | None = None
    reserve_pages: tuple[int, ...] = ()
    """What is kept from requests that other zones could serve, by the highest zone that may serve them."""
    blocks: tuple[FreeBlocks, ...] | None = None
    """Free memory by the size of its pieces; None where the report does not say."""
    high_kb: int | None = None
    """The watermark to which the kernel looks a last time before it kills."""
    free_cma_kb: int = 0
    """What of the free memory only movable pages may use (CMA)."""


class Origin(StrEnum):
    """What a process does that the kernel kills first, whatever its badness (oom_task_origin)."""

    SWAPOFF = "swapoff"
    """It turns swap off, which brings all that is swapped back into memory."""
    KSM = "ksm"
    """It turns the merging of equal pages off, which gives each a copy again."""


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


class OOMReport(Struct):
    """A report as far as the log has it."""

    at: str = ""
    host: str = ""
    trigger: str = ""
    trigger_pid: int | None = None
    order: int | None = None
    gfp_mask: int | None = None
    """What the request allows; its lowest bits say which zones may serve it."""
    has_flag_names: bool = False
    """Whether its flags are named, too: since 4.6."""
    release: tuple[int, int] | None = None
    """The kernel's, such as (6, 1)."""
    constraint: Constraint | None = None
    """None where no line proves it."""
    is_constraint_named: bool = False
    """Whether a line names it; else a cpuset or a memory policy may have limited a machine's (before 5.0)."""
    nodes: frozenset[int] | None = None
    """The memory nodes that a cpuset or a policy allows."""
    oom_cgroup: str | None = None
    """The cgroup that ran out; the root for the machine."""
    task_cgroup: str | None = None
    """The victim's."""
    chosen: int | None = None
    """The process that the rule chose. A child may have died in its place."""
    chosen_name: str = ""
    score: int | None = None
    """Its badness in thousandths of the total, which kernels before 5.3 say."""
    counters: dict[str, ReportCounter] = field(default_factory=dict)
    ram_pages: int | None = None
    reserved_pages: int = 0
    swap_kb: int | None = None
    zones: list[ReportZone] = field(default_factory=list)
    memory_pages: dict[str, int] = field(default_factory=dict)
    """What the machine's memory holds, by the kernel's names."""
    has_memory_info: bool = False
    """Whether the machine's memory is shown for this OOM, and not for a failed allocation near it."""
    kernel_stack_kb: int = 0
    statistics: dict[str, int] | None = None
    """What the cgroup that ran out holds, with those below it: bytes, by the names of its version's memory.stat."""
    statistics_of: str | None = None
    """That cgroup, as its statistics call it."""
    statistics_below: dict[str, dict[str, int]] = field(default_factory=dict)
    """The same of each cgroup, it and those below it alone: kernels before 5.3 say that."""
    page_kb: int | None = None
    """The size of a page: of the smallest free block, or of what the table and the kill's line say of one task."""
    circumstances: Circumstances = field(default_factory=Circumstances)
    columns: tuple[str, ...] | None = None
    """Of the task table; None where there is none."""
    tasks: dict[int, Task] = field(default_factory=dict)
    is_cut: bool = False
    """Whether lines are missing in the table."""
    victims: dict[int, Victim] = field(default_factory=dict)
    group: str | None = None
    """The cgroup that died as one (``memory.oom.group``)."""
    is_allocating_task: bool = False
    """Whether the process that asked dies by setting (``vm.oom_kill_allocating_task``)."""
    is_hopeless: bool = False
    """Whether the kernel found no process that it may kill."""
    panic: str = ""
    """Why the kernel panicked in place of a kill, in its words."""
    is_old_rule: bool = False
    """Whether the kernel is one from before 2.6.36, which compared processes by another badness."""
