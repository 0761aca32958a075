"""The fast signal: the kernel says when memory crosses a level that the agent has asked for.

The kernel counts usage, the agent asks by what is available, which leaves inactive page cache out. The level is
therefore where usage would be if all that is still allowed to grow were to grow from here: what is used, plus what is
available beyond the amount asked for. It is set anew whenever the agent asks, so that page cache that comes and goes
does not shift it for long.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from podqos.agent.commands import MemoryLevel
from podqos.eviction.observation import SignalObservation
from podqos.eviction.signals import Signal
from podqos.host.linux.cgroupfs import Cgroups, KernelSignal
from podqos.host.linux.loop import Loop

# A level may be too high by such a part of the amount asked for: the kernel takes tens of milliseconds to set another
# (it waits for all processors), and nothing else is done meanwhile.
_TOLERANCE = 64

_Key = tuple[str, int]
"""A cgroup and the amount asked for."""


class MemoryWatch:
    """Listens to the kernel on behalf of the eviction loop."""

    def __init__(
        self, cgroups: Cgroups, loop: Loop, paths: Mapping[Signal, str], on_crossing: Callable[[], None]
    ) -> None:
        self._cgroups, self._loop, self._on_crossing = cgroups, loop, on_crossing
        self._paths = paths
        """Whose usage stands behind which signal."""
        self._levels: dict[_Key, int] = {}
        self._signals: dict[_Key, KernelSignal] = {}

    def watch(self, levels: Sequence[MemoryLevel], seen: Mapping[Signal, SignalObservation]) -> bool:
        """Watch these levels and no others, by figures of now; False where the kernel has no such signal.

        The kernel tells of nothing that was crossed before it was asked to: memory that passes its level in between is
        told of here, and memory that had passed it already where that is wanted.
        """
        works = True
        set_now: set[_Key] = set()
        for level in levels:
            path, observation = self._paths[level.signal], seen.get(level.signal)
            memory = self._cgroups.memory(path)
            if observation is None or memory is None:
                continue
            key = path, level.below_bytes
            set_now.add(key)
            level_bytes = memory.usage_bytes + observation.available - level.below_bytes
            works &= self._set(key, level_bytes, level.below_bytes // _TOLERANCE)
            if memory.usage_bytes <= level_bytes or level.tell_if_below:
                self._tell_if_above(path, level_bytes)
        for key in self._signals.keys() - set_now:
            self._disarm(key)
        return works

    @property
    def levels(self) -> Mapping[str, int]:
        """At which usage the kernel tells of which cgroup first."""
        found: dict[str, int] = {}
        for (path, _), level in self._levels.items():
            found[path] = min(level, found.get(path, level))
        return found

    def _tell_if_above(self, path: str, level_bytes: int) -> None:
        now = self._cgroups.memory(path)
        if now is not None and now.usage_bytes > level_bytes:
            self._loop.call_after(0, self._on_crossing)

    def close(self) -> None:
        """Listen no more."""
        for key in list(self._signals):
            self._disarm(key)

    def _set(self, key: _Key, level_bytes: int, tolerance_bytes: int) -> bool:
        # Rather too high: below, the agent would be told and see that the threshold is not met.
        level = max(0, level_bytes + tolerance_bytes // 2)
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
        # The kernel tells of this level no more until usage has been below it: it has to be set again in any case.
        self._levels.pop(key, None)
        self._on_crossing()
