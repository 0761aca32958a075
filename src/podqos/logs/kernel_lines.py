"""OOM reports out of the kernel's lines: where they begin and end, and what each line says.

A report usually begins with ``invoked oom-killer`` and holds what follows up to the next. Lines of others in between do
not matter, and neither do lines that are missing, also at the beginning. Reports are rate limited: a kill that comes
alone is a report without a table. Kernels 3.3 to 6.x; of older ones only who died and whether a cgroup ran out.

Sources: Linux mm/oom_kill.c (dump_header, dump_tasks, oom_kill_process, __oom_kill_process, out_of_memory,
check_panic_on_oom, oom_reap_task), mm/memcontrol.c (mem_cgroup_print_oom_*), mm/show_mem.c (show_free_areas).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from operator import itemgetter

from msgspec import Struct

from podqos.logs.carriers import Line
from podqos.logs.report import Constraint, HugePages, OOMReport, Origin, ReportCounter, ReportZone, Task, Victim

MOST_TASKS = 100_000
_MOST_HOSTS = 256
_MOST_VICTIMS = 10_000
_MOST_ITEMS = 512  # zones, statistics, cgroups below the one that ran out
_MOST_SILENT = 200
"""Lines of others until what has begun without its first line is no report."""
_MOST_NAME = 15  # TASK_COMM_LEN holds a zero byte, too
_ROOT = "/"
_UNLIMITED_KB = 1 << 50
_PAGE_KB = (4, 8, 16, 32, 64, 256)
_MEMORY_INFO_ALONE = (3, 9)
"""Since then the report of a cgroup does not show the machine's memory."""

_INVOKED = re.compile(r"(?:(.{1,64}?) )?(?:invoked )?oom-killer: (gfp_mask=0x([0-9a-f]{1,8})(\(?).*)")
_INVOKED_ONLY = re.compile(r"(\S.{0,14}) invoked oom-killer:?$")
_ORDER = re.compile(r"order=(-?\d{1,3})")
_MESSAGE = r"(?:(Memory cgroup out of memory|[Oo]ut of [Mm]emory[^:]{0,64}|No available memory[^:]{0,32}): )?"
_CHOSEN = re.compile(
    _MESSAGE + r"[Kk]ill process (\d{1,10}) \((.{0,64}?)\)(?: {0,2}$|(?: with)? score(?: (\d{1,18})|$))"
)
_KILLED = re.compile(_MESSAGE + r"Killed process (\d{1,10})(?:, UID \d{1,10},)? \((.{0,15}|.{16,64}?)\)(?=$|[ ,.])(.*)")
_AFTER_KILLED = re.compile(r"[ ,.]*$|[ ,]{1,4}(?:tot|vsz|anon-|file-|UID|oom_)")
_PANIC = re.compile(r"Kernel panic - not syncing: ((?:[Oo]ut of memory|System is deadlocked on memory).{0,80})")
_SUMMARY = re.compile(r"oom-kill:constraint=CONSTRAINT_([A-Z_]{1,32})(?![^,\s])")
_GROUP = re.compile(r"Tasks in (\S.*) are going to be killed due to memory\.oom\.group set")
_REAPED = re.compile(r"oom_reaper: (reaped process|unable to reap pid:) ?(\d{1,10})(?: \((.{0,64})\)(?=$|[ ,.]))?")
_OTHER_DUMP = re.compile(r"page allocation (?:failure|stall)|vmalloc (?:error|size)|[Ss]ys[Rr]q ?: Show Memory")
_NONE_KILLABLE = re.compile(r"Out of memory and no killable processes[. ]{0,4}$")
_BY_HAND = "Manual OOM execution"
_ORIGINS = {"sys_swapoff": Origin.SWAPOFF, "try_to_unuse": Origin.SWAPOFF, "unmerge_and_remove_all_rmap": Origin.KSM}

