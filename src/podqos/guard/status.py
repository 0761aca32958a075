"""How a running guard is: for its status file, its metrics and ``podqos guard status``."""

from __future__ import annotations

import os
import resource
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from podqos.agent.guard_status import ApiStatus, ExcludedPod, GuardStatus, SignalStatus
from podqos.guard.known_pods import never_evicted
from podqos.host.linux.procfs import PAGE_BYTES
from podqos.version import __version__

if TYPE_CHECKING:
    from podqos.guard.running import Guard


def status_of(guard: Guard) -> GuardStatus:
    """Return how a guard is now."""
    settings, known, pods = guard.settings, guard.known, guard.world.known.values()
    used = resource.getrusage(resource.RUSAGE_SELF)
    excluded = [
        ExcludedPod(pod.key, why) for pod in pods if not pod.is_over and (why := never_evicted(pod, settings.node))
    ]
    return GuardStatus(
        node=settings.node,
        pid=os.getpid(),
        version=__version__,
        started_us=guard.started_us,
        updated_us=guard.now_us(),
        enforce=settings.enforce,
        held_back=guard.mode.held_back,
        kubepods=guard.cgroups.own,
        cgroup=guard.cgroups.version.value,
        signals=tuple(_signals(guard)),
        known=sum(not pod.is_over for pod in pods),
        candidates=sum(not each.pod.is_critical for each in guard.world.pods.values()),
        excluded=tuple(excluded),
        unknown_cgroups=guard.pods.unknown,
        api=ApiStatus(known.trouble, known.synced_us, known.is_from_disk),
        evictions=guard.decisions.evictions,
        limit=guard.brakes.limit(guard.now_us()),
        stop_file=guard.brakes.has_stop_file,
        node_annotation=known.is_switched_off,
        unprotected=tuple(guard.unprotected),
        reactions_us=tuple(guard.evictions.reactions_us),
        notes=tuple(guard.notes),
        cpu_seconds=used.ru_utime + used.ru_stime,
        rss_bytes=_resident_bytes(),
    )


def _signals(guard: Guard) -> Iterator[SignalStatus]:
    """Yield the thresholds with the figures of this moment, or of the last pass where there are no others."""
    fresh = guard.figures.look(guard.world.pods.values()).signals
    for threshold in guard.config.eviction.thresholds:
        seen = guard.driver.state.manager.last_signals.get(threshold.signal)
        if seen is not None:
            now = fresh.get(threshold.signal)
            available = seen.available if now is None else now.available_bytes
            amount = threshold.amount(seen.capacity).value
            yield SignalStatus(threshold.signal, amount, available, seen.capacity, threshold.is_hard)


def _resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * PAGE_BYTES
