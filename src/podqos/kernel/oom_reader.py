"""OOM reports out of the kernel's messages: where they begin and end.

Kernels 2.6 to 6.x. A report usually begins with ``invoked oom-killer`` and holds what follows up to the next; lines of
others in between do not matter, and neither do those that are missing, also at the beginning. Reports are rate limited:
a kill that comes alone is a report without a table. One pass, and memory for a few reports per host.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from podqos.kernel.message import Message
from podqos.kernel.oom_blocks import NOTHING_READ, Reading, ReadLines, is_unended, read_lines
from podqos.kernel.oom_circumstances import BY_HAND, Circumstances
from podqos.kernel.oom_evidence import complete, fits, is_anothers, is_only_context, is_oom, is_repeated, is_rest, mix
from podqos.kernel.oom_lines import Invocation, KillLine, invocation, kill_line, panic
from podqos.kernel.oom_reading import (
    HEADER,
    ROW,
    chosen_of,
    read_killed,
    read_line,
    read_message,
    read_panic,
    read_summary,
)
from podqos.kernel.oom_report import OOMReport, Victim

MOST_HOSTS = 256
_MOST_JOINED = 4
_MOST_OTHERS = 20_000  # lines that are not the OOM killer's: no kill will follow
_MOST_LINES = 20_000  # since any report began, but for rows in blocks: it has long been something else
_MOST_FIGURES = 200
_MOST_QUIET = 64
_LONG_QUIET = 200
BEGINNINGS = (b"oom-kill", b"Killed process")
"""What every line holds that begins a report: what a fast reader looks for."""
FOLLOWING = (b"oom_reaper", b"memory.oom.group")
"""What lines hold that follow a kill, soon after it."""
_HEADS = re.compile(r"\[ {0,6}pid {0,6}\]")
_NAMED = re.compile(r"Killed process \d{1,10}(?:, UID \d{1,10},)? \(.{0,20}\)[ .]*$")
_UNNAMED = re.compile(r"Kill(?:ed)? process \d{1,10}(?: \([^)]{0,20})?$")
_ENDS_WITH_PID = re.compile(r"\bKill(?:ed)? process \d{1,10}$")
_NAME_FOLLOWS = re.compile(r"\s{0,8}\(.{1,20}\) (?:score|total-vm:|vsz:)")
_GROUP = re.compile(r"Tasks in (\S.*) are going to be killed due to memory\.oom\.group set")
_REAPED = re.compile(r"oom_reaper: (reaped process|unable to reap pid:) ?(\d{1,10})(?: \((.{0,64})\)(?=$|[ ,.]))?")
_OTHER_DUMP = re.compile(
    r"page allocation (?:failure|stall)|vmalloc (?:error|size)|vmalloc: allocation failure|[Ss]ys[Rr]q ?: Show Memory"
)
_SUMMARY = re.compile(r"oom-kill:constraint=CONSTRAINT_([A-Z_]{1,32}+)(?![^,\s])")
_FEW = 2
"""Lines that are worth a look at all of them at once."""
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
    "oom.group set",
    "dump_header",
    "deadlocked on memory",
    BY_HAND,
    "page allocation ",
    "vmalloc",
    "Show Memory",
)
"""What may be the first line that is left of a report."""
_ROW_BEGINS = re.compile(r"\[ {0,12}\d")
_OF_OOMS_ALONE = ("[", "Task in ", "memory: ", "memory+swap: ", "Memory cgroup ", "Out of memory ")
"""What is shown for nothing else."""
_MOST_BETWEEN = 200
"""Lines of others until what has begun without its first line is no report."""
_OLD_MARKS = ("oom_adj=", "oomkilladj=")
"""Before 2.6.36; kernels soon after it say both scores."""
_MOST_RECENT = 1024
_MOST_REAPED = 256
_NOTHING_ELSE = Circumstances()


class OOMReader:
    """Takes the kernel's messages, and yields reports when they are complete."""

    def __init__(self) -> None:
        self._hosts: dict[str, _HostLog] = {}
        self._last: _HostLog | None = None
        self.rest: list[Message] = []
        """Those of the last messages that a closer look was taken at, or that tell nothing."""
        self.told = 0
        """How many of the last messages told something of an open report."""
        self.has_kill = False
        """Whether one of them told of a kill."""
        self._found: list[OOMReport] = []
        self._others = 0
        self._lines = 0
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
    def quiet(self) -> int:
        """How many of the last lines did not look like one of the OOM killer's."""
        return self._others

    @property
    def is_settled(self) -> bool:
        """Whether every open report has its kill: ``BEGINNINGS`` and ``FOLLOWING`` are what matters then."""
        return self._others > _MOST_OTHERS or self._lines > _MOST_LINES or not self._unsettled

    @property
    def is_quiet(self) -> bool:
        """Whether none of the last lines looked like one of the OOM killer's."""
        return self._others > _MOST_QUIET

    @property
    def is_long_quiet(self) -> bool:
        """Whether it has been so for longer than any report is interrupted, even one whose lines are broken."""
        return self._others > _LONG_QUIET

    def feed(self, message: Message) -> list[OOMReport]:
        """Read a message; return the reports that it ends."""
        return self.read((message,))

    def read(self, messages: Sequence[Message]) -> list[OOMReport]:
        """Read messages; return the reports that they end."""
        self.rest, self.told, self.has_kill = [], 0, False
        for run in _runs(messages):
            number = 0
            while number < len(run):
                log = self._last
                if len(run) - number >= _FEW and log is not None and log is self._log_of(run[0]) and log.takes_blocks:
                    number += self._read_block(log, run[number:] if number else run)
                if number < len(run):
                    self._feed(run[number])
                    number += 1
        return self._taken()

    def _taken(self) -> list[OOMReport]:
        found = self._found[:]
        self._found.clear()
        return found

    def _read_block(self, log: _HostLog, messages: Sequence[Message]) -> int:
        """Read messages of a report that need no closer look; return how many."""
        first = messages[0]
        read = log.read_block(messages, is_bare=not first.is_marked)
        self._settle(log)
        if read.end:
            self.told += read.end - read.silent
            self._others = read.silent if read.silent < read.end else self._others + read.silent
            self.rest += messages[read.end - read.silent : read.end]
        return read.end

    def _log_of(self, message: Message) -> _HostLog | None:
        """Return the log of the kernel that a message is of."""
        # What has neither time nor host among lines that have them is a part of the line before it.
        is_begun = message.is_marked and bool(message.at or message.host or self._last is None)
        return self._hosts.get(message.host) if is_begun else self._last

    def _feed(self, message: Message) -> None:
        """Read a message by itself."""
        log = self._log_of(message)
        self.rest.append(message)
        self._others = 0 if _is_own(message.text) else self._others + 1
        if log is None and (unnamed := self._hosts.get("")) is not None and unnamed.awaits(message.text):
            log = self._hosts[message.host] = self._hosts.pop("")
        if log is None:
            is_rest = not self._hosts and _ROW_BEGINS.match(message.text) is not None  # the log begins with it
            if not (is_rest or any(opener in message.text for opener in _OPENERS)):
                return
            if len(self._hosts) >= MOST_HOSTS:
                oldest = self._hosts.pop(next(iter(self._hosts)))
                self._unsettled.discard(oldest)
                oldest.end()
            log = self._hosts[message.host] = _HostLog(self._found)
        self._last = log
        log.feed(message)
        self._lines = self._lines + 1 if log.lines else 0
        self._settle(log)
        self.told += log.is_told
        self.has_kill |= log.is_killed

    def _settle(self, log: _HostLog) -> None:
        if log.has_kill:
            self._unsettled.discard(log)
        else:
            self._unsettled.add(log)

    @property
    def expects_figures(self) -> bool:
        """Whether lines may follow that have no marks: what a cgroup holds is one figure per line."""
        return self._last is not None and self._last.expects_figures and self._others < _MOST_FIGURES

    def skip(self, lines: int) -> None:
        """Pass over lines that tell nothing of an OOM."""
        self._others += lines
        if self._last is not None:
            self._last.skip(lines)
            self._settle(self._last)

    def end(self) -> list[OOMReport]:
        """Return what is open when the log ends."""
        for log in self._hosts.values():
            log.end()
        self._hosts.clear()
        self._unsettled.clear()
        self._last = None
        return self._taken()


