"""The OOM reports of a log, found by skipping from mark to mark: in the memory of a few chunks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from podqos.answers.kubelet_side import KubeletSide
from podqos.kernel.log_lines import LogStream, Unwrapper
from podqos.kernel.oom_report import BEGINNINGS, FOLLOWING, OOMReader, OOMReport

_CHUNK_BYTES = 1 << 18


_LINE_BYTES = 1 << 16


_LINES_BESIDE = 40


_FOLLOWING_BYTES = 1 << 18
"""After a kill what follows it is looked for; then only beginnings are, which is twice as fast."""


_ENTRY = b"__CURSOR="  # begins an entry of journald's export format


_ENTRY_END = b"\n\n"


def reports(stream: LogStream, side: KubeletSide | None = None) -> Iterator[OOMReport]:
    """Yield the OOM reports of a log; what it tells of the kubelet's side goes to ``side``."""
    unwrapper, reader = Unwrapper(), OOMReader()
    beside: int | None = None
    words: list[str] = []
    following = 0
    for chunk in _chunks(stream):
        if beside is None:
            beside = 0 if side is None else side.begin(chunk)
            words = [] if side is None else [mark.decode() for mark in side.marks]
        marks = _Marks(chunk)
        marks.look_for(BEGINNINGS)
        marks.look_for(() if side is None else side.marks)
        if following > 0:
            marks.look_for(FOLLOWING)
        following -= len(chunk)
        position = 0
        while position < len(chunk):
            if reader.is_settled and beside <= 0:
                found = marks.line_from(position)
                if found is None:
                    break
                # A line may be broken into several, and one is held back until the next has come.
                position, is_kernels = found
                beside = _LINES_BESIDE if is_kernels else 1
                if is_kernels:
                    following = _FOLLOWING_BYTES
                    marks.look_for(FOLLOWING, position)
            end = chunk.find(b"\n", position)
            end = len(chunk) if end < 0 else end
            line = chunk[position : min(end, position + _LINE_BYTES)].decode(errors="replace")
            position, beside = end + 1, beside - 1
            for message in unwrapper.feed(line):
                is_every = beside > _LINES_BESIDE or bool(message.fields)
                if side is not None and (is_every or any(word in message.text for word in words)):
                    side.feed(message)
                yield from reader.feed(message)
                if message.text.startswith("[") and beside <= _LINES_BESIDE:
                    position, rows = reader.read_rows(chunk, position, line, message)
                    beside -= rows
    for message in unwrapper.end():
        if side is not None:
            side.feed(message)
        yield from reader.feed(message)
    yield from reader.end()


class _Marks:
    """Where a chunk has lines of the OOM killer's, or other lines that matter; each mark is searched for once."""

    def __init__(self, chunk: bytes) -> None:
        self._chunk = chunk
        self._next: dict[bytes, int] = {}

    def look_for(self, marks: Iterable[bytes], position: int = 0) -> None:
        """Look for more of them from a position on."""
        for mark in marks:
            if mark not in self._next:
                self._next[mark] = self._chunk.find(mark, position)

    def line_from(self, position: int) -> tuple[int, bool] | None:
        """Return where the next such line begins, or its entry in an export, and whether lines beside it matter."""
        for mark, found in self._next.items():
            if 0 <= found < position:
                self._next[mark] = self._chunk.find(mark, position)
        hit, mark = min(((found, mark) for mark, found in self._next.items() if found >= 0), default=(-1, b""))
        if hit < 0:
            return None
        start = max(position, self._chunk.rfind(b"\n", position, hit) + 1)
        entry = self._chunk.rfind(_ENTRY, position, start)
        if entry >= 0 and self._chunk.find(_ENTRY_END, entry, start) < 0:
            return entry, True
        return start, mark in BEGINNINGS or mark in FOLLOWING


def _chunks(stream: LogStream) -> Iterator[bytes]:
    """Yield whole lines, many at a time; of a line without end only its beginning. Entries of an export stay whole."""
    rest = b""
    is_skipping = False
    end = b"\n"
    while part := stream.read(_CHUNK_BYTES):
        if is_skipping:
            _, found, part = part.partition(b"\n")
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
        if len(rest) > _CHUNK_BYTES:
            yield rest[:_LINE_BYTES]
            rest, is_skipping = b"", True
    if rest:
        yield rest
