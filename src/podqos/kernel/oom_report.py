"""What the OOM killer writes into the kernel's log, read back: who asked, what was full, the task table, who died.

Kernels 3.x to 6.x. A report begins with ``invoked oom-killer`` and holds what follows up to the next; lines of others
in between do not matter, and neither do those that are missing. Reports are rate limited: a kill that comes alone is
a report without a table. One pass, and memory for one report per host.

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

from podqos.kernel.cgroup import ROOT
from podqos.kernel.log_lines import Message

MOST_TASKS = 100_000
MOST_VICTIMS = 10_000
MOST_HOSTS = 256
_MOST_JOINED = 4
_MOST_OTHERS = 20_000  # lines that are not the OOM killer's: no kill will follow
_MOST_ZONES = 512
_MOST_NODES = 1024
_MOST_ORDER = 18
_MOST_KB = 1 << 50
_MOST_STATISTICS = 256
_MOST_DIGITS = 10
_UNLIMITED_KB = 1 << 50
_MOST_ADJUSTMENT = 1000
_PAGE_KB = (4, 8, 16, 32, 64, 256)

BEGINNINGS = (b"oom-kill", b"Killed process")
"""What every line holds that begins a report: what a fast reader looks for."""
FOLLOWING = (b"oom_reaper", b"memory.oom.group")
"""What lines hold that follow a kill, soon after it."""
_BEGINNINGS = ("oom-kill", "Killed process")

_INVOKED = re.compile(r"(.{1,64}?) invoked oom-killer(.*)")
_ORDER = re.compile(r"order=(-?\d{1,3})")
_GFP = re.compile(r"gfp_mask=0x([0-9a-f]{1,8})")
_RELEASE = re.compile(
    r"PID: (\d{1,10}) .{0,200}?(?:Not tainted|Tainted: [A-Z ]{1,40}) ?\(?(\d{1,3})\.(\d{1,4})[^ ]{0,80}"
)
_OLD_PID = re.compile(r"Pid: (\d{1,10}), comm: .{1,64} (\d{1,3})\.(\d{1,4})[^ ]{0,80} ")
_CPUSET = re.compile(r".{1,64} cpuset=\S{1,4096} mems_allowed=([\d,-]{1,256})")
_TASK_IN = re.compile(r"Task in (\S+) killed as a result of limit of (\S+)")
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
_PRESENT = re.compile(r" present:(\d{1,13})kB")
_RESERVES = re.compile(r"lowmem_reserve\[\]:((?: \d{1,12}){1,8})")
_BUDDIES = re.compile(r"(?:Node (\d{1,5}) )?(\w{1,16}): \d{1,12}\*(\d{1,3})kB ")
_BLOCKS = re.compile(r"([1-9]\d{0,11})\*(\d{1,9})kB")
_HEADER = re.compile(r"\[ {0,6}pid {0,6}\] (.{10,200}) name")
_HEADS = re.compile(r"\[ {0,6}pid {0,6}\]")
_ROW = re.compile(r"\[ {0,12}(\d{1,10})\] {1,16}(\d.*)")
_KILL = re.compile(
    r"(?:Memory cgroup out of memory|Out of memory[^:]{0,64}): Kill process (\d{1,10}) \((.{0,64})\) score (\d{1,18})"
)
_KILLED = re.compile(
    r"(?:((?:Memory cgroup o|O)ut of memory[^:]{0,64}): )?"
    r"Killed process (\d{1,10})(?:, UID \d{1,10},)? \((.{0,64})\)(?=$|[ ,])(.*)"
)
_UNNAMED = re.compile(r"Kill(?:ed)? process \d{1,10}(?: \([^)]{0,20})?$")
_INTEGER = re.compile(r"-?[0-9]{1,12}")
_NEEDED = {"uid", "rss", "oom_score_adj"}
_RSS_PARTS = {"rss_anon", "rss_file", "rss_shmem"}
_AMOUNT = re.compile(r"(total-vm|anon-rss|file-rss|shmem-rss|pgtables):(\d{1,13})kB")
_VICTIM_ADJ = re.compile(r"oom_score_adj:(-?\d{1,5})")
_GROUP = re.compile(r"Tasks in (\S.*) are going to be killed due to memory\.oom\.group set")
_REAPED = re.compile(r"oom_reaper: (?:reaped process|unable to reap pid:) ?(\d{1,10})")
_LOST = re.compile(
    r"\*\* \d{1,12} printk messages dropped|Missed \d{1,12} kernel messages|imklog.{0,40}lost|\.\.\.$|\[\.\.\.\]$"
)
_OWN = re.compile(r"oom[-_]|Killed process|^\[ {0,12}\d")
_ALLOCATING = "oom_kill_allocating_task"
_NONE_KILLABLE = "Out of memory and no killable processes"


class Constraint(StrEnum):
    """What limits where memory may come from."""

    NONE = "none"
    MEMCG = "memcg"
    CPUSET = "cpuset"
    MEMORY_POLICY = "memoryPolicy"


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


class ReportCounter(Struct, frozen=True, gc=False):
    """A counter of the cgroup that ran out."""

    usage_kb: int
    limit_kb: int | None
    """None: without a limit."""
    failures: int | None = None
    """How often the limit was met."""


class ReportZone(Struct, gc=False):
    """A zone of the machine's memory."""

    node: int
    name: str
    free_kb: int
    min_kb: int
    present_kb: int | None = None
    reserve_pages: tuple[int, ...] = ()
    """What is kept from requests that other zones could serve, by the highest zone that may serve them."""
    largest_block_kb: int | None = None
    """Of free memory, in one piece."""


