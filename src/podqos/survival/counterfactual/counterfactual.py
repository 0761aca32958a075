"""What would have saved a pod: the decision that killed it, repeated with one change.

A counterfactual is never a formula of its own. The pod is changed as its owner could change it, in its manifest: all
its pods on the node change together, the amounts are valid, and the node must still have room for the requests. Then
kubelet or kernel decides again on the same figures (``kubelet_counterfactual``, ``kernel_counterfactual``). The result
holds for that moment only: memory that keeps growing reaches every pod in the end.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum

from msgspec import Struct

from podqos.admission.validation import validate_resources
from podqos.model.effective import pod_limits, pod_requests
from podqos.model.pod import Pod
from podqos.model.policy import LimitRange
from podqos.model.profile import Profile
from podqos.model.resources import EPHEMERAL_STORAGE, MEMORY
from podqos.placement.demand import Amounts, counted
from podqos.placement.fit import lacking
from podqos.placement.reasons import Insufficient
from podqos.qos.edits import Edit
from podqos.survival.counterfactual.pod_changes import (
    MIB,
    edits_between,
    edits_for,
    guaranteed,
    resources_of,
    with_request,
)


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