_ASKED = re.compile(
    r"(?:PID: (\d{1,10}) Comm|Pid: (\d{1,10}), comm): (.{1,32}?) (?:Kdump: \w{1,16} )?(?:Not(?: tainted|$)|Tainted)"
)
_RELEASE = re.compile(r"(?:Not tainted|Tainted:)[A-Z -]{0,60}\(?(\d{1,3})\.(\d{1,4})(?!\d)")
_CPUSET = re.compile(r".{1,64} cpuset=\S{1,4096} mems_allowed=([\d,-]{1,256})")
_LIMIT_OF = re.compile(r"as a result of limit of (/\S{0,4096}|host\b)\s*$")
_TASK_IN = re.compile(r"Task in (/\S{0,4096}) killed(?: as a result of limit of (/\S{0,4096}|host\b))?\s*$")
_COUNTER = re.compile(
    r"(memory|memory\+swap|swap|kmem): usage (\d{1,13})kB, limit (\d{1,20})kB(?:, failcnt (\d{1,18}))?"
)
_STATISTICS = re.compile(r"Memory cgroup stats for (.{1,8000}?):(?: |$)")
_STATISTIC = re.compile(r"([a-z_]{3,40}) (\d{1,17})")
_OLD_STATISTIC = re.compile(r"([a-z_]{3,40}):(\d{1,13})KB")
_OF_EACH = {"cache", "rss", "shmem", "swap", "inactive_file", "active_file"}
_MEMORY_INFO = re.compile(
    r" ?(?:active_anon|active_file|unevictable|slab_reclaimable|mapped|kernel_misc_reclaimable|free):\d{1,12} "
)
_PAGES = re.compile(r"([a-z_]{3,40}):(\d{1,12})(?![\dk])")
_STACK = re.compile(r" kernel_stack:(\d{1,13})kB")
_RAM = re.compile(r"(\d{1,12}) pages (RAM|reserved)")
_SWAP = re.compile(r"(Total|Free) swap {1,3}= ?(\d{1,13})kB")
_ZONE = re.compile(r"(?:Node (\d{1,5}) )?(\w{1,16}) free:(\d{1,13})kB (?:boost:\d{1,13}kB )?min:(\d{1,13})kB")
_HIGH = re.compile(r" high:(\d{1,13})kB")
_PRESENT = re.compile(r" present:(\d{1,13})kB")
_BUDDIES = re.compile(r"(?:Node \d{1,5} )?\w{1,16}: \d{1,12}\*(\d{1,3})kB ")
_HUGE = re.compile(
    r"Node (\d{1,5}) hugepages_total=(\d{1,12}) hugepages_free=(\d{1,12}) .{0,40}hugepages_size=(\d{1,9})kB"
)
_HEADER = re.compile(r"\[ {0,6}pid {0,6}\] (.{10,200}) name")
_ROW = re.compile(r"\[ {0,12}\d{1,10}\] {1,16}\d{1,10} ")
_AMOUNT = re.compile(r"(total-vm|vsz|anon-rss|file-rss|shmem-rss|pgtables):(\d{1,13})kB")
_VICTIM_ADJ = re.compile(r"oom_score_adj:(-?\d{1,5})")
_LOST = re.compile(r"\*\* \d{1,12} printk messages dropped|Missed \d{1,12} kernel messages|.{0,200}\[?\.\.\.\]?$")
_NOT_OF_PATHS = re.compile(r"\.\.\.|[\s\"'|\u2500-\u257f\ufffd]")

_FRAME = re.compile(r"(\? {0,4})?\b([A-Za-z_]\w{2,63})(?:\.\w{1,16}){0,4}\+0x[0-9a-f]{1,8}/0x")
_OF_CGROUP = (
    *("mem_cgroup_out_of_memory", "mem_cgroup_oom_synchronize", "mem_cgroup_handle_oom", "mem_cgroup_oom"),
    *("try_charge", "try_charge_memcg", "__mem_cgroup_try_charge"),
)
_OOM_FRAMES = ("dump_header", "oom_kill_process", "out_of_memory", "__out_of_memory")
_OF_MACHINE = ("pagefault_out_of_memory", "moom_callback")


class _Open(Struct, gc=False):
    """A report that is being read, and what only its reading needs to know."""

    report: OOMReport
    rows: list[str] = []
    """Of its table, as they are: read at once when it ends."""
    is_cgroups: bool | None = None
    """What the stack of the process that asked says."""
    is_perhaps_cgroups: bool = False
    """By frames that may be left from earlier calls."""
    has_frames: bool = False
    is_dump: bool = False
    """Whether the OOM killer was writing its report, by the stack."""
    last_frame: str = ""
    is_mixed: bool = False
    """Whether lines of another report are among its own."""
    smallest_block_kb: int | None = None
    silent: int = 0
    """So many lines since the last that told anything."""


class ReportReader:
    """Takes lines, and yields reports when they are complete; several kernels may be in one log."""

    def __init__(self) -> None:
        self._hosts: dict[str, _Host] = {}
        self._found: list[OOMReport] = []

    @property
    def is_open(self) -> bool:
        """Whether a report waits for more lines."""
        return any(host.opened for host in self._hosts.values())

    @property
    def reports(self) -> list[OOMReport]:
        """The open ones, as far as they have come."""
        opened = (each for host in self._hosts.values() for each in host.opened)
        return [each.report for each in opened]

    @property
    def is_settled(self) -> bool:
        """Whether every open report has its kill, or nothing was heard of it for long."""
        return all(host.is_settled for host in self._hosts.values())

    def feed(self, lines: Iterable[Line]) -> list[OOMReport]:
        """Read lines; return the reports that they end."""
        hosts = self._hosts
        for line in lines:
            host = hosts.get(line.host)
            if host is None:
                if len(hosts) >= _MOST_HOSTS:
                    hosts.pop(next(iter(hosts))).end()
                host = hosts[line.host] = _Host(self._found)
            host.feed(line)
        return self._taken()

    def end(self) -> list[OOMReport]:
        """Return what is open when the log ends."""
        for host in self._hosts.values():
            host.end()
        self._hosts.clear()
        return self._taken()

    def _taken(self) -> list[OOMReport]:
        found, self._found[:] = [*self._found], []
        return found


