"""A log read: where it speaks of a kill, what is around that place is read closely, and nothing else.

A handful of words is looked for with ``bytes.find``, which is ten times as fast as a pattern for all of them. Reading
closely is bounded: what goes beyond is counted, and said in the answer.
"""

from __future__ import annotations

import re
from bisect import bisect_left as bisect
from collections.abc import Callable, Generator, Hashable, Iterator
from operator import itemgetter
from typing import Protocol

from msgspec.structs import replace

from podqos.logs import kubectl, other
from podqos.logs.carriers import Carrier, Line
from podqos.logs.kernel_lines import ReportReader
from podqos.logs.kubelet import WORDS as KUBELETS_WORDS
from podqos.logs.kubelet import KubeletLog
from podqos.logs.other import OtherKillers
from podqos.logs.report import OOMReport
from podqos.logs.said import Mention, Said, seconds_apart
from podqos.manifest.binary_formats import is_binary

MOST_BYTES = 1 << 24
"""So much is read closely that tells of no kill: hostile logs hold nothing but words about kills."""
MOST_REPORTS = 10_000
"""Reports that are read of all logs."""
_CHUNK_BYTES = 1 << 20
_BLOCK_BYTES = 1 << 16
_BEFORE_BYTES = 1 << 15
_FOLLOWING_BYTES = 1 << 13
_FEW_BYTES = 1 << 12
"""Around words of others than the kernel."""
_SAMPLE_BYTES = 1 << 19
_LINE_BYTES = 1 << 24
"""A longer line is cut."""
_KERNELS_WORDS = (b"oom-kill", b"ut of memory")
_OTHERS_WORDS = (b"Evict", b"viction manager", b"OOM", b"emoryError", b"systemd-oomd")
_OTHERS = (*KUBELETS_WORDS, *other.WORDS, "reason", '"State"', '"CONTAINER_')
_JOURNAL = '"time_us":'

_KERNEL_LINE = re.compile(
    r"^[> ]{0,8}(?:<\d{1,3}>|[a-z]{3,8} {0,6}[:.] {0,6}[a-z]{3,8} {0,6}:? {0,4})?\[ {0,12}\d{1,10}\.\d{1,9}\]"
    r"|^\[[^\]\n]{3,12} [^\]\n]{3,12} [ \d]\d \d\d:\d\d:\d\d \d{4}\]|^\d{1,4},\d{1,20},\d{1,20},[^;\n]{0,64};"
    r"|\bkernel(?:\[\d{1,10}\])?(?::| - -)|\"kernel\"|\bkern(?:el)?[:.] ?(?:info|warn|err|notice|debug|crit|alert)"
    r"|invoked oom-killer: gfp_mask=0x|Killed process \d{1,10} \([^)\n]{0,64}\)(?:[.,]|$| total-vm:)"
    r"|oom-kill:constraint=|oom_reaper: |[Mm]emory cgroup (?:stats for|out of memory: )|^Mem-Info:|kB, limit \d{1,20}kB"
    r"|^\[ {0,12}(?:\d{1,10}|pid {0,6})\] "
)
_KUBELET_LINE = re.compile(
    r"\bkubelet(?:\[\d{1,10}\])?:|\b[IWEF]\d{4} \d\d:\d\d:\d\d\.\d{1,9} {1,10}\d{1,10} [a-z_]{1,64}\.go:"
)
_DEBUG_POD = re.compile(
    r"Creating debugging pod (node-debugger-[a-z0-9.-]{1,240}) with container \S{1,63} on node (\S{1,253})\."
)
_NO_JOURNAL = re.compile(
    r"^-- No entries --|No journal files were (?:found|opened)|can't execute 'journalctl'"
    r"|journalctl['\"\u2018\u2019]{0,3}:? {0,2}(?:command not found|not found|No such file|executable file not found)"
)
_TALOS = re.compile(r"\b(?:kern|user|daemon): {1,4}[a-z]{3,7}: \[\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{1,9}Z\]: ")
_OPENWRT = re.compile(
    r"^[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d \d{4} kern\.[a-z]{3,7} kernel: ", re.MULTILINE
)
"""Lines of systems that have no journal."""
_SELECTED = re.compile(
    r"^Namespace: {1,40}([a-z0-9-]{1,63})\n(?:(?!Name:)[^\n]{0,400}\n){0,40}?"
    r"Selector: {1,40}([A-Za-z0-9][A-Za-z0-9._/=,-]{0,400})\n(?:(?!Name:)[^\n]{0,400}\n){0,12}?"
    r"(?:Replicas|Desired|Parallelism|Pods Stat)",
    re.MULTILINE,
)
"""What kubectl describes of a workload: the namespace and the labels of its pods."""
_MENTIONS = tuple(
    re.compile(pattern)
    for pattern in (
        r"(?<![.\w])OOM(?:[ -]?[Kk]ill(?:ed|ing)(?!\"?: ?false)|[ -][Kk]iller)",
        r"oom[-_ ]kill(?:ed)?\b",
        r"[Oo]ut of memory|OutOfMemory",
        r"SIGKILL",
        r"[Ee]xit(?:ed)?(?:[ _-]?(?:[Cc]ode|[Ss]tatus|[Vv]alue))?[^\w\n]{1,12}137\b",
    )
)
"""Words about kills, the plainest first."""
_SINCE_BOOT = re.compile(r"\d{1,8}(?:\.\d{1,9})?", re.ASCII)
_AROUND = 60, 90
_SAME_MOMENT_SECONDS = 2.0
_ZONE_STEP_SECONDS = 900.0


