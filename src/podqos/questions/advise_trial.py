"""Try advice before it is given: admit it, place it, replay what was recorded, check it; raise it or take it back.

Both versions of all workloads are tried in the same way, so that every difference comes from the advice. Pods that
controllers would make are placed as by ``podqos place``; what has a node keeps it. Then they run in the simulator:
every pod of a workload uses what a recorded one used, in turn; what was not recorded uses what it requests, all the
time. The whole working set counts as private memory, of which the kernel can reclaim nothing, and the system uses all
that is reserved for it. Without nodes pods run one by one, and nothing but their own limits can stop them.

A workload passes with no OOM kill, no eviction, and throttled no longer than now. Workloads that nobody changes have to
fare no worse than now, too: otherwise those whose requests were lowered are raised first, and then left as they are.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property

from msgspec import Struct
from msgspec.structs import replace

from podqos.advice.sizing.applying import ContainerAdvice, PodAdvice
from podqos.advice.sizing.goals import with_containers
from podqos.advice.sizing.matching import container_of, owner_of
from podqos.advice.sizing.matrix import Description, Recommendation
from podqos.advice.sizing.raising import Shortage, not_lowered, raised, with_amounts
from podqos.advice.sizing.samples import ContainerSamples
from podqos.advice.sizing.sizing import UsageHistory
from podqos.advice.sizing.tried import AdviceTrial, Fate, Raised, Reason, Untried, WorkloadTrial
from podqos.errors import InputError
from podqos.manifest.problems import Problem, Severity
from podqos.model.effective import pod_requests
from podqos.model.kubelet_config import KubeletConfiguration
from podqos.model.node import PODS, Node
from podqos.model.pod import Container, Pod, Workload
from podqos.model.profile import Profile
from podqos.model.quantity import ZERO, Quantity
from podqos.model.resources import CPU, EPHEMERAL_STORAGE, MEMORY, ResourceList, ResourceRequirements
from podqos.model.time_units import MINUTE_US, SECOND_US
from podqos.objects.kubelet_node import Kubelet
from podqos.objects.objects import FoundWorkload, Objects
from podqos.orders.drift import Identity
from podqos.orders.usage import assumed_usage
from podqos.placement.allocatable import node_allocatable
from podqos.placement.place import PlacementSurroundings, Status, place
from podqos.placement.workloads import DAEMON_SET, POD, pods_of
from podqos.qos.classes import classify
from podqos.questions.place import PlacementInput, surroundings_of
from podqos.sim.engine.curve import Curve, constant
from podqos.sim.engine.curve import kept as kept_knots
from podqos.sim.run import simulate
from podqos.sim.scenario.scenario import (
    ContainerDemand,
    Filesystem,
    MachineSpec,
    NodeGroup,
    Scenario,
    ScenarioWorkload,
    SystemDemand,
)
from podqos.sim.summary import run_summary

_MOST_PLACED, _MOST_PODS = 2_000_000, 20_000
"""Pods × nodes, and pods: beyond, placing them takes too long for a trial."""
_MOST_REPLAYED = 3_000
"""Beyond this, pods are replayed one by one and not on their nodes."""
_RUNGS, _ROUNDS = 2, 5
_MOST_POINTS = 30_000
"""A long recording is cut into stretches, each of which counts with its highest value; so many of all together."""
_MOST_STRETCHES, _LEAST_STRETCHES = 240, 12
_MOST_RECORDED = 50
"""Of the pods of one workload: those that used most."""
_NEVER_US = 1 << 62
_STEP_US = MINUTE_US
"""Without times, samples are taken to be this far apart."""
_PLENTY = Filesystem(capacity_bytes=1 << 50, inodes=1 << 40)
_PLENTY_CPU_MILLI, _PLENTY_BYTES = 1_000_000, 64 << 30
_SIMULATED = (CPU, MEMORY, EPHEMERAL_STORAGE)

Store = Callable[[FoundWorkload, Pod], tuple[Pod, str]]
"""From a workload and its pod to the pod as the API server would store it, and why it would not."""
CheckAll = Callable[[Mapping[Identity, Pod]], Mapping[Identity, str]]
"""From the workloads that change, and their pods as written, to what is found about some of them, and is not now."""
Demands = Mapping[str, ContainerDemand]
_Point = tuple[int, int]
"""Time in microseconds; bytes, or thousandths of a core."""


class Candidate(Struct, frozen=True):
    """Advice about one workload that is to be tried, and what became of it."""

    found: FoundWorkload
    identity: Identity
    usages: Mapping[str, UsageHistory]
    before: Pod | None
    """As the API server stores it; None for a workload that does not exist yet."""
    advice: PodAdvice
    after: Pod
    refusal: str
    description: Description | None = None
    recommendation: Recommendation | None = None
    priority_class: str | None = None
    failed: tuple[Reason, ...] = ()
    rung: int = 0
    """How often it was raised."""
    is_withheld: bool = False
    worst: Fate | None = None
    """What became of it when it failed."""
    trial: WorkloadTrial | None = None
    """None where it changes nothing."""

    @property
    def written(self) -> Pod:
        """The pod as its manifest has it."""
        return self.found.workload.pod

    @property
    def changes(self) -> bool:
        """Whether anything of it is other than now."""
        return self.before != self.after

    @property
    def used_bytes(self) -> int:
        """The most memory that its containers were measured to use."""
        return sum(max(usage.memory_bytes, default=0) for usage in self.usages.values())


# ---- raised or taken back --------------------------------------------------------------------------------------------


def climb(
    candidates: Sequence[Candidate], trials: Trials, store: Store, checked: CheckAll
) -> tuple[list[Candidate], AdviceTrial | None]:
    """Try all advice together, and raise or take back what does not pass, until the rest does; and how all of it fared.

    What the checks find only then is taken back, too. Nothing was tried where nothing changes.
    """
    sized = {candidate.identity: candidate if candidate.changes else _as_it_is(candidate) for candidate in candidates}
    if not any(candidate.changes for candidate in candidates):
        return list(sized.values()), None
    tops = {
        identity: _withheld(top, (Reason.REFUSED,), None) if top.refusal else top for identity, top in sized.items()
    }
    fates = trials.run(tops)
    for _ in range(_ROUNDS):
        failing = _failing(tops, fates, trials.before)
        if not failing:
            break
        for identity, reasons in failing.items():
            tops[identity] = _next(tops[identity], reasons, fates[identity], store)
        fates = trials.run(tops)
    while found := checked({each.identity: each.advice.pod for each in tops.values() if _is_advised(each)}):
        for identity, finding in found.items():
            tops[identity] = replace(_withheld(tops[identity], (Reason.FOUND,), None), refusal=finding)
        fates = trials.run(tops)
    ends = []
    for identity, top in tops.items():
        made, now = None, trials.before.get(identity)
        if top.changes or top.is_withheld:
            made = WorkloadTrial(
                passed=not top.is_withheld and not any(_reasons(fates[identity], now)),
                before=now or Fate(),
                after=top.worst if top.is_withheld and top.worst is not None else fates[identity],
                failed=top.failed,
                raised=() if top.is_withheld else tuple(_raises(sized[identity].advice, top)),
                untried=tuple(trials.untried(top)),
            )
        ends.append(replace(top, trial=made))
    return ends, _whole(ends, fates, trials)


def _is_advised(top: Candidate) -> bool:
    return top.changes and not top.is_withheld


def _failing(
    tops: Mapping[Identity, Candidate], fates: Mapping[Identity, Fate], before: Mapping[Identity, Fate]
) -> dict[Identity, tuple[Reason, ...]]:
    """Return the advice that did not pass, and why."""
    failing = {}
    for identity, top in tops.items():
        reasons = tuple(_reasons(fates[identity], before.get(identity)))
        if reasons and _is_advised(top):
            failing[identity] = reasons
    if failing:
        return failing
    unchanged = ((fates[each], now) for each, now in before.items() if each not in tops or not tops[each].changes)
    if not any(_deaths(fate) > _deaths(now) for fate, now in unchanged):
        return {}
    return {
        identity: (Reason.EVICTED,)
        for identity, top in tops.items()
        if top.changes and top.before is not None and _memory(top.after) < _memory(top.before)
    }


def _reasons(fate: Fate, before: Fate | None) -> Iterator[Reason]:
    if fate.oom_kills:
        yield Reason.OOM_KILLED
    if fate.evictions:
        yield Reason.EVICTED
    if before is not None and (fate.throttled_seconds or 0) > (before.throttled_seconds or 0):
        yield Reason.THROTTLED


def _deaths(fate: Fate) -> int:
    return (fate.oom_kills or 0) + (fate.evictions or 0)


def _memory(pod: Pod) -> Quantity:
    return pod_requests(pod).get(MEMORY, ZERO)


def _next(candidate: Candidate, reasons: tuple[Reason, ...], fate: Fate, store: Store) -> Candidate:
    """Return advice with what ran short raised, or, where that was done or does nothing, none."""
    short = Shortage(
        killed=Reason.OOM_KILLED in reasons,
        evicted=Reason.EVICTED in reasons,
        throttled=Reason.THROTTLED in reasons,
    )
    own = candidate.advice
    for rung in range(candidate.rung, _RUNGS):
        containers = tuple(
            raised(container, candidate.usages.get(container.container), short, own.qos_class)
            if rung == 0
            else not_lowered(container, candidate.usages.get(container.container), short)
            for container in own.containers
        )
        if containers != own.containers:
            advice = with_containers(own, containers)
            after, refusal = store(candidate.found, advice.pod)
            if not refusal and after != candidate.before:
                failed = tuple(dict.fromkeys((*candidate.failed, *reasons)))
                return replace(candidate, advice=advice, after=after, rung=rung + 1, failed=failed, worst=fate)
    return _withheld(candidate, reasons, fate)


def _withheld(candidate: Candidate, reasons: tuple[Reason, ...], fate: Fate | None) -> Candidate:
    """Return a workload as it is. One that does not exist yet stays as it was sized: there is nothing to go back to."""
    failed = tuple(dict.fromkeys((*candidate.failed, *reasons)))
    if candidate.before is None:
        return replace(candidate, is_withheld=True, failed=failed, worst=fate)
    same = _as_it_is(candidate)
    return replace(
        same,
        advice=replace(same.advice, qos_class=candidate.advice.qos_class),
        after=candidate.before,
        is_withheld=True,
        failed=failed,
        worst=fate or candidate.worst,
    )


def _as_it_is(candidate: Candidate) -> Candidate:
    """Return a workload with the amounts it states: others that come to the same are no advice."""
    assert candidate.before is not None
    containers = tuple(
        with_amounts(own, candidate.usages.get(own.container), own.requests_before, own.limits_before)
        for own in candidate.advice.containers
    )
    is_short = any(container.needs_choice for container in containers)
    qos_class = candidate.advice.qos_class if is_short else classify(candidate.before).qos_class
    return replace(candidate, advice=PodAdvice(candidate.written, qos_class, containers))


def _raises(sized: PodAdvice, candidate: Candidate) -> Iterator[Raised]:
    """Yield the amounts that are not what the samples alone gave."""
    memory = Reason.OOM_KILLED if Reason.OOM_KILLED in candidate.failed else Reason.EVICTED
    for old, new in zip(sized.containers, candidate.advice.containers, strict=True):
        for resource, because in ((CPU, Reason.THROTTLED), (MEMORY, memory)):
            for side in ("requests", "limits"):
                before, after = _amount(old, side, resource), _amount(new, side, resource)
                if after is not None and after != before:
                    yield Raised(new.container, f"{side}.{resource}", before, after, because)


def _amount(container: ContainerAdvice, side: str, resource: str) -> Quantity | None:
    amounts: ResourceList = getattr(container, side)
    return amounts.get(resource)


def _whole(ends: Sequence[Candidate], fates: Mapping[Identity, Fate], trials: Trials) -> AdviceTrial:
    untried = {untried for end in ends for untried in trials.untried(end)}
    is_measured = any(usage.memory_bytes for end in ends for usage in end.usages.values())
    pending = {}
    for identity, fate in sorted(fates.items()):
        if (fate.pending or 0) > (trials.before.get(identity, Fate()).pending or 0):
            pending[str(identity)] = fate.pending or 0
    return AdviceTrial(
        nodes=0 if trials.ground is None else len(trials.ground.nodes),
        pods=trials.pods or len(fates),
        before=trials.together(trials.before),
        after=trials.together(fates),
        replayed_seconds=trials.recorded_seconds if is_measured else None,
        pending=pending,
        untried=tuple(each for each in Untried if each in untried),
    )


# ---- tried -----------------------------------------------------------------------------------------------------------


class Ground(Struct, frozen=True):
    """The nodes, and what else decides where pods go."""

    surroundings: PlacementSurroundings
    config: KubeletConfiguration

    @property
    def nodes(self) -> tuple[Node, ...]:
        """The nodes at hand."""
        return self.surroundings.nodes


def ground_of(objects: Objects, kubelet: Kubelet | None, profile: Profile) -> Ground | None:
    """Return the nodes among the objects; None where there are none to place on.

    Nodes on which nothing can be placed keep nobody from advice: why is noted.
    """
    if not objects.of(Node):
        return None
    try:
        placing = PlacementInput(objects.only(()), kubelet=kubelet, profile=profile)
    except InputError as error:
        objects.note(Problem("Nodes", 0, 0, Severity.WARNING, "", f"not used for placement: {error.what}", error.fix))
        return None
    nodes = tuple({node.name: node for node in placing.nodes if node.name}.values())
    if not nodes:
        return None
    return Ground(surroundings_of(objects, nodes, profile), placing.config or KubeletConfiguration())


def replicas_on(workload: Workload, nodes: Sequence[Node], profile: Profile) -> int | None:
    """Return how many pods a workload has; None for a DaemonSet on unknown nodes."""
    if workload.kind == DAEMON_SET:
        return sum(1 for _ in pods_of(workload, nodes, profile=profile)) if nodes else None
    return 1 if workload.kind == POD or workload.replicas is None else workload.replicas


class _RunningPod(Struct, frozen=True):
    """A pod where it runs, and what it uses."""

    pod: Pod
    identity: Identity
    node: str
    demands: Demands


class Trials:
    """Tries versions of the same workloads, on the same nodes and with the same usage.

    ``others`` are the workloads that nobody advises, with their pods as stored.
    """

    def __init__(
        self,
        candidates: Sequence[Candidate],
        others: Mapping[Identity, tuple[Workload, Pod]],
        ground: Ground | None,
        recording: Recording,
        profile: Profile,
    ) -> None:
        own = {candidate.identity: candidate.found.workload for candidate in candidates}
        self._workloads = {**own, **{identity: workload for identity, (workload, _) in others.items()}}
        self._others = {identity: pod for identity, (_, pod) in others.items()}
        self._standing = {each.identity: each.before for each in candidates if each.before is not None} | self._others
        self._usages = {candidate.identity: candidate.usages for candidate in candidates}
        self._recording, self._profile = recording, profile
        self.pods = self._made_count = 0
        """How many pods the advice that was tried last has."""
        self._is_too_large = False
        if ground is not None:
            count = sum(replicas_on(each, ground.nodes, profile) or 0 for each in self._workloads.values())
            self._is_too_large = count > _MOST_PODS or count * len(ground.nodes) > _MOST_PLACED
        self.ground = None if self._is_too_large else ground

    @cached_property
    def before(self) -> Mapping[Identity, Fate]:
        """What becomes of the workloads as they are."""
        return self._run(self._standing)

    @property
    def recorded_seconds(self) -> float:
        """How long the recording is."""
        return self._recording.duration_us / SECOND_US

    def run(self, tops: Mapping[Identity, Candidate]) -> Mapping[Identity, Fate]:
        """Return what becomes of all workloads with this advice."""
        fates = self._run(self._others | {identity: top.after for identity, top in tops.items()})
        self.pods = self._made_count
        return fates

    def together(self, fates: Mapping[Identity, Fate]) -> Fate:
        """Return what becomes of all workloads as one."""
        each = fates.values()
        return Fate(
            pending=None if self.ground is None else sum(fate.pending or 0 for fate in each),
            oom_kills=sum(fate.oom_kills or 0 for fate in each),
            evictions=sum(fate.evictions or 0 for fate in each),
            throttled_seconds=round(sum(fate.throttled_seconds or 0 for fate in each), 3),
        )

    def untried(self, candidate: Candidate) -> Iterator[Untried]:
        """Yield what could not be tried about a workload."""
        if self._is_too_large:
            yield Untried.TOO_MANY
        elif self.ground is None:
            yield Untried.NO_NODES
        usages, names = candidate.usages, [container.name for container in candidate.written.running_containers]
        if not all(name in usages and usages[name].memory_bytes for name in names):
            yield Untried.NO_SAMPLES
        if not self._recording.has_times and any(not usage.is_expected for usage in usages.values()):
            yield Untried.NO_TIMES
        if any(usage.oom_kills for usage in usages.values()):
            yield Untried.NEED_UNKNOWN

    def _run(self, pods: Mapping[Identity, Pod]) -> dict[Identity, Fate]:
        pending: Counter[Identity] = Counter()
        if self.ground is None:
            fared = self._alone(pods)
        else:
            made, owners = self._made(pods, self.ground.nodes)
            self._made_count = len(made)
            placed: dict[str, str] = {}
            for outcome in place(made, self.ground.surroundings).outcomes:
                if outcome.status is Status.PENDING:
                    pending[owners[outcome.pod]] += 1
                elif outcome.node is not None:
                    placed[outcome.pod] = outcome.node
            is_small = len(made) <= _MOST_REPLAYED
            fared = self._on_nodes(self.ground, made, owners, placed) if is_small else self._alone(pods)
        fates = {}
        for identity in pods:
            own = fared.get(identity, _Fared())
            waiting = None if self.ground is None else pending[identity] + own.never_ran
            fates[identity] = Fate(waiting, own.oom_kills, own.evictions, round(own.throttled_us / SECOND_US, 3))
        return fates

    def _made(self, pods: Mapping[Identity, Pod], nodes: Sequence[Node]) -> tuple[list[Pod], dict[str, Identity]]:
        """Return the pods that controllers would make, each under a name of its own, and whose they are."""
        made: list[Pod] = []
        owners: dict[str, Identity] = {}
        for identity, pod in pods.items():
            # A pod that changes is made anew, and asks the scheduler.
            is_bound = pod == self._standing.get(identity) or not pod.spec.node_name
            template = pod if is_bound else replace(pod, spec=replace(pod.spec, node_name=""))
            for one in pods_of(replace(self._workloads[identity], pod=template), nodes, profile=self._profile):
                named, number = one, 1
                while named.key in owners:
                    number += 1
                    named = replace(one, metadata=replace(one.metadata, name=f"{one.metadata.name}-{number}"))
                owners[named.key] = identity
                made.append(named)
        return made, owners

    def _on_nodes(
        self, ground: Ground, pods: Sequence[Pod], owners: Mapping[str, Identity], placed: Mapping[str, str]
    ) -> dict[Identity, _Fared]:
        turns: Counter[Identity] = Counter()
        running = []
        for pod in pods:
            identity = owners[pod.key]
            number, workload = turns[identity], self._workloads[identity]
            turns[identity] += 1
            # More replicas share the same load: so many used what was recorded.
            is_spare = workload.kind != DAEMON_SET and number >= (workload.replicas or 1)
            if pod.key in placed and not is_spare:
                demands = self._demands(identity, pod, number)
                running.append(_RunningPod(pod, identity, placed[pod.key], demands))
        used = {each.node for each in running}
        machines = [_machine_of(node, ground.config) for node in ground.nodes if node.name in used]
        return self._replayed(running, machines) if running else {}

    def _alone(self, pods: Mapping[Identity, Pod]) -> dict[Identity, _Fared]:
        """Run pods on a machine with room for all, where nothing but their own limits can stop them."""
        running = []
        for identity, pod in pods.items():
            for number in range(max(1, len(self._recording.demands.get(identity, ())))):
                name = f"{identity.name}-{identity.kind.lower()}-{number}"
                one = replace(pod, metadata=replace(pod.metadata, name=name, namespace=identity.namespace))
                running.append(_RunningPod(one, identity, "alone", self._demands(identity, one, number)))
        curves = (demand.anon_bytes for each in running for demand in each.demands.values())
        most_bytes = sum(max(value for _, value in curve.knots) for curve in curves)
        machine = MachineSpec(
            name="alone",
            memory_bytes=_PLENTY_BYTES + 2 * most_bytes,
            cpu_milli=_PLENTY_CPU_MILLI * 10,
            nodefs=_PLENTY,
            config=KubeletConfiguration(max_pods=len(running) + 1),
        )
        return self._replayed(running, [machine])

    def _demands(self, identity: Identity, pod: Pod, number: int) -> Demands:
        """Return what the containers of a pod use: as recorded or expected, or what its older version requests."""
        recorded = self._recording.demands.get(identity)
        known: dict[str, ContainerDemand] = {
            name: ContainerDemand(
                anon_bytes=constant(max(usage.memory_bytes, default=0)),
                cpu_milli=constant(max(usage.cpu_milli, default=0)),
            )
            for name, usage in self._usages.get(identity, {}).items()
            if usage.is_expected
        }
        if recorded:
            known.update(recorded[number % len(recorded)])
        assumed = {
            usage.name: ContainerDemand(anon_bytes=constant(usage.anon_bytes))
            for usage in assumed_usage(pod, self._standing.get(identity)).containers
        }
        found = dict(assumed)
        for name, demand in known.items():
            is_of_cpu_alone = demand.anon_bytes == constant(0) and name in assumed
            found[name] = replace(assumed[name], cpu_milli=demand.cpu_milli) if is_of_cpu_alone else demand
        return found

    def _replayed(self, pods: Sequence[_RunningPod], machines: Sequence[MachineSpec]) -> dict[Identity, _Fared]:
        """Run the pods on their nodes and return how the workloads fared."""
        scenario = Scenario(
            name="advice",
            duration_us=self._recording.duration_us,
            nodes=tuple(NodeGroup(machine) for machine in machines),
            workloads=tuple(
                ScenarioWorkload(
                    kind=POD,
                    namespace=each.pod.metadata.namespace_or_default,
                    name=each.pod.metadata.name or each.pod.metadata.generate_name,
                    pod=_as_simulated(each.pod),
                    demands=(each.demands,),
                    nodes=(each.node,),
                    recreate=False,
                )
                for each in pods
            ),
            profile=self._profile,
        )
        owners = {each.pod.key: each.identity for each in pods}
        fared = dict.fromkeys(owners.values(), _Fared())
        for row in run_summary(simulate(scenario)).workloads:
            own = fared[owners[row.workload]]
            fared[owners[row.workload]] = _Fared(
                own.oom_kills + row.oom_kills,
                own.evictions + row.evictions,
                own.throttled_us + row.throttled_us,
                own.never_ran + row.never_ran,
            )
        return fared


class _Fared(Struct, frozen=True):
    """How the pods of a workload fared."""

    oom_kills: int = 0
    evictions: int = 0
    throttled_us: int = 0
    never_ran: int = 0
    """Pods that the kubelet of their node does not take."""


def _machine_of(node: Node, config: KubeletConfiguration) -> MachineSpec:
    """Return a node as a machine whose system uses all that is reserved for it."""
    allocatable = node.status.allocatable
    capacity = {**allocatable, **node.status.capacity}
    memory_bytes, hard_bytes = _PLENTY_BYTES, 0
    if MEMORY in capacity:
        memory_bytes = capacity[MEMORY].value
        for division in node_allocatable({MEMORY: capacity[MEMORY]}, config).divisions:
            hard_bytes = division.hard_eviction.value
    usable_bytes = allocatable[MEMORY].value if MEMORY in allocatable else memory_bytes
    most_pods = max(config.max_pods, capacity[PODS].value) if PODS in capacity else config.max_pods
    return MachineSpec(
        name=node.name,
        memory_bytes=memory_bytes,
        cpu_milli=capacity[CPU].milli_value if CPU in capacity else _PLENTY_CPU_MILLI,
        nodefs=_PLENTY,
        system=SystemDemand(anon_bytes=constant(max(0, memory_bytes - usable_bytes - hard_bytes))),
        config=replace(config, max_pods=most_pods),
        labels=node.labels,
        taints=node.spec.taints,
    )


def _as_simulated(pod: Pod) -> Pod:
    """Return a pod as the simulator takes it: not bound yet, and without devices and huge pages, which it has not."""

    def known(amounts: ResourceList) -> ResourceList:
        return {name: amount for name, amount in amounts.items() if name in _SIMULATED}

    def bare(asked: ResourceRequirements) -> ResourceRequirements:
        return replace(asked, requests=known(asked.requests), limits=known(asked.limits))

    def each(containers: tuple[Container, ...]) -> tuple[Container, ...]:
        return tuple(replace(container, resources=bare(container.resources)) for container in containers)

    spec = pod.spec
    resources = None if spec.resources is None else bare(spec.resources)
    inner = {"containers": each(spec.containers), "init_containers": each(spec.init_containers)}
    return replace(pod, spec=replace(spec, node_name="", resources=resources, **inner))


# ---- what was recorded -----------------------------------------------------------------------------------------------

_Pod = dict[str, tuple[list[_Point], list[_Point]]]
"""By container: memory and cpu."""


class Recording(Struct, frozen=True):
    """What pods used over time, by workload: an entry per recorded pod, those that used most first."""

    demands: Mapping[Identity, tuple[Demands, ...]]
    duration_us: int
    has_times: bool
    """Whether the times of all samples are known."""


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
        of_sample = ((sample.memory_bytes, sample.memory_times_us), (sample.cpu_milli, sample.cpu_times_us))
        for points, (values, known_us) in zip(own, of_sample, strict=True):
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


def _highest(values: Sequence[int], times_us: Sequence[int], stretches: int) -> Iterator[_Point]:
    """Yield the highest value of each stretch, at its time."""
    size = -(-len(values) // stretches)
    for begin in range(0, len(values), size):
        highest = max(values[begin : begin + size])
        yield times_us[values.index(highest, begin)], highest


def _peak(pod: _Pod) -> int:
    return max((value for memory, _ in pod.values() for _, value in memory), default=0)


def _share_a_clock(samples: Sequence[ContainerSamples]) -> bool:
    """Whether the times of all samples are known, and count from the same moment."""
    series = [sample for sample in samples if max(len(sample.memory_bytes), len(sample.cpu_milli)) > 1]
    is_timed = all(sample.memory_times_us or sample.cpu_times_us for sample in series)
    return is_timed and len({sample.are_dates for sample in series}) < 2


def _curve(points: Sequence[_Point], begin_us: int) -> Curve:
    """Return samples as straight lines from one to the next."""
    by_time: dict[int, int] = {}
    for time_us, value in points:
        by_time[time_us] = max(value, by_time.get(time_us, value))
    if len(set(by_time.values())) < 2:
        return constant(max(by_time.values(), default=0))
    return Curve(kept_knots([(time_us - begin_us, value) for time_us, value in sorted(by_time.items())]))
