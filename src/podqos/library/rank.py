"""Both kill orders of a node's pods: evicted by the kubelet, killed by the kernel."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable

from msgspec.structs import replace

from podqos.errors import InvalidOption
from podqos.eviction.ranking import Policy, Ranking, can_rank
from podqos.eviction.signals import Layout, Signal
from podqos.library.node_state import NodeState, beyond_memory, check_fits, node_state
from podqos.library.watched_memory import watched_memory
from podqos.model.profile import LATEST, Profile
from podqos.objects.kubelet_node import DEFAULT_KUBELET, Kubelet
from podqos.objects.objects import Objects
from podqos.qos.cgroup_settings import CgroupVersion
from podqos.survival.orders import both_orders
from podqos.survival.outlook import outlook
from podqos.survival.places import RankReport
from podqos.survival.usage_file import UsageRow
from podqos.words.ranking import rank_report


def rank(
    objects: Objects | NodeState,
    usage: str | os.PathLike[str] | Iterable[UsageRow] | None = None,
    *,
    node_memory_bytes: int | None = None,
    kubelet: Kubelet | None = None,
    signal: Signal = Signal.MEMORY,
    policy: Policy | None = None,
    hard: bool = True,
    layout: Layout = Layout.SINGLE,
    pods_memory_bytes: int | None = None,
    cgroup_version: CgroupVersion = CgroupVersion.V2,
    profile: Profile = LATEST,
) -> RankReport:
    """Rank the pods of a node twice, each place with the numbers that decide it.

    ``usage`` is a usage file or its rows; without it pods are assumed to use what they request. ``policy`` None is that
    of the Kubernetes version. ``hard``: whether a hard threshold was met. ``pods_memory_bytes`` limits all pods
    together, if the kubelet's configuration does not.
    """
    ranking = Ranking(signal, layout, policy, hard, profile)
    if not can_rank(ranking):
        what = f"Kubernetes {profile.version_text} evicts no pods for {signal}"
        raise InvalidOption(what, where="--signal", fix="use 1.14 or newer, or another policy")
    state = node_state(objects, usage, node_memory_bytes=node_memory_bytes, profile=profile)
    kubelet = kubelet or state.kubelet or DEFAULT_KUBELET
    watched = watched_memory(
        state, profile, kubelet=kubelet, cgroup_version=cgroup_version, pods_memory_bytes=pods_memory_bytes
    )
    settings = watched.settings
    seen = outlook(state.snapshot, settings, profile, watched.exhaustion.thresholds)
    if not state.is_of_cluster:
        check_fits(state, profile)
    orders = both_orders(state.snapshot, ranking, settings, seen.domain)
    own_score = kubelet.config.oom_score_adj
    report = rank_report(state.snapshot, orders, seen, own_score, state.resting_on(kubelet, profile))
    report = replace(report, problem=beyond_memory(state, profile))
    return _about(report, state.neighbours) if state.neighbours else report


def _about(report: RankReport, neighbours: Collection[str]) -> RankReport:
    """Return what is said about the other pods; places stay those among all pods."""
    return replace(
        report,
        eviction_order=tuple(each for each in report.eviction_order if each.pod not in neighbours),
        kill_order=tuple(each for each in report.kill_order if each.pod not in neighbours),
        without_process=tuple(each for each in report.without_process if each.pod not in neighbours),
        disagreements=tuple(
            each for each in report.disagreements if not {each.evicted_first, each.killed_first} <= {*neighbours}
        ),
    )
