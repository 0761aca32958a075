"""A cluster on one screen: which node is nearest to running out, which pod dies next there, and what is wrong."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from msgspec.structs import replace

from podqos.advice.checks.bundle import CheckOptions
from podqos.answers.node_figures import headroom_bytes, node_overview
from podqos.answers.node_state import NodeState
from podqos.answers.overview import NamespaceOverview, NodeOverview, Overview
from podqos.answers.scores import NamespaceScores, counts, namespace_scores
from podqos.answers.workers import Progress
from podqos.errors import InputError
from podqos.library.check import run_checks
from podqos.library.node_state import cluster_state
from podqos.library.rank import rank
from podqos.model.assumption import Assumption, of_version
from podqos.model.node import Node
from podqos.model.pod import TERMINAL_PHASES, Pod, QOSClass
from podqos.model.profile import Profile
from podqos.qos.classes import qos_class_of
from podqos.reading.cluster_snapshot import ClusterSnapshot
from podqos.reading.loading import load

MOST_RANKED = 200
"""Of so many nodes, those nearest to running out, the pods are ranked."""


def overview(cluster: ClusterSnapshot, *, profile: Profile | None = None, progress: Progress | None = None) -> Overview:
    """Return how a cluster stands. ``progress`` gets the number of ranked nodes and the total."""
    profile = profile or cluster.profile
    pods = [found.workload.pod for found in cluster.objects.workloads]
    alive = [pod for pod in pods if pod.status.phase not in TERMINAL_PHASES]
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
    problems: dict[str, str] = {}
    for node in cluster.nodes.values():
        state = headroom = None
        try:
            if by_node.get(node.name):
                state = cluster_state(cluster, node.name, profile=profile)
                headroom = headroom_bytes(state, profile)
        except InputError as error:
            state, problems[node.name] = None, str(error)
        found.append((node, state, headroom))
    found.sort(key=lambda each: (each[2] is None, each[2] or 0))
    made = []
    for number, (node, state, _) in enumerate(found, 1):
        report = None
        if state is not None and number <= MOST_RANKED:
            try:
                report = rank(state, profile=profile)
                assumptions += report.assumptions
            except InputError as error:
                problems[node.name] = str(error)
        one = node_overview(node, by_node.get(node.name, []), state, report, profile)
        made.append(replace(one, problem=problems.get(node.name, one.problem)))
        if progress is not None:
            progress(number, len(found))
    return made, assumptions


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
