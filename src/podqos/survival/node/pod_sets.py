"""Totals of pods assumed to be on one node, which the cgroups above them depend on."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec import Struct

from podqos.model.pod import TERMINAL_PHASES, Workload
from podqos.placement.workloads import POD
from podqos.qos.cgroup_tiers import TierRequests, tier_requests
from podqos.survival.node.decision import ExplainSettings, PodDecision


class PodSet(Struct, frozen=True):
    """Pods assumed to be on one node."""

    pods: int = 0
    requests: TierRequests = TierRequests()
    nodes: frozenset[str] = frozenset()
    """The nodes on which they run now."""

    def plus(self, other: PodSet) -> PodSet:
        """Return all pods of both."""
        return PodSet(self.pods + other.pods, self.requests.plus(other.requests), self.nodes | other.nodes)


class PodSets(Struct, frozen=True):
    """The pods of some files, by origin."""

    written: PodSet = PodSet()
    """One pod of each manifest."""
    running: PodSet = PodSet()
    """Pods of a cluster."""
    controllers: PodSet = PodSet()
    """One pod of each controller of a cluster: what its pods are made from."""

    def plus(self, other: PodSets) -> PodSets:
        """Return all pods of both."""
        return PodSets(
            self.written.plus(other.written),
            self.running.plus(other.running),
            self.controllers.plus(other.controllers),
        )

    @property
    def counted(self) -> PodSet:
        """Every pod once: where a list of a cluster has pods, its controllers add nothing."""
        return self.written.plus(self.running if self.running.pods else self.controllers)


def pod_sets(workloads: Iterable[Workload], decisions: Iterable[PodDecision], settings: ExplainSettings) -> PodSets:
    """Return the pods behind decisions, without those that have ended."""
    pairs = [pair for pair in zip(workloads, decisions, strict=True) if pair[1].pod.status.phase not in TERMINAL_PHASES]
    return PodSets(
        _pod_set([decision for workload, decision in pairs if not workload.is_live], settings),
        _pod_set([decision for workload, decision in pairs if workload.is_live and workload.kind == POD], settings),
        _pod_set([decision for workload, decision in pairs if workload.is_live and workload.kind != POD], settings),
    )


def _pod_set(decisions: Sequence[PodDecision], settings: ExplainSettings) -> PodSet:
    pods = [decision.pod for decision in decisions]
    nodes = frozenset(pod.spec.node_name for pod in pods if pod.spec.node_name)
    return PodSet(len(pods), tier_requests(pods, settings.profile), nodes)
