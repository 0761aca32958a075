"""A simulated cluster, put together: nodes and pods, their controllers, autoscalers and services, and what happens."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from podqos.agent.journal import By, Entry, Kind
from podqos.agent.reasons import BudgetRefuses, ScaledFromTo
from podqos.model.disruption import PodDisruptionBudget, desired_healthy
from podqos.model.pod import Pod
from podqos.model.time_units import SECOND_US
from podqos.placement.workloads import DAEMON_SET
from podqos.sim.cluster.autoscaling import Autoscalers
from podqos.sim.cluster.control_plane import DELETED, DRAINED, Controller, ControlPlane
from podqos.sim.cluster.controllers import KeptReplicas, SetController
from podqos.sim.cluster.jobs import CronJobController, JobController
from podqos.sim.cluster.rollouts import DaemonSetController, DeploymentController, StatefulSetController
from podqos.sim.cluster.services import Services
from podqos.sim.engine.event_queue import EventQueue
from podqos.sim.node.node import MakeRest
from podqos.sim.scenario.replicas import is_bound, pod_of
from podqos.sim.scenario.scenario import (
    Cordoned,
    Drained,
    Happening,
    NodeAdded,
    NodeDeleted,
    NodeLost,
    OutOfService,
    Scenario,
    ScenarioWorkload,
    WorkloadChange,
    WorkloadScale,
)

_RETRY_US = 5 * SECOND_US
"""How often a drain tries again what a budget refuses (EvictErrorRetryDelay in kubectl/pkg/drain/drain.go)."""
_VIOLATES = "Cannot evict pod as it would violate the pod's disruption budget."
_SEVERAL = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
_MIRROR = "kubernetes.io/config.mirror"
_BY_KIND: dict[str, Callable[[ControlPlane, int, ScenarioWorkload], Controller]] = {
    DAEMON_SET: DaemonSetController,
    "StatefulSet": StatefulSetController,
    "Deployment": DeploymentController,
    "ReplicaSet": DeploymentController,
    "ReplicationController": DeploymentController,
}


class SimCluster(ControlPlane):
    """All nodes of a scenario, and everything above them."""

    def __init__(
        self,
        scenario: Scenario,
        queue: EventQueue,
        *,
        is_watched: Callable[[str], bool] = lambda _: True,
        rest: MakeRest | None = None,
    ) -> None:
        """Set up the cluster. Nodes that nobody watches rest while provably nothing happens there."""
        super().__init__(scenario, queue, is_watched, rest)
        self.services: Services | None = None
        """What answers requests; None if nothing does."""
        self._autoscalers: Autoscalers | None = None
        for index, workload in enumerate(scenario.workloads):
            self.controllers[id(workload)] = self._controller_of(index, workload)
        self._watching = frozenset(which for which, each in self.controllers.items() if each.watches_status)
        self._plan_all()
        if scenario.has_services:
            self.services = Services(self)
        if scenario.has_actors:
            self._autoscalers = Autoscalers(self, self.services)

    def _controller_of(self, index: int, workload: ScenarioWorkload) -> Controller:
        if workload.recreate and workload.cron is not None:
            return CronJobController(self, index, workload)
        if workload.recreate and workload.job is not None:
            return JobController(self, index, workload)
        kind = workload.kind if workload.recreate or workload.kind == DAEMON_SET else ""
        return _BY_KIND.get(kind, KeptReplicas)(self, index, workload)

    def write(self, entry: Entry) -> None:
        """Write an entry into the journal."""
        super().write(entry)
        if self._autoscalers is not None:
            self._autoscalers.saw(entry)

    def heard(self, entry: Entry) -> None:
        """Take note of an entry about a pod or a node."""
        if self.services is not None:
            self.services.heard(entry)

    def readiness_changed(self, uid: str) -> None:
        """Tell services, and the controller of a pod, that it has become ready, or no longer is."""
        if self.services is not None:
            self.services.disturbed()
        super().readiness_changed(uid)

    # ---- what happens --------------------------------------------------------------------------------------------

    def _plan_all(self) -> None:
        """Plan what the scenario says. At one moment machines join, pods are deleted, arrive, and machines are lost.

        So a pod that arrives finds room that another leaves at that moment, wherever the two stand in the files.
        """
        scenario = self.scenario
        machines = [happening for happening in scenario.happenings if isinstance(happening, NodeLost | NodeAdded)]
        lost = {happening for happening in machines if isinstance(happening, NodeLost)}
        later = [happening for happening in machines if NodeLost(happening.at_us, happening.node) in lost]
        for machine in machines:
            if machine not in later:
                self.plan(machine.at_us, partial(self.join, machine.node))
        for workload in scenario.workloads:
            if workload.deleted_us is not None:
                self.plan(workload.deleted_us, partial(self._delete, workload))
        for workload in scenario.workloads:
            self.plan(workload.arrives_us, partial(self._arrive, workload))
        controllers = {workload.identity: self.controllers[id(workload)] for workload in scenario.workloads}
        for change in scenario.workload_changes:
            self.plan(change.at_us, partial(self._change, change, controllers[change.workload]))
        for happening in scenario.happenings:
            if not isinstance(happening, NodeLost | NodeAdded):
                self.plan(happening.at_us, partial(self._happen, happening))
        for each in later:
            self.plan(each.at_us, partial(self._lose if each in lost else self.join, each.node))

    def _happen(self, happening: Happening, now_us: int) -> None:
        """Let an event happen that is neither the loss nor the arrival of a machine."""
        match happening:
            case Cordoned(node=name, takes_pods=takes_pods):
                self.cordon(name, takes_pods=takes_pods)
            case Drained(node=name):
                self.cordon(name, takes_pods=False)
                self._drain(name, [uid for uid, _ in self.bound_to(name) if self._is_drained(uid)], {}, now_us)
            case NodeDeleted(node=name):
                self.node_deleted(name, now_us)
            case OutOfService(node=name):
                self.out_of_service(name, now_us)

    def _change(self, change: WorkloadChange, controller: Controller, now_us: int) -> None:
        """Let a user roll out, roll back or scale a workload."""
        workload = controller.workload
        name = f"{workload.namespace}/{workload.name}"
        if isinstance(change, WorkloadScale):
            assert isinstance(controller, SetController | JobController), f"{name} is not scaled"
            self.announce(Kind.SCALED, By.USER, ScaledFromTo(name, controller.replicas, change.replicas))
            controller.scale(change.replicas, now_us)
        else:
            assert isinstance(controller, SetController), f"{name} is not rolled out"
            controller.roll_out(change, now_us)

    def _arrive(self, workload: ScenarioWorkload, now_us: int) -> None:
        if workload.deleted_us != workload.arrives_us:
            self.controllers[id(workload)].begin(now_us)

    def _delete(self, workload: ScenarioWorkload, now_us: int) -> None:
        if workload.arrives_us == now_us:
            self._delete_unseen(workload)
            return
        for uid, replica in self.in_order():
            if replica.workload is workload:
                pod, name = self.pods[uid]
                self.note(Kind.DELETED, pod, name, By.USER)
                self.remove(uid, DELETED)

    def _delete_unseen(self, workload: ScenarioWorkload) -> None:
        """Write that pods are deleted the moment they arrive, before any of them runs: no node hears of them."""
        if is_bound(workload):
            unseen = [(pod_of(workload, number), name) for number, name in self.fleet.places(workload)]
        else:
            unseen = [(pod, "") for pod in self.controllers[id(workload)].first_pods()]
        for pod, name in unseen:
            self.write(Entry(self.queue.now_us, name, Kind.DELETED, pod.key, None, By.USER))

    def _lose(self, name: str, now_us: int) -> None:
        node = self.fleet.get(name)
        if node is not None:
            node.lost(now_us)

    # ---- drains --------------------------------------------------------------------------------------------------

    def _is_drained(self, uid: str) -> bool:
        """Whether a drain is about a pod: those of DaemonSets and of the kubelet stay."""
        pod, _ = self.pods[uid]
        return self.replica_of(uid).workload.kind != DAEMON_SET and _MIRROR not in pod.metadata.annotations

    def _drain(self, name: str, uids: list[str], refused: dict[str, BudgetRefuses], now_us: int) -> None:
        """Delete pods of a node as their disruption budgets allow now; try the others again later."""
        left = []
        for uid in uids:
            pod, _ = self.pods.get(uid, (None, None))
            if pod is None or self.is_deleted(pod):
                continue
            because = self._refusal(uid, pod)
            if because is None:
                self.note(Kind.DRAINED, pod, name, By.USER)
                self.remove(uid, DRAINED)
                continue
            left.append(uid)
            if refused.get(uid) != because:
                refused[uid] = because
                self.note(Kind.DRAIN_BLOCKED, pod, name, By.USER, because)
        if left:
            self.plan(now_us + _RETRY_US, partial(self._drain, name, left, refused))

    def _refusal(self, uid: str, pod: Pod) -> BudgetRefuses | None:
        """Return the disruption budget that does not let a pod be evicted now; pending pods need none.

        Source: Kubernetes v1.36 pkg/registry/core/pod/storage/eviction.go (canIgnorePDB, checkAndDecrement). The
        disruption controller is taken to be up to date.
        """
        record = self.record_of(uid)
        if record is None or record.is_pending:
            return None
        covering = [budget for budget in self.scenario.budgets if _covers(budget, pod)]
        for budget in covering[:1]:
            name = budget.metadata.name
            healthy = sum(_covers(budget, other) for other in self.healthy_pods())
            desired = desired_healthy(budget, sum(_covers(budget, other) for other in self.expected_pods()))
            if len(covering) > 1:
                return BudgetRefuses(" and ".join(each.metadata.name for each in covering), healthy, desired, _SEVERAL)
            # One that is not ready takes nothing from a budget that is satisfied without it.
            is_spare = not record.is_ready and (
                healthy >= desired > 0 or budget.spec.unhealthy_pod_eviction_policy == "AlwaysAllow"
            )
            if healthy <= desired and not is_spare:
                needs = f"{name} needs {desired} healthy pods and has {healthy} currently"
                return BudgetRefuses(name, healthy, desired, f"{_VIOLATES} The disruption budget {needs}")
        return None


def _covers(budget: PodDisruptionBudget, pod: Pod) -> bool:
    """Whether a budget covers a pod: to the eviction API, an empty selector covers every pod of its namespace."""
    selector = budget.spec.selector
    return (
        selector is not None
        and budget.metadata.namespace_or_default == pod.metadata.namespace_or_default
        and selector.matches(pod.metadata.labels)
    )
