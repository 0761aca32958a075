"""What the OOM killer writes into the kernel's log, read back: who asked, what was full, the task table, who died.

Kernels 2.6 to 6.x. A report usually begins with ``invoked oom-killer`` and holds what follows up to the next; lines of
others in between do not matter, and neither do those that are missing, also at the beginning. Reports are rate limited:
a kill that comes alone is a report without a table. What ran out is only what a line proves. One pass, and memory for a
few reports per host.

Sources: Linux mm/oom_kill.c (dump_header, dump_tasks, dump_task, __oom_kill_process, oom_kill_process, oom_reap_task),
mm/memcontrol.c (mem_cgroup_print_oom_context, mem_cgroup_print_oom_meminfo, mem_cgroup_print_oom_group),
mm/show_mem.c (show_free_areas, __show_mem).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import StrEnum

from msgspec import Struct, field
from msgspec.structs import replace

from podqos.kernel.alike_lines import AlikeLines
from podqos.kernel.cgroup import ROOT
from podqos.kernel.log_lines import Message
from podqos.kernel.oom_circumstances import BY_HAND, Circumstances, node_numbers
from podqos.kernel.oom_lines import Invocation, KillLine, invocation, kill_line, panic
from podqos.kernel.oom_trace import Trace
from podqos.kernel.task_table import MOST_TASKS, Task, read_row, read_rows, row_pattern

MOST_VICTIMS = 10_000
MOST_HOSTS = 256
_MOST_JOINED = 4
_MOST_OTHERS = 20_000  # lines that are not the OOM killer's: no kill will follow
_MOST_ZONES = 512
_MOST_KB = 1 << 50
_MOST_STATISTICS = 256
_MOST_BELOW = 64
_OF_EACH = {"cache", "rss", "shmem", "swap", "inactive_file", "active_file"}
_MOST_FIGURES = 200
_MOST_QUIET = 64
_MOST_DIGITS = 10
_UNLIMITED_KB = 1 << 50
_PAGE_KB = (4, 8, 16, 32, 64, 256)

BEGINNINGS = (b"oom-kill", b"Killed process")
"""What every line holds that begins a report: what a fast reader looks for."""
FOLLOWING = (b"oom_reaper", b"memory.oom.group")
"""What lines hold that follow a kill, soon after it."""
_BEGINNINGS = ("oom-kill", "Killed process", "ut of memory: ", "ill process ")

_ASKED = re.compile(
    r"(?:PID: (\d{1,10}) Comm|Pid: (\d{1,10}), comm): (.{1,32}?) (?:Kdump: \w{1,16} )?(?:Not(?: tainted|$)|Tainted)"
)
_RELEASE = re.compile(r"(?:Not tainted|Tainted:)[A-Z -]{0,60}\(?(\d{1,3})\.(\d{1,4})(?!\d)")
_WRAPPED_RELEASE = re.compile(r"[A-Z ]{0,20}(?:tainted )?(\d{1,2})\.(\d{1,3})\.\d[^ ]{0,80}(?: \(.{1,80}\))? #\d")
_CPUSET = re.compile(r".{1,64} cpuset=\S{1,4096} mems_allowed=([\d,-]{1,256})")
_TASK_IN = re.compile(r"Task in (/\S{0,4096}) killed(?: as a result of limit of (/\S{0,4096}))?(?:\s|$)")
_LIMIT_OF = re.compile(r" {0,4}as a result of limit of (/\S{0,4096})(?:\s|$)")
_COUNTER = re.compile(
    r"(memory|memory\+swap|swap|kmem): usage (\d{1,13})kB, limit (\d{1,20})kB(?:, failcnt (\d{1,18}))?"
)
_STATISTICS = re.compile(r"Memory cgroup stats for (.{1,8000}?):(?: |$)")
_STATISTIC = re.compile(r"([a-z_]{3,40}) (\d{1,17})")
_OLD_STATISTIC = re.compile(r"([a-z_]{3,40}):(\d{1,13})KB")
_MEMORY_INFO = re.compile(r" ?(?:active_anon|active_file|unevictable|slab_reclaimable|mapped|free):\d{1,12} ")
_PAGES = re.compile(r"([a-z_]{3,40}):(\d{1,12})(?![\dk])")
_STACK = re.compile(r" kernel_stack:(\d{1,13})kB")
_RAM = re.compile(r"(\d{1,12}) pages (RAM|reserved)")
_SWAP = re.compile(r"Total swap = (\d{1,13})kB")
_ZONE = re.compile(r"(?:Node (\d{1,5}) )?(\w{1,16}) free:(\d{1,13})kB (?:boost:\d{1,13}kB )?min:(\d{1,13})kB")
_HIGH = re.compile(r" high:(\d{1,13})kB")
_PRESENT = re.compile(r" present:(\d{1,13})kB")
_RESERVES = re.compile(r"lowmem_reserve\[\]:((?: \d{1,12}){1,8})")
_BUDDIES = re.compile(r"(?:Node (\d{1,5}) )?(\w{1,16}): \d{1,12}\*(\d{1,3})kB ")
_BLOCKS = re.compile(r"([1-9]\d{0,11})\*(\d{1,9})kB(?: \(([A-Z]{1,8})\))?")
_HEADER = re.compile(r"\[ {0,6}pid {0,6}\] (.{10,200}) name")
_HEADS = re.compile(r"\[ {0,6}pid {0,6}\]")
_ROW = re.compile(r"\[ {0,12}(\d{1,10})\] {1,16}(\d.*)")
_NAMED = re.compile(r"Killed process \d{1,10}(?:, UID \d{1,10},)? \(.{0,20}\)[ .]*$")
_UNNAMED = re.compile(r"Kill(?:ed)? process \d{1,10}(?: \([^)]{0,20})?$")
_AMOUNT = re.compile(r"(total-vm|vsz|anon-rss|file-rss|shmem-rss|pgtables):(\d{1,13})kB")
_VICTIM_ADJ = re.compile(r"oom_score_adj:(-?\d{1,5})")
_GROUP = re.compile(r"Tasks in (\S.*) are going to be killed due to memory\.oom\.group set")
_REAPED = re.compile(r"oom_reaper: (reaped process|unable to reap pid:) ?(\d{1,10})(?: \((.{0,64})\)(?=$|[ ,.]))?")
_OTHER_DUMP = re.compile(
    r"page allocation (?:failure|stall)|vmalloc (?:error|size)|vmalloc: allocation failure|[Ss]ys[Rr]q ?: Show Memory"
)
_OTHER_DUMPS = ("alloc", "Show Memory")
_SUMMARY = re.compile(r"oom-kill:constraint=CONSTRAINT_([A-Z_]{1,32})")
_LOST = re.compile(
    r"\*\* \d{1,12} printk messages dropped|Missed \d{1,12} kernel messages|imklog.{0,40}lost|\.\.\.$|\[\.\.\.\]$"
)
_FRAME_LINE = (
    rb"( {0,4}+(?:\[<[0-9a-f]{8,16}+>\] )?+(?:\? )?+[A-Za-z_][\w.]{2,80}+\+0x[0-9a-f]{1,8}+/0x[0-9a-f]{1,8}+"
    rb"(?: \[\w{1,60}+\])?+)"
)
_FIGURE_LINE = rb"([a-z_]{3,40}+ [0-9]{1,17}+)"
_ONE_BY_ONE = (*BEGINNINGS, *FOLLOWING)
_OPENERS = (
    "oom-kill",
    "ill process",
    "illed process",
    "ut of memory",
    "kB, limit ",
    "Mem-",
    "total_vm",
    "omm: ",
    "Task in ",
    "oom_reaper",
    "stats for /",
    "deadlocked on memory",
    BY_HAND,
    "page allocation ",
    "vmalloc",
    "Show Memory",
)
"""What may be the first line that is left of a report."""
_OWN = re.compile(r"oom[-_]|Killed process|^\[ {0,12}\d")
_ALLOCATING = "oom_kill_allocating_task"
_NONE_KILLABLE = re.compile(r"Out of memory and no killable processes[. ]{0,4}$")
_OF_OOMS_ALONE = ("[", "Task in ", "memory: ", "memory+swap: ", "Memory cgroup ", "Out of memory ")
"""What is shown for nothing else."""
_OF_MACHINE = ("Mem-Info:", "Mem-info:")
_MEMORY_INFO_ALONE = (3, 9)
"""Since then the report of a cgroup does not show the machine's memory."""
_MOST_BETWEEN = 200
"""Lines of others until what has begun without its first line is no report."""
_MOST_RECENT = 1024
_NOTHING_ELSE = Circumstances()


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
                ratio = victim.total_vm_kb / task.total_vm_pages
                return min(_PAGE_KB, key=lambda size: abs(size - ratio))
        return None


