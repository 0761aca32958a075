"""A cluster on one screen: which node is nearest to running out, which pod dies next there, and what is wrong."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from podqos.advice.checks.bundle import CheckOptions
from podqos.eviction.signals import Signal
from podqos.library.check import run_checks
from podqos.library.cluster_snapshot import ClusterSnapshot
from podqos.library.engines.fan_out import Progress
from podqos.library.inputs.kubelet_node import DEFAULT_KUBELET, Kubelet
from podqos.library.inputs.objects import load
from podqos.library.node_state import NodeState, cluster_state
from podqos.library.rank import rank
from podqos.model.assumption import Assumption, of_version
from podqos.model.effective import pod_limits, pod_requests
from podqos.model.node import PODS, Node
from podqos.model.pod import Pod, QOSClass
from podqos.model.profile import Profile
from podqos.model.resources import CPU, MEMORY, ResourceList, sum_of
from podqos.qos.classes import qos_class_of
from podqos.report.check.scores import NamespaceScores, counts, namespace_scores
from podqos.report.cluster.overview import NamespaceOverview, NextVictim, NodeOverview, Overview, Share
from podqos.survival.exhaustion import exhaustion
from podqos.survival.places import EvictionPlace, KillPlace
from podqos.survival.pods import ENDED

MOST_RANKED = 200
"""Of so many nodes, those nearest to running out, the pods are ranked."""


def overview(cluster: ClusterSnapshot, *, profile: Profile | None = None, progress: Progress | None = None) -> Overview:
    """Return how a cluster stands. ``progress`` gets the number of ranked nodes and the total."""
    profile = profile or cluster.profile
    pods = [found.workload.pod for found in cluster.objects.workloads]
    alive = [pod for pod in pods if pod.status.phase not in ENDED]
    by_node: dict[str, list[Pod]] = {}
    for pod in alive:
        by_node.setdefault(pod.spec.node_name, []).append(pod)
    checked = run_checks(load(cluster.declared()), CheckOptions(profile=profile))
    report = checked.report
    classes = {pod.key: qos_class_of(pod, profile) for pod in alive}
    nodes, assumptions = _nodes(cluster, by_node, profile, progress)
    return Overview(
        taken_at=cluster.header.taken_at,
        server_version=cluster.header.server_version,
        nodes=tuple(sorted(nodes, key=lambda node: (node.headroom_bytes is None, node.headroom_bytes or 0, node.name))),
        classes=dict(sorted(Counter(str(each) for each in classes.values()).items())),
        pending=tuple(pod.key for pod in by_node.get("", ())),
        stored_otherwise=tuple(
            pod.key for pod in alive if pod.status.qos_class is not None and pod.status.qos_class != classes[pod.key]
        ),
        namespaces=_namespaces(namespace_scores(report, checked.with_pods), alive, classes),
        checks=dict(sorted(Counter(item.check for item in report.items if counts(item)).items())),
        verdict="" if report.verdict is None else report.verdict.text,
        assumptions=tuple(dict.fromkeys((*of_version(profile), *cluster.assumptions, *assumptions))),
    )


def _nodes(
    cluster: ClusterSnapshot, by_node: Mapping[str, list[Pod]], profile: Profile, progress: Progress | None
) -> tuple[list[NodeOverview], list[Assumption]]:
    """Return every node; those nearest to running out with the pods that die next."""
    assumptions: list[Assumption] = []
    found: list[tuple[Node, NodeState | None, int | None]] = []
    for node in cluster.nodes.values():
        state = cluster_state(cluster, node.name, profile=profile) if by_node.get(node.name) else None
        found.append((node, state, None if state is None else _headroom(state, profile)))
    found.sort(key=lambda each: (each[2] is None, each[2] or 0))
    made = []
    for number, (node, state, headroom) in enumerate(found, 1):
        own = by_node.get(node.name, [])
        evicted: list[NextVictim] = []
        killed: list[NextVictim] = []
        if state is not None and number <= MOST_RANKED:
            report = rank(state, profile=profile)
            assumptions += report.assumptions
            evicted = [_victim(each) for each in report.eviction_order if each.spared is None]
            killed = [_victim(each) for each in report.kill_order]
        made.append(
            NodeOverview(
                name=node.name,
                pods=len(own),
                most_pods=node.status.allocatable[PODS].value if PODS in node.status.allocatable else None,
                memory=_share(node, own, MEMORY, state),
                cpu=_share(node, own, CPU, None),
                conditions=tuple(_conditions(node)),
                headroom_bytes=headroom,
                is_measured=state is not None and state.is_kubelets,
                next_evicted=next(iter(evicted), None),
                next_killed=next(iter(killed), None),
            )
        )
        if progress is not None:
            progress(number, len(found))
    return made, assumptions


def _victim(place: EvictionPlace | KillPlace) -> NextVictim:
    return NextVictim(place.pod, place.qos_class, place.reason)


def _headroom(state: NodeState, profile: Profile) -> int:
    """Return the memory that is left until a hard threshold of the kubelet is met."""
    memory_bytes = state.snapshot.node.memory_bytes
    kubelet: Kubelet = state.kubelet or DEFAULT_KUBELET
    watched = exhaustion(kubelet.config, {Signal.MEMORY: memory_bytes}, profile=profile).thresholds
    threshold = max((each.amount or 0 for each in watched if each.is_hard and each.signal is Signal.MEMORY), default=0)
    return memory_bytes - _used_bytes(state) - threshold


def _used_bytes(state: NodeState) -> int:
    pods = sum(usage.working_set_bytes for entry in state.snapshot.pods for usage in entry.containers)
    return state.snapshot.node.system_bytes + pods


def _share(node: Node, pods: Iterable[Pod], resource: str, state: NodeState | None) -> Share:
    def amount(of: ResourceList) -> int:
        found = of.get(resource)
        return 0 if found is None else found.milli_value if resource == CPU else found.value

    own = list(pods)
    return Share(
        allocatable=amount(node.status.allocatable),
        requests=amount(sum_of(map(pod_requests, own))),
        limits=amount(sum_of(map(pod_limits, own))),
        used=None if state is None or not state.is_kubelets else _used_bytes(state),
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


def _namespaces(
    scores: NamespaceScores, pods: Iterable[Pod], classes: Mapping[str, QOSClass]
) -> tuple[NamespaceOverview, ...]:
    by_class: dict[str, Counter[str]] = {}
    for pod in pods:
        by_class.setdefault(pod.metadata.namespace, Counter())[str(classes[pod.key])] += 1
    return tuple(
        NamespaceOverview(
            namespace=each.namespace,
            classes=dict(sorted(by_class.get(each.namespace, Counter()).items())),
            score=each.score,
            errors=each.errors,
            warnings=each.warnings,
            objects=each.with_errors + each.with_warnings,
        )
        for each in scores.items
    )
