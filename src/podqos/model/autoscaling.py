"""Autoscalers: what they may make of the replicas and resources that a manifest states.

Sources: autoscaling.k8s.io/v1 VerticalPodAutoscaler (kubernetes/autoscaler), autoscaling/v1 and v2
HorizontalPodAutoscaler.
"""

from __future__ import annotations

from typing import TypeVar

from msgspec import Struct

from podqos.model.pod import ObjectMeta
from podqos.model.resources import QOS_RESOURCES, ResourceList

ALL_CONTAINERS = "*"
OFF = "Off"


class ScaleTarget(Struct, frozen=True, gc=False, rename="camel"):
    """The workload that an autoscaler changes."""

    kind: str = ""
    name: str = ""


class VerticalUpdatePolicy(Struct, frozen=True, gc=False, rename="camel"):
    """When pods get the recommended resources."""

    update_mode: str = "Auto"


class ContainerResourcePolicy(Struct, frozen=True, gc=False, rename="camel"):
    """What may be recommended for one container, or with ``*`` for those without a policy of their own."""

    container_name: str = ALL_CONTAINERS
    mode: str = "Auto"
    min_allowed: ResourceList = {}
    max_allowed: ResourceList = {}
    controlled_resources: tuple[str, ...] | None = None
    controlled_values: str = "RequestsAndLimits"

    @property
    def resources(self) -> tuple[str, ...]:
        """The resources it changes."""
        return QOS_RESOURCES if self.controlled_resources is None else self.controlled_resources


class PodResourcePolicy(Struct, frozen=True, gc=False, rename="camel"):
    """The policies of all containers."""

    container_policies: tuple[ContainerResourcePolicy, ...] = ()


class VerticalPodAutoscalerSpec(Struct, frozen=True, gc=False, rename="camel"):
    """Whose resources it changes, when and how far."""

    target_ref: ScaleTarget = ScaleTarget()
    update_policy: VerticalUpdatePolicy = VerticalUpdatePolicy()
    resource_policy: PodResourcePolicy = PodResourcePolicy()


class VerticalPodAutoscaler(Struct, frozen=True, gc=False):
    """Changes requests, and limits with them, of a workload's pods."""

    metadata: ObjectMeta = ObjectMeta()
    spec: VerticalPodAutoscalerSpec = VerticalPodAutoscalerSpec()

    @property
    def target(self) -> ScaleTarget:
        """The workload whose pods it changes."""
        return self.spec.target_ref

    @property
    def mode(self) -> str:
        """``Off``, ``Initial``, ``Recreate``, ``InPlaceOrRecreate``, ``InPlace``, or ``Auto``."""
        return self.spec.update_policy.update_mode

    def changes(self, container: str) -> bool:
        """Whether it changes anything about a container; in mode ``Off`` it only recommends."""
        policy = self.policy_for(container)
        return OFF not in {self.mode, policy.mode} and bool(policy.resources)

    def policy_for(self, container: str) -> ContainerResourcePolicy:
        """Return the policy of a container: its own, that of ``*``, or the defaults."""
        policies = {policy.container_name: policy for policy in self.spec.resource_policy.container_policies}
        return policies.get(container) or policies.get(ALL_CONTAINERS) or ContainerResourcePolicy()


class HorizontalPodAutoscalerSpec(Struct, frozen=True, gc=False, rename="camel"):
    """Whose replicas it changes, and between which bounds."""

    scale_target_ref: ScaleTarget = ScaleTarget()
    min_replicas: int = 1
    max_replicas: int = 0


class HorizontalPodAutoscaler(Struct, frozen=True, gc=False):
    """Changes the number of a workload's pods."""

    metadata: ObjectMeta = ObjectMeta()
    spec: HorizontalPodAutoscalerSpec = HorizontalPodAutoscalerSpec()

    @property
    def target(self) -> ScaleTarget:
        """The workload whose pods it counts."""
        return self.spec.scale_target_ref


Autoscaler = TypeVar("Autoscaler", VerticalPodAutoscaler, HorizontalPodAutoscaler)
