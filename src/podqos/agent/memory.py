"""Memory shortage: what it means, and when the agent is notified of it between two passes.

The kernel can notify when memory crosses a level. Who listens differs:

- a kubelet listens with ``kernelMemcgNotification``, on cgroup v1 only: on v2, its notifier is a stub that never fires.
  It sets one level per memory threshold, hard or soft, in a pass, at most every ten seconds. A crossing makes it check
  at once, and its regular passes stay on schedule.
- podqos' fast path listens on either version, for hard thresholds. Page cache does not blind it: where usage alone
  is not enough, memory is polled as often as the fastest growth requires. It stops the growth of a victim before it is
  terminated (``HoldPod``), and checks again as soon as the victim is gone.

Source: Kubernetes v1.36 pkg/kubelet/eviction/memory_threshold_notifier_others.go, threshold_notifier_linux.go
(NewCgroupNotifier), eviction_manager.go (Start, synchronize).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from podqos.agent.commands import MemoryLevel, WatchMemory
from podqos.agent.state import AgentConfig, MemoryNotification
from podqos.eviction.commands import EvictPod, ReclaimTarget
from podqos.eviction.conditions import Observations, thresholds_met
from podqos.eviction.manager import MONITORING_INTERVAL_SECONDS, ManagerState
from podqos.eviction.signals import Signal
from podqos.eviction.thresholds import Threshold
from podqos.model.kubelet_config import KubeletConfiguration
from podqos.qos.cgroup_settings import CgroupVersion

MEMORY_SIGNALS = (Signal.MEMORY, Signal.ALLOCATABLE_MEMORY)
REFRESH_SECONDS = 10
"""Minimum time between two updates of a kubelet's levels (notifierRefreshInterval)."""
FASTEST_BYTES_PER_SECOND = 8 << 30
"""The fastest expected growth; one core clears memory at about seven GiB per second."""
LEAST_LOOK_SECONDS = 0.002
IDLE_LOOK_SECONDS = 0.01
"""The minimum while nothing changes, or in a shortage that the agent knows of: it may end and start again."""


def memory_notification(
    configuration: KubeletConfiguration, version: CgroupVersion, *, fast_path: bool
) -> MemoryNotification:
    """Return who listens to the kernel on a node."""
    if fast_path:
        return MemoryNotification.FAST_PATH
    if configuration.kernel_memcg_notification and version is CgroupVersion.V1:
        return MemoryNotification.KUBELET
    return MemoryNotification.OFF


def is_memory_short(thresholds: Iterable[Threshold], observed: Observations) -> bool:
    """Whether a memory threshold is crossed."""
    return bool(thresholds_met(_of_memory(thresholds), observed))


def is_for_memory_now(eviction: EvictPod) -> bool:
    """Whether a pod is evicted because a hard memory threshold is crossed."""
    because = eviction.because
    return (
        isinstance(because, ReclaimTarget) and because.threshold.signal in MEMORY_SIGNALS and because.threshold.is_hard
    )


def look_again_seconds(beyond_bytes: int) -> float:
    """Return when to check memory again, with this much available above the threshold: before it can be gone."""
    if beyond_bytes < 0:
        return IDLE_LOOK_SECONDS
    return max(LEAST_LOOK_SECONDS, min(beyond_bytes / FASTEST_BYTES_PER_SECOND, MONITORING_INTERVAL_SECONDS))


def kubelet_levels(config: AgentConfig, manager: ManagerState) -> WatchMemory:
    """Return what a kubelet listens for: every memory threshold. Levels that are already crossed do not notify."""
    return WatchMemory(tuple(_levels(_of_memory(_thresholds(config, manager)), manager.last_signals)))


def fast_path_levels(config: AgentConfig, manager: ManagerState) -> WatchMemory:
    """Return what the fast path listens for: the first hard threshold of each signal.

    One that is crossed without the agent having seen it notifies at once.
    """
    hard = [threshold for threshold in _of_memory(_thresholds(config, manager)) if threshold.is_hard]
    known = {threshold.signal for threshold in manager.first_observed_us if threshold.is_hard}
    highest: dict[Signal, MemoryLevel] = {}
    for level in _levels(hard, manager.last_signals):
        before = highest.get(level.signal)
        if before is None or before.below_bytes < level.below_bytes:
            highest[level.signal] = MemoryLevel(
                level.signal, level.below_bytes, tell_if_below=level.signal not in known
            )
    return WatchMemory(tuple(highest.values()), through_cache=True)


def _thresholds(config: AgentConfig, manager: ManagerState) -> Iterable[Threshold]:
    return config.eviction.thresholds if manager.thresholds is None else manager.thresholds


def _of_memory(thresholds: Iterable[Threshold]) -> Iterator[Threshold]:
    return (threshold for threshold in thresholds if threshold.signal in MEMORY_SIGNALS)


def _levels(thresholds: Iterable[Threshold], observed: Observations) -> Iterator[MemoryLevel]:
    for threshold in thresholds:
        seen = observed.get(threshold.signal)
        if seen is not None:
            yield MemoryLevel(threshold.signal, threshold.amount(seen.capacity).value)
