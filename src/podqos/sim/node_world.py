"""A simulated node as the agent sees it: carries commands out, shows figures, reports what happens.

How demands become memory, disk, process ids and CPU is in ``running``; what the kernel does about them in
``memory_groups``, ``killing``, ``disks`` and ``throttling``. When the kubelet hears of things is ``node``'s business.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from podqos.agent.commands import (
    Command,
    ContainerPlan,
    CreateCgroup,
    RejectPod,
    RemoveCgroup,
    SetCondition,
    StartContainer,
    StartPod,
    StopPod,
    UpdateCgroup,
)
from podqos.agent.events import ContainerStarted, Event, PodCleanedUp, PodStarted, PodStopped
from podqos.agent.journal import Kind as Happened
from podqos.agent.reasons import CPUThrottled, LimitReached, OOMLevel
from podqos.eviction.commands import CleanUpNode, EvictPod
from podqos.model.pod import Pod
from podqos.model.stats import Summary
from podqos.qos.cgroup import Cgroup, Level
from podqos.sim.agenda import Turn
from podqos.sim.disks import PIDS, Disks, Supply
from podqos.sim.gauge import Gauge
from podqos.sim.killing import next_kill
from podqos.sim.local_limits import local_limits
from podqos.sim.memory_groups import MemoryGroup, NodeMemory
from podqos.sim.node_settings import NodeSettings
from podqos.sim.owner import Owner
from podqos.sim.pods import SimContainer, SimPod, container_path
from podqos.sim.running import begin, begin_system, finish, lose_process, remove_traces
from podqos.sim.scenario import SECOND_US, Options
from podqos.sim.statistics import summary
from podqos.sim.throttling import NodeCpu
from podqos.sim.want import Want

_LEVELS = {Level.NODE: OOMLevel.KUBEPODS, Level.QOS: OOMLevel.CLASS, Level.POD: OOMLevel.POD}
_KILLED = 137
"""The exit code of what was killed: 128 and the number of SIGKILL."""


class NodeWorld:
    """One simulated node."""

    def __init__(self, name: str, settings: NodeSettings, options: Options, owner: Owner) -> None:
        spec = settings.spec
        self.name = name
        self.settings = settings
        self.owner = owner
        self.pods: dict[str, SimPod] = {}
        """By uid: those whose sandbox is there, and those of which something is left."""
        self.memory = NodeMemory(settings.machine, owner.plan, self._out_of_memory)
        self.disks = Disks(spec, owner.plan, self._refused)
        self.pids = Supply(PIDS, spec.max_pids, owner.plan, self._refused)
        self.cpu = NodeCpu(spec.cpu_milli, spec.cgroup_version, owner.plan, self._throttled)
        self.working_set = Gauge()
        """What the kubelet counts, of the whole machine."""
        self.pods_working_set = Gauge()
        self.next_pid = 1000
        self._options = options
        self.before_kill: Callable[[MemoryGroup, int], None] | None = None
        """Told before each kill which group is out of memory, and when: for a record of what the kernel saw."""
        self.pid_limits: dict[str, Supply] = {}
        """By path of the cgroup that sets them."""
        begin_system(self, spec.system, owner.now_us)

    @property
    def pods_limit_bytes(self) -> int | None:
        """The limit of the cgroup of all pods."""
        groups = (group for group in self.memory.groups.values() if group.level is OOMLevel.KUBEPODS)
        return next((group.limit_bytes for group in groups), None)

    # ---- the port ------------------------------------------------------------------------------------------------

    def summary(self) -> Summary:
        """Take the figures as they are now."""
        return summary(self, self.owner.now_us)

    def carry_out(self, command: Command) -> Sequence[Event]:
        """Do what is asked."""
        match command:
            case CreateCgroup(cgroup) | UpdateCgroup(cgroup):
                self._write(cgroup)
            case StartPod():
                return self._start_pod(command)
            case StartContainer():
                return self._start_container(command)
            case StopPod(pod, grace) | EvictPod(pod, grace):
                return self._stop(pod, grace)
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
        self.memory.write(cgroup.path, reading.memory, _LEVELS[cgroup.level], self.owner.now_us)
        self.cpu.write(cgroup.path, reading.cpu)
        limit = reading.pids_max
        if limit is not None and cgroup.path not in self.pid_limits:
            supply = self.pid_limits[cgroup.path] = Supply(PIDS, limit, self.owner.plan, self._refused)
            supply.gauge.since_us = self.owner.now_us

    # ---- pods come -----------------------------------------------------------------------------------------------

    def _start_pod(self, command: StartPod) -> Sequence[Event]:
        pod = command.pod
        path = command.sandbox.path
        parent = None if path is None else self.memory.groups.get(path.rpartition("/")[0])
        demand_of, request = self.owner.demand_of(pod), self.owner.memory_request(pod)
        made = SimPod(pod, parent or self.memory.root, demand_of, request.nanos)
        chain = [group.path for group in made.group.chain()]
        made.pids = (self.pids, *(self.pid_limits[path] for path in chain if path in self.pid_limits))
        made.local_limits = local_limits(
            pod, self.settings.layout, self.owner.plan, self.owner.alarm, self.owner.now_us
        )
        self.pods[made.uid] = made
        for plan in command.containers:
            self._add(made, plan)

        def start() -> Sequence[Event]:
            if made.is_stopping:
                return ()
            for plan in command.containers:
                begin(self, made.containers[plan.name], self.owner.now_us)
            return (PodStarted(made.uid),)

        return self._later(self._options.start_delay_us(self.owner.now_us), start)

    def _start_container(self, command: StartContainer) -> Sequence[Event]:
        pod, name = self.pods[command.pod.metadata.uid], command.plan.name
        if name not in pod.containers:
            self._add(pod, command.plan)

        def start() -> Sequence[Event]:
            if pod.is_stopping:
                return ()
            begin(self, pod.containers[name], self.owner.now_us)
            return (ContainerStarted(pod.uid, name),)

        return self._later(self._options.start_delay_us(self.owner.now_us), start)

    def _add(self, pod: SimPod, plan: ContainerPlan) -> None:
        path = container_path(plan)
        reading = self.settings.readings.of(plan.cgroup)
        group = self.memory.write(path, reading.memory, OOMLevel.CONTAINER, self.owner.now_us)
        self.cpu.write(path, reading.cpu)
        pod.containers[plan.name] = SimContainer(pod, plan, group)

    # ---- pods go -------------------------------------------------------------------------------------------------

    def _stop(self, pod: Pod, grace_seconds: int) -> Sequence[Event]:
        stopping = self.pods[pod.metadata.uid]
        stopping.is_stopping = True

        def stop() -> Sequence[Event]:
            if stopping.is_gone:
                # It was told twice, and the shorter time counts: deleted, and then evicted.
                return ()
            for container in tuple(stopping.running):
                finish(self, container, self.owner.now_us)
            stopping.is_gone = True
            self.owner.left(pod)
            stopped = PodStopped(stopping.uid)
            # Without a cgroup of its own nothing else will be asked for it.
            return (stopped, *self._clean_up(stopping)) if stopping.group is self.memory.root else (stopped,)

        return self._later(min(self._options.stop_us, grace_seconds * SECOND_US), stop)

    def _remove(self, uid: str, path: str) -> Sequence[Event]:
        def remove() -> Sequence[Event]:
            self.memory.remove(path)
            self.cpu.remove(path)
            self.pid_limits.pop(path, None)
            return self._clean_up(self.pods[uid])

        return self._later(self._options.clean_up_us, remove)

    def _clean_up(self, pod: SimPod) -> Sequence[Event]:
        remove_traces(self, pod, self.owner.now_us)
        del self.pods[pod.uid]
        return (PodCleanedUp(pod.uid),)

    def exited(self, container: SimContainer, exit_code: int, *, oom_killed: bool = False) -> None:
        """Let a container end that nobody told to."""
        finish(self, container, self.owner.now_us)
        self.owner.ended(container, exit_code, oom_killed=oom_killed)

    def _later(self, delay_us: int, act: Callable[[], Sequence[Event]]) -> Sequence[Event]:
        """Do something now and return what came of it, or do it later and report."""
        if not delay_us:
            return act()

        def happen(_: int) -> None:
            for event in act():
                self.owner.report(event)

        self.owner.plan(self.owner.now_us + delay_us, Turn.LIFE, happen)
        return ()

    # ---- the kernel ----------------------------------------------------------------------------------------------

    def _out_of_memory(self, group: MemoryGroup, now_us: int) -> None:
        """Kill until a cgroup, or the machine, is within its limit."""
        while group.excess_bytes(now_us) > 0:
            if self.before_kill is not None:
                self.before_kill(group, now_us)
            killed = next_kill(self.memory, group, now_us, self.owner.would_evict())
            if killed is None:
                self.owner.lost(now_us)
                return
            container = killed.container
            self.owner.note(Happened.OOM_KILLED, killed.because, container.pod.key, container.name)
            if killed.has_ended:
                self.exited(container, _KILLED, oom_killed=True)
            else:
                lose_process(container, now_us)

    def _refused(self, supply: Supply, want: Want, container: SimContainer | None, now_us: int) -> None:
        because = LimitReached(supply.resource, want.wanted(now_us), supply.limit)
        pod, name = (None, None) if container is None else (container.pod.key, container.name)
        self.owner.note(Happened.REFUSED, because, pod, name)

    def _throttled(self, container: SimContainer, because: CPUThrottled, _: int) -> None:
        self.owner.note(Happened.THROTTLED, because, container.pod.key, container.name)
