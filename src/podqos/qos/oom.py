"""The oom_score_adj of every container: how the class reaches the kernel.

The kernel adds ``oom_score_adj`` thousandths of all memory to what a process uses and kills the highest sum. A
Burstable container that uses exactly its request ends at 1000; one that uses more is ahead of the others.

Source: Kubernetes v1.36 pkg/kubelet/qos/policy.go; the values of node components: pkg/kubelet/qos/policy.go,
cmd/kube-proxy/app/options.go, pkg/kubelet/cm/container_manager_linux.go.
"""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct
from msgspec.structs import replace

from podqos.model.effective import sum_of_containers
from podqos.model.pod import Container, Pod, QOSClass
from podqos.model.profile import LATEST, Profile
from podqos.model.quantity import ZERO
from podqos.model.resized import as_started
from podqos.model.resources import MEMORY

BEST_EFFORT_OOM_SCORE_ADJ = 1000
KUBELET_OOM_SCORE_ADJ = -999

# Fixed values, by who sets them. The sandbox ("pause") process is the runtime's own.
COMPONENT_OOM_SCORE_ADJ = {
    "kubelet": KUBELET_OOM_SCORE_ADJ,
    "kube-proxy": -999,
    "container runtime": -999,
    "pod sandbox": -998,
}


class ComponentScore(Struct, frozen=True, gc=False):
    """The adjustment of a process of the node itself, which no class decides."""

    component: str
    value: int


def component_scores(kubelet: int = KUBELET_OOM_SCORE_ADJ) -> tuple[ComponentScore, ...]:
    """Return the fixed values; only the kubelet's own is a setting of its (``oomScoreAdj``)."""
    values = {**COMPONENT_OOM_SCORE_ADJ, "kubelet": kubelet}
    return tuple(ComponentScore(name, value) for name, value in values.items())


class OOMRule(StrEnum):
    """Which rule gave the value."""

    NODE_CRITICAL = "NodeCritical"
    GUARANTEED = "Guaranteed"
    BEST_EFFORT = "BestEffort"
    BURSTABLE = "Burstable"
    SIDECAR = "Sidecar"
    """Burstable, lowered to the score of the smallest regular container."""
    FLOOR = "Floor"
    """Burstable, raised to stay above every Guaranteed container."""
    CEILING = "Ceiling"
    """Burstable, lowered to stay below every BestEffort container."""


class OOMScore(Struct, frozen=True, gc=False):
    """The adjustment of one container and the numbers behind it."""

    container: str
    value: int
    rule: OOMRule
    request_bytes: int | None = None
    """The memory request that entered Burstable's formula; None where no formula was used."""
    after_restart: int | None = None
    """What a restart makes of a value that is older than the last resize; None where a restart changes nothing."""


def oom_scores(
    pod: Pod, qos_class: QOSClass, node_memory_bytes: int, profile: Profile = LATEST, *, bounded: bool = True
) -> tuple[OOMScore, ...]:
    """Return the adjustment of every container, init container and ephemeral container, in that order.

    A pod that asks for less memory as a whole than its containers do, which no API server accepts, would get values
    that the kernel does not take. They are bounded like all others; ``bounded`` false returns upstream's numbers.
    """
    spec = pod.spec
    containers = (*spec.containers, *spec.init_containers, *spec.ephemeral_containers)
    fixed = _fixed_score(pod, qos_class, profile)
    if fixed is not None:
        value, rule = fixed
        return tuple(OOMScore(container.name, value, rule) for container in containers)

    unclaimed = _unclaimed_request_share(pod) if profile.pod_level_resources and spec.resources is not None else 0
    if not profile.unclaimed_request_below_zero:
        unclaimed = max(0, unclaimed)
    floor = 1000 + profile.guaranteed_oom_score_adj
    scores = [
        _burstable_score(container.name, _memory_request(container) + unclaimed, node_memory_bytes, floor)
        for container in containers
    ]
    if bounded:
        scores = [_below_best_effort(score) for score in scores]
    if profile.sidecar_oom_score and spec.init_containers and spec.containers:
        smallest = max(scores[: len(spec.containers)], key=lambda score: score.value)
        for index, container in enumerate(spec.init_containers, start=len(spec.containers)):
            if container.is_sidecar and smallest.value < scores[index].value:
                scores[index] = OOMScore(container.name, smallest.value, OOMRule.SIDECAR, smallest.request_bytes)
    return tuple(scores)


