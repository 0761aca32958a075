"""What saves a pod of a node as it is now, when its turn comes: to be evicted by the kubelet, or killed by the kernel.

Whoever goes before it is gone by then. Of the pods of one manifest, which change together, the first counts.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping

from msgspec import Struct
from msgspec.structs import replace

from podqos.eviction.signals import SIGNALS
from podqos.model.effective import pod_limits, pod_requests
from podqos.model.pod import Pod
from podqos.model.policy import LimitRange
from podqos.model.profile import Profile
from podqos.model.resources import MEMORY
from podqos.model.snapshot import Snapshot
from podqos.placement.demand import counted
from podqos.qos.cgroup_settings import CgroupSettings
from podqos.survival.counterfactual.counterfactual import Counterfactual, PodChange, Surroundings
from podqos.survival.counterfactual.kernel import KernelMoment, kernel_counterfactuals
from podqos.survival.counterfactual.kubelet import at_threshold, kubelet_counterfactuals
from podqos.survival.counterfactual.pod_changes import in_mebibytes, resources_of, with_headroom
from podqos.survival.orders.orders import Orders

_MOST = 1 << 44
"""Of what has no capacity that is known here: more than any pod requests."""


class Turn(Struct, frozen=True):
    """A pod whose turn has come, and what would save it then."""

    pod: Pod
    """The first of its manifest's."""
    place: int
    """Among all pods that can go; 1 is first."""
    container: str | None
    """Which the kernel kills."""
    counterfactuals: tuple[Counterfactual, ...]
    """With their places among all."""


_Amounts = Mapping[tuple[PodChange, str | None], int]
"""By change and container."""