class OOMReader:
    """Takes the kernel's messages, and yields reports when they are complete."""

    def __init__(self) -> None:
        self._hosts: dict[str, _HostLog] = {}
        self._last: _HostLog | None = None
        self.last: Message | None = None
        """The last message."""
        self._others = 0
        self._unsettled: set[_HostLog] = set()

    @property
    def is_open(self) -> bool:
        """Whether a report, or what may be the first line of one, waits for more."""
        return bool(self._hosts)

    @property
    def is_own(self) -> bool:
        """Whether the last line looks like one of the OOM killer's."""
        return self._others == 0

    @property
    def is_settled(self) -> bool:
        """Whether every open report has its kill: ``BEGINNINGS`` and ``FOLLOWING`` are what matters then."""
        return self._others > _MOST_OTHERS or not self._unsettled

    @property
    def is_quiet(self) -> bool:
        """Whether none of the last lines looked like one of the OOM killer's."""
        return self._others > _MOST_QUIET

    def feed(self, message: Message) -> Iterator[OOMReport]:
        """Read a message; yield the reports that it ends."""
        self.last = message
        # What has neither time nor host among lines that have them is a part of the line before it.
        is_begun = message.is_marked and bool(message.at or message.host or self._last is None)
        log = self._hosts.get(message.host) if is_begun else self._last
        self._others = 0 if _OWN.search(message.text) else self._others + 1
        if log is None:
            if not any(opener in message.text for opener in _OPENERS):
                return
            if len(self._hosts) >= MOST_HOSTS:
                oldest = self._hosts.pop(next(iter(self._hosts)))
                self._unsettled.discard(oldest)
                yield from oldest.end()
            log = self._hosts[message.host] = _HostLog()
        self._last = log
        yield from log.feed(message)
        self._settle(log)

    def _settle(self, log: _HostLog) -> None:
        if log.has_kill:
            self._unsettled.discard(log)
        else:
            self._unsettled.add(log)

    @property
    def expects_figures(self) -> bool:
        """Whether lines may follow that have no marks: what a cgroup holds is one figure per line."""
        return self._last is not None and self._last.expects_figures and self._others < _MOST_FIGURES

    def read_block(self, chunk: bytes, start: int, alike: AlikeLines) -> int:
        """Read the rows, frames or figures that are carried like the last line, and follow it, in one go.

        Return where the line after them begins.
        """
        return start if self._last is None else self._last.read_block(chunk, start, alike)

    def skip(self, lines: int) -> None:
        """Pass over lines that tell nothing of an OOM."""
        self._others += lines
        if self._last is not None:
            self._last.skip(lines)
            self._settle(self._last)

    def end(self) -> Iterator[OOMReport]:
        """Yield what is open when the log ends."""
        for log in self._hosts.values():
            yield from log.end()
        self._hosts.clear()
        self._unsettled.clear()
        self._last = None


