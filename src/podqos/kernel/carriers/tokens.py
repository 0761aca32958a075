"""What the OOM killer's lines look like, wherever they begin: distinctive words and figures, not prefixes.

A line of a report is found by what it says. What stands before it is the carrier's (``prefixes``).

Sources: Linux mm/oom_kill.c, mm/memcontrol.c, mm/show_mem.c, lib/dump_stack.c.
"""

from __future__ import annotations

import re
from itertools import islice

_FARTHEST = 2048
"""A message that begins farther on in its line is not looked for."""

_INVOKED = re.compile(r" {1,4}invoked oom-killer:")
INVOKED = re.compile(r"^(.{0,2048}?)\s{1,4}invoked oom-killer: {0,4}(?:gfp_mask=(?:0x)?[0-9a-f]|.{0,40}$)")
LONGEST_NAME = 15
"""Of a process: TASK_COMM_LEN without its end."""

_FIRST = r"(?=[\d\[*CDFHKMNOPTafklmosu])"
"""What messages begin with: to look at one character takes less time than to try all forms."""
_FORMS = (
    r"(?:"
    r"oom-kill:constraint=(?![A-Z_]{1,40}+[^,A-Z_ \t\r\n])"
    r"|(?:Memory cgroup o|O)ut of [Mm]emory(?: \([^()\n]{1,40}\))?: [Kk]ill(?:ed)? process \d"
    r"|No available memory(?: \(MPOL_BIND\)| in cpuset): [Kk]ill(?:ed)? process \d"
    r"|Kernel panic - not syncing: (?:[Oo]ut of memory|System is deadlocked on memory)"
    r"|(?:Memory cgroup o|O)ut of memory and no killable|Out of memory: [Nn]o killable"
    r"|Kill(?:ed)? process \d{1,10}(?:, UID \d{1,10},)? \("
    r"|\[\s{0,6}pid\s{0,6}\]\s{1,6}uid\s"
    r"|\[\s{0,12}\d{1,10}\]\s{1,16}\d{1,10}\s{1,16}\d{1,10}\s{1,16}\d{1,15}\s{1,16}\d{1,15}\s{1,16}-?\d"
    r"|(?:memory|memory\+swap|swap|kmem): usage \d{1,20}kB, limit \d"
    r"|Memory cgroup stats(?: for /|:)"
    r"|Task in /\S{0,4096} killed as a result of limit of"
    r"|Tasks in /\S{0,4096} are going to be killed"
    r"|Tasks state \(memory values in pages\)"
    r"|oom_reaper: (?:reaped|unable)"
    r"|CPU: \d{1,5} (?:UID: \d{1,10} )?PID: \d{1,10} Comm: "
    r"|Pid: \d{1,10}, comm: "
    r"|Mem-[Ii]nfo:"
    r"|\*\* \d{1,12} printk messages dropped"
    r"|(?:Call Trace|Hardware name|Modules linked in):"
    r"|(?:active_anon|active_file|unevictable|slab_reclaimable|mapped|sec_pagetables|free):\d{1,15} [a-z_]{4,24}:\d"
    r"|Node \d{1,5} (?:\w{1,16} free:\d|active_anon:\d|\w{1,16}: \d{1,12}\*\d|hugepages_total=)"
    r"|(?:DMA|DMA32|Normal|HighMem|Movable)(?: free:\d{1,15}kB (?:boost|min)|: \d{1,12}\*\d{1,9}kB )"
    r"|lowmem_reserve\[\]: \d"
    r"|\d{1,15} (?:pages (?:RAM|reserved|HighMem|in swap|cma reserved|hwpoisoned)|total pagecache pages)"
    r"|(?:Total|Free) swap {1,3}= \d"
    r")"
)
BEGINNING = _FIRST + _FORMS
"""What messages begin with that have distinctive words or figures."""
_START = re.compile(BEGINNING)
_ROW_FIGURES = re.compile(r"\]\s{1,16}\d{1,10}\s{1,16}\d")
_JOINED = re.compile(rf"{BEGINNING}|[^\s,;:]{{1,15}} invoked oom-killer: gfp_mask=")
_KILL_WORDS = re.compile(r"oom-kill(?:er)?:|ill(?:ed)? process \d{1,10}(?:, UID \d{1,10},)? \([^\n]{1,40}?\)")
_KILLING = re.compile(r"(?:Memory cgroup o|O)ut of|Kill|.{1,15} invoked ")
_QUOTING = " >|+*#\t"
_REASON = "Memory cgroup out of memory: "
_KILLS = ("Memory cgroup out of memory: Killed process", "Out of memory: Killed process")
_SHORTEST = 3
_SEVERAL = 2
_TRACE = re.compile(r"\s{0,4}(?:\? |\[<[0-9a-f]{8,16}>\] |</?[A-Z]{3,4}>|[\w.]{2,80}\+0x[0-9a-f]{1,8}/0x)")
_STATISTIC = re.compile(r"\s{0,4}[a-z_0-9]{3,40} \d{1,20}\s{0,4}$")
_ROW_UP_TO_FIGURES = re.compile(r"\[\s{0,12}\d{1,10}\]\s{1,16}\d{1,10}\s{1,16}\d")
_ROW_BEGINS = re.compile(r"\[\s{0,12}\d{1,10}\](?:\s{1,16}\d|\s*$)")
_HEADER_BEGINS = re.compile(r"\[\s{0,6}pid\s{0,6}\]")
_COLUMNS = re.compile(r"\[\s{0,6}pid\s{0,6}\]\s{1,6}(.{10,200})\sname\b")
_ROW = re.compile(r"\[\s{0,12}(\d{1,10})\]\s{0,16}(.*)")
_CPUSET = re.compile(r"^(.{0,2048}?)\s?cpuset=\S{1,4096} mems_allowed=[\d,-]{1,256}")