class OOMReport(Struct):
    """A report as far as the log has it."""

    at: str = ""
    host: str = ""
    trigger: str = ""
    trigger_pid: int | None = None
    order: int | None = None
    gfp_mask: int | None = None
    """What the request allows; its lowest bits say which zones may serve it."""
    release: tuple[int, int] | None = None
    """The kernel's, such as (6, 1)."""
    constraint: Constraint | None = None
    """None where no line says; a kill's own line tells a cgroup's OOM from others."""
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
    kernel_stack_kb: int = 0
    statistics: dict[str, int] | None = None
    """What the cgroup that ran out holds, with those below it: bytes, by the names of its version's memory.stat."""
    statistics_of: str | None = None
    """That cgroup, as its statistics call it."""
    smallest_block_kb: int | None = None
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
        self._others = 0

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
        return self._others > _MOST_OTHERS or all(log.has_kill for log in self._hosts.values())

    def feed(self, message: Message) -> Iterator[OOMReport]:
        """Read a message; yield the reports that it ends."""
        log = self._hosts.get(message.host) if message.is_marked else self._last
        self._others = 0 if _OWN.search(message.text) else self._others + 1
        if log is None:
            if not any(beginning in message.text for beginning in _BEGINNINGS):
                return
            if len(self._hosts) >= MOST_HOSTS:
                yield from self._hosts.pop(next(iter(self._hosts))).end()
            log = self._hosts[message.host] = _HostLog()
        self._last = log
        yield from log.feed(message)

    def end(self) -> Iterator[OOMReport]:
        """Yield what is open when the log ends."""
        for log in self._hosts.values():
            yield from log.end()
        self._hosts.clear()
        self._last = None


class _HostLog:
    """One kernel's messages, from its first report on."""

    def __init__(self) -> None:
        self._report: OOMReport | None = None
        self._held: Message | None = None
        self._joined = 0

    @property
    def has_kill(self) -> bool:
        """Whether the open report, if there is one, has all but what the reaper says."""
        if self._held is not None and any(each in self._held.text for each in _BEGINNINGS):
            return False
        return self._report is None or bool(self._report.victims)

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

    def _is_continued(self, held: Message, message: Message) -> bool:
        if message.is_marked or self._joined >= _MOST_JOINED or any(each in message.text for each in _BEGINNINGS):
            return False
        text, columns = held.text, None if self._report is None else self._report.columns
        if text.startswith("["):
            row = _ROW.match(text)
            return (
                _is_unended(row, columns) if row and columns else bool(_HEADS.match(text)) and not _HEADER.match(text)
            )
        return held.is_marked or bool(_UNNAMED.search(text))

    def _read(self, message: Message) -> Iterator[OOMReport]:
        text = message.text
        report = self._report
        if "invoked oom-killer" in text and (found := _INVOKED.match(text)):
            yield from self._close()
            order, mask = _ORDER.search(found[2]), _GFP.search(found[2])
            self._report = OOMReport(
                at=message.at,
                host=message.host,
                trigger=found[1].strip(),
                order=min(int(order[1]), _MOST_ORDER) if order else None,
                gfp_mask=int(mask[1], 16) if mask else None,
            )
        elif "Killed process" in text and (found := _KILLED.match(text)):
            pid = int(found[2])
            if report is None or (report.victims and report.group is None and pid not in report.victims):
                # Reports are rate limited: another kill stands for an OOM whose report was left out.
                yield from self._close()
                report = self._report = OOMReport(at=message.at, host=message.host)
            _read_killed(report, pid, found)
        elif text.startswith("oom-kill:"):
            if report is None or report.victims:
                yield from self._close()
                report = self._report = OOMReport(at=message.at, host=message.host)
            _read_summary(report, text)
        elif report is not None:
            _read(report, text)

    def _close(self) -> Iterator[OOMReport]:
        report, self._report = self._report, None
        if report is not None:
            _complete(report)
            yield report


