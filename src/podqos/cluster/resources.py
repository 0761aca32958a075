"""Pure: resources that can be read from a cluster: their paths and models."""

from __future__ import annotations

from typing import Generic, TypeVar
from urllib.parse import quote

from msgspec import Struct

from podqos.model.autoscaling import HorizontalPodAutoscaler, VerticalPodAutoscaler
from podqos.model.disruption import PodDisruptionBudget
from podqos.model.event import Event
from podqos.model.metrics import NodeMetrics, PodMetrics
from podqos.model.node import Node
from podqos.model.pod import Pod, Workload
from podqos.model.policy import LimitRange, Namespace, PriorityClass, ResourceQuota, RuntimeClass
from podqos.model.service import Ingress, Service

Model = TypeVar("Model")


class Resource(Struct, Generic[Model], frozen=True):
    """A resource of the API, such as ``pods``; with another model it is read as something else."""

    group: str
    version: str
    plural: str
    kind: str
    model: type[Model]
    is_namespaced: bool = True

    @property
    def api_version(self) -> str:
        """``v1``, ``apps/v1``."""
        return f"{self.group}/{self.version}" if self.group else self.version

    def path(self, namespace: str = "", name: str = "", subresource: str = "") -> str:
        """Return the path of a list, of all namespaces or one, or of one object."""
        assert self.is_namespaced or not namespace
        root = f"/apis/{self.group}" if self.group else "/api"
        inside = ("namespaces", namespace) if namespace else ()
        parts = (self.version, *inside, self.plural, *filter(None, (name, subresource)))
        return "/".join((root, *(quote(part, safe="") for part in parts)))


PODS = Resource("", "v1", "pods", "Pod", Pod)
NODES = Resource("", "v1", "nodes", "Node", Node, is_namespaced=False)
EVENTS = Resource("", "v1", "events", "Event", Event)
NAMESPACES = Resource("", "v1", "namespaces", "Namespace", Namespace, is_namespaced=False)
LIMIT_RANGES = Resource("", "v1", "limitranges", "LimitRange", LimitRange)
RESOURCE_QUOTAS = Resource("", "v1", "resourcequotas", "ResourceQuota", ResourceQuota)
PRIORITY_CLASSES = Resource(
    "scheduling.k8s.io", "v1", "priorityclasses", "PriorityClass", PriorityClass, is_namespaced=False
)
RUNTIME_CLASSES = Resource("node.k8s.io", "v1", "runtimeclasses", "RuntimeClass", RuntimeClass, is_namespaced=False)
POD_DISRUPTION_BUDGETS = Resource("policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget", PodDisruptionBudget)
HORIZONTAL_POD_AUTOSCALERS = Resource(
    "autoscaling", "v2", "horizontalpodautoscalers", "HorizontalPodAutoscaler", HorizontalPodAutoscaler
)
VERTICAL_POD_AUTOSCALERS = Resource(
    "autoscaling.k8s.io", "v1", "verticalpodautoscalers", "VerticalPodAutoscaler", VerticalPodAutoscaler
)
"""Not part of Kubernetes itself: a cluster without them answers 404."""

SERVICES = Resource("", "v1", "services", "Service", Service)
INGRESSES = Resource("networking.k8s.io", "v1", "ingresses", "Ingress", Ingress)

DEPLOYMENTS = Resource("apps", "v1", "deployments", "Deployment", Workload)
STATEFUL_SETS = Resource("apps", "v1", "statefulsets", "StatefulSet", Workload)
DAEMON_SETS = Resource("apps", "v1", "daemonsets", "DaemonSet", Workload)
REPLICA_SETS = Resource("apps", "v1", "replicasets", "ReplicaSet", Workload)
"""Asked for by kind alone, where ``kubectl podqos explain rs/`` is completed."""
JOBS = Resource("batch", "v1", "jobs", "Job", Workload)
CRON_JOBS = Resource("batch", "v1", "cronjobs", "CronJob", Workload)

POD_METRICS = Resource("metrics.k8s.io", "v1beta1", "pods", "PodMetrics", PodMetrics)
NODE_METRICS = Resource("metrics.k8s.io", "v1beta1", "nodes", "NodeMetrics", NodeMetrics, is_namespaced=False)
"""Of metrics-server, or an adapter in its place."""
