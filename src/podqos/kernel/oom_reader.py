"""OOM reports out of the kernel's messages: where they begin and end.

Kernels 2.6 to 6.x. A report usually begins with ``invoked oom-killer`` and holds what follows up to the next; lines of
others in between do not matter, and neither do those that are missing, also at the beginning. Reports are rate limited:
a kill that comes alone is a report without a table. One pass, and memory for a few reports per host.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from msgspec.structs import replace

from podqos.kernel.alike_lines import AlikeLines
from podqos.kernel.log_lines import Message
from podqos.kernel.oom_blocks import Reading, ReadLines, read_lines, read_table
from podqos.kernel.oom_circumstances import BY_HAND, Circumstances
from podqos.kernel.oom_evidence import complete, fits, is_only_context, is_oom, is_repeated, mix
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
_INVOKED = "invoked oom-killer:"
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
_MOST_RECENT = 1024
_NOTHING_ELSE = Circumstances()


class OOMReader:
    """Takes the kernel's messages, and yields reports when they are complete."""

    def __init__(self) -> None:
        self._hosts: dict[str, _HostLog] = {}
        self._last: _HostLog | None = None
        self.last: Message | None = None
        """The last message."""
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
    def is_told(self) -> bool:
        """Whether the last line that was read told something of an open report."""
        return self._last is not None and self._last.is_told

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

    def feed(self, message: Message) -> Iterator[OOMReport]:
        """Read a message; yield the reports that it ends."""
        self.last = message
        # What has neither time nor host among lines that have them is a part of the line before it.
        is_begun = message.is_marked and bool(message.at or message.host or self._last is None)
        log = self._hosts.get(message.host) if is_begun else self._last
        self._others = 0 if _is_own(message.text) else self._others + 1
        if log is None and (unnamed := self._hosts.get("")) is not None and unnamed.awaits(message.text):
            log = self._hosts[message.host] = self._hosts.pop("")
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
        self._lines = self._lines + 1 if log.lines else 0
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

    @property
    def takes_blocks(self) -> bool:
        """Whether the last line is of a report, and many of its lines may follow."""
        return self._last is not None and self._last.takes_blocks

    def release(self) -> Iterator[OOMReport]:
        """Read the last line, which the next one does not continue."""
        if self._last is not None:
            yield from self._last.release()
            self._settle(self._last)

    def read_block(self, chunk: bytes, start: int, limit: int, alike: AlikeLines) -> int:
        """Read the lines of the report that follow the last one and are carried alike; return where they end."""
        if self._last is None:
            return start
        read = self._last.read_block(chunk, start, limit, alike)
        if read.end > start:
            self._others = read.silent
        return read.end

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
        self.lines = 0
        """Since the last report began."""
        self.is_told = False
        """Whether the last line that was read told something of an open report."""

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

    def feed(self, message: Message) -> Iterator[OOMReport]:
        """Read a message. It is held back until the next one shows that it is whole: mail and terminals break lines."""
        held = self._held
        self.lines += 1
        self.is_told = False
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

    @property
    def takes_blocks(self) -> bool:
        """Whether a report is open, or may open with the line that is held, and its kill is yet to come."""
        if self._held is not None and _INVOKED in self._held.text:
            return True
        return self._report is not None and not self._report.victims

    def release(self) -> Iterator[OOMReport]:
        """Read the line that is held."""
        held, self._held = self._held, None
        if held is not None:
            yield from self._read(held)

    def read_block(self, chunk: bytes, start: int, limit: int, alike: AlikeLines) -> ReadLines:
        """Read the lines of the open report that are carried alike; without a carrier, only the rows of its table."""
        report = self._report
        if report is None or not self.takes_blocks:
            return ReadLines(start, 0)
        if not alike.width:
            return ReadLines(self._read_bare_rows(report, chunk, start, limit), 0)
        texts = alike.texts(chunk, start, limit)
        how = Reading(self._is_other_dump, alike.names_kernel, self._waiting is not None)
        read = read_lines(report, texts, how)
        self.lines += read.silent
        return ReadLines(alike.position(start, texts, read.end), read.silent)

    def _read_bare_rows(self, report: OOMReport, chunk: bytes, start: int, limit: int) -> int:
        held = self._held
        row = None if held is None else ROW.match(held.text)
        if held is None or row is None or report.columns is None or _is_unended(row, report.columns):
            return start
        self._held = None
        read_line(report, held.text, is_other=self._is_other_dump)
        return read_table(report, chunk, start, limit)

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
            return _is_unended(row, columns) if row and columns else bool(_HEADS.match(text)) and not HEADER.match(text)
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
        elif text.startswith("oom-kill:") and (summary := _SUMMARY.match(text)):
            yield from self._summary(message, text, summary[1])
        elif text.startswith("oom_reaper:") and (reaped := _REAPED.match(text)):
            yield from self._reap(message, reaped)
        elif text.startswith("Tasks in ") and (group := _GROUP.match(text)):
            yield from self._group(message, group[1])
        elif text.startswith("Kernel panic") and (why := panic(text)):
            if self._report is None or self._report.victims:
                yield from self._open(message)
            read_panic(self._latest, why)
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
            is_old_rule="adj=" in message.text and "oom_score_adj=" not in message.text,
        )
        begun.circumstances.read(message.text)
        begun.circumstances.is_by_hand, self._is_by_hand = self._is_by_hand, False
        if not line.is_certain:
            self._candidate, self._between = begun, 0
            return
        before = self._report
        if before is not None and is_only_context(before):
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
        self.lines = 0
        self._is_other_dump = False
        self._reaped.clear()

    def _kill(self, message: Message, kill: KillLine) -> Iterator[OOMReport]:
        report, is_reaped = self._report_of(kill), kill.pid in self._reaped
        if report is None:
            # Reports are rate limited: another kill stands for an OOM whose report was left out.
            if self._candidate is not None and not fits(self._candidate, kill):
                self._candidate = None
            yield from self._open(message)
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

    def _summary(self, message: Message, text: str, kind: str) -> Iterator[OOMReport]:
        report = self._report
        chosen = chosen_of(text)
        if report is None or (report.victims and (chosen is None or chosen[0] not in report.victims)):
            yield from self._open(message)
        read_summary(self._latest, text, kind)

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
        if ("alloc" in text or "Show Memory" in text) and _OTHER_DUMP.search(text):
            self._is_other_dump, self._candidate = True, None
        elif BY_HAND in text:
            self._is_by_hand = True
        elif report is not None and not report.victims:
            if self._waiting is not None and is_repeated(report, text):
                # Two reports at once, line by line: what is neither's for certain is no one's.
                mix(report)
                mix(self._waiting)
            self.is_told = read_line(report, text, is_other=self._is_other_dump)
        else:
            yield from self._candidates(message)

    def _candidates(self, message: Message) -> Iterator[OOMReport]:
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
        # The stack is the first that is left where the ring buffer begins with it.
        if is_oom(candidate) or (self._report is None and candidate.trace.is_of_report):
            yield from self._replace(candidate)

    def _close(self) -> Iterator[OOMReport]:
        """Yield the open reports that are of OOMs."""
        waiting, self._waiting = self._waiting, None
        report, self._report = self._report, None
        yield from self._let_go(waiting)
        yield from self._let_go(report)

    def _let_go(self, report: OOMReport | None) -> Iterator[OOMReport]:
        if report is not None:
            complete(report)
            for pid in report.victims:
                self._recent[pid] = None
            while len(self._recent) > _MOST_RECENT:
                del self._recent[next(iter(self._recent))]
            yield report


def _is_own(text: str) -> bool:
    """Whether a line looks like one of the OOM killer's."""
    if "oom-" in text or "oom_" in text or "Killed process" in text:
        return True
    return text.startswith("[") and _ROW_BEGINS.match(text) is not None


def _begins(text: str) -> bool:
    """Whether a line may begin a report."""
    return "oom-kill" in text or "Killed process" in text or "ut of memory: " in text or "ill process " in text


def _is_unended(row: re.Match[str], columns: tuple[str, ...]) -> bool:
    """Whether the name is missing at the end of a row."""
    return len(row[2].split(None, len(columns))) <= len(columns)
