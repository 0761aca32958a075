"""Which pods the kubelet preempts in order to admit a critical pod when resources are short.

It frees requests, not memory in use: as few Guaranteed pods as possible, then as few Burstable, then as few BestEffort.
Within a class, it prefers the pod that leaves the smallest shortfall, then the one that requests less. Critical pods
are only preempted for one of higher priority. Among equals, the kubelet takes whichever comes last in an unordered
list; here that is the one admitted last.

Source: Kubernetes v1.36 pkg/kubelet/preemption/preemption.go, pkg/kubelet/types/pod_update.go (Preemptable),
pkg/api/v1/resource/helpers.go (GetResourceRequest).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from podqos.agent.state import AgentConfig
from podqos.model.effective import pod_level_is_set, pod_requests
from podqos.model.node import PODS
from podqos.model.pod import Pod, QOSClass
from podqos.model.profile import Profile
from podqos.model.quantity import ZERO
from podqos.model.resources import CPU, MEMORY, is_pod_level

Lacking = Mapping[str, int]
"""The shortfall by resource, in the scheduler's units."""


class NoVictims(Exception):
    """Preempting all preemptable pods would not be enough; ``lacking`` is the remaining shortfall."""

    def __init__(self, lacking: Lacking) -> None:
        super().__init__()
        self.lacking = lacking


def victims(preemptor: Pod, pods: Iterable[Pod], lacking: Lacking, config: AgentConfig) -> tuple[Pod, ...]:
    """Return which active pods are preempted for a critical pod, in order; raises ``NoVictims``."""
    by_class: dict[QOSClass, list[Pod]] = {qos_class: [] for qos_class in QOSClass}
    for pod in pods:
        if _may_preempt(preemptor, pod):
            by_class[config.plan_of(pod).qos_class].append(pod)
    best_effort, burstable, guaranteed = (
        by_class[qos_class] for qos_class in (QOSClass.BEST_EFFORT, QOSClass.BURSTABLE, QOSClass.GUARANTEED)
    )
    profile = config.profile
    still = _without(lacking, (*best_effort, *burstable, *guaranteed), profile)
    if still:
        raise NoVictims(still)
    of_guaranteed = _nearest(guaranteed, _without(lacking, (*best_effort, *burstable), profile), profile)
    of_burstable = _nearest(burstable, _without(lacking, (*best_effort, *of_guaranteed), profile), profile)
    of_best_effort = _nearest(best_effort, _without(lacking, (*of_burstable, *of_guaranteed), profile), profile)
    return *of_best_effort, *of_burstable, *of_guaranteed


def request(pod: Pod, resource: str, profile: Profile) -> int:
    """Return what a pod would free: with pod-level resources, not its containers', no overhead without a request."""
    if resource == PODS:
        return 1
    if profile.pod_level_resources and pod_level_is_set(pod) and not is_pod_level(resource):
        return 0
    amount = pod_requests(pod, overhead=False, pod_level=profile.pod_level_resources).get(resource, ZERO)
    if amount:
        amount += (pod.spec.overhead or {}).get(resource, ZERO)
    return amount.milli_value if resource == CPU else amount.value


def _may_preempt(preemptor: Pod, pod: Pod) -> bool:
    if not pod.is_critical:
        return True
    own, other = preemptor.spec.priority, pod.spec.priority
    return own is not None and other is not None and own > other


def _without(lacking: Lacking, pods: Iterable[Pod], profile: Profile) -> dict[str, int]:
    """Return the shortfall after these pods are gone."""
    pods = tuple(pods)
    left = {name: amount - sum(request(pod, name, profile) for pod in pods) for name, amount in lacking.items()}
    return {name: amount for name, amount in left.items() if amount > 0}


def _nearest(pods: Sequence[Pod], lacking: Lacking, profile: Profile) -> list[Pod]:
    """Return pods that together free enough; one after the other, the one that comes closest."""
    chosen: list[Pod] = []
    left = list(pods)
    while lacking:
        best, least = 0, float(len(lacking) + 1)
        for index, pod in enumerate(left):
            distance = _distance(pod, lacking, profile)
            if distance < least or (distance == least and _requests_no_more(pod, left[best], profile)):
                best, least = index, distance
        lacking = _without(lacking, (left[best],), profile)
        chosen.append(left[best])
        left[best] = left[-1]
        left.pop()
    return chosen


def _distance(pod: Pod, lacking: Lacking, profile: Profile) -> float:
    """Return how much of the shortfall a pod leaves: the sum of the squared fractions."""
    missing = ((amount, amount - request(pod, name, profile)) for name, amount in lacking.items())
    return sum((left / amount) ** 2 for amount, left in missing if left > 0)


def _requests_no_more(pod: Pod, other: Pod, profile: Profile) -> bool:
    own, others = ([request(each, name, profile) for name in (MEMORY, CPU)] for each in (pod, other))
    return own <= others
