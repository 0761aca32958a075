"""Which pods a ReplicaSet deletes first when it has too many.

Source: Kubernetes v1.36.4 pkg/controller/replicaset/replica_set.go (manageReplicas, getPodsToDelete,
getPodsRankedByRelatedPodsOnSameNode) and pkg/controller/controller_utils.go (ActivePodsWithRanks). Upstream breaks ties
by random uids; here the pod with the higher number is deleted first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cmp_to_key
from math import log2

from podqos.controllers.set_pods import PodPhase, SetPod

_NANOSECONDS = 1000


def pods_to_delete(active: Sequence[SetPod], related: Iterable[SetPod], count: int, now_us: int) -> tuple[SetPod, ...]:
    """Return the pods to delete, first one first; ``related`` are all pods of ReplicaSets of the same Deployment."""
    on_node = Counter(pod.node for pod in related if pod.is_active)

    def compared(one: SetPod, other: SetPod) -> int:
        first = _first_difference(one, other, on_node, now_us)
        return first or other.number - one.number

    return tuple(sorted(active, key=cmp_to_key(compared))[:count])


def _first_difference(one: SetPod, other: SetPod, on_node: Counter[str], now_us: int) -> int:
    """Return a negative number if the first is deleted before the other, 0 if nothing tells them apart."""
    if bool(one.node) != bool(other.node):
        return -1 if not one.node else 1
    if one.phase is not other.phase:
        return -1 if one.phase is PodPhase.PENDING else 1
    if one.is_ready != other.is_ready:
        return -1 if not one.is_ready else 1
    if one.deletion_cost != other.deletion_cost:
        return one.deletion_cost - other.deletion_cost
    if on_node[one.node] != on_node[other.node]:
        return on_node[other.node] - on_node[one.node]
    if (
        one.ready_since_us is not None
        and other.ready_since_us is not None
        and one.ready_since_us != other.ready_since_us
    ):
        return _age_rank(one.ready_since_us, now_us) - _age_rank(other.ready_since_us, now_us)
    if one.restarts != other.restarts:
        return -1 if one.restarts > other.restarts else 1
    return _age_rank(one.created_us, now_us) - _age_rank(other.created_us, now_us)


def _age_rank(since_us: int, now_us: int) -> int:
    """Return the power of two below an age: ages of the same order count as equal (``logarithmicRankDiff``)."""
    age = (now_us - since_us) * _NANOSECONDS
    return int(log2(age)) if age > 0 else -1
