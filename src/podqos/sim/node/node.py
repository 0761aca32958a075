"""A simulated node: the agent, its world, and when the kubelet looks.

Passes of the eviction loop run only where they could see something, or have a condition to take back: while no
threshold is met or remembered and no gauge has crossed one, a pass changes nothing and is skipped
(``Driver.skip_idle_passes``). A gauge that crosses raises the alarm; the loop then continues at its next regular time.
The first pass after an OOM kill is run, too, and written into the journal if it finds nothing to do: it is part of the
story that the kubelet looked, and came too late. A container at its own limit has no such story.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from msgspec import Struct
from msgspec.structs import replace

from podqos.agent.agent import is_idle, is_memory_short
from podqos.agent.driver import Driver
from podqos.agent.journal import By, Entry, Kind
from podqos.agent.port import (
    Command,
    ContainerExited,
    Event,
    MemoryNotified,
    ReadinessChanged,
    Woken,
)
from podqos.agent.reasons import Because, NothingToDo, OOMKill, OOMLevel, ThresholdFigures, WouldEvict
from podqos.agent.state import AgentState, Resting
from podqos.eviction.manager import CleanUpNode
from podqos.eviction.ranking import Ranking, rank
from podqos.eviction.signals import SIGNALS, NodeCondition, Signal, observe
from podqos.model.pod import Pod
from podqos.model.stats import MemoryStats, PodStats, Summary
from podqos.sim.engine.event_queue import CLUSTER, LAST_TURN, NEVER_US, Action, EventPriority, EventQueue
from podqos.sim.node.alarms import Alarms
from podqos.sim.node.pods import DemandOf, SimContainer
from podqos.sim.node.settings import SimNodeSettings
from podqos.sim.node.world import NodeWorld
from podqos.sim.scenario.scenario import LOOP_INTERVAL_US, Options

if TYPE_CHECKING:
    from podqos.sim.node.resting import Rest

_OWN_LIMITS = frozenset({OOMLevel.CONTAINER, OOMLevel.POD})
"""At a limit of the pod's own there is nothing that the kubelet could have seen."""
# What a pass writes that finds or does something.
_OF_PASSES = frozenset({Kind.OBSERVED, Kind.CONDITION_CHANGED, Kind.RECLAIMED, Kind.EVICTED, Kind.WOULD_EVICT})


MakeRest = Callable[["SimNode"], "Rest"]
"""Lets a node rest."""


class Outside(Protocol):
    """What a node knows of the cluster."""

    queue: EventQueue

    def write(self, entry: Entry) -> None:
        """Write an entry into the journal."""

    def demand_of(self, pod: Pod) -> DemandOf:
        """Return what a pod wants."""

    def images_ready_us(self, name: str) -> dict[str, int]:
        """Return when a node has images, or will have them; what it begins to pull is added."""

    def left(self, node: SimNode, pod: Pod, *, rejected: bool) -> None:
        """Take note that a pod no longer runs."""

    def condition(self, node: SimNode, condition: NodeCondition, *, holds: bool) -> None:
        """Take note of a node condition."""

    def readiness_changed(self, uid: str) -> None:
        """Take note that a pod has become ready, or no longer is."""

    def lost(self, node: SimNode) -> None:
        """Take note that a machine has died."""


class NodeIdentity(Struct, frozen=True, gc=False):
    """What distinguishes a node from equal ones."""

    index: int
    name: str
    loop_phase_us: int
    """When its eviction loop runs first, counted from when it joins."""


