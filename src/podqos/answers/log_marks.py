"""Where a chunk of a log has something that matters: substrings searched at the speed of memory."""

from __future__ import annotations

import re

from msgspec import Struct


class Needle(Struct, frozen=True):
    """A substring that many words share, and what has to surround it; one search for all of them."""

    text: bytes
    pattern: re.Pattern[bytes]
    """Matched where the substring begins; what precedes it is looked at backwards."""

    def find(self, chunk: bytes, position: int) -> int:
        """Return where the next one begins; -1: there is none."""
        found = chunk.find(self.text, position)
        while found >= 0 and self.pattern.match(chunk, found) is None:
            found = chunk.find(self.text, found + len(self.text))
        return found


Mark = bytes | Needle


def next_mark(chunk: bytes, mark: Mark, position: int) -> int:
    """Return where a mark is found next; -1: nowhere."""
    return chunk.find(mark, position) if isinstance(mark, bytes) else mark.find(chunk, position)
