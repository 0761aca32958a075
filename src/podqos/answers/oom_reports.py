"""The OOM reports of a log, found by skipping from mark to mark: in the memory of a few chunks."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Iterator, Sequence

from podqos.answers import log_marks
from podqos.answers.kubelet_side import TELLING_FIELDS, KubeletSide
from podqos.answers.log_marks import Mark, Needle, has_plain_spaces, next_mark
from podqos.answers.other_killers import MARKS, NOTICE_MARKS, Topic
from podqos.answers.repeated_lines import RepeatedLines
from podqos.kernel.carriers.encodings import decoded_parts, text_of
from podqos.kernel.carriers.text_lines import MOST_WAITING
from podqos.kernel.log_lines import MOST_IN_RECORD, LogStream, Unwrapper
from podqos.kernel.message import Message
from podqos.kernel.oom_evidence import is_oom
from podqos.kernel.oom_lines import is_killers_own
from podqos.kernel.oom_marks import is_kernels_own, next_own, next_telling_line
from podqos.kernel.oom_reader import FOLLOWING, OOMReader
from podqos.kernel.oom_report import OOMReport

_CHUNK_BYTES = 1 << 17
"""It is searched for one mark after the other, and has to stay in the processor's cache meanwhile."""


_LINE_BYTES = 1 << 16


_LINES_BESIDE = 40


_LINES_OF_OTHERS = 2


_LINES_AFTER = 8
"""A kill: what the reaper says, and where the next report may begin with a line for its time."""


_LINES_BEFORE = 400


_EVERY = 1 << 40


_BEFORE_BYTES = 1 << 16


_MOST_BESIDE = MOST_WAITING + _LINES_BEFORE


_FOLLOWING_BYTES = 1 << 18
"""After a kill what follows it is looked for; then only beginnings are, which is twice as fast."""


_LINE_ENDS = rb"[ \t\r\\=]*+(?:\n|\Z)"
"""The rest may be in the next line."""


_BEGINNINGS: tuple[Mark, ...] = (
    Needle(
        b"oom-kill",
        re.compile(
            rb"oom-kill(?:er)?(?::(?! {0,2}gfp_mask=%)|"
            + _LINE_ENDS
            + rb"(?:[^!-~\n]{0,80}\n)?[^\n]{0,300}?:(?:\s{0,2}(?!gfp_mask=%)[cg]|[^!-~]{0,8}(?:\n|\Z)))"
        ),
    ),
    Needle(
        b"Killed process",
        re.compile(
            rb"Killed process(?:[^!-~]{1,8}[0-9]{1,20}+(?![^!-~\n]{1,8}[A-Za-z])"
            rb"(?:[^(\n]{0,40}+(?:\([^\n][^)\n]{0,79}+\)|\(?[^\n]{0,16}" + _LINE_ENDS + rb"))|" + _LINE_ENDS + rb")"
        ),
    ),
)


_WITHOUT_SPACES = b"anon-rss:"
"""In every kill since 2.6.36; stays whole where spaces are escaped, and where lines are broken at them."""


_FOLLOWING = (
    Needle(b"oom_reaper", re.compile(rb"oom_reaper(?::|" + _LINE_ENDS + rb")")),
    *(mark for mark in FOLLOWING if mark != b"oom_reaper"),
    *NOTICE_MARKS,
    *MARKS,
)
_OF_KERNEL = frozenset({*_BEGINNINGS, _WITHOUT_SPACES, *_FOLLOWING}) - frozenset({*NOTICE_MARKS, *MARKS})


_BYTES = re.compile(rb'"MESSAGE"\s{0,2}:\s{0,2}\[\s{0,2}\d')
"""In journald's JSON, a message that is not text: nothing in it can be looked for."""


_STRUCK_OVER = re.compile(rb"[^\n\b]\x08")


_ENTRY = b"__CURSOR="  # begins an entry of journald's export format


_ENTRY_END = b"\n\n"


_ESCAPED_ENDS = (b"},{", b"}, {", b"\\n", b"<br>")
"""Where a line that holds a whole log can be cut."""


_FEW_TOGETHER, _MOST_TOGETHER = 8, 256
"""Lines that are read at once: more where all of them tell something."""


_STRETCH_BYTES = 1 << 14


_KILL = b"Killed process"


_MOST_SILENT = 8
"""Lines that tell nothing: those after them are better passed over."""


_MOST_RECENT = 4


_LONGEST_END = 32
"""Of a message: what tells which line it is of, also if that is JSON with escapes."""


