"""The nodes on which advice is tried: where workloads land on them, and on how many nodes of each pool they still fit.

Placement is that of ``podqos place``. The pods that controllers would make are placed, those of the old version or of
the new one; what has a node keeps it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from podqos.advice.sizing.tried import PoolScore
from podqos.answers.place import PlacementInput, PlaceOptions
from podqos.errors import InputError
from podqos.manifest.problems import Problem, Severity
from podqos.model.kubelet_config import KubeletConfiguration
from podqos.model.node import LABEL_HOSTNAME, Node
from podqos.model.owners import controllers
from podqos.model.pod import Pod, Workload
from podqos.model.policy import Namespace
from podqos.model.profile import Profile
from podqos.model.resources import CPU, MEMORY
from podqos.model.service import Service
from podqos.objects.objects import FoundWorkload, Objects
from podqos.placement.outcome import Placement, Status
from podqos.placement.place import PlacementSurroundings, place
from podqos.placement.workloads import DAEMON_SET, POD, pods_of
from podqos.qos.classes import qos_class_of
from podqos.qos.oom import oom_scores
from podqos.survival.drift.drift import Identity

# Pods × nodes: beyond this, placing them takes too long for a trial; and, many times over, for a search.
_MOST_PLACED = 2_000_000
_MOST_PODS = 20_000
_MOST_SEARCHED = 100_000
_MOST_ADDED = 512
# What pools are called, by whom.
_POOL_LABELS = (
    "cloud.google.com/gke-nodepool",
    "eks.amazonaws.com/nodegroup",
    "karpenter.sh/nodepool",
    "kubernetes.azure.com/agentpool",
    "agentpool",
    "node.kubernetes.io/instance-type",
)


class Crew(Struct, frozen=True):
    """The pods of one version of all workloads."""

    pods: tuple[Pod, ...]
    owners: Mapping[str, Identity]
    """By the key of the pod."""


class Member(Struct, frozen=True):
    """A workload with the pod that its controller makes copies of."""

    identity: Identity
    workload: Workload
    pod: Pod


class Landing(Struct, frozen=True):
    """Where the pods of a version are."""

    nodes: Mapping[str, str]
    """By the key of the pod; without those that found none."""
    pending: Mapping[Identity, int]
    placement: Placement


class Pool(Struct, frozen=True):
    """Nodes that are alike."""

    name: str
    nodes: tuple[Node, ...]


class Ground(Struct, frozen=True):
    """The nodes, and what else decides where pods go."""

    surroundings: PlacementSurroundings
    config: KubeletConfiguration
    is_stated: bool
    """Whether the kubelet's settings are known."""

    @property
    def nodes(self) -> tuple[Node, ...]:
        """The nodes at hand."""
        return self.surroundings.nodes

    def holds(self, pods: int) -> bool:
        """Whether so many pods can be placed here in reasonable time."""
        return pods * len(self.nodes) <= _MOST_PLACED and pods <= _MOST_PODS

    def land(self, crew: Crew, nodes: Sequence[Node] | None = None) -> Landing:
        """Place the pods, perhaps on other nodes."""
        surroundings = self.surroundings if nodes is None else replace(self.surroundings, nodes=tuple(nodes))
        placement = place(crew.pods, surroundings)
        pending: Counter[Identity] = Counter()
        where: dict[str, str] = {}
        for outcome in placement.outcomes:
            if outcome.status is Status.PENDING:
                pending[crew.owners[outcome.pod]] += 1
            elif outcome.node is not None:
                where[outcome.pod] = outcome.node
        return Landing(where, pending, placement)


def ground_of(objects: Objects, options: PlaceOptions) -> Ground | None:
    """Return the nodes among the objects, and those that were only counted; None where there are none to place on.

    Nodes on which nothing can be placed keep nobody from advice: why is noted.
    """
    if options.node_count is None and not objects.of(Node):
        return None
    try:
        placing = PlacementInput(objects.only(()), options)
    except InputError as error:
        objects.note(Problem("Nodes", 0, 0, Severity.WARNING, "", f"not used for placement: {error.what}", error.fix))
        return None
    nodes = tuple({node.name: node for node in placing.nodes if node.name}.values())
    if not nodes:
        return None
    surroundings = PlacementSurroundings(
        nodes,
        {namespace.metadata.name: namespace.metadata.labels for namespace in objects.of(Namespace)},
        tuple(budget for _, budget in objects.disruption_budgets()),
        options.profile,
        objects.of(Service),
    )
    config = placing.config
    return Ground(surroundings, config or KubeletConfiguration(), config is not None)


def without_owned(found: Iterable[FoundWorkload]) -> Iterator[FoundWorkload]:
    """Yield the workloads that no other of them has made: of a Deployment, its ReplicaSets and pods are left out."""
    every = list(found)
    names = {
        (workload.workload.kind, workload.workload.metadata.namespace_or_default, workload.workload.metadata.name)
        for workload in every
    }
    for workload in every:
        metadata = workload.workload.metadata
        makers = controllers(metadata)
        if not any((kind, metadata.namespace_or_default, name) in names for kind, name in makers):
            yield workload


def crew_of(members: Iterable[Member], nodes: Sequence[Node], profile: Profile) -> Crew:
    """Return the pods of all workloads, each under a name of its own."""
    pods: list[Pod] = []
    owners: dict[str, Identity] = {}
    for member in members:
        for pod in pods_of(replace(member.workload, pod=member.pod), nodes, profile=profile):
            made, number = pod, 1
            while made.key in owners:
                number += 1
                made = replace(pod, metadata=replace(pod.metadata, name=f"{pod.metadata.name}-{number}"))
            owners[made.key] = member.identity
            pods.append(made)
    return Crew(tuple(pods), owners)


