"""Lines that are carried like the one before: their heads differ in digits alone, as those of one log's times do.

Once a line shows how a report's lines are carried, those that follow it are taken as a block, all their heads at once,
and whether a line begins like it is one comparison.
"""

from __future__ import annotations

import re
from functools import cached_property, lru_cache

_MOST_HEAD = 256
_MOST_BYTES = 1 << 15
"""Of a block: where a line of it has to be read by itself, the rest is taken again."""
_START = 16  # a time, of syslog or of dmesg
_ZEROS = bytes.maketrans(b"123456789", b"000000000")


class AlikeLines:
    """How a line was carried."""

    def __init__(self, form: bytes, host: bytes) -> None:
        self._form, self._host = form, host
        self._start = form[:_START].translate(_ZEROS)
        self.width = len(form)
        """Of the head of each of them."""
        self.names_kernel = b"kernel" in form
        self.is_kernels = self.names_kernel or form.lstrip(b"> ").startswith(b"[")
        """Whether none but the kernel's lines are carried so."""

    def begins(self, chunk: bytes, position: int) -> bool:
        """Whether the line at a position begins as one that is carried so does, and continues none."""
        start = self._start
        return bool(start) and chunk[position : position + len(start)].translate(_ZEROS) == start

    def texts(self, chunk: bytes, position: int, limit: int) -> bytes:
        """Return the lines from a position on that are carried so, up to a limit, without what carries them."""
        lines = self._lines.match(chunk, position, min(limit, position + _MOST_BYTES))
        if lines is None:
            return b""
        width = self.width
        return b"\n".join([line[width:] for line in lines[0].split(b"\n")])

    def position(self, start: int, texts: bytes, end: int) -> int:
        """Return where in a chunk the line begins that has its text at ``end``, of texts taken from ``start`` on."""
        return start + end + texts.count(b"\n", 0, end) * self.width

    @cached_property
    def _lines(self) -> re.Pattern[bytes]:
        # The digits of a host tell hosts apart.
        parts = self._form.split(self._host) if self._host else [self._form]
        head = re.escape(self._host).join(b"[0-9]".join(map(re.escape, part.split(b"0"))) for part in parts)
        return re.compile(b"(?:" + head + rb"[^\n]*+\n)+")


def alike_lines(line: str, text: str, host: str) -> AlikeLines | None:
    """Return how a line is carried that was found to hold a text; None where that is not simply what precedes it."""
    width = len(line) - len(text)
    if not line.endswith(text) or not line.isascii() or width > _MOST_HEAD:
        return None
    head, named = line[:width].encode(), host.encode()
    if not named:
        return _alike(head.translate(_ZEROS), named)
    return _alike(named.join([part.translate(_ZEROS) for part in head.split(named)]), named)


@lru_cache(maxsize=64)
def _alike(form: bytes, host: bytes) -> AlikeLines:
    return AlikeLines(form, host)
