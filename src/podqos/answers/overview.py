"""A cluster on one screen: nodes by headroom, which pod dies next on each, and what is wrong by namespace."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from msgspec import Struct
from msgspec.structs import replace

from podqos.advice.checks.bundle import CheckOptions
from podqos.answers.check import Checked, CheckRequest
from podqos.answers.cluster_state import cluster_state
from podqos.answers.node_figures import NodeOverview, node_overview
from podqos.answers.node_state import NodeState
from podqos.answers.rank import RankRequest, rank
from podqos.answers.scores import NamespaceScores, counts, namespace_scores
from podqos.answers.watched_memory import WatchedMemory, watched_memory
from podqos.errors import InputError
from podqos.model.assumption import Assumption, of_version
from podqos.model.node import Node
from podqos.model.pod import TERMINAL_PHASES, Pod, QOSClass
from podqos.model.profile import Profile
from podqos.naming import published
from podqos.objects.cluster_snapshot import ClusterSnapshot
from podqos.objects.held import held_objects
from podqos.objects.spreading import Progress, Spread, one_by_one
from podqos.qos.classes import qos_class_of


class NamespaceOverview(Struct, frozen=True, rename="camel"):
    """A namespace: its pods, and what ``check`` finds there."""

    namespace: str
    """Empty for what belongs to none."""
    classes: dict[str, int]
    """Pods that have not ended, by class."""
    score: int
    """From 0 to 100, as ``check --all`` has it."""
    errors: int
    warnings: int
    objects: int
    """How many objects have errors or warnings."""


class Overview(Struct, frozen=True, rename="camel"):
    """The whole output of ``podqos overview -o json``."""

    taken_at: str
    server_version: str
    nodes: tuple[NodeOverview, ...]
    """Least headroom first."""
    classes: dict[str, int]
    """Pods that have not ended, by class."""
    pending: tuple[str, ...]
    """Pods without a node."""
    stored_otherwise: tuple[str, ...]
    """Pods whose stored class is not the one their resources make."""
    namespaces: tuple[NamespaceOverview, ...]
    """Worst first."""
    checks: dict[str, int]
    """Errors and warnings by check."""
    verdict: str
    """The worst finding in a sentence; empty where there is none."""
    api_version: str = "podqos.dev/v1alpha1"
    kind: str = "ClusterOverview"
    assumptions: tuple[Assumption, ...] = ()


MOST_RANKED = 200
"""Of so many nodes, those nearest to running out, the pods are ranked."""


def overview(
    cluster: ClusterSnapshot,
    *,
    profile: Profile | None = None,
    progress: Progress | None = None,
    spread: Spread = one_by_one,
) -> Overview:
    """Return how a cluster stands.

    ``progress`` gets the number of ranked nodes and the total; ``spread`` may check objects on several cores.
    """
    profile = profile or cluster.profile
    pods = [found.workload.pod for found in cluster.objects.workloads]
    alive = [pod for pod in pods if pod.status.phase not in TERMINAL_PHASES]
    by_node: dict[str, list[Pod]] = {}
    for pod in alive:
        by_node.setdefault(pod.spec.node_name, []).append(pod)
    checked = Checked(
        CheckRequest(objects=held_objects(cluster.declared()), options=CheckOptions(profile=profile)), spread
    )
    report = checked.report
    classes = {pod.key: qos_class_of(pod, profile) for pod in alive}
    nodes, assumptions = _nodes(cluster, by_node, profile, progress)
    return Overview(
        taken_at=cluster.header.taken_at,
        server_version=cluster.header.server_version,
        nodes=tuple(sorted(nodes, key=lambda node: (node.headroom_bytes is None, node.headroom_bytes or 0, node.name))),
        classes=dict(sorted(Counter(str(qos_class) for qos_class in classes.values()).items())),
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
    found: list[tuple[Node, NodeState | None, WatchedMemory | None]] = []
    problems: dict[str, str] = {}
    for node in cluster.nodes.values():
        state = watched = None
        try:
            if by_node.get(node.name):
                state = cluster_state(cluster, node.name, profile=profile)
                watched = watched_memory(state, profile)
        except InputError as error:
            state, problems[node.name] = None, error.worded(published)
        found.append((node, state, watched))
    found.sort(key=lambda each: (True, 0) if each[2] is None else (False, each[2].headroom_bytes))
    made = []
    for number, (node, state, watched) in enumerate(found, 1):
        report = None
        if state is not None and number <= MOST_RANKED:
            try:
                report = rank(state, RankRequest(profile=profile))
                assumptions += report.assumptions
            except InputError as error:
                problems[node.name] = error.worded(published)
        one = node_overview(node, by_node.get(node.name, []), state, watched, report)
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
            namespace=item.namespace,
            classes=dict(sorted(by_class.get(item.namespace, Counter()).items())),
            score=item.score,
            errors=item.errors,
            warnings=item.warnings,
            objects=item.with_errors + item.with_warnings,
        )
        for item in scores.items
    )
