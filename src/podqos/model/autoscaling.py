"""Autoscalers: how they may change the replicas and resources that a manifest states.

Sources: autoscaling.k8s.io/v1 VerticalPodAutoscaler (kubernetes/autoscaler), autoscaling/v1 and v2
HorizontalPodAutoscaler; the metric of one that states none: Kubernetes v1.36 pkg/apis/autoscaling/v2/defaults.go.
"""

from __future__ import annotations

from typing import TypeVar

from msgspec import Struct, field

from podqos.model.pod import ObjectMeta
from podqos.model.quantity import Quantity
from podqos.model.resources import CPU, QOS_RESOURCES, ResourceList

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


class ContainerRecommendation(Struct, frozen=True, gc=False, rename="camel"):
    """A recommender's recommendation for a container."""

    container_name: str = ""
    target: ResourceList = {}
    """The recommendation within the bounds of the policy."""
    uncapped_target: ResourceList = {}
    """The recommendation regardless of the policy."""

    @property
    def need(self) -> ResourceList:
        """What the container needs, whatever the policy allows."""
        return self.uncapped_target or self.target


class PodRecommendation(Struct, frozen=True, gc=False, rename="camel"):
    """The recommendations for all containers."""

    container_recommendations: tuple[ContainerRecommendation, ...] = ()


class VerticalPodAutoscalerStatus(Struct, frozen=True, gc=False):
    """The status from its recommender."""

    recommendation: PodRecommendation | None = None


class VerticalPodAutoscaler(Struct, frozen=True, gc=False):
    """Changes requests, and limits with them, of a workload's pods."""

    metadata: ObjectMeta = ObjectMeta()
    spec: VerticalPodAutoscalerSpec = VerticalPodAutoscalerSpec()
    status: VerticalPodAutoscalerStatus = VerticalPodAutoscalerStatus()

    @property
    def recommendations(self) -> tuple[ContainerRecommendation, ...]:
        """The recommendations by container; empty before there are any."""
        found = self.status.recommendation
        return () if found is None else found.container_recommendations

    def recommendation_for(self, container: str) -> ContainerRecommendation | None:
        """Return the recommendation for a container."""
        return next(
            (recommendation for recommendation in self.recommendations if recommendation.container_name == container),
            None,
        )

    @property
    def target(self) -> ScaleTarget:
        """The workload whose pods it changes."""
        return self.spec.target_ref

    @property
    def workload(self) -> tuple[str, str, str]:
        """The same by namespace, kind and name."""
        return self.metadata.namespace, self.target.kind, self.target.name

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


class MetricTarget(Struct, frozen=True, gc=False, rename="camel"):
    """The target average over all pods."""

    average_utilization: int | None = None
    """In percent of the request."""
    average_value: Quantity | None = None
    type: str = ""
    """``Utilization``, ``AverageValue`` or ``Value``."""
    value: Quantity | None = None
    """The target of the metric as a whole."""


class ResourceMetric(Struct, frozen=True, gc=False, rename="camel"):
    """How much pods use of a resource: all containers of each, or the one that is named."""

    name: str = ""
    container: str = ""
    target: MetricTarget = MetricTarget()
    target_average_utilization: int | None = None
    """``target.averageUtilization`` in autoscaling/v2beta1."""
    target_average_value: Quantity | None = None

    @property
    def utilization(self) -> int | None:
        """The target in percent of the request; None if it is an amount."""
        stated = self.target.average_utilization
        return self.target_average_utilization if stated is None else stated

    @property
    def value(self) -> Quantity | None:
        """The target as an amount."""
        return self.target.average_value or self.target_average_value


class MetricIdentifier(Struct, frozen=True, gc=False):
    """The name of a metric that is not a resource."""

    name: str = ""