class LogStream(Protocol):
    """A log that is read from its beginning to its end."""

    def read(self, size: int, /) -> bytes:
        """Return some bytes; none at the end."""


class LogReader:
    """Reads logs one after the other: yields their reports, and adds what else they say to ``said``."""

    def __init__(self, said: Said) -> None:
        self._said = said
        self._others = OtherKillers(said)
        self._logs = 0
        self._reports = 0
        self._spent = 0
        self._seen: dict[Hashable, list[tuple[str, str, int]]] = {}
        self._mentioned = len(_MENTIONS)

    def read(self, stream: LogStream) -> Iterator[OOMReport]:
        """Yield the reports of a log, once each: several logs may have the same."""
        log = _Log(self._said, self._others)
        number, self._logs = self._logs, self._logs + 1
        found = self._told(log, stream)
        for report in found:
            if self._reports >= MOST_REPORTS:
                self._said.read = replace(self._said.read, is_report_limit=True)
                return
            if not self._is_seen(report, number):
                self._reports += 1
                self._spent = 0
                yield report

    def _told(self, log: _Log, stream: LogStream) -> Iterator[OOMReport]:
        is_first = True
        texts: list[bytes] = []
        """What kubectl may have printed."""
        blocks = _Blocks(stream, log, lambda chunk, before: self._see(texts, chunk, before))
        for block in blocks:
            if is_first:
                is_first = False
                log.begin(block)
            if self._spent > MOST_BYTES:
                self._said.read = replace(self._said.read, unread_bytes=self._said.read.unread_bytes + len(block))
                continue
            known = self._known()
            yield from log.feed(block)
            self._spent += len(block) if self._known() == known else 0
        yield from log.end()
        kubectl.add_text(self._said, b"".join(texts).decode(errors="replace"))
        read = self._said.read
        is_broken = read.is_broken or log.is_broken
        self._said.read = replace(read, lines=read.lines + blocks.is_open, is_broken=is_broken)

    def _known(self) -> int:
        """Return how much is said so far, besides reports; all of it is bounded."""
        said = self._said
        found = len(said.traces) + len(said.signs) + len(said.events) + len(said.kills)
        return found + len(said.pods) + len(said.journal)

    def _see(self, texts: list[bytes], chunk: bytes, before: int) -> None:
        """Count what a chunk of a log holds, and read what kubectl printed in its first ones."""
        if not before and kubectl.may_be(chunk):
            texts.append(b"")
        if texts and before < kubectl.MOST_BYTES:
            texts.append(chunk)
        read = self._said.read
        self._said.read = replace(
            read,
            lines=read.lines + (chunk.count(b"\n") or chunk.count(b"\r")),
            bytes=read.bytes + len(chunk),
            is_sampled=read.is_sampled or bool(before),
        )
        if not before:
            self._sample(chunk)

    def _sample(self, chunk: bytes) -> None:
        """Count the messages at the beginning of a log, and see what it is a log of."""
        read = self._said.read
        text = chunk[:_SAMPLE_BYTES].decode(errors="replace").replace("\r\n", "\n").replace("\r", "\n")
        own = text.split("\n")
        kernels = [line for line in own if _KERNEL_LINE.search(line[:4096])]
        kubelets = (
            sum(_KUBELET_LINE.search(line[:4096]) is not None for line in own)
            if ".go:" in text or "kubelet" in text
            else 0
        )
        made = _DEBUG_POD.findall(text)[:20]
        is_talos = "Z]: " in text and _TALOS.search(text) is not None
        selected = _SELECTED.search(text) if "\nSelector: " in text else None
        lacks = is_talos or (" kern." in text and _OPENWRT.search(text) is not None)
        lacks = lacks or (("ourna" in text or "No entries" in text) and any(map(_NO_JOURNAL.search, own)))
        self._said.read = replace(
            read,
            kernel_messages=read.kernel_messages + len(kernels),
            kubelet_messages=read.kubelet_messages + kubelets,
            journal_entries=read.journal_entries + sum(_JOURNAL in line for line in own),
            is_sampled=read.is_sampled or len(chunk) > _SAMPLE_BYTES,
            is_binary=read.is_binary or is_binary(chunk) or not chunk.strip(b"\0"),
            lacks_journal=read.lacks_journal or lacks,
            is_talos=read.is_talos or is_talos,
            debug_pods=(*read.debug_pods, *(pod for pod, _ in made)),
            node=read.node or next((node for _, node in made), ""),
            selector=read.selector or (f"-n {selected[1]} -l {selected[2]}" if selected else ""),
            mention=self._mention(text) or read.mention,
        )

    def _mention(self, text: str) -> Mention | None:
        """Return the first line that speaks of a kill in plainer words than any before."""
        for plainness, pattern in enumerate(_MENTIONS[: self._mentioned]):
            if (found := pattern.search(text)) is None:
                continue
            self._mentioned = plainness
            line = text.rfind("\n", 0, found.start()) + 1
            start = max(line, found.start() - _AROUND[0])
            end = text.find("\n", found.end(), found.end() + _AROUND[1])
            is_cut = end < 0 and found.end() + _AROUND[1] < len(text)
            words = text[start : found.end() + _AROUND[1] if end < 0 else end]
            if start > line and " " in words[: _AROUND[0]]:
                words = f"\u2026 {words.partition(' ')[2]}"
            if is_cut and " " in words[-_AROUND[1] :]:
                words = f"{words.rpartition(' ')[0]} \u2026"
            return Mention(text.count("\n", 0, found.start()) + 1, found[0], words.strip(), self._logs - 1)
        return None

    def _is_seen(self, report: OOMReport, log: int) -> bool:
        """Whether a report was there before, in its log or in another: syslog daemons write what journald has, too."""
        pids = report.chosen, *report.victims
        sizes = tuple((victim.name, victim.total_vm_kb, victim.rss_kb) for victim in report.victims.values())
        is_whole = bool(report.victims and (report.tasks or report.counters))
        figures = (sizes, tuple(report.tasks), tuple(report.counters.items()), report.ram_pages) if is_whole else None
        same = self._seen.setdefault((pids, figures), [])
        for at, host, other_log in same:
            is_same_host = host == report.host or not (host and report.host)
            if is_same_host and at and at == report.at and other_log != log:
                return True
            if is_whole and is_same_host and _is_one_moment(at, report.at):
                return True
        if len(same) < 8:
            same.append((report.at, report.host, log))
        return False