class _HostLog:
    """One kernel's messages, from its first report on."""

    def __init__(self) -> None:
        self._report: OOMReport | None = None
        self._waiting: OOMReport | None = None
        """The one before it, where that has no kill yet."""
        self._candidate: OOMReport | None = None
        """What may become a report: its first line is missing, and nothing yet proves an OOM."""
        self._blank = OOMReport()
        """For the next candidate."""
        self._between = 0
        self._is_other_dump = False
        self._is_by_hand = False
        """Whether the next OOM is asked for by someone."""
        self._reaped: dict[int, None] = {}
        self._recent: dict[int, None] = {}
        self._held: Message | None = None
        self._joined = 0

    @property
    def has_kill(self) -> bool:
        """Whether the open report, if there is one, has all but what the reaper says."""
        if self._candidate is not None or (self._report is not None and not self._report.victims):
            return False
        return self._held is None or not any(words in self._held.text for words in _BEGINNINGS)

    def feed(self, message: Message) -> Iterator[OOMReport]:
        """Read a message. It is held back until the next one shows that it is whole: mail and terminals break lines."""
        held = self._held
        if held is not None and self._is_continued(held, message):
            self._held = replace(held, text=f"{held.text} {message.text.strip()}")
            self._joined += 1
            return
        self._held, self._joined = message, 0
        if held is not None:
            yield from self._read(held)
        if "Killed process" in message.text and "file-rss:" in message.text:
            self._held = None  # a kill may be the last line of its kernel for days
            yield from self._read(message)

    def end(self) -> Iterator[OOMReport]:
        """Yield what is open."""
        held, self._held = self._held, None
        if held is not None:
            yield from self._read(held)
        yield from self._close()

    @property
    def expects_figures(self) -> bool:
        """Whether a cgroup's statistics have begun."""
        report, held = self._report or self._candidate, self._held
        if held is not None and held.text.startswith("Memory cgroup stats"):
            return True
        return report is not None and not report.victims and report.statistics is not None and report.columns is None

    def read_block(self, chunk: bytes, start: int, alike: AlikeLines) -> int:
        """Read what follows the line that is held, where that is one of many of its kind."""
        report, held = self._report, self._held
        pattern = None if report is None or held is None else _alike_pattern(report, held)
        if report is None or held is None or pattern is None:
            return start
        lines = list(alike.matches(chunk, start, pattern))
        if not lines:
            return start
        end = lines[-1].end()
        block = chunk[start:end]
        if any(words in block for words in _ONE_BY_ONE) or (not alike.names_kernel and b"kernel" in block):
            return start
        self._held = None
        _read(report, held.text, is_other=self._is_other_dump)
        if pattern in {_FRAME_LINE, _FIGURE_LINE}:
            for line in lines:
                _read(report, line[1].decode(), is_other=self._is_other_dump)
            return end
        cut = read_rows(report.columns or (), lines, report.tasks)
        return end if cut is None else cut

    def skip(self, lines: int) -> None:
        """Pass over lines that tell nothing: none of them continues the one that is held."""
        self._joined = _MOST_JOINED
        if self._candidate is not None:
            self._between += lines
            if self._between > _MOST_BETWEEN:
                self._candidate = None

    def _is_continued(self, held: Message, message: Message) -> bool:
        if message.is_marked or self._joined >= _MOST_JOINED or any(each in message.text for each in _BEGINNINGS):
            return False
        if not message.text.strip():
            return False
        text, columns = held.text, None if self._report is None else self._report.columns
        if text.startswith("["):
            row = _ROW.match(text)
            return (
                _is_unended(row, columns) if row and columns else bool(_HEADS.match(text)) and not _HEADER.match(text)
            )
        if _NAMED.search(text):
            return message.text.lstrip(" ,").startswith(("tot", "vsz", "anon-", "UID"))
        return held.is_marked or bool(_UNNAMED.search(text))

    def _read(self, message: Message) -> Iterator[OOMReport]:
        text = message.text
        report = self._report
        if text.startswith("[") and report is not None and report.columns and not report.victims:
            yield from self._context(message)
        elif line := invocation(text):
            yield from self._begin(message, line)
        elif kill := kill_line(text, is_marked=message.is_marked):
            yield from self._kill(message, kill)
        elif summary := _SUMMARY.match(text):
            yield from self._summary(message, text, summary[1])
        elif reaped := _REAPED.match(text):
            yield from self._reap(message, reaped)
        elif group := _GROUP.match(text):
            yield from self._group(message, group[1])
        elif why := panic(text):
            if self._report is None or self._report.victims:
                yield from self._open(message)
            _read_panic(self._latest, why)
        else:
            yield from self._context(message)

    @property
    def _latest(self) -> OOMReport:
        return self._report if self._report is not None else OOMReport()

    def _begin(self, message: Message, line: Invocation) -> Iterator[OOMReport]:
        """Begin a report with its first line."""
        begun = OOMReport(
            at=message.at,
            host=message.host,
            trigger=line.trigger,
            order=line.order,
            gfp_mask=line.gfp_mask,
            has_flag_names=line.has_flag_names,
        )
        begun.circumstances.read(message.text)
        begun.circumstances.is_by_hand, self._is_by_hand = self._is_by_hand, False
        if not line.is_certain:
            self._candidate, self._between = begun, 0
            return
        before = self._report
        if before is not None and _is_only_context(before):
            # Lines of one report may be swapped.
            begun.constraint, begun.counters = before.constraint, before.counters
            begun.oom_cgroup, begun.task_cgroup = before.oom_cgroup, before.task_cgroup
            self._report = None
        elif before is not None and not before.victims:
            yield from self._let_go(self._waiting)
            self._waiting, self._report = before, None
        yield from self._replace(begun)

    def _open(self, message: Message) -> Iterator[OOMReport]:
        """Open a report without its first line, with what may have been read of it."""
        opened = self._candidate or OOMReport(at=message.at, host=message.host)
        yield from self._replace(opened)

    def _replace(self, report: OOMReport) -> Iterator[OOMReport]:
        """Make another report the one that is read."""
        if self._report is not None:
            yield from self._close()
        self._report, self._candidate = report, None
        self._is_other_dump = False
        self._reaped.clear()

    def _kill(self, message: Message, kill: KillLine) -> Iterator[OOMReport]:
        report, is_reaped = self._report_of(kill), kill.pid in self._reaped
        if report is None:
            # Reports are rate limited: another kill stands for an OOM whose report was left out.
            if self._candidate is not None and not _fits(self._candidate, kill):
                self._candidate = None
            yield from self._open(message)
            report = self._latest
        if kill.is_done:
            _read_killed(report, kill, is_reaped=is_reaped)
        else:
            report.chosen, report.chosen_name, report.score = kill.pid, kill.name, kill.score
        _read_message(report, kill)

    def _report_of(self, kill: KillLine) -> OOMReport | None:
        """Return the open report that a kill belongs to."""
        report, waiting = self._report, self._waiting
        if report is not None:
            if kill.pid in report.victims or (report.group is not None and report.victims and kill.is_done):
                return report
            if not report.victims and _fits(report, kill):
                return report
        if waiting is not None and (waiting.chosen == kill.pid or waiting.is_mixed) and _fits(waiting, kill):
            return waiting
        return None

    def _summary(self, message: Message, text: str, kind: str) -> Iterator[OOMReport]:
        report = self._report
        chosen = _chosen(text)
        if report is None or (report.victims and (chosen is None or chosen[0] not in report.victims)):
            yield from self._open(message)
        _read_summary(self._latest, text, kind)

    def _reap(self, message: Message, reaped: re.Match[str]) -> Iterator[OOMReport]:
        """Read what the reaper says. Without any kill before it, its line is what is left of one."""
        pid, is_done = int(reaped[2]), reaped[1].startswith("reaped")
        report = self._report
        if report is not None and pid in report.victims:
            report.victims[pid].is_reaped = is_done
        elif self._candidate is not None or (report is not None and not report.victims):
            self._reaped[pid] = None
        elif reaped[3] and pid not in self._recent and (report is None or report.is_reapers):
            yield from self._open(message)
            report = self._latest
            report.is_reapers, report.chosen = True, pid
            report.victims[pid] = Victim(pid, reaped[3], is_reaped=is_done)

    def _group(self, message: Message, group: str) -> Iterator[OOMReport]:
        """Read which cgroup dies as one. The kill before it is the first of the group's."""
        report = self._report
        if report is None:
            yield from self._open(message)
        elif report.group is not None and len(report.victims) > 1:
            pid, victim = report.victims.popitem()
            yield from self._replace(
                OOMReport(at=message.at, host=message.host, constraint=report.constraint, chosen=pid)
            )
            self._latest.victims[pid] = victim
        self._latest.group = group

    def _context(self, message: Message) -> Iterator[OOMReport]:
        """Read a line that is about an OOM only among others."""
        text, report = message.text, self._report
        if any(mark in text for mark in _OTHER_DUMPS) and _OTHER_DUMP.search(text):
            self._is_other_dump, self._candidate = True, None
        elif BY_HAND in text:
            self._is_by_hand = True
        elif report is not None and not report.victims:
            if self._waiting is not None and _is_repeated(report, text):
                # Two reports at once, line by line: what is neither's for certain is no one's.
                _mix(report)
                _mix(self._waiting)
            _read(report, text, is_other=self._is_other_dump)
        else:
            yield from self._candidates(message)

    def _candidates(self, message: Message) -> Iterator[OOMReport]:
        """Read a line that may be of a report whose first line is missing."""
        candidate = self._candidate or self._blank
        is_other = self._is_other_dump and not message.text.startswith(_OF_OOMS_ALONE)
        if is_other or not _read(candidate, message.text, is_other=self._is_other_dump):
            self._between += 1
            if self._between > _MOST_BETWEEN:
                self._candidate = None
            if self._blank.circumstances != _NOTHING_ELSE:
                self._blank = OOMReport()
            return
        if self._candidate is None:
            candidate.at, candidate.host = message.at, message.host
            self._candidate, self._blank = candidate, OOMReport()
        self._between = 0
        if _is_oom(candidate):
            yield from self._replace(candidate)

    def _close(self) -> Iterator[OOMReport]:
        """Yield the open reports that are of OOMs."""
        waiting, self._waiting = self._waiting, None
        report, self._report = self._report, None
        yield from self._let_go(waiting)
        yield from self._let_go(report)

    def _let_go(self, report: OOMReport | None) -> Iterator[OOMReport]:
        if report is not None:
            _complete(report)
            for pid in report.victims:
                self._recent[pid] = None
            while len(self._recent) > _MOST_RECENT:
                del self._recent[next(iter(self._recent))]
            yield report


