"""What the API server of a simulated cluster answers to evictions; ``controllers.eviction_api`` decides."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol

from podqos.agent.state import ContainerStage, PodRecord, Role, Stage
from podqos.controllers.eviction_api import BudgetedPod, BudgetStatus, EvictionAnswer, eviction_answer, statuses
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


def answer(cluster: BudgetedCluster, uid: str, pod: Pod) -> EvictionAnswer:
    """Return whether the API server evicts a pod."""
    record = cluster.record_of(uid)
    is_ready = record is not None and record.is_ready
    needs_budget = not (is_pending(record) or cluster.is_deleted(pod))
    covering = budgets_of(cluster, pod) if needs_budget else []
    return eviction_answer(needs_budget=needs_budget, is_ready=is_ready, budgets=covering)


def budgets_of(cluster: BudgetedCluster, pod: Pod) -> Sequence[BudgetStatus]:
    """Return the budgets that cover a pod, as they are now."""
    budgets = cluster.scenario.budgets
    return statuses(budgets, pod, dict(_budgeted(cluster))) if budgets else ()


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


def is_pending(record: PodRecord | None) -> bool:
    """Whether the phase of a pod is Pending: none of its regular containers has been started yet."""
    if record is None or record.stage is Stage.STARTING:
        return True
    regular = (container for container in record.containers if container.role is Role.REGULAR)
    return all(container.stage is ContainerStage.WAITING for container in regular)
