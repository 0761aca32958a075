"""What would have saved a pod: the decision that killed it, repeated with one change.

A counterfactual is never a formula of its own. The pod is changed as its owner could change it, in its manifest: all
its pods on the node change together, the amounts are valid, and the node must still have room for the requests. Then
kubelet or kernel decides again on the same figures (``trials``). The result holds for that moment only: memory that
keeps growing reaches every pod in the end.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum

from msgspec import Struct
from msgspec.structs import replace

from podqos.admission.validation import validate_resources
from podqos.model.effective import pod_level_is_set, pod_limits, pod_requests
from podqos.model.pod import Container, EmptyDir, Pod, PodSpec, Volume
from podqos.model.policy import LimitRange
from podqos.model.profile import Profile
from podqos.model.quantity import Quantity
from podqos.model.resources import CPU, EPHEMERAL_STORAGE, MEMORY, QOS_RESOURCES, ResourceRequirements, is_pod_level
from podqos.placement.filters import lacking
from podqos.placement.pods import Amounts, counted
from podqos.placement.reasons import Insufficient
from podqos.qos.classes import deciding_resources
from podqos.qos.edits import Edit

MIB = 1 << 20
SOME_CPU = Quantity.parse("100m")
"""For a container that states nothing about CPU; what it needs is not known here."""


def holder_of(pod: Pod, container: str, resource: str, profile: Profile) -> str | None:
    """Return whose request counts: the container's, or None for the pod's own, which overrides it once set."""
    alone = profile.pod_level_resources and pod_level_is_set(pod) and is_pod_level(resource)
    return None if alone else container


def resources_of(pod: Pod, container: str | None) -> ResourceRequirements:
    """Return what a container states, or with None the pod itself."""
    spec = pod.spec
    if container is None:
        assert spec.resources is not None
        return spec.resources
    every = (*spec.containers, *spec.init_containers, *spec.ephemeral_containers)
    return next(each.resources for each in every if each.name == container)


def with_request(pod: Pod, container: str | None, resource: str, amount: int) -> Pod:
    """Return the pod with another request of a container, or with None of the pod itself."""
    return _stating(pod, container, lambda old: replace(old, requests=old.requests | {resource: _bytes(amount)}))


def with_limit(pod: Pod, container: str | None, resource: str, amount: int) -> Pod:
    """Return the pod with another limit of a container, or with None of the pod itself."""
    return _stating(pod, container, lambda old: replace(old, limits=old.limits | {resource: _bytes(amount)}))


def with_size_limit(pod: Pod, name: str, amount: int) -> Pod:
    """Return the pod with another size limit of an emptyDir."""

    def sized(volume: Volume) -> Volume:
        if volume.name != name:
            return volume
        directory = volume.empty_dir or EmptyDir()
        return replace(volume, empty_dir=replace(directory, size_limit=_bytes(amount)))

    return replace(pod, spec=replace(pod.spec, volumes=tuple(map(sized, pod.spec.volumes))))


def with_priority(pod: Pod, priority: int) -> Pod:
    """Return the pod with another priority."""
    return replace(pod, spec=replace(pod.spec, priority=priority))


def guaranteed(pod: Pod, used: Mapping[str, int], profile: Profile) -> Pod:
    """Return the pod with limits equal to requests.

    Memory is what is stated, the limit before the request, and never less than its containers use with some headroom:
    a limit of what is in use kills at the next allocation.
    """
    spec = pod.spec
    if spec.resources is not None and holder_of(pod, "", MEMORY, profile) is None:
        return _of(pod, replace(spec, resources=_equal(spec.resources, sum(used.values()))))
    most = max(used.values(), default=0)

    def container(each: Container) -> Container:
        stated = MEMORY in each.resources.limits or MEMORY in each.resources.requests
        return replace(each, resources=_equal(each.resources, used.get(each.name, 0 if stated else most)))

    return _of(pod, each_container(spec, container))


def _equal(resources: ResourceRequirements, used_bytes: int) -> ResourceRequirements:
    both = {name: resources.limits.get(name) or resources.requests.get(name) for name in QOS_RESOURCES}
    least = in_mebibytes(with_headroom(used_bytes))
    stated = both[MEMORY]
    equal = {CPU: both[CPU] or SOME_CPU, MEMORY: least if stated is None or stated < least else stated}
    return replace(resources, requests=resources.requests | equal, limits=resources.limits | equal)


def edits_for(pod: Pod, used: Mapping[str, int], profile: Profile) -> tuple[Edit, ...]:
    """Return the lines that make the pod Guaranteed as ``guaranteed`` does, once the API server has defaulted it.

    A request that is left out follows its limit. Of a CPU about which nothing is stated the value has to be chosen.
    """
    made = dict(deciding_resources(guaranteed(pod, used, profile), profile))
    edits: list[Edit] = []
    for place, stated in deciding_resources(pod, profile):
        for name in QOS_RESOURCES:
            value = made[place].limits[name]
            limit, request = stated.limits.get(name), stated.requests.get(name)
            is_unknown = name == CPU and not limit and not request
            written = None if is_unknown else value
            if not limit or limit != value:
                edits.append(Edit(f"{place.path}.resources.limits.{name}", written, limit))
            # The request of a pod as a whole would become what its containers request.
            is_left_out = request is None and not place.is_pod
            if not is_left_out and request != value:
                edits.append(Edit(f"{place.path}.resources.requests.{name}", written, request))
    return tuple(edits)


def edits_between(before: Pod, after: Pod) -> tuple[Edit, ...]:
    """Return the lines in which the resources of a changed pod, and the sizes of its volumes, differ."""
    old, new = dict(_lines(before)), dict(_lines(after))
    return tuple(Edit(path, value, old.get(path)) for path, value in new.items() if value != old.get(path))


def _lines(pod: Pod) -> Iterator[tuple[str, Quantity]]:
    spec = pod.spec
    places = [(f"spec.containers[{at}]", container.resources) for at, container in enumerate(spec.containers)]
    places += ((f"spec.initContainers[{at}]", container.resources) for at, container in enumerate(spec.init_containers))
    places += () if spec.resources is None else (("spec", spec.resources),)
    for path, stated in places:
        for which, amounts in (("limits", stated.limits), ("requests", stated.requests)):
            yield from ((f"{path}.resources.{which}.{name}", amount) for name, amount in amounts.items())
    for at, volume in enumerate(spec.volumes):
        if volume.empty_dir is not None and volume.empty_dir.size_limit is not None:
            yield f"spec.volumes[{at}].emptyDir.sizeLimit", volume.empty_dir.size_limit


HEADROOM_PERCENT = 20
"""How much more than what is in use a memory limit has to be, to be offered: use is never the same twice."""


def with_headroom(used_bytes: int) -> int:
    """Return the least memory limit for what uses this much."""
    return -(-used_bytes * (100 + HEADROOM_PERCENT) // 100)


def _bytes(amount: int) -> Quantity:
    return Quantity.of_units(amount, "BinarySI")


def in_mebibytes(amount: int) -> Quantity:
    """Return an amount of memory that is at least this much, in whole mebibytes."""
    return _bytes(max(1, -(-amount // MIB)) * MIB)


def _stating(pod: Pod, container: str | None, change: Callable[[ResourceRequirements], ResourceRequirements]) -> Pod:
    spec = pod.spec
    if container is None:
        assert spec.resources is not None
        return _of(pod, replace(spec, resources=change(spec.resources)))

    def stating(each: Container) -> Container:
        return replace(each, resources=change(each.resources)) if each.name == container else each

    return _of(pod, each_container(spec, stating))


def each_container(spec: PodSpec, change: Callable[[Container], Container]) -> PodSpec:
    """Return a spec with all its containers changed."""
    containers, inits = (tuple(map(change, given)) for given in (spec.containers, spec.init_containers))
    return replace(spec, containers=containers, init_containers=inits)


def _of(pod: Pod, spec: PodSpec) -> Pod:
    """Return the pod with a spec. The class that the API server recorded was that of the old one."""
    return replace(pod, spec=spec, status=replace(pod.status, qos_class=None))


class PodChange(StrEnum):
    """What is changed about a pod."""

    LESS = "use less"
    REQUEST = "request more"
    GUARANTEED = "limits equal to requests"
    PRIORITY = "higher priority"
    LIMIT = "higher limit"


class SecondDecision(Struct, frozen=True, gc=False):
    """What was decided with a change in place."""

    spared: bool
    """Neither the pod nor, for a change of the manifest, another pod of that manifest is killed."""
    place: int
    """Among the possible victims; 1 is first."""
    others: int
    instead: str | None = None
    """The pod that is killed instead, if any; another pod of its manifest where that is not spared."""

    @staticmethod
    def of(pod: str, own: frozenset[str], taken: Sequence[Pod], place: int, others: int) -> SecondDecision:
        """Make a decision of the victims, ``taken``, first to last; ``pod`` and ``own`` are uids."""
        hit = [pod for pod in taken if pod.metadata.uid in own]
        if any(each.metadata.uid == pod for each in hit):
            return SecondDecision(spared=False, place=place, others=others)
        first = next(iter(hit or taken), None)
        return SecondDecision(not hit, place, others, None if first is None else first.key)


class SecondRun(Struct, frozen=True, gc=False):
    """What became of a whole run with a change in place from its beginning."""

    died_us: int | None
    """When a pod of that manifest was killed or evicted all the same; None: never."""
    instead: tuple[str, ...] = ()
    """The pods that were killed, evicted or preempted then, and not without the change; first to last."""
    pending: tuple[str, ...] = ()
    """The workloads of which more pods never ran then than without the change."""
    is_pending: bool = False
    """Whether its own workload is among them."""


class Counterfactual(Struct, frozen=True, gc=False):
    """One change, and what would have been decided with it."""

    change: PodChange
    decision: SecondDecision
    amount: int | None = None
    """Of ``LESS``, ``REQUEST`` and ``LIMIT``: bytes (or inodes, processes); of ``PRIORITY``: its value.

    Of ``GUARANTEED`` the memory limits of the pod together.
    """
    resource: str = MEMORY
    container: str | None = None
    """Whose request or limit, where the pod has several containers; of an emptyDir's limit the volume."""
    oom_score_adj: int | None = None
    """What the container would have had."""
    edits: tuple[Edit, ...] = ()
    """The lines of the manifest to write, where they are amounts."""
    lacks: Insufficient | None = None
    """What the node has too little of for the changed pods."""
    pod: Pod | None = None
    """The pod as changed; None where only what it uses is another."""
    refused: str = ""
    """Why the API server would not store the changed pod; empty where it would."""
    added: Mapping[str, int] = {}
    """What the pods of the node request more with it, in the scheduler's units."""
    rooms_known: tuple[str, ...] = ()
    """Of which resources it is known what pods may request on the node."""
    second_run: SecondRun | None = None
    """What became of the whole run with it; None where only the moment was tried."""

    @property
    def saves(self) -> bool:
        """Whether it works: the pod is spared, now and in a second run, the API server takes it, and it fits."""
        second = self.second_run
        is_doomed = second is not None and (second.died_us is not None or second.is_pending)
        return self.decision.spared and not self.refused and self.lacks is None and not is_doomed