def _alike_pattern(report: OOMReport, held: Message) -> bytes | None:
    """Return what the lines after one look like, if it is one of many of its kind, and whole."""
    text = held.text
    if row := _ROW.match(text):
        is_table = report.columns is not None and not report.victims and not report.is_old_rule
        return row_pattern(report.columns or ()) if is_table and not _is_unended(row, report.columns or ()) else None
    if report.victims or not held.is_marked:
        return None
    if "+0x" in text:
        return _FRAME_LINE
    has_begun = report.statistics is not None and report.columns is None
    return _FIGURE_LINE if has_begun and _STATISTIC.fullmatch(text) else None


def _is_oom(report: OOMReport) -> bool:
    """Whether what was read without a first line is of an OOM: only its reports have counters and a task table."""
    return bool(report.victims or report.counters or report.task_cgroup or report.tasks or report.is_hopeless)


def _is_only_context(report: OOMReport) -> bool:
    """Whether a report has nothing but the lines about its cgroup."""
    is_begun = report.trigger or report.trigger_pid is not None or report.gfp_mask is not None
    return not (is_begun or report.victims or report.chosen is not None or report.columns or report.is_hopeless)


def _is_repeated(report: OOMReport, text: str) -> bool:
    """Whether a line is one that a report has once, and has already."""
    if report.is_mixed:
        return False
    if text.startswith("memory: usage"):
        return "memory" in report.counters
    if text.startswith("Task in /"):
        return report.task_cgroup is not None
    return report.columns is not None and bool(_HEADER.match(text))


