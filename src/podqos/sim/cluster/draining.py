"""The drain of a node: its pods are evicted through the API, as their PodDisruptionBudgets allow.

Pods of DaemonSets and of the kubelet stay. An eviction that is refused is tried again every five seconds, as kubectl
does (EvictErrorRetryDelay in staging/src/k8s.io/kubectl/pkg/drain/drain.go); here for as long as it takes.
"""

from __future__ import annotations

from typing import Protocol

from podqos.agent.journal import By, Kind
from podqos.agent.reasons import Because, BudgetRefuses
from podqos.model.pod import Pod
from podqos.model.time_units import SECOND_US
from podqos.placement.workloads import DAEMON_SET
from podqos.sim.cluster.controllers.controller import DRAINED
from podqos.sim.cluster.evictions import BudgetedCluster, refusal
from podqos.sim.engine.event_queue import Action
from podqos.sim.scenario.replicas import Replica

_RETRY_US = 5 * SECOND_US
_MIRROR = "kubernetes.io/config.mirror"


class DrainedCluster(BudgetedCluster, Protocol):
    """What a drain does to a cluster."""

    def remove(self, uid: str, why: str) -> None:
        """Delete a pod with its grace period."""

    def plan(self, time_us: int, action: Action) -> None:
        """Plan something for later."""

    def note(self, kind: Kind, pod: Pod, node: str | None, by: By, because: Because | None = None) -> None:
        """Write a journal entry about a pod."""


class Drain:
    """The drain of one node."""

    def __init__(self, cluster: DrainedCluster, node: str) -> None:
        self._cluster = cluster
        self._node = node
        cluster.fleet.get(node)
        self._left = [uid for uid, replica in cluster.in_order() if self._goes(uid, replica)]
        """The uids of pods that are to go. What comes later stays."""
        self._refused: dict[str, BudgetRefuses] = {}
        """By uid: what was said last of a pod that may not be evicted."""

    def evict(self, now_us: int) -> None:
        """Evict the pods that may be evicted now; try the others again later."""
        cluster = self._cluster
        left, self._left = self._left, []
        for uid in left:
            pod, _ = cluster.pods.get(uid, (None, None))
            if pod is None or cluster.is_deleted(pod):
                continue
            refused = refusal(cluster, uid, pod)
            if refused is None:
                cluster.note(Kind.DRAINED, pod, self._node, By.USER)
                cluster.remove(uid, DRAINED)
                continue
            self._left.append(uid)
            because = BudgetRefuses(refused.budget, refused.healthy, refused.desired, refused.message)
            if self._refused.get(uid) != because:
                self._refused[uid] = because
                cluster.note(Kind.DRAIN_BLOCKED, pod, self._node, By.USER, because)
        if self._left:
            cluster.plan(now_us + _RETRY_US, self.evict)

    def _goes(self, uid: str, replica: Replica) -> bool:
        pod, node = self._cluster.pods[uid]
        return node == self._node and replica.workload.kind != DAEMON_SET and _MIRROR not in pod.metadata.annotations