COMM = re.compile(
    r"(?:PID: \d{1,10} Comm: |Pid: \d{1,10}, comm: )(.{1,15}?)\s(?:Kdump: loaded |Kdump: |Not tainted|Tainted:|\d\.\d)"
)
_WHOLE_INVOKED = re.compile(r"invoked oom-killer: (?:\w{3,16}=[^,=]{1,600},\s{1,2}){1,5}\w{3,16}=[^,=\s]{1,80}$")
_UID_ENDS = re.compile(r",uid=\d{1,10}$")
_KILL = re.compile(
    r"Killed process \d{1,10}(?:, UID \d{1,10},)? \(.{1,40}\),? (?:UID:\d{1,10},? )?total-vm:\d{1,15}kB, "
    r"anon-rss:\d{1,15}kB, file-rss:\d{1,15}kB(?P<rest>.*)"
)
_BARE_KILL = re.compile(r"Killed process \d{1,10} \(.{1,40}\)\.?$")
_CHOSEN = re.compile(r"Kill process \d{1,10} \(.{1,40}\) score \d{1,18} or sacrifice child$")
_KILL_REST = re.compile(
    r"(?:, shmem-rss:\d{1,15}kB)?(?:,? UID:\d{1,10})?(?: pgtables:\d{1,15}kB)?(?P<adj> oom_score_adj:-?\d{1,5})?"
)
_CGROUPS = re.compile(
    r"Task in \S+ killed as a result of limit of \S*[^\s-]|Tasks in \S+ are going to be .{0,40}group set"
)
_CGROUP_ENDS = (".slice", ".scope", ".service", " set", " /")
_ID_ENDS = re.compile(r"[/-][0-9a-f]{64}$")
_COUNTER_ENDS = re.compile(r"limit \d{1,20}kB(?P<failures>, failcnt \d{1,20})?$")
_MOST_ADJUSTMENT = 1000
_HINTS = (
    "oom-kill",
    "ill process",
    "illed process",
    "pid  ]",
    "[ pid ]",
    "out of memory",
    "kB, limit ",
    "memory values in pages",
    "oom_reaper:",
)


def has_hint(text: str) -> bool:
    """Whether a text may hold a line of the OOM killer's."""
    for hint in _HINTS:  # noqa: SIM110 - half the time of any()
        if hint in text:
            return True
    return False


def start_of(line: str, begin: int = 0) -> int:
    """Return where a message of the OOM killer's begins in a line; -1 if none does, or it does so with a name."""
    if not _may_start(line):
        return -1
    for located in _START.finditer(line, begin, begin + _FARTHEST):
        start = located.start()
        if located[0].startswith("Kill") and start > begin and _REASON.endswith(line[begin:start].lstrip(_QUOTING)):
            return -1  # the rest of a line that was broken
        before = line[start - 1 : start]
        is_part = before == "+" and line[start - 2 : start - 1].isalnum()  # of memory+swap
        if start <= begin + (before == "-") or not (before.isalnum() or before in "_/-" or is_part):
            return start
    return -1


def _may_start(text: str) -> bool:
    """Whether a text has what one of the messages in ``_START`` has to have: cheaper than to look for them."""
    return (
        "oom" in text
        or " process " in text
        or "ut of " in text
        or "pid" in text
        or " in /" in text
        or "usage" in text
        or "emory" in text
        or "omm: " in text
        or "Mem-" in text
        or "printk" in text
        or "Trace:" in text
        or "name:" in text
        or "linked" in text
        or "active_" in text
        or "evictable:" in text
        or "mapped:" in text
        or "pagetables:" in text
        or "reclaimable:" in text
        or "free:" in text
        or "Node " in text
        or "kB" in text
        or "lowmem" in text
        or "page" in text
        or "swap " in text
        or ("]" in text and _ROW_FIGURES.search(text) is not None)
    )


def has_several(line: str) -> bool:
    """Whether a line has the beginnings of several messages."""
    if "oom-kill" not in line and " process " not in line:
        return False
    kills = len(list(islice(_KILL_WORDS.finditer(line), _SEVERAL)))
    if kills < _SEVERAL and not (kills and "kB min:" in line):
        return False
    return len(list(islice(_START.finditer(line), _SEVERAL))) == _SEVERAL