class _Host:
    """One kernel's lines."""

    def __init__(self, found: list[OOMReport]) -> None:
        self._found = found
        self.current: _Open | None = None
        self._waiting: _Open | None = None
        """The report before it, where lines of two are mixed and that one has no kill yet."""
        self.candidate: _Open | None = None
        """What may become a report: its first line is missing, and nothing yet proves an OOM."""
        self._is_other_dump = False
        """Whether the machine's memory is shown for something else than an OOM."""
        self._is_by_hand = False
        self._reaped: dict[int, tuple[str, bool, str]] = {}
        """Processes that the reaper names, whose kill has not come."""

    @property
    def opened(self) -> list[_Open]:
        """What is being read."""
        return [each for each in (self._waiting, self.current, self.candidate) if each is not None]

    @property
    def is_settled(self) -> bool:
        """Whether no report waits for its kill."""
        return all(each.report.victims or each.silent > _MOST_SILENT for each in self.opened)

    def feed(self, line: Line) -> None:
        """Read a line."""
        text = line.text
        if text.startswith("[") or not ("oom" in text or "ill" in text or "panic" in text):
            self._context(line, text)
        elif "oom-killer" in text and (invoked := _INVOKED.match(text)):
            self._begin(line, invoked)
        elif "oom-killer" in text and (cut := _INVOKED_ONLY.match(text)):
            self.candidate = _Open(OOMReport(at=line.at, host=line.host, trigger=cut[1]))
        elif text.startswith("oom-kill:") and (summary := _SUMMARY.match(text)):
            self._summary(line, text, summary[1])
        elif chosen := _CHOSEN.match(text):
            score = None if chosen[4] is None else int(chosen[4])
            self._kill(line, int(chosen[2]), chosen[3], chosen[1] or "", score=score)
        elif (killed := _KILLED.match(text)) and _AFTER_KILLED.match(killed[4]):
            self._kill(line, int(killed[2]), killed[3], killed[1] or "", rest=killed[4])
        elif text.startswith("oom_reaper:") and (reaped := _REAPED.match(text)):
            self._reap(line, int(reaped[2]), reaped[3] or "", is_done=reaped[1].startswith("reaped"))
        elif text.startswith("Tasks in ") and (group := _GROUP.match(text)):
            opened = self.current or self._open(line)
            if opened.report.group is not None and len(opened.report.victims) > 1:
                # The kill before it is the first of another group's.
                pid, victim = opened.report.victims.popitem()
                constraint = opened.report.constraint
                opened = self._open(line)
                opened.report.constraint, opened.report.chosen, opened.report.victims = constraint, pid, {pid: victim}
            opened.report.group = group[1]
        elif panic := _PANIC.match(text):
            self._panic(line, panic[1].strip())
        else:
            self._context(line, text)

    def end(self) -> None:
        """Yield what is open."""
        self._close()
        if self.candidate is not None and _is_oom(self.candidate):
            self.current, self.candidate = self.candidate, None
            self._close()
        self.candidate = None
        for pid, (name, is_done, at) in self._reaped.items():
            if name:  # nothing else is left of the kill
                victim = Victim(pid, name, is_reaped=is_done)
                self._found.append(OOMReport(at=at, chosen=pid, chosen_name=name, victims={pid: victim}))
        self._reaped.clear()

    def _begin(self, line: Line, invoked: re.Match[str]) -> None:
        """Begin a report with its first line."""
        order = _ORDER.search(invoked[2])
        trigger = (invoked[1] or "").strip().removesuffix(" invoked")
        begun = OOMReport(
            at=line.at,
            host=line.host,
            trigger=trigger if len(trigger) <= _MOST_NAME else "",
            order=int(order[1]) if order else None,
            gfp_mask=int(invoked[3], 16),
            has_flag_names=invoked[4] == "(",
            is_old_rule="oom_adj=" in line.text and "oom_score_adj=" not in line.text,
        )
        begun.circumstances.is_by_hand, self._is_by_hand = self._is_by_hand, False
        before = self.current
        if before is not None and not before.report.victims:
            is_alone = before.report.columns is None and before.report.trigger_pid is None
            if is_alone and _first_line(before.report) == _first_line(begun):
                return  # a log that has every line twice
            if before.report.columns is None and before.silent < _MOST_SILENT:
                # Two processors write at once: whose the lines in between are, nothing says.
                self._let_go(self._waiting)
                _mix(before)
                self._waiting, self.current = before, None
                _mix(self._replace(_Open(begun)))
                return
        self._replace(_Open(begun))

    def _open(self, line: Line) -> _Open:
        """Open a report without its first line, with what may have been read of it."""
        return self._replace(self.candidate or _Open(OOMReport(at=line.at, host=line.host)))

    def _replace(self, opened: _Open) -> _Open:
        """Make another report the one that is read."""
        if self.current is not None:
            self._close()
        self.current, self.candidate = opened, None
        self._is_other_dump = False
        return opened

    def _kill(
        self, line: Line, pid: int, name: str, message: str, *, rest: str | None = None, score: int | None = None
    ) -> None:
        """Read who was chosen, or with ``rest`` who was killed, and what ran out by that line."""
        said = _constraint_of(message)
        opened = self._of_kill(pid, said, is_done=rest is not None)
        if opened is None:
            if self.candidate is not None and not _fits(self.candidate.report, said):
                self.candidate = None
            opened = self._open(line)
        report = opened.report
        if rest is None:
            report.chosen, report.chosen_name, report.score = pid, name, score
        else:
            _read_victim(report, pid, name, rest)
            if report.chosen == pid:
                report.chosen_name = name or report.chosen_name
            if pid in self._reaped:
                report.victims[pid].is_reaped = self._reaped.pop(pid)[1]
        report.is_allocating_task |= "oom_kill_allocating_task" in message
        if report.constraint is None:
            report.constraint = said

    def _of_kill(self, pid: int, said: Constraint | None, *, is_done: bool) -> _Open | None:
        """Return the open report that a kill belongs to."""
        current, waiting = self.current, self._waiting
        if waiting is not None and waiting.report.chosen == pid and _fits(waiting.report, said):
            return waiting
        if current is not None:
            report = current.report
            if pid in report.victims or (report.group is not None and report.victims and is_done):
                return current
            if not report.victims and _fits(report, said) and (is_done or report.chosen in {None, pid}):
                return current
        if waiting is not None and not waiting.report.victims and _fits(waiting.report, said):
            return waiting
        return None

    def _summary(self, line: Line, text: str, kind: str) -> None:
        """Read ``oom-kill:constraint=…``. Masks, paths and names may hold commas."""
        name, _, number = text.rpartition(",task=")[2].rpartition(",uid=")[0].rpartition(",pid=")
        pid = int(number) if number.isascii() and number.isdecimal() and len(number) <= 10 else None
        opened = self.current
        is_ended = opened is not None and opened.report.victims and opened.report.is_constraint_named
        if opened is None or is_ended or (opened.report.victims and pid not in opened.report.victims):
            opened = self._open(line)
        elif self._waiting is not None and opened.report.chosen is not None and not self._waiting.report.victims:
            opened = self._waiting
        report = opened.report
        report.constraint = _KINDS.get(kind, report.constraint)
        report.is_constraint_named = True
        nodes = _between(text, "nodemask=", ",cpuset=")
        if nodes in {None, "(null)"} or report.constraint is not Constraint.MEMORY_POLICY:
            nodes = _between(text, "mems_allowed=", ",global_oom") or _between(text, "mems_allowed=", ",oom_memcg=")
        if nodes:
            report.nodes = _node_numbers(nodes)
        if ",global_oom" in text:
            report.oom_cgroup = _ROOT
        elif limited := _between(text, ",oom_memcg=", ",task_memcg="):
            # 5.0 calls the constraint of a cgroup NONE.
            report.oom_cgroup, report.constraint = _whole_path(limited), Constraint.MEMCG
        task = text.rpartition(",task=")[0].partition(",task_memcg=")[2]
        report.task_cgroup = _whole_path(task) or report.task_cgroup
        if pid is not None:
            report.chosen, report.chosen_name = pid, name

    def _reap(self, line: Line, pid: int, name: str, *, is_done: bool) -> None:
        """Read what the reaper says; without any kill, its line is what is left of one."""
        for opened in (self.current, self._waiting):
            if opened is not None and pid in opened.report.victims:
                opened.report.victims[pid].is_reaped = is_done
                return
        if len(self._reaped) < _MOST_ITEMS and not any(pid in report.victims for report in self._found):
            # While a report waits for its kill, the line is that report's.
            self._reaped[pid] = name if self.current is None else "", is_done, line.at

    def _panic(self, line: Line, why: str) -> None:
        """Read why the kernel panicked in place of a kill."""
        opened = self.current
        if opened is None or opened.report.victims:
            opened = self._open(line)
        report = opened.report
        report.panic = why
        report.is_hopeless |= "no killable" in why or "deadlocked" in why
        if report.constraint is None and "compulsory" not in why:
            # For a cgroup the kernel panics only where vm.panic_on_oom is 2.
            report.constraint = Constraint.MEMCG if "(memcg)" in why else Constraint.NONE

    def _context(self, line: Line, text: str) -> None:
        """Read a line that is about an OOM only among others."""
        if ("alloc" in text or "Show Memory" in text) and _OTHER_DUMP.search(text):
            self._is_other_dump, self.candidate = True, None
            return
        if _BY_HAND in text:
            self._is_by_hand = True
            return
        opened = self.current
        if opened is not None and not opened.report.victims:
            if _is_begun_again(opened.report, text):
                self._close()
            else:
                opened.silent = 0 if self._read(opened, text) else opened.silent + 1
                return
        opened = self.candidate or _Open(OOMReport())
        if not self._read(opened, text):
            if self.candidate is not None:
                opened.silent += 1
                if opened.silent > _MOST_SILENT:
                    self._drop_candidate(opened)
            return
        opened.silent = 0
        if self.candidate is None:
            opened.report.at, opened.report.host = line.at, line.host
            self.candidate = opened
        if _is_oom(opened):
            self._replace(opened)

    def _drop_candidate(self, opened: _Open) -> None:
        self.candidate = None
        if _is_oom(opened):
            self._replace(opened)

    def _read(self, opened: _Open, text: str) -> bool:
        """Read a line of a report before its kill; return whether it is one."""
        report = opened.report
        if opened.is_mixed:
            return text.startswith("[")
        if text.startswith("["):
            if _ROW.match(text):
                if report.columns is None:
                    return False
                if len(opened.rows) < MOST_TASKS:
                    opened.rows.append(text)
                else:
                    report.is_cut = True
                return True
            if header := _HEADER.match(text):
                report.columns = tuple(header[1].split())
                report.is_old_rule |= "oom_score_adj" not in report.columns
                opened.rows = []
                return True
        if "moom" in text and not self._is_other_dump:
            report.circumstances.is_by_hand |= "moom_callback" in text or "sysrq_handle_moom" in text
        if "+0x" in text:
            return _read_frames(opened, text)
        if ": usage " in text and (counter := _COUNTER.match(text)):
            limit = int(counter[3])
            report.counters[counter[1]] = ReportCounter(
                int(counter[2]),
                None if limit >= _UNLIMITED_KB else limit,
                None if counter[4] is None else int(counter[4]),
            )
            return True
        if report.statistics is not None and report.columns is None and (figure := _STATISTIC.fullmatch(text)):
            if len(report.statistics) < _MOST_ITEMS:
                report.statistics[figure[1]] = int(figure[2])
            return True
        if _read_memory(opened, text, is_other=self._is_other_dump):
            return True
        return _read_context(report, text, is_other=self._is_other_dump)

    def _close(self) -> None:
        """Yield the open reports."""
        for opened in (self._waiting, self.current):
            self._let_go(opened)
        self._waiting = self.current = None

    def _let_go(self, opened: _Open | None) -> None:
        if opened is None:
            return
        report = opened.report
        _complete(opened)
        if not (report.victims or report.panic or report.is_hopeless):
            # The line of the kill is missing, and the reaper's is not.
            for pid, (name, is_done, _) in self._reaped.items():
                task = report.tasks.get(pid)
                if name or task is not None:
                    known = name or ("" if task is None else task.name)
                    report.victims[pid] = Victim(pid, known, is_reaped=is_done)
                    report.chosen = pid if report.chosen is None else report.chosen
        for pid in report.victims:
            self._reaped.pop(pid, None)
        self._found.append(report)


