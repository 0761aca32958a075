"""The blast radius of a pod: if it leaks, which pods on its node die, in what order, how soon, and why.

The node starts in its current state, every pod holding what it holds now. Then one container grows until it is itself
killed or evicted. No pod is rescheduled and no other pod grows: the question is what this pod can do to its
neighbours, not how the cluster reacts. The kubelet has just looked when the leak begins.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from podqos.agent.journal import By, Entry, Kind
from podqos.agent.reasons import cause_of
from podqos.eviction.ranking import Policy
from podqos.model.assumption import Assumption
from podqos.model.pod import Pod, QOSClass
from podqos.model.profile import LATEST, Profile
from podqos.model.resources import MEMORY
from podqos.model.snapshot import ContainerUsage
from podqos.model.time_units import SECOND_US
from podqos.qos.classes import qos_class_of
from podqos.sim.cluster.cluster import SimCluster
from podqos.sim.engine.curve import Clock, Curve, constant
from podqos.sim.engine.event_queue import EventQueue
from podqos.sim.node.pods import SimPod
from podqos.sim.node.recording import moment_of
from podqos.sim.node.running import grow
from podqos.sim.scenario.demand import ContainerDemand, VolumeDemand
from podqos.sim.scenario.scenario import MachineSpec, NodeGroup, Scenario, ScenarioWorkload

_EXTRA_US = 15 * 60 * SECOND_US


class Leak(Struct, frozen=True, gc=False):
    """Which container leaks, and how fast."""

    pod: str
    """``namespace/name``."""
    container: str
    bytes_per_second: int


class Death(Struct, frozen=True, gc=False, rename="camel"):
    """A container killed by the kernel, or a pod evicted by the kubelet."""

    pod: str
    container: str | None
    qos_class: QOSClass
    priority: int
    is_critical: bool
    after_seconds: float
    """Since the leak began."""
    by: By
    cause: str
    """The level that ran out of memory, or the signal."""


class Blast(Struct, frozen=True, gc=False, rename="camel"):
    """What one pod does when it leaks at one rate."""

    node: str
    pod: str
    container: str
    qos_class: QOSClass
    priority: int
    rate_bytes_per_second: int
    others: tuple[Death, ...]
    """In the order in which they die, until the leaking pod does."""
    takes_guaranteed: bool
    takes_critical: bool
    end: Death | None
    """Of the leaking pod; null where nothing stops it."""

    @property
    def pods_taken(self) -> int:
        """How many other pods it takes down."""
        return len({death.pod for death in self.others})

    @property
    def danger(self) -> tuple[int, int, int, float]:
        """Sort key: critical pods first, then Guaranteed ones, then how many, then how soon."""
        critical = sum(death.is_critical for death in self.others)
        guaranteed = sum(death.qos_class is QOSClass.GUARANTEED for death in self.others)
        soonest = min((death.after_seconds for death in self.others), default=float("inf"))
        return -critical, -guaranteed, -self.pods_taken, soonest


class BlastRadius(Struct, frozen=True, rename="camel"):
    """The whole output of ``podqos blast -o json``. Fields are added, never renamed or removed."""

    nodes: int
    pods: int
    slow_bytes_per_second: int
    fast_bytes_per_second: int
    leaks: tuple[Blast, ...]
    """Most dangerous first."""
    assumptions: tuple[Assumption, ...] = ()
    api_version: str = "podqos.dev/v1alpha1"
    kind: str = "BlastRadius"


class NodePods(Struct, frozen=True):
    """A node and what its containers hold now."""

    node: MachineSpec
    pods: tuple[tuple[Pod, tuple[ContainerUsage, ...]], ...]
    ended: Mapping[str, tuple[ContainerUsage, ...]] = {}
    """By key of a pod: its containers that have ended and left something in a volume in memory."""


def nodes_now(scenario: Scenario) -> tuple[NodePods, ...]:
    """Return the nodes of a scenario at its start, with the pods that run there."""
    queue = EventQueue(0)
    cluster = SimCluster(scenario, queue)
    while queue.next is not None:
        queue.step()
    found = []
    for node in cluster.fleet.awake.values():
        moment = moment_of(node, 0)
        system = node.settings.spec.system
        still = replace(system, anon_bytes=constant(system.anon_bytes.at(0)))
        spec = replace(node.settings.spec, name=node.name, system=still, loop_phase_us=0)
        pods = {pod.key: pod.pod for pod in node.world.pods.values()}
        ended = {pod.key: tuple(_left(pod)) for pod in node.world.memory.keeping.values()}
        found.append(NodePods(spec, tuple((pods[key], each.containers) for key, each in moment.pods.items()), ended))
    return tuple(found)


def leaks(pods: NodePods, bytes_per_second: int) -> Iterator[Leak]:
    """Yield one leak per pod on a node: of the container that can grow most."""
    for pod, containers in pods.pods:
        if containers:
            yield Leak(pod.key, max(containers, key=lambda usage: _room(pod, usage)).name, bytes_per_second)


def _room(pod: Pod, usage: ContainerUsage) -> tuple[bool, int]:
    spec = next(each for each in pod.running_containers if each.name == usage.name)
    limit = spec.resources.limits.get(MEMORY)
    return (True, 0) if limit is None else (False, limit.value - usage.working_set_bytes)


class BlastNode:
    """A node in its current state, ready for one leak."""

    def __init__(
        self, pods: NodePods, *, slowest: int, profile: Profile = LATEST, policy: Policy | None = None
    ) -> None:
        """Set up the node; ``slowest`` is the lowest growth rate that will be asked for."""
        self._pods = pods
        self._profile = profile
        until_us = _horizon_us(pods.node, slowest)
        self._queue = EventQueue(until_us)
        scenario = Scenario(
            name="blast",
            duration_us=until_us,
            nodes=(NodeGroup(pods.node),),
            workloads=tuple(
                _workload(pod, (*containers, *pods.ended.get(pod.key, ())), pods.node.name)
                for pod, containers in pods.pods
            ),
            profile=profile,
            policy=policy,
        )
        self._cluster = SimCluster(scenario, self._queue)
        while self._queue.next is not None and self._queue.next[0] == 0:
            self._queue.step()

    def unleash(self, leak: Leak) -> Blast:
        """Let a container leak and return the result. The node cannot be used again."""
        node = self._cluster.fleet.get(self._pods.node.name)
        assert node is not None
        pod = next(each for each in node.world.pods.values() if each.key == leak.pod)
        container = pod.containers[leak.container]
        until_us = _horizon_us(self._pods.node, leak.bytes_per_second)
        held = container.anon_bytes(0)
        growth = leak.bytes_per_second * until_us // SECOND_US
        grow(node.world, container, Curve(((0, held), (until_us, held + growth)), clock=Clock.CONTAINER), 0)
        others: list[Death] = []
        end = None
        for death in self._deaths(until_us):
            if death.pod == leak.pod and death.container in {None, leak.container}:
                end = death
                break
            others.append(death)
        return Blast(
            node=self._pods.node.name,
            pod=leak.pod,
            container=leak.container,
            qos_class=qos_class_of(pod.pod, self._profile),
            priority=pod.priority,
            rate_bytes_per_second=leak.bytes_per_second,
            others=tuple(others),
            takes_guaranteed=any(death.qos_class is QOSClass.GUARANTEED for death in others),
            takes_critical=any(death.is_critical for death in others),
            end=end,
        )

    def _deaths(self, until_us: int) -> Iterator[Death]:
        """Continue the run and yield the deaths."""
        entries, queue = self._cluster.entries, self._queue
        pods = {pod.key: pod for pod, _ in self._pods.pods}
        read = len(entries)
        while queue.next is not None and queue.next[0] <= until_us:
            queue.step()
            for entry in entries[read:]:
                if entry.pod is not None and entry.kind in {Kind.OOM_KILLED, Kind.EVICTED}:
                    yield _death(entry, pods[entry.pod], self._profile)
            read = len(entries)


def radius_of(
    blasts: Iterable[Blast], *, slow: int, fast: int, assumptions: tuple[Assumption, ...] = ()
) -> BlastRadius:
    """Combine the results of all leaks."""
    leaks = sorted(blasts, key=lambda each: (each.danger, each.node, each.pod, each.rate_bytes_per_second))
    return BlastRadius(
        nodes=len({each.node for each in leaks}),
        pods=len({(each.node, each.pod) for each in leaks}),
        slow_bytes_per_second=slow,
        fast_bytes_per_second=fast,
        leaks=tuple(leaks),
        assumptions=assumptions,
    )


def _horizon_us(node: MachineSpec, bytes_per_second: int) -> int:
    """Return an upper bound on the time until the machine is full and the kubelet has reacted."""
    return (node.memory_bytes + node.swap_bytes) * SECOND_US // bytes_per_second + _EXTRA_US


def _workload(pod: Pod, containers: Sequence[ContainerUsage], node: str) -> ScenarioWorkload:
    demands: Mapping[str, ContainerDemand] = {usage.name: _still(pod, usage) for usage in containers}
    return ScenarioWorkload(
        kind="Pod",
        namespace=pod.metadata.namespace,
        name=pod.metadata.name,
        pod=pod,
        demands=(demands,),
        nodes=(node,),
        recreate=False,
    )


def _left(pod: SimPod) -> Iterator[ContainerUsage]:
    """Yield the containers of a pod that have ended, with what they left in volumes in memory."""
    for name in dict.fromkeys(name for name, _ in pod.kept):
        if not pod.containers[name].is_running:
            yield ContainerUsage(name, tmpfs_bytes=sum(want.at(0) for (of, _), want in pod.kept.items() if of == name))


def _still(pod: Pod, usage: ContainerUsage) -> ContainerDemand:
    """Return the demand of a container that keeps what it holds."""
    return ContainerDemand(
        anon_bytes=constant(usage.anon_bytes + usage.page_table_bytes),
        active_file_bytes=constant(usage.active_file_bytes),
        inactive_file_bytes=constant(usage.inactive_file_bytes),
        processes=constant(max(1, usage.processes)),
        volumes=dict(_files(pod, usage.tmpfs_bytes)),
    )


def _files(pod: Pod, size_bytes: int) -> Iterator[tuple[str, VolumeDemand]]:
    """Yield what is in each of a pod's volumes in memory: as much as fits, one after the other."""
    for volume in pod.spec.volumes:
        if volume.is_in_memory and volume.empty_dir is not None and size_bytes:
            limit = volume.empty_dir.size_limit
            part = min(size_bytes, limit.value) if limit else size_bytes
            size_bytes -= part
            yield volume.name, VolumeDemand(constant(part))


def _death(entry: Entry, pod: Pod, profile: Profile) -> Death:
    return Death(
        pod=pod.key,
        container=entry.container,
        qos_class=qos_class_of(pod, profile),
        priority=pod.spec.priority or 0,
        is_critical=pod.is_critical,
        after_seconds=entry.time_us / SECOND_US,
        by=By.KERNEL if entry.kind is Kind.OOM_KILLED else By.KUBELET,
        cause=cause_of(entry.because) or "",
    )
