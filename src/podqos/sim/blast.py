"""The blast radius of a pod: if it leaks, which pods on its node die, in what order, how soon, and why.

The node starts in its current state, every pod holding what it holds now. Then one container grows until it is itself
killed or evicted. No pod is rescheduled and no other pod grows: the question is what this pod can do to its
neighbours, not how the cluster reacts. The kubelet has just looked when the leak begins.

The daemons of the machine can leak, too. Nothing ends them, so that goes on until every pod has died once.

The node is set up once. Where a leak ends with its own pod, that follows from what is reached first (``first_death``).
Where it does not, it is simulated from there, and then the node is put back (``Checkpoint``).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from podqos.agent.journal import By, Entry, Kind
from podqos.agent.reasons import OOMKill, OOMLevel, TooLittleLeft, cause_of
from podqos.amounts import mebibytes
from podqos.errors import InputError
from podqos.eviction.ranking import Policy
from podqos.kernel.memcg import Kind as MemoryKind
from podqos.model.assumption import Assumption
from podqos.model.listing import Listing
from podqos.model.pod import Pod, QOSClass
from podqos.model.profile import LATEST, Profile
from podqos.model.resources import MEMORY
from podqos.model.snapshot import ContainerUsage
from podqos.model.time_units import SECOND_US
from podqos.orders.growing import SYSTEM
from podqos.qos.classes import qos_class_of
from podqos.sim.cluster.cluster import SimCluster
from podqos.sim.engine.checkpoint import Checkpoint
from podqos.sim.engine.curve import Clock, Curve, constant
from podqos.sim.engine.event_queue import EventQueue
from podqos.sim.node.node import SimNode
from podqos.sim.node.pods import SimContainer, SimPod
from podqos.sim.node.running import grow, grow_system
from podqos.sim.record import moment_of
from podqos.sim.scenario.scenario import (
    ContainerDemand,
    MachineSpec,
    NodeGroup,
    Options,
    Scenario,
    ScenarioWorkload,
    VolumeDemand,
)

_EXTRA_US = 15 * 60 * SECOND_US
_LONGEST_SETTLING_US = 24 * 3600 * SECOND_US
MOST_KILLS = 50
"""Of one container, until a run of several leaks ends: by then it starts again every five minutes, for hours. To wait
for a leak that is a million times slower took minutes."""


class ImpossibleUsage(InputError):
    """Containers hold more than the kernel lets them have, or request more than the node has."""

    def __init__(self, what: str, *, pod: str | None = None, where: str = "", fix: str = "") -> None:
        super().__init__(what, where=where, fix=fix)
        self.pod = pod
        """Which one, as ``namespace/name``, where it is about a single one."""


class Leak(Struct, frozen=True, gc=False):
    """Which container leaks, and how fast."""

    pod: str
    """``namespace/name``, or ``system``: what runs besides pods."""
    container: str
    """Empty where that leaks."""
    bytes_per_second: int

    @property
    def is_of_system(self) -> bool:
        """Whether no pod leaks, but what runs besides pods."""
        return not self.container


class BlastDeath(Struct, frozen=True, gc=False, rename="camel"):
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
    """``namespace/name``, or ``system``: what runs besides pods."""
    container: str
    """Empty where that leaks."""
    qos_class: QOSClass | None
    """Null where that leaks."""
    priority: int
    rate_bytes_per_second: int
    others: tuple[BlastDeath, ...]
    """In the order in which they die, until the leaking pod does."""
    takes_guaranteed: bool
    takes_critical: bool
    end: BlastDeath | None
    """Of the leaking pod; null where nothing stops it."""

    @property
    def is_of_system(self) -> bool:
        """Whether no pod leaks, but what runs besides pods."""
        return not self.container

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


class EvictedBefore(Struct, frozen=True, gc=False, rename="camel"):
    """A pod that the kubelet evicts without any leak, because its node is short of something already."""

    node: str
    pod: str


class BlastRadius(Listing[Blast], Struct, frozen=True, rename="camel"):
    """The whole output of ``podqos blast -o json``. Fields are added, never renamed or removed."""

    nodes: int
    pods: int
    slow_bytes_per_second: int
    fast_bytes_per_second: int
    leaks: tuple[Blast, ...]
    """Most dangerous first."""
    assumptions: tuple[Assumption, ...] = ()
    evicted_before: tuple[EvictedBefore, ...] = ()
    """Leaks begin when these are gone."""
    headline: str = ""
    """Which pods take others down, and what the most dangerous leak does; empty where nobody worded it."""
    victims: tuple[str, ...] = ()
    """The pods that leaks of others take down, most often first: the columns of the impact matrix."""
    api_version: str = "podqos.dev/v1alpha1"
    kind: str = "BlastRadius"

    def _listed(self) -> tuple[Blast, ...]:
        return self.leaks


def victims_of(leaks: Iterable[Blast]) -> tuple[str, ...]:
    """Return the pods that leaks of others take down: most often first, then by name."""
    times = Counter(pod for leak in leaks for pod in {death.pod for death in leak.others})
    return tuple(sorted(times, key=lambda pod: (-times[pod], pod)))


class BlastPods(Struct, frozen=True):
    """A node and what its containers hold now."""

    node: MachineSpec
    pods: tuple[tuple[Pod, tuple[ContainerUsage, ...]], ...]
    ended: Mapping[str, tuple[ContainerUsage, ...]] = {}
    """By key of a pod: its containers that have ended and left something in a volume in memory."""


def nodes_now(scenario: Scenario) -> tuple[BlastPods, ...]:
    """Return the nodes of a scenario at its start, with the pods that run there; no kubelet has looked yet."""
    queue = EventQueue(0)
    later = (replace(node, spec=replace(node.spec, loop_phase_us=1), phase_step_us=0) for node in scenario.nodes)
    cluster = SimCluster(replace(scenario, nodes=tuple(later)), queue)
    while queue.next is not None:
        queue.step()
    _check(entry for entry in cluster.entries if entry.kind is Kind.OOM_KILLED)
    found = []
    for node in cluster.fleet.present.values():
        moment = moment_of(node, 0)
        system = node.settings.spec.system
        still = replace(system, anon_bytes=constant(system.anon_bytes.at(0)))
        spec = replace(node.settings.spec, name=node.name, system=still, loop_phase_us=0)
        pods = {pod.key: pod.pod for pod in node.world.pods.values()}
        ended = {pod.key: tuple(_left(pod)) for pod in node.world.memory.keeping.values()}
        found.append(BlastPods(spec, tuple((pods[key], pod.containers) for key, pod in moment.pods.items()), ended))
    return tuple(found)


def leaks(pods: BlastPods, bytes_per_second: int) -> Iterator[Leak]:
    """Yield one leak per pod on a node: of the container that can grow most."""
    for pod, containers in pods.pods:
        if containers:
            yield Leak(pod.key, max(containers, key=lambda usage: _room(pod, usage)).name, bytes_per_second)


def system_leak(bytes_per_second: int) -> Leak:
    """Return the leak of what runs besides pods."""
    return Leak(SYSTEM, "", bytes_per_second)


def _room(pod: Pod, usage: ContainerUsage) -> tuple[bool, int]:
    spec = next(container for container in pod.running_containers if container.name == usage.name)
    limit = spec.resources.limits.get(MEMORY)
    return (True, 0) if limit is None else (False, limit.value - usage.working_set_bytes)


class BlastNode:
    """A node in its current state, in which one container after the other leaks."""

    def __init__(
        self,
        pods: BlastPods,
        *,
        slowest: int,
        profile: Profile = LATEST,
        policy: Policy | None = None,
        options: Options | None = None,
    ) -> None:
        """Set up the node; ``slowest`` is the lowest growth rate that will be asked for."""
        self._spec = pods.node
        self._profile = profile
        until_us = horizon_us(pods.node, slowest) + _LONGEST_SETTLING_US
        self.scenario = Scenario(
            name="blast",
            duration_us=until_us,
            nodes=(NodeGroup(pods.node),),
            workloads=tuple(
                _workload(pod, (*containers, *pods.ended.get(pod.key, ())), pods.node.name)
                for pod, containers in pods.pods
            ),
            profile=profile,
            policy=policy,
            options=replace(options or Options(), slows_at_memory_high=False),
        )
        """The node without a leak."""
        self._queue = EventQueue(until_us)
        self._cluster = SimCluster(self.scenario, self._queue)
        self._pods = {pod.key: pod for pod, _ in pods.pods}
        self.evicted_before = tuple(self._settle())
        self.begins_us = self._queue.now_us
        """When leaks begin."""
        self._settled = Checkpoint(self._cluster, self._queue)
        there = {pod.key for pod in self._node.world.pods.values() if not pod.is_stopping}
        self.pods = BlastPods(pods.node, tuple(pod for pod in pods.pods if pod[0].key in there))
        """The node with the pods that are there when a leak begins."""

    @property
    def _node(self) -> SimNode:
        node = self._cluster.fleet.get(self._spec.name)
        assert node is not None
        return node

    def _settle(self) -> Iterator[EvictedBefore]:
        """Run until nothing happens any more, so that whatever happens after that is caused by the leak."""
        queue, entries = self._queue, self._cluster.entries
        read = last_us = 0
        while queue.next is not None and (queue.next[0] == 0 or not self._node.is_at_rest):
            if queue.next[0] > min(last_us + _EXTRA_US, _LONGEST_SETTLING_US):
                return
            queue.step()
            for entry in entries[read:]:
                if entry.pod is not None and entry.kind is Kind.EVICTED:
                    last_us = entry.time_us
                    yield EvictedBefore(entry.node, entry.pod)
            _check(entries[read:])
            read = len(entries)

    def unleash(self, leak: Leak) -> Blast:
        """Let a container leak and return the result; the node is then as it was."""
        world, now_us = self._node.world, self.begins_us
        try:
            if leak.is_of_system:
                curve, until_us = self._growth(leak, world.memory.system_bytes(MemoryKind.ANON, now_us))
                grow_system(world, curve, now_us)
                return self._blast(leak, tuple(self._until_all_died(until_us)), None)
            container = self._container(leak)
            curve, until_us = self._growth(leak, container.anon_bytes(now_us))
            grow(world, container, curve, now_us)
            return self._blast(leak, *self._simulated(leak, until_us))
        finally:
            self._settled.restore()

    def _container(self, leak: Leak) -> SimContainer:
        pod = next(pod for pod in self._node.world.pods.values() if pod.key == leak.pod)
        return pod.containers[leak.container]

    def _growth(self, leak: Leak, held: int) -> tuple[Curve, int]:
        """Return how a leak grows from what is held, and until when."""
        lasts_us = horizon_us(self._spec, leak.bytes_per_second)
        growth = leak.bytes_per_second * lasts_us // SECOND_US
        curve = Curve(((0, held), (lasts_us, held + growth)), clock=Clock.CONTAINER)
        return curve, self.begins_us + lasts_us

    def _until_all_died(self, until_us: int) -> Iterator[BlastDeath]:
        """Continue the run and yield the deaths until each pod has died once."""
        left = {pod.key for pod, _ in self.pods.pods}
        for death in self._deaths(until_us):
            yield death
            left.discard(death.pod)
            if not left:
                return

    def _simulated(self, leak: Leak, until_us: int) -> tuple[tuple[BlastDeath, ...], BlastDeath | None]:
        """Continue the run until the leaking container ends; return which others die, and its end."""
        others: list[BlastDeath] = []
        for death in self._deaths(until_us):
            if death.pod != leak.pod:
                others.append(death)
            elif death.container in {None, leak.container}:
                return tuple(others), death
        return tuple(others), None

    def _blast(self, leak: Leak, others: tuple[BlastDeath, ...], end: BlastDeath | None) -> Blast:
        pod = None if leak.is_of_system else self._pods[leak.pod]
        return Blast(
            node=self._spec.name,
            pod=leak.pod,
            container=leak.container,
            qos_class=None if pod is None else qos_class_of(pod, self._profile),
            priority=0 if pod is None else pod.spec.priority or 0,
            rate_bytes_per_second=leak.bytes_per_second,
            others=others,
            takes_guaranteed=any(death.qos_class is QOSClass.GUARANTEED for death in others),
            takes_critical=any(death.is_critical for death in others),
            end=end,
        )

    def _deaths(self, until_us: int) -> Iterator[BlastDeath]:
        """Continue the run and yield the deaths."""
        entries, queue = self._cluster.entries, self._queue
        read = len(entries)
        while queue.next is not None and queue.next[0] <= until_us:
            queue.step()
            for entry in entries[read:]:
                if entry.pod is not None and entry.kind in {Kind.OOM_KILLED, Kind.EVICTED}:
                    by = By.KERNEL if entry.kind is Kind.OOM_KILLED else By.KUBELET
                    cause = cause_of(entry.because) or ""
                    yield self._death(self._pods[entry.pod], entry.container, entry.time_us, by, cause)
            read = len(entries)

    def _death(self, pod: Pod, container: str | None, time_us: int, by: By, cause: str) -> BlastDeath:
        return BlastDeath(
            pod=pod.key,
            container=container,
            qos_class=qos_class_of(pod, self._profile),
            priority=pod.spec.priority or 0,
            is_critical=pod.is_critical,
            after_seconds=(time_us - self.begins_us) / SECOND_US,
            by=by,
            cause=cause,
        )


def leak_together(
    pods: BlastPods,
    leaks: Sequence[Leak],
    *,
    begins_us: int,
    profile: Profile,
    policy: Policy | None,
) -> Iterator[Entry]:
    """Let several leak at once, and yield who is killed or evicted, until each that leaks has died once.

    One that is started again leaks again, from what it holds now; the run also ends when one has been killed
    ``MOST_KILLS`` times. What runs besides pods does not die: where that leaks, every pod dies once. Nobody has looked
    at the node before: the kubelet's first pass is at its phase.
    """
    rates = {(leak.pod, leak.container): leak.bytes_per_second for leak in leaks}
    lasts_us = horizon_us(pods.node, min(rates.values()))

    def leaking(curve: Curve, rate: int) -> Curve:
        held = curve.at(0)
        grown = held + rate * lasts_us // SECOND_US
        return Curve(((0, held), (begins_us, held), (begins_us + lasts_us, grown)), clock=Clock.CONTAINER)

    workloads = []
    for pod, containers in pods.pods:
        still = _workload(pod, containers, pods.node.name)
        demands = dict(still.demands[0])
        for name, demand in still.demands[0].items():
            rate = rates.get((pod.key, name))
            if rate is not None:
                demands[name] = replace(demand, anon_bytes=leaking(demand.anon_bytes, rate))
        workloads.append(replace(still, demands=(demands,)))
    spec, of_system = pods.node, rates.get((SYSTEM, ""))
    if of_system is not None:
        grows = replace(leaking(spec.system.anon_bytes, of_system), clock=Clock.SCENARIO)
        spec = replace(spec, system=replace(spec.system, anon_bytes=grows))
    scenario = Scenario(
        name="leaks",
        duration_us=begins_us + lasts_us,
        nodes=(NodeGroup(spec),),
        workloads=tuple(workloads),
        profile=profile,
        policy=policy,
        options=Options(slows_at_memory_high=False),
    )
    queue = EventQueue(scenario.duration_us)
    entries = SimCluster(scenario, queue).entries
    left = set(rates) if of_system is None else {(pod.key, each.name) for pod, held in pods.pods for each in held}
    kills: Counter[tuple[str, str | None]] = Counter()
    read = 0
    while (
        left
        and max(kills.values(), default=0) < MOST_KILLS
        and queue.next is not None
        and queue.next[0] <= scenario.duration_us
    ):
        queue.step()
        _check(entry for entry in entries[read:] if isinstance(entry.because, TooLittleLeft))
        for entry in entries[read:]:
            if entry.pod is not None and entry.kind in {Kind.OOM_KILLED, Kind.EVICTED}:
                yield entry
                kills[entry.pod, entry.container] += 1
                left = {each for each in left if each[0] != entry.pod or entry.container not in {None, each[1]}}
        read = len(entries)


def radius_of(
    blasts: Iterable[Blast],
    *,
    slow: int,
    fast: int,
    assumptions: tuple[Assumption, ...] = (),
    evicted_before: Iterable[EvictedBefore] = (),
) -> BlastRadius:
    """Combine the results of all leaks."""
    leaks = sorted(blasts, key=lambda blast: (blast.danger, blast.node, blast.pod, blast.rate_bytes_per_second))
    return BlastRadius(
        nodes=len({leak.node for leak in leaks}),
        pods=len({(leak.node, leak.pod) for leak in leaks}),
        slow_bytes_per_second=slow,
        fast_bytes_per_second=fast,
        leaks=tuple(leaks),
        assumptions=assumptions,
        evicted_before=tuple(evicted_before),
    )


def _check(entries: Iterable[Entry]) -> None:
    """Raise ``ImpossibleUsage`` for pods that could not run; a pod's own limit is named first."""
    own = {OOMLevel.CONTAINER.value, OOMLevel.POD.value}
    for entry in sorted(entries, key=lambda entry: cause_of(entry.because) not in own):
        pod, fix = None, "check the units, and the node's memory"
        match entry.because:
            case OOMKill(level=OOMLevel.CONTAINER, freed_bytes=used, denied_bytes=denied, limit_bytes=limit):
                uses, most = mebibytes(used + denied), mebibytes(limit)
                what = f"{entry.pod} {entry.container} uses {uses}, above its limit of {most}"
                pod, fix = entry.pod, "check the unit, and the limit"
            case OOMKill(level=OOMLevel.POD, limit_bytes=limit):
                what = f"the containers of {entry.pod} use more than the pod's limit of {mebibytes(limit)}"
                pod, fix = entry.pod, "check the units, and the limit"
            case OOMKill(level=OOMLevel.NODE, limit_bytes=limit):
                what = f"pods and system use more memory than {entry.node} has ({mebibytes(limit)})"
            case OOMKill(limit_bytes=limit, domain=domain):
                what = f"the pods on {entry.node} use more than the limit of {domain} ({mebibytes(limit)})"
            case TooLittleLeft(resource=resource):
                what = f"the pods on {entry.node} request more {resource} than its allocatable"
                fix = "check the requests, and the node's memory"
            case _:
                continue
        raise ImpossibleUsage(what, pod=pod, fix=fix)


def horizon_us(node: MachineSpec, bytes_per_second: int) -> int:
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