_KINDS = {
    "NONE": Constraint.NONE,
    "MEMCG": Constraint.MEMCG,
    "CPUSET": Constraint.CPUSET,
    "MEMORY_POLICY": Constraint.MEMORY_POLICY,
}


def _mix(opened: _Open) -> None:
    """Forget what may be another report's."""
    opened.is_mixed = opened.report.is_cut = True
    opened.rows, opened.is_cgroups, opened.is_perhaps_cgroups = [], None, False
    first = opened.report
    opened.report = OOMReport(
        at=first.at,
        host=first.host,
        trigger=first.trigger,
        order=first.order,
        gfp_mask=first.gfp_mask,
        has_flag_names=first.has_flag_names,
        is_cut=True,
    )


def _first_line(report: OOMReport) -> tuple[object, ...]:
    return report.at, report.trigger, report.order, report.gfp_mask


def _is_oom(opened: _Open) -> bool:
    """Whether what was read without a first line is of an OOM: only its reports have counters and a task table."""
    report = opened.report
    has_table = report.columns is not None and bool(opened.rows)
    is_proven = report.victims or report.counters or report.task_cgroup or report.is_hopeless or has_table
    return bool(is_proven) or opened.is_dump


def _is_begun_again(report: OOMReport, text: str) -> bool:
    """Whether a line that a report has once comes again: the first line of another report is missing."""
    if report.trigger or report.gfp_mask is not None or report.columns is not None or report.chosen is not None:
        return False
    if text.startswith("memory: usage"):
        again = _COUNTER.match(text)
        known = report.counters.get("memory")
        return bool(again and again[4] and known is not None and int(again[4]) != known.failures)
    other = _TASK_IN.match(text) if report.task_cgroup is not None and text.startswith("Task in /") else None
    return other is not None and other[1] != report.task_cgroup