def _mix(report: OOMReport) -> None:
    """Forget what may be another report's."""
    report.is_mixed = report.is_cut = True
    report.counters.clear()
    report.oom_cgroup = report.task_cgroup = None
    report.trigger_pid = report.statistics = report.statistics_of = None
    report.statistics_below.clear()
    report.circumstances = Circumstances()


def _fits(report: OOMReport, kill: KillLine) -> bool:
    """Whether a kill can be that of a report."""
    said = _constraint_of(kill.message)
    known = report.constraint or (Constraint.MEMCG if report.counters and not report.is_mixed else None)
    if said is not None and known is not None and (said is Constraint.MEMCG) is not (known is Constraint.MEMCG):
        return False
    return kill.is_done or report.chosen in {None, kill.pid}


def _constraint_of(message: str) -> Constraint | None:
    """Return what a kill's line says ran out."""
    if message.startswith("Memory cgroup"):
        return Constraint.MEMCG
    if message.startswith("No available memory"):
        return Constraint.CPUSET if "cpuset" in message else Constraint.MEMORY_POLICY
    return Constraint.NONE if message else None


def _complete(report: OOMReport) -> None:
    """Fill in what the lines of the kill would have said, where others say it too."""
    if not report.victims and report.chosen is not None and report.is_constraint_named and report.score is None:
        # Of the summary: no child dies in its place any more.
        report.victims[report.chosen] = Victim(report.chosen, report.chosen_name)
    if report.constraint is None and not report.is_mixed:
        report.constraint = _proven(report)
    if report.constraint is Constraint.MEMCG:
        report.oom_cgroup = report.oom_cgroup or report.statistics_of
    elif report.constraint is not None:
        report.oom_cgroup = report.oom_cgroup or ROOT
    if report.columns is not None and _is_filtered(report):
        report.is_cut = True


