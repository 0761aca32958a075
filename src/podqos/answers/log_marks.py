"""Where a chunk of a log has something that matters: substrings searched at the speed of memory."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache

from msgspec import Struct

VERY_LARGE = 1 << 26
"""Bytes of a log after which it is searched for less, and its lines are no longer all counted."""
_MOST_AROUND = 1 << 13
_MANY_BYTES = 1 << 16
_LONGEST_BROKEN = 160
"""No mail program, terminal or printer that breaks lines leaves longer ones."""
_MOST_MISSES = 8
_FEWEST_SPACES = 1 / 32
_NO_SPACES = (b"\xc2\xa0", b"&nbsp;", b"&#", b"%20", b"\\x20", b"\\u0020", b"\\u00a0")
"""What stands for a space where none may be."""


class Needle(Struct, frozen=True, eq=False):
    """A substring that many words share, and what has to surround it; one search for all of them."""

    text: bytes
    pattern: re.Pattern[bytes]
    """Matched where the substring begins; what precedes it is looked at backwards."""
    beside: re.Pattern[bytes] | None = None
    """What its line, or the one before, has as well."""

    def find(self, chunk: bytes, position: int) -> int:
        """Return where the next one begins; -1: there is none."""
        find, match, text, length = chunk.find, self.pattern.match, self.text, len(self.text)
        place = -1 if _lacks(chunk, text, position) else find(text, position)
        misses = 0
        while place >= 0 and not (match(chunk, place) and self._is_beside(chunk, place)):
            misses += 1
            if misses > _MOST_MISSES:  # the word alone is everywhere: one search is faster than many tries
                found = self.pattern.search(chunk, place + length)
                place = -1 if found is None else found.start()
            else:
                place = find(text, place + length)
        return place

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
    if isinstance(mark, Needle):
        return mark.find(chunk, position)
    return -1 if _lacks(chunk, mark, position) else chunk.find(mark, position)


def _lacks(chunk: bytes, text: bytes, position: int) -> bool:
    """Whether a chunk is known not to have a text: C's own search takes half as long as Python's, or less."""
    if position or len(chunk) < _MANY_BYTES:
        return False
    search = _memmem()
    return search is not None and search(chunk, len(chunk), text, len(text)) is None


@cache
def _memmem() -> Callable[[bytes, int, bytes, int], int | None] | None:
    """Return ``memmem`` of the C library; Windows has none."""
    from ctypes import CDLL, c_char_p, c_size_t, c_void_p

    try:
        search = CDLL(None).memmem
    except (AttributeError, OSError, TypeError):
        return None
    search.restype, search.argtypes = c_void_p, (c_char_p, c_size_t, c_char_p, c_size_t)
    return search


def has_plain_spaces(head: bytes) -> bool:
    """Whether a log that begins like this has its words apart as they were logged: not escaped, no lines broken."""
    if head.count(b" ") < len(head) * _FEWEST_SPACES or any(mark in head for mark in _NO_SPACES):
        return False
    return max(map(len, head.split(b"\n"))) > _LONGEST_BROKEN