def _constraint_of(message: str) -> Constraint | None:
    """Return what a kill's line says ran out."""
    if message.startswith("Memory cgroup"):
        return Constraint.MEMCG
    if message.startswith("No available memory"):
        return Constraint.CPUSET if "cpuset" in message else Constraint.MEMORY_POLICY
    return Constraint.NONE if message else None


def _fits(report: OOMReport, said: Constraint | None) -> bool:
    """Whether what a kill says ran out can be what a report says."""
    known = report.constraint or (Constraint.MEMCG if report.counters else None)
    return said is None or known is None or (said is Constraint.MEMCG) is (known is Constraint.MEMCG)


def _read_victim(report: OOMReport, pid: int, name: str, rest: str) -> None:
    known = report.victims.get(pid)
    if (known is None and len(report.victims) < _MOST_VICTIMS) or (known is not None and known.rss_kb is None):
        amounts = {label: int(number) for label, number in _AMOUNT.findall(rest)}
        parts = amounts.get("anon-rss", 0), amounts.get("file-rss", 0), amounts.get("shmem-rss", 0)
        has_rss = "anon-rss" in amounts
        adj = _VICTIM_ADJ.search(rest)
        report.victims[pid] = Victim(
            pid,
            name,
            amounts.get("total-vm", amounts.get("vsz")),
            sum(parts) if has_rss else None,
            int(adj[1]) if adj else None,
            known is not None and known.is_reaped,
            parts if has_rss else None,
            amounts.get("pgtables", 0),
        )
    if report.chosen is None:
        report.chosen = pid