def running_scores(
    pod: Pod, qos_class: QOSClass, node_memory_bytes: int, profile: Profile = LATEST
) -> tuple[OOMScore, ...]:
    """Return the adjustments that processes have: those of the requests with which their containers started."""
    scores = oom_scores(pod, qos_class, node_memory_bytes, profile)
    started, older = as_started(pod)
    if not older:
        return scores
    return tuple(
        replace(kept, after_restart=now.value) if now.container in older and kept.value != now.value else now
        for kept, now in zip(oom_scores(started, qos_class, node_memory_bytes, profile), scores, strict=True)
    )


def pod_qos_class(pod: Pod, computed: QOSClass) -> QOSClass:
    """Return the class the kubelet goes by: the one the API server recorded, if any, else the computed one."""
    return pod.status.qos_class or computed


def _fixed_score(pod: Pod, qos_class: QOSClass, profile: Profile) -> tuple[int, OOMRule] | None:
    protected = (
        pod.is_node_critical
        if profile.lowest_score_for == "node-critical"
        else profile.lowest_score_for == "critical" and pod.is_critical
    )
    if protected:
        return profile.guaranteed_oom_score_adj, OOMRule.NODE_CRITICAL
    if qos_class is QOSClass.GUARANTEED:
        return profile.guaranteed_oom_score_adj, OOMRule.GUARANTEED
    if qos_class is QOSClass.BEST_EFFORT:
        return BEST_EFFORT_OOM_SCORE_ADJ, OOMRule.BEST_EFFORT
    return None


def burstable_oom_score_adj(request_bytes: int, node_memory_bytes: int, profile: Profile) -> int:
    """Return the adjustment of a container about which no more is known than that it requests memory."""
    return _burstable_score("", request_bytes, node_memory_bytes, 1000 + profile.guaranteed_oom_score_adj).value


def _burstable_score(name: str, request_bytes: int, node_memory_bytes: int, floor: int) -> OOMScore:
    value = 1000 - _truncated(1000 * request_bytes, node_memory_bytes)
    rule = OOMRule.BURSTABLE
    if value < floor:
        value, rule = floor, OOMRule.FLOOR
    elif value == BEST_EFFORT_OOM_SCORE_ADJ:
        value, rule = BEST_EFFORT_OOM_SCORE_ADJ - 1, OOMRule.CEILING
    return OOMScore(name, value, rule, request_bytes)


def _below_best_effort(score: OOMScore) -> OOMScore:
    if score.value < BEST_EFFORT_OOM_SCORE_ADJ:
        return score
    return replace(score, value=BEST_EFFORT_OOM_SCORE_ADJ - 1, rule=OOMRule.CEILING)


def _memory_request(container: Container) -> int:
    request = container.resources.requests.get(MEMORY)
    return request.value if request is not None else 0


def _unclaimed_request_share(pod: Pod) -> int:
    """Return each container's share of the pod-level memory request that no container claims for itself."""
    resources = pod.spec.resources
    requested = resources.requests.get(MEMORY) if resources is not None else None
    if not requested:
        return 0
    claimed = sum_of_containers(pod, lambda container: container.resources.requests).get(MEMORY, ZERO)
    count = len(pod.spec.containers) + len(pod.spec.init_containers)
    return _truncated(requested.value - claimed.value, count) if count else 0


def _truncated(numerator: int, denominator: int) -> int:
    """Divide as Go and C do: towards zero."""
    if numerator >= 0 and denominator > 0:
        return numerator // denominator
    quotient = abs(numerator) // abs(denominator)
    return quotient if (numerator < 0) == (denominator < 0) else -quotient
