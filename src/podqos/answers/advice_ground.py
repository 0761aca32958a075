"""The nodes on which advice is tried: where workloads land on them.

Placement is that of ``podqos place``. The pods that controllers would make are placed, those of the old version or of
the new one; what has a node keeps it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from podqos.answers.place import PlacementInput, PlaceOptions, surroundings_of
from podqos.errors import InputError
from podqos.manifest.problems import Problem, Severity
from podqos.model.kubelet_config import KubeletConfiguration
from podqos.model.node import Node
from podqos.model.owners import controllers
from podqos.model.pod import Pod, Workload
from podqos.model.profile import Profile
from podqos.objects.objects import FoundWorkload, Objects
from podqos.placement.outcome import Status
from podqos.placement.place import PlacementSurroundings, place
from podqos.placement.workloads import DAEMON_SET, POD, pods_of
from podqos.survival.drift.drift import Identity

# Pods × nodes: beyond this, placing them takes too long for a trial.
_MOST_PLACED = 2_000_000
_MOST_PODS = 20_000


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


class Ground(Struct, frozen=True):
    """The nodes, and what else decides where pods go."""

    surroundings: PlacementSurroundings
    config: KubeletConfiguration

    @property
    def nodes(self) -> tuple[Node, ...]:
        """The nodes at hand."""
        return self.surroundings.nodes

    def holds(self, pods: int) -> bool:
        """Whether so many pods can be placed here in reasonable time."""
        return pods * len(self.nodes) <= _MOST_PLACED and pods <= _MOST_PODS

    def land(self, crew: Crew) -> Landing:
        """Place the pods."""
        placement = place(crew.pods, self.surroundings)
        pending: Counter[Identity] = Counter()
        where: dict[str, str] = {}
        for outcome in placement.outcomes:
            if outcome.status is Status.PENDING:
                pending[crew.owners[outcome.pod]] += 1
            elif outcome.node is not None:
                where[outcome.pod] = outcome.node
        return Landing(where, pending)


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
    return Ground(surroundings_of(objects, nodes, options.profile), placing.config or KubeletConfiguration())


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