def _proven(report: OOMReport) -> Constraint | None:
    """Return what ran out by the lines around the kill; None where none proves it."""
    if report.counters or report.statistics_of or report.trace.is_cgroups:
        return Constraint.MEMCG  # only the report of a cgroup has them
    if report.trace.is_cgroups is False:
        return Constraint.NONE
    if report.trace.is_perhaps_cgroups:
        return Constraint.MEMCG if not report.has_memory_info else None
    return Constraint.NONE if report.has_memory_info and _is_memory_info_alone(report) else None


def _is_memory_info_alone(report: OOMReport) -> bool:
    """Whether the machine's memory is only shown where the machine ran out."""
    if report.release is not None and report.release >= _MEMORY_INFO_ALONE:
        return True
    if report.has_flag_names or (report.release is None and report.columns and "oom_adj" not in report.columns):
        return True
    # Older kernels show it for cgroups as well, after lines about the cgroup.
    return report.gfp_mask is not None and report.trace.has_frames


def _is_filtered(report: OOMReport) -> bool:
    """Whether only lines that were searched for are left: then rows of the table are missing, too."""
    has_context = (
        report.trigger_pid is not None
        or report.counters
        or report.has_memory_info
        or report.ram_pages is not None
        or report.statistics is not None
        or report.task_cgroup is not None
    )
    return bool(report.gfp_mask is not None and not has_context)


def _is_unended(row: re.Match[str], columns: tuple[str, ...]) -> bool:
    """Whether the name is missing at the end of a row."""
    return len(row[2].split(None, len(columns))) <= len(columns)


def _read_killed(report: OOMReport, kill: KillLine, *, is_reaped: bool) -> None:
    """Read who was killed, and what it held."""
    pid, name = kill.pid, kill.name
    amounts = {label: int(number) for label, number in _AMOUNT.findall(kill.rest)}
    rss = [amounts[label] for label in ("anon-rss", "file-rss", "shmem-rss") if label in amounts]
    adj = _VICTIM_ADJ.search(kill.rest)
    known = report.victims.get(pid)
    has_room = known is not None or len(report.victims) < MOST_VICTIMS
    if has_room and (known is None or known.rss_kb is None):
        rss_kb, score_adj = sum(rss) if rss else None, int(adj[1]) if adj else None
        is_reaped |= known is not None and known.is_reaped
        total_vm = amounts.get("total-vm", amounts.get("vsz"))
        parts = (amounts.get("anon-rss", 0), amounts.get("file-rss", 0), amounts.get("shmem-rss", 0)) if rss else None
        report.victims[pid] = Victim(pid, name, total_vm, rss_kb, score_adj, is_reaped, parts)
    is_thread = report.chosen not in report.tasks and pid in report.tasks and name == report.chosen_name
    if report.chosen is None or is_thread:
        report.chosen = pid


