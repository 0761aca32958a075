"""Both kill orders of a node's pods: evicted by the kubelet, killed by the kernel."""

from __future__ import annotations

from collections.abc import Collection

from msgspec.structs import replace

from podqos.answers.node_options import NodePodsKeywords, NodePodsOptions
from podqos.answers.node_state import NodeState, beyond_memory, check_fits, node_state
from podqos.answers.places import RankReport, rank_report
from podqos.answers.ranked_workloads import ranked_workloads, workload_of
from podqos.answers.watched_memory import watched_memory
from podqos.errors import InvalidArgument
from podqos.eviction.ranking import Policy, Ranking, can_rank
from podqos.eviction.signals import Layout, Signal
from podqos.naming import naming
from podqos.objects.kubelet_node import DEFAULT_KUBELET
from podqos.objects.objects import Objects
from podqos.qos.cgroup_settings import CgroupVersion
from podqos.survival.orders.orders import both_orders
from podqos.survival.orders.outlook import outlook


class RankRequest(NodePodsOptions, frozen=True, kw_only=True):
    """What runs short, and how the kubelet ranks."""

    signal: Signal = Signal.MEMORY
    policy: Policy | None = None
    """None: that of the Kubernetes version."""
    hard: bool = True
    """Whether a hard threshold was met."""
    layout: Layout = Layout.SINGLE
    pods_memory_bytes: int | None = None
    """What all pods may use together, if the kubelet's configuration does not limit it."""
    cgroup_version: CgroupVersion = CgroupVersion.V2
    remedies: bool = False
    """Whether to try what saves the first pod of each order."""


class RankKeywords(NodePodsKeywords, total=False):
    """``RankRequest`` as keyword arguments."""

    signal: Signal
    policy: Policy | None
    hard: bool
    layout: Layout
    pods_memory_bytes: int | None
    cgroup_version: CgroupVersion
    remedies: bool


def rank(objects: Objects | NodeState, request: RankRequest) -> RankReport:
    """Rank the pods of a node twice, each place with the numbers that decide it and the reason in words."""
    profile = request.profile
    ranking = Ranking(request.signal, request.layout, request.policy, request.hard, profile)
    if not can_rank(ranking):
        what = f"Kubernetes {profile.version_text} evicts no pods for {request.signal}"
        raise InvalidArgument(what, where=naming("signal"), fix="use 1.14 or newer, or another policy")
    state = node_state(objects, request)
    kubelet = request.kubelet or state.kubelet or DEFAULT_KUBELET
    watched = watched_memory(
        state,
        profile,
        kubelet=kubelet,
        cgroup_version=request.cgroup_version,
        pods_memory_bytes=request.pods_memory_bytes,
    )
    settings = watched.settings
    seen = outlook(state.snapshot, settings, profile, watched.exhaustion.thresholds)
    if not state.is_of_cluster:
        check_fits(state, profile)
    orders = both_orders(state.snapshot, ranking, settings, seen.domain)
    own_score = kubelet.config.oom_score_adj
    report = rank_report(state.snapshot, orders, seen, own_score, state.resting_on(kubelet, profile))
    report = replace(report, problem=beyond_memory(state, profile))
    if request.remedies:
        from podqos.answers.remedies import first_remedies, node_now

        now = node_now(state, orders, settings, kubelet)
        report = replace(report, remedies=tuple(first_remedies(now, state)))
    report = _about(report, state.neighbours) if state.neighbours else report
    workloads = {entry.pod.key: workload_of(entry.pod, state.owners) for entry in state.snapshot.pods}
    return replace(report, workloads=ranked_workloads(report.eviction_order, workloads))


def _about(report: RankReport, neighbours: Collection[str]) -> RankReport:
    """Return what is said about the other pods; places stay those among all pods."""
    return replace(
        report,
        eviction_order=tuple(place for place in report.eviction_order if place.pod not in neighbours),
        kill_order=tuple(kill_place for kill_place in report.kill_order if kill_place.pod not in neighbours),
        without_process=tuple(container for container in report.without_process if container.pod not in neighbours),
        remedies=tuple(remedy for remedy in report.remedies if remedy.pod not in neighbours),
        disagreements=tuple(
            disagreement
            for disagreement in report.disagreements
            if not {disagreement.evicted_first, disagreement.killed_first} <= {*neighbours}
        ),
    )
