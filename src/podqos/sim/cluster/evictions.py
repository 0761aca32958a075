"""What the API server of a simulated cluster answers to evictions; ``controllers.eviction_api`` decides."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol

from podqos.agent.state import PodRecord
from podqos.controllers.eviction_api import BudgetedPod, EvictionRefusal, eviction_refusal, statuses
from podqos.model.pod import Pod
from podqos.placement.workloads import POD
from podqos.sim.cluster.fleet import Fleet
from podqos.sim.scenario.replicas import Replica
from podqos.sim.scenario.scenario import Scenario, ScenarioWorkload

_SCALED = frozenset({"Deployment", "ReplicaSet", "ReplicationController", "StatefulSet"})
"""Controllers whose scale the disruption controller can find."""


class BudgetedCluster(Protocol):
    """What disruption budgets are about."""

    scenario: Scenario
    fleet: Fleet

    @property
    def pods(self) -> Mapping[str, tuple[Pod, str | None]]:
        """By uid: the pods that are there, and their nodes."""

    def in_order(self) -> Sequence[tuple[str, Replica]]:
        """Return the pods in the order of creation, by uid."""

    def scale_of(self, workload: ScenarioWorkload) -> int:
        """Return how many pods a workload should have now."""

    def healthy_pods(self) -> Iterator[Pod]:
        """Yield the pods that are ready and not being removed."""

    def record_of(self, uid: str) -> PodRecord | None:
        """Return what the kubelet knows of a pod."""

    def is_deleted(self, pod: Pod) -> bool:
        """Whether a pod that is still there has been deleted."""


def refusal(cluster: BudgetedCluster, uid: str, pod: Pod) -> EvictionRefusal | None:
    """Return why the API server does not evict a pod; pods that are pending, or deleted, need no budget."""
    record = cluster.record_of(uid)
    if record is None or record.is_pending or not cluster.scenario.budgets:
        return None
    covering = statuses(cluster.scenario.budgets, pod, dict(_budgeted(cluster)))
    return eviction_refusal(is_ready=record.is_ready, budgets=covering)


def _budgeted(cluster: BudgetedCluster) -> Iterator[tuple[str, tuple[Pod, BudgetedPod]]]:
    """Yield all pods of the cluster as budgets count them."""
    healthy = {pod.metadata.uid for pod in cluster.healthy_pods()}
    for uid, replica in cluster.in_order():
        yield uid, (cluster.pods[uid][0], _counted(cluster, replica.workload, is_healthy=uid in healthy))
    for pod, _, replica in cluster.fleet.idle_pods():
        yield pod.metadata.uid, (pod, _counted(cluster, replica.workload, is_healthy=True))


def _counted(cluster: BudgetedCluster, workload: ScenarioWorkload, *, is_healthy: bool) -> BudgetedPod:
    if workload.kind == POD:
        return BudgetedPod(is_healthy)
    scale = cluster.scale_of(workload) if workload.kind in _SCALED else None
    return BudgetedPod(is_healthy, f"{workload.kind}/{workload.namespace}/{workload.name}", scale)