def _read_frames(opened: _Open, text: str) -> bool:
    """Read frames of the stack of the process that asked; innermost frames come first."""
    frames = _FRAME.findall(text)
    for unsure, name in frames:
        if unsure:
            opened.is_perhaps_cgroups |= name in _OF_CGROUP
            continue
        if opened.is_cgroups is None:
            is_decided = opened.last_frame in _OOM_FRAMES
            if name in _OF_CGROUP:
                opened.is_cgroups = True
            elif is_decided and (name in _OF_MACHINE or name.startswith("__alloc_pages")):
                opened.is_cgroups = False
        opened.is_dump |= name in _OOM_FRAMES and opened.last_frame == "dump_header"
        opened.last_frame = name
    circumstances = opened.report.circumstances
    if frames:
        opened.has_frames = True
        if circumstances.origin is None:
            circumstances.origin = next((origin for words, origin in _ORIGINS.items() if words in text), None)
    return bool(frames)


def _read_memory(opened: _Open, text: str, *, is_other: bool) -> bool:
    """Read a line about the memory of the machine, or of the cgroup; return whether it is one."""
    report = opened.report
    if text.startswith("Memory cgroup stats") and (found := _STATISTICS.match(text)):
        _read_statistics(report, found[1], text[found.end() :])
    elif is_other:
        return False
    elif text.startswith("Mem-"):
        report.has_memory_info = True
    elif " free:" in text and (found := _ZONE.match(text)):
        place = int(found[1] or 0), found[2]
        if len(report.zones) < _MOST_ITEMS and place not in ((zone.node, zone.name) for zone in report.zones):
            present, high = _PRESENT.search(text), _HIGH.search(text)
            report.zones.append(
                ReportZone(
                    *place,
                    int(found[3]),
                    int(found[4]),
                    None if present is None else int(present[1]),
                    high_kb=None if high is None else int(high[1]),
                )
            )
            report.kernel_stack_kb += sum(map(int, _STACK.findall(text)))
        report.has_memory_info = True
    elif "kB " in text and (found := _BUDDIES.match(text)):
        opened.smallest_block_kb = int(found[1])
        report.has_memory_info = True
    elif " pages R" in text or " pages r" in text:
        if (found := _RAM.match(text)) is None:
            return False
        if found[2] == "RAM":
            report.ram_pages = int(found[1])
        else:
            report.reserved_pages = int(found[1])
        report.has_memory_info |= found[2] == "RAM"
    elif " swap " in text and (found := _SWAP.match(text)):
        if found[1] == "Total":
            report.swap_kb = int(found[2])
        else:
            report.circumstances.free_swap_kb = int(found[2])
    elif ":" in text and _MEMORY_INFO.match(text):
        if len(report.memory_pages) < _MOST_ITEMS:
            report.memory_pages |= {name: int(pages) for name, pages in _PAGES.findall(text)[:_MOST_ITEMS]}
    elif "hugepages_total=" in text and (found := _HUGE.search(text)):
        if len(report.circumstances.huge_pages) < _MOST_ITEMS:
            key = int(found[1]), int(found[4])
            report.circumstances.huge_pages[key] = HugePages(int(found[2]), int(found[3]))
    elif text.startswith("Node ") and (found := _STACK.search(text)):
        report.kernel_stack_kb += int(found[1])
    else:
        return False
    return True


