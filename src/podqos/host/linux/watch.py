"""The fast signal: the kernel says when memory crosses the level at which a hard threshold is met.

The kernel counts usage, the kubelet the working set, which leaves inactive page cache out. The level is therefore where
usage would be if all that is still allowed to grow were to grow from here: what is used, plus what is available beyond
the threshold. It is set anew after every look, so that page cache that comes and goes does not shift it for long.

Soft thresholds have time by definition and are left to the ten-second pass.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

from podqos.eviction.observation import SignalObservation
from podqos.eviction.signals import Signal
from podqos.eviction.thresholds import Threshold
from podqos.host.linux.cgroupfs import Cgroups, KernelSignal
from podqos.host.linux.loop import Loop

# A level may be too high by such a part of its threshold: the kernel takes tens of milliseconds to set another (it
# waits for all processors), and nothing else is done meanwhile.
_TOLERANCE = 64


def is_memory_short(thresholds: Sequence[Threshold], seen: Mapping[Signal, SignalObservation]) -> bool:
    """Whether a hard threshold of memory is met."""
    return any(
        threshold.is_hard and observation.available < threshold.amount(observation.capacity).value
        for threshold in thresholds
        if threshold.signal in {Signal.MEMORY, Signal.ALLOCATABLE_MEMORY}
        and (observation := seen.get(threshold.signal)) is not None
    )


class MemoryWatch:
    """Listens to the kernel on behalf of the eviction loop."""

    def __init__(
        self, cgroups: Cgroups, loop: Loop, paths: Mapping[Signal, str], on_crossing: Callable[[], None]
    ) -> None:
        self._cgroups, self._loop, self._on_crossing = cgroups, loop, on_crossing
        self._paths = paths
        """Whose usage stands behind which signal."""
        self._levels: dict[str, int] = {}
        self._signals: dict[str, KernelSignal] = {}

    def arm(
        self, thresholds: Sequence[Threshold], seen: Mapping[Signal, SignalObservation], known: Collection[Signal] = ()
    ) -> bool:
        """Set the levels by what was just seen; False where the kernel has no such signal.

        The kernel tells of nothing that was crossed before it was asked to: memory that passes its level in between is
        looked at again, unless it had passed when it was seen and whoever looks knows (``known``).
        """
        works = True
        for signal, path in self._paths.items():
            observation = seen.get(signal)
            amounts = [
                threshold.amount(observation.capacity).value
                for threshold in thresholds
                if observation is not None and threshold.signal is signal and threshold.is_hard
            ]
            memory = self._cgroups.memory(path)
            if observation is None or not amounts or memory is None:
                self._disarm(path)
                continue
            level_bytes = memory.usage_bytes + observation.available - max(amounts)
            works &= self._set(path, level_bytes, max(amounts) // _TOLERANCE)
            if memory.usage_bytes <= level_bytes or signal not in known:
                self._look_again_above(path, level_bytes)
        return works

    @property
    def levels(self) -> Mapping[str, int]:
        """At which usage the kernel tells of which cgroup."""
        return self._levels

    def _look_again_above(self, path: str, level_bytes: int) -> None:
        now = self._cgroups.memory(path)
        if now is not None and now.usage_bytes > level_bytes:
            self._loop.call_after(0, self._on_crossing)

    def close(self) -> None:
        """Listen no more."""
        for path in list(self._signals):
            self._disarm(path)

    def _set(self, path: str, level_bytes: int, tolerance_bytes: int) -> bool:
        # Rather too high: below, somebody would be told who sees that the threshold is not met.
        level = max(0, level_bytes + tolerance_bytes // 2)
        before = self._levels.get(path)
        if before is not None and level_bytes <= before <= level_bytes + tolerance_bytes:
            return True
        self._disarm(path)
        signal = self._cgroups.watch_memory(path, level)
        if signal is None:
            return False
        self._levels[path], self._signals[path] = level, signal
        self._loop.watch(signal.descriptor, lambda: self._crossed(path, signal), signal.events)
        return True

    def _disarm(self, path: str) -> None:
        self._levels.pop(path, None)
        signal = self._signals.pop(path, None)
        if signal is not None:
            self._loop.unwatch(signal.descriptor)
            signal.close()

    def _crossed(self, path: str, signal: KernelSignal) -> None:
        signal.take()
        # The kernel tells of this level no more until usage has been below it: it has to be set again in any case.
        self._levels.pop(path, None)
        self._on_crossing()