class Surroundings(Struct, frozen=True, gc=False):
    """Constraints on a change of a manifest."""

    allocatable: Mapping[str, int] | None = None
    """What pods may request together, in the scheduler's units; None where it is not known."""
    alike: frozenset[str] = frozenset()
    """The uids of the pods from the same manifest, which change with the pod."""
    limit_ranges: tuple[LimitRange, ...] = ()
    """Those of its namespace, as stored."""
    at_least: Mapping[tuple[PodChange, str | None], int] = {}
    """Bytes of memory, by change and container: with less than these, the pod goes in another order."""


ALONE = Surroundings()
Change = Callable[[Pod], Pod]


class ManifestChange(Struct, frozen=True, gc=False):
    """One change of a manifest: what it makes of a pod, and how it is described."""

    kind: PodChange
    apply: Change
    amount: int | None = None
    """As in ``Counterfactual``, like the fields below."""
    resource: str = MEMORY
    container: str | None = None
    edits: tuple[Edit, ...] = ()


class Trial(ABC):
    """A decision, to be repeated with a change to one of its pods."""

    def __init__(self, pod: Pod, pods: Sequence[Pod], surroundings: Surroundings, profile: Profile) -> None:
        self.pod = pod
        self.uid = pod.metadata.uid
        self.own = surroundings.alike | {self.uid}
        self.profile = profile
        self._pods = pods
        self._allocatable = surroundings.allocatable
        self._limit_ranges = surroundings.limit_ranges
        self._at_least = surroundings.at_least

    @abstractmethod
    def writing(self, change: Change) -> tuple[SecondDecision, int | None]:
        """Decide again with another manifest; return also the oom_score_adj that follows from it, if that counts."""

    def written(self, change: Change) -> tuple[Pod, ...]:
        """Return the pods with another manifest."""
        return tuple(change(pod) if pod.metadata.uid in self.own else pod for pod in self._pods)

    def counterfactual(self, change: ManifestChange) -> Counterfactual:
        """Return what follows from a change of the manifest."""
        decision, score = self.writing(change.apply)
        changed = change.apply(self.pod)
        added = self._added(change.apply)
        return Counterfactual(
            change.kind,
            decision,
            change.amount,
            change.resource,
            change.container,
            oom_score_adj=score,
            edits=change.edits,
            lacks=self._missing_room(change.apply, added),
            pod=changed,
            refused=self._refusal(changed),
            added=added,
            rooms_known=tuple(self._allocatable or ()),
        )

    def requesting(self, name: str | None, resource: str, most: int) -> Iterator[Counterfactual]:
        """Yield the smallest request, in whole mebibytes, with which another pod goes first."""
        stated = resources_of(self.pod, name)
        limit, request = stated.limits.get(resource), stated.requests.get(resource)

        def change(amount: int) -> Change:
            return lambda pod: with_request(pod, name, resource, amount)

        container = name if len(self.pod.running_containers) > 1 else None
        found = least(
            max(
                1 if request is None else request.value + 1,
                self.least_bytes(PodChange.REQUEST, resource, container),
            ),
            most if limit is None else limit.value,
            MIB,
            lambda amount: self.writing(change(amount))[0].spared,
        )
        if found is not None:
            edits = edits_between(self.pod, change(found)(self.pod))
            yield self.counterfactual(
                ManifestChange(PodChange.REQUEST, change(found), found, resource, container, edits)
            )

    def least_bytes(self, change: PodChange, resource: str, container: str | None = None) -> int:
        """Return the amount below which a change is not tried."""
        return self._at_least.get((change, container), 0) if resource == MEMORY else 0

    def guaranteeing(self, used: Mapping[str, int]) -> Iterator[Counterfactual]:
        """Yield the pod made Guaranteed; ``used`` are bytes by container."""
        edits = edits_for(self.pod, used, self.profile)
        if edits and used and not self.pod.is_partial:
            memory = pod_limits(guaranteed(self.pod, used, self.profile)).get(MEMORY)
            change = ManifestChange(
                PodChange.GUARANTEED,
                lambda pod: guaranteed(pod, used, self.profile),
                None if memory is None else memory.value,
                edits=edits,
            )
            yield self.counterfactual(change)

    def _added(self, change: Change) -> Amounts:
        """Return what the pods of the node request more with another manifest."""
        old, new = _requested(self._pods, self.profile), _requested(self.written(change), self.profile)
        return {name: amount - old.get(name, 0) for name, amount in new.items() if amount > old.get(name, 0)}

    def _missing_room(self, change: Change, added: Amounts) -> Insufficient | None:
        """Return what the node has too little of for another manifest; None if there is room."""
        if self._allocatable is None:
            return None
        new = _requested(self.written(change), self.profile)
        raised = {name: amount for name, amount in new.items() if name in added and name in self._allocatable}
        return next(iter(lacking(raised, {}, self._allocatable, 0, 1)), None)

    def _refusal(self, changed: Pod) -> str:
        """Return why the API server would not store the pod; what it has let in already is no fault of a change."""
        known = {error.words for error in validate_resources(self.pod)}
        new = [error.words for error in validate_resources(changed) if error.words not in known]
        if new or not self._limit_ranges:
            return next(iter(new), "")
        from podqos.admission.chain import within_bounds

        bounded = within_bounds(changed, self._limit_ranges)
        return "" if isinstance(bounded, Pod) else bounded.message


