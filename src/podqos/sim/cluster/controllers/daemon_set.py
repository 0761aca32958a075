"""A DaemonSet: one pod on every node that suits it, with a longer wait each time one fails on the same node."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from podqos.model.pod import Pod
from podqos.sim.cluster.controllers.controller import (
    NODE_LOST,
    PREEMPTED,
    ControlledCluster,
    PodEnd,
    is_over,
    present_nodes,
)
from podqos.sim.cluster.controllers.replicas import KeptReplicas
from podqos.sim.cluster.daemon_backoff import DaemonBackoff
from podqos.sim.scenario.replicas import Replica, daemons
from podqos.sim.scenario.scenario import ScenarioWorkload

# Reasons for which the pod object is gone; otherwise a failed pod stays until its controller removes it.
_GONE = (NODE_LOST, PREEMPTED)


class DaemonSetController(KeptReplicas):
    """The pods of one DaemonSet."""

    def __init__(self, cluster: ControlledCluster, index: int, workload: ScenarioWorkload) -> None:
        super().__init__(cluster, index, workload)
        self._backoff = DaemonBackoff()
        self._first: set[str] = set()
        """The uids of its first pods on all nodes."""

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
        if self.workload.arrives_us < now_us and not is_over(self.workload, now_us):
            cluster = self._cluster
            for pod in self._new((name,)):
                cluster.create(pod, Replica(self.workload, cluster.fleet.names.index(name), cluster.next_order()))

    def node_removed(self, name: str) -> None:
        """Forget that there was a pod on a node that is gone."""
        gone = f"{self.workload.namespace}_{self.workload.pod.metadata.name}-{name}"
        self._first.discard(gone)

    def wait_us(self, end: PodEnd, now_us: int) -> int:
        """Return how long a failed pod stays before it is replaced."""
        if end.node is None or end.why in _GONE or not self._cluster.scenario.profile.daemon_set_backoff:
            return 0
        return self._backoff.wait_us(self.workload.name, end.node, now_us)
