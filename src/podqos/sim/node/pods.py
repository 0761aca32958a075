"""The pods and containers that run on a simulated node, and what each of them holds."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import InitVar, dataclass, field

from podqos.agent.commands import ContainerPlan
from podqos.agent.reasons import OOMLevel
from podqos.kernel.build import PAGE_BYTES
from podqos.kernel.oom import Process
from podqos.model.pod import Pod
from podqos.model.quantity import NANOS
from podqos.qos.cgroup_paths import UNKNOWN_ID
from podqos.sim.engine.allocation import Allocation
from podqos.sim.engine.curve import Clock
from podqos.sim.engine.gauge import FRACTION_BITS, Gauge
from podqos.sim.node.memory_group import MemoryGroup
from podqos.sim.node.supply import Supply
from podqos.sim.scenario.demand import ContainerDemand

LocalLimits = Mapping[tuple[str, str], tuple[Gauge, ...]]
"""By container and part (``rootfs``, ``logs``, ``volume/name``): the limited sums that its bytes count for."""

DemandOf = Callable[[str], ContainerDemand]
"""What a container of a pod wants, by its name."""


@dataclass(slots=True, eq=False)
class SimContainer:
    """A container, running or ended."""

    pod: SimPod
    plan: ContainerPlan
    group: InitVar[MemoryGroup]
    """Its own cgroup."""
    name: str = field(init=False)
    path: str = field(init=False)
    groups: tuple[MemoryGroup, ...] = field(init=False)
    """The cgroups its memory is charged to, its own first, the machine last."""
    demand: ContainerDemand = field(init=False)
    is_running: bool = False
    started_us: int = 0
    first_pid: int = 0
    lost_processes: int = 0
    fixed_processes: int | None = None
    """How many processes share its memory, where that does not change over time."""
    anon: Allocation | None = None
    active_file: Allocation | None = None
    inactive_file: Allocation | None = None
    pids: Allocation | None = None
    cpu: Allocation | None = None
    tmpfs: list[Allocation] = field(default_factory=list)
    """Volumes in memory: charged to it, but no part of any process."""
    disk: dict[tuple[str, str], Allocation] = field(default_factory=dict)
    """By what it is (``rootfs``, ``logs`` or ``volume/name``) and of what (``bytes`` or ``inodes``). It stays when
    the container ends, until it is started again or its pod is gone."""

    def __post_init__(self, group: MemoryGroup) -> None:
        self.name = self.plan.name
        self.path = group.path
        self.groups = tuple(group.chain())
        self.demand = self.pod.demand_of(self.name)

    @property
    def memory(self) -> Iterator[Allocation]:
        """What it holds of memory, of whatever kind."""
        for want in (self.anon, self.active_file, self.inactive_file):
            if want is not None:
                yield want
        yield from self.tmpfs

    def process_count(self, time_us: int) -> int:
        """Return how many processes share its memory."""
        if self.fixed_processes is not None:
            return self.fixed_processes
        curve = self.demand.processes
        local_us = time_us - self.started_us if curve.clock is Clock.CONTAINER else time_us
        return max(1, curve.at(local_us) - self.lost_processes)

    def anon_bytes(self, time_us: int) -> int:
        """Return its private memory."""
        return 0 if self.anon is None else self.anon.at(time_us)

    def swap_bytes(self) -> int:
        """Return what of its private memory is in swap."""
        return 0 if self.anon is None else self.anon.debt >> FRACTION_BITS

    def working_set_bytes(self, time_us: int) -> int:
        """Return what the kubelet counts: all but inactive page cache."""
        size_bytes = 0 if self.anon is None else self.anon.at(time_us)
        if self.active_file is not None:
            size_bytes += self.active_file.at(time_us)
        for volume in self.tmpfs:
            size_bytes += volume.at(time_us)
        return size_bytes

    def usage_bytes(self, time_us: int) -> int:
        """Return all that it holds."""
        return sum(want.at(time_us) for want in self.memory)

    def processes(self, time_us: int, cut_bytes: int = 0) -> Iterator[Process]:
        """Yield its processes as the OOM killer sees them, without what it wanted at last and did not get."""
        count = self.process_count(time_us)
        whole, rest = divmod(max(0, self.anon_bytes(time_us) - cut_bytes) // PAGE_BYTES, count)
        swapped = self.swap_bytes() // PAGE_BYTES // count
        adj, pid, path = self.plan.oom_score_adj, self.first_pid, self.path
        for index in range(count):
            yield Process(pid + index, path, whole + (index >= count - rest), swapped, 0, adj, self.name)


@dataclass(slots=True, eq=False)
class SimPod:
    """A pod whose sandbox is there."""

    pod: Pod
    group: MemoryGroup
    """Of its cgroup; the machine's where it has none."""
    demand_of: DemandOf
    request_nanos: int = 0
    """Of memory, as eviction holds usage against it."""
    uid: str = field(init=False)
    key: str = field(init=False)
    priority: int = field(init=False)
    is_critical: bool = field(init=False)
    over_request_fine: int = field(init=False)
    """The least working set that is more than its request, in the units of gauges."""
    containers: dict[str, SimContainer] = field(default_factory=dict)
    working_set: Gauge = field(default_factory=Gauge)
    is_stopping: bool = False
    is_gone: bool = False
    pids: tuple[Supply, ...] = ()
    """What its process ids come from."""
    local_limits: LocalLimits = field(default_factory=dict)

    def __post_init__(self) -> None:
        pod = self.pod
        self.uid, self.key = pod.metadata.uid, pod.key
        self.priority, self.is_critical = pod.spec.priority or 0, pod.is_critical
        self.over_request_fine = (self.request_nanos // NANOS + 1) << FRACTION_BITS

    @property
    def running(self) -> Iterator[SimContainer]:
        """Its containers that run."""
        for container in self.containers.values():
            if container.is_running:
                yield container

    def working_set_bytes(self, time_us: int) -> int:
        """Return what the kubelet counts for the pod."""
        return self.working_set.at(time_us)


def container_path(plan: ContainerPlan, pod: SimPod) -> str:
    """Return where the container's cgroup is; its name stands for the id it would get.

    Without a cgroup of their pod (``cgroupsPerQOS: false``) the containers of all pods lie beside each other.
    """
    assert plan.cgroup.path is not None, f"the runtime would refuse to start {plan.name}"
    own = plan.name if pod.group.level is OOMLevel.POD else f"{pod.uid}-{plan.name}"
    return plan.cgroup.path.replace(UNKNOWN_ID, own)
