"""How much of what a log holds, counted while it is read: its stream passes through here unchanged."""

from __future__ import annotations

import re

from msgspec.structs import replace

from podqos.answers import log_marks
from podqos.kernel.log_lines import LogStream
from podqos.manifest.binary_formats import is_binary
from podqos.survival.autopsy.what_was_read import Mention, WhatWasRead

_SAMPLED_BYTES = 1 << 19
_EVERY = 8
"""Of a very large log the lines of every eighth part are counted."""
_LINE_BYTES = 1 << 12
_MOST_DEBUG_PODS = 20
_KERNELS = re.compile(
    rb"^[> \t]{0,8}(?:<\d{1,3}>|[a-z]{3,8} {0,6}[:.] {0,6}[a-z]{3,8} {0,6}:? {0,4})?"
    rb"\[(?: {0,12}\d{1,10}(?:\.\d{1,9})?\]| {0,6}pid {0,6}\]"
    rb"|[^\]\n]{3,12} [^\]\n]{3,12} [ \d]\d \d\d:\d\d:\d\d \d{4}\])"
    rb"|^\d{1,4},\d{1,20},\d{1,20},[^;\n]{0,64};"
    rb"|\bkernel(?:\[\d{1,10}\])?(?::| - -)|\"kernel\"|\bkern(?:el)?[:.] ?(?:info|warn|err|notice|debug|crit|alert)"
    rb"|invoked oom-killer: gfp_mask=0x|Kill(?:ed)? process \d{1,10} \([^)\n]{0,64}\)(?:[.,\r]|$| score| total-vm:)"
    rb"|oom-kill:constraint=|oom_reaper: (?:reaped|unable)|[Mm]emory cgroup (?:stats for|out of memory: )"
    rb"|^Mem-Info:|kB, limit \d{1,20}kB"
)
_KUBELETS = re.compile(
    rb"\bkubelet(?:\[\d{1,10}\])?:|\b[IWEF]\d{4} \d\d:\d\d:\d\d\.\d{1,9} {1,10}\d{1,10} [a-z_]{1,64}\.go:"
    rb"|^\{[^\n]{0,80}\"caller\": ?\"(?:eviction|kubelet|kuberuntime|nodeshutdown|oom|prober)/[a-z_]{1,64}\.go:\d"
)
_DEBUG_POD = re.compile(
    rb"Creating debugging pod (node-debugger-[a-z0-9.-]{1,240}) with container \S{1,63} on node (\S{1,253})\."
)
_NO_JOURNAL = re.compile(
    rb"^-- No entries --|No journal files were (?:found|opened)"
    rb"|journalctl['\"\xe2\x80\x98\x99]{0,3}:? {0,2}"
    rb"(?:command not found|not found|No such file|executable file not found)"
    rb"|can't execute 'journalctl'"
)
_TALOS = re.compile(rb"\b(?:kern|user|daemon): {1,4}[a-z]{3,7}: \[\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{1,9}Z\]: ")
_OPENWRT = re.compile(rb"^[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d \d{4} kern\.[a-z]{3,7} kernel: ")
"""Lines of systems that have no journal."""
_MENTIONS = (
    ((b"OOM",), re.compile(rb"(?<![.\w])OOM(?:[ -]?[Kk]ill(?:ed|ing)(?!\"?: ?false)|[ -][Kk]iller)")),
    ((b"oom",), re.compile(rb"oom[-_ ]kill(?:ed)?\b")),
    ((b"ut of memory", b"OutOfMemory"), re.compile(rb"[Oo]ut of memory|OutOfMemory")),
    ((b"SIGKILL",), re.compile(rb"SIGKILL")),
    ((b"137",), re.compile(rb"[Ee]xit(?:ed)?(?:[ _-]?(?:[Cc]ode|[Ss]tatus|[Vv]alue))?[^\w\n]{1,12}137\b")),
)
"""Words about kills, the plainest first, and what a text has to hold for each."""
_MENTION_BEFORE, _MENTION_AFTER = 60, 90
_DESCRIBED = re.compile(
    rb"^Namespace: {1,40}([a-z0-9-]{1,63})\n(?:(?!Name:)[^\n]{0,400}\n){0,40}?"
    rb"Selector: {1,40}([A-Za-z0-9][A-Za-z0-9._/=,-]{0,400})\n(?:(?!Name:)[^\n]{0,400}\n){0,12}?"
    rb"(?:Replicas|Desired|Parallelism|Pods Stat)",
    re.MULTILINE,
)
"""What kubectl describes of a workload: the namespace and the labels of its pods."""
_JOURNAL = b'"time_us":'
_DEBUG_MARK = b"Creating debugging pod "