def _complete(report: OOMReport) -> None:
    """Fill in what the lines of the kill would have said, where others say it too."""
    if report.victims:
        return
    if report.chosen is not None and report.score is None:  # of the summary: no child dies in its place any more
        report.victims[report.chosen] = Victim(report.chosen, report.chosen_name)
    elif report.constraint is None and report.counters:  # only the report of a cgroup has them
        report.constraint, report.oom_cgroup = Constraint.MEMCG, report.statistics_of


def _is_unended(row: re.Match[str], columns: tuple[str, ...]) -> bool:
    """Whether the name is missing at the end of a row."""
    return len(row[2].split(None, len(columns))) <= len(columns)


def _read_killed(report: OOMReport, pid: int, killed: re.Match[str]) -> None:
    why, name, rest = killed[1] or "", killed[3], killed[4]
    amounts = {label: int(number) for label, number in _AMOUNT.findall(rest)}
    rss = [amounts[label] for label in ("anon-rss", "file-rss", "shmem-rss") if label in amounts]
    adj = _VICTIM_ADJ.search(rest)
    if pid not in report.victims and len(report.victims) < MOST_VICTIMS:
        rss_kb, score_adj = sum(rss) if rss else None, int(adj[1]) if adj else None
        parts = (amounts.get("anon-rss", 0), amounts.get("file-rss", 0), amounts.get("shmem-rss", 0)) if rss else None
        report.victims[pid] = Victim(pid, name, amounts.get("total-vm"), rss_kb, score_adj, rss_parts_kb=parts)
    is_thread = report.chosen not in report.tasks and pid in report.tasks and name == report.chosen_name
    if report.chosen is None or is_thread:
        report.chosen = pid
    report.is_allocating_task |= _ALLOCATING in why
    if report.constraint is None and why.startswith("Memory cgroup"):
        report.constraint = Constraint.MEMCG


def _read_summary(report: OOMReport, text: str) -> None:
    """Read ``oom-kill:constraint=…``. Masks, paths and names may hold commas."""
    kind = text.partition("constraint=CONSTRAINT_")[2].partition(",")[0]
    report.constraint = {
        "NONE": Constraint.NONE,
        "MEMCG": Constraint.MEMCG,
        "CPUSET": Constraint.CPUSET,
        "MEMORY_POLICY": Constraint.MEMORY_POLICY,
    }.get(kind, report.constraint)
    allowed = _between(text, "nodemask=", ",cpuset=")
    if allowed in {None, "(null)"} or report.constraint is not Constraint.MEMORY_POLICY:
        allowed = _between(text, "mems_allowed=", ",global_oom") or _between(text, "mems_allowed=", ",oom_memcg=")
    if allowed:
        report.nodes = _numbers(allowed)
    if ",global_oom" in text:
        report.oom_cgroup = ROOT
    elif limited := _between(text, ",oom_memcg=", ",task_memcg="):
        report.oom_cgroup = limited
    before, _, rest = text.rpartition(",task=")
    report.task_cgroup = before.partition(",task_memcg=")[2] or report.task_cgroup
    name, _, pid = rest.rpartition(",uid=")[0].rpartition(",pid=")
    if pid.isascii() and pid.isdecimal() and len(pid) <= _MOST_DIGITS:
        report.chosen, report.chosen_name = int(pid), name


def _between(text: str, start: str, end: str) -> str | None:
    _, found, rest = text.partition(start)
    value, ends, _ = rest.partition(end)
    return value if found and ends else None


def _numbers(text: str) -> frozenset[int]:
    """Read a list such as ``0,2-3``; nothing where it is none."""
    found: set[int] = set()
    for part in text.split(","):
        first, _, last = part.partition("-")
        if not (first.isascii() and first.isdecimal() and len(first) < 6):
            return frozenset()
        end = int(last) if last.isascii() and last.isdecimal() and len(last) < 6 else int(first)
        found.update(range(int(first), min(end, int(first) + _MOST_NODES) + 1))
        if len(found) > _MOST_NODES:
            break
    return frozenset(found)