def _read_statistics(report: OOMReport, of: str, rest: str) -> None:
    """Read what a cgroup holds: before 5.3 in one line per cgroup, of it and those below it alone."""
    sums = report.statistics = report.statistics or {}
    report.statistics_of = report.statistics_of or _whole_path(of)
    own = {name: int(number) * 1024 for name, number in _OLD_STATISTIC.findall(rest)[:_MOST_ITEMS]}
    for name, amount in own.items():
        sums[name] = sums.get(name, 0) + amount
    if own and len(report.statistics_below) < 64:
        report.statistics_below[of] = {name: amount for name, amount in own.items() if name in _OF_EACH}


def _read_context(report: OOMReport, text: str, *, is_other: bool) -> bool:
    """Read a line about the process that asked, and its cgroup; return whether it is one."""
    if "omm" in text and (asked := _ASKED.search(text)):
        name = asked[3].strip()
        is_same = report.trigger.endswith(name) or name.endswith(report.trigger)
        if is_other or report.trigger_pid is not None or not is_same:
            return False
        report.trigger, report.trigger_pid = name, int(asked[1] or asked[2])
        if release := _RELEASE.search(text):
            report.release = int(release[1]), int(release[2])
    elif text.startswith("Task in ") and (task_in := _TASK_IN.match(text)):
        report.task_cgroup, report.constraint = _whole_path(task_in[1]), Constraint.MEMCG
        _read_limit(report, task_in[2] or "")
    elif report.task_cgroup is not None and (limit_of := _LIMIT_OF.match(text)):
        _read_limit(report, limit_of[1])
    elif " cpuset=" in text and (cpuset := _CPUSET.match(text)):
        report.nodes = report.nodes or _node_numbers(cpuset[1])
    elif text.startswith("Out of memory") and _NONE_KILLABLE.match(text):
        report.is_hopeless = True
    elif report.columns is not None and text.endswith(("...", "...]", "dropped **", "messages")) and _LOST.match(text):
        report.is_cut = True
    else:
        return False
    return True


def _read_limit(report: OOMReport, of: str) -> None:
    """Read whose limit was met; Alibaba's kernels call the machine host."""
    report.oom_cgroup = _ROOT if of == "host" else _whole_path(of)
    if of == "host":
        report.constraint = Constraint.NONE


def _complete(opened: _Open) -> None:
    """Read the table, and fill in what the lines of the kill would have said, where others say it too."""
    report = opened.report
    if report.columns is not None and opened.rows and not report.is_old_rule:
        tasks = _tasks_of(report.columns, opened.rows)
        report.is_cut |= len(tasks) < len(opened.rows)
        report.tasks = {task.pid: task for task in tasks}
    if report.tasks and report.chosen not in report.tasks:
        # A thread was chosen: the table has its process, which died by its own number.
        own = (
            pid for pid, victim in report.victims.items() if victim.name == report.chosen_name and pid in report.tasks
        )
        report.chosen = next(own, report.chosen)
    report.page_kb = _page_kb(report, opened.smallest_block_kb)
    if not report.victims and report.chosen is not None and report.is_constraint_named and report.score is None:
        # Of the summary: no child dies in its place any more.
        report.victims[report.chosen] = Victim(report.chosen, report.chosen_name)
    report.constraint = report.constraint or _proven(opened)
    if report.constraint is Constraint.MEMCG:
        is_first = bool(report.counters) or not report.statistics_below  # else the first may be one below it
        report.oom_cgroup = report.oom_cgroup or (report.statistics_of if is_first else None)
    elif report.constraint is not None:
        report.oom_cgroup = report.oom_cgroup or _ROOT
    if report.columns is not None and report.gfp_mask is not None and not _has_context(report):
        report.is_cut = True  # only lines that were searched for are left: rows are missing, too
    report.task_cgroup = report.task_cgroup or report.group  # all of it died, the victim with it
    task, limited = report.task_cgroup, report.oom_cgroup
    is_below = task is None or limited in {None, _ROOT} or f"{task}/".startswith(f"{limited}/")
    if report.constraint is Constraint.MEMCG and not is_below:
        report.oom_cgroup = None  # a part of its path is lost