def _read_message(report: OOMReport, kill: KillLine) -> None:
    """Read what a kill's line says about the OOM."""
    report.is_allocating_task |= _ALLOCATING in kill.message
    report.is_old_rule |= kill.is_old_rule
    if report.constraint is None:
        report.constraint = _constraint_of(kill.message)


def _read_panic(report: OOMReport, why: str) -> None:
    """Read why the kernel panicked."""
    report.panic = why.strip()
    if "no killable" in why or "deadlocked" in why:
        report.is_hopeless = True
    if report.constraint is None and "compulsory" not in why:
        # For a cgroup the kernel panics only where vm.panic_on_oom is 2.
        report.constraint = Constraint.MEMCG if "(memcg)" in why else Constraint.NONE


def _chosen(text: str) -> tuple[int, str] | None:
    """Return the process that ``oom-kill:`` names."""
    name, _, pid = text.rpartition(",task=")[2].rpartition(",uid=")[0].rpartition(",pid=")
    return (int(pid), name) if pid.isascii() and pid.isdecimal() and len(pid) <= _MOST_DIGITS else None


def _read_summary(report: OOMReport, text: str, kind: str) -> None:
    """Read ``oom-kill:constraint=…``. Masks, paths and names may hold commas."""
    report.constraint = {
        "NONE": Constraint.NONE,
        "MEMCG": Constraint.MEMCG,
        "CPUSET": Constraint.CPUSET,
        "MEMORY_POLICY": Constraint.MEMORY_POLICY,
    }.get(kind, report.constraint)
    report.is_constraint_named = True
    allowed = _between(text, "nodemask=", ",cpuset=")
    if allowed in {None, "(null)"} or report.constraint is not Constraint.MEMORY_POLICY:
        allowed = _between(text, "mems_allowed=", ",global_oom") or _between(text, "mems_allowed=", ",oom_memcg=")
    if allowed:
        report.nodes = node_numbers(allowed)
    if ",global_oom" in text:
        report.oom_cgroup = ROOT
    elif limited := _between(text, ",oom_memcg=", ",task_memcg="):
        # 5.0 calls the constraint of a cgroup NONE.
        report.oom_cgroup, report.constraint = limited, Constraint.MEMCG
    report.task_cgroup = text.rpartition(",task=")[0].partition(",task_memcg=")[2] or report.task_cgroup
    if chosen := _chosen(text):
        report.chosen, report.chosen_name = chosen


def _between(text: str, start: str, end: str) -> str | None:
    _, found, rest = text.partition(start)
    value, ends, _ = rest.partition(end)
    return value if found and ends else None


def _read(report: OOMReport, text: str, *, is_other: bool) -> bool:
    """Read a line of a report before its kill; return whether it is one.

    ``is_other``: the machine's memory may be shown for something else.
    """
    if text.startswith("["):
        if header := _HEADER.match(text):
            report.columns = tuple(header[1].split())
            report.is_old_rule |= "oom_score_adj" not in report.columns
            report.tasks.clear()
            return True
        if report.columns is not None and (row := _ROW.match(text)):
            _read_row(report, row)
            return True
    if not is_other:
        report.circumstances.read(text)
    if report.trace.read(text):
        return True
    if counter := _COUNTER.match(text):
        limit = int(counter[3])
        failures = None if counter[4] is None else int(counter[4])
        if not report.is_mixed:
            limit_kb = None if limit >= _UNLIMITED_KB else limit
            report.counters[counter[1]] = ReportCounter(int(counter[2]), limit_kb, failures)
        return True
    if _read_memory(report, text):
        is_machines = text.startswith(_OF_MACHINE) or report.zones or report.smallest_block_kb or report.ram_pages
        report.has_memory_info |= bool(is_machines) and not is_other
        return True
    return _read_context(report, text, is_other=is_other)


