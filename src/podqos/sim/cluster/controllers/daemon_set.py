"""A DaemonSet: one pod on every node that suits it, with a longer wait each time one fails on the same node."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import partial

from podqos.controllers.daemon_sets import DaemonSetSpec, DaemonSetView, sync
from podqos.controllers.set_pods import PodPhase, SetPod, next_available_us
from podqos.model.pod import Pod
from podqos.sim.cluster.controllers.controller import (
    DELETED,
    NODE_LOST,
    PREEMPTED,
    ControlledCluster,
    PodEnd,
    is_over,
    present_nodes,
)
from podqos.sim.cluster.controllers.sets import SCALED_DOWN, UPDATED, SetController
from podqos.sim.cluster.daemon_backoff import DaemonBackoff
from podqos.sim.scenario.replicas import Replica, daemons, named
from podqos.sim.scenario.scenario import ScenarioWorkload, WorkloadRollout

# Reasons for which the pod object is gone; otherwise a failed pod stays until its controller removes it.
_GONE = (NODE_LOST, PREEMPTED)


class DaemonSetController(SetController):
    """The pods of one DaemonSet."""

    def __init__(self, cluster: ControlledCluster, index: int, workload: ScenarioWorkload) -> None:
        super().__init__(cluster, index, workload)
        self._backoff = DaemonBackoff()
        self._first: set[str] = set()
        """The uids of its first pods on all nodes."""
        self.use(workload)
        self._free_us: dict[str, int] = {}
        """By node: when its next pod can be created."""
        self._failed: dict[str, SetPod] = {}
        """By node: a failed pod that is still there, because of the back-off."""
        self._used: dict[tuple[int, str], int] = {}
        """By template and node: how many pods it has had there."""
        self._places: dict[str, int] = {}
        """By node: which demand its pod has."""
        self._known: tuple[int, tuple[str, ...]] = 0, ()
        self._pods: Mapping[str, Pod] = {}
        """For the newest template and the nodes that are known: its pods."""
        self._is_complete = True

    def use(self, template: ScenarioWorkload) -> None:
        """Take over what a template says of how it is rolled out."""
        spec = template.rollout
        self._spec = spec if isinstance(spec, DaemonSetSpec) else DaemonSetSpec()

    def first_pods(self) -> Iterator[Pod]:
        """Yield its pods for the nodes that are there."""
        return self._new(present_nodes(self._cluster.fleet))

    def _new(self, nodes: Iterable[str]) -> Iterator[Pod]:
        """Yield its pods for nodes on which it had none; what becomes of those is another matter."""
        cluster = self._cluster
        for pod in daemons(self.workload, map(cluster.control_plane.api_node, nodes), cluster.scenario.profile):
            if pod.metadata.uid not in self._first:
                self._first.add(pod.metadata.uid)
                yield pod

    def node_joined(self, name: str, now_us: int) -> None:
        """Create its pod on a new node."""
        super().node_joined(name, now_us)
        if self.is_managed:
            self.plan_sync(now_us)
        elif self.workload.arrives_us < now_us and not is_over(self.workload, now_us):
            cluster = self._cluster
            for pod in self._new((name,)):
                cluster.create(pod, Replica(self.workload, cluster.fleet.names.index(name), cluster.next_order()))

    def node_removed(self, name: str, now_us: int) -> None:
        """Forget that there was a pod on a node that is gone."""
        self._first.discard(f"{self.workload.namespace}_{self.workload.pod.metadata.name}-{name}")
        super().node_removed(name, now_us)

    def wait_us(self, end: PodEnd, now_us: int) -> int:
        """Return how long a failed pod stays before it is replaced."""
        if end.node is None or end.why in _GONE or not self._cluster.scenario.profile.daemon_set_backoff:
            return 0
        return self._backoff.wait_us(self.workload.name, end.node, now_us)

    # ---- rollouts ------------------------------------------------------------------------------------------------

    def manage(self) -> None:
        """Take over the pods that are there."""
        if self.is_managed:
            return
        super().manage()
        for own in self.own_pods(self._cluster.queue.now_us):
            self._used[1, _pinned_to(own.pod)] = own.replica.generation + 1
            self._places[_pinned_to(own.pod)] = own.replica.number

    def roll_out(self, change: WorkloadRollout, now_us: int) -> None:
        """Change the template: its pods are updated node by node."""
        super().roll_out(change, now_us)
        self._is_complete = False

    def ended(self, end: PodEnd, now_us: int) -> None:
        """Replace a pod; after a rollout with one of the newest template."""
        if end.why == NODE_LOST and end.node not in self._cluster.unreachable_us:
            # Its node is no longer there: it gets a pod again when it joins.
            self._first.discard(end.pod.metadata.uid)
            self.forget(end.pod.metadata.uid)
            return
        if not self.is_managed:
            super().ended(end, now_us)
            return
        self.forget(end.pod.metadata.uid)
        node = _pinned_to(end.pod)
        wait_us = 0 if end.why == DELETED else self.wait_us(end, now_us)
        self._free_us[node] = self.free_us(now_us) + wait_us
        if wait_us:
            name, number = end.pod.metadata.name, self.number_of(end.replica)
            self._failed[node] = SetPod(name=name, revision=number, phase=PodPhase.FAILED, node=node)
            self._cluster.plan(now_us + wait_us, partial(self._remove_failed, node))
        self.plan_sync(now_us)

    def _remove_failed(self, node: str, now_us: int) -> None:
        if self._failed.pop(node, None) is not None:
            self.plan_sync(now_us)

    def wants(self, end: PodEnd, now_us: int) -> bool:
        """Whether a pod is replaced as it was; after a rollout that is decided anew."""
        if self.is_managed:
            self._free_us[_pinned_to(end.pod)] = now_us
            self.plan_sync(now_us)
        return not self.is_managed

    def sync(self, now_us: int) -> None:
        """Create and delete pods until there is nothing to do."""
        while True:
            wanted = self._wanted()
            own = {mine.status.name: mine.pod for mine in self.own_pods(now_us)}
            pods, surplus = self._by_node(wanted, now_us)
            view = DaemonSetView(self._spec, self._newest, pods, now_us)
            step = sync(view)
            for why, several in ((UPDATED, step.delete), (SCALED_DOWN, surplus)):
                for status in several:
                    self._delete(status, own, why, now_us)
            created = [self._create(node, wanted[node], now_us) for node in step.create]
            if not (step.delete or surplus or any(created)):
                break
        everything = tuple(status for on_node in pods.values() for status in on_node)
        due_us = next_available_us(everything, self._spec.min_ready_seconds, now_us)
        if due_us is not None:
            self.plan_sync(due_us)
        is_complete = all(
            len(on_node) == 1 and on_node[0].revision == self._newest and view.is_available(on_node[0])
            for on_node in pods.values()
        )
        if is_complete and not self._is_complete:
            self.note_complete()
        self._is_complete = self._is_complete or is_complete

    def _wanted(self) -> Mapping[str, Pod]:
        """Return the nodes that are to run a pod of the newest template, and the pods."""
        cluster = self._cluster
        fleet, away = cluster.fleet, cluster.unreachable_us
        known = self._newest, tuple(name for name in fleet.names if fleet.is_present(name) or name in away)
        if known != self._known:
            template = self._templates[self._newest] or self.workload
            nodes = map(cluster.control_plane.api_node, known[1])
            self._pods = {_pinned_to(pod): pod for pod in daemons(template, nodes, cluster.scenario.profile)}
            self._known = known
        return self._pods

    def _by_node(self, wanted: Mapping[str, Pod], now_us: int) -> tuple[dict[str, list[SetPod]], list[SetPod]]:
        """Return the pods by node, and those on nodes that are not to run one."""
        pods: dict[str, list[SetPod]] = {node: [] for node in wanted}
        surplus = []
        for mine in self.own_pods(now_us):
            node = _pinned_to(mine.pod)
            if node in pods:
                pods[node].append(mine.status)
            elif not mine.status.is_terminating:
                surplus.append(mine.status)
        for node, failed in self._failed.items():
            if node in pods:
                pods[node].append(failed)
        return pods, surplus

    def _delete(self, status: SetPod, own: Mapping[str, Pod], why: str, now_us: int) -> None:
        if status.is_terminal:
            del self._failed[status.node]
            self._free_us[status.node] = self.free_us(now_us)
            return
        pod = own[status.name]
        is_pending = self._cluster.pods[pod.metadata.uid][1] is None
        self.delete(pod, why)
        if is_pending:  # it is gone at once
            self._free_us[_pinned_to(pod)] = self.free_us(now_us)

    def _create(self, node: str, pod: Pod, now_us: int) -> bool:
        cluster = self._cluster
        if self._free_us.get(node, now_us) > now_us and not self._spec.counts(1)[0]:
            self.plan_sync(self._free_us[node])
            return False
        number = self._places.setdefault(node, cluster.fleet.names.index(node))
        used = self._used.get((self._newest, node), 0)
        self._used[self._newest, node] = used + 1
        made = named(pod, f"{pod.metadata.name}-r{used}") if used else pod
        template = self._templates[self._newest]
        cluster.create(made, Replica(self.workload, number, cluster.next_order(), used, template))
        self.own(made)
        return True


def _pinned_to(pod: Pod) -> str:
    """Return the node that a pod of a DaemonSet is for."""
    affinity = pod.spec.affinity
    assert affinity is not None
    assert affinity.node_affinity is not None
    required = affinity.node_affinity.required
    assert required is not None
    return required.node_selector_terms[0].match_fields[0].values[0]
