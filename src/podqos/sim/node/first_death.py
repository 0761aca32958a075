"""How the leak of one container ends, in closed form, where that is the first thing that happens to its node.

On a node at rest one amount rises, and with it the sums that it is part of. Which of their marks is reached first
decides who acts: at the limit of a cgroup, or of the machine, the kernel; at a threshold the kubelet, with its next
pass. Whom they choose is asked of the rules that the simulation asks, for that moment. If it is the leaking container,
or its pod, that is the end, and nothing has to be simulated. There is no answer here if it is another one, or where
anything else plays a part: page cache, swap, a grace period, old figures, a notification.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from msgspec import Struct

from podqos.agent.agent import skip_idle_passes
from podqos.agent.journal import By
from podqos.eviction.manager import acting_order
from podqos.sim.engine.event_queue import NEVER_US
from podqos.sim.engine.gauge import Flow
from podqos.sim.node.node import SimNode
from podqos.sim.node.oom_kill import next_kill
from podqos.sim.node.pods import SimContainer


class FirstDeath(Struct, frozen=True, gc=False):
    """The end of the container that leaks."""

    time_us: int
    by: By
    cause: str
    """The level that ran out of memory, or the signal."""


def first_death(node: SimNode, container: SimContainer, slope: int) -> FirstDeath | None:
    """Return how a container ends that leaks from now on, if nothing else happens before; None if that may be so."""
    anon, now_us = container.anon, node.now_us
    if anon is None or not _is_at_rest(node) or any(gauge.slope for gauge in anon.gauges):
        return None
    due_us = {mark: mark.due_us(slope, now_us) for gauge in anon.gauges for mark in gauge.marks if mark.is_armed}
    groups = {group.mark: group for group in container.groups if group.mark in due_us}
    thresholds = {mark: threshold for mark, threshold in node.alarms.marks if mark in due_us}
    if len(groups) + len(thresholds) < len(due_us):
        return None
    full_us = min((due_us[mark] for mark in groups), default=NEVER_US)
    alarm_us = min((due_us[mark] for mark in thresholds), default=NEVER_US)
    look_us = NEVER_US if alarm_us == NEVER_US else _next_pass_us(node, alarm_us)
    if full_us <= look_us:
        full = [group for mark, group in groups.items() if due_us[mark] == full_us]
        if len(full) > 1 or full_us == NEVER_US:
            return None
        with _rising(anon, slope, now_us):
            killed = next_kill(node.world.memory, full[0], full_us, None)
        is_own = killed is not None and killed.container is container
        return FirstDeath(full_us, By.KERNEL, full[0].level.value) if is_own else None
    met = [threshold for mark, threshold in thresholds.items() if due_us[mark] <= look_us]
    if not all(threshold.is_hard for threshold in met):
        return None
    with _rising(container.pod.working_set, slope, now_us):
        evicted = node.would_evict(look_us)
    is_own = evicted is not None and evicted.pod == container.pod.key
    return FirstDeath(look_us, By.KUBELET, min(met, key=acting_order).signal.value) if is_own else None


def _is_at_rest(node: SimNode) -> bool:
    """Whether nothing is planned or remembered, nothing could be reclaimed, and the kubelet sees the present."""
    return (
        node.queue.next is None
        and node.is_at_rest
        and not node.world.memory.reclaimable
        and not node.settings.spec.statistics_age_us
    )


def _next_pass_us(node: SimNode, alarm_us: int) -> int:
    wake_us = skip_idle_passes(node.driver.config, node.state, alarm_us).loop.wake_us
    assert wake_us is not None
    return wake_us


@contextmanager
def _rising(flow: Flow, slope: int, now_us: int) -> Iterator[None]:
    """Let an amount rise from now on, for a look at a later time; no mark takes notice."""
    before = flow.base, flow.slope, flow.since_us
    flow.base, flow.slope, flow.since_us = flow.fine(now_us), slope, now_us
    try:
        yield
    finally:
        flow.base, flow.slope, flow.since_us = before
