"""Lines of an OOM report, read into it: who asked, what was full, the task table, who died."""

from __future__ import annotations

import re

from podqos.kernel.cgroup import ROOT
from podqos.kernel.oom_circumstances import node_numbers
from podqos.kernel.oom_lines import KillLine
from podqos.kernel.oom_report import Constraint, FreeBlocks, OOMReport, ReportCounter, ReportZone, Victim
from podqos.kernel.task_table import MOST_TASKS, read_row

MOST_VICTIMS = 10_000
_MOST_ZONES = 512
_MOST_KB = 1 << 50
_MOST_STATISTICS = 256
_MOST_BELOW = 64
_OF_EACH = {"cache", "rss", "shmem", "swap", "inactive_file", "active_file"}
_MOST_DIGITS = 10
_UNLIMITED_KB = 1 << 50
_ASKED = re.compile(
    r"(?:PID: (\d{1,10}) Comm|Pid: (\d{1,10}), comm): (.{1,32}?) (?:Kdump: \w{1,16} )?(?:Not(?: tainted|$)|Tainted)"
)
_RELEASE = re.compile(r"(?:Not tainted|Tainted:)[A-Z -]{0,60}\(?(\d{1,3})\.(\d{1,4})(?!\d)")
_WRAPPED_RELEASE = re.compile(r"[A-Z ]{0,20}(?:tainted )?(\d{1,2})\.(\d{1,3})\.\d[^ ]{0,80}(?: \(.{1,80}\))? #\d")
_CPUSET = re.compile(r".{1,64} cpuset=\S{1,4096} mems_allowed=([\d,-]{1,256})")
_TASK_IN = re.compile(r"Task in (/\S{0,4096}) killed(?: as a result of limit of (/\S{0,4096}|host\b))?(?:\s|$)")
_LIMIT_OF = re.compile(r" {0,4}as a result of limit of (/\S{0,4096}|host\b)(?:\s|$)")
_IN_SENTENCE = re.compile(r"`[.,;:)]{0,3}\s{1,4}\w|[\"'”’][.)]{1,2}\s{1,4}\w")
"""What follows a line of the kernel's that a sentence quotes: its end, and more words."""
_HOST = "host"
"""What Alibaba's kernels call the machine in these lines, which all others write of cgroups alone."""
_COUNTER = re.compile(
    r"(memory|memory\+swap|swap|kmem): usage (\d{1,13})kB, limit (\d{1,20})kB(?:, failcnt (\d{1,18}))?"
)
_STATISTICS = re.compile(r"Memory cgroup stats for (.{1,8000}?):(?: |$)")
STATISTIC = re.compile(r"([a-z_]{3,40}) (\d{1,17})")
_OLD_STATISTIC = re.compile(r"([a-z_]{3,40}):(\d{1,13})KB")
_MEMORY_INFO = re.compile(
    r" ?(?:active_anon|active_file|unevictable|slab_reclaimable|mapped|kernel_misc_reclaimable|free):\d{1,12} "
)
_PAGES = re.compile(r"([a-z_]{3,40}):(\d{1,12})(?![\dk])")
_STACK = re.compile(r" kernel_stack:(\d{1,13})kB")
_RAM = re.compile(r"(\d{1,12}) pages (RAM|reserved)")
_SWAP = re.compile(r"Total swap = (\d{1,13})kB")
_ZONE = re.compile(r"(?:Node (\d{1,5}) )?(\w{1,16}) free:(\d{1,13})kB (?:boost:\d{1,13}kB )?min:(\d{1,13})kB")
_CMA = re.compile(r" free_cma:(\d{1,13})kB")
_HIGH = re.compile(r" high:(\d{1,13})kB")
_PRESENT = re.compile(r" present:(\d{1,13})kB")
_RESERVES = re.compile(r"lowmem_reserve\[\]:((?: \d{1,12}){1,8})")
_BUDDIES = re.compile(r"(?:Node (\d{1,5}) )?(\w{1,16}): \d{1,12}\*(\d{1,3})kB ")
_BLOCKS = re.compile(r"([1-9]\d{0,11})\*(\d{1,9})kB(?: \(([A-Z]{1,8})\))?")
HEADER = re.compile(r"\[ {0,6}pid {0,6}\] (.{10,200}) name")
ROW = re.compile(r"\[ {0,12}(\d{1,10})\] {1,16}(\d{1,10}(?: .*|$))")
_HEADLESS_ROW = re.compile(
    r"\[ {0,12}(\d{1,10})\] {1,16}\d{1,10} {1,16}\1(?: {1,16}\d{1,15}){3,9} {1,16}-?\d{1,4} (?=\D)\S.{0,63}"
)
"""A row whose columns are not known: a thread group's leader, and a name behind its score."""
_AMOUNT = re.compile(r"(total-vm|vsz|anon-rss|file-rss|shmem-rss|pgtables):(\d{1,13})kB")
_VICTIM_ADJ = re.compile(r"oom_score_adj:(-?\d{1,5})")
_LOST = re.compile(
    r"\*\* \d{1,12} printk messages dropped|Missed \d{1,12} kernel messages|imklog.{0,40}lost|\.\.\.$|\[\.\.\.\]$"
)
_NOT_OF_PATHS = re.compile(r"\.\.\.|[\s\"'|\u2500-\u257f\ufffd]")
_ALLOCATING = "oom_kill_allocating_task"
_NONE_KILLABLE = re.compile(r"Out of memory and no killable processes[. ]{0,4}$")
_OF_MACHINE = ("Mem-Info:", "Mem-info:")