_BLANK = re.compile(rb"(?:[ \t\r]*+\n){8,}")
"""Lines that are read as one."""


_PATIENCE = 8000
"""So many lines are read closely that tell of no OOM; then marks have to be as the kernel writes them."""


_PATIENCE_LATER = 2000


_PATIENCE_UNFINISHED = 500
"""After a report without a kill."""


_PATIENCE_OF_MARK = 1024
"""For such a mark, again and again half of it unless a report follows."""


_LEAST_PATIENCE = 32


_MOST_MISSES = 8


_PATIENCE_OF_FACT = 64
"""For a line that tells of a container, or for an event: where all lines may matter, few do."""


_COST_SHIFT = 8
"""A line of 256 characters costs as much as two short ones."""


_MOST_COST = 1024
"""Whether a record tells anything is known at its end."""


def reports(stream: LogStream, side: KubeletSide | None = None) -> Iterator[OOMReport]:
    """Yield the OOM reports of a log; what it tells of the kubelet's side goes to ``side``."""
    return _LogReading(side).read(stream)


class _LogReading:
    """Reads a log from mark to mark: lines near a mark one by one, those of a report as blocks, and no others."""

    def __init__(self, side: KubeletSide | None) -> None:
        self._side = side
        self._unwrapper = Unwrapper()
        self._reader = OOMReader()
        self._chunk = b""
        self._marks = _Marks(b"")
        self._is_first = True
        """A log may begin, or be, in the middle of a report: of its first chunk everything is read."""
        self._position = self._bytes = 0
        self._together = _MOST_TOGETHER
        self._beside = 0
        """So many lines matter, whatever they hold."""
        self._following = 0
        """For so many bytes what follows a kill is looked for."""
        self._beginnings = _BEGINNINGS
        self._repeated = RepeatedLines(None if side is None else side.may_tell)
        self._recent: deque[str] = deque(maxlen=_MOST_RECENT)
        """Lines whose messages may not have come yet."""
        self._patience = _PATIENCE
        self._of_mark = _PATIENCE_OF_MARK

    def read(self, stream: LogStream) -> Iterator[OOMReport]:
        """Yield the reports."""
        for number, chunk in enumerate(_chunks(stream)):
            self._is_first = number == 0
            if number == 1 and not self._is_every:
                self._patience = min(self._patience, _PATIENCE_LATER)
            self._begin_chunk(chunk)
            yield from self._read_chunk()
        yield from self._end_repeated()
        yield from self._take(self._unwrapper.end())
        yield from self._reader.end()

    def _begin_chunk(self, chunk: bytes) -> None:
        side = self._side
        if self._is_first:
            self._unwrapper.begin(text_of(chunk[:_LINE_BYTES]))
            self._beside = 0 if side is None else side.begin(chunk)
            if not has_plain_spaces(chunk):
                self._beginnings = (*_BEGINNINGS, _WITHOUT_SPACES)
            if _BYTES.search(chunk):
                self._beside = self._patience = _EVERY  # no mark would be found
        self._chunk, self._position = chunk, 0
        self._bytes += len(chunk)
        self._marks = _Marks(chunk)
        self._marks.look_for(self._beginnings)
        if side is not None:
            self._marks.look_for(side.marks_in(chunk, is_far=self._bytes > log_marks.VERY_LARGE))
        if self._following > 0:
            self._marks.look_for(_FOLLOWING)
        self._following -= len(chunk)

    def _read_chunk(self) -> Iterator[OOMReport]:
        while self._position < len(self._chunk):
            if self._is_passing():
                yield from self._take(self._unwrapper.flush())
                holds_report = self._unwrapper.holds_report and not self._is_wary
                if self._is_passing() and not holds_report and not self._pass_over():
                    return
            lines = self._next_lines()
            self._recent.extend(lines)
            has_facts, rest = (False, lines) if self._side is None else self._side.take_lines(lines)
            self._spend(-_PATIENCE_OF_FACT if has_facts else _cost(lines))
            yield from self._take(self._unwrapper.read(rest))
            self._mind_what_follows()
            self._pass_over_silent()

    @property
    def _is_every(self) -> bool:
        """Whether all lines of the log matter."""
        return self._beside > _MOST_BESIDE

    @property
    def _is_wary(self) -> bool:
        """Whether lines that looked like the OOM killer's have told nothing for too long."""
        return self._patience <= 0

    def _spend(self, cost: int) -> None:
        """Lose patience; once it is lost, only marks matter."""
        had = self._patience > 0
        left = self._patience - cost
        self._patience = left if cost > 0 else max(self._patience, min(_PATIENCE, left))
        if had and self._is_wary:
            self._is_first, self._beside = False, 0

    @property
    def _belief(self) -> int:
        """How many lines are read closely for the next mark."""
        return self._of_mark if self._is_wary else _PATIENCE

    @property
    def _needs_no_more(self) -> bool:
        """Whether no report waits for lines that have no marks."""
        if self._is_wary:
            return True
        # Of lines that were broken one by itself says little.
        reader = self._reader
        return reader.is_settled or (reader.is_long_quiet if self._unwrapper.looks_back else reader.is_quiet)

    def _is_passing(self) -> bool:
        """Whether only lines with marks matter."""
        return self._beside <= 0 and not self._is_first and self._needs_no_more

    def _take(self, messages: Sequence[Message]) -> Sequence[OOMReport]:
        reader = self._reader
        found = reader.read(messages)
        for report in found:
            if report.victims:
                self._patience, self._of_mark = max(self._patience, _PATIENCE), _PATIENCE_OF_MARK
            elif is_oom(report):
                self._patience = max(self._patience, _PATIENCE_UNFINISHED)
        if reader.told:
            self._spend(-_cost_of(reader.told, sum([len(message.text) for message in messages])))
        if reader.has_kill:
            self._beside = max(self._beside, _LINES_OF_OTHERS if self._is_wary else _LINES_AFTER)
            self._following = _FOLLOWING_BYTES
            self._marks.look_for(_FOLLOWING, self._position)
        if self._side is not None:
            self._tell(self._side, reader.rest)
        return found

    def _tell(self, side: KubeletSide, messages: Sequence[Message]) -> None:
        """Pass on what is not the OOM killer's."""
        is_every = self._is_every
        for message in messages:
            if is_every or not (is_killers_own(message.text) and TELLING_FIELDS.isdisjoint(message.fields)):
                side.take(message, is_every=is_every)
                self._beside = max(self._beside, side.lines_after)
                if side.repeatable is not None:
                    self._learn_repeated(message, side.repeatable)
            if is_every and message.fields:
                self._spend(-_PATIENCE_OF_FACT)

    def _learn_repeated(self, message: Message, topic: Topic) -> None:
        """Know that lines like the one of a message need only be counted."""
        end = message.text[-_LONGEST_END:]
        for line in reversed(self._recent):
            is_own = len(line) < _LINE_BYTES and line.count(end) == 1 and topic.host in line
            if is_own and (topic.is_told or message.text in line):
                self._repeated.learn(line.encode(), topic, is_plain=line.rstrip().endswith(message.text))
                return
        self._repeated.hear(topic)

    def _end_repeated(self) -> Iterator[OOMReport]:
        """Tell how often lines were repeated, and read the last of each."""
        if any(self._repeated.counted()):
            yield from self._take(self._unwrapper.flush())  # what waits is newer than what was counted
        for topic, times, line in list(self._repeated.counted()):
            if self._side is not None:
                self._side.repeat(topic, times)
            if line:
                yield from self._take(self._unwrapper.feed(line))

    def _pass_over(self) -> bool:
        """Go to the next line that matters; return whether the chunk has one."""
        chunk, position, looks_back = self._chunk, self._position, self._unwrapper.looks_back
        is_wary = self._is_wary
        is_settled = is_wary or self._reader.is_settled
        repeated = self._repeated if is_settled else None
        mark = self._marks.line_from(position, looks_back=looks_back, repeated=repeated, belief=self._belief)
        if not is_settled:
            start = next_telling_line(chunk, position, len(chunk) if mark is None else mark[0])
            self._reader.skip(chunk.count(b"\n", position, start))
            if mark is None or start < mark[0]:
                mark = (start, False, 0) if start < len(chunk) else None
        if mark is None:
            self._unwrapper.skip()
            return False
        # A line may be broken into several, and one is held back until the next has come.
        if mark[0] > position:
            self._unwrapper.skip()
        self._position, is_kernels, lines = mark
        self._beside = _LINES_OF_OTHERS
        if is_kernels:
            beside = (MOST_WAITING if looks_back else _LINES_BESIDE) + lines
            if is_wary:
                self._patience = self._of_mark + lines
                beside = min(beside, self._patience)
                self._of_mark = max(_LEAST_PATIENCE, self._of_mark // 2)
            self._beside = beside
            self._following = _FOLLOWING_BYTES
            self._marks.look_for(_FOLLOWING, self._position)
        return True

    def _next_lines(self) -> list[str]:
        """Return the next lines that matter, or some of them; of many that are blank, the last."""
        chunk, position = self._chunk, self._position
        if (blank := _BLANK.match(chunk, position)) is not None:
            self._reader.skip(chunk.count(b"\n", position, blank.end()) - 1)
            position = blank.end() - 1
        most = self._beside if self._is_passing_beside() else self._together
        most = most if self._is_wary else min(most, self._patience)
        end = chunk.find(b"\n", position)
        limit = min(len(chunk), position + _STRETCH_BYTES)
        if 0 <= end < limit and most > 1:
            limit = self._stretch_end(position, limit)
            stretch, most = chunk[position:limit], min(most, self._together)
            if stretch.isascii():
                lines = stretch.decode().split("\n", most)
                self._position = limit - len(lines.pop())
            else:
                odd = stretch.split(b"\n", most)
                self._position = limit - len(odd.pop())
                lines = text_of(b"\n".join(odd)).split("\n")
            self._beside -= len(lines)
            return lines
        end = len(chunk) if end < 0 else end
        self._position = end + 1
        self._beside -= 1
        longest = _LINE_BYTES if self._is_wary else MOST_IN_RECORD
        return [text_of(chunk[position : min(end, position + longest)])]

    def _is_passing_beside(self) -> bool:
        """Whether lines matter only because of a mark beside them."""
        return not self._is_first and self._needs_no_more

    def _stretch_end(self, position: int, limit: int) -> int:
        """Return where to stop reading: after a kill few lines matter, if any."""
        kill = -1 if self._is_first else self._chunk.find(_KILL, position, limit)
        end = -1 if kill < 0 else self._chunk.find(b"\n", kill, limit)
        return limit if end < 0 else end + 1

    def _mind_what_follows(self) -> None:
        """Know what matters after lines, and how many are worth being read at once."""
        is_dense = self._is_first or self._is_every or self._unwrapper.looks_back or not self._reader.quiet
        is_dense = is_dense or (self._side is not None and self._side.is_dense)
        self._together = min(_MOST_TOGETHER, self._together * 4) if is_dense else _FEW_TOGETHER
        if self._is_first or not self._needs_no_more:
            self._beside = max(self._beside, _LINES_OF_OTHERS)  # what was read last may go on in the next chunk

    def _pass_over_silent(self) -> None:
        """Pass over lines that say nothing of the report that is open, after some that do not."""
        reader, chunk, position = self._reader, self._chunk, self._position
        is_near = self._is_first or self._is_every or reader.expects_figures or reader.quiet < _MOST_SILENT
        if is_near or not self._unwrapper.is_plain or (self._side is not None and self._side.lines_after > 0):
            return
        mark = self._marks.line_from(position, looks_back=False)
        if mark is not None and mark[0] == position:
            return
        start = next_telling_line(chunk, position, len(chunk) if mark is None else mark[0])
        if lines := chunk.count(b"\n", position, start):
            self._position = start
            self._beside -= lines
            self._unwrapper.skip()
            reader.skip(lines)


def _cost(lines: Sequence[str]) -> int:
    """Return how much patience it takes to read lines."""
    return _cost_of(len(lines), sum(map(len, lines)))


def _cost_of(lines: int, characters: int) -> int:
    return lines + min(_MOST_COST, characters >> _COST_SHIFT)


class _Marks:
    """Where a chunk has lines of the OOM killer's, or other lines that matter; each mark is searched for once."""

    def __init__(self, chunk: bytes) -> None:
        self._chunk = chunk
        self._next: dict[Mark, int] = {}
        self._first: tuple[int, Mark | None] | None = None
        """The first of them."""

    def look_for(self, marks: Iterable[Mark], position: int = 0) -> None:
        """Look for more of them from a position on."""
        for mark in marks:
            if mark not in self._next:
                self._next[mark] = next_mark(self._chunk, mark, position)
                self._first = None

    def line_from(
        self, position: int, *, looks_back: bool, repeated: RepeatedLines | None = None, belief: int = _PATIENCE
    ) -> tuple[int, bool, int] | None:
        """Return where the next such line begins, or its entry in an export, and whether lines beside it matter.

        Where lines before it matter, the first of them is returned, and how many there are. Those that repeat others
        are counted and passed over.
        """
        hit, mark = self._hit_from(position)
        may_be_broken, misses = belief > _LEAST_PATIENCE, 0
        while repeated is not None and mark is not None:
            if mark in _OF_KERNEL:
                if belief == _PATIENCE or is_kernels_own(self._chunk, hit, may_be_broken=may_be_broken):
                    break
                misses += 1
                if misses > _MOST_MISSES:  # the words are everywhere: one search is faster than many tries
                    hit = next_own(self._chunk, hit + 1, self._of_others_from(hit + 1), may_be_broken=may_be_broken) - 1
                hit, mark = self._hit_from(hit + 1)
                continue
            own = max(position, self._chunk.rfind(b"\n", position, hit) + 1)
            after = repeated.pass_over(self._chunk, own)
            if after == own:
                break
            position = after
            hit, mark = self._hit_from(position)
        if mark is None:
            return None
        start = max(position, self._chunk.rfind(b"\n", position, hit) + 1)
        entry = self._chunk.rfind(_ENTRY, position, start)
        is_kernels = mark in _OF_KERNEL
        if isinstance(mark, Needle) and not is_kernels:  # some programs say their figures just before what has the mark
            start = max(position, self._chunk.rfind(b"\n", position, max(position, start - 1)) + 1)
        if entry >= 0 and self._chunk.find(_ENTRY_END, entry, start) < 0:
            return entry, True, 0
        if not (looks_back and is_kernels):
            return start, is_kernels, 0
        most = min(_LINES_BEFORE, belief)
        first = max(position, start - _BEFORE_BYTES)
        before = self._chunk[first:start].split(b"\n")[:-1]
        kept = before[-most:] if first == position else before[1:][-most:]
        return start - sum(len(line) + 1 for line in kept), True, len(kept)

    def _of_others_from(self, position: int) -> int:
        """Return where the next mark is that is not the kernel's."""
        self._first_from(position)
        return min([at for mark, at in self._next.items() if at >= 0 and mark not in _OF_KERNEL] or [len(self._chunk)])

    def _hit_from(self, position: int) -> tuple[int, Mark | None]:
        """Return where the next mark is, and which."""
        if self._first is None or self._first[0] < position:
            self._first = self._first_from(position)
        return self._first

    def _first_from(self, position: int) -> tuple[int, Mark | None]:
        first: tuple[int, Mark | None] = (len(self._chunk), None)
        for mark, known in self._next.items():
            place = known
            if 0 <= place < position:
                place = self._next[mark] = next_mark(self._chunk, mark, position)
            if 0 <= place < first[0]:
                first = (place, mark)
        return first


def _chunks(stream: LogStream) -> Iterator[bytes]:
    """Yield whole lines, many at a time; of a line without end only its beginning. Entries of an export stay whole."""
    rest = b""
    is_skipping = False
    end = b"\n"
    for read in _with_line_feeds(stream):
        part = read
        if is_skipping:
            _, found, part = read.partition(b"\n")
            is_skipping = not found
        if not rest and part.startswith(_ENTRY):
            end = _ENTRY_END
        rest += part
        cut = rest.rfind(end)
        if cut < 0 and len(rest) >= _CHUNK_BYTES:
            end = b"\n"
            cut = rest.rfind(end)
        if cut >= 0:
            yield rest[: cut + len(end) - 1]
            rest = rest[cut + len(end) :]
        if len(rest) > MOST_IN_RECORD:
            cut = max(rest.rfind(mark, 0, MOST_IN_RECORD) for mark in _ESCAPED_ENDS)
            if cut > 0:
                yield rest[: cut + 1]
                rest = rest[cut + 1 :]
            else:
                yield rest[:_LINE_BYTES]
                rest, is_skipping = b"", True
    if rest:
        yield rest


def _with_line_feeds(stream: LogStream) -> Iterator[bytes]:
    """Yield the parts of a log whose lines may end as on Windows, or as serial consoles write them."""
    held = b""
    for read in decoded_parts(iter(lambda: stream.read(_CHUNK_BYTES), b"")):
        if b"\b" in read and b"\x01" not in read:
            read = _STRUCK_OVER.sub(b"", read)  # noqa: PLW2901 - what a terminal would show
        if held or b"\r" in read:
            part = held + read
            held = b"\r" if part.endswith(b"\r") else b""
            part = part.removesuffix(b"\r").replace(b"\r\r\n", b"\n").replace(b"\r\n", b"\n").replace(b"\r", b"\n")
            yield part
        else:
            yield read
    if held:
        yield b"\n"