def _is_one_moment(one: str, other: str) -> bool:
    """Whether two times may be of one moment: by one clock they are, by two they may be in other time zones."""
    if not (one and other):
        return True
    if _SINCE_BOOT.fullmatch(one) and _SINCE_BOOT.fullmatch(other):
        return abs(float(one) - float(other)) < 1
    known = [apart for apart in (seconds_apart(one, other), seconds_apart(other, one)) if apart is not None]
    if not known:
        return one[-1:].isdecimal() != other[-1:].isdecimal() or len(one) != len(other) or one == other
    apart = min(map(abs, known))
    rest = apart % _ZONE_STEP_SECONDS
    is_same_form = len(one) == len(other)
    if is_same_form:
        return apart < 1
    return apart <= 26 * 3600 and min(rest, _ZONE_STEP_SECONDS - rest) <= _SAME_MOMENT_SECONDS


class _Log:
    """One log."""

    def __init__(self, said: Said, others: OtherKillers) -> None:
        self._said = said
        self._carrier = Carrier()
        self._reader = ReportReader()
        self._kubelet = KubeletLog(said)
        self._others = others
        self._is_every = False

    @property
    def is_settled(self) -> bool:
        """Whether no report waits for more lines."""
        return self._reader.is_settled and not self._is_every

    @property
    def is_broken(self) -> bool:
        """Whether its lines are broken where nothing tells how to join them."""
        return self._carrier.is_broken

    def begin(self, block: bytes) -> None:
        """Know how a log begins: of a journal of podqos every line matters."""
        first = block[:_LINE_BYTES].partition(b"\n")[0]
        self._is_every = first.startswith(b"{") and _JOURNAL.encode() in first

    def feed(self, block: bytes) -> list[OOMReport]:
        """Read a part of the log."""
        lines = self._carrier.lines(block)
        text = block.decode(errors="replace")
        if self._is_every or any(word in text for word in _OTHERS):
            for line in lines:
                if not line.is_kernels or line.fields:
                    self._take(line)
        return self._reader.feed(line for line in lines if not _is_object(line))

    def _take(self, line: Line) -> None:
        fields, raw = line.fields, line.raw
        if (fields or any(word in raw for word in KUBELETS_WORDS)) and self._kubelet.feed(line):
            return
        if fields and not raw:
            self._said.pods += other.inspected(fields)
        elif any(word in raw for word in other.WORDS):
            self._others.feed(line)

    def end(self) -> list[OOMReport]:
        """Return what is open when the log ends."""
        return self._reader.end()