def replicas_on(workload: Workload, nodes: Sequence[Node], profile: Profile) -> int | None:
    """Return how many pods a workload has; None for a DaemonSet on unknown nodes."""
    if workload.kind == DAEMON_SET:
        return sum(1 for _ in pods_of(workload, nodes, profile=profile)) if nodes else None
    if workload.kind == POD:
        return 1
    return 1 if workload.replicas is None else workload.replicas


# ---- pools -----------------------------------------------------------------------------------------------------------


def pools_of(nodes: Iterable[Node]) -> tuple[Pool, ...]:
    """Return the nodes in pools: of one name, or of one size; the largest pool first."""
    pools: dict[str, list[Node]] = {}
    for node in nodes:
        pools.setdefault(_pool_name(node), []).append(node)
    ordered = sorted(pools.items(), key=lambda item: (-len(item[1]), item[0]))
    return tuple(Pool(name, tuple(of_pool)) for name, of_pool in ordered)


def _pool_name(node: Node) -> str:
    size = node.status.capacity or node.status.allocatable
    amounts = [f"{size[CPU]} cpu" if CPU in size else "", f"{size[MEMORY]} memory" if MEMORY in size else ""]
    told = ", ".join(filter(None, amounts))
    label = next((node.labels[name] for name in _POOL_LABELS if name in node.labels), "")
    return f"{label} ({told})" if label and told else label or told or "nodes"


def pool_scores(nodes: Sequence[Node], before: Pod | None, after: Pod, profile: Profile) -> tuple[PoolScore, ...]:
    """Return the scores of a workload's pods in every pool; none where all nodes have the same memory."""
    pools = [(pool.name, pool.nodes[0].status.capacity[MEMORY].value) for pool in pools_of(nodes) if _has_memory(pool)]
    if len({memory_bytes for _, memory_bytes in pools}) < 2:
        return ()
    return tuple(
        PoolScore(name, size, None if before is None else _worst(before, size, profile), _worst(after, size, profile))
        for name, size in pools
    )


def _has_memory(pool: Pool) -> bool:
    return MEMORY in pool.nodes[0].status.capacity


def _worst(pod: Pod, memory_bytes: int, profile: Profile) -> int:
    running = {container.name for container in pod.running_containers}
    scores = oom_scores(pod, qos_class_of(pod, profile), memory_bytes, profile)
    return max((score.value for score in scores if score.container in running), default=1000)


CrewOn = Callable[[Sequence[Node]], Crew]
"""From nodes to the pods there are then: a DaemonSet has one on each."""


def least_nodes(ground: Ground, crew_on: CrewOn) -> dict[str, int] | None:
    """Return how many nodes of each pool suffice for everything that fits on all of them; None where that is too long.

    The pools are emptied one after the other, the largest first. Where not everything fits, copies of a node of the
    first pool on which it does are added.
    """
    everything = crew_on(ground.nodes)
    if len(everything.pods) * len(ground.nodes) > _MOST_SEARCHED:
        return None
    pools = pools_of(ground.nodes)
    kept = {pool.name: len(pool.nodes) for pool in pools}
    if _pending(ground, crew_on, ground.nodes):
        return _with_more(ground, crew_on, pools, kept)
    for pool in pools:
        others = [node for each in pools if each is not pool for node in each.nodes[: kept[each.name]]]
        low, high = 0 if others else 1, len(pool.nodes)
        while low < high:
            middle = (low + high) // 2
            if _pending(ground, crew_on, [*others, *pool.nodes[:middle]]):
                low = middle + 1
            else:
                high = middle
        kept[pool.name] = high
    return kept


def _with_more(
    ground: Ground, crew_on: CrewOn, pools: Sequence[Pool], kept: Mapping[str, int]
) -> dict[str, int] | None:
    """Return how many nodes of a pool it takes until nothing is pending; None where no pool helps."""
    for pool in pools:
        most = 1
        while most <= _MOST_ADDED and _pending(ground, crew_on, [*ground.nodes, *_copies(pool, most)]):
            most *= 2
        if most > _MOST_ADDED:
            continue
        low, high = most // 2 + 1, most
        while low < high:
            middle = (low + high) // 2
            if _pending(ground, crew_on, [*ground.nodes, *_copies(pool, middle)]):
                low = middle + 1
            else:
                high = middle
        return {**kept, pool.name: len(pool.nodes) + high}
    return None


def _copies(pool: Pool, count: int) -> Iterator[Node]:
    node = pool.nodes[0]
    for number in range(1, count + 1):
        name = f"{node.name}-more-{number}"
        labels = {**node.labels, LABEL_HOSTNAME: name}
        yield replace(node, metadata=replace(node.metadata, name=name, labels=labels))


def _pending(ground: Ground, crew_on: CrewOn, nodes: Sequence[Node]) -> int:
    crew = crew_on(nodes)
    if not nodes:
        return len(crew.pods)
    names = {node.name for node in nodes}
    # What was bound to a node that is no longer there looks for another.
    loose = tuple(
        pod
        if not pod.spec.node_name or pod.spec.node_name in names
        else replace(pod, spec=replace(pod.spec, node_name=""))
        for pod in crew.pods
    )
    return sum(ground.land(replace(crew, pods=loose), nodes).pending.values())
