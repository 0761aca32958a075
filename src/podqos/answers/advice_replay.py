"""Recorded usage, replayed in the simulator: what containers used, on the nodes where their pods are, under any sizes.

Every pod of a workload uses what a recorded one used, in turn; what was not recorded uses what it requests, all the
time. The whole working set counts as private memory, of which the kernel can reclaim nothing, and the system uses all
that is reserved for it. A long recording is cut into stretches, each of which counts with its highest value.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from podqos.advice.sizing.matching import container_of, owner_of
from podqos.advice.sizing.samples import ContainerSamples
from podqos.model.kubelet_config import KubeletConfiguration
from podqos.model.node import PODS, Node
from podqos.model.pod import Container, Pod
from podqos.model.profile import Profile
from podqos.model.resources import CPU, EPHEMERAL_STORAGE, MEMORY, ResourceList, ResourceRequirements
from podqos.model.time_units import MINUTE_US
from podqos.placement.allocatable import node_allocatable
from podqos.placement.workloads import POD
from podqos.sim.engine.curve import Curve, constant
from podqos.sim.engine.curve import kept as kept_knots
from podqos.sim.run import simulate
from podqos.sim.scenario.demand import ContainerDemand, SystemDemand
from podqos.sim.scenario.scenario import Filesystem, MachineSpec, NodeGroup, Scenario, ScenarioWorkload
from podqos.sim.summary import run_summary
from podqos.survival.drift.drift import Identity
from podqos.survival.node.assumed_usage import assumed_usage

MOST_PODS = 3_000
"""Beyond this, pods are replayed one by one and not on their nodes."""
# How many stretches all recordings together, and one of them, are cut into.
_MOST_POINTS = 30_000
_MOST_STRETCHES, _LEAST_STRETCHES = 240, 12
# Of one workload: those that used most.
_MOST_RECORDED = 50
_NEVER_US = 1 << 62
# Without times, samples are taken to be this far apart.
_STEP_US = MINUTE_US
_PLENTY = Filesystem(capacity_bytes=1 << 50, inodes=1 << 40)
_PLENTY_CPU_MILLI = 1_000_000
_PLENTY_BYTES = 64 << 30
_ALONE = "alone"
_SIMULATED = (CPU, MEMORY, EPHEMERAL_STORAGE)

Point = tuple[int, int]
"""Time in microseconds; bytes, or thousandths of a core."""
Demands = Mapping[str, ContainerDemand]
_Pod = dict[str, tuple[list[Point], list[Point]]]
"""By container: memory and cpu."""


class Recording(Struct, frozen=True):
    """What pods used over time, by workload: an entry per recorded pod, those that used most first."""

    demands: Mapping[Identity, tuple[Demands, ...]]
    duration_us: int
    has_times: bool
    """Whether the times of all samples are known."""


class RunningPod(Struct, frozen=True):
    """A pod where it runs, and what it uses."""

    pod: Pod
    identity: Identity
    node: str
    demands: Demands


class Fared(Struct, frozen=True):
    """How the pods of a workload fared."""

    oom_kills: int = 0
    evictions: int = 0
    throttled_us: int = 0
    never_ran: int = 0
    """Pods that the kubelet of their node does not take."""


def recording_of(samples: Iterable[ContainerSamples], pods: Mapping[Identity, Pod]) -> Recording:
    """Return what was recorded of the workloads; what belongs to none of them is left out."""
    matched = []
    for sample in samples:
        identity = owner_of(sample.pod, pods)
        container = None if identity is None else container_of(sample.container, pods[identity])
        if identity is not None and container is not None:
            matched.append((identity, container, sample))
    has_times = _share_a_clock([sample for _, _, sample in matched])
    count = sum(bool(sample.memory_bytes) + bool(sample.cpu_milli) for _, _, sample in matched)
    stretches = max(_LEAST_STRETCHES, min(_MOST_STRETCHES, _MOST_POINTS // max(1, count)))
    series: dict[Identity, dict[str, _Pod]] = {}
    begin_us, end_us = _NEVER_US, 0
    for identity, container, sample in matched:
        own = series.setdefault(identity, {}).setdefault(sample.pod, {}).setdefault(container, ([], []))
        for points, values, known_us in zip(
            own, (sample.memory_bytes, sample.cpu_milli), _times_us(sample), strict=True
        ):
            if values:
                is_timed = has_times and len(known_us) == len(values)
                times_us = known_us if is_timed else range(0, len(values) * _STEP_US, _STEP_US)
                begin_us, end_us = min(begin_us, *times_us[:1]), max(end_us, *times_us[-1:])
                points.extend(_highest(values, times_us, stretches))
    begin_us = min(begin_us, end_us)
    demands = {
        identity: tuple(
            {
                name: ContainerDemand(anon_bytes=_curve(memory, begin_us), cpu_milli=_curve(cpu, begin_us))
                for name, (memory, cpu) in pod.items()
            }
            for _, pod in sorted(of.items(), key=lambda item: (-_peak(item[1]), item[0]))[:_MOST_RECORDED]
        )
        for identity, of in series.items()
    }
    return Recording(demands, end_us - begin_us + _STEP_US, has_times)


def _highest(values: Sequence[int], times_us: Sequence[int], stretches: int) -> Iterator[Point]:
    """Yield the highest value of each stretch, at its time."""
    size = -(-len(values) // stretches)
    for begin in range(0, len(values), size):
        highest = max(values[begin : begin + size])
        yield times_us[values.index(highest, begin)], highest


def _peak(pod: _Pod) -> int:
    return max((value for memory, _ in pod.values() for _, value in memory), default=0)


def _times_us(sample: ContainerSamples) -> tuple[Sequence[int], Sequence[int]]:
    return sample.memory_times_us, sample.cpu_times_us


def _share_a_clock(samples: Sequence[ContainerSamples]) -> bool:
    """Whether the times of all samples are known, and count from the same moment."""
    series = [sample for sample in samples if max(len(sample.memory_bytes), len(sample.cpu_milli)) > 1]
    return all(map(any, map(_times_us, series))) and len({sample.are_dates for sample in series}) < 2


def _curve(points: Sequence[Point], begin_us: int) -> Curve:
    """Return samples as straight lines from one to the next."""
    by_time: dict[int, int] = {}
    for time_us, value in points:
        by_time[time_us] = max(value, by_time.get(time_us, value))
    if len(set(by_time.values())) < 2:
        return constant(max(by_time.values(), default=0))
    return Curve(kept_knots([(time_us - begin_us, value) for time_us, value in sorted(by_time.items())]))


def demands_of(pod: Pod, older: Pod | None, recorded: Demands | None) -> Demands:
    """Return what the containers of a pod use: as recorded, or what its older version requests."""
    assumed = {
        usage.name: ContainerDemand(anon_bytes=constant(usage.anon_bytes))
        for usage in assumed_usage(pod, older).containers
    }
    found = dict(assumed)
    for name, demand in (recorded or {}).items():
        is_of_cpu_alone = demand.anon_bytes == constant(0) and name in assumed
        found[name] = replace(assumed[name], cpu_milli=demand.cpu_milli) if is_of_cpu_alone else demand
    return found


def replay(
    pods: Sequence[RunningPod],
    machines: Sequence[MachineSpec],
    profile: Profile,
    duration_us: int,
) -> dict[Identity, Fared]:
    """Run the pods on their nodes and return how the workloads fared."""
    scenario = Scenario(
        name="advice",
        duration_us=duration_us,
        nodes=tuple(NodeGroup(machine) for machine in machines),
        workloads=tuple(
            ScenarioWorkload(
                kind=POD,
                namespace=pod.pod.metadata.namespace_or_default,
                name=pod.pod.metadata.name or pod.pod.metadata.generate_name,
                pod=_as_simulated(pod.pod),
                demands=(pod.demands,),
                nodes=(pod.node,),
                recreate=False,
            )
            for pod in pods
        ),
        profile=profile,
    )
    owners = {pod.pod.key: pod.identity for pod in pods}
    kills: Counter[Identity] = Counter()
    evictions: Counter[Identity] = Counter()
    throttled: Counter[Identity] = Counter()
    never_ran: Counter[Identity] = Counter()
    for row in run_summary(simulate(scenario)).workloads:
        identity = owners[row.workload]
        kills[identity] += row.oom_kills
        evictions[identity] += row.evictions
        throttled[identity] += row.throttled_us
        never_ran[identity] += row.never_ran
    return {
        owner: Fared(kills[owner], evictions[owner], throttled[owner], never_ran[owner]) for owner in owners.values()
    }


def machines_of(nodes: Iterable[Node], config: KubeletConfiguration) -> list[MachineSpec]:
    """Return nodes as machines whose system uses all that is reserved for it."""
    machines = []
    for node in nodes:
        allocatable = node.status.allocatable
        capacity = {**allocatable, **node.status.capacity}
        memory_bytes = capacity[MEMORY].value if MEMORY in capacity else _PLENTY_BYTES
        hard_bytes = 0
        for division in node_allocatable({MEMORY: capacity[MEMORY]}, config).divisions if MEMORY in capacity else ():
            hard_bytes = division.hard_eviction.value
        usable_bytes = allocatable[MEMORY].value if MEMORY in allocatable else memory_bytes
        reserved_bytes = max(0, memory_bytes - usable_bytes - hard_bytes)
        machines.append(
            MachineSpec(
                name=node.name,
                memory_bytes=memory_bytes,
                cpu_milli=capacity[CPU].milli_value if CPU in capacity else _PLENTY_CPU_MILLI,
                nodefs=_PLENTY,
                system=SystemDemand(anon_bytes=constant(reserved_bytes)),
                config=replace(config, max_pods=max(config.max_pods, capacity[PODS].value))
                if PODS in capacity
                else config,
                labels=node.labels,
                taints=node.spec.taints,
            )
        )
    return machines


def room_for_all(pods: Iterable[tuple[Pod, Identity, Demands]]) -> tuple[list[RunningPod], list[MachineSpec]]:
    """Return the pods on a machine with room for all of them, where nothing but their own limits can stop them."""
    running = [RunningPod(pod, identity, _ALONE, demands) for pod, identity, demands in pods]
    most_bytes = sum(
        max(value for _, value in demand.anon_bytes.knots)
        for running_pod in running
        for demand in running_pod.demands.values()
    )
    machine = MachineSpec(
        name=_ALONE,
        memory_bytes=_PLENTY_BYTES + 2 * most_bytes,
        cpu_milli=_PLENTY_CPU_MILLI * 10,
        nodefs=_PLENTY,
        config=KubeletConfiguration(max_pods=len(running) + 1),
    )
    return running, [machine]


def _as_simulated(pod: Pod) -> Pod:
    """Return a pod as the simulator takes it: not bound yet, and without devices and huge pages, which it has not."""

    def bare(asked: ResourceRequirements) -> ResourceRequirements:
        return replace(asked, requests=_known(asked.requests), limits=_known(asked.limits))

    def each(containers: tuple[Container, ...]) -> tuple[Container, ...]:
        return tuple(replace(container, resources=bare(container.resources)) for container in containers)

    spec = pod.spec
    resources = None if spec.resources is None else bare(spec.resources)
    inner = {"containers": each(spec.containers), "init_containers": each(spec.init_containers)}
    return replace(pod, spec=replace(spec, node_name="", resources=resources, **inner))


def _known(amounts: ResourceList) -> ResourceList:
    return {name: amount for name, amount in amounts.items() if name in _SIMULATED}
