"""Which of the feasible nodes is chosen: the score plugins of the default profile, with its weights.

Every plugin gives each node 0 to 100 points; the weighted sum decides. The scheduler picks at random among the best;
podqos takes the first by name, so that the same input gives the same answer. Upstream looks at a sample of the nodes
once there are more than a hundred, podqos at all of them.

Source: Kubernetes v1.36 pkg/scheduler/apis/config/v1/default_plugins.go (weights),
pkg/scheduler/framework/plugins/noderesources/{least_allocated,balanced_allocation,resource_allocation}.go,
pkg/scheduler/framework/plugins/helper/normalize_score.go and the NormalizeScore of each plugin. All round as upstream
does. LeastAllocated counts something for containers that request nothing, BalancedAllocation does not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct

from podqos.model.profile import LATEST, Profile
from podqos.model.resources import CPU, MEMORY
from podqos.placement.demand import Demand
from podqos.placement.filters import SchedulerCluster
from podqos.placement.image_locality import image_points
from podqos.placement.node_affinity import preference
from podqos.placement.node_state import SchedulerNode
from podqos.placement.pod_affinity import attraction
from podqos.placement.pod_view import PodView
from podqos.placement.reasons import Plugin
from podqos.placement.taints import disliked
from podqos.placement.topology_spread import crowdedness

MAX_NODE_SCORE = 100
_NOTHING: Mapping[str, int] = {}

WEIGHTS: Mapping[Plugin, int] = {
    Plugin.TAINT_TOLERATION: 3,
    Plugin.NODE_AFFINITY: 2,
    Plugin.NODE_RESOURCES_FIT: 1,
    Plugin.POD_TOPOLOGY_SPREAD: 2,
    Plugin.INTER_POD_AFFINITY: 2,
    Plugin.NODE_RESOURCES_BALANCED_ALLOCATION: 1,
    Plugin.IMAGE_LOCALITY: 1,
}


class NodeScore(Struct, frozen=True, gc=False):
    """How good one node is for a pod."""

    node: str
    total: int
    points: dict[Plugin, int]
    """Weighted, by plugin; plugins that do not apply to the pod are left out."""


class Choice(Struct, frozen=True, gc=False):
    """The node that a pod gets."""

    state: SchedulerNode
    scores: tuple[NodeScore, ...] = ()
    """Scores of every feasible node; empty unless requested."""


def node_scores(view: PodView, feasible: Sequence[SchedulerNode], cluster: SchedulerCluster) -> list[NodeScore]:
    """Return the scores of feasible nodes, in order."""
    columns = _columns(view, feasible, cluster)
    scores = []
    for index, state in enumerate(feasible):
        points = {plugin: WEIGHTS[plugin] * column[index] for plugin, column in columns.items()}
        scores.append(NodeScore(state.name, sum(points.values()), points))
    return scores


def totals(view: PodView, feasible: Sequence[SchedulerNode], cluster: SchedulerCluster) -> list[int]:
    """Return only the sums."""
    columns = _columns(view, feasible, cluster)
    weighted = ([WEIGHTS[plugin] * each for each in column] for plugin, column in columns.items())
    return [sum(points) for points in zip(*weighted, strict=True)]


def _columns(view: PodView, feasible: Sequence[SchedulerNode], cluster: SchedulerCluster) -> dict[Plugin, list[int]]:
    """Return the scores of every node by plugin."""
    shape, demand, profile = view.shape, view.shape.demand, cluster.profile
    columns = {Plugin.NODE_RESOURCES_FIT: [least_allocated(demand, state) for state in feasible]}
    if is_balanced(demand, profile):
        columns[Plugin.NODE_RESOURCES_BALANCED_ALLOCATION] = [
            balanced_allocation(demand, state, profile) for state in feasible
        ]
    tainted = [disliked(state.taints, shape.spec.tolerations) if state.taints else 0 for state in feasible]
    if any(tainted):
        columns[Plugin.TAINT_TOLERATION] = [MAX_NODE_SCORE - each for each in normalised(tainted)]
    if shape.preferred_nodes:
        columns[Plugin.NODE_AFFINITY] = normalised(
            [preference(shape.preferred_nodes, state.node) for state in feasible]
        )
    crowded = crowdedness(view, feasible, cluster.states)
    if crowded is not None:
        columns[Plugin.POD_TOPOLOGY_SPREAD] = _roomier(crowded)
    drawn = attraction(view, feasible, cluster.states, cluster.namespaces)
    if drawn is not None:
        columns[Plugin.INTER_POD_AFFINITY] = _stretched(drawn)
    if any(state.images for state in feasible):
        columns[Plugin.IMAGE_LOCALITY] = [
            image_points(shape.images, shape.image_count, state.images, cluster.image_states, len(cluster.states))
            for state in feasible
        ]
    return columns


def least_allocated(demand: Demand, state: SchedulerNode) -> int:
    """Return the mean of what would be left of cpu and memory, in percent."""
    cpu, memory = state.cpu_milli, state.memory_bytes
    free_cpu = _free_percent(cpu, state.scored_cpu_milli + demand.asking_cpu_milli) if cpu else 0
    free_memory = _free_percent(memory, state.scored_memory_bytes + demand.asking_memory_bytes) if memory else 0
    return (free_cpu + free_memory) // 2 if cpu and memory else free_cpu + free_memory


def is_balanced(demand: Demand, profile: Profile) -> bool:
    """Whether BalancedAllocation applies to the pod."""
    requested = demand.requested
    return bool(requested.get(CPU) or requested.get(MEMORY)) or not profile.balance_ignores_best_effort


def balanced_allocation(demand: Demand, state: SchedulerNode, profile: Profile = LATEST) -> int:
    """Return how well the pod balances the used parts of cpu and memory.

    Since 1.36 50 to 100 points by how the balance changes, 75 if it does not; before, the balance itself.
    """
    balance_with = balance(state, demand.requested)
    return improvement(balance_with, balance(state)) if profile.balance_compares else balance_with


def balance(state: SchedulerNode, more: Mapping[str, int] = _NOTHING) -> int:
    """Return 100 less half the difference between the used parts of cpu and memory in percent, with ``more`` used."""
    cpu, memory = state.cpu_milli, state.memory_bytes
    if not cpu or not memory:
        return MAX_NODE_SCORE
    requested = state.requested
    used_cpu = min(1.0, (requested.get(CPU, 0) + more.get(CPU, 0)) / cpu)
    used_memory = min(1.0, (requested.get(MEMORY, 0) + more.get(MEMORY, 0)) / memory)
    return int((1 - abs((used_cpu - used_memory) / 2)) * MAX_NODE_SCORE)


def improvement(balance_with: int, balance_without: int) -> int:
    """Return the points for a node of which the pod changes the balance so."""
    half = MAX_NODE_SCORE // 2
    return half + (half + balance_with - balance_without) // 2


def normalised(scores: Sequence[int]) -> list[int]:
    """Return the scores in percent of the highest."""
    highest = max(scores, default=0)
    return [MAX_NODE_SCORE * score // highest for score in scores] if highest else list(scores)


def _roomier(crowded: Sequence[int | None]) -> list[int]:
    """Return the more points the less crowded a node is; none for those that do not take part."""
    counted = [each for each in crowded if each is not None]
    lowest, highest = min(counted, default=0), max(counted, default=0)
    return [
        0 if each is None else MAX_NODE_SCORE * (highest + lowest - each) // highest if highest else MAX_NODE_SCORE
        for each in crowded
    ]


def _stretched(weights: Sequence[int]) -> list[int]:
    """Return the weights from the lowest, 0, to the highest, 100."""
    lowest = min(weights)
    span = max(weights) - lowest
    return [int(MAX_NODE_SCORE * ((weight - lowest) / span)) if span else 0 for weight in weights]


def _free_percent(capacity: int, used: int) -> int:
    return (capacity - used) * MAX_NODE_SCORE // capacity if used <= capacity else 0