class _HostLog:
    """One kernel's messages, from its first report on."""

    def __init__(self, found: list[OOMReport]) -> None:
        self._found = found
        """Reports that are complete."""
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
        self._reaped: dict[int, Victim] = {}
        """Processes that the reaper names before their kill, if that is in the log."""
        self._recent: dict[int, None] = {}
        self._held: Message | None = None
        self._joined = 0
        self.lines = 0
        """Since the last report began."""
        self.is_told = self.is_killed = False
        """Whether the last line that was read told something of an open report, or of a kill."""

    @property
    def has_kill(self) -> bool:
        """Whether the open report, if there is one, has all but what the reaper says."""
        if self._candidate is not None or (self._report is not None and not self._report.victims):
            return False
        held = self._held
        return held is None or not _begins(held.text)

    def awaits(self, text: str) -> bool:
        """Whether a line is the kill of the process that the open report chose."""
        report = self._report
        if report is None and self._held is not None and (chosen := chosen_of(self._held.text)) is not None:
            pid: int | None = chosen[0]
        else:
            pid = None if report is None or report.victims else report.chosen
        return pid is not None and (kill := kill_line(text, is_marked=True)) is not None and kill.pid == pid

    def feed(self, message: Message) -> None:
        """Read a message. It is held back until the next one shows that it is whole: mail and terminals break lines."""
        held = self._held
        self.lines += 1
        self.is_told = self.is_killed = False
        if held is not None and self._is_continued(held, message):
            self._held = replace(held, text=f"{held.text} {message.text.strip()}")
            self._joined += 1
            return
        self._held, self._joined = message, 0
        if held is not None:
            self._read(held)
        if "Killed process" in message.text and "file-rss:" in message.text:
            self._held = None  # a kill may be the last line of its kernel for days
            self._read(message)

    def end(self) -> None:
        """Yield what is open."""
        held, self._held = self._held, None
        if held is not None:
            self._read(held)
        if self._report is None and self._reaped:
            self._report, self._candidate = self._candidate, None
        self._close()

    @property
    def expects_figures(self) -> bool:
        """Whether a cgroup's statistics have begun."""
        report, held = self._report or self._candidate, self._held
        if held is not None and held.text.startswith("Memory cgroup stats"):
            return True
        return report is not None and not report.victims and report.statistics is not None and report.columns is None

    @property
    def takes_blocks(self) -> bool:
        """Whether a report is open, or may be one soon, and its kill is yet to come."""
        return not self.has_kill

    def read_block(self, messages: Sequence[Message], *, is_bare: bool) -> ReadLines:
        """Read what follows in an open report up to a line that needs a closer look; ``is_bare``: without a carrier."""
        held = self._held
        if held is not None:
            if self._is_continued(held, messages[0]):
                return NOTHING_READ
            self._held = None
            self._read(held)
        report = self._report
        if report is None or report.victims:
            report = None if self._is_other_dump else self._candidate
        if report is None:
            return NOTHING_READ
        texts = [message.text for message in messages]
        read = read_lines(report, texts, Reading(self._is_other_dump, self._waiting is not None, is_bare))
        self.lines += read.silent
        if report is self._candidate and read.end:
            self._between = read.silent if read.silent < read.end else self._between + read.silent
            self._mind_candidate(report)
        return read

    def skip(self, lines: int) -> None:
        """Pass over lines that tell nothing: none of them continues the one that is held."""
        self._joined = _MOST_JOINED
        if self._candidate is not None:
            self._between += lines
            if self._between > _MOST_BETWEEN:
                self._candidate = None

    def _is_continued(self, held: Message, message: Message) -> bool:
        is_bare = not (message.at or message.host)
        if is_bare and _NAME_FOLLOWS.match(message.text) and _ENDS_WITH_PID.search(held.text):
            return True
        if message.is_marked or self._joined >= _MOST_JOINED or _begins(message.text):
            return False
        if not message.text.strip():
            return False
        text, columns = held.text, None if self._report is None else self._report.columns
        if text.startswith("["):
            row = ROW.match(text)
            return is_unended(row, columns) if row and columns else bool(_HEADS.match(text)) and not HEADER.match(text)
        if _NAMED.search(text):
            return message.text.lstrip(" ,").startswith(("tot", "vsz", "anon-", "UID"))
        return held.is_marked or bool(_UNNAMED.search(text)) or (text.startswith("oom-kill:") and text.endswith(","))

    def _read(self, message: Message) -> None:
        text = message.text
        report = self._report
        if text.startswith("[") and report is not None and report.columns and not report.victims:
            self._context(message)
        elif line := invocation(text):
            self._begin(message, line)
        elif kill := kill_line(text, is_marked=message.is_marked):
            self._kill(message, kill)
        elif text.startswith("oom-kill:") and (summary := _SUMMARY.match(text)):
            self._summary(message, text, summary[1])
        elif text.startswith("oom_reaper:") and (reaped := _REAPED.match(text)):
            self._reap(message, reaped)
        elif text.startswith("Tasks in ") and (group := _GROUP.match(text)):
            self._group(message, group[1])
        elif text.startswith("Kernel panic") and (why := panic(text)):
            if self._report is None or self._report.victims:
                self._open(message)
            read_panic(self._latest, why)
        else:
            self._context(message)

    @property
    def _latest(self) -> OOMReport:
        return self._report if self._report is not None else OOMReport()

    def _begin(self, message: Message, line: Invocation) -> None:
        """Begin a report with its first line."""
        begun = OOMReport(
            at=message.at,
            host=message.host,
            trigger=line.trigger,
            order=line.order,
            gfp_mask=line.gfp_mask,
            has_flag_names=line.has_flag_names,
            is_old_rule=any(mark in message.text for mark in _OLD_MARKS) and "oom_score_adj=" not in message.text,
        )
        begun.circumstances.read(message.text)
        begun.circumstances.is_by_hand, self._is_by_hand = self._is_by_hand, False
        if not line.is_certain:
            self._candidate, self._between = begun, 0
            return
        before = self._report
        if before is not None and self.lines <= 1 and _first_line(before) == _first_line(begun):
            return  # a log that has every line twice
        if before is not None and is_only_context(before):
            # Lines of one report may be swapped.
            begun.constraint, begun.counters = before.constraint, before.counters
            begun.oom_cgroup, begun.task_cgroup = before.oom_cgroup, before.task_cgroup
            self._report = None
        elif before is not None and not before.victims:
            self._let_go(self._waiting)
            self._waiting, self._report = before, None
        self._replace(begun)

    def _open(self, message: Message) -> None:
        """Open a report without its first line, with what may have been read of it."""
        opened = self._candidate or OOMReport(at=message.at, host=message.host)
        self._replace(opened)

    def _replace(self, report: OOMReport) -> None:
        """Make another report the one that is read."""
        if self._report is not None:
            self._close()
        self._report, self._candidate = report, None
        self.lines = 0
        self._is_other_dump = False
        self._reaped.clear()

    def _kill(self, message: Message, kill: KillLine) -> None:
        report, is_reaped = self._report_of(kill), kill.pid in self._reaped
        self.is_killed = True
        if report is None:
            # Reports are rate limited: another kill stands for an OOM whose report was left out.
            if self._candidate is not None and not fits(self._candidate, kill):
                self._candidate = None
            self._open(message)
            report = self._latest
        if kill.is_done:
            read_killed(report, kill, is_reaped=is_reaped)
            if report.chosen == kill.pid:
                report.chosen_name = kill.name or report.chosen_name  # a summary may be broken inside of it
        else:
            report.chosen, report.chosen_name, report.score = kill.pid, kill.name, kill.score
        read_message(report, kill)

    def _report_of(self, kill: KillLine) -> OOMReport | None:
        """Return the open report that a kill belongs to."""
        report, waiting = self._report, self._waiting
        if report is not None:
            if kill.pid in report.victims or (report.group is not None and report.victims and kill.is_done):
                return report
            if not report.victims and fits(report, kill):
                return report
        if waiting is not None and (waiting.chosen == kill.pid or waiting.is_mixed) and fits(waiting, kill):
            return waiting
        return None

    def _summary(self, message: Message, text: str, kind: str) -> None:
        report = self._report
        chosen = chosen_of(text)
        if report is None or (report.victims and (chosen is None or chosen[0] not in report.victims)):
            self._open(message)
        read_summary(self._latest, text, kind)

    def _reap(self, message: Message, reaped: re.Match[str]) -> None:
        """Read what the reaper says. Without any kill before it, its line is what is left of one."""
        pid, is_done = int(reaped[2]), reaped[1].startswith("reaped")
        report = self._report
        if report is not None and pid in report.victims:
            report.victims[pid].is_reaped = is_done
        elif self._candidate is not None or (report is not None and not report.victims):
            if len(self._reaped) < _MOST_REAPED:
                self._reaped[pid] = Victim(pid, reaped[3] or "", is_reaped=is_done)
        elif reaped[3] and pid not in self._recent and (report is None or report.is_reapers):
            self._open(message)
            report = self._latest
            report.is_reapers, report.chosen = True, pid
            report.victims[pid] = Victim(pid, reaped[3], is_reaped=is_done)

    def _group(self, message: Message, group: str) -> None:
        """Read which cgroup dies as one. The kill before it is the first of the group's."""
        report = self._report
        if report is None:
            self._open(message)
        elif report.group is not None and len(report.victims) > 1:
            pid, victim = report.victims.popitem()
            self._replace(OOMReport(at=message.at, host=message.host, constraint=report.constraint, chosen=pid))
            self._latest.victims[pid] = victim
        self._latest.group = group

    def _context(self, message: Message) -> None:
        """Read a line that is about an OOM only among others."""
        text, report = message.text, self._report
        if ("alloc" in text or "Show Memory" in text) and _OTHER_DUMP.search(text):
            self._is_other_dump, self._candidate = True, None
        elif BY_HAND in text:
            self._is_by_hand = True
        elif report is not None and not report.victims:
            if self._waiting is not None and is_repeated(report, text):
                # Two reports at once, line by line: what is neither's for certain is no one's.
                mix(report)
                mix(self._waiting)
            elif is_anothers(report, text, message.at):
                self._close()
                self._candidates(message)
                return
            self.is_told = read_line(report, text, is_other=self._is_other_dump)
        else:
            self._candidates(message)

    def _candidates(self, message: Message) -> None:
        """Read a line that may be of a report whose first line is missing."""
        candidate = self._candidate or self._blank
        is_other = self._is_other_dump and not message.text.startswith(_OF_OOMS_ALONE)
        if is_other or not read_line(candidate, message.text, is_other=self._is_other_dump):
            self._between += 1
            if self._between > _MOST_BETWEEN:
                self._candidate = None
            if self._blank.circumstances != _NOTHING_ELSE:
                self._blank = OOMReport()
            return
        if self._candidate is None:
            candidate.at, candidate.host = message.at, message.host
            self.lines = 0
            self._candidate, self._blank = candidate, OOMReport()
        self._between = 0
        self._mind_candidate(candidate)

    def _mind_candidate(self, candidate: OOMReport) -> None:
        """Know what may be a report as one once it is proven."""
        if is_oom(candidate) or (self._report is None and is_rest(candidate)):
            self._replace(candidate)
        elif self._between > _MOST_BETWEEN:
            self._candidate = None

    def _close(self) -> None:
        """Yield the open reports that are of OOMs."""
        waiting, self._waiting = self._waiting, None
        report, self._report = self._report, None
        self._let_go(waiting)
        if report is not None:
            self._add_reaped(report)
        self._let_go(report)

    def _add_reaped(self, report: OOMReport) -> None:
        """Read who died where only the reaper's line says so: that of the kill is missing."""
        complete(report)
        if report.victims or report.panic or report.is_hopeless:
            return
        for pid, victim in self._reaped.items():
            task = report.tasks.get(pid)
            if name := victim.name or ("" if task is None else task.name):
                report.victims[pid] = replace(victim, name=name)
                report.chosen = pid if report.chosen is None else report.chosen

    def _let_go(self, report: OOMReport | None) -> None:
        if report is not None:
            complete(report)
            for pid in report.victims:
                self._recent[pid] = None
            while len(self._recent) > _MOST_RECENT:
                del self._recent[next(iter(self._recent))]
            self._found.append(report)


def _runs(messages: Sequence[Message]) -> Iterator[Sequence[Message]]:
    """Yield messages that follow each other and are carried alike."""
    start = 0
    before: tuple[str, bool, bool] | None = None
    for number, message in enumerate(messages):
        key = message.host, message.is_marked, bool(message.at)
        if key != before:
            if number:
                yield messages[start:number]
            start, before = number, key
    if messages:
        yield messages[start:]


def _first_line(report: OOMReport) -> tuple[object, ...]:
    """Return what the first line of a report says."""
    return report.at, report.trigger, report.order, report.gfp_mask


def _is_own(text: str) -> bool:
    """Whether a line looks like one of the OOM killer's."""
    if "oom-" in text or "oom_" in text or "Killed process" in text:
        return True
    return text.startswith("[") and _ROW_BEGINS.match(text) is not None


def _begins(text: str) -> bool:
    """Whether a line may begin a report."""
    return "oom-kill" in text or "Killed process" in text or "ut of memory: " in text or "ill process " in text