class OtherMetric(Struct, frozen=True, gc=False, rename="camel"):
    """A metric of pods, of an object, or from outside of the cluster."""

    metric: MetricIdentifier = MetricIdentifier()
    described_object: ScaleTarget = ScaleTarget()
    target: MetricTarget = MetricTarget()

    @property
    def counts_requests(self) -> bool:
        """Whether it is, by its name, about how many requests there are."""
        return "requests" in self.metric.name and self.target.average_value is not None


class Metric(Struct, frozen=True, gc=False, rename="camel"):
    """A metric of an autoscaler: exactly one of these."""

    type: str = ""
    resource: ResourceMetric | None = None
    container_resource: ResourceMetric | None = None
    pods: OtherMetric | None = None
    of_object: OtherMetric | None = field(default=None, name="object")
    external: OtherMetric | None = None


class HPAScalingPolicy(Struct, frozen=True, gc=False, rename="camel"):
    """How many replicas, or what part of them, may be added or removed within a period."""

    type: str = ""
    """``Pods`` or ``Percent``."""
    value: int = 0
    period_seconds: int = 0


class HPAScalingRules(Struct, frozen=True, gc=False, rename="camel"):
    """How fast replicas change in one direction."""

    stabilization_window_seconds: int | None = None
    select_policy: str | None = None
    """``Max``, ``Min`` or ``Disabled``."""
    policies: tuple[HPAScalingPolicy, ...] | None = None
    tolerance: Quantity | None = None


class HPABehavior(Struct, frozen=True, gc=False, rename="camel"):
    """How fast replicas change."""

    scale_up: HPAScalingRules | None = None
    scale_down: HPAScalingRules | None = None


_DEFAULT_UTILIZATION = 80
"""Of cpu, where no metric is stated."""
_METRICS_ANNOTATION = "autoscaling.alpha.kubernetes.io/metrics"
"""How autoscaling/v1 keeps the metrics that it has no field for."""


class HorizontalPodAutoscalerSpec(Struct, frozen=True, gc=False):
    """The workload whose replicas it changes, the bounds, and the metrics."""

    scale_target_ref: ScaleTarget = field(default=ScaleTarget(), name="scaleTargetRef")
    min_replicas: int = field(default=1, name="minReplicas")
    max_replicas: int = field(default=0, name="maxReplicas")
    metrics: tuple[Metric, ...] = ()
    target_cpu_utilization: int | None = field(default=None, name="targetCPUUtilizationPercentage")
    """In autoscaling/v1, instead of metrics."""
    behavior: HPABehavior | None = None


class HorizontalPodAutoscaler(Struct, frozen=True, gc=False):
    """Changes the number of a workload's pods."""

    metadata: ObjectMeta = ObjectMeta()
    spec: HorizontalPodAutoscalerSpec = HorizontalPodAutoscalerSpec()

    @property
    def target(self) -> ScaleTarget:
        """The workload whose pods it counts."""
        return self.spec.scale_target_ref

    @property
    def workload(self) -> tuple[str, str, str]:
        """The same by namespace, kind and name."""
        return self.metadata.namespace, self.target.kind, self.target.name

    @property
    def request_metrics(self) -> tuple[OtherMetric, ...]:
        """The metrics of pods that are, by their name, about how many requests each gets."""
        metrics = (metric.pods for metric in self.spec.metrics)
        return tuple(metric for metric in metrics if metric is not None and metric.counts_requests)

    @property
    def resource_metrics(self) -> tuple[ResourceMetric, ...]:
        """The metrics on resources of pods, with the default for an autoscaler that states none."""
        spec = self.spec
        if spec.metrics:
            each = (metric.resource or metric.container_resource for metric in spec.metrics)
            return tuple(metric for metric in each if metric is not None)
        if spec.target_cpu_utilization is None and _METRICS_ANNOTATION in self.metadata.annotations:
            return ()
        percent = _DEFAULT_UTILIZATION if spec.target_cpu_utilization is None else spec.target_cpu_utilization
        return (ResourceMetric(CPU, target=MetricTarget(percent)),)


Autoscaler = TypeVar("Autoscaler", VerticalPodAutoscaler, HorizontalPodAutoscaler)
