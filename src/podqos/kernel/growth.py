"""What the kernel does while the private memory of one cgroup grows, up to the OOM: what it reclaims, and when.

kswapd starts when less than ``low`` is free. A cgroup over its limit, and the machine at ``min``, reclaims for itself;
the first that gains too little is out of memory. Reclaim takes no time, so "when" is an amount: by how much the cgroup
has grown. How fast it grows changes nothing about that.
"""

from __future__ import annotations

from msgspec import Struct

from podqos.kernel.cgroup import ROOT
from podqos.kernel.charge import BoundRoom, MemoryBound, rooms
from podqos.kernel.memcg import Kind, Memory
from podqos.kernel.reclaim import Taken, kswapd, relieve


class ReclaimStep(Struct, frozen=True, gc=False):
    """What was taken at one moment."""

    at_bytes: int
    """By how much the cgroup had grown."""
    taken: tuple[Taken, ...]


class Course(Struct, frozen=True):
    """A growth from its beginning to its end."""

    steps: tuple[ReclaimStep, ...]
    until_oom_bytes: int
    """By how much the cgroup can grow."""
    room: BoundRoom
    """What ran out, as it was then."""


def grow(memory: Memory, path: str) -> Course:
    """Let a cgroup grow until it is out of memory; ``memory`` is then as it is at that moment."""
    marks = memory.machine.watermarks
    steps: list[ReclaimStep] = []
    grown, kswapd_listens = 0, True
    while True:
        until = min(room.free_bytes for room in rooms(memory, path))
        if kswapd_listens:
            until = min(until, memory.free_bytes - marks.low_bytes)
        more = max(0, until + 1)
        memory.put(path, Kind.ANON, more)
        grown += more
        if kswapd_listens and memory.free_bytes < marks.low_bytes:
            _note(steps, grown, kswapd(memory))
            # Where it gained too little it sleeps until memory is freed.
            kswapd_listens = memory.free_bytes >= marks.low_bytes
        for room in sorted((room for room in rooms(memory, path) if room.free_bytes < 0), key=_first_short):
            lacking = -next(each for each in rooms(memory, path) if _same(each, room)).free_bytes
            if lacking > 0:
                taken = relieve(memory, room.path, lacking, may_swap=room.bound is not MemoryBound.MEMSW)
                _note(steps, grown, taken)
                lacking -= sum(each.size_bytes for each in taken)
            if lacking > 0:
                return Course(tuple(steps), max(0, grown - lacking), room)
            kswapd_listens = True


def _note(steps: list[ReclaimStep], grown_bytes: int, taken: tuple[Taken, ...]) -> None:
    if taken:
        steps.append(ReclaimStep(grown_bytes, taken))


def _first_short(room: BoundRoom) -> tuple[int, bool, int]:
    """Order by where most is missing: there the limit was hit first. Of equals, the machine comes first."""
    return room.free_bytes, room.path != ROOT, -len(room.path)


def _same(one: BoundRoom, other: BoundRoom) -> bool:
    return (one.path, one.bound) == (other.path, other.bound)
