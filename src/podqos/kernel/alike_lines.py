"""Lines that are carried like the one before: their heads differ in digits alone, as those of one log's times do.

Most lines of a report are rows of its table, frames of its stack or figures of its cgroup. Once a line shows how they
are carried, those that follow it are read as a block, and whether a line begins like it is one comparison.
"""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import islice
from typing import Any

_MOST_HEAD = 256
_START = 16  # a time, of syslog or of dmesg
_ZEROS = bytes.maketrans(b"123456789", b"000000000")
_END = rb"\r?+\n"


class AlikeLines:
    """How a line was carried."""

    def __init__(self, head: bytes, host: bytes) -> None:
        # The digits of a host tell hosts apart.
        parts = head.split(host) if host else [head]
        self._parts, self._host = tuple(part.translate(_ZEROS) for part in parts), host
        self._start = head[:_START].translate(_ZEROS)
        self.names_kernel = b"kernel" in head

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AlikeLines) and self._parts == other._parts and self._host == other._host

    def __hash__(self) -> int:
        return hash((self._parts, self._host))

    def begins(self, chunk: bytes, position: int) -> bool:
        """Whether the line at a position begins as one that is carried so does, and continues none."""
        start = self._start
        return bool(start) and chunk[position : position + len(start)].translate(_ZEROS) == start

    def end_of_block(self, chunk: bytes, position: int, text: bytes) -> int:
        """Return where the lines from a position on end that are carried alike, and whose text matches a pattern."""
        _, block = _patterns(self._parts, self._host, text)
        whole = block.match(chunk, position)
        return position if whole is None else whole.end()

    def texts(self, chunk: bytes, start: int, end: int, text: bytes) -> list[Any]:
        """Return the groups of the pattern in each line of a block."""
        line, _ = _patterns(self._parts, self._host, text)
        return line.findall(chunk, start, end)

    def line_in(self, chunk: bytes, start: int, end: int, text: bytes, number: int) -> int:
        """Return where a line of a block begins, by its number."""
        line, _ = _patterns(self._parts, self._host, text)
        return next(islice(line.finditer(chunk, start, end), number, None)).start()


def alike_lines(line: str, text: str, host: str) -> AlikeLines | None:
    """Return how a line is carried that was found to hold a text; None where that is not simply what precedes it."""
    if not line.endswith(text) or not line.isascii() or len(line) - len(text) > _MOST_HEAD:
        return None
    return AlikeLines(line[: len(line) - len(text)].encode(), host.encode())


@lru_cache(maxsize=128)
def _patterns(parts: tuple[bytes, ...], host: bytes, text: bytes) -> tuple[re.Pattern[bytes], re.Pattern[bytes]]:
    """Return what matches a line, and what matches all lines that follow each other."""
    head = re.escape(host).join(b"[0-9]".join(map(re.escape, part.split(b"0"))) for part in parts)
    line = head + text + _END
    return re.compile(line), re.compile(b"(?:" + line + b")+")