def _read_memory(report: OOMReport, text: str) -> bool:
    """Read a line about the memory of the machine, or of the cgroup; return whether it is one."""
    if text.startswith(_OF_MACHINE):
        return True
    if found := _ZONE.match(text):
        place = int(found[1] or 0), found[2]
        if len(report.zones) < _MOST_ZONES and place not in ((zone.node, zone.name) for zone in report.zones):
            present = _PRESENT.search(text)
            present_kb = None if present is None else int(present[1])
            high = _HIGH.search(text)
            report.zones.append(
                ReportZone(
                    int(found[1] or 0),
                    found[2],
                    int(found[3]),
                    int(found[4]),
                    present_kb,
                    high_kb=None if high is None else int(high[1]),
                )
            )
        report.kernel_stack_kb += sum(map(int, _STACK.findall(text)))
    elif found := _RESERVES.match(text):
        if report.zones:
            report.zones[-1].reserve_pages = tuple(map(int, found[1].split()))
    elif found := _BUDDIES.match(text):
        report.smallest_block_kb = int(found[3])
        node, name = int(found[1] or 0), found[2]
        blocks = tuple(FreeBlocks(int(size), int(count), kinds) for count, size, kinds in _BLOCKS.findall(text))
        for zone in report.zones:
            if (zone.node, zone.name) == (node, name):
                zone.blocks = blocks if " = " in text else None  # a broken line lacks the largest
    elif found := _RAM.match(text):
        if found[2] == "RAM":
            report.ram_pages = int(found[1])
        else:
            report.reserved_pages = int(found[1])
    elif found := _SWAP.match(text):
        report.swap_kb = int(found[1])
    elif found := _MEMORY_INFO.match(text):
        if len(report.memory_pages) < _MOST_STATISTICS:
            report.memory_pages |= {name: int(pages) for name, pages in _PAGES.findall(text)[:_MOST_STATISTICS]}
    elif text.startswith("Node ") and (found := _STACK.search(text)):
        report.kernel_stack_kb = min(_MOST_KB, report.kernel_stack_kb + int(found[1]))
    else:
        return _read_statistics(report, text)
    return True


def _read_statistics(report: OOMReport, text: str) -> bool:
    """Read a line of what the cgroup holds: since 5.3 one per figure, before it one per cgroup below it."""
    if found := _STATISTICS.match(text):
        sums = report.statistics = report.statistics or {}
        report.statistics_of = report.statistics_of or found[1]
        own: dict[str, int] = {}
        for name, kilobytes in _OLD_STATISTIC.findall(text, found.end())[:_MOST_STATISTICS]:
            if name in _OF_EACH:
                own[name] = int(kilobytes) * 1024
            if name not in sums and len(sums) >= _MOST_STATISTICS:
                break
            sums[name] = min(_MOST_KB * 1024, sums.get(name, 0) + int(kilobytes) * 1024)
        if own and len(report.statistics_below) < _MOST_BELOW:
            report.statistics_below[found[1]] = own
        return True
    if report.statistics is None or report.columns is not None or not (found := _STATISTIC.fullmatch(text)):
        return False
    if len(report.statistics) < _MOST_STATISTICS:
        report.statistics[found[1]] = int(found[2])
    return True


def _read_context(report: OOMReport, text: str, *, is_other: bool) -> bool:
    """Read a line about the process that asked, and its cgroup; return whether it is one."""
    if not is_other and (asked := _ASKED.search(text)):
        return _read_asked(report, text, asked)
    if report.trigger_pid is not None and report.release is None and (release := _WRAPPED_RELEASE.match(text)):
        report.release = int(release[1]), int(release[2])
        return True
    if task_in := _TASK_IN.match(text):
        report.task_cgroup, report.oom_cgroup = task_in[1], task_in[2]
        report.constraint = Constraint.MEMCG
    elif report.task_cgroup is not None and (limit_of := _LIMIT_OF.match(text)):
        report.oom_cgroup = limit_of[1]
    elif report.nodes is None and (cpuset := _CPUSET.match(text)):
        report.nodes = node_numbers(cpuset[1])
    elif _NONE_KILLABLE.match(text):
        report.is_hopeless = True
    elif report.columns is not None and _LOST.match(text):
        report.is_cut = True
    else:
        return False
    return True


def _read_asked(report: OOMReport, text: str, asked: re.Match[str]) -> bool:
    """Read who asked, on which kernel. Another name is that of a process whose stack is shown for something else."""
    name = asked[3].strip()
    if report.trigger_pid is not None or not (report.trigger.endswith(name) or name.endswith(report.trigger)):
        return False
    report.trigger, report.trigger_pid = name, int(asked[1] or asked[2])
    if release := _RELEASE.search(text):
        report.release = int(release[1]), int(release[2])
    return True


def _read_row(report: OOMReport, row: re.Match[str]) -> None:
    """Read a row of the task table, whose header says what its columns are."""
    columns = report.columns
    if columns is None or len(report.tasks) >= MOST_TASKS:
        report.is_cut = True
        return
    if report.is_old_rule:
        return
    pid = int(row[1])
    task = read_row(columns, pid, row[2])
    if task is None:
        report.is_cut = True
    else:
        report.tasks[pid] = task