def using_less(
    decide: Callable[[int], SecondDecision], usage: int, resource: str = MEMORY, at_least: int = 0
) -> Iterator[Counterfactual]:
    """Yield how much less it would have had to use; ``decide`` repeats the decision with that much less."""
    step = MIB if resource in {MEMORY, EPHEMERAL_STORAGE} else 1
    found = least(max(step, at_least), usage, step, lambda amount: decide(amount).spared)
    if found is not None:
        yield Counterfactual(PodChange.LESS, decide(found), found, resource)


def _requested(pods: Iterable[Pod], profile: Profile) -> Amounts:
    total: Amounts = {}
    for pod in pods:
        for name, amount in counted(pod_requests(pod, pod_level=profile.pod_level_resources)).items():
            total[name] = total.get(name, 0) + amount
    return total


def least(low: int, high: int, step: int, spares: Callable[[int], bool], likely: int | None = None) -> int | None:
    """Return the smallest whole multiple of ``step`` from ``low`` to ``high`` that spares the pod; None if none does.

    More must never be worse. The amount that is returned has been tried; a ``likely`` one, and one less, are the first.
    """
    first, last = -(-low // step), high // step
    spared = None
    if likely is not None:
        guess = min(max(first, -(-likely // step)), last)
        for tried in (guess, guess - 1):
            if tried < first:
                break
            if spares(tried * step):
                last = spared = tried
            else:
                first = tried + 1
    if first > last or (spared is None and not spares(last * step)):
        return None
    while first < last:
        middle = (first + last) // 2
        if spares(middle * step):
            last = middle
        else:
            first = middle + 1
    return last * step


def room_beside(pods: Iterable[Pod], allocatable: Mapping[str, int], profile: Profile) -> dict[str, int]:
    """Return what is left to request beside some pods."""
    left = dict(allocatable)
    for pod in pods:
        for name, amount in counted(pod_requests(pod, pod_level=profile.pod_level_resources)).items():
            if name in left:
                left[name] -= amount
    return left


def controlled_alike(pod: Pod, others: Iterable[Pod]) -> frozenset[str]:
    """Return the uids of the pods from the same manifest, by the controller that made them."""
    owners = {(reference.kind, reference.name) for reference in pod.metadata.owner_references if reference.controller}
    return frozenset(
        other.metadata.uid
        for other in others
        if other.metadata.namespace == pod.metadata.namespace
        and owners & {(owner.kind, owner.name) for owner in other.metadata.owner_references if owner.controller}
    )
