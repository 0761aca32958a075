"""What saves a pod of a node as it is now, when its turn comes: to be evicted by the kubelet, or killed by the kernel.

Whoever goes before it is gone by then. Of the pods of one manifest, which change together, the first counts.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from msgspec import Struct
from msgspec.structs import replace

from podqos.eviction.signals import SIGNALS
from podqos.model.effective import pod_requests
from podqos.model.pod import Pod
from podqos.model.policy import LimitRange
from podqos.model.profile import Profile
from podqos.model.resources import MEMORY
from podqos.model.snapshot import Snapshot
from podqos.placement.demand import counted
from podqos.qos.cgroup_settings import CgroupSettings
from podqos.survival.counterfactual.counterfactual import Counterfactual, Surroundings
from podqos.survival.counterfactual.kernel import KernelMoment, kernel_counterfactuals
from podqos.survival.counterfactual.kubelet import at_threshold, kubelet_counterfactuals
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
    ahead: int
    """How many pods, or containers of the kernel's order, are gone by then."""
    counterfactuals: tuple[Counterfactual, ...]
    """With their places among all."""


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

    def evicted(self, uid: str) -> Turn | None:
        """Return what keeps a pod from being evicted when its turn comes; None where it never does."""
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
        found = kubelet_counterfactuals(moment, first.metadata.uid, self._surroundings(first, own, gone))
        return Turn(first, place + 1, None, place, _among_all(found, place))

    def killed(self, uid: str) -> Turn | None:
        """Return what keeps a pod from being killed by the kernel when its turn comes; None where it never does."""
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
        found = kernel_counterfactuals(moment, victim, self._surroundings(first, own, gone))
        ahead = sum(container.pod.metadata.uid in gone for container in self.orders.kernel)
        tried = () if found is None else found.counterfactuals
        return Turn(first, place + 1, container, ahead, _among_all(tried, ahead))

    def _alike(self, uid: str) -> frozenset[str]:
        """Return the uids of the pods from the same manifest, with its own."""
        owner = self.owners.get(uid)
        same = (each for each, other in self.owners.items() if owner is not None and other == owner)
        pod = next((entry.pod for entry in self.snapshot.pods if entry.pod.metadata.uid == uid), None)
        alike = frozenset() if pod is None else controlled_alike(pod, (pod.pod for pod in self.snapshot.pods))
        return frozenset({uid, *same, *alike})

    def _surroundings(self, pod: Pod, own: frozenset[str], gone: Collection[str]) -> Surroundings:
        away = [pod.pod for pod in self.snapshot.pods if pod.pod.metadata.uid in gone]
        room = None if self.allocatable is None else room_beside(away, self.allocatable, self._profile)
        bounds = self.limit_ranges.get(pod.metadata.namespace, ())
        return Surroundings(room, own, bounds)


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
