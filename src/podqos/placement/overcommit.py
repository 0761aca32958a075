"""How far a node is overcommitted, as three ratios that must not be confused.

*limits / allocatable*: what pods may use at most against what the node has; the one a budget is set for, because above
it the node cannot serve all pods when they burst. *limits / requests*: what pods may use against what they
reserve. *others' limits / what Guaranteed pods leave*: the same question for those that share the rest.

A pod without a limit may use whatever is there; it adds nothing to the sums and is listed separately.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction

from msgspec import Struct

from podqos.model.effective import pod_limits, pod_requests
from podqos.model.kubelet_config import KubeletConfiguration
from podqos.model.pod import Pod, QOSClass
from podqos.model.profile import LATEST, Profile
from podqos.model.quantity import ZERO, Quantity
from podqos.model.resources import CPU, MEMORY, ResourceList, ResourceRequirements
from podqos.placement.allocatable import cgroup_settings
from podqos.placement.pods import SchedulerNode
from podqos.qos.cgroup_tiers import TierRequests, tier_values

# Too little cpu slows, too little memory kills.
DEFAULT_BUDGETS = {CPU: Fraction(2), MEMORY: Fraction(6, 5)}


class Overcommit(Struct, frozen=True):
    """One resource of one node. cpu is in thousandths, memory in bytes."""

    node: str
    resource: str
    allocatable: int
    requests: int
    limits: int
    guaranteed: int
    """What Guaranteed pods reserve."""
    other_limits: int
    """The limits of all other pods."""
    unlimited: tuple[str, ...]
    """Pods without a limit, by key."""
    budget: Fraction | None

    @property
    def fullness(self) -> Fraction | None:
        """Requests relative to allocatable: how full the node is to the scheduler."""
        return _ratio(self.requests, self.allocatable)

    @property
    def limits_to_allocatable(self) -> Fraction | None:
        """What pods may use, relative to allocatable."""
        return _ratio(self.limits, self.allocatable)

    @property
    def limits_to_requests(self) -> Fraction | None:
        """What pods may use, relative to what they request."""
        return _ratio(self.limits, self.requests)

    @property
    def others_to_rest(self) -> Fraction | None:
        """What pods that are not Guaranteed may use, relative to what the Guaranteed ones leave."""
        return _ratio(self.other_limits, self.remaining)

    @property
    def remaining(self) -> int:
        """What Guaranteed pods leave."""
        return max(0, self.allocatable - self.guaranteed)

    @property
    def exceeds_budget(self) -> bool:
        """Whether more is promised than the budget allows."""
        ratio = self.limits_to_allocatable
        return self.budget is not None and (ratio > self.budget if ratio is not None else self.limits > 0)


class PodShare(Struct, frozen=True, gc=False):
    """What one pod adds to the overcommit of a node: how far it may go beyond what it reserves."""

    pod: str
    beyond_request: int


def overcommit(state: SchedulerNode, budgets: Mapping[str, Fraction] = DEFAULT_BUDGETS) -> tuple[Overcommit, ...]:
    """Return the ratios of one node for cpu and memory."""
    return tuple(_overcommit(state, resource, budgets.get(resource)) for resource in (CPU, MEMORY))


def largest_shares(state: SchedulerNode, resource: str) -> list[PodShare]:
    """Return who exceeds its request by how much, the largest share first."""
    shares = []
    for view in state.pods.values():
        limit = pod_limits(view.pod).get(resource)
        if limit is not None:
            beyond = _count(limit, resource) - _count(pod_requests(view.pod).get(resource, ZERO), resource)
            shares.append(PodShare(view.key, beyond))
    return sorted((share for share in shares if share.beyond_request > 0), key=lambda s: (-s.beyond_request, s.pod))


def _overcommit(state: SchedulerNode, resource: str, budget: Fraction | None) -> Overcommit:
    limits = guaranteed = other_limits = 0
    unlimited = []
    for view in state.pods.values():
        pod = view.pod
        limit = _count(pod_limits(pod).get(resource, ZERO), resource)
        limits += limit
        if view.shape.qos_class is QOSClass.GUARANTEED:
            guaranteed += view.held.requested.get(resource, 0)
        else:
            other_limits += limit
        if _is_unlimited(pod, resource):
            unlimited.append(view.key)
    return Overcommit(
        node=state.name,
        resource=resource,
        allocatable=state.allocatable.get(resource, 0),
        requests=state.requested.get(resource, 0),
        limits=limits,
        guaranteed=guaranteed,
        other_limits=other_limits,
        unlimited=tuple(sorted(unlimited)),
        budget=budget,
    )


def _is_unlimited(pod: Pod, resource: str) -> bool:
    """Whether a long-running container has no limit."""
    own = pod.spec.resources
    if own is not None and own.limits.get(resource):
        return False
    running: Iterable[ResourceRequirements] = (
        *(container.resources for container in pod.spec.containers),
        *(container.resources for container in pod.spec.init_containers if container.is_sidecar),
    )
    return any(not _limit_of(resources.limits, resource) for resources in running)


def _limit_of(limits: ResourceList, resource: str) -> Quantity | None:
    """Return the limit; zero means none, as to the kernel."""
    return limits.get(resource) or None


def _count(amount: Quantity, resource: str) -> int:
    return amount.milli_value if resource == CPU else amount.value


def _ratio(part: int, whole: int) -> Fraction | None:
    return Fraction(part, whole) if whole else None


class ClassCeilings(Struct, frozen=True, gc=False):
    """The limits of the two classes with a cgroup of their own; never below zero."""

    burstable_bytes: int
    best_effort_bytes: int


def class_ceilings(
    state: SchedulerNode, config: KubeletConfiguration, profile: Profile = LATEST
) -> ClassCeilings | None:
    """Return the ceilings on a node; None if there are none or its capacity is unknown."""
    capacity = state.node.status.capacity.get(MEMORY)
    if capacity is None or not config.cgroups_per_qos:
        return None
    settings = cgroup_settings(config, {MEMORY: capacity}, profile=profile)
    if settings.qos_reserved_memory_percent is None:
        return None
    requested = dict.fromkeys(QOSClass, 0)
    for view in state.pods.values():
        requested[view.shape.qos_class] += view.held.requested.get(MEMORY, 0)
    requests = TierRequests(0, requested[QOSClass.BURSTABLE], requested[QOSClass.GUARANTEED])
    tiers = tier_values(requests, settings)
    burstable, best_effort = (
        tiers[qos_class].memory_limit_bytes for qos_class in (QOSClass.BURSTABLE, QOSClass.BEST_EFFORT)
    )
    if burstable is None or best_effort is None:
        return None
    return ClassCeilings(max(0, burstable.amount or 0), max(0, best_effort.amount or 0))