class SimNode:
    """One node."""

    def __init__(
        self,
        identity: NodeIdentity,
        settings: SimNodeSettings,
        options: Options,
        queue: EventQueue,
        outside: Outside,
        *,
        rest: MakeRest | None = None,
    ) -> None:
        self.index = identity.index
        self.name = name = identity.name
        self.settings = settings
        self.joined_us = queue.now_us
        self.lost_us: int | None = None
        self.queue = queue
        self._options = options
        self._outside = outside
        self._write = outside.write
        self._age_us = settings.spec.statistics_age_us
        self._new_until_us = queue.now_us + self._age_us
        """Up to then a pass sees new figures: the node has not run for as long as they would be old."""
        self._samples: dict[int, Summary] = {}
        """Figures that a pass decides on when they are as old as they are to be, by the time of that."""
        self._sampled_us = -1
        self._is_fresh = False
        self.looks: list[Summary] = []
        """What the kubelet saw in its last pass: the node, and the node again after a clean-up."""
        self.looked_us = -1
        """When that was."""
        self._has_killed = False
        """Whether the kernel has killed since."""
        self._has_acted = False
        """Whether the current pass has found or done something."""
        self._ended: list[ContainerExited] = []
        self._wake_us = NEVER_US
        self._rest: Rest | None = None
        self.world = NodeWorld(name, settings, options, self)
        self.driver = Driver(replace(settings.agent, node=name), self, self._write_of_agent)
        self.driver.start(self.now_us, self.now_us + identity.loop_phase_us)
        self.alarms = Alarms(self.world)
        self._rest = None if rest is None else rest(self)
        self._plan_wake()

    # ---- what the agent sees: the world, with figures as old as they are --------------------------------------------

    def summary(self, *, is_urgent: bool = False) -> Summary:
        """Return the figures the kubelet decides on; those of an urgent look are new."""
        sample = None if self._is_fresh or is_urgent else self._samples.get(self.now_us)
        if sample is None:
            self._is_fresh = False
            sample = self.world.summary()
        self.looks.append(sample)
        self.looked_us = self.now_us
        return sample

    def carry_out(self, command: Command) -> Sequence[Event]:
        """Carry out a command."""
        if isinstance(command, CleanUpNode):
            self._is_fresh = True
        return self.world.carry_out(command)

    # ---- what happens ----------------------------------------------------------------------------------------------

    @property
    def now_us(self) -> int:
        """The time."""
        return self.queue.now_us

    @property
    def is_lost(self) -> bool:
        """Whether the machine has died."""
        return self.lost_us is not None

    @property
    def images_ready_us(self) -> dict[str, int]:
        """By image: when the machine has it, or will have it."""
        return self._outside.images_ready_us(self.name)

    @property
    def state(self) -> AgentState:
        """What the agent remembers."""
        return self.driver.state

    def plan(self, time_us: int, priority: EventPriority, action: Action, turn: int = LAST_TURN) -> None:
        """Plan an action on this node, unless the machine is gone by then."""
        if not self.is_lost:
            self.queue.plan(time_us, self.index, priority, action, turn)

    def report(self, event: Event) -> None:
        """Deliver an event to the agent."""
        self.wake()
        if not self.is_lost:
            self.driver.deliver(self.now_us, event)
            self._plan_wake()
            if isinstance(event, ReadinessChanged):
                self._outside.readiness_changed(event.uid)

    def ended(self, container: SimContainer, exit_code: int, *, oom_killed: bool) -> None:
        """Let the kubelet find out at its next relist that a container has ended, or at once if it stops the pod."""
        if container.pod.is_stopping:
            self.world.ended_while_stopping(container)
            return
        now_us = self.now_us
        event = ContainerExited(container.pod.uid, container.name, exit_code, oom_killed, finished_us=now_us)
        if not now_us and not self._has_restarted(event):
            # What ends as the scenario begins has run before it, and was seen: init containers, for example.
            self.plan(now_us, EventPriority.KUBELET, lambda _: self.report(event))
            return
        if not self._ended:
            period_us = self._options.pleg_period_us
            self.plan((now_us // period_us + 1) * period_us, EventPriority.KUBELET, self._relist)
        self._ended.append(event)

    def _has_restarted(self, ended: ContainerExited) -> bool:
        containers = self.state.pods[ended.uid].containers
        return any(container.plan.name == ended.container and container.restarts for container in containers)

    def _relist(self, _: int) -> None:
        ended, self._ended = self._ended, []
        for event in ended:
            self.report(event)

    def note(self, kind: Kind, because: Because | None, pod: str | None, container: str | None) -> None:
        """Write what the kernel did into the journal."""
        self._write(Entry(self.now_us, self.name, kind, pod, container, By.KERNEL, because))
        if isinstance(because, OOMKill) and because.level not in _OWN_LIMITS and not self._has_killed:
            self._has_killed = True
            self._plan_wake()

    def _write_of_agent(self, entry: Entry) -> None:
        self._has_acted = self._has_acted or entry.kind in _OF_PASSES
        self._write(entry)

    def demand_of(self, pod: Pod) -> DemandOf:
        """Return what a pod wants."""
        return self._outside.demand_of(pod)

    def left(self, pod: Pod, *, rejected: bool = False) -> None:
        """Take note that a pod no longer runs, or never did."""
        self._outside.left(self, pod, rejected=rejected)

    def condition(self, condition: NodeCondition, *, holds: bool) -> None:
        """Take note of a node condition."""
        self._outside.condition(self, condition, holds=holds)

    def lost(self, now_us: int) -> None:
        """Lose the machine."""
        self.wake()
        if not self.is_lost:
            self.lost_us = now_us
            self.world.cpu.close(now_us)
            self.queue.drop(self.index)
            self._write(Entry(now_us, self.name, Kind.LOST))
            self._outside.lost(self)

    @property
    def is_at_rest(self) -> bool:
        """Whether nothing would happen any more if no demand changed."""
        state = self.driver.state
        return is_idle(state) and not (state.restarts or state.manager.conditions or self.alarms.are_raised)

    def would_evict(self, denied: Mapping[str, int]) -> WouldEvict | None:
        """Return which pod the kubelet would evict for memory if it looked now.

        ``denied`` is what containers, by path, ask for at this moment and do not get: no usage includes it.
        """
        now_us, eviction = self.now_us, self.settings.agent.eviction
        pods = [pod for pod in self.world.pods.values() if not pod.is_gone]
        lacking = {pod.uid: sum(denied.get(container.path, 0) for container in pod.running) for pod in pods}
        left = self.world.memory_signals()
        used = {pod.uid: pod.working_set_bytes(now_us) - lacking[pod.uid] for pod in pods}
        stats = {uid: PodStats(memory=MemoryStats(working_set_bytes=size_bytes)) for uid, size_bytes in used.items()}
        ranking = Ranking(Signal.MEMORY, eviction.layout, eviction.policy, profile=eviction.profile)
        ranked = rank((pod.pod for pod in pods), stats, ranking)
        first = next((place for place, entry in enumerate(ranked) if entry.spared is None), None)
        if first is None:
            return None
        total = sum(denied.values())
        signals = {signal: replace(seen, available=seen.available + total) for signal, seen in left.items()}
        entry, following = ranked[first], ranked[first + 1] if first + 1 < len(ranked) else None
        return WouldEvict(
            pod=entry.pod.key,
            usage=entry.usage,
            request=entry.request.value,
            over_request=entry.over_request,
            priority=entry.priority,
            next_pod=None if following is None else following.pod.key,
            before_next_by=entry.before_next_by,
            threshold_met=is_memory_short(eviction.thresholds, signals),
        )

    # ---- when the agent is woken -------------------------------------------------------------------------------------

    def alarm(self, now_us: int) -> None:
        """Note that the eviction loop might see something from now on."""
        if not self.alarms.are_raised and not self._are_levels_shifted:
            self.driver.skip_idle_passes(now_us)
            wake_us = self.driver.state.loop.wake_us
            if wake_us is not None and wake_us > self._new_until_us:
                # Passes up to then see figures from before; with an earlier alarm they see that one.
                self.driver.skip_idle_passes(now_us + self._age_us)
        self.alarms.raise_all(now_us)
        self._plan_wake()

    def notified(self, now_us: int) -> None:
        """Tell the agent that memory has crossed a level, after all other events of this moment."""
        self.plan(now_us, EventPriority.KUBELET, self._notified)

    def _notified(self, now_us: int) -> None:
        self.driver.skip_idle_passes(now_us)
        self._deliver(MemoryNotified(), is_pass=isinstance(self.driver.state.loop, Resting))

    def _may_skip(self) -> bool:
        """Whether passes are skipped."""
        state = self.driver.state
        if not is_idle(state) or state.manager.thresholds is None or self.alarms.are_raised or self._has_killed:
            return False
        return not self._are_levels_shifted

    @property
    def _are_levels_shifted(self) -> bool:
        """Whether page cache shifts the levels that a kubelet is notified of: every pass has to set them again."""
        return self.world.memory_watch.is_shifted_by_cache and self.world.memory.reclaimable > 0

    def _plan_wake(self) -> None:
        """Plan the next time at which the agent has something to do."""
        may_skip = self._may_skip()
        if not may_skip:
            self.driver.skip_idle_passes(self.now_us)
        state = self.driver.state
        due_us = self.driver.due_us if may_skip else state.loop.wake_us
        if due_us is None:
            due_us = NEVER_US
        if self._age_us and due_us != NEVER_US:
            self._plan_samples(due_us)
        if may_skip and self._rest is not None:
            self._rest.plan(self.now_us)
        if state.wake_besides_us is not None:
            due_us = min(due_us, state.wake_besides_us)
        if due_us < self._wake_us:
            self._wake_us = due_us
            self.plan(due_us, EventPriority.KUBELET, self._woken)

    # ---- at rest -------------------------------------------------------------------------------------------------

    @property
    def may_rest(self) -> bool:
        """Whether neither the agent nor the kernel has anything to do, and nobody is short of CPU."""
        return self._may_skip() and not self.world.cpu.is_followed

    def wake(self) -> None:
        """Follow the bends of its curves again; what concerns the cluster comes before a node's own."""
        if self._rest is not None and self._rest.is_resting:
            queue = self.queue
            is_before = queue.node == CLUSTER and queue.reached < self.index
            self._rest.wake(queue.now_us, queue.now_us - is_before)

    def close(self) -> None:
        """End its accounts, at the end of a run."""
        self.wake()
        self.world.cpu.close(self.queue.until_us)

    def _plan_samples(self, due_us: int) -> None:
        """Take the figures of the next pass when they have to be, and of those after it where that comes before it."""
        for pass_us in range(due_us, due_us + self._age_us + 1, LOOP_INTERVAL_US):
            taken_us = pass_us - self._age_us
            if taken_us > max(self.now_us, self._sampled_us):
                self._sampled_us = taken_us
                self.plan(taken_us, EventPriority.LIFE, self._take_sample)

    def _take_sample(self, now_us: int) -> None:
        self._samples = {due_us: sample for due_us, sample in self._samples.items() if due_us >= now_us}
        self._samples[now_us + self._age_us] = self.world.summary()

    def _woken(self, now_us: int) -> None:
        if now_us != self._wake_us:
            return
        self._wake_us = NEVER_US
        if self._may_skip():
            self.driver.skip_idle_passes(now_us + 1)
        self._deliver(Woken(), is_pass=self.driver.state.loop.wake_us == now_us)

    def _deliver(self, event: Event, *, is_pass: bool) -> None:
        self.looks.clear()
        has_killed, self._has_acted = self._has_killed and is_pass, False
        if is_pass:
            self._has_killed = False
        self.driver.deliver(self.now_us, event)
        if is_pass:
            self.alarms.look(self.now_us)
        if has_killed and not self._has_acted and self.looks:
            self._write(Entry(self.now_us, self.name, Kind.OBSERVED, None, None, By.KUBELET, self._nothing_to_do()))
        self._plan_wake()

    def _nothing_to_do(self) -> NothingToDo:
        """Return what the kubelet saw of memory in its last pass."""
        seen = observe(self.looks[-1]).signals
        return NothingToDo(
            available=seen[Signal.MEMORY].available,
            thresholds=tuple(
                ThresholdFigures(
                    threshold.signal,
                    threshold.amount(seen[threshold.signal].capacity).value,
                    seen[threshold.signal].available,
                    seen[threshold.signal].capacity,
                    threshold.grace_period_ns,
                )
                for threshold in self.settings.agent.eviction.thresholds
                if SIGNALS[threshold.signal].is_memory and threshold.signal in seen
            ),
        )