class LogTally:
    """Counts lines and messages of logs as they are read."""

    def __init__(self) -> None:
        self.lines = self.bytes = self.kernel_messages = self.kubelet_messages = self.journal_entries = 0
        self.is_sampled = self.is_estimated = False
        self.is_binary = self.lacks_journal = self.is_talos = False
        self.debug_pods: dict[str, str] = {}
        """Each with its node."""
        self.selector = ""
        self.logs = 0
        self.mention: Mention | None = None
        self._mentioned = len(_MENTIONS)

    def counting(self, stream: LogStream) -> LogStream:
        """Return a log whose parts are counted as they are read."""
        self.logs += 1
        return _Counted(stream, self)

    def added_to(self, read: WhatWasRead) -> WhatWasRead:
        """Return what was read with these logs."""
        return replace(
            read,
            lines=read.lines + self.lines,
            bytes=read.bytes + self.bytes,
            kernel_messages=self.kernel_messages,
            kubelet_messages=self.kubelet_messages,
            journal_entries=self.journal_entries,
            is_sampled=self.is_sampled,
            is_line_count_estimated=self.is_estimated,
            is_binary=self.is_binary,
            lacks_journal=self.lacks_journal,
            is_talos=self.is_talos,
            debug_pods=tuple(self.debug_pods),
            node=next(iter(self.debug_pods.values()), ""),
            selector=self.selector,
            mention=self.mention,
        )

    def sample(self, lines: list[bytes], before: int) -> None:
        """Count the messages among lines; only what is in any of them is looked for in each."""
        text = b"\n".join(lines)
        self._mind_mention(text, before)
        if not self.selector and b"\nSelector: " in text and (described := _DESCRIBED.search(text)):
            self.selector = f"-n {described[1].decode()} -l {described[2].decode()}"
        has_kubelets = b"kubelet" in text or b".go:" in text
        has_journal_words = b"journal" in text or b"No entries" in text
        has_debug_pods = _DEBUG_MARK in text
        self.is_talos |= b"Z]: " in text and _TALOS.search(text) is not None
        is_openwrt = b" kern." in text and any(map(_OPENWRT.match, lines))
        self.lacks_journal |= self.is_talos or is_openwrt
        for line in lines:
            start = line[:_LINE_BYTES]
            if _KERNELS.search(start):
                self.kernel_messages += 1
            elif has_kubelets and _KUBELETS.search(start):
                self.kubelet_messages += 1
            elif start.startswith(b"{") and _JOURNAL in start:
                self.journal_entries += 1
            elif has_journal_words and _NO_JOURNAL.search(start):
                self.lacks_journal = True
            if not has_debug_pods or len(self.debug_pods) >= _MOST_DEBUG_PODS:
                continue
            if _DEBUG_MARK in start and (made := _DEBUG_POD.search(start)):
                self.debug_pods[made[1].decode()] = made[2].decode(errors="replace")

    def _mind_mention(self, text: bytes, before: int) -> None:
        """Keep the first line that speaks of a kill in the plainest words."""
        for plainness, (needs, pattern) in enumerate(_MENTIONS[: self._mentioned]):
            found = pattern.search(text) if any(words in text for words in needs) else None
            if found is None:
                continue
            start = max(text.rfind(b"\n", 0, found.start()) + 1, found.start() - _MENTION_BEFORE)
            end = text.find(b"\n", found.end(), found.end() + _MENTION_AFTER)
            end = min(len(text), found.end() + _MENTION_AFTER) if end < 0 else end
            self._mentioned = plainness
            self.mention = Mention(
                before + text.count(b"\n", 0, found.start()) + 1,
                found[0].decode(errors="replace"),
                _whole_words(text, start, end),
                self.logs - 1,
            )
            return


def _whole_words(text: bytes, start: int, end: int) -> str:
    """Return a part of a line without what is left of a word at either end."""
    words = text[start:end].decode(errors="replace")
    if text[max(0, start - 1) : start] not in {b"", b"\n"} and " " in words[:_MENTION_BEFORE]:
        words = f"… {words.partition(' ')[2]}"
    if text[end : end + 1] not in {b"", b"\n", b"\r"} and " " in words[-_MENTION_AFTER:]:
        words = f"{words.rpartition(' ')[0]} …"
    return words.strip()


class _Counted:
    def __init__(self, stream: LogStream, tally: LogTally) -> None:
        self._stream = stream
        self._tally = tally
        self._room = _SAMPLED_BYTES
        self._rest = b""
        self._parts = self._bytes = self._sampled = 0
        self._bytes_beyond = self._bytes_counted = self._lines = 0
        """Of what follows the part in which every line is counted: all bytes; those counted, and their lines."""

    def read(self, size: int, /) -> bytes:
        """Return some bytes; none at the end."""
        part, tally = self._stream.read(size), self._tally
        if not part:
            self._end()
            return part
        text = part
        if b"\n" not in part and b"\r" in part:  # a console's, or an old Macintosh's
            text = part.replace(b"\r", b"\n")
        if self._parts == 0:
            tally.is_binary |= _is_binary(part)
        self._parts += 1
        self._count(text)
        if self._room > 0:
            lines = (self._rest + text[: self._room]).split(b"\n")
            self._rest = lines.pop()[:_LINE_BYTES]
            tally.sample(lines, self._sampled)
            self._sampled += len(lines)
            self._room -= len(part)
        else:
            tally.is_sampled = True
            self._rest = text[-1:] if text[-1:] != b"\n" else b""
        return part

    def _count(self, text: bytes) -> None:
        """Count the lines, of a large log only some of them: to count all takes as long as to look for a word."""
        self._tally.bytes += len(text)
        self._bytes += len(text)
        if self._bytes <= log_marks.VERY_LARGE:
            self._tally.lines += text.count(b"\n")
            return
        self._bytes_beyond += len(text)
        if not self._bytes_counted or self._parts % _EVERY == 0:
            self._lines += text.count(b"\n")
            self._bytes_counted += len(text)

    def _end(self) -> None:
        """Add the lines that were not counted, and a last one without an end."""
        if self._bytes_counted:
            self._tally.lines += self._lines * self._bytes_beyond // self._bytes_counted
            self._tally.is_estimated |= self._bytes_counted < self._bytes_beyond
            self._bytes_counted = 0
        rest, self._rest = self._rest, b""
        if rest:
            self._tally.lines += 1
            self._tally.sample([rest] if self._room > 0 else [], self._sampled)


def _is_binary(head: bytes) -> bool:
    """Whether a beginning is not text, or is not known to be."""
    return is_binary(head) or not head.strip(b"\0")