def _read(report: OOMReport, text: str) -> None:
    """Read a line of an open report."""
    if report.victims:
        if (found := _REAPED.match(text)) and (victim := report.victims.get(int(found[1]))):
            victim.is_reaped = True
        elif found := _GROUP.match(text):
            report.group = found[1]
    elif text.startswith("["):
        if found := _HEADER.match(text):
            report.columns = tuple(found[1].split())
            report.tasks.clear()
        elif found := _ROW.match(text):
            _read_row(report, found)
    elif found := _COUNTER.match(text):
        limit = int(found[3])
        failures = None if found[4] is None else int(found[4])
        report.counters[found[1]] = ReportCounter(int(found[2]), None if limit >= _UNLIMITED_KB else limit, failures)
    elif found := _KILL.match(text):
        report.chosen, report.chosen_name, report.score = int(found[1]), found[2], int(found[3])
        report.is_allocating_task |= _ALLOCATING in text
        if text.startswith("Memory"):
            report.constraint = Constraint.MEMCG
    elif not _read_memory(report, text):
        _read_context(report, text)


def _read_memory(report: OOMReport, text: str) -> bool:
    """Read a line about the memory of the machine, or of the cgroup; return whether it is one."""
    if found := _ZONE.match(text):
        if len(report.zones) < _MOST_ZONES:
            present = _PRESENT.search(text)
            present_kb = None if present is None else int(present[1])
            report.zones.append(ReportZone(int(found[1] or 0), found[2], int(found[3]), int(found[4]), present_kb))
        report.kernel_stack_kb += sum(map(int, _STACK.findall(text)))
    elif found := _RESERVES.match(text):
        if report.zones:
            report.zones[-1].reserve_pages = tuple(map(int, found[1].split()))
    elif found := _BUDDIES.match(text):
        report.smallest_block_kb = int(found[3])
        node, name, sizes = int(found[1] or 0), found[2], [int(size) for _, size in _BLOCKS.findall(text)]
        for zone in report.zones:
            if (zone.node, zone.name) == (node, name):
                zone.largest_block_kb = max(sizes, default=0)
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
        for name, kilobytes in _OLD_STATISTIC.findall(text, found.end())[:_MOST_STATISTICS]:
            if name not in sums and len(sums) >= _MOST_STATISTICS:
                break
            sums[name] = min(_MOST_KB * 1024, sums.get(name, 0) + int(kilobytes) * 1024)
        return True
    if report.statistics is None or report.columns is not None or not (found := _STATISTIC.fullmatch(text)):
        return False
    if len(report.statistics) < _MOST_STATISTICS:
        report.statistics[found[1]] = int(found[2])
    return True


def _read_context(report: OOMReport, text: str) -> None:
    """Read a line about the process that asked, and its cgroup."""
    if report.trigger_pid is None and (found := _RELEASE.search(text) or _OLD_PID.match(text)):
        report.trigger_pid, report.release = int(found[1]), (int(found[2]), int(found[3]))
    elif found := _TASK_IN.match(text):
        report.task_cgroup, report.oom_cgroup = found[1], found[2]
        report.constraint = Constraint.MEMCG
    elif report.nodes is None and (found := _CPUSET.match(text)):
        report.nodes = _numbers(found[1])
    elif found := _GROUP.match(text):
        report.group = found[1]
    elif text.startswith(_NONE_KILLABLE):
        report.is_hopeless = True
    elif report.columns is not None and _LOST.match(text):
        report.is_cut = True


def _read_row(report: OOMReport, row: re.Match[str]) -> None:
    """Read a row of the task table, whose header says what its columns are."""
    columns = report.columns
    if columns is None or len(report.tasks) >= MOST_TASKS:
        report.is_cut = True
        return
    fields = row[2].split(None, len(columns))
    values = fields[: len(columns)]
    if len(values) < len(columns) or not all(map(_INTEGER.fullmatch, values)):
        report.is_cut = True
        return
    numbers = dict(zip(columns, map(int, values), strict=True))
    if not numbers.keys() >= _NEEDED or abs(numbers["oom_score_adj"]) > _MOST_ADJUSTMENT:
        report.is_cut = True
        return
    pid, tables = int(row[1]), numbers.get("nr_ptes")
    report.tasks[pid] = Task(
        pid=pid,
        uid=numbers["uid"],
        rss_pages=numbers["rss"],
        oom_score_adj=numbers["oom_score_adj"],
        name=fields[-1].strip() if len(fields) > len(columns) else "",
        swap_pages=numbers.get("swapents"),
        page_table_pages=None if tables is None else tables + numbers.get("nr_pmds", 0),
        page_table_bytes=numbers.get("pgtables_bytes"),
        total_vm_pages=numbers.get("total_vm", 0),
        rss_parts_pages=(numbers["rss_anon"], numbers["rss_file"], numbers["rss_shmem"])
        if numbers.keys() >= _RSS_PARTS
        else None,
    )
