"""What a node has, what is taken of it and what is left: the same figures for ``podqos overview`` and the page."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from podqos.answers.node_state import NodeState, used_by_pods, used_bytes
from podqos.answers.overview import NextVictim, NodeOverview, Share
from podqos.answers.places import EvictionPlace, KillPlace, RankReport
from podqos.answers.watched_memory import watched_memory
from podqos.model.effective import pod_limits, pod_requests
from podqos.model.node import PODS, Node
from podqos.model.pod import Pod
from podqos.model.profile import Profile
from podqos.model.resources import CPU, MEMORY, ResourceList, sum_of


def node_overview(
    node: Node, pods: Sequence[Pod], state: NodeState | None, report: RankReport | None, profile: Profile
) -> NodeOverview:
    """Return a node with its pods; ``report`` ranks them, where that was asked for."""
    evicted = [] if report is None else [each for each in report.eviction_order if each.spared is None]
    killed = [] if report is None else report.kill_order
    watched = None if state is None else watched_memory(state, profile)
    return NodeOverview(
        name=node.name,
        pods=len(pods),
        most_pods=node.status.allocatable[PODS].value if PODS in node.status.allocatable else None,
        memory=_share(node, pods, MEMORY, state),
        cpu=_share(node, pods, CPU, None),
        conditions=tuple(_conditions(node)),
        headroom_bytes=None if watched is None else watched.headroom_bytes,
        headroom=None if watched is None else watched.headroom,
        kernel_left_bytes=None if report is None else report.node.kernel_left_bytes,
        is_measured=state is not None and state.is_kubelets,
        next_evicted=_victim(next(iter(evicted), None)),
        next_killed=_victim(next(iter(killed), None)),
        problem="" if report is None else report.problem,
    )


def headroom_bytes(state: NodeState, profile: Profile) -> int:
    """Return the memory that is left until the kubelet evicts, by whichever signal is nearer to it."""
    return watched_memory(state, profile).headroom_bytes


def threshold_bytes(state: NodeState, profile: Profile) -> int:
    """Return the highest hard threshold of ``memory.available``."""
    return watched_memory(state, profile).threshold_bytes


def _victim(place: EvictionPlace | KillPlace | None) -> NextVictim | None:
    return None if place is None else NextVictim(place.pod, place.qos_class, place.reason)


def _share(node: Node, pods: Iterable[Pod], resource: str, state: NodeState | None) -> Share:
    def amount(of: ResourceList) -> int:
        found = of.get(resource)
        return 0 if found is None else found.milli_value if resource == CPU else found.value

    own = list(pods)
    return Share(
        allocatable=amount(node.status.allocatable),
        requests=amount(sum_of(map(pod_requests, own))),
        limits=amount(sum_of(map(pod_limits, own))),
        used=None if state is None or not state.is_kubelets else used_bytes(state),
        used_by_pods=None if state is None or not state.is_kubelets else used_by_pods(state),
    )


def _conditions(node: Node) -> Iterator[str]:
    """Yield what is not as it should be."""
    for condition in node.status.conditions:
        if condition.type == "Ready":
            if condition.status != "True":
                yield "NotReady"
        elif condition.status == "True":
            yield condition.type
    if node.spec.unschedulable:
        yield "Unschedulable"
