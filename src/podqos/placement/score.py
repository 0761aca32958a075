"""Which of the nodes that would do is taken.

Upstream looks at a sample of the nodes, scores it by a dozen plugins and picks at random among the best. podqos looks
at all of them, adds the two scores that decide for ordinary pods, and takes the first by name among equals, so that
the same input gives the same answer: LeastAllocated prefers the emptier node, BalancedAllocation the one where cpu and
memory would be used to the same degree.

Source: Kubernetes v1.36 pkg/scheduler/framework/plugins/noderesources/{least_allocated,balanced_allocation}.go. Both
round as upstream does. LeastAllocated counts something for containers that request nothing, BalancedAllocation does
not, and a pod that requests neither cpu nor memory is not scored by it.
"""

from __future__ import annotations

from podqos.model.resources import CPU, MEMORY
from podqos.placement.demand import Demand
from podqos.placement.node_state import NodeState

MAX_NODE_SCORE = 100


def score(demand: Demand, state: NodeState) -> int:
    """Return how well the pod would lie on the node: 0 to 200, more is better."""
    return least_allocated(demand, state) + balanced_allocation(demand, state)


def least_allocated(demand: Demand, state: NodeState) -> int:
    """Return the mean of what would be left of cpu and memory, in percent."""
    scores = [
        _free_percent(capacity, used)
        for capacity, used in (
            (state.cpu_milli, state.scored_cpu_milli + demand.scored_cpu_milli),
            (state.memory_bytes, state.scored_memory_bytes + demand.scored_memory_bytes),
        )
        if capacity
    ]
    return sum(scores) // len(scores) if scores else 0


def balanced_allocation(demand: Demand, state: NodeState) -> int:
    """Return 100 less half the difference between the used parts of cpu and memory, in percent."""
    if not demand.requested.get(CPU) and not demand.requested.get(MEMORY):
        return 0
    fractions = [
        min(1.0, (state.requested.get(name, 0) + demand.requested.get(name, 0)) / capacity)
        for name, capacity in ((CPU, state.cpu_milli), (MEMORY, state.memory_bytes))
        if capacity
    ]
    deviation = abs((fractions[0] - fractions[1]) / 2) if len(fractions) == 2 else 0.0
    return int((1 - deviation) * MAX_NODE_SCORE)


def _free_percent(capacity: int, used: int) -> int:
    return (capacity - used) * MAX_NODE_SCORE // capacity if used <= capacity else 0
