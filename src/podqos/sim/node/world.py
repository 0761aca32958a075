"""A simulated node as the agent sees it: carries out commands, provides figures, reports events.

``resources`` holds the state of the machine; ``running`` turns demands into memory, disk, process ids and CPU;
``node_memory``, ``oom_kill``, ``supply`` and ``throttling`` are the kernel's part. ``node`` decides when the kubelet
learns of things.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace

from podqos.agent.journal import Kind
from podqos.agent.port import (
    Command,
    ContainerExited,
    ContainerPlan,
    ContainerStarted,
    CreateCgroup,
    Event,
    FailPod,
    HoldPod,
    KillContainer,
    PodCleanedUp,
    PodStarted,
    PodStopped,
    PreemptPod,
    RejectPod,
    RemoveCgroup,
    SetCondition,
    StartContainer,
    StartPod,
    StopPod,
    UpdateCgroup,
    WatchMemory,
)
from podqos.agent.reasons import OOMLevel
from podqos.agent.shutdown import Shutdown, hooks_of, pod_grace_seconds
from podqos.eviction.manager import CleanUpNode, EvictPod
from podqos.eviction.signals import Signal
from podqos.model.pod import Pod
from podqos.model.resources import MEMORY
from podqos.model.stats import Summary
from podqos.qos.cgroup import Cgroup, Level
from podqos.sim.engine.event_queue import EventPriority
from podqos.sim.engine.gauge import GaugeMark
from podqos.sim.node.disks import BYTES, PIDS, Supply, local_limits
from podqos.sim.node.memory import GaugeSource, MemoryWatch, cuts, next_kill, unwritten
from podqos.sim.node.memory_high import HighThrottling
from podqos.sim.node.pods import MemoryGroup, SimContainer, SimPod, container_path
from podqos.sim.node.resources import NodeResources
from podqos.sim.node.running import (
    begin,
    begin_system,
    count_from_now_on,
    exited,
    finish,
    forget_unwritten,
    lose_process,
    remove_traces,
)
from podqos.sim.node.settings import SimNodeSettings
from podqos.sim.node.statistics import summary
from podqos.sim.scenario.scenario import Options

if TYPE_CHECKING:
    from podqos.sim.node.owner import WorldOwner

_LEVELS = {Level.NODE: OOMLevel.KUBEPODS, Level.QOS: OOMLevel.CLASS, Level.POD: OOMLevel.POD}
KILLED_CODE = 137
"""The exit code of what was killed: 128 and the number of SIGKILL."""
TERMINATED_CODE = 143
"""The same of what ended when it was asked to, with SIGTERM."""


class NodeWorld(NodeResources):
    """One simulated node."""

    def __init__(self, name: str, settings: SimNodeSettings, options: Options, owner: WorldOwner) -> None:
        super().__init__(name, settings, owner, self._out_of_memory)
        self.memory_watch = MemoryWatch(owner.plan, owner.notified, tells_of_falls=settings.spec.cgroup_version == 1)
        self._options = options
        self.before_kill: list[Callable[[MemoryGroup, SimContainer, int], None]] = []
        """Called before each kill, to record what the kernel saw: the group that is out of memory, whom it chose, when.
        """
        if options.slows_at_memory_high:
            self.memory.above_high = HighThrottling(self).exceeded
        begin_system(self, settings.spec.system, owner.now_us)

    # ---- the port ------------------------------------------------------------------------------------------------

    def summary(self, *, is_urgent: bool = False) -> Summary:  # noqa: ARG002 - no figure takes time
        """Return the current figures."""
        return summary(self, self.owner.now_us)

    def carry_out(self, command: Command) -> Sequence[Event]:
        """Carry out a command."""
        match command:
            case CreateCgroup(cgroup) | UpdateCgroup(cgroup):
                self._write(cgroup)
            case StartPod():
                return self._start_pod(command)
            case StartContainer():
                return self._start_container(command)
            case KillContainer(pod, name, grace):
                return self._kill_container(self.pods[pod.metadata.uid], name, grace)
            case StopPod(pod, grace) | EvictPod(pod, grace) | PreemptPod(pod, grace) | FailPod(pod, grace):
                return self._stop(pod, grace)
            case HoldPod(pod):
                self._hold(self.pods[pod.metadata.uid])
            case WatchMemory():
                self._watch_memory(command)
            case RemoveCgroup(uid, path):
                return self._remove(uid, path)
            case CleanUpNode(what):
                self.disks.clean_up(what, self.owner.now_us)
            case RejectPod(pod):
                self.owner.left(pod, rejected=True)
            case SetCondition(condition, holds):
                self.owner.condition(condition, holds=holds)
        return ()

    def _write(self, cgroup: Cgroup) -> None:
        assert cgroup.path is not None
        reading = self.settings.readings.of(cgroup)
        known = self.memory.groups.get(cgroup.path)
        had_limit = known is None or known.gauge is not None
        group = self.memory.write(cgroup.path, reading.memory, _LEVELS[cgroup.level], self.owner.now_us)
        if not had_limit and group.gauge is not None:
            count_from_now_on(self, group, self.owner.now_us)
        self.cpu.write(cgroup.path, reading.cpu)
        limit = reading.pids_max
        if limit is not None and cgroup.path not in self.pid_limits:
            supply = self.pid_limits[cgroup.path] = Supply(PIDS, limit, self.owner.plan, self.refused)
            supply.gauge.since_us = self.owner.now_us

    # ---- pods come -----------------------------------------------------------------------------------------------

    def _start_pod(self, command: StartPod) -> Sequence[Event]:
        pod = command.pod
        path = command.sandbox.path
        parent = None if path is None else self.memory.groups.get(path.rpartition("/")[0])
        if parent is None or parent.level is not OOMLevel.POD:
            parent = self.memory.root
        made = SimPod(pod, parent, self.owner.demand_of(pod))
        chain = [group.path for group in made.group.chain()]
        made.pids = (self.pids, *(self.pid_limits[path] for path in chain if path in self.pid_limits))
        made.local_limits = local_limits(
            pod, self.settings.layout, self.owner.plan, self.owner.alarm, self.owner.now_us
        )
        made.tmpfs = dict(self._memory_volumes(made))
        made.admitted_us = self.owner.now_us
        self.pods[made.uid] = made
        for plan in command.containers:
            self._add(made, plan)

        def start() -> Sequence[Event]:
            if made.is_stopping:
                return ()
            begun: list[Event] = [PodStarted(made.uid)]
            for plan in command.containers:
                begun += self._begin(made.containers[plan.name])
            return begun

        return self._later(self._start_delay_us(command.pod, {plan.name for plan in command.containers}), start)

    def _memory_volumes(self, pod: SimPod) -> Iterator[tuple[str, Supply]]:
        """Yield the volumes of a pod that are in memory, each as large as the kubelet mounts it.

        The limit of the pod bounds it, too, but there the kernel kills before the volume is full.
        Source: Kubernetes v1.36 pkg/volume/emptydir/empty_dir.go (calculateEmptyDirMemorySize).
        """
        of_node = self.settings.allocatable.allocatable[MEMORY].value
        for volume in pod.pod.spec.volumes:
            directory = volume.empty_dir
            if directory is not None and volume.is_in_memory:
                own = None if directory.size_limit is None else directory.size_limit.value
                size = min(own or of_node, of_node)
                supply = Supply(f"emptyDir.{volume.name}.{BYTES}", size, self.owner.plan, self.refused)
                supply.gauge.since_us = self.owner.now_us
                yield volume.name, supply

    def _start_container(self, command: StartContainer) -> Sequence[Event]:
        pod, name = self.pods[command.pod.metadata.uid], command.plan.name
        known = pod.containers.get(name)
        if known is None:
            self._add(pod, command.plan)
        elif known.plan is not command.plan and known.plan != command.plan:
            known.plan = command.plan
            self._write_container(known)

        def start() -> Sequence[Event]:
            if pod.is_stopping:
                return ()
            return (ContainerStarted(pod.uid, name), *self._begin(pod.containers[name]))

        return self._later(self._start_delay_us(command.pod, {name}), start)

    def _start_delay_us(self, pod: Pod, names: Collection[str]) -> int:
        """Return how long containers of a pod take to start: from when the node has their images."""
        now_us, pull_us = self.owner.now_us, self._options.image_pull_us
        delay_us = self._options.start_delay_us(now_us)
        if not pull_us:
            return delay_us
        ready_us, there_us = self.owner.images_ready_us, now_us + pull_us if now_us else 0
        spec = pod.spec
        every = (*spec.containers, *spec.init_containers, *spec.ephemeral_containers)
        waits_us = [ready_us.setdefault(each.image, there_us) - now_us for each in every if each.name in names]
        return max([0, *waits_us]) + delay_us

    def _begin(self, container: SimContainer) -> Sequence[Event]:
        begin(self, container, self.owner.now_us)
        return self.prober.begun(container, container.pod.admitted_us)

    def _add(self, pod: SimPod, plan: ContainerPlan) -> None:
        path = container_path(plan, pod)
        reading = self.settings.readings.of(plan.cgroup)
        group = self.memory.write(path, reading.memory, OOMLevel.CONTAINER, self.owner.now_us)
        self.cpu.write(path, reading.cpu)
        pod.containers[plan.name] = SimContainer(pod, plan, group)

    def _write_container(self, container: SimContainer) -> None:
        reading, now_us = self.settings.readings.of(container.plan.cgroup), self.owner.now_us
        had_limit = container.groups[0].gauge is not None
        group = self.memory.write(container.path, reading.memory, OOMLevel.CONTAINER, now_us)
        if not had_limit and group.gauge is not None:
            count_from_now_on(self, group, now_us)
        self.cpu.write(container.path, reading.cpu)

    # ---- pods go -------------------------------------------------------------------------------------------------

    def _stop(self, pod: Pod, grace_seconds: int) -> Sequence[Event]:
        """Stop a pod; a grace period that has begun can only become shorter."""
        stopping = self.pods[pod.metadata.uid]
        shutdown = self._shutdown(stopping, grace_seconds)
        before = stopping.shutdown
        if before is not None and before.grace_seconds <= shutdown.grace_seconds:
            return ()
        stopping.shutdown = shutdown
        self.prober.forget(stopping)
        if not any(stopping.running):
            return self._stopped(stopping)
        known = stopping.ends_us
        return self._end_in_time(
            stopping, {name: min(at_us, known.get(name, at_us)) for name, at_us in self._ends_us(stopping).items()}
        )

    def _shutdown(self, pod: SimPod, grace_seconds: int) -> Shutdown:
        stated = {
            name: container.demand.pre_stop_us
            for name, container in pod.containers.items()
            if container.demand.pre_stop_us is not None
        }
        return Shutdown(
            pod.pod,
            self.owner.now_us,
            pod_grace_seconds(grace_seconds, self.settings.agent.profile),
            self._options.container_stop_us,
            hooks_of(pod.pod, stated, pod.containers),
        )

    @staticmethod
    def _ends_us(pod: SimPod) -> dict[str, int]:
        assert pod.shutdown is not None
        return pod.shutdown.ends_us([container.name for container in pod.running], pod.ended_us)

    def _end_in_time(self, pod: SimPod, ends_us: dict[str, int]) -> Sequence[Event]:
        """End the containers of a pod that is being stopped when their time has come."""
        pod.ends_us = ends_us
        now_us = self.owner.now_us
        return [
            event
            for at_us in sorted({*ends_us.values()})
            for event in self._later(max(0, at_us - now_us), lambda: self._end_due(pod))
        ]

    def _end_due(self, pod: SimPod) -> Sequence[Event]:
        if pod.is_gone:
            # It ended before its time was over, or was stopped twice (deleted, then evicted): the shorter time counts.
            return ()
        now_us = self.owner.now_us
        due = [container for container in pod.running if pod.ends_us[container.name] <= now_us]
        if len(due) == sum(1 for _ in pod.running):
            return self._stopped(pod)
        for container in due:
            finish(self, container, now_us)
            pod.ended_us[container.name] = now_us
        return ()

    def _stopped(self, pod: SimPod) -> Sequence[Event]:
        if pod.is_gone:
            return ()
        self._kill(pod)
        pod.is_gone = True
        self.owner.left(pod.pod)
        stopped = PodStopped(pod.uid)
        # Without a cgroup of its own there is no further command for it.
        return (stopped, *self._clean_up(pod)) if pod.group is self.memory.root else (stopped,)

    def ended_while_stopping(self, container: SimContainer) -> None:
        """Note that a container of a pod that is being stopped has ended by itself: after the last the pod is gone."""
        pod = container.pod
        pod.ended_us[container.name] = self.owner.now_us
        if any(pod.running):
            self._end_in_time(pod, self._ends_us(pod))
        else:
            self.owner.plan(self.owner.now_us, EventPriority.LIFE, lambda _: self._report(self._stopped(pod)))

    def _kill(self, pod: SimPod) -> None:
        for container in tuple(pod.running):
            finish(self, container, self.owner.now_us)

    def _kill_container(self, pod: SimPod, name: str, grace_seconds: int) -> Sequence[Event]:
        container = pod.containers[name]
        if not container.is_running:
            return ()  # it has ended by itself, which the kubelet is about to hear
        shutdown = replace(self._shutdown(pod, grace_seconds), grace_seconds=grace_seconds)
        started_us, after_us = container.started_us, shutdown.ends_us((name,), {})[name] - self.owner.now_us

        def end() -> Sequence[Event]:
            if not container.is_running or container.started_us != started_us:
                return ()
            finish(self, container, self.owner.now_us)
            is_killed = after_us < shutdown.takes_us
            return (ContainerExited(pod.uid, name, KILLED_CODE if is_killed else TERMINATED_CODE),)

        return self._later(after_us, end)

    def _hold(self, pod: SimPod) -> None:
        """Kill a pod as soon as it grows: its memory is free at once, and the agent is told that it has stopped."""

        def grew(now_us: int) -> None:
            self._kill(pod)
            self.owner.plan(now_us, EventPriority.LIFE, lambda _: self._report(self._stopped(pod)))

        now_us = self.owner.now_us
        GaugeMark(pod.working_set, self.owner.plan, grew).above(pod.working_set.at(now_us), now_us)

    def _remove(self, uid: str, path: str) -> Sequence[Event]:
        def remove() -> Sequence[Event]:
            for each in (path, *(container.path for container in self.pods[uid].containers.values())):
                self.memory.remove(each)
                self.cpu.remove(each)
            self.pid_limits.pop(path, None)
            return self._clean_up(self.pods[uid])

        return self._later(self._options.clean_up_us, remove)

    def _clean_up(self, pod: SimPod) -> Sequence[Event]:
        remove_traces(self, pod, self.owner.now_us)
        del self.pods[pod.uid]
        return (PodCleanedUp(pod.uid),)

    def _later(self, delay_us: int, act: Callable[[], Sequence[Event]]) -> Sequence[Event]:
        """Act now and return the resulting events, or act later and report them."""
        if not delay_us:
            return act()

        self.owner.plan(self.owner.now_us + delay_us, EventPriority.LIFE, lambda _: self._report(act()))
        return ()

    def _report(self, events: Sequence[Event]) -> None:
        for event in events:
            self.owner.report(event)

    # ---- the kernel ----------------------------------------------------------------------------------------------

    def _out_of_memory(self, group: MemoryGroup, now_us: int) -> None:
        """Kill until a cgroup, or the machine, is within its limit."""
        while group.excess_bytes(now_us) > 0:
            denied = cuts(self.memory.members(group), group, now_us)
            killed = next_kill(self.memory, group, now_us, self.owner.would_evict(denied))
            if killed is None:
                if group.parent is None:
                    self.owner.lost(now_us)
                else:
                    forget_unwritten(self, group, now_us)
                return
            container = killed.container
            for look in self.before_kill:
                look(group, container, now_us)
            self.owner.note(Kind.OOM_KILLED, killed.because, container.pod.key, container.name)
            if killed.has_ended:
                for volume, lacking in unwritten(container, self.memory.members(group), group, now_us):
                    volume.cap(now_us, lacking)
                exited(self, container, KILLED_CODE, oom_killed=True)
            else:
                lose_process(container, now_us)

    def _watch_memory(self, asked: WatchMemory) -> None:
        usage, kubepods = {Signal.MEMORY: self.memory.usage}, self.kubepods
        if kubepods is not None and kubepods.gauge is not None:
            usage[Signal.ALLOCATABLE_MEMORY] = kubepods.gauge
        sources = {signal: GaugeSource(usage[signal], *of_signal) for signal, of_signal in self.memory_gauges().items()}
        self.memory_watch.watch(asked, sources, self.owner.now_us)
