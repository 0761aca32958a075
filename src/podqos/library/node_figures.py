"""What a node has, what is taken of it and what is left: the same figures for ``podqos overview`` and the page."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from podqos.eviction.signals import Signal
from podqos.library.inputs.kubelet_node import DEFAULT_KUBELET
from podqos.library.node_state import NodeState, available_bytes, used_bytes
from podqos.model.effective import pod_limits, pod_requests
from podqos.model.node import PODS, Node
from podqos.model.pod import Pod
from podqos.model.profile import Profile
from podqos.model.resources import CPU, MEMORY, ResourceList, sum_of
from podqos.report.cluster.overview import NextVictim, NodeOverview, Share
from podqos.survival.exhaustion import exhaustion
from podqos.survival.places import EvictionPlace, KillPlace, RankReport


def node_overview(
    node: Node, pods: Sequence[Pod], state: NodeState | None, report: RankReport | None, profile: Profile
) -> NodeOverview:
    """Return a node with its pods; ``report`` ranks them, where that was asked for."""
    evicted = [] if report is None else [each for each in report.eviction_order if each.spared is None]
    killed = [] if report is None else report.kill_order
    return NodeOverview(
        name=node.name,
        pods=len(pods),
        most_pods=node.status.allocatable[PODS].value if PODS in node.status.allocatable else None,
        memory=_share(node, pods, MEMORY, state),
        cpu=_share(node, pods, CPU, None),
        conditions=tuple(_conditions(node)),
        headroom_bytes=None if state is None else headroom_bytes(state, profile),
        is_measured=state is not None and state.is_kubelets,
        next_evicted=_victim(next(iter(evicted), None)),
        next_killed=_victim(next(iter(killed), None)),
        problem="" if report is None else report.problem,
    )


def headroom_bytes(state: NodeState, profile: Profile) -> int:
    """Return the memory that is left until a hard threshold of the kubelet is met."""
    return available_bytes(state, profile) - threshold_bytes(state, profile)


def threshold_bytes(state: NodeState, profile: Profile) -> int:
    """Return the highest hard threshold of memory."""
    kubelet = state.kubelet or DEFAULT_KUBELET
    capacities = {Signal.MEMORY: state.snapshot.node.memory_bytes}
    watched = exhaustion(kubelet.config, capacities, profile=profile).thresholds
    return max((each.amount or 0 for each in watched if each.is_hard and each.signal is Signal.MEMORY), default=0)


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
