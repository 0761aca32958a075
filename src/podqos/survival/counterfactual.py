"""What would have spared a pod: the moment it was taken, with one thing changed, decided again.

A counterfactual is never a formula of its own. The pod is changed as its owner could change it, its class and score
are worked out as for any pod, and the order of that moment is made again by whoever made it. What follows is true for
that moment alone: memory that goes on growing reaches everybody in the end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from enum import StrEnum

from msgspec import Struct
from msgspec.structs import replace

from podqos.eviction.ranking import RankedPod, Ranking, rank
from podqos.eviction.signals import SIGNALS
from podqos.kernel.build import PAGE_BYTES
from podqos.model.pod import Container, Pod, QOSClass
from podqos.model.profile import Profile
from podqos.model.quantity import Quantity
from podqos.model.resources import CPU, EPHEMERAL_STORAGE, MEMORY, QOS_RESOURCES, ResourceRequirements
from podqos.model.snapshot import ContainerUsage, Snapshot
from podqos.qos.cgroup_settings import CgroupSettings
from podqos.qos.classes import classify
from podqos.qos.edits import Edit, edits_to_guaranteed
from podqos.qos.oom import OOMScore, oom_scores
from podqos.survival.orders import KilledContainer, OOMDomain, kernel_order
from podqos.survival.processes import ContainerProcesses, container_processes

_MIB = 1 << 20
_SOME_CPU = Quantity.parse("100m")


class PodChange(StrEnum):
    """What is changed about a pod."""

    LESS = "use less"
    REQUEST = "request more"
    GUARANTEED = "limits equal to requests"
    PRIORITY = "higher priority"


class Counterfactual(Struct, frozen=True, gc=False):
    """One change, and where it would have put the pod."""

    change: PodChange
    place: int
    """Among those who could be taken, first is 1."""
    others: int
    instead: str | None = None
    """Who would have been the first; None if it is still the same pod."""
    amount: int | None = None
    """Of ``LESS`` and ``REQUEST``: bytes (or inodes, processes); of ``PRIORITY``: its value."""
    resource: str = MEMORY
    oom_score_adj: int | None = None
    """What the container would have had."""
    edits: tuple[Edit, ...] = ()
    over_limit_bytes: int | None = None
    """By how much the container was above the limit that it would have had."""

    @property
    def saves(self) -> bool:
        """Whether somebody else would have been first, and the pod not killed by a limit of its own instead."""
        return self.instead is not None and self.over_limit_bytes is None


class KernelPlace(Struct, frozen=True, gc=False):
    """Where a container stood when the kernel chose, and what would have spared it."""

    place: int
    others: int
    counterfactuals: tuple[Counterfactual, ...]


# ---- the kernel ------------------------------------------------------------------------------------------------------


def kernel_counterfactuals(
    snapshot: Snapshot, settings: CgroupSettings, domain: OOMDomain, victim: tuple[str, str], profile: Profile
) -> KernelPlace | None:
    """Return what would have kept a container (uid, name) from being the kernel's choice in a domain.

    None if it is not among those the kernel can choose from. Pods that share its fate (it is alone in the domain, as
    at its own limit) have no counterfactual here.
    """
    inside = f"{domain.path.rstrip('/')}/"
    containers = [
        each
        for each in container_processes(snapshot, settings, profile)
        if any(f"{process.cgroup}/".startswith(inside) for process in each.processes)
    ]
    uid, name = victim
    index = next(
        (at for at, each in enumerate(containers) if (each.pod.pod.metadata.uid, each.usage.name) == (uid, name)), None
    )
    if index is None:
        return None
    moment = _KernelMoment(containers, index, domain)
    place, _ = moment.with_victim(containers[index])
    counterfactuals = tuple(_kernel_counterfactuals(moment, settings, profile)) if moment.has_others else ()
    return KernelPlace(place, len(containers) - 1, counterfactuals)


class _KernelMoment:
    """The containers of a domain, of which one can be exchanged."""

    def __init__(self, containers: Sequence[ContainerProcesses], index: int, domain: OOMDomain) -> None:
        self.victim = containers[index]
        self._before = containers[:index]
        self._after = containers[index + 1 :]
        self._domain = domain
        uid = self.victim.pod.pod.metadata.uid
        self.has_others = any(each.pod.pod.metadata.uid != uid for each in containers)
        self.others = len(containers) - 1

    def with_victim(self, victim: ContainerProcesses) -> tuple[int, str | None]:
        """Return the victim's place, and whose container is first if it is of another pod."""
        killed = kernel_order((*self._before, victim, *self._after), self._domain)
        return _place(killed, victim), _instead(killed, victim)


