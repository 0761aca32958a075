"""What the OOM killer writes into the kernel's log: who asked, what was full, the task table, who died.

Sources: Linux mm/oom_kill.c (dump_header, dump_tasks, dump_task, __oom_kill_process, oom_kill_process, oom_reap_task),
mm/memcontrol.c (mem_cgroup_print_oom_context, mem_cgroup_print_oom_meminfo, mem_cgroup_print_oom_group),
mm/show_mem.c (show_free_areas, __show_mem).
"""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct, field

from podqos.kernel.oom_circumstances import Circumstances
from podqos.kernel.oom_trace import Trace
from podqos.kernel.task_table import Task

_PAGE_KB = (4, 8, 16, 32, 64, 256)


class Constraint(StrEnum):
    """What limits where memory may come from."""

    NONE = "none"
    MEMCG = "memcg"
    CPUSET = "cpuset"
    MEMORY_POLICY = "memoryPolicy"
    UNKNOWN = "unknown"
    """No line says whether a cgroup ran out or the machine."""


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
    smallest_block_kb: int | None = None
    circumstances: Circumstances = field(default_factory=Circumstances)
    columns: tuple[str, ...] | None = None
    """Of the task table; None where there is none."""
    tasks: dict[int, Task] = field(default_factory=dict)
    headless_rows: int = 0
    """How many rows of a table there were before any header."""
    is_cut: bool = False
    """Whether lines are missing in the table."""
    is_mixed: bool = False
    """Whether lines of another report are among its own."""
    is_reapers: bool = False
    """Whether the OOM reaper's line is all that is known of it."""
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
    trace: Trace = field(default_factory=Trace)
    """The stack of the process that asked."""

    @property
    def page_kb(self) -> int | None:
        """The size of a page: of the smallest free block, or of what the table and the kill's line say of one task."""
        if self.smallest_block_kb in _PAGE_KB:
            return self.smallest_block_kb
        for pid, victim in self.victims.items():
            task = self.tasks.get(pid)
            if task is not None and victim.total_vm_kb and task.total_vm_pages:
                size, rest = divmod(victim.total_vm_kb, task.total_vm_pages)
                if not rest and size in _PAGE_KB:
                    return size
                ratio = victim.total_vm_kb / task.total_vm_pages
                return min(_PAGE_KB, key=lambda size: abs(size - ratio))
        return None