def _has_context(report: OOMReport) -> bool:
    return bool(
        report.trigger_pid is not None
        or report.counters
        or report.has_memory_info
        or report.ram_pages is not None
        or report.statistics is not None
        or report.task_cgroup is not None
    )


def _proven(opened: _Open) -> Constraint | None:
    """Return what ran out by the lines around the kill; None where none proves it."""
    report = opened.report
    if report.counters or report.statistics is not None or opened.is_cgroups:
        return Constraint.MEMCG  # only the report of a cgroup has them
    if opened.is_cgroups is False:
        return Constraint.NONE
    if opened.is_perhaps_cgroups:
        return None if report.has_memory_info else Constraint.MEMCG
    if not report.has_memory_info:
        return None
    # Older kernels show the machine's memory for cgroups as well, after lines about the cgroup.
    is_new = report.has_flag_names or (report.release is not None and report.release >= _MEMORY_INFO_ALONE)
    is_whole = report.gfp_mask is not None and opened.has_frames
    has_new_table = report.release is None and report.columns is not None and "oom_adj" not in report.columns
    return Constraint.NONE if is_new or is_whole or has_new_table else None


def _page_kb(report: OOMReport, smallest_block_kb: int | None) -> int | None:
    if smallest_block_kb in _PAGE_KB:
        return smallest_block_kb
    for pid, victim in report.victims.items():
        task = report.tasks.get(pid)
        if task is not None and victim.total_vm_kb and task.total_vm_pages:
            ratio = victim.total_vm_kb / task.total_vm_pages
            return min(_PAGE_KB, key=lambda size: abs(size - ratio))
    return None


def _tasks_of(columns: Sequence[str], rows: Sequence[str]) -> list[Task]:
    """Return the rows of a table that are whole and can be: scores are from -1000 to 1000."""
    places = {name: place for place, name in enumerate(columns)}
    if not places.keys() >= {"uid", "rss", "oom_score_adj"}:
        return []
    count = len(columns)
    swap, total, ptes, pmds = (places.get(name) for name in ("swapents", "total_vm", "nr_ptes", "nr_pmds"))
    table_bytes = places.get("pgtables_bytes")
    parts = [places[name] for name in ("rss_anon", "rss_file", "rss_shmem") if name in places]
    rss_parts = itemgetter(*parts) if len(parts) == 3 else None
    uid, rss, adj = places["uid"], places["rss"], places["oom_score_adj"]
    tasks = []
    for row in rows:
        pid, *fields = row[1:].replace("]", " ", 1).split(None, count + 1)
        try:
            values = [*map(int, fields[:count])]
        except ValueError:
            continue
        if len(fields) <= count or not -1000 <= values[adj] <= 1000:
            continue
        name = fields[count]
        tasks.append(
            Task(
                int(pid),
                values[uid],
                values[rss],
                values[adj],
                name.strip(),
                None if swap is None else values[swap],
                None if ptes is None else values[ptes] + (0 if pmds is None else values[pmds]),
                None if table_bytes is None else values[table_bytes],
                0 if total is None else values[total],
                None if rss_parts is None else rss_parts(values),
            )
        )
    return tasks


def _whole_path(path: str) -> str | None:
    """Return the path of a cgroup without quotes behind it; None for what is left of one."""
    path = path.rstrip("\"'`,;)")
    is_whole = path == _ROOT or not (path.endswith(("/", "-", "\\")) or _NOT_OF_PATHS.search(path))
    return path if path and is_whole else None


def _between(text: str, start: str, end: str) -> str | None:
    _, found, rest = text.partition(start)
    value, ends, _ = rest.partition(end)
    return value if found and ends else None


def _node_numbers(text: str) -> frozenset[int]:
    """Read a list of memory nodes such as ``0,2-3``; nothing where it is none."""
    numbers: set[int] = set()
    for part in text.split(",")[:_MOST_ITEMS]:
        first, _, last = part.partition("-")
        if not all(each.isascii() and each.isdecimal() and len(each) < 5 for each in (first, last or first)):
            return frozenset()
        numbers.update(range(int(first), min(int(last or first), int(first) + _MOST_ITEMS) + 1))
    return frozenset(numbers)