def _place(killed: Sequence[KilledContainer], victim: ContainerProcesses) -> int:
    return next(at for at, each in enumerate(killed, start=1) if _is_of(each, victim))


def _instead(killed: Sequence[KilledContainer], victim: ContainerProcesses) -> str | None:
    first = killed[0].pod
    return None if first.metadata.uid == victim.pod.pod.metadata.uid else first.key


def _is_of(killed: KilledContainer, container: ContainerProcesses) -> bool:
    return killed.usage.name == container.usage.name and killed.pod.metadata.uid == container.pod.pod.metadata.uid


def _kernel_counterfactuals(
    moment: _KernelMoment, settings: CgroupSettings, profile: Profile
) -> Iterator[Counterfactual]:
    less = _least(_MIB, moment.victim.usage.anon_bytes, lambda size: moment.with_victim(_lighter(moment.victim, size)))
    if less is not None:
        amount, (place, instead) = less
        yield Counterfactual(PodChange.LESS, place, moment.others, instead, amount)
    yield from _request_counterfactual(moment, settings, profile)
    yield from _guaranteed_counterfactual(moment, settings, profile)


def _lighter(container: ContainerProcesses, less_bytes: int) -> ContainerProcesses:
    """Return a container that holds less, evenly over its processes."""
    each = -(-less_bytes // PAGE_BYTES // len(container.processes))
    processes = tuple(replace(process, rss_pages=max(0, process.rss_pages - each)) for process in container.processes)
    return replace(container, processes=processes)


def _with_score(container: ContainerProcesses, score: OOMScore) -> ContainerProcesses:
    processes = tuple(replace(process, oom_score_adj=score.value) for process in container.processes)
    return replace(container, score=score, processes=processes)


def _request_counterfactual(
    moment: _KernelMoment, settings: CgroupSettings, profile: Profile
) -> Iterator[Counterfactual]:
    """Yield the smallest request, in whole mebibytes, with which somebody else goes first."""
    victim = moment.victim
    pod, name = victim.pod.pod, victim.usage.name
    resources = _container(pod, name).resources
    limit, request = resources.limits.get(MEMORY), resources.requests.get(MEMORY)
    if victim.qos_class is QOSClass.GUARANTEED or pod.spec.resources is not None:
        return
    least = _MIB if request is None else request.value
    most = settings.node_memory_bytes if limit is None else limit.value

    def scored(request_bytes: int) -> OOMScore:
        changed = _changed(pod, name, lambda old: _with_request(old, MEMORY, request_bytes))
        return _score(changed, name, settings, profile)

    found = _least(least, most, lambda size: moment.with_victim(_with_score(victim, scored(size))))
    if found is not None:
        amount, (place, instead) = found
        score = scored(amount).value
        yield Counterfactual(PodChange.REQUEST, place, moment.others, instead, amount, oom_score_adj=score)


def _guaranteed_counterfactual(
    moment: _KernelMoment, settings: CgroupSettings, profile: Profile
) -> Iterator[Counterfactual]:
    victim = moment.victim
    pod, name = victim.pod.pod, victim.usage.name
    edits = edits_to_guaranteed(pod, profile)
    if not edits or victim.qos_class is QOSClass.GUARANTEED:
        return
    changed = guaranteed(pod, victim.pod.containers)
    score = _score(changed, name, settings, profile)
    place, instead = moment.with_victim(_with_score(victim, score))
    yield Counterfactual(
        PodChange.GUARANTEED,
        place,
        moment.others,
        instead,
        oom_score_adj=score.value,
        edits=edits,
        over_limit_bytes=_over_limit(changed, victim.usage),
    )


def _score(pod: Pod, name: str, settings: CgroupSettings, profile: Profile) -> OOMScore:
    qos_class = classify(pod, profile).qos_class
    scores = oom_scores(pod, qos_class, settings.node_memory_bytes, profile)
    return next(score for score in scores if score.container == name)


def _over_limit(pod: Pod, usage: ContainerUsage) -> int | None:
    limit = _container(pod, usage.name).resources.limits.get(MEMORY)
    held = usage.anon_bytes + usage.page_table_bytes
    return held - limit.value if limit is not None and held > limit.value else None


# ---- the kubelet -----------------------------------------------------------------------------------------------------


def kubelet_place(snapshot: Snapshot, ranking: Ranking, uid: str) -> int | None:
    """Return a pod's place among those the kubelet may evict; None if it is not among them."""
    return next((at for at, each in enumerate(_evictable(snapshot, ranking), start=1) if _uid(each) == uid), None)


def kubelet_counterfactuals(snapshot: Snapshot, ranking: Ranking, uid: str) -> tuple[Counterfactual, ...]:
    """Return what would have kept a pod from being the kubelet's choice."""
    ranked = next((each for each in _evictable(snapshot, ranking) if _uid(each) == uid), None)
    if ranked is None or len(snapshot.pods) == 1:
        return ()
    return tuple(_kubelet_counterfactuals(snapshot, ranking, ranked))


def _kubelet_counterfactuals(snapshot: Snapshot, ranking: Ranking, ranked: RankedPod) -> Iterator[Counterfactual]:
    pod, uid = ranked.pod, ranked.pod.metadata.uid
    resource = SIGNALS[ranking.signal].resource
    others = len(_evictable(snapshot, ranking)) - 1

    def with_pod(change: PodChange, changed: Pod, amount: int | None, edits: tuple[Edit, ...] = ()) -> Counterfactual:
        order = _evictable(_exchanged(snapshot, changed), ranking)
        place = next((at for at, each in enumerate(order, start=1) if _uid(each) == uid), len(order))
        instead = order[0].pod.key if _uid(order[0]) != uid else None
        return Counterfactual(change, place, others, instead, amount, resource, edits=edits)

    if resource in {MEMORY, EPHEMERAL_STORAGE} and ranked.has_statistics:
        name = _largest(pod, resource)
        resources = _container(pod, name).resources
        limit, own = resources.limits.get(resource), resources.requests.get(resource)
        rest = ranked.request.value - (0 if own is None else own.value)
        most = snapshot.node.memory_bytes if limit is None else limit.value

        def requesting(amount: int) -> Counterfactual:
            raised = _changed(pod, name, lambda old: _with_request(old, resource, amount))
            return with_pod(PodChange.REQUEST, raised, amount + rest)

        def judge(amount: int) -> tuple[int, str | None]:
            counterfactual = requesting(amount)
            return counterfactual.place, counterfactual.instead

        found = _least(_MIB, most, judge)
        if found is not None:
            yield requesting(found[0])
    edits = edits_to_guaranteed(pod, ranking.profile)
    if resource == MEMORY and edits:
        usages = next(entry.containers for entry in snapshot.pods if entry.pod.metadata.uid == uid)
        changed = guaranteed(pod, usages)
        over = [_over_limit(changed, usage) for usage in usages]
        worst = max((each for each in over if each is not None), default=None)
        yield replace(with_pod(PodChange.GUARANTEED, changed, None, edits), over_limit_bytes=worst)
    for priority in sorted({each.priority + 1 for each in _evictable(snapshot, ranking) if _uid(each) != uid}):
        if priority > ranked.priority:
            counterfactual = with_pod(PodChange.PRIORITY, _with_priority(pod, priority), priority)
            if counterfactual.instead is not None:
                yield counterfactual
                return


def _evictable(snapshot: Snapshot, ranking: Ranking) -> list[RankedPod]:
    order = rank([entry.pod for entry in snapshot.pods], snapshot.stats, ranking)
    return [each for each in order if each.spared is None]


def _exchanged(snapshot: Snapshot, pod: Pod) -> Snapshot:
    uid = pod.metadata.uid
    pods = (replace(entry, pod=pod) if entry.pod.metadata.uid == uid else entry for entry in snapshot.pods)
    return replace(snapshot, pods=tuple(pods))


def _uid(ranked: RankedPod) -> str:
    return ranked.pod.metadata.uid


# ---- pods, changed ---------------------------------------------------------------------------------------------------


def guaranteed(pod: Pod, usages: Sequence[ContainerUsage]) -> Pod:
    """Return the pod with limits equal to requests; where neither is stated, as much as its containers use."""
    used = {usage.name: usage.working_set_bytes for usage in usages}

    def equal(resources: ResourceRequirements, used_bytes: int) -> ResourceRequirements:
        unknown = {CPU: _SOME_CPU, MEMORY: Quantity.of_units(max(1, -(-used_bytes // _MIB)) * _MIB, "BinarySI")}
        both = {
            name: resources.limits.get(name) or resources.requests.get(name) or unknown[name] for name in QOS_RESOURCES
        }
        return replace(resources, requests=resources.requests | both, limits=resources.limits | both)

    def containers(given: Sequence[Container]) -> tuple[Container, ...]:
        return tuple(replace(each, resources=equal(each.resources, used.get(each.name, 0))) for each in given)

    spec = pod.spec
    changed = replace(
        spec,
        containers=containers(spec.containers),
        init_containers=containers(spec.init_containers),
        resources=None if spec.resources is None else equal(spec.resources, sum(used.values())),
    )
    # What the API server recorded is the class of the pod as it was.
    return replace(pod, spec=changed, status=replace(pod.status, qos_class=None))


def _changed(pod: Pod, name: str, change: Callable[[ResourceRequirements], ResourceRequirements]) -> Pod:
    def containers(given: Sequence[Container]) -> tuple[Container, ...]:
        return tuple(replace(each, resources=change(each.resources)) if each.name == name else each for each in given)

    spec = pod.spec
    changed = replace(spec, containers=containers(spec.containers), init_containers=containers(spec.init_containers))
    return replace(pod, spec=changed, status=replace(pod.status, qos_class=None))


def _with_request(resources: ResourceRequirements, resource: str, amount: int) -> ResourceRequirements:
    return replace(resources, requests=resources.requests | {resource: Quantity.of_units(amount, "BinarySI")})


def _with_priority(pod: Pod, priority: int) -> Pod:
    return replace(pod, spec=replace(pod.spec, priority=priority))


def _container(pod: Pod, name: str) -> Container:
    spec = pod.spec
    return next(
        each for each in (*spec.containers, *spec.init_containers, *spec.ephemeral_containers) if each.name == name
    )


def _largest(pod: Pod, resource: str) -> str:
    """Return the regular container that requests most, the first of equals."""
    return max(
        pod.spec.containers,
        key=lambda each: each.resources.requests[resource].value if resource in each.resources.requests else 0,
    ).name


def _least(
    low: int, high: int, judge: Callable[[int], tuple[int, str | None]]
) -> tuple[int, tuple[int, str | None]] | None:
    """Return the smallest amount, in whole mebibytes, with which somebody else is first; None if there is none."""
    first, last = -(-low // _MIB), high // _MIB
    if first > last or judge(last * _MIB)[1] is None:
        return None
    while first < last:
        middle = (first + last) // 2
        if judge(middle * _MIB)[1] is None:
            first = middle + 1
        else:
            last = middle
    return last * _MIB, judge(last * _MIB)