def constraint_of(message: str) -> Constraint | None:
    """Return what a kill's line says ran out."""
    if message.startswith("Memory cgroup"):
        return Constraint.MEMCG
    if message.startswith("No available memory"):
        return Constraint.CPUSET if "cpuset" in message else Constraint.MEMORY_POLICY
    return Constraint.NONE if message else None


def read_killed(report: OOMReport, kill: KillLine, *, is_reaped: bool) -> None:
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


def read_message(report: OOMReport, kill: KillLine) -> None:
    """Read what a kill's line says about the OOM."""
    report.is_allocating_task |= _ALLOCATING in kill.message
    report.is_old_rule |= kill.is_old_rule
    if report.constraint is None:
        report.constraint = constraint_of(kill.message)


def read_panic(report: OOMReport, why: str) -> None:
    """Read why the kernel panicked."""
    report.panic = why.strip()
    if "no killable" in why or "deadlocked" in why:
        report.is_hopeless = True
    if report.constraint is None and "compulsory" not in why:
        # For a cgroup the kernel panics only where vm.panic_on_oom is 2.
        report.constraint = Constraint.MEMCG if "(memcg)" in why else Constraint.NONE


def chosen_of(text: str) -> tuple[int, str] | None:
    """Return the process that ``oom-kill:`` names."""
    name, _, pid = text.rpartition(",task=")[2].rpartition(",uid=")[0].rpartition(",pid=")
    return (int(pid), name) if pid.isascii() and pid.isdecimal() and len(pid) <= _MOST_DIGITS else None


def read_summary(report: OOMReport, text: str, kind: str) -> None:
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
        report.oom_cgroup, report.constraint = whole_path(limited), Constraint.MEMCG
    report.task_cgroup = whole_path(text.rpartition(",task=")[0].partition(",task_memcg=")[2]) or report.task_cgroup
    if chosen := chosen_of(text):
        report.chosen, report.chosen_name = chosen


def whole_path(path: str) -> str | None:
    """Return the path of a cgroup without quotes behind it; None for what is left of one."""
    path = path.rstrip("\"'`,;)")
    is_whole = path == ROOT or not (path.endswith(("/", "-", "\\")) or _NOT_OF_PATHS.search(path))
    return path if path and is_whole else None


def _between(text: str, start: str, end: str) -> str | None:
    _, found, rest = text.partition(start)
    value, ends, _ = rest.partition(end)
    return value if found and ends else None


def read_line(report: OOMReport, text: str, *, is_other: bool) -> bool:
    """Read a line of a report before its kill; return whether it is one.

    ``is_other``: the machine's memory may be shown for something else.
    """
    if text.startswith("["):
        if header := HEADER.match(text):
            report.columns = tuple(header[1].split())
            report.is_old_rule |= "oom_score_adj" not in report.columns
            report.tasks.clear()
            return True
        if report.columns is not None and (row := ROW.match(text)):
            _read_row(report, row)
            return True
        if report.columns is None and _HEADLESS_ROW.fullmatch(text):
            report.headless_rows += 1
            return True
    if not is_other:
        report.circumstances.read(text)
    if report.trace.read(text):
        return True
    if ": usage " in text and (counter := _COUNTER.match(text)):
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


def read_frames(report: OOMReport, frames: str, *, is_other: bool) -> None:
    """Read lines that are all frames of a stack."""
    if is_other or not report.circumstances.is_told_by(frames):
        report.trace.read(frames)
        return
    for line in frames.split("\n"):
        read_line(report, line, is_other=is_other)


def read_figures(report: OOMReport, figures: str, *, is_other: bool) -> None:
    """Read lines that are all statistics of the cgroup, which have begun."""
    sums = report.statistics
    if sums is None or (not is_other and report.circumstances.is_told_by(figures)):
        for line in figures.split("\n"):
            read_line(report, line, is_other=is_other)
        return
    for name, amount in STATISTIC.findall(figures):
        if len(sums) >= _MOST_STATISTICS:
            break
        sums[name] = int(amount)


