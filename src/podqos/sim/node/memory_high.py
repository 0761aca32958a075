"""A simulated container above its ``memory.high``: it is slowed, not killed.

First its page cache is reclaimed. What is left above ``memory.high`` lets its private memory grow only as fast as the
kernel's sleeps allow (``kernel.high_growth``), looked at every second, and every ten seconds where that is slowest. The
``memory.high`` of a pod with pod-level resources (1.37) slows nobody here, nor does one slow what a container writes
into volumes in memory.
"""

from __future__ import annotations

from podqos.agent.journal import Kind
from podqos.agent.reasons import MemoryThrottled
from podqos.kernel.charge import CHARGE_BATCH_PAGES, high_delay_usec
from podqos.kernel.high_growth import is_slowest, unhindered_bytes, usage_after_bytes
from podqos.model.time_units import SECOND_US
from podqos.sim.engine.curve import Clock, Curve
from podqos.sim.engine.event_queue import NEVER_US, EventPriority
from podqos.sim.node.pods import MemoryGroup, SimContainer
from podqos.sim.node.resources import NodeResources

_STEP_US = SECOND_US
_SLOW_STEP_US = 10 * SECOND_US


class HighThrottling:
    """The containers of a node that are above their ``memory.high``."""

    def __init__(self, world: NodeResources) -> None:
        self._world = world
        self._slowed: set[str] = set()
        """By path: those that get less than they want."""

    def exceeded(self, group: MemoryGroup, now_us: int) -> None:
        """Slow a container that has more than ``memory.high`` after reclaim."""
        container = self._world.memory.running.get(group.path)
        if container is None or container.anon is None:
            return
        high = group.settings.high_bytes
        assert high is not None
        assert group.gauge is not None
        over = group.gauge.at(now_us) - unhindered_bytes(high)
        stepped = min(over, container.anon.step(now_us))
        if stepped > 0:
            # Of what it asked for at once it has not got more than this yet.
            held = container.anon.at(now_us) - stepped
            container.anon.turn_to(Curve(((0, held),), clock=Clock.CONTAINER), now_us)
        self._go_on(container, group, now_us)

    def _go_on(self, container: SimContainer, group: MemoryGroup, now_us: int) -> None:
        """Let a container grow as far as it may until the next look."""
        anon, gauge, high = container.anon, group.gauge, group.settings.high_bytes
        assert gauge is not None
        if anon is None or high is None:
            return
        usage, held = gauge.at(now_us), anon.at(now_us)
        step_us = min(_SLOW_STEP_US if is_slowest(usage, high) else _STEP_US, _until_bend_us(container, now_us))
        allowed = held + usage_after_bytes(usage, high, step_us) - usage
        wanted = _wanted(container, now_us + step_us)
        if usage <= high and _wanted(container, now_us) <= held:
            self._follow(container, now_us)
            assert group.high_mark is not None
            group.high_mark.arm(now_us)
            return
        if max(wanted, _wanted(container, now_us)) <= allowed:
            self._follow(container, now_us)
        else:
            self._slow(container, group, held, now_us)
            to = max(held, min(wanted, allowed))
            anon.turn_to(Curve(((0, held), (step_us, to)), clock=Clock.CONTAINER), now_us)
        started_us = container.started_us

        def again(time_us: int) -> None:
            if container.is_running and container.started_us == started_us:
                self._go_on(container, group, time_us)

        self._world.owner.plan(now_us + step_us, EventPriority.DEMAND, again)

    def _slow(self, container: SimContainer, group: MemoryGroup, held: int, now_us: int) -> None:
        if container.path in self._slowed:
            return
        self._slowed.add(container.path)
        high = group.settings.high_bytes
        assert high is not None
        assert group.gauge is not None
        usage = group.gauge.at(now_us)
        because = MemoryThrottled(
            high_bytes=high,
            usage_bytes=usage,
            denied_bytes=max(0, _wanted(container, now_us) - held),
            delay_us=high_delay_usec(usage, high, CHARGE_BATCH_PAGES),
        )
        self._world.owner.note(Kind.MEMORY_THROTTLED, because, container.pod.key, container.name)

    def _follow(self, container: SimContainer, now_us: int) -> None:
        """Let a container have what it wants again."""
        assert container.anon is not None
        container.anon.turn_to(container.demand.anon_bytes, now_us, container.started_us)
        if container.path in self._slowed:
            self._slowed.discard(container.path)
            because = MemoryThrottled(0, container.usage_bytes(now_us), is_over=True)
            self._world.owner.note(Kind.MEMORY_THROTTLED, because, container.pod.key, container.name)


def _until_bend_us(container: SimContainer, time_us: int) -> int:
    """Return when what a container asks for bends next."""
    curve = container.demand.anon_bytes
    local_us = time_us - container.started_us if curve.clock is Clock.CONTAINER else time_us
    end_us = curve.piece(local_us).end_us
    return NEVER_US if end_us is None else max(1, end_us - local_us)


def _wanted(container: SimContainer, time_us: int) -> int:
    """Return the private memory that a container asks for at a time."""
    curve = container.demand.anon_bytes
    return curve.at(time_us - container.started_us if curve.clock is Clock.CONTAINER else time_us)
