"""Where a chunk of a log has something that matters: substrings searched at the speed of memory."""

from __future__ import annotations

import re

from msgspec import Struct

_MOST_AROUND = 1 << 13


class Needle(Struct, frozen=True, eq=False):
    """A substring that many words share, and what has to surround it; one search for all of them."""

    text: bytes
    pattern: re.Pattern[bytes]
    """Matched where the substring begins; what precedes it is looked at backwards."""
    beside: re.Pattern[bytes] | None = None
    """What its line, or the one before, has as well."""

    def find(self, chunk: bytes, position: int) -> int:
        """Return where the next one begins; -1: there is none."""
        found = chunk.find(self.text, position)
        while found >= 0 and not (self.pattern.match(chunk, found) and self._is_beside(chunk, found)):
            found = chunk.find(self.text, found + len(self.text))
        return found

    def _is_beside(self, chunk: bytes, found: int) -> bool:
        if self.beside is None:
            return True
        far, near = max(0, found - _MOST_AROUND), found + _MOST_AROUND
        start = chunk.rfind(b"\n", far, found)
        before = chunk.rfind(b"\n", far, start) if start > far else -1
        end = chunk.find(b"\n", found, near)
        if (start < 0 and far) or (end < 0 and near < len(chunk)):
            return True  # a line this long may have it anywhere
        return self.beside.search(chunk, max(before, far), len(chunk) if end < 0 else end) is not None


Mark = bytes | Needle


def next_mark(chunk: bytes, mark: Mark, position: int) -> int:
    """Return where a mark is found next; -1: nowhere."""
    return chunk.find(mark, position) if isinstance(mark, bytes) else mark.find(chunk, position)