def _is_object(line: Line) -> bool:
    """Whether a line is of an event or of a journal, which quote the kernel."""
    fields = line.fields
    return bool(fields) and ("time_us" in fields or "involvedObject" in fields or "regarding" in fields)


class _Blocks:
    """The parts of a log that are read closely, as whole lines: all of a short one, of others what is around words."""

    def __init__(self, stream: LogStream, log: _Log, see: Callable[[bytes, int], None]) -> None:
        self._stream = stream
        self._log = log
        self._see = see
        """Takes every chunk, and where it begins."""
        self._bytes = 0
        self.is_open = False
        """Whether the last line has no end yet."""

    def __iter__(self) -> Iterator[bytes]:
        """Yield them."""
        rest, ahead = self._chunk(), self._chunk()
        if not ahead:
            if rest:
                yield rest
            return
        unread, owed = b"", _BLOCK_BYTES
        while True:
            is_last = not ahead
            end = len(rest) if is_last else _end_of(rest)
            if end:
                text = unread + rest[:end]
                done, owed = yield from self._near(text, len(unread), owed)
                unread = text[max(done, len(text) - _BEFORE_BYTES) :]
            rest = rest[end:] + ahead
            if is_last:
                return
            ahead = self._chunk()

    def _chunk(self) -> bytes:
        parts, length = [], 0
        while length < _CHUNK_BYTES and (part := self._stream.read(_CHUNK_BYTES - length)):
            parts.append(part)
            length += len(part)
        chunk = b"".join(parts)
        if chunk:
            self._see(chunk, self._bytes)
            self._bytes += len(chunk)
            self.is_open = not chunk.endswith((b"\n", b"\r"))
        return chunk

    def _near(self, text: bytes, searched: int, owed: int) -> Generator[bytes, None, tuple[int, int]]:
        """Yield what is around words, and first what is owed; return how far that is, and what is owed then."""
        hits = _hits(text, searched)
        position, until = 0, owed
        while True:
            if position >= until:
                number = bisect(hits, position, key=itemgetter(0))
                if number >= len(hits):
                    return position, 0
                place, around = hits[number]
                position = max(position, text.rfind(b"\n", 0, max(0, place - around // 2)) + 1)
                until = place + around
            end = text.find(b"\n", min(until, position + _BLOCK_BYTES))
            end = len(text) if end < 0 else end
            last = hits[max(0, bisect(hits, end, key=itemgetter(0)) - 1)][0] if hits else 0
            # How a line is carried is learned from those after it.
            end = text.find(b"\n", max(end, last + _FOLLOWING_BYTES) if last < end else end)
            end = len(text) if end < 0 else end + 1
            yield text[position:end]
            position = end
            until = position if self._log.is_settled else position + _BLOCK_BYTES
            if position >= len(text):
                return position, until - position


def _end_of(text: bytes) -> int:
    """Return where the last line ends that can be read before more has come: not the first one of a report."""
    end = text.rfind(b"\n") + 1
    place = max(text.rfind(word, max(0, end - _FOLLOWING_BYTES), end) for word in _KERNELS_WORDS)
    end = end if place < 0 else text.rfind(b"\n", 0, place) + 1 or end
    return end or (len(text) if len(text) > _LINE_BYTES else 0)


def _hits(text: bytes, start: int) -> list[tuple[int, int]]:
    """Return where words are, in their order, and how much around each is read."""
    found = []
    for words, around in ((_KERNELS_WORDS, _BLOCK_BYTES), (_OTHERS_WORDS, _FEW_BYTES)):
        for word in words:
            place = text.find(word, start)
            while place >= 0:
                found.append((place, around))
                place = text.find(word, place + _FEW_BYTES // 2)
    return sorted(found)
