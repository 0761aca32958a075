"""Pods and containers that run on a simulated node, and the cgroups that their memory is charged to."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from podqos.agent.port import ContainerPlan
from podqos.agent.reasons import OOMLevel
from podqos.agent.shutdown import Shutdown
from podqos.kernel.build import PAGE_BYTES
from podqos.kernel.memcg import MemcgSettings
from podqos.kernel.oom import Process
from podqos.model.pod import Pod
from podqos.qos.cgroup_paths import UNKNOWN_ID
from podqos.sim.engine.allocation import Allocation
from podqos.sim.engine.curve import Clock
from podqos.sim.engine.gauge import FRACTION_BITS, Gauge, GaugeMark
from podqos.sim.node.disks import Supply
from podqos.sim.scenario.scenario import ContainerDemand
from podqos.sim.services.queueing import PodService


class MemoryGroup:
    """One cgroup, or the machine."""

    __slots__ = ("gauge", "high_mark", "level", "limit_bytes", "mark", "parent", "path", "settings", "wanted_bytes")

    def __init__(self, path: str, level: OOMLevel, parent: MemoryGroup | None) -> None:
        self.path = path
        self.level = level
        self.parent = parent
        self.settings = MemcgSettings()
        self.limit_bytes: int | None = None
        self.wanted_bytes: int | None = None
        """The limit that the kernel refused because more was in use."""
        self.gauge: Gauge | None = None
        """All that is charged to it; none where there is no limit to watch."""
        self.mark: GaugeMark | None = None
        self.high_mark: GaugeMark | None = None
        """At ``memory.high``, if a container has one."""

    def chain(self) -> Iterator[MemoryGroup]:
        """Yield the cgroup and those above it."""
        group: MemoryGroup | None = self
        while group is not None:
            yield group
            group = group.parent

    def excess_bytes(self, time_us: int) -> int:
        """Return by how much it is over its limit; below zero is what it has left."""
        assert self.gauge is not None
        assert self.limit_bytes is not None
        return self.gauge.at(time_us) - self.limit_bytes


LocalLimits = Mapping[tuple[str, str], tuple[Gauge, ...]]
"""By container and part (``rootfs``, ``logs``, ``volume/name``): the limited sums that its bytes count for."""

DemandOf = Callable[[str], ContainerDemand]
"""What a container of a pod wants, by its name."""


class SimContainer:
    """A container, running or ended."""

    __slots__ = (
        "active_file",
        "anon",
        "cpu",
        "demand",
        "disk",
        "first_pid",
        "fixed_processes",
        "groups",
        "inactive_file",
        "is_running",
        "lost_processes",
        "name",
        "path",
        "pids",
        "plan",
        "pod",
        "service",
        "started_us",
        "tmpfs",
    )

    def __init__(self, pod: SimPod, plan: ContainerPlan, group: MemoryGroup) -> None:
        self.pod = pod
        self.plan = plan
        self.name = plan.name
        self.path: str = group.path
        self.groups: tuple[MemoryGroup, ...] = tuple(group.chain())
        """The cgroups its memory is charged to, its own first, the machine last."""
        self.demand: ContainerDemand = pod.demand_of(plan.name)
        self.is_running = False
        self.started_us = 0
        self.first_pid = 0
        self.lost_processes = 0
        self.fixed_processes: int | None = None
        """How many processes share its memory, where that does not change over time."""
        self.anon: Allocation | None = None
        self.active_file: Allocation | None = None
        self.inactive_file: Allocation | None = None
        self.pids: Allocation | None = None
        self.cpu: Allocation | None = None
        self.service: PodService | None = None
        """How it answers requests, if its scenario says that it does."""
        self.tmpfs: dict[str, Allocation] = {}
        """By volume in memory: what it wrote there. Charged to it while it runs, but no part of any process."""
        self.disk: dict[tuple[str, str], Allocation] = {}
        """By what it is (``rootfs``, ``logs`` or ``volume/name``) and of what (``bytes`` or ``inodes``). It stays when
        the container ends, until it is started again or its pod is gone."""

    @property
    def memory(self) -> Iterator[Allocation]:
        """What it holds of memory, of whatever kind."""
        for want in (self.anon, self.active_file, self.inactive_file):
            if want is not None:
                yield want
        yield from self.tmpfs.values()

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
        return size_bytes + self.tmpfs_bytes(time_us)

    @property
    def files(self) -> Iterator[Allocation]:
        """What it and its earlier runs wrote into volumes in memory."""
        yield from self.tmpfs.values()
        yield from (want for (name, _), want in self.pod.kept.items() if name == self.name)

    def tmpfs_bytes(self, time_us: int) -> int:
        """Return what it wrote into volumes in memory since it was started."""
        return sum(volume.at(time_us) for volume in self.tmpfs.values())

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

    def worst_process(self, time_us: int, cut_bytes: int = 0) -> Process:
        """Return the last of them: it holds the most, by a page, and of equals the kernel takes the youngest."""
        count = self.process_count(time_us)
        pages = -(-(max(0, self.anon_bytes(time_us) - cut_bytes) // PAGE_BYTES) // count)
        swapped = self.swap_bytes() // PAGE_BYTES // count
        return Process(self.first_pid + count - 1, self.path, pages, swapped, 0, self.plan.oom_score_adj, self.name)


class SimPod:
    """A pod whose sandbox is there."""

    __slots__ = (
        "admitted_us",
        "containers",
        "demand_of",
        "ended_us",
        "ends_us",
        "group",
        "is_gone",
        "kept",
        "key",
        "local_limits",
        "pids",
        "pod",
        "shutdown",
        "tmpfs",
        "uid",
        "working_set",
    )

    def __init__(self, pod: Pod, group: MemoryGroup, demand_of: DemandOf) -> None:
        self.pod = pod
        self.uid = pod.metadata.uid
        self.key = pod.key
        self.group = group
        """Of its cgroup; the machine's where it has none."""
        self.demand_of = demand_of
        self.admitted_us = 0
        self.containers: dict[str, SimContainer] = {}
        self.working_set = Gauge()
        self.shutdown: Shutdown | None = None
        """How it is being stopped."""
        self.ends_us: dict[str, int] = {}
        """By container: when one that still runs ends at the latest, if the pod is being stopped."""
        self.ended_us: dict[str, int] = {}
        """By container: when one has ended since."""
        self.is_gone = False
        self.pids: tuple[Supply, ...] = ()
        """What its process ids come from."""
        self.local_limits: LocalLimits = {}
        self.tmpfs: dict[str, Supply] = {}
        """By volume in memory: how much fits in."""
        self.kept: dict[tuple[str, str], Allocation] = {}
        """By container and volume in memory: what it wrote before it ended. Charged to the pod, and part of its working
        set, until nothing is left of the pod."""

    @property
    def is_stopping(self) -> bool:
        """Whether it is being stopped."""
        return self.shutdown is not None

    @property
    def counts_once(self) -> bool:
        """Whether its only container holds all that its cgroup does, so that one sum is enough for both."""
        spec = self.pod.spec
        return len(spec.containers) == 1 and not spec.init_containers and not self.tmpfs

    def kept_bytes(self, time_us: int) -> int:
        """Return what containers that have ended left in volumes in memory."""
        return sum(volume.at(time_us) for volume in self.kept.values())

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
