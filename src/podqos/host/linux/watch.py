"""The fast signal: notices at once that less memory is available than the agent wants.

The kernel signals when a cgroup's usage crosses a level. Usage counts page cache, available memory does not count the
inactive part of it: on a node whose memory is full of cache usage stays at the limit, whatever grows. Two ways out:

- *through the cache*, for the fast path: the level is what may be used without any inactive cache; before usage gets
  there, memory cannot be short. From there on the figures themselves are read, as often as the fastest growth needs
  (``agent.memory.look_again_seconds``), until usage is below the level again. The level of a confined node never
  changes: setting one blocks the node for tens of milliseconds on cgroup v1, which waits for all processors.
  Where there is no signal, or not enough of one, most of these looks are *glances*: what is left even if no page cache
  could be given back takes one file to read. Only where that is too little to wait for are all figures read.
- *as a kubelet does*: usage plus what is available beyond the threshold, by the figures of the moment.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, Protocol

from msgspec import Struct

from podqos.agent.agent import IDLE_LOOK_SECONDS, LEAST_LOOK_SECONDS, look_again_seconds
from podqos.agent.port import MemoryLevel, WatchMemory
from podqos.eviction.signals import Signal
from podqos.host.linux.cgroupfs import CgroupMemory, KernelSignal
from podqos.host.linux.loop import Loop, Timer

# A level may be too high by this fraction of the threshold. Rather too high: too low, the agent would be woken and find
# the threshold not met.
_TOLERANCE = 64
_LITTLE_CACHE = 8
# A glance costs less than this fraction of a look: it pays where it lets wait for at least that part of the time.
_GLANCES = 8

_Key = tuple[str, int]
"""A cgroup and the threshold."""


class MemorySeen(Struct, frozen=True, gc=False):
    """The memory that a signal is about."""

    available_bytes: int
    usage_bytes: int
    """What the kernel counts as used of its cgroup."""
    cache_bytes: int
    """How much of that is inactive page cache."""
    full_bytes: int
    """The usage at which nothing is available, without such cache."""
    is_all: bool = True
    """Whether only what its cgroup holds affects the signal; otherwise no level of usage is enough."""


class MemoryFigures(NamedTuple):
    """All figures of one moment."""

    signals: Mapping[Signal, MemorySeen]
    below: Sequence[CgroupMemory | None]
    """Cgroups further down that hold much; they change first (``host.linux.tree_memory``)."""
    age_seconds: float = 0.0
    """How long ago they were read."""


class MemorySignals(Protocol):
    """Where the kernel signals that usage crosses a level: ``Cgroups``, or what uses them with more restraint."""

    def watch_memory(self, path: str, level_bytes: int) -> KernelSignal | None:
        """Return a signal that comes when usage crosses a level; None if there is none: memory is looked at then."""

    def unwatch_memory(self, path: str) -> None:
        """Undo what an agent left that was killed."""


class KernelMemoryWatch:
    """Listens to the kernel on behalf of the eviction loop."""

    def __init__(
        self,
        cgroups: MemorySignals,
        loop: Loop,
        paths: Mapping[Signal, str],
        look: Callable[[], MemoryFigures],
        on_crossing: Callable[[], None],
        *,
        glance: Callable[[], Mapping[Signal, int]] = dict,
    ) -> None:
        """``glance`` returns what is available at least, as far as that is cheap to know."""
        self._cgroups, self._loop, self._on_crossing, self._glance = cgroups, loop, on_crossing, glance
        self._paths = paths
        """The cgroup whose usage belongs to each signal."""
        self._take_look = look
        self.asked = WatchMemory()
        self._known: set[MemoryLevel] = set()
        """Levels that are crossed, as the agent knows."""
        self._timer: Timer | None = None
        self._last = MemoryFigures({}, ())
        self._last_glance: Mapping[Signal, int] = {}
        self._has_told = False
        """Whether the agent is about to check and to ask again."""
        self._levels: dict[_Key, int] = {}
        self._signals: dict[_Key, KernelSignal] = {}
        for path in paths.values():
            cgroups.unwatch_memory(path)

    def watch(self, asked: WatchMemory, seen: MemoryFigures | None = None) -> bool:
        """Watch these levels and no others; False if the kernel has no such signal.

        ``seen`` are the figures of the pass that asks: they are not read again, unless a level had to be set again.
        Memory that crosses its level meanwhile is reported, and memory that was already beyond it where requested.
        """
        works = True
        self.asked = asked
        self._known.clear()
        self._has_told = False
        look = MemoryFigures({}, ()) if not asked.levels else self._take_look() if seen is None else seen
        found = {(self._paths[level.signal], level.below_bytes): (level, memory) for level, memory in self._seen(look)}
        # First: on version 2 a cgroup has one level.
        for key in self._signals.keys() - found.keys():
            self._disarm(key)
        before = set(self._signals.values())
        for key, (level, memory) in found.items():
            full_bytes = memory.full_bytes if asked.through_cache else memory.usage_bytes + memory.available_bytes
            works &= self._set(key, full_bytes - level.below_bytes, level.below_bytes // _TOLERANCE)
            if memory.available_bytes < level.below_bytes and not level.tell_if_below:
                self._known.add(level)
        if any(signal not in before and self._is_relied_on(*found[key]) for key, signal in self._signals.items()):
            # The kernel tells of what crosses a level from now on, not of what crossed it since the figures were read.
            look = self._take_look()
        self._stop_looking()
        if asked.levels and self._is_news(look):
            self._loop.call_after(0, self._on_crossing)
        return works

    def look(self) -> None:
        """Look at once, because something says that memory is short."""
        if not self._has_told:
            self._look()

    @property
    def levels(self) -> Mapping[str, int]:
        """The first level of usage, by cgroup."""
        found: dict[str, int] = {}
        for (path, _), level in self._levels.items():
            found[path] = min(level, found.get(path, level))
        return found

    def close(self) -> None:
        """Stop watching."""
        self._stop_looking()
        for key in list(self._signals):
            self._disarm(key)

    def _seen(self, look: MemoryFigures) -> list[tuple[MemoryLevel, MemorySeen]]:
        return [(level, look.signals[level.signal]) for level in self.asked.levels if level.signal in look.signals]

    def _look(self) -> None:
        """Tell at once if memory is short."""
        self._stop_looking()
        if self.asked.levels and self._is_news(self._take_look()):
            self._on_crossing()

    def _is_news(self, look: MemoryFigures) -> bool:
        """Whether memory is short and the agent has yet to know; otherwise it is looked at again in time."""
        before, self._last = self._last, look
        waits = []
        for level, seen in self._seen(look):
            beyond_bytes = seen.available_bytes - level.below_bytes
            if beyond_bytes >= 0:
                self._known.discard(level)
            elif level not in self._known:
                self._has_told = True
                return True
            if not self._is_relied_on(level, seen):
                waits.append(look_again_seconds(beyond_bytes))
        if waits:
            seconds = _patience(look, before, min(waits)) - look.age_seconds
            self._timer = self._loop.call_after(max(0.0, seconds), self._look_again)
        return False

    def _look_again(self) -> None:
        """Look, unless a glance says that there is time."""
        seconds = self._time_left()
        if seconds is None:
            self._look()
        else:
            self._timer = self._loop.call_after(seconds, self._look_again)

    def _time_left(self) -> float | None:
        """Return how long there is surely enough memory; None where it takes more than a glance to know."""
        if self._known:
            return None
        before, least = self._last_glance, self._glance()
        self._last_glance = least
        waits = []
        for level, seen in self._seen(self._last):
            beyond_bytes = least.get(level.signal, 0) - level.below_bytes
            if beyond_bytes <= 0 or beyond_bytes * _GLANCES < seen.available_bytes - level.below_bytes:
                return None
            if self._is_hidden(level, seen):
                waits.append(look_again_seconds(beyond_bytes))
        seconds = min(waits, default=None)
        return seconds if seconds is None or least != before else max(seconds, IDLE_LOOK_SECONDS)

    def _is_relied_on(self, level: MemoryLevel, seen: MemorySeen) -> bool:
        """Whether nothing but the kernel's signal says that memory is short: a kubelet has no other."""
        return not (self.asked.through_cache and self._is_hidden(level, seen))

    def _is_hidden(self, level: MemoryLevel, seen: MemorySeen) -> bool:
        """Whether the kernel's signal is not enough: usage is where page cache decides how much is available."""
        armed = self._levels.get((self._paths[level.signal], level.below_bytes))
        return armed is None or not seen.is_all or seen.usage_bytes > armed - level.below_bytes // _TOLERANCE

    def _is_looked_for(self, key: _Key) -> bool:
        """Whether memory is looked at often because of this level, rather than of another one."""
        return any(
            (self._paths[level.signal], level.below_bytes) == key and self._is_hidden(level, seen)
            for level, seen in self._seen(self._last)
        )

    def _stop_looking(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _set(self, key: _Key, level_bytes: int, tolerance_bytes: int) -> bool:
        level = max(0, level_bytes + tolerance_bytes // 8)
        before = self._levels.get(key)
        if before is not None and level_bytes <= before <= level_bytes + tolerance_bytes:
            return True
        self._disarm(key)
        signal = self._cgroups.watch_memory(key[0], level)
        if signal is None:
            return False
        self._levels[key], self._signals[key] = level, signal
        self._loop.watch(signal.descriptor, lambda: self._crossed(key, signal), signal.events)
        return True

    def _disarm(self, key: _Key) -> None:
        self._levels.pop(key, None)
        signal = self._signals.pop(key, None)
        if signal is not None:
            self._loop.unwatch(signal.descriptor)
            signal.close()

    def _crossed(self, key: _Key, signal: KernelSignal) -> None:
        signal.take()
        if not self.asked.through_cache:
            # The kernel signals this level again only after usage was below it: it has to be set again in any case.
            self._levels.pop(key, None)
            self._on_crossing()
        elif self._has_told or (self._timer is not None and self._is_looked_for(key)):
            return
        elif all(seen.cache_bytes < level.below_bytes // _LITTLE_CACHE for level, seen in self._seen(self._last)):
            # Then it is short, and there is no time to lose; should the cache have come since, the agent asks again.
            self._has_told = True
            self._on_crossing()
        else:
            self._look()


def _patience(look: MemoryFigures, last: MemoryFigures, seconds: float) -> float:
    """Return when to look again: later if nothing changes, soon if these figures do not yet show a change below."""
    if (look.signals, look.below) == (last.signals, last.below):
        return max(seconds, IDLE_LOOK_SECONDS)
    cached, before = ([seen.cache_bytes for seen in each.signals.values()] for each in (look, last))
    return LEAST_LOOK_SECONDS if cached == before and look.below != last.below else seconds