def _read_memory(report: OOMReport, text: str) -> bool:
    """Read a line about the memory of the machine, or of the cgroup; return whether it is one."""
    if text.startswith(_OF_MACHINE):
        return True
    has_colon = ":" in text
    if has_colon and (found := _ZONE.match(text)):
        place = int(found[1] or 0), found[2]
        if len(report.zones) < _MOST_ZONES and place not in ((zone.node, zone.name) for zone in report.zones):
            present = _PRESENT.search(text)
            present_kb = None if present is None else int(present[1])
            high, cma = _HIGH.search(text), _CMA.search(text)
            report.zones.append(
                ReportZone(
                    int(found[1] or 0),
                    found[2],
                    int(found[3]),
                    int(found[4]),
                    present_kb,
                    high_kb=None if high is None else int(high[1]),
                    free_cma_kb=0 if cma is None else int(cma[1]),
                )
            )
        report.kernel_stack_kb += sum(map(int, _STACK.findall(text)))
    elif has_colon and (found := _RESERVES.match(text)):
        if report.zones:
            report.zones[-1].reserve_pages = tuple(map(int, found[1].split()))
    elif has_colon and (found := _BUDDIES.match(text)):
        report.smallest_block_kb = int(found[3])
        node, name = int(found[1] or 0), found[2]
        blocks = tuple(FreeBlocks(int(size), int(count), kinds) for count, size, kinds in _BLOCKS.findall(text))
        for zone in report.zones:
            if (zone.node, zone.name) == (node, name):
                zone.blocks = blocks if " = " in text else None  # a broken line lacks the largest
    elif " pages " in text and (found := _RAM.match(text)):
        if found[2] == "RAM":
            report.ram_pages = int(found[1])
        else:
            report.reserved_pages = int(found[1])
    elif text.startswith("Total swap") and (found := _SWAP.match(text)):
        report.swap_kb = int(found[1])
    elif has_colon and (found := _MEMORY_INFO.match(text)):
        if len(report.memory_pages) < _MOST_STATISTICS:
            report.memory_pages |= {name: int(pages) for name, pages in _PAGES.findall(text)[:_MOST_STATISTICS]}
    elif text.startswith("Node ") and (found := _STACK.search(text)):
        report.kernel_stack_kb = min(_MOST_KB, report.kernel_stack_kb + int(found[1]))
    else:
        return _read_statistics(report, text)
    return True


def _read_statistics(report: OOMReport, text: str) -> bool:
    """Read a line of what the cgroup holds: since 5.3 one per figure, before it one per cgroup below it."""
    if text.startswith("Memory cgroup stats") and (found := _STATISTICS.match(text)):
        sums = report.statistics = report.statistics or {}
        report.statistics_of = report.statistics_of or whole_path(found[1])
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
    if report.statistics is None or report.columns is not None or not (found := STATISTIC.fullmatch(text)):
        return False
    if len(report.statistics) < _MOST_STATISTICS:
        report.statistics[found[1]] = int(found[2])
    return True


def _read_context(report: OOMReport, text: str, *, is_other: bool) -> bool:
    """Read a line about the process that asked, and its cgroup; return whether it is one."""
    if not is_other and "omm" in text and (asked := _ASKED.search(text)):
        return _read_asked(report, text, asked)
    if report.trigger_pid is not None and report.release is None and (release := _WRAPPED_RELEASE.match(text)):
        report.release = int(release[1]), int(release[2])
        return True
    if text.startswith("Task in ") and (task_in := _TASK_IN.match(text)) and not _IN_SENTENCE.search(text):
        report.task_cgroup, report.constraint = whole_path(task_in[1]), Constraint.MEMCG
        _read_limit(report, task_in[2] or "")
    elif report.task_cgroup is not None and (limit_of := _LIMIT_OF.match(text)):
        _read_limit(report, limit_of[1])
    elif report.nodes is None and " cpuset=" in text and (cpuset := _CPUSET.match(text)):
        report.nodes = node_numbers(cpuset[1])
    elif text.startswith("Out of memory") and _NONE_KILLABLE.match(text):
        report.is_hopeless = True
    elif report.columns is not None and _LOST.match(text):
        report.is_cut = True
    else:
        return False
    return True


def _read_limit(report: OOMReport, of: str) -> None:
    """Read whose limit was met."""
    report.oom_cgroup = ROOT if of == _HOST else whole_path(of)
    if of == _HOST:
        report.constraint = Constraint.NONE


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
