"""The status of a running guard: for its status file, its metrics and ``podqos guard status``."""

from __future__ import annotations

import os
import resource
from collections.abc import Iterable, Iterator
from pathlib import Path

from msgspec import Struct

from podqos.agent.driver import Driver
from podqos.agent.guard_status import ApiStatus, ExcludedPod, GuardStatus, SignalStatus
from podqos.agent.reasons import GuardMode
from podqos.guard.brakes import Brakes
from podqos.guard.decisions import Decisions
from podqos.guard.evictions import Evictions
from podqos.guard.known_pods import never_evicted
from podqos.guard.node_pods import GuardedPods
from podqos.guard.settings import GuardSettings
from podqos.guard.world import GuardWorld
from podqos.host.linux.procfs import PAGE_BYTES
from podqos.host.shell.agent_thread import AgentThread
from podqos.version import __version__


class StatusParts(Struct, frozen=True, kw_only=True):
    """The parts of a guard that its status describes."""

    settings: GuardSettings
    thread: AgentThread
    driver: Driver
    world: GuardWorld
    pods: GuardedPods
    brakes: Brakes
    decisions: Decisions
    evictions: Evictions


def guard_status(guard: StatusParts, mode: GuardMode, started_us: int, unprotected: Iterable[str]) -> GuardStatus:
    """Return a guard's current status; ``unprotected`` is which of its own protections the machine does not allow."""
    node, cgroups, server = guard.settings.node, guard.world.cgroups, guard.pods.known
    known = [pod for pod in guard.world.known.values() if not pod.is_over]
    used = resource.getrusage(resource.RUSAGE_SELF)
    return GuardStatus(
        node=node,
        pid=os.getpid(),
        version=__version__,
        started_us=started_us,
        updated_us=guard.thread.now_us(),
        enforce=guard.settings.enforce,
        held_back=mode.held_back,
        kubepods=cgroups.own,
        cgroup=cgroups.version.value,
        kubelet_settings=guard.settings.kubelet_source,
        signals=tuple(_signals(guard.driver, guard.world)),
        known=len(known),
        candidates=sum(not pod.pod.is_critical for pod in guard.world.pods.values()),
        excluded=tuple(ExcludedPod(pod.key, why) for pod in known if (why := never_evicted(pod, node))),
        unknown_cgroups=guard.pods.unknown,
        api=ApiStatus(server.trouble, server.synced_us, server.is_from_disk),
        evictions=guard.decisions.evictions,
        limit=guard.brakes.limit(guard.thread.now_us()),
        stop_file=guard.brakes.has_stop_file,
        node_annotation=server.is_switched_off,
        unprotected=tuple(unprotected),
        reactions_us=tuple(guard.evictions.reactions_us),
        notes=tuple(guard.thread.notes.counts),
        cpu_seconds=used.ru_utime + used.ru_stime,
        rss_bytes=_resident_bytes(),
    )


def _signals(driver: Driver, world: GuardWorld) -> Iterator[SignalStatus]:
    """Yield the thresholds with current statistics, or those of the last pass."""
    fresh = world.figures.look(world.pods.values()).signals
    for threshold in driver.config.eviction.thresholds:
        seen = driver.state.manager.last_signals.get(threshold.signal)
        if seen is not None:
            now = fresh.get(threshold.signal)
            available = seen.available if now is None else now.available_bytes
            amount = threshold.amount(seen.capacity).value
            yield SignalStatus(threshold.signal, amount, available, seen.capacity, threshold.is_hard)


def _resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * PAGE_BYTES