def starts_of_several(line: str) -> list[int]:
    """Return where messages begin in a line, the first of them with the line, if a kill is among those after it."""
    later = [
        located
        for located in _JOINED.finditer(line, 1)
        if line[located.start() - 1].isspace() and not _REASON.endswith(line[: located.start()][-len(_REASON) :])
    ]
    is_kill = any(_KILLING.match(located[0]) for located in later[1:])
    return [0, *(located.start() for located in later[1:])] if is_kill else [0]


def kind_of(text: str) -> str:
    """Return whether a message is of those whose order is certain: I(nvoked), H(eader), R(ow) or K(ill)."""
    if text.startswith("["):
        return "H" if _HEADER_BEGINS.match(text) else "R" if _ROW_BEGINS.match(text) else ""
    return "I" if "invoked oom-killer:" in text else "K" if "Killed process" in text or "oom-kill:" in text else ""


def is_row(text: str) -> bool:
    """Whether a text begins with a pid and figures, as rows of the task table do."""
    return text.startswith("[") and _ROW_UP_TO_FIGURES.match(text) is not None


def is_start(text: str) -> bool:
    """Whether a message begins here, even if the rest of it is in the next line."""
    return (
        _START.match(text) is not None
        or _TRACE.match(text) is not None
        or _ROW_BEGINS.match(text) is not None
        or _HEADER_BEGINS.match(text) is not None
        or " invoked oom-killer" in text[:40]
        or ("mems_allowed=" in text and _CPUSET.match(text) is not None)
    )


def may_begin(text: str) -> bool:
    """Whether a message may begin somewhere in a text."""
    return (
        "invoked" in text
        or " mems_allowed=" in text
        or text.lstrip().startswith("[")
        or _TRACE.match(text) is not None
        or start_of(text) >= 0
    )


def is_statistic(text: str) -> bool:
    """Whether a line has the form of one of a cgroup's statistics."""
    return _STATISTIC.match(text) is not None


def before_name(line: str) -> str | None:
    """Return what precedes ``invoked oom-killer``, or ``cpuset=``: what carries the line, and a process's name."""
    located = INVOKED.match(line) if "invoked oom-killer:" in line else None
    if located is None and "mems_allowed=" in line and "constraint=" not in line:
        located = _CPUSET.match(line)
    return None if located is None else located[1]


def columns_of(text: str) -> int:
    """Return how many figures a row has after its pid, by the header of the table; 0 if this is none."""
    located = _COLUMNS.match(text) if "pid" in text else None
    return 0 if located is None else len(located[1].split())


def is_whole(text: str, columns: int) -> bool | None:
    """Whether a message has its end; None where its form does not say."""
    if text.startswith("["):
        return _is_whole_row(text, columns)
    if "invoked oom-killer" in text:
        return _WHOLE_INVOKED.search(text) is not None and "adj=" in text and "order=" in text
    if text.startswith("oom-kill:"):
        return _UID_ENDS.search(text) is not None
    if "Killed process" in text:
        return _is_whole_kill(text)
    if ": usage " in text:
        ends = _COUNTER_ENDS.search(text)
        return False if ends is None else (True if ends["failures"] else None)
    if text.startswith("Memory cgroup stats"):
        return None if text.endswith(":") or "KB" in text else False
    if text.startswith(("Task in", "Tasks in")):
        return _ends_with_cgroup(text)
    if "Kill process" in text:
        return _CHOSEN.search(text) is not None
    is_kill = any(kill.startswith(text) or text.startswith(kill) for kill in _KILLS)
    return False if is_kill and len(text) >= _SHORTEST else None


def _ends_with_cgroup(text: str) -> bool | None:
    """Whether the cgroup's path that ends a message is whole; None where it may go on."""
    if _CGROUPS.fullmatch(text) is None:
        return False
    return True if text.endswith(_CGROUP_ENDS) or _ID_ENDS.search(text) else None


def _is_whole_kill(text: str) -> bool | None:
    kill = _KILL.search(text)
    if kill is None:
        return None if _BARE_KILL.search(text) else False
    ends = _KILL_REST.fullmatch(kill["rest"])
    return False if ends is None else (True if ends["adj"] else None)


def _is_whole_row(text: str, columns: int) -> bool | None:
    if _HEADER_BEGINS.match(text):
        return text.endswith(" name")
    row = _ROW.match(text)
    if row is None or not columns:
        return None
    figures = row[2].split(None, columns)
    if len(figures) <= columns:
        return False
    numbers = figures[:columns]
    if not "".join(numbers).isdecimal() and not all(number.removeprefix("-").isdecimal() for number in numbers):
        return False
    # The second figure is the thread group, which the pid leads; the last the adjustment.
    return numbers[1] == row[1] and abs(int(numbers[-1][:6])) <= _MOST_ADJUSTMENT
