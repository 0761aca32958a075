"""What a VerticalPodAutoscaler may make of a pod: its class and oom scores at the bounds of the autoscaler.

The autoscaler's admission webhook replaces the requests of the containers (not of init containers) by its
recommendation, kept between ``minAllowed`` and ``maxAllowed``. A limit keeps its proportion to the request, unless only
requests are controlled: then it stays, and the request does not exceed it. What is recommended in between depends on
usage and is not judged here.

Source: kubernetes/autoscaler vertical-pod-autoscaler/pkg/utils/vpa (capping.go, limit_and_request_scaling.go).
"""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from podqos.controllers.vertical_resources import with_requests
from podqos.model.autoscaling import OFF, ContainerResourcePolicy, VerticalPodAutoscaler
from podqos.model.pod import Container, Pod, QOSClass
from podqos.model.quantity import Quantity
from podqos.model.resources import CPU, MEMORY, ResourceList
from podqos.survival.node.decision import ExplainSettings, decide

# The least that the recommender recommends for a pod unless its flags say otherwise.
_FLOOR = {CPU: Quantity.parse("25m"), MEMORY: Quantity.parse("250Mi")}


class ScaledContainer(Struct, frozen=True, rename="camel"):
    """A container at one bound."""

    container: str
    oom_score_adj: int | None
    """Null where the autoscaler has no such bound for memory, and the score depends on it."""


class ScaledPod(Struct, frozen=True, rename="camel"):
    """A pod at one bound of its autoscaler."""

    qos_class: QOSClass
    containers: tuple[ScaledContainer, ...]


class VerticalScaling(Struct, frozen=True, rename="camel"):
    """What an autoscaler may make of the pods of a workload."""

    autoscaler: str
    update_mode: str
    at_min_allowed: ScaledPod
    at_max_allowed: ScaledPod


def vertical_scaling(pod: Pod, autoscaler: VerticalPodAutoscaler, settings: ExplainSettings) -> VerticalScaling:
    """Return what a stored pod is at both bounds."""
    policies = {container.name: autoscaler.policy_for(container.name) for container in pod.spec.containers}
    lowest = {name: policy.min_allowed for name, policy in policies.items()}
    highest = {name: policy.max_allowed for name, policy in policies.items()}
    return VerticalScaling(
        autoscaler.metadata.name,
        autoscaler.mode,
        _at(pod, policies, lowest, settings),
        _at(pod, policies, highest, settings),
    )


def _at(
    pod: Pod,
    policies: dict[str, ContainerResourcePolicy],
    bounds: dict[str, ResourceList],
    settings: ExplainSettings,
) -> ScaledPod:
    containers = tuple(
        _scaled(container, policies[container.name], bounds[container.name]) for container in pod.spec.containers
    )
    scaled = replace(pod, spec=replace(pod.spec, containers=containers), status=replace(pod.status, qos_class=None))
    decision = decide(scaled, settings)
    is_open = {
        name
        for name, policy in policies.items()
        if policy.mode != OFF and MEMORY in policy.resources and MEMORY not in bounds[name]
    }
    depends = decision.qos_class is QOSClass.BURSTABLE
    return ScaledPod(
        decision.qos_class,
        tuple(
            ScaledContainer(score.container, None if depends and score.container in is_open else score.value)
            for score in decision.oom_scores
            if score.container in policies
        ),
    )


def _scaled(container: Container, policy: ContainerResourcePolicy, bound: ResourceList) -> Container:
    """Return a container with the amounts of a bound; where there is none, with some amount."""

    def amount(resource: str) -> Quantity:
        return bound.get(resource) or container.resources.requests.get(resource) or _FLOOR[resource]

    return with_requests(container, policy, amount)