class NodeNow(Struct, frozen=True):
    """A node whose pods stand in both orders, and what a change of a manifest has to respect there."""

    snapshot: Snapshot
    orders: Orders
    settings: CgroupSettings
    allocatable: Mapping[str, int] | None = None
    """What pods may request together, in the scheduler's units; None where it is not known."""
    owners: Mapping[str, tuple[str, str]] = {}
    """By uid of a pod what its manifest is."""
    limit_ranges: Mapping[str, tuple[LimitRange, ...]] = {}
    """By namespace."""

    @property
    def _profile(self) -> Profile:
        return self.orders.ranking.profile

    def turns(self, uid: str) -> tuple[Turn | None, Turn | None]:
        """Return what keeps a pod from being evicted, and from being OOM-killed, when its turn comes; None: never.

        A request has headroom above what is in use, as a limit has, where there is room for that. To a pod that is
        first in both orders, an amount is told that helps in both.
        """
        evicted, killed = self._evicted(uid, {}), self._killed(uid, {})
        of_evicted, of_killed = self._needed(evicted), self._needed(killed)
        if evicted is not None and killed is not None and evicted.place == killed.place == 1:
            larger = {key: max(amount, of_killed.get(key, 0)) for key, amount in of_evicted.items()}
            of_evicted, of_killed = larger, {**of_killed, **{key: larger[key] for key in of_killed if key in larger}}
        return (
            _raised(evicted, of_evicted, lambda: self._evicted(uid, of_evicted)),
            _raised(killed, of_killed, lambda: self._killed(uid, of_killed)),
        )

    def _needed(self, turn: Turn | None) -> _Amounts:
        """Return how much of which change is told."""
        if turn is None:
            return {}
        own = self._alike(turn.pod.metadata.uid)
        amounts = _amounts(turn.counterfactuals)
        for key, amount in amounts.items():
            change, name = key
            if change is PodChange.REQUEST:
                used = max(
                    sum(usage.working_set_bytes for usage in entry.containers if name in {None, usage.name})
                    for entry in self.snapshot.pods
                    if entry.pod.metadata.uid in own
                )
                limits = pod_limits(turn.pod) if name is None else resources_of(turn.pod, name).limits
                wanted = in_mebibytes(with_headroom(used))
                amounts[key] = max(amount, min(wanted, limits.get(MEMORY, wanted)).value)
        return amounts

    def _evicted(self, uid: str, at_least: _Amounts) -> Turn | None:
        order = [ranked_pod.pod for ranked_pod in self.orders.eviction if ranked_pod.spared is None]
        own = self._alike(uid)
        place = next((at for at, pod in enumerate(order) if pod.metadata.uid in own), None)
        if place is None:
            return None
        gone = {pod.metadata.uid for pod in order[:place]}
        left = tuple(pod.pod for pod in self.snapshot.pods if pod.pod.metadata.uid not in gone)
        resource = SIGNALS[self.orders.ranking.signal].resource
        capacity = self.snapshot.node.memory_bytes if resource == MEMORY else _MOST
        moment = at_threshold(left, self.snapshot.stats, self.orders.ranking, capacity)
        first = order[place]
        found = kubelet_counterfactuals(moment, first.metadata.uid, self._surroundings(first, own, gone, at_least))
        return Turn(first, place + 1, None, _among_all(found, place))

    def _killed(self, uid: str, at_least: _Amounts) -> Turn | None:
        own = self._alike(uid)
        order = self.orders.kernel_pods
        place = next((at for at, pod in enumerate(order) if pod.metadata.uid in own), None)
        if place is None:
            return None
        gone = {pod.metadata.uid for pod in order[:place]}
        left = tuple(pod for pod in self.snapshot.pods if pod.pod.metadata.uid not in gone)
        first = order[place]
        container = next(
            container.usage.name for container in self.orders.kernel if container.pod.metadata.uid == first.metadata.uid
        )
        moment = KernelMoment(replace(self.snapshot, pods=left), self.settings, self.orders.domain, self._profile)
        victim = (first.metadata.uid, container)
        found = kernel_counterfactuals(moment, victim, self._surroundings(first, own, gone, at_least))
        tried = () if found is None else found.counterfactuals
        return Turn(first, place + 1, container, _among_all(tried, place))

    def _alike(self, uid: str) -> frozenset[str]:
        """Return the uids of the pods from the same manifest, with its own."""
        owner = self.owners.get(uid)
        same = (each for each, other in self.owners.items() if owner is not None and other == owner)
        pod = next((entry.pod for entry in self.snapshot.pods if entry.pod.metadata.uid == uid), None)
        alike = frozenset() if pod is None else controlled_alike(pod, (pod.pod for pod in self.snapshot.pods))
        return frozenset({uid, *same, *alike})

    def _surroundings(self, pod: Pod, own: frozenset[str], gone: Collection[str], at_least: _Amounts) -> Surroundings:
        away = [pod.pod for pod in self.snapshot.pods if pod.pod.metadata.uid in gone]
        room = None if self.allocatable is None else room_beside(away, self.allocatable, self._profile)
        bounds = self.limit_ranges.get(pod.metadata.namespace, ())
        return Surroundings(room, own, bounds, at_least)


def _amounts(counterfactuals: Iterable[Counterfactual]) -> dict[tuple[PodChange, str | None], int]:
    """Return how much of which change saves a pod of memory."""
    return {
        (found.change, found.container): found.amount
        for found in counterfactuals
        if found.change in {PodChange.REQUEST, PodChange.LESS}
        and found.saves
        and found.resource == MEMORY
        and found.amount is not None
    }


def _raised(turn: Turn | None, at_least: _Amounts, again: Callable[[], Turn | None]) -> Turn | None:
    """Return a turn with larger amounts, as far as these save the pod ``again``."""
    if turn is None or at_least == _amounts(turn.counterfactuals):
        return turn
    tried = again()
    raised = () if tried is None else tried.counterfactuals
    saving = _amounts(raised)
    larger = {key: found for found in raised if (key := (found.change, found.container)) in saving}
    found = tuple(larger.get((found.change, found.container), found) for found in turn.counterfactuals)
    return replace(turn, counterfactuals=found)


def _among_all(found: Iterable[Counterfactual], ahead: int) -> tuple[Counterfactual, ...]:
    """Return what was tried among those that are left, with the places that they have among all."""
    return tuple(
        replace(
            counterfactual,
            decision=replace(
                counterfactual.decision,
                place=counterfactual.decision.place + ahead,
                others=counterfactual.decision.others + ahead,
            ),
        )
        for counterfactual in found
    )


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
