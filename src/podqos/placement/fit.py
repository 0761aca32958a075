"""Whether a node has enough left: by requests alone, never by class.

Source: Kubernetes v1.36 pkg/scheduler/framework/plugins/noderesources/fit.go (fitsRequest).
"""

from __future__ import annotations

from collections.abc import Mapping

from podqos.model.node import PODS
from podqos.model.resources import CPU, EPHEMERAL_STORAGE, MEMORY
from podqos.placement.demand import Demand
from podqos.placement.node_state import SchedulerNode
from podqos.placement.reasons import Insufficient

# The order in which the scheduler names what is missing; other resources follow by name.
_FIRST = (CPU, MEMORY, EPHEMERAL_STORAGE)


def insufficient(demand: Demand, state: SchedulerNode) -> tuple[Insufficient, ...]:
    """Return the resources that are insufficient for one more pod; none if it fits."""
    return lacking(demand.requested, state.requested, state.allocatable, len(state.pods), state.allowed_pods)


def lacking(
    requested: Mapping[str, int], used: Mapping[str, int], allocatable: Mapping[str, int], pods: int, allowed_pods: int
) -> tuple[Insufficient, ...]:
    """Return the same from plain figures: the pod's requests, the requests on the node, and allocatable."""
    missing = []
    if pods + 1 > allowed_pods:
        missing.append(Insufficient(PODS, 1, pods, allowed_pods))
    for name, amount in requested.items():
        # A node may be overfull of a resource; that does not concern a pod that asks for none of it.
        if amount > 0 and amount > allocatable.get(name, 0) - used.get(name, 0):
            missing.append(Insufficient(name, amount, used.get(name, 0), allocatable.get(name, 0)))
    if len(missing) > 1:
        missing.sort(key=_order)
    return tuple(missing)


def _order(reason: Insufficient) -> tuple[int, str]:
    if reason.resource == PODS:
        return -1, ""
    return (_FIRST.index(reason.resource), "") if reason.resource in _FIRST else (len(_FIRST), reason.resource)
