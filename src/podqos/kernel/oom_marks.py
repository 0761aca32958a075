"""What lines hold that tell of an OOM, from the first line of its report to its kill: others are passed over.

``oom_reading`` says what such lines mean. A line that it reads and that has none of these marks is missed where lines
of others surround it; only the figures of a cgroup, one per line, have none.
"""

from __future__ import annotations

import re
from functools import cache

_MARKS = (
    *(b"+0x", b"kB, limit ", b" tgid", b"free:", b"active_anon:", b"omm: ", b"stats for /"),  # most often
    *(b"oom-kill", b"Killed process", b"ill process", b"ut of memory", b"ut of Memory", b"oom_reaper", b"oom.group"),
    *(b"Mem-", b"Task in ", b"as a result of limit"),
    *(
        b"mems_allowed=",
        b"Manual OOM",
        b" swap ",
        b"lowmem_reserve",
        b" pages R",
        b" pages r",
    ),
    *(
        b"active_file:",
        b"evictable:",
        b"slab_reclaimable:",
        b"mapped:",
        b"kernel_stack:",
        b"deadlocked on memory",
    ),
    *(b"messages", b" lost", b"...", b"vmalloc", b"how Memory", b"page allocation ", b"hugepages_"),
)
_PATTERNS = (
    re.compile(rb"\] {1,16}+[0-9]{1,10}+ {1,16}+[0-9]{1,10}+ {1,16}+[0-9]"),  # rows of the table, after their pid
    re.compile(rb"\*[0-9]{1,3}kB"),  # free blocks
)
_WHOLE = (
    b"oom-kill:constraint=",
    b"oom-killer: gfp_mask=0x",
    b"oom_reaper: reaped process ",
    b"oom_reaper: unable to ",
)
_PARTS_OF_OWN = {
    b"Killed process ": (
        rb"[0-9]{1,10}+(?:, UID [0-9]{1,10}+,)? \([^\n]{1,32}?\)"
        rb"(?:[,.]?[ \t\r]{0,8}(?:\n|\Z)|,? {1,4}(?:total-vm|vsz|UID))"
    ),
    b"anon-rss:": rb"[0-9]{1,15}kB",
    b"memory.oom.group set": b"",
    **dict.fromkeys(_WHOLE, b""),
}
"""What follows each."""
_OWN = re.compile(b"|".join(re.escape(text) + rest for text, rest in _PARTS_OF_OWN.items()))
_LONGEST_OWN = 256
"""No match is as long."""
_NEAR = 512
_LONGEST = 64
"""More than a mark or what a pattern has to see of one."""


def is_kernels_own(chunk: bytes, position: int, *, may_be_broken: bool) -> bool:
    """Whether a mark stands where the kernel's own line has it, and is not a word of someone else's."""
    if _OWN.match(chunk, position) is not None:
        return True
    return may_be_broken and _broken().match(chunk, position) is not None


def next_own(chunk: bytes, position: int, limit: int, *, may_be_broken: bool) -> int:
    """Return where the next mark stands for which ``is_kernels_own`` is true; the limit if that comes first."""
    for text, pattern in _owns(may_be_broken=may_be_broken):
        place = chunk.find(text, position, limit + len(text) - 1)
        found = None if place < 0 else pattern.search(chunk, place, limit + _LONGEST_OWN)
        if found is not None:
            limit = min(limit, found.start())
    return limit


@cache
def _owns(*, may_be_broken: bool) -> tuple[tuple[bytes, re.Pattern[bytes]], ...]:
    """Return patterns that are fast to search for, each with what it begins with."""
    parts = [(text, re.escape(text) + rest) for text, rest in _PARTS_OF_OWN.items()]
    if may_be_broken:
        parts += [(text, re.escape(text) + rest) for text, rest in _parts_of_broken().items()]
    return tuple((text, re.compile(source)) for text, source in parts)


@cache
def _broken() -> re.Pattern[bytes]:
    """Return what matches the beginning of such a mark, where a line ends."""
    return re.compile(b"|".join(re.escape(text) + rest for text, rest in _parts_of_broken().items()))


def _parts_of_broken() -> dict[bytes, bytes]:
    """Return what follows each beginning of a mark that a line may end in."""
    end = rb"[ \t\r\\=]{0,4}(?:\n|\Z)"
    parts = {b"Killed process": rb"(?: [0-9]{0,10}+(?:, UID [0-9]{0,10}+,?)?(?: \([^)\n]{0,16})?)?" + end}
    for begins in sorted({whole[: len(b"oom-kill")] for whole in _WHOLE}):
        rests = [whole[len(begins) :] for whole in _WHOLE if whole.startswith(begins)]
        begun = (re.escape(rest[:length]) for rest in rests for length in range(len(rest)))
        parts[begins] = b"(?:" + b"|".join(begun) + b")" + end
    return parts


def next_telling_line(chunk: bytes, position: int, limit: int) -> int:
    """Return where the next line begins that may tell of an OOM, from a line's beginning on, or the limit.

    What is near is found without a look at what is far: windows grow.
    """
    begin, width = position, _NEAR
    # Most often it is the very next one.
    end = chunk.find(b"\n", position, limit)
    end = limit if end < 0 else end
    for pattern in _PATTERNS:
        if pattern.search(chunk, position, end):
            return position
    for mark in _MARKS:
        if chunk.find(mark, position, end) >= 0:
            return position
    begin = min(limit, end + 1)
    while begin < limit:
        end = first = min(limit, begin + width)
        for mark in _MARKS:
            place = chunk.find(mark, begin, min(limit, first + len(mark) - 1))
            first = place if 0 <= place < first else first
        for pattern in _PATTERNS:
            if (row := pattern.search(chunk, begin, min(limit, first + _LONGEST))) is not None and row.start() < first:
                first = row.start()
        if first < end:
            return chunk.rfind(b"\n", position, first) + 1 or position
        begin, width = end, width * 2
    return limit
