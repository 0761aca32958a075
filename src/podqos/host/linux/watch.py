"""The fast signal: the kernel signals when memory crosses a level that the agent has set.

The kernel counts usage; the agent uses available memory, which excludes inactive page cache. The level is therefore
current usage plus what is available beyond the threshold. It is recomputed whenever the agent asks, so that changes of
the page cache do not shift it for long.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from podqos.agent.commands import MemoryLevel
from podqos.eviction.observation import SignalObservation
from podqos.eviction.signals import Signal
from podqos.host.linux.cgroupfs import Cgroups, KernelSignal
from podqos.host.linux.loop import Loop

# A level may be too high by this fraction of the threshold: setting another takes the kernel tens of milliseconds (it
# waits for all processors), during which the node is blocked.
_TOLERANCE = 64

_Key = tuple[str, int]
"""A cgroup and the threshold."""


class MemoryWatch:
    """Listens to the kernel on behalf of the eviction loop."""

    def __init__(
        self, cgroups: Cgroups, loop: Loop, paths: Mapping[Signal, str], on_crossing: Callable[[], None]
    ) -> None:
        self._cgroups, self._loop, self._on_crossing = cgroups, loop, on_crossing
        self._paths = paths
        """The cgroup whose usage belongs to each signal."""
        self._levels: dict[_Key, int] = {}
        self._signals: dict[_Key, KernelSignal] = {}

    def watch(self, levels: Sequence[MemoryLevel], seen: Mapping[Signal, SignalObservation]) -> bool:
        """Watch these levels and no others, by current figures; False if the kernel has no such signal.

        The kernel does not signal levels that were crossed before: memory that crosses its level in between is reported
        here, and memory that was already beyond it where requested.
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
        """The first level of usage, by cgroup."""
        found: dict[str, int] = {}
        for (path, _), level in self._levels.items():
            found[path] = min(level, found.get(path, level))
        return found

    def _tell_if_above(self, path: str, level_bytes: int) -> None:
        now = self._cgroups.memory(path)
        if now is not None and now.usage_bytes > level_bytes:
            self._loop.call_after(0, self._on_crossing)

    def close(self) -> None:
        """Stop watching."""
        for key in list(self._signals):
            self._disarm(key)

    def _set(self, key: _Key, level_bytes: int, tolerance_bytes: int) -> bool:
        # Rather too high: too low, the agent would be woken and find the threshold not met.
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
        # The kernel signals this level again only after usage was below it: it has to be set again in any case.
        self._levels.pop(key, None)
        self._on_crossing()
